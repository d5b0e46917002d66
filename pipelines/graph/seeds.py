"""Seed candidates from a SPARQL endpoint, and the gate for articles.

A slice of Wikidata is one query: the entities of a class within spans of statements and sitelinks. It is plain SPARQL
1.1 (Blazegraph, QLever, Oxigraph) and divides into slices that hold each entity once. Counts are read on the entity
(Wikidata Query Service, QLever, munged dumps); in a raw dump every slice is empty.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.config.settings import SeedsConfig
from pipelines.corpus.kinds import is_abstract, list_hubs
from pipelines.errors import ConfigError, RateLimited, Unavailable
from pipelines.ids import make_record_id
from pipelines.services.protocols import QueryTimeout, Sparql, SparqlRow
from pipelines.services.traffic import Waiting
from schemas.base import Failure, Rejection
from schemas.reasons import SeedReason

HUB_IN_DEGREE = 10_000
"""Of OpenSearch-VL, appendix D.1: the top 0.03% of enwiki."""
PREFIXES: Final = """\
PREFIX wd: <http://www.wikidata.org/entity/>
PREFIX wdt: <http://www.wikidata.org/prop/direct/>
PREFIX wikibase: <http://wikiba.se/ontology#>
PREFIX schema: <http://schema.org/>
"""
_SITE = re.compile(r"https?://[A-Za-z0-9.:\[\]-]+/")
_CLASS = re.compile(r"Q[1-9][0-9]{0,17}")
MAX_SITELINKS, MIN_STATEMENTS = 10, 20
"""VSearcher's rule: most sitelinks on all projects, and fewest statements, identifiers included."""
_TOP = 1 << 20
"""More statements than any entity has."""
_FIRST_STEP = 16
_LONGEST_ENDING = 4


@dataclass(frozen=True, slots=True)
class Span:
    """Whole numbers from ``low`` to ``high``, both included; ``high`` None is unbounded."""

    low: int
    high: int | None = None

    def divide(self) -> tuple["Span", ...]:
        """Return two spans that hold the same numbers; empty for a single number."""
        if self.high is None:
            middle = max(2 * self.low, _FIRST_STEP)
            return () if middle > _TOP else (Span(self.low, middle - 1), Span(middle))
        if self.low >= self.high:
            return ()
        middle = (self.low + self.high) // 2
        return Span(self.low, middle), Span(middle + 1, self.high)

    def render(self, name: str) -> tuple[str, str]:
        """Return the selected expression of a count and the pattern that bounds it; a single number needs no filter."""
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
    """Last digits, or the whole Qid."""

    def divide(self) -> tuple["Slice", ...]:
        """Return slices that hold the same entities, each once; empty when it cannot be divided further."""
        if spans := self.statements.divide():
            return tuple(replace(self, statements=span) for span in spans)
        if spans := self.sitelinks.divide():
            return tuple(replace(self, sitelinks=span) for span in spans)
        if self.ending.startswith("Q") or len(self.ending) == _LONGEST_ENDING:
            return ()
        whole = ["Q"] if self.ending else []
        return tuple(replace(self, ending=before + self.ending) for before in [*whole, *"0123456789"])

    def render(self, site: str, limit: int) -> str:
        """Return the query for at most ``limit`` of its entities with an article on a site."""
        if not _CLASS.fullmatch(self.class_qid):
            raise ConfigError(f"class {self.class_qid!r}: expected a Qid such as Q811979")
        if not _SITE.fullmatch(site):
            raise ConfigError(f"site {site!r}: expected an address such as https://en.wikipedia.org/")
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


RATE_TRIES: Final = 8
LONGEST_WAIT: Final = 900.0
"""Seconds; a longer Retry-After ends the run."""
FIRST_WAIT: Final = 30.0
"""Seconds before the first retry without a Retry-After, doubled each time."""
_ENTITY = re.compile(r"http://www\.wikidata\.org/entity/(Q[1-9][0-9]{0,17})")
_COUNT = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True, order=True)
class SeedCandidate:
    """An entity with an article."""

    sitelinks: int
    statements: int
    identifiers: int
    """-1 when not known."""
    title: str
    """Of the article, with spaces."""
    qid: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """Candidates by number of their Qid, and malformed rows by record id."""

    candidates: tuple[SeedCandidate, ...]
    failed: tuple[Failure, ...]


Sleep = Callable[[float], Awaitable[object]]


async def draw_candidates(
    sparql: Sparql, slices: Sequence[Slice], site: str, page_rows: int, sleep: Sleep = asyncio.sleep
) -> Drawing:
    """Query slices one after another; one that is too large or times out is divided."""
    candidates: dict[str, SeedCandidate] = {}
    failed: dict[str, Failure] = {}
    pending = list(reversed(slices))
    while pending:
        part = pending.pop()
        rows = await _select_slice(sparql, part, site, page_rows, sleep)
        if rows is None:
            pending.extend(reversed(part.divide()))
            continue
        for candidate in map(read_candidate, rows):
            if isinstance(candidate, Failure):
                failed[candidate.record_id] = candidate
            else:
                # An endpoint under update may have two counts of an entity; the larger ones make it less rare.
                candidates[candidate.qid] = max(candidates.get(candidate.qid, candidate), candidate)
    ordered = sorted(candidates.values(), key=lambda candidate: int(candidate.qid[1:]))
    return Drawing(tuple(ordered), tuple(failed[name] for name in sorted(failed)))


