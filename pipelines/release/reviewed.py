"""What people said of a release's questions: their decisions, how far they agree, and the share they found wrong.

``reviews.json`` in a release holds the decisions on its questions. It is part of what names the version, so that the
same decisions give the same version and everything said of them can be counted again from it.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from pipelines.agent.agreement import cohen_kappa, fleiss_kappa, measure_pairs, wilson_interval
from pipelines.checks.quotas import Attempts, grade_difficulty
from pipelines.errors import ConfigError
from schemas.manifest import ManifestPart

REVIEWS = "reviews.json"
DIGITS = 4
Numbers = dict[str, dict[str, int | float]]


class Review(ManifestPart):
    """One person's decision on one question."""

    question: str
    """Its id."""
    reviewer: str
    """As the person was named in the file of decisions."""
    accepted: bool
    decided_on: str
    """Day as ``2026-11-22``."""


_REVIEWS = TypeAdapter(tuple[Review, ...])


def sort_reviews(reviews: Iterable[Review]) -> tuple[Review, ...]:
    """Return decisions in the one order in which they are written."""
    return tuple(sorted(reviews, key=lambda review: (review.question, review.reviewer)))


def render_reviews(reviews: Iterable[Review]) -> str:
    """Return the file of decisions."""
    told = [review.model_dump() for review in sort_reviews(reviews)]
    return json.dumps(told, indent=1, ensure_ascii=False) + "\n"


def read_reviews(path: Path) -> tuple[Review, ...]:
    """Return the decisions of a file; none where there is no such file."""
    if not path.is_file():
        return ()
    try:
        return parse_reviews(path.read_bytes())
    except ValidationError as error:
        raise ConfigError(f"{path}: no file of decisions: {error}") from error


def parse_reviews(text: str | bytes) -> tuple[Review, ...]:
    """Return the decisions of a JSON array; raises ``ValidationError`` if it is none of decisions."""
    return sort_reviews(_REVIEWS.validate_json(text))


def select_reviews(reviews: Iterable[Review], questions: Container[str]) -> tuple[Review, ...]:
    """Return the decisions on some questions."""
    return tuple(review for review in reviews if review.question in questions)


def name_group(hops: object, domain: str, cells: Sequence[Attempts]) -> str:
    """Return a question's stratum in words: hops, domain and how often it was solved, all conditions together."""
    scored = any(cell.attempts > cell.unscored for cell in cells)
    solved = f"{grade_difficulty(cells)} solved" if scored else "not attempted"
    return f"{hops} hops, {domain or 'no domain'}, {solved}"


def measure_reviews(strata: Mapping[str, str], reviews: Iterable[Review]) -> dict[str, Numbers]:
    """Return sections for the report: who agreed how far, and the share found wrong; none where nobody looked.

    A question counts as wrong where at least half of those who decided on it refuse it. Intervals are Wilson's, 95%.

    Args:
        strata: stratum of every question by its id.
        reviews: decisions; those on other questions are left out.
    """
    found: defaultdict[str, dict[str, bool]] = defaultdict(dict)
    for review in sort_reviews(select_reviews(reviews, strata)):
        found[review.question][review.reviewer] = review.accepted
    if not found:
        return {}
    wrong = {question: 2 * sum(said.values()) <= len(said) for question, said in found.items()}
    groups: defaultdict[str, list[bool]] = defaultdict(list)
    for question, refused in wrong.items():
        groups[strata[question]].append(refused)
    sizes = Counter(strata.values())
    table: Numbers = {"all": _count_wrong(list(wrong.values()), len(strata))}
    table |= {name: _count_wrong(groups[name], sizes[name]) for name in sorted(groups)}
    return {"review by people": _measure_agreement(list(found.values())), "found wrong by people": table}


def _count_wrong(wrong: Sequence[bool], questions: int) -> dict[str, int | float]:
    low, high = wilson_interval(sum(wrong), len(wrong))
    return {
        "questions": questions,
        "looked at": len(wrong),
        "wrong": sum(wrong),
        "share": round(sum(wrong) / len(wrong), DIGITS),
        "low": round(low, DIGITS),
        "high": round(high, DIGITS),
    }


def _measure_agreement(said: Sequence[Mapping[str, bool]]) -> Numbers:
    people = sorted({person for each in said for person in each})
    shared = [each for each in said if len(each) > 1]
    table: Numbers = {
        "people": {"n": len(people)},
        "decisions": {"n": sum(map(len, said))},
        "questions that two or more decided on": {"n": len(shared)},
    }
    if not shared:
        return table
    labels = [[str(word) for word in each.values()] for each in shared]
    raw = sum(measure_pairs(Counter(row)) for row in labels) / len(labels)
    table["pairs of decisions that agree"] = {"share": round(raw, DIGITS)}
    if len(people) == 2:
        first, second = ([str(each[person]) for each in shared] for person in people)
        table["Cohen's kappa"] = {"value": round(cohen_kappa(first, second), DIGITS)}
    else:
        table["Fleiss' kappa"] = {"value": round(fleiss_kappa(labels), DIGITS)}
    return table
