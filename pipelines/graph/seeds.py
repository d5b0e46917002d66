"""Candidates for seeds from a SPARQL endpoint, and the gate that articles must pass to be one.

A slice of Wikidata is the entities of a class with so many statements and sitelinks, one SPARQL 1.1 query without
hints, label service, path or ORDER BY, for Blazegraph, QLever and Oxigraph. It divides into slices that hold each
entity once. Counts are read on the entity (Wikidata Query Service, QLever, munged dumps); in a raw dump every slice is
empty.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.config.settings import SeedsConfig
from pipelines.errors import ConfigError, RateLimited, Unavailable
from pipelines.ids import make_record_id
from pipelines.services.protocols import QueryTimeout, Sparql, SparqlRow
from schemas.base import Failure, Rejection
from schemas.reasons import SeedReason

PREFIXES: Final = """\
PREFIX wd: <http://www.wikidata.org/entity/>
PREFIX wdt: <http://www.wikidata.org/prop/direct/>
PREFIX wikibase: <http://wikiba.se/ontology#>
PREFIX schema: <http://schema.org/>
"""
_SITE = re.compile(r"https?://[A-Za-z0-9.:\[\]-]+/")
_CLASS = re.compile(r"Q[1-9][0-9]{0,17}")
_TOP = 1 << 20
"""More statements than any entity has: the open end beyond it is not divided."""
_FIRST_STEP = 16
_LONGEST_ENDING = 4


@dataclass(frozen=True, slots=True)
class Span:
    """Whole numbers from ``low`` to ``high``, both included; ``high`` None is no end."""

    low: int
    high: int | None = None

    def divide(self) -> tuple["Span", ...]:
        """Return two spans that hold the same numbers, or none when there is nothing to divide."""
        if self.high is None:
            middle = max(2 * self.low, _FIRST_STEP)
            return () if middle > _TOP else (Span(self.low, middle - 1), Span(middle))
        if self.low >= self.high:
            return ()
        middle = (self.low + self.high) // 2
        return Span(self.low, middle), Span(middle + 1, self.high)

    def render(self, name: str) -> tuple[str, str]:
        """Return what to select for a count and the pattern that bounds it.

        A single number stands in the pattern itself: a store looks it up where it would have to test a filter.
        """
        if self.low == self.high:
            return f"({self.low} AS ?{name})", f"?item wikibase:{name} {self.low} ."
        bounds = [f"?{name} >= {self.low}"] + [f"?{name} <= {self.high}"] * (self.high is not None)
        return f"?{name}", f"?item wikibase:{name} ?{name} . FILTER({' && '.join(bounds)})"


@dataclass(frozen=True, slots=True)
class Slice:
    """The entities of a class within two spans whose Qid ends in ``ending``."""

    class_qid: str
    statements: Span
    sitelinks: Span
    ending: str = ""
    """Last digits, with the Q before them where they are the whole Qid."""

    def divide(self) -> tuple["Slice", ...]:
        """Return slices that hold the same entities, each once; none when it cannot be divided further."""
        if spans := self.statements.divide():
            return tuple(replace(self, statements=span) for span in spans)
        if spans := self.sitelinks.divide():
            return tuple(replace(self, sitelinks=span) for span in spans)
        if self.ending.startswith("Q") or len(self.ending) == _LONGEST_ENDING:
            return ()
        whole = ["Q"] if self.ending else []
        return tuple(replace(self, ending=before + self.ending) for before in [*whole, *"0123456789"])

    def render(self, site: str, limit: int) -> str:
        """Return the query for at most ``limit`` of its entities that have an article on a site.

        Raises:
            ConfigError: if the class or the site could not stand in a query.
        """
        _check_names(self.class_qid, site)
        sitelinks, bounded_sitelinks = self.sitelinks.render("sitelinks")
        statements, bounded_statements = self.statements.render("statements")
        ending = f'  FILTER(STRENDS(STR(?item), "{self.ending}"))\n' if self.ending else ""
        return (
            f"{PREFIXES}SELECT ?item {sitelinks} {statements} ?identifiers ?title WHERE {{\n"
            f"  ?item wdt:P31 wd:{self.class_qid} .\n"
            f"  {bounded_statements}\n"
            f"  {bounded_sitelinks}\n{ending}"
            f"  ?article schema:about ?item ; schema:isPartOf <{site}> ; schema:name ?title .\n"
            "  OPTIONAL { ?item wikibase:identifiers ?identifiers }\n"
            f"}} LIMIT {limit}\n"
        )


def _check_names(class_qid: str, site: str) -> None:
    if not _CLASS.fullmatch(class_qid):
        raise ConfigError(f"class {class_qid!r}: expected a Qid such as Q811979")
    if not _SITE.fullmatch(site):
        raise ConfigError(f"site {site!r}: expected an address such as https://en.wikipedia.org/")


RATE_TRIES: Final = 8
LONGEST_WAIT: Final = 900.0
"""Seconds; an endpoint that asks for more is left alone until the next run."""
FIRST_WAIT: Final = 30.0
"""Seconds before asking an endpoint again that does not say when, doubled each time."""
_ENTITY = re.compile(r"http://www\.wikidata\.org/entity/(Q[1-9][0-9]{0,17})")
_COUNT = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True, order=True)
class SeedCandidate:
    """An entity with an article, as an endpoint knows it."""

    sitelinks: int
    statements: int
    identifiers: int
    """-1 when not known."""
    title: str
    """Of the article, with spaces."""
    qid: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """All that was found: ``candidates`` by the number of their Qid, and the rows that are none."""

    candidates: tuple[SeedCandidate, ...]
    failed: tuple[Failure, ...]


@dataclass(slots=True)
class _Basket:
    candidates: dict[str, SeedCandidate] = field(default_factory=dict)
    failed: dict[str, Failure] = field(default_factory=dict)

    def add(self, row: SparqlRow) -> None:
        candidate = read_candidate(row)
        if isinstance(candidate, Failure):
            self.failed[candidate.record_id] = candidate
        else:
            # An endpoint under update may have two counts of an entity; the larger ones make it less rare.
            held = self.candidates.get(candidate.qid, candidate)
            self.candidates[candidate.qid] = max(held, candidate)

    def empty(self) -> Drawing:
        ordered = sorted(self.candidates.values(), key=lambda candidate: int(candidate.qid[1:]))
        return Drawing(tuple(ordered), tuple(self.failed[name] for name in sorted(self.failed)))


async def draw_candidates(
    sparql: Sparql,
    slices: Sequence[Slice],
    site: str,
    page_rows: int,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> Drawing:
    """Ask for slices one after another; one that is too large or takes too long is divided and asked in parts.

    Args:
        sparql: the endpoint, recorded, so that another run asks only what is missing.
        slices: what is wanted; an entity in several is one candidate.
        site: address of the wiki whose articles count.
        page_rows: a slice with more rows is divided; must be below the endpoint's own limit of rows.
        sleep: waits a number of seconds.

    Raises:
        Unavailable: if the endpoint is away, or fails at a slice that cannot be divided; run again to continue.
    """
    basket, pending = _Basket(), list(reversed(slices))
    while pending:
        part = pending.pop()
        rows = await _ask(sparql, part, site, page_rows, sleep)
        if rows is None:
            pending.extend(reversed(part.divide()))
            continue
        for row in rows:
            basket.add(row)
    return basket.empty()


async def _ask(
    sparql: Sparql, part: Slice, site: str, page_rows: int, sleep: Callable[[float], Awaitable[object]]
) -> tuple[SparqlRow, ...] | None:
    """Return a slice's rows, all of them, or None if it must be divided."""
    divisible = bool(part.divide())
    try:
        rows = await _ask_patiently(sparql, part.render(site, page_rows + 1), divisible, sleep)
    except QueryTimeout as error:
        if divisible:
            return None
        raise Unavailable(f"{sparql.identity}: {part} cannot be divided and fails: {error}; run again later") from error
    if len(rows) <= page_rows:
        return rows
    if divisible:
        return None
    raise Unavailable(f"{sparql.identity}: {part} cannot be divided and has over {page_rows} rows; raise page_rows")


