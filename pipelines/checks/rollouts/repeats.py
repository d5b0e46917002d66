"""Does a rollout do the same thing again (R3)?"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from pipelines.checks.rollouts.trails import Leg, Trail, fold_words
from pipelines.checks.verdicts import PASSED, CheckResult

STOP_WORDS = frozenset(
    "a about an and are as at be been by did do does for from had has have how in into is it its of on or that the "
    "their there these this to was were what when where which who whom whose why with".split()
)
"""Words of a query that say nothing of what is looked for."""
SHOWN = 3
"""Repetitions told in a detail."""


@dataclass
class _Seen:
    """What the steps so far have done, each with the first step that did it."""

    calls: dict[tuple[str, str], int] = field(default_factory=dict)
    failures: dict[tuple[str, str], int] = field(default_factory=dict)
    queries: dict[frozenset[str], int] = field(default_factory=dict)
    results: dict[tuple[str, ...], int] = field(default_factory=dict)
    pages: dict[str, int] = field(default_factory=dict)


def check_repetition(trail: Trail, overlap: float = 0.8, max_repeats: int = 0) -> CheckResult:
    """FAIL (``repetition``) when more than ``max_repeats`` steps do what an earlier one did.

    Such a step makes an identical call, words a query alike, is led by another query to the same pages in the same
    order, or opens a page again and reads the very same.

    Args:
        trail: the rollout.
        overlap: share of the words of two queries, stop words left out, that they have in common to be alike (Jaccard).
        max_repeats: how many are allowed.
    """
    found = list(find_repeats(trail, overlap))
    if len(found) <= max_repeats:
        return PASSED
    shown = "; ".join(found[:SHOWN])
    return CheckResult("FAIL", "repetition", f"{len(found)} repetitions, allowed are {max_repeats}: {shown}")


def find_repeats(trail: Trail, overlap: float) -> Iterator[str]:
    """Yield what each repeating step repeats; a call that failed may be tried again, and counts if it fails again."""
    seen = _Seen()
    for number, leg in enumerate(trail.legs):
        if not leg.step.tool:
            continue
        repeated = _find_repeat(leg, seen, overlap)
        if repeated is not None:
            yield f"step {number} as {repeated[0]} ({repeated[1]})"
        _remember(leg, seen, number)


def _find_repeat(leg: Leg, seen: _Seen, overlap: float) -> tuple[int, str] | None:
    """Return which step is repeated, and how."""
    key = (leg.step.tool, leg.step.arguments)
    same = seen.calls.get(key, seen.failures.get(key) if leg.failed else None)
    if same is not None:
        return same, "identical call"
    if leg.failed:
        return None
    if leg.step.tool == "visit" and leg.shown in seen.pages:
        return seen.pages[leg.shown], "the same page, read alike"
    return _find_alike(leg, seen, overlap) if leg.step.tool == "text_search" else None


def _find_alike(leg: Leg, seen: _Seen, overlap: float) -> tuple[int, str] | None:
    words = _list_query_words(leg)
    alike = next((number for other, number in seen.queries.items() if _overlap(words, other) >= overlap), None)
    if alike is not None:
        return alike, "a query of the same words"
    found = seen.results.get(_list_urls(leg))
    return None if found is None else (found, "the same results")


def _remember(leg: Leg, seen: _Seen, number: int) -> None:
    key = (leg.step.tool, leg.step.arguments)
    if leg.failed:
        seen.failures.setdefault(key, number)
        return
    seen.calls.setdefault(key, number)
    if leg.step.tool == "visit":
        seen.pages.setdefault(leg.shown, number)
    elif leg.step.tool == "text_search":
        seen.queries.setdefault(_list_query_words(leg), number)
        urls = _list_urls(leg)
        if urls:
            seen.results.setdefault(urls, number)


def _list_query_words(leg: Leg) -> frozenset[str]:
    words = fold_words(str(leg.arguments.get("query", ""))).split()
    return frozenset(word for word in words if word not in STOP_WORDS) or frozenset(words)


def _list_urls(leg: Leg) -> tuple[str, ...]:
    return tuple(sight.url for sight in leg.sights)


def _overlap(first: frozenset[str], second: frozenset[str]) -> float:
    union = len(first | second)
    return len(first & second) / union if union else 1.0
