import asyncio
import os
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Store

from pipelines.errors import ConfigError
from pipelines.graph.seeds import SeedCandidate, Slice, Span, draw_candidates, join_candidates, read_candidate
from schemas.base import Failure
from tests.pipelines.services.clients.sparql_server import PREFIXES, describe_item, load_store

SITE = "https://en.wikipedia.org/"
WHOLE = Slice("Q100", Span(20), Span(0, 10))
ROW = {
    "item": "http://www.wikidata.org/entity/Q7", "sitelinks": "3", "statements": "21", "identifiers": "5",
    "title": "Seven",
}  # fmt: skip


@dataclass
class FakeSparql:
    """Answers from rows, or from a store."""

    replies: list = field(default_factory=list)
    store: object = None
    queries: list = field(default_factory=list)
    identity: str = "fake"

    async def select(self, query, divisible=False):
        self.queries.append(query)
        if self.store is not None:
            rows = self.store.query(query)
            names = [variable.value for variable in rows.variables]
            return tuple({name: row[name].value for name in names if row[name]} for row in rows)
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, Exception):
            raise reply
        return reply


def draw(sparql, slices=(WHOLE,), page_rows=100, waits=None):
    """Draw; what would be slept is added to ``waits``."""

    async def sleep(seconds):
        if waits is not None:
            waits.append(seconds)

    return asyncio.run(draw_candidates(sparql, slices, SITE, page_rows, sleep))


@pytest.mark.parametrize("page_rows", [1, 2, 7, 30])
def test_pages_of_any_size_give_the_same_candidates(page_rows):
    items = {number: (number % 11, 20 + number % 3) for number in range(1, 60)}
    turtle = PREFIXES + "".join(describe_item(number, *counts) for number, counts in items.items())
    drawing = draw(FakeSparql(store=load_store(turtle)), page_rows=page_rows)
    assert [candidate.qid for candidate in drawing.candidates] == [f"Q{number}" for number in items]
    assert drawing.failed == ()


@pytest.mark.parametrize(
    "change",
    [
        {"item": "http://www.wikidata.org/entity/P7"}, {"item": "http://www.wikidata.org/entity/Q7/x"},
        {"item": "_:b0"}, {"sitelinks": "-1"}, {"statements": "many"}, {"statements": "1" * 30},
        {"identifiers": "2.0"}, {"title": ""},
    ],
)  # fmt: skip
def test_a_row_that_is_no_candidate_is_a_failure_with_the_row(change):
    failure = read_candidate(ROW | change)
    assert isinstance(failure, Failure)
    assert failure.error == "row-malformed"
    assert failure.detail.startswith("{'identifiers'")
    missing = read_candidate({name: value for name, value in ROW.items() if name not in change})
    assert isinstance(missing, SeedCandidate if "identifiers" in change else Failure)


def make_pages(*rows):
    return pa.table({name: [row[place] for row in rows] for place, name in enumerate(("node", "title", "qid"))})


def make_candidates(*numbers):
    return [SeedCandidate(3, 20, 1, f"Page {number}", f"Q{number}") for number in numbers]


def test_articles_are_found_by_qid_and_else_by_title():
    pages = [make_pages((0, "Other name", "Q1"), (1, "Page 2", "")), make_pages((2, "Page 3", "Q9"))]
    joined, left_out = join_candidates(pages, make_candidates(1, 2, 3, 4))
    assert {node: candidate.qid for node, candidate in joined.items()} == {0: "Q1", 1: "Q2"}
    assert [(row.record_id, row.reason, row.detail) for row in left_out] == [
        ("wikidata:Q3", "not-in-corpus", "Page 3"),
        ("wikidata:Q4", "not-in-corpus", "Page 4"),
    ]


ROOT = Path(__file__).parents[3]
RDF = Path(os.environ.get("SYNTH_SHARED_DATA", ROOT.parent / "shared" / "data")) / "wikidata-rdf"
SPANS = st.builds(
    lambda low, width: Span(low, None if width is None else low + width),
    st.integers(0, 200),
    st.none() | st.integers(0, 200),
)
ENDINGS = st.from_regex(r"Q?[1-9][0-9]{0,3}|[0-9]{0,4}", fullmatch=True)


def holds(part: Slice, number: int, statements: int, sitelinks: int) -> bool:
    """Whether an item is in a slice, by the meaning of its fields."""
    spans = ((part.statements, statements), (part.sitelinks, sitelinks))
    inside = all(span.low <= count and (span.high is None or count <= span.high) for span, count in spans)
    return inside and f"/entity/Q{number}".endswith(part.ending)


@given(
    st.builds(Slice, st.just("Q100"), SPANS, SPANS, ENDINGS),
    st.integers(1, 100_000),
    st.integers(0, 500),
    st.integers(0, 500),
)
def test_the_parts_of_a_slice_hold_each_of_its_items_once_and_no_other(part, number, statements, sitelinks):
    parts = part.divide()
    if parts:
        held = sum(holds(smaller, number, statements, sitelinks) for smaller in parts)
        assert held == holds(part, number, statements, sitelinks)


def select(store: Store, part: Slice, limit: int = 1000) -> list[tuple[str, ...]]:
    rows = store.query(part.render(SITE, limit))
    names = ("item", "sitelinks", "statements", "identifiers", "title")
    return sorted(tuple(row[name].value if row[name] else "" for name in names) for row in rows)


@given(st.sets(st.tuples(st.integers(1, 300), st.integers(0, 12), st.integers(15, 45)), max_size=25), SPANS, ENDINGS)
def test_a_query_finds_what_the_slice_holds(items, statements, ending):
    known = {number: (sitelinks, count) for number, sitelinks, count in items}
    store = load_store(PREFIXES + "".join(describe_item(number, *counts) for number, counts in known.items()))
    part = Slice("Q100", statements, Span(2, 9), ending)
    wanted = [
        (f"http://www.wikidata.org/entity/Q{number}", str(sitelinks), str(count), "2", f"Page {number}")
        for number, (sitelinks, count) in known.items()
        if holds(part, number, count, sitelinks)
    ]
    assert select(store, part) == sorted(wanted)


@pytest.mark.parametrize(
    ("name", "site", "said"),
    [
        *((name, SITE, "a Qid") for name in ("", "Q0", "q5", "Q5 } DROP ALL #", "P31", "Q" + "1" * 30)),
        *(
            ("Q100", site, "an address")
            for site in ("", SITE[:-1], "https://a/> ?p ?o }#/", "ftp://a.org/", "https:///")
        ),
    ],
)
def test_a_malformed_class_or_site_never_reaches_a_query(name, site, said):
    with pytest.raises(ConfigError, match=f"expected {said}"):
        Slice(name, Span(0), Span(0)).render(site, 9)


@pytest.mark.skipif(not RDF.is_dir(), reason=f"{RDF} is not here")
@pytest.mark.parametrize(
    ("file", "class_qid", "munge", "counts"),
    [
        ("RdfRepositoryUpdaterIntegrationTest.Q513-munged.ttl", "Q8502", False, ("200", "74", "34", "Mount Everest")),
        ("Q42.ttl", "Q5", True, ("122", "307", "234", "Douglas Adams")),
        ("Q42.ttl", "Q5", False, None),
    ],
)
def test_real_entities_are_found_where_the_counts_are_on_the_item(file, class_qid, munge, counts):
    store = load_store((RDF / file).read_text("utf-8"), munge=munge)
    rows = select(store, Slice(class_qid, Span(20), Span(11)))
    assert [row[1:] for row in rows] == ([counts] if counts else [])
