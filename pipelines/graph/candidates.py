"""Candidates for seeds from a SPARQL endpoint: every entity of the wanted slices once, however the replies were cut."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.backends.protocols import QueryTimeout, Sparql, SparqlRow
from pipelines.errors import RateLimited, Unavailable
from pipelines.graph.slices import Slice
from pipelines.ids import make_record_id
from schemas.base import Failure, Rejection

RATE_TRIES: Final = 8
LONGEST_WAIT: Final = 900.0
"""Seconds; an endpoint that asks for more is left alone until the next run."""
FIRST_WAIT: Final = 30.0
"""Seconds before asking an endpoint again that does not say when, doubled each time."""
_ENTITY = re.compile(r"http://www\.wikidata\.org/entity/(Q[1-9][0-9]{0,17})")
_COUNT = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True, order=True)
class Candidate:
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

    candidates: tuple[Candidate, ...]
    failed: tuple[Failure, ...]


@dataclass(slots=True)
class _Basket:
    candidates: dict[str, Candidate] = field(default_factory=dict)
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
        Unavailable: if the endpoint is away, or fails at a slice that cannot be divided; run again to go on.
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
                raise Unavailable(f"{error}; it asks to wait {wait:,.0f} s: run again after that") from error
            if attempt + 1 < RATE_TRIES:
                await sleep(wait)
    raise Unavailable(f"{sparql.identity}: still rate limited after {RATE_TRIES} tries; run again later")


def read_candidate(row: SparqlRow) -> Candidate | Failure:
    """Return a row's candidate, or a failure when the row is no entity with counts and a title."""
    entity = _ENTITY.fullmatch(row.get("item", ""))
    counts = [row.get(name, "") for name in ("sitelinks", "statements")]
    identifiers = row.get("identifiers", "")
    title = row.get("title", "")
    if entity and title and all(map(_COUNT.fullmatch, [*counts, identifiers or "0"])):
        return Candidate(int(counts[0]), int(counts[1]), int(identifiers or -1), title, entity[1])
    shown = dict(sorted(row.items()))
    return Failure(record_id=make_record_id("row", shown), error="row-malformed", detail=str(shown)[:500])


def join_candidates(
    pages: Iterable[pa.Table], candidates: Sequence[Candidate]
) -> tuple[dict[int, Candidate], list[Rejection]]:
    """Find the articles of candidates: by Qid, else by title where the corpus knows no Qid of the article.

    A title that is a redirect here is no article: what it leads to is another entity.

    Args:
        pages: tables with node, title and qid, together the corpus.
        candidates: each Qid once.

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
