"""Ways to answer with fewer hops: the answer on an earlier page, or a shorter link path."""

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import lru_cache

from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.corpus.store import Corpus
from pipelines.graph.mentions import fold_page, fold_text, show_page
from pipelines.graph.query import find_shortcut
from pipelines.scoring.dates import Date, parse_date
from pipelines.scoring.numbers import KNOWN_UNITS, Number
from pipelines.scoring.spelled import find_spelled_numbers
from pipelines.scoring.spotting import Spot, find_dates, find_measures
from pipelines.scoring.units import compare_measures
from schemas.proofs import Answer

KEPT_PAGES = 1024
LONGEST_SEARCH = 4
"""Links that a shorter path is looked for along: longer paths are held to no more than this. It is the longest path of
the published recipes that walk, and the frontier of one more link would be most of a large wiki."""

LARGEST_COUNT = 12
"""Larger numbers that a page spells are the answer, whatever they count."""
_WORD = re.compile(r"[a-z]+")
LEAST_BACK = 2
"""Hops from which a link back from the answer node to the anchor is a shorter path; one hop may be stated there."""


def check_path_length(corpus: Corpus, nodes: Sequence[int], hub_in_degree: int) -> CheckResult:
    """FAIL when links lead from anchor to answer node in fewer than h - 1 steps, hubs left out, or straight back.

    One step fewer is let pass: the answer check on earlier pages covers it (research: S2 with S3). Of two hops that
    lets a direct link pass, too. Of longer paths only the first ``LONGEST_SEARCH`` - 1 steps are searched: with more
    hops the path must not be shorter than that. A page that links back to the anchor is found by what links there.
    """
    hops = min(len(nodes) - 1, LONGEST_SEARCH)
    length = find_shortcut(corpus, (*[nodes[0]] * hops, nodes[-1]), hub_in_degree)
    if length < hops - 1:
        return CheckResult("FAIL", "shorter-path", f"{length} links instead of {hops}")
    if hops >= LEAST_BACK and corpus.graph.find_link(nodes[-1], nodes[0]) >= 0:
        return CheckResult("FAIL", "shorter-path", f"{corpus.page(nodes[-1]).title} links back to the anchor")
    return PASSED


def check_earlier_pages(corpus: Corpus, nodes: Sequence[int], answer: Answer) -> CheckResult:
    """FAIL when a page before the answer node's says the answer: prose, infobox, tables, and templates as they show.

    Looked for are the answer's forms as whole words; of a date also other writings of it and days within it; of a
    number also words, and measures in other units that are the same as written (``compare_measures``).
    """
    forms = sorted({fold_text(form) for form in (answer.surface, answer.value, *answer.aliases)} - {""})
    pattern = re.compile(r"(?<!\w)(?:" + "|".join(re.escape(form) for form in forms) + r")(?!\w)")
    for node in nodes[:-1]:
        found = pattern.search(fold_page(corpus, node))
        said = found[0] if found is not None else next(_find_values(corpus, node, answer), "")
        if said:
            return CheckResult("FAIL", "answer-on-earlier-page", f"{said!r} on {corpus.page(node).title}")
    return PASSED


def _find_values(corpus: Corpus, node: int, answer: Answer) -> Iterator[str]:
    """Yield how a page writes the date or number of an answer."""
    text = show_page(corpus, node)
    expected = parse_date(answer.value) if answer.type == "date" else None
    if expected is not None:
        yield from (text[spot.start : spot.end] for spot in _read_dates(corpus, node) if expected.covers(spot.value))
    if answer.type == "number":
        number = Number(answer.value, answer.unit)
        yield from (text[spot.start : spot.end] for spot in _read_numbers(corpus, node) if _is_same(number, spot.value))
        if Decimal(answer.value) > LARGEST_COUNT and Decimal(answer.value) in _read_spelled(corpus, node):
            yield f"{answer.value} in words"


def _is_same(expected: Number, found: Number) -> bool:
    if expected.unit in KNOWN_UNITS:
        return compare_measures(expected, found) == "same"
    return Decimal(expected.value) == Decimal(found.value)


@lru_cache(maxsize=KEPT_PAGES)
def _read_dates(corpus: Corpus, node: int) -> tuple[Spot[Date], ...]:
    """Return the dates of a page; the same page lies on many paths."""
    return tuple(find_dates(show_page(corpus, node)))


@lru_cache(maxsize=KEPT_PAGES)
def _read_numbers(corpus: Corpus, node: int) -> tuple[Spot[Number], ...]:
    return tuple(find_measures(show_page(corpus, node)))


@lru_cache(maxsize=KEPT_PAGES)
def _read_spelled(corpus: Corpus, node: int) -> frozenset[int]:
    """Return the numbers that a page spells in words."""
    return frozenset(find_spelled_numbers(_WORD.findall(show_page(corpus, node).lower())))
