"""What a guesser scores who knows the answers of a release but no question: the commonest one of what is asked for.

Chen and Durrett 2019 found multi-hop sets whose answers such a guesser has often. Each answer is left out of the count
that it is guessed by, so that an answer given once is never a guess.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from pipelines.agent.agreement import bound_mean
from pipelines.graph.facts import stem_key

DIGITS = 4
OVERALL = "all attributes"


def count_right(answers: Counter[str]) -> float:
    """Return how many of a group's answers are expected right when each is guessed as the commonest of the others.

    A tie counts by the share of the tied answers; the only answer of a group is never guessed.
    """
    ranked = sorted(answers.values(), reverse=True)
    first, second = ranked[0], ranked[1] if len(ranked) > 1 else 0
    if first - 1 > second:
        return float(first)
    tied = ranked.count(second) + 1 if second and first - 1 == second else 0
    return first / tied if tied else 0.0


def measure_guessing(asked: Iterable[tuple[str, str]]) -> dict[str, Mapping[str, str | int | float]]:
    """Return what guessing scores over all questions and for each attribute, those asked for most first.

    Args:
        asked: the infobox key that each question asks for, and its answer's key.

    Returns:
        By attribute the questions, distinct answers, the commonest answer and how many have it, and the share that is
        guessed right with its Wilson interval (95%).
    """
    groups: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for relation, answer in asked:
        groups[stem_key(relation) or relation][answer] += 1
    ordered = sorted(groups.items(), key=lambda group: (-group[1].total(), group[0]))
    right = sum((count_right(answers) for _, answers in ordered), 0.0)
    total = sum(answers.total() for _, answers in ordered)
    distinct = sum(len(answers) for _, answers in ordered)
    rows: dict[str, Mapping[str, str | int | float]] = {OVERALL: _describe(total, distinct, right)}
    for relation, answers in ordered:
        commonest, times = min(answers.items(), key=lambda pair: (-pair[1], pair[0]))
        told = _describe(answers.total(), len(answers), count_right(answers))
        rows[relation] = told | {"commonest": commonest, "has it": times}
    return rows


def _describe(questions: int, distinct: int, right: float) -> dict[str, str | int | float]:
    interval = bound_mean(right, questions, 1.0)
    return {
        "n": questions,
        "answers": distinct,
        "share": round(interval.middle, DIGITS),
        "low": round(interval.low, DIGITS),
        "high": round(interval.high, DIGITS),
    }
