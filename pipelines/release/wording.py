"""What the words of a question alone tell of its answer: a classifier that learns from other questions of the release.

Ridge regression on words and pairs of words, cross-validated so that no two folds share what a picture shows or what an
answer is a fact of; of questions that all hang together so, no two folds share the latter, or else the former. It gives
a lower bound: another classifier may find more. Few questions and many words are what it is for: where each of four
answers had a word of its own, among 89 questions it guessed 95% right, logistic regression 90% and naive Bayes 53%.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np
import numpy.typing as npt

from pipelines.checks.sets import list_grams
from pipelines.graph.values import parse_date
from pipelines.ids import digest_value
from pipelines.names import split_words
from schemas.proofs import Answer

FOLDS = 5
RIDGE = 0.3
"""Weight of the penalty, in squared lengths of a question's words."""
MOST_QUESTIONS = 2_000
"""Questions that are looked at; of more, so many are drawn by their digests. The system to solve is of their size."""
MOST_GRAMS = 4_096
"""Words and pairs that are learnt, those in most questions first; what stands in one question alone tells nothing."""
MOST_LABELS = 500
"""Answers that the classifier distinguishes, the commonest first."""
LEAST_SIZED = 5
"""Dates or numbers of an attribute from which the commonest of their sizes says something."""
SETTLED = 6
"""Digits of a score that count: the order of a sum must not decide."""
Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class QuestionWords:
    """A question as the classifier has it."""

    text: str
    relation: str
    answer: str
    """Its key."""
    size: str
    """Century or magnitude; empty for an answer that is neither a date nor a number."""
    groups: tuple[str, ...]
    """What no two folds may share; an empty one is not known."""


@dataclass(slots=True)
class WordingScores:
    """What is guessed right of each question, by its place."""

    right: dict[int, bool]
    """Whether the answer is, of the questions that were looked at."""
    sizes: dict[int, bool] = field(default_factory=dict)
    """Whether the size is, where the answer has one and its attribute is asked for often enough."""
    commonest_sizes: dict[int, bool] = field(default_factory=dict)
    """Whether it is the commonest size of its attribute, its own question counted: the classifier has to beat that."""


def read_size(answer: Answer) -> str:
    """Return the century of a date, the magnitude of a number, or nothing."""
    if answer.type == "date":
        date = parse_date(answer.value)
        return "" if date is None else f"century {date.year // 100}"
    if answer.type == "number":
        value = Decimal(answer.value)
        return f"magnitude {value.adjusted()}" if value else "zero"
    return ""


def score_wording(questions: Sequence[QuestionWords]) -> WordingScores:
    """Return what a classifier guesses right of each question from its words, trained on the other folds.

    Nothing is scored where no folds can be drawn.
    """
    drawn = sorted(
        range(len(questions)), key=lambda place: digest_value([questions[place].text, questions[place].answer])
    )[:MOST_QUESTIONS]
    folds = draw_folds([questions[place].groups for place in drawn])
    if not folds:
        return WordingScores({})
    fold_of = dict(zip(drawn, folds, strict=True))
    scores = WordingScores(_score(questions, fold_of, {place: questions[place].answer for place in drawn}))
    # A size is one of its attribute: the words tell what is asked for, and what else they tell is measured.
    asked = Counter(questions[place].relation for place in drawn if questions[place].size)
    sized = {at: questions[at] for at in drawn if questions[at].size and asked[questions[at].relation] >= LEAST_SIZED}
    labels = {place: f"{each.relation}: {each.size}" for place, each in sized.items()}
    relations = {label: sized[place].relation for place, label in labels.items()}
    scores.sizes.update(_score(questions, fold_of, labels))
    counts = Counter(labels.values())
    commonest: dict[str, str] = {}
    for label in sorted(counts, key=lambda label: (counts[label], label)):
        commonest[relations[label]] = label
    scores.commonest_sizes.update({place: commonest[sized[place].relation] == label for place, label in labels.items()})
    return scores


def _score(questions: Sequence[QuestionWords], folds: Mapping[int, int], labels: Mapping[int, str]) -> dict[int, bool]:
    """Return, by place, whether the label is guessed from the words."""
    texts = [questions[place].text for place in labels]
    guessed = classify(texts, list(labels.values()), [folds[place] for place in labels])
    return {place: guess == labels[place] for place, guess in zip(labels, guessed, strict=True)}


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
    """Return how many words and pairs of words each two texts share, of those that several texts have."""
    told = [{gram for size in (1, 2) for gram in list_grams(split_words(text), size)} for text in texts]
    counts = Counter(gram for each in told for gram in each)
    often = sorted((gram for gram, count in counts.items() if count > 1), key=lambda gram: (-counts[gram], gram))
    numbers = {gram: number for number, gram in enumerate(often[:MOST_GRAMS])}
    seen = np.zeros((len(texts), len(numbers)), dtype=np.float64)
    for row, each in zip(seen, told, strict=True):
        row[[numbers[gram] for gram in each if gram in numbers]] = 1.0
    return seen @ seen.T


def _regress(known: Matrix, asked: Matrix, wanted: Matrix) -> Matrix:
    """Return what is wanted of the asked, by kernel ridge regression on the known, both about the known's mean."""
    means, mean = known.mean(axis=0), known.mean()
    inner = known - means - means[:, None] + mean
    outer = asked - asked.mean(axis=1, keepdims=True) - means + mean
    strength = RIDGE * float(np.trace(inner)) / len(known) or 1.0
    middle = wanted.mean(axis=0)
    found: Matrix = outer @ np.linalg.solve(inner + strength * np.eye(len(known)), wanted - middle) + middle
    return found
