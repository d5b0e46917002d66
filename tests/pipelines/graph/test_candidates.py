import asyncio
from dataclasses import dataclass, field

import pyarrow as pa
import pytest

from pipelines.errors import RateLimited, Unavailable
from pipelines.graph.seeds import (
    LONGEST_WAIT,
    RATE_TRIES,
    Candidate,
    Slice,
    Span,
    draw_candidates,
    join_candidates,
    read_candidate,
)
from pipelines.services.protocols import QueryTimeout
from schemas.base import Failure
from tests.pipelines.backends.sparql_server import PREFIXES, describe_item, load_store

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


def test_a_slice_that_fails_however_small_stops_the_draw():
    sparql = FakeSparql([QueryTimeout("cut")])
    with pytest.raises(Unavailable, match=r"cannot be divided and fails: cut; run again"):
        draw(sparql)
    assert len(sparql.queries) < 40


def test_an_endpoint_that_does_not_say_how_long_is_given_half_a_minute_and_then_more():
    waits = []
    with pytest.raises(Unavailable, match=f"after {RATE_TRIES} tries"):
        draw(FakeSparql([RateLimited("slow down")]), waits=waits)
    assert waits == [30.0, 60.0, 120.0, 240.0, 480.0, LONGEST_WAIT, LONGEST_WAIT]


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
    assert isinstance(missing, Candidate if "identifiers" in change else Failure)


def make_pages(*rows):
    return pa.table({name: [row[place] for row in rows] for place, name in enumerate(("node", "title", "qid"))})


def make_candidates(*numbers):
    return [Candidate(3, 20, 1, f"Page {number}", f"Q{number}") for number in numbers]


def test_articles_are_found_by_qid_and_else_by_title():
    pages = [make_pages((0, "Other name", "Q1"), (1, "Page 2", "")), make_pages((2, "Page 3", "Q9"))]
    joined, left_out = join_candidates(pages, make_candidates(1, 2, 3, 4))
    assert {node: candidate.qid for node, candidate in joined.items()} == {0: "Q1", 1: "Q2"}
    assert [(row.record_id, row.reason, row.detail) for row in left_out] == [
        ("wikidata:Q3", "not-in-corpus", "Page 3"),
        ("wikidata:Q4", "not-in-corpus", "Page 4"),
    ]
