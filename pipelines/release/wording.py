"""What the words of a question alone tell of its answer: a classifier that learns from other questions of the release.

Ridge regression on words and pairs of words, cross-validated so that no two folds share what a picture shows or what an
answer is a fact of; of questions that all hang together so, no two folds share the latter, or else the former. It gives
a lower bound: another classifier may find more. Few questions and many words are what it is for: where each of four
answers had a word of its own, among 89 questions it guessed 95% right, logistic regression 90% and naive Bayes 53%.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pipelines.checks.sets import list_grams
from pipelines.ids import digest_value
from pipelines.names import split_words

FOLDS = 5
RIDGE = 0.3
"""Weight of the penalty, in squared lengths of a question's words."""
MOST_QUESTIONS = 2_000
"""Questions that are looked at; of more, so many are drawn by their digests. The system to solve is of their size."""
MOST_GRAMS = 4_096
"""Words and pairs that are learnt, those in most questions first; what stands in one question alone tells nothing."""
MOST_LABELS = 500
"""Answers that the classifier distinguishes, the commonest first."""
SETTLED = 6
"""Digits of a score that count: the order of a sum must not decide."""
Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class QuestionWords:
    """A question as the classifier has it."""

    text: str
    answer: str
    """Its key."""
    groups: tuple[str, ...]
    """What no two folds may share; an empty one is not known."""


def score_wording(questions: Sequence[QuestionWords]) -> dict[int, bool]:
    """Return, by place, whether a classifier guesses the answer from the words, trained on the other folds.

    Of many questions some are looked at; nothing is scored where no folds can be drawn.
    """
    drawn = sorted(
        range(len(questions)), key=lambda place: digest_value([questions[place].text, questions[place].answer])
    )[:MOST_QUESTIONS]
    folds = draw_folds([questions[place].groups for place in drawn])
    if not folds:
        return {}
    guessed = classify([questions[at].text for at in drawn], [questions[at].answer for at in drawn], folds)
    return {place: guess == questions[place].answer for place, guess in zip(drawn, guessed, strict=True)}


def draw_folds(groups: Sequence[Sequence[str]], folds: int = FOLDS) -> list[int]:
    """Return the fold of each question: those that share a group, by others too, are in one; sizes are about equal.

    Few anchors and answer nodes that are used several times each hang together as a whole, and one fold of all leaves
    nothing to learn from. If a fold has more than half, questions are apart by their last group alone, the answer node,
    then by their first, the anchor. None is returned if a fold has more than half even then: nothing can be measured.
    """
    for own in (slice(None), slice(-1, None), slice(0, 1)):
        chosen = _fill_folds([names[own] for names in groups], folds)
        if 2 * max(Counter(chosen).values(), default=0) <= len(groups):
            return chosen
    return []


def _fill_folds(groups: Sequence[Sequence[str]], folds: int) -> list[int]:
    # Imported here as in pipelines.graph.proofs.
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from(range(len(groups)))
    graph.add_edges_from((place, name) for place, names in enumerate(groups) for name in names if name)
    parts = [sorted(node for node in part if isinstance(node, int)) for part in nx.connected_components(graph)]
    sizes, chosen = [0] * folds, [0] * len(groups)
    for part in sorted(parts, key=lambda part: (-len(part), part)):
        fold = sizes.index(min(sizes))
        sizes[fold] += len(part)
        for place in part:
            chosen[place] = fold
    return chosen


def classify(texts: Sequence[str], labels: Sequence[str], folds: Sequence[int]) -> list[str]:
    """Return the label that each text has most likely, by the texts of all other folds; empty without any.

    Ridge regression of each label on the words, in its dual form: one linear system of as many rows as texts.
    """
    kernel, own = _compare(texts), np.array(folds, dtype=np.int64)
    guessed = [""] * len(texts)
    for fold in sorted(set(folds)):
        known, asked = np.flatnonzero(own != fold), np.flatnonzero(own == fold)
        if not len(known):
            continue
        trained = [labels[place] for place in known.tolist()]
        counts = Counter(trained)
        names = sorted(sorted(counts, key=lambda label: (-counts[label], label))[:MOST_LABELS])
        wanted = np.array([[label == name for name in names] for label in trained], dtype=np.float64)
        scores = _regress(kernel[np.ix_(known, known)], kernel[np.ix_(asked, known)], wanted)
        best = np.argmax(np.round(scores, SETTLED), axis=1)
        for place, label in zip(asked.tolist(), best.tolist(), strict=True):
            guessed[place] = names[label]
    return guessed


def _compare(texts: Sequence[str]) -> Matrix:
    told = [{gram for size in (1, 2) for gram in list_grams(split_words(text), size)} for text in texts]
    counts = Counter(gram for each in told for gram in each)
    often = sorted((gram for gram, count in counts.items() if count > 1), key=lambda gram: (-counts[gram], gram))
    numbers = {gram: number for number, gram in enumerate(often[:MOST_GRAMS])}
    seen = np.zeros((len(texts), len(numbers)), dtype=np.float64)
    for row, each in zip(seen, told, strict=True):
        row[[numbers[gram] for gram in each if gram in numbers]] = 1.0
    return seen @ seen.T


def _regress(known: Matrix, asked: Matrix, wanted: Matrix) -> Matrix:
    means, mean = known.mean(axis=0), known.mean()
    inner = known - means - means[:, None] + mean
    outer = asked - asked.mean(axis=1, keepdims=True) - means + mean
    strength = RIDGE * float(np.trace(inner)) / len(known) or 1.0
    middle = wanted.mean(axis=0)
    found: Matrix = outer @ np.linalg.solve(inner + strength * np.eye(len(known)), wanted - middle) + middle
    return found