async def _ask_patiently(
    sparql: Sparql, query: str, divisible: bool, sleep: Callable[[float], Awaitable[object]]
) -> tuple[SparqlRow, ...]:
    for attempt in range(RATE_TRIES):
        try:
            return await sparql.select(query, divisible)
        except RateLimited as error:
            wait = error.retry_after or min(FIRST_WAIT * 2.0**attempt, LONGEST_WAIT)
            if wait > LONGEST_WAIT:
                raise Unavailable(f"{error}; the server asks to wait {wait:,.0f} s: run again after that") from error
            if attempt + 1 < RATE_TRIES:
                await sleep(wait)
    raise Unavailable(f"{sparql.identity}: still rate limited after {RATE_TRIES} tries; run again later")


def read_candidate(row: SparqlRow) -> SeedCandidate | Failure:
    """Return a row's candidate, or a failure when the row is no entity with counts and a title."""
    entity = _ENTITY.fullmatch(row.get("item", ""))
    counts = [row.get(name, "") for name in ("sitelinks", "statements")]
    identifiers = row.get("identifiers", "")
    title = row.get("title", "")
    if entity and title and all(map(_COUNT.fullmatch, [*counts, identifiers or "0"])):
        return SeedCandidate(int(counts[0]), int(counts[1]), int(identifiers or -1), title, entity[1])
    shown = dict(sorted(row.items()))
    return Failure(record_id=make_record_id("row", shown), error="row-malformed", detail=str(shown)[:500])


