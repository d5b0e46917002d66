import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Store

from pipelines.errors import ConfigError
from pipelines.graph.seeds import Slice, Span
from tests.pipelines.backends.sparql_server import PREFIXES as TURTLE
from tests.pipelines.backends.sparql_server import describe_item, load_store

ROOT = Path(__file__).parents[3]
RDF = Path(os.environ.get("SYNTH_SHARED_DATA", ROOT.parent / "shared" / "data")) / "wikidata-rdf"
SITE = "https://en.wikipedia.org/"
RAW_DUMP = """
<https://www.wikidata.org/wiki/Special:EntityData/Q7> schema:about wd:Q7 ; wikibase:sitelinks 3 ;
  wikibase:statements 40 ; wikibase:identifiers 1 .
wd:Q7 wdt:P31 wd:Q100 .
<https://en.wikipedia.org/wiki/Seven> schema:about wd:Q7 ; schema:isPartOf <https://en.wikipedia.org/> ;
  schema:name "Seven"@en .
"""
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


@given(st.builds(Slice, st.just("Q100"), SPANS, SPANS), st.randoms())
def test_dividing_comes_to_an_end(part, random):
    for _ in range(100):
        parts = part.divide()
        if not parts:
            return
        part = random.choice(parts)
    raise AssertionError(f"{part} can still be divided")


def select(store: Store, part: Slice, limit: int = 1000) -> list[tuple[str, ...]]:
    rows = store.query(part.render(SITE, limit))
    names = ("item", "sitelinks", "statements", "identifiers", "title")
    return sorted(tuple(row[name].value if row[name] else "" for name in names) for row in rows)


@given(st.sets(st.tuples(st.integers(1, 300), st.integers(0, 12), st.integers(15, 45)), max_size=25), SPANS, ENDINGS)
def test_a_query_finds_what_the_slice_holds(items, statements, ending):
    known = {number: (sitelinks, count) for number, sitelinks, count in items}
    store = load_store(TURTLE + "".join(describe_item(number, *counts) for number, counts in known.items()))
    part = Slice("Q100", statements, Span(2, 9), ending)
    wanted = [
        (f"http://www.wikidata.org/entity/Q{number}", str(sitelinks), str(count), "2", f"Page {number}")
        for number, (sitelinks, count) in known.items()
        if holds(part, number, count, sitelinks)
    ]
    assert select(store, part) == sorted(wanted)


def test_only_the_class_and_the_sites_articles_count():
    store = load_store(
        TURTLE
        + describe_item(1, 4, 20)
        + describe_item(2, 4, 20, ("Q200",))
        + describe_item(3, 4, 20, ("Q200", "Q100"))
    )
    assert [row[0][-2:] for row in select(store, Slice("Q100", Span(0), Span(0)))] == ["Q1", "Q3"]
    german = store.query(Slice("Q100", Span(0), Span(0)).render("https://de.wikipedia.org/", 9))
    assert sorted(row["title"].value for row in german) == ["Seite 1", "Seite 3"]


def test_a_raw_dump_has_its_counts_elsewhere_and_a_munged_one_on_the_item():
    whole = Slice("Q100", Span(20), Span(0, 10))
    assert select(load_store(TURTLE + RAW_DUMP), whole) == []
    assert [row[1:] for row in select(load_store(TURTLE + RAW_DUMP, munge=True), whole)] == [("3", "40", "1", "Seven")]


@pytest.mark.parametrize("name", ["", "Q0", "q5", "Q5 } DROP ALL #", "P31", "Q" + "1" * 30])
def test_a_class_that_is_no_qid_never_reaches_a_query(name):
    with pytest.raises(ConfigError, match="expected a Qid"):
        Slice(name, Span(0), Span(0)).render(SITE, 9)


@pytest.mark.parametrize(
    "site", ["", "https://en.wikipedia.org", "https://a/> ?p ?o }#/", "ftp://en.wikipedia.org/", "https:///"]
)
def test_a_site_that_is_no_address_never_reaches_a_query(site):
    with pytest.raises(ConfigError, match="expected an address"):
        Slice("Q100", Span(0), Span(0)).render(site, 9)


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