async def _select_slice(
    sparql: Sparql, part: Slice, site: str, page_rows: int, sleep: Sleep
) -> tuple[SparqlRow, ...] | None:
    divisible = bool(part.divide())
    try:
        rows = await _select(sparql, part.render(site, page_rows + 1), divisible, sleep)
    except QueryTimeout as error:
        if divisible:
            return None
        raise Unavailable(f"{sparql.identity}: {part} cannot be divided and fails: {error}; run again later") from error
    if len(rows) <= page_rows:
        return rows
    if divisible:
        return None
    raise Unavailable(f"{sparql.identity}: {part} cannot be divided and has over {page_rows} rows")


async def _select(sparql: Sparql, query: str, divisible: bool, sleep: Sleep) -> tuple[SparqlRow, ...]:
    for attempt in range(RATE_TRIES):
        try:
            return await sparql.select(query, divisible)
        except RateLimited as error:
            wait = error.retry_after or min(FIRST_WAIT * 2.0**attempt, LONGEST_WAIT)
            if wait > LONGEST_WAIT:
                raise Unavailable(f"{error}; the server asks to wait {wait:,.0f} s: run again after that") from error
            if attempt + 1 < RATE_TRIES:
                with Waiting() as waiting:
                    waiting.note(sparql.identity, error)
                    await sleep(wait)
    raise Unavailable(f"{sparql.identity}: still rate limited after {RATE_TRIES} tries; run again later")


def read_candidate(row: SparqlRow) -> SeedCandidate | Failure:
    """Return a row's candidate, or a failure when it lacks an entity, a count or a title."""
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
    """Find the articles of candidates: by Qid, else by title where the corpus has no Qid of the article.

    A redirect of that title is not followed: its article is another entity.
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


class SeedGate(SeedsConfig):
    """The settings of seeds that count for a corpus, with the in-degree above which an article is a hub."""

    hub_in_degree: int = HUB_IN_DEGREE


Mask = npt.NDArray[np.bool_]
Rule = tuple[SeedReason, Mask, Callable[[int], str]]
"""A reason, the rows it refuses, and what to report of a row."""

JUDGED: Final = (
    "title", "is_list", "is_disambiguation", "infobox", "type", "in_degree", "sitelinks", "statements", "identifiers",
    "classes",
)  # fmt: skip
"""Columns of ``pages.parquet`` that the gate reads."""


def judge_pages(gate: SeedGate, pages: pa.Table) -> Iterator[tuple[SeedReason | None, str]]:
    """Yield for each row the first reason to refuse it, with a detail, or None.

    ``opensearch-vl`` (its appendix D.1) wants an infobox, and incoming links between two bounds. ``vsearcher`` (its
    appendix A.2) wants few sitelinks (rare) and many statements (documented). Both refuse lists, disambiguation pages,
    pages without a type that a question can name and, unless ``abstract``, those whose type no picture shows.
    """
    columns = {name: pages[name].combine_chunks() for name in JUDGED}
    titles = columns["title"]

    def show_title(row: int) -> str:
        return str(titles[row].as_py())

    def show_type(row: int) -> str:
        return f"{titles[row].as_py()}: {columns['type'][row].as_py()}"

    rules: list[Rule] = [
        ("list-page", _to_mask(columns["is_list"]), show_title),
        ("disambiguation-page", _to_mask(columns["is_disambiguation"]), show_title),
    ]
    if gate.classes:
        rules.append(_require_classes(gate.classes, columns["classes"]))
    if gate.rule == "opensearch-vl":
        degree = columns["in_degree"].to_numpy()
        rules.append(_bound("hub", "in-degree", degree, gate.hub_in_degree, most=True))
        rules.append(("hub", _is_one_of(columns["type"], list_hubs()), show_type))
        if gate.require_infobox:
            rules.append(("no-infobox", _is_empty(columns["infobox"]), show_title))
        rules.append(_bound("in-degree-low", "in-degree", degree, gate.min_in_degree, most=False))
    else:
        sitelinks, statements = (columns[name].to_numpy() for name in ("sitelinks", "statements"))
        unknown = (sitelinks < 0) | (statements < 0)
        rules.append(("counts-unknown", unknown, show_title))
        rules.append(_bound("too-well-known", "sitelinks", sitelinks, MAX_SITELINKS, most=True))
        rules.append(_bound("too-few-statements", "statements", statements, MIN_STATEMENTS, most=False))
    rules.append(("no-type", _is_empty(columns["type"]), show_title))
    abstract = filter(is_abstract, pc.unique(columns["type"]).to_pylist())
    rules.append(("abstract", _is_one_of(columns["type"], abstract), show_type))
    first = np.full(len(pages), len(rules))
    for number in reversed(range(len(rules))):
        first[rules[number][1]] = number
    for row, number in enumerate(first.tolist()):
        yield (rules[number][0], rules[number][2](row)) if number < len(rules) else (None, "")


def _require_classes(wanted: Sequence[str], classes: pa.ListArray) -> Rule:
    found = pc.is_in(pc.list_flatten(classes), value_set=pa.array(wanted, pa.string()))
    refused = np.ones(len(classes), dtype=bool)
    refused[pc.list_parent_indices(classes).filter(found).to_numpy(zero_copy_only=False)] = False
    return "class", refused, lambda row: ", ".join(classes[row].as_py()) or "class not known"


def _bound(reason: SeedReason, name: str, counts: npt.NDArray[np.integer], limit: int, most: bool) -> Rule:
    refused, sign = (counts > limit, ">") if most else (counts < limit, "<")
    return reason, refused, lambda row: f"{name} {counts[row]} {sign} {limit}"


def _is_one_of(column: pa.Array, names: Iterable[str]) -> Mask:
    return _to_mask(pc.is_in(column, value_set=pa.array(sorted(names), pa.string())))


def _is_empty(column: pa.Array) -> Mask:
    return _to_mask(pc.equal(column, ""))


def _to_mask(column: pa.Array) -> Mask:
    mask: Mask = column.to_numpy(zero_copy_only=False).astype(bool)
    return mask