def join_candidates(
    pages: Iterable[pa.Table], candidates: Sequence[SeedCandidate]
) -> tuple[dict[int, SeedCandidate], list[Rejection]]:
    """Find the articles of candidates: by Qid, else by title where the corpus knows no Qid of the article.

    A title that is a redirect here is no article: what it leads to is another entity.

    Returns:
        Candidates by node, and a rejection for each that is not among the articles.
    """
    by_qid = {candidate.qid: candidate for candidate in candidates}
    by_title = {candidate.title: candidate for candidate in reversed(candidates)}
    nodes: dict[str, int] = {}
    titled: dict[str, int] = {}
    qids, titles = pa.array(list(by_qid), pa.string()), pa.array(list(by_title), pa.string())
    for table in pages:
        named = pc.is_in(table["qid"], value_set=qids)
        unnamed = pc.and_(pc.equal(table["qid"], ""), pc.is_in(table["title"], value_set=titles))
        for row in table.filter(named).to_pylist():
            nodes.setdefault(row["qid"], row["node"])
        for row in table.filter(unnamed).to_pylist():
            titled.setdefault(by_title[row["title"]].qid, row["node"])
    joined = {node: by_qid[qid] for qid, node in (titled | nodes).items()}
    missing = [candidate for candidate in candidates if candidate.qid not in titled.keys() | nodes.keys()]
    return joined, [
        Rejection(record_id=f"wikidata:{candidate.qid}", reason="not-in-corpus", detail=candidate.title)
        for candidate in missing
    ]


Mask = npt.NDArray[np.bool_]

JUDGED: Final = (
    "title", "is_list", "is_disambiguation", "infobox", "type", "in_degree", "sitelinks", "statements", "identifiers",
    "classes",
)  # fmt: skip
"""Columns of ``pages.parquet`` that a gate looks at."""


@dataclass(frozen=True, slots=True)
class _Test:
    reason: SeedReason
    refused: Mask
    detail: Callable[[int], str]


def judge_pages(gate: SeedsConfig, pages: pa.Table) -> Iterator[tuple[SeedReason | None, str]]:
    """Yield for each row the first reason to refuse it, with what was found, or None.

    By ``opensearch-vl`` (its appendix D.1) a seed has an infobox, and incoming links between two bounds. By
    ``vsearcher`` (its appendix A.2) few sitelinks, so that it is rare, and many statements, so that it is documented.
    By both it is no list and no disambiguation page, and has a type that a question can name.
    """
    columns = {name: pages[name].combine_chunks() for name in JUDGED}
    tests = [*_test_pages(columns), *_test_classes(gate, columns)]
    tests += _test_links(gate, columns) if gate.rule == "opensearch-vl" else _test_counts(gate, columns)
    tests.append(_Test("no-type", _is_empty(columns["type"]), _show(columns["title"])))
    first = np.full(len(pages), len(tests))
    for number in reversed(range(len(tests))):
        first[tests[number].refused] = number
    for row, number in enumerate(first.tolist()):
        yield (tests[number].reason, tests[number].detail(row)) if number < len(tests) else (None, "")


def _test_pages(columns: dict[str, pa.Array]) -> list[_Test]:
    shown = _show(columns["title"])
    return [
        _Test("list-page", _to_mask(columns["is_list"]), shown),
        _Test("disambiguation-page", _to_mask(columns["is_disambiguation"]), shown),
    ]


def _test_classes(gate: SeedsConfig, columns: dict[str, pa.Array]) -> list[_Test]:
    if not gate.classes:
        return []
    classes = columns["classes"]
    wanted = pc.is_in(pc.list_flatten(classes), value_set=pa.array(gate.classes, pa.string()))
    refused = np.ones(len(classes), dtype=bool)
    refused[pc.list_parent_indices(classes).filter(wanted).to_numpy(zero_copy_only=False)] = False
    return [_Test("class", refused, lambda row: ", ".join(classes[row].as_py()) or "class not known")]


def _test_links(gate: SeedsConfig, columns: dict[str, pa.Array]) -> list[_Test]:
    degree = columns["in_degree"].to_numpy()
    tests = [_Test("hub", degree > gate.hub_in_degree, lambda row: f"in-degree {degree[row]} > {gate.hub_in_degree}")]
    if gate.require_infobox:
        tests.append(_Test("no-infobox", _is_empty(columns["infobox"]), _show(columns["title"])))
    low = degree < gate.min_in_degree
    return [*tests, _Test("in-degree-low", low, lambda row: f"in-degree {degree[row]} < {gate.min_in_degree}")]


def _test_counts(gate: SeedsConfig, columns: dict[str, pa.Array]) -> list[_Test]:
    sitelinks, statements = columns["sitelinks"].to_numpy(), columns["statements"].to_numpy()
    unknown = (sitelinks < 0) | (statements < 0)
    if not gate.count_identifiers:
        identifiers = columns["identifiers"].to_numpy()
        unknown, statements = unknown | (identifiers < 0), statements - identifiers
    known_well, poor = sitelinks > gate.max_sitelinks, statements < gate.min_statements
    return [
        _Test("counts-unknown", unknown, _show(columns["title"])),
        _Test("too-well-known", known_well, lambda row: f"sitelinks {sitelinks[row]} > {gate.max_sitelinks}"),
        _Test("too-few-statements", poor, lambda row: f"statements {statements[row]} < {gate.min_statements}"),
    ]


def _show(column: pa.Array) -> Callable[[int], str]:
    return lambda row: str(column[row].as_py())


def _is_empty(column: pa.Array) -> Mask:
    return _to_mask(pc.equal(column, ""))


def _to_mask(column: pa.Array) -> Mask:
    mask: Mask = column.to_numpy(zero_copy_only=False).astype(bool)
    return mask
