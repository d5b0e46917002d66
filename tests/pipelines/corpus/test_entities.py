import bz2
import json
import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.corpus.properties import ENTITIES, collect_entities, read_entity
from pipelines.errors import CorruptInput
from tests.pipelines.corpus.entity_lines import make_claim, make_entity, make_instance, render_line, write_dump

ROOT = Path(__file__).parents[3]
DATA = Path(os.environ.get("SYNTH_SHARED_DATA", ROOT.parent / "shared" / "data"))
TWENTY = DATA / "wikidata-twenty-entities.json.bz2"
NAMES = ("wikidata-all.json", "wikidata-all.json.gz", "wikidata-all.json.bz2")

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ['"site":"', '"rank":"', '","rank":"normal', '"enwiki":{', "\\", '\\"site\\":\\"']
)


def collect(folder, *lines, site="enwiki", **form):
    dump = write_dump(folder / "wikidata-all.json", list(lines), **form)
    counts = collect_entities(dump, folder, site)
    return counts, pq.read_table(folder / "entities.parquet").to_pylist()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("streams", [1, 7])
def test_a_dump_gives_a_row_for_each_entity_with_an_article(tmp_path, name, streams):
    lines = [render_line(make_entity(n, sitelinks=n % 4, statements=n + 5, identifiers=n % 3)) for n in range(1, 40)]
    dump = write_dump(tmp_path / name, lines, streams=streams)
    counts = collect_entities(dump, tmp_path)
    table = pq.read_table(tmp_path / "entities.parquet")
    assert table.schema == ENTITIES
    assert table.to_pylist() == [
        {
            "qid": f"Q{n}",
            "title": f"Page {n}",
            "label": f"Label {n}",
            "sitelinks": n % 4,
            "statements": n + 5,
            "identifiers": n % 3,
            "classes": ["Q100"],
        }
        for n in range(1, 40)
        if n % 4
    ]
    assert counts == {"lines": 39, "kept": 30, "without_article": 9, "failed": 0}


@given(st.lists(st.tuples(TEXT, TEXT, TEXT), max_size=4), st.integers(0, 9), st.integers(1, 9))
def test_counting_bytes_is_exact_whatever_the_texts_say(texts, plain, sitelinks):
    entity = make_entity(5, sitelinks=sitelinks, statements=3 + plain)
    entity["labels"] = {f"x{n}": {"language": label, "value": other} for n, (label, other, _) in enumerate(texts)}
    entity["claims"]["P2"] = [make_claim("P2", value, datatype="string") for _, _, value in texts]
    line = render_line(entity)
    row = read_entity(line, "enwiki")
    assert (row["sitelinks"], row["statements"]) == (sitelinks, 3 + plain + len(texts))


def test_a_text_that_names_the_wiki_is_no_article(tmp_path):
    entity = make_entity(1, sitelinks=0)
    entity["labels"]["en"]["value"] = '"enwiki":{"site":"enwiki"'
    counts, rows = collect(tmp_path, render_line(entity))
    assert (counts["without_article"], rows) == (1, [])


def test_classes_are_those_of_the_best_rank_with_a_value():
    def classes(*statements):
        entity = make_entity(1)
        entity["claims"]["P31"] = list(statements)
        return tuple(read_entity(render_line(entity), "enwiki")["classes"])

    assert classes(make_instance(2), make_instance(3, "deprecated"), make_instance(1)) == ("Q1", "Q2")
    assert classes(make_instance(2), make_instance(3, "preferred")) == ("Q3",)
    assert classes(make_instance(2, "deprecated")) == ()
    unknown = make_instance(9, "preferred")
    unknown["mainsnak"] = {"snaktype": "somevalue", "property": "P31", "datatype": "wikibase-item"}
    assert classes(make_instance(2), unknown) == ()
    old = make_instance(7)
    del old["mainsnak"]["datavalue"]["value"]["id"]
    assert classes(old) == ("Q7",)
    assert classes(make_instance(2), make_instance(2)) == ("Q2",)


def test_empty_maps_are_written_as_empty_lists(tmp_path):
    entity = make_entity(1, statements=0, identifiers=0, classes=())
    assert entity["claims"] == []
    entity["labels"] = []
    counts, (row,) = collect(tmp_path, render_line(entity))
    assert (row["statements"], row["identifiers"], row["classes"], row["label"]) == (0, 0, [], "")
    assert counts["failed"] == 0


def test_a_statement_whose_property_was_deleted_counts_as_one_without_a_kind(tmp_path):
    entity = make_entity(1, statements=9, identifiers=2)
    for group in entity["claims"].values():
        group[0]["mainsnak"].pop("datatype")
    counts, (row,) = collect(tmp_path, render_line(entity))
    assert counts == {"lines": 1, "kept": 1, "without_article": 0, "failed": 0}
    assert row["statements"] == 9
    assert row["identifiers"] == sum(
        "external-id" in str(claim) for group in entity["claims"].values() for claim in group
    )
    assert row["classes"] == ["Q100"]


@pytest.mark.parametrize("kind", ["somevalue", "novalue"])
def test_a_statement_without_a_value_is_counted_and_names_no_class(tmp_path, kind):
    entity = make_entity(1)
    entity["claims"]["P31"] = [
        {"mainsnak": {"snaktype": kind, "property": "P31"}, "type": "statement", "rank": "normal"}
    ]
    _, (row,) = collect(tmp_path, render_line(entity))
    assert row["classes"] == []


def test_another_wiki_has_its_own_titles_and_labels(tmp_path):
    entity = make_entity(1, sitelinks=2)
    entity["sitelinks"]["dewiki"]["title"] = "Seite 1"
    entity["labels"]["de"] = {"language": "de", "value": "Begriff 1"}
    _, (row,) = collect(tmp_path, render_line(entity), site="dewiki")
    assert (row["title"], row["label"]) == ("Seite 1", "Begriff 1")


def spoil(**changes):
    return render_line(make_entity(1) | changes)


@pytest.mark.parametrize(
    "line",
    [
        b"not json",
        b'{"type":"item","id":"Q1"',
        b'{"type":"item","id":"Q1","sitelinks":{"enwiki":{"title"}}}',
        b'{"type":"item","id":"Q1","sitelinks":{"enwiki":{"site":"enwiki"}}}',
        b'{"a":' * 3000 + b'"enwiki":{' + b"}" * 3000,
        b'{"a":"\xff","sitelinks":{"enwiki":{"site":"enwiki"}}}',
        json.dumps(make_entity(1)).encode(),
        spoil(id="L1"),
        spoil(id=7),
        spoil(claims={"P31": [1]}),
        spoil(claims={"P31": [{"mainsnak": {"datatype": "wikibase-item"}}]}),
        spoil(claims=7),
        spoil(labels={"en": {"value": 7}}),
        spoil(sitelinks={"enwiki": {"site": "enwiki", "title": 7}}),
    ],
)
def test_a_malformed_line_is_counted_as_failed(tmp_path, line):
    good = render_line(make_entity(2))
    counts, rows = collect(tmp_path, good, line, render_line(make_entity(3)))
    assert counts == {"lines": 3, "kept": 2, "without_article": 0, "failed": 1}
    assert len(rows) == 2


def test_an_entity_that_comes_twice_counts_once(tmp_path):
    numbers = [3, 70_000, 3, 131_075, 4]
    counts, rows = collect(tmp_path, *[render_line(make_entity(number)) for number in numbers])
    assert [row["qid"] for row in rows] == ["Q3", "Q70000", "Q131075", "Q4"]
    assert counts["failed"] == 1


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("share", [0.3, 0.7, 0.99])
def test_a_truncated_dump_is_refused_and_leaves_nothing(tmp_path, name, share):
    dump = write_dump(tmp_path / name, [render_line(make_entity(n)) for n in range(1, 60)])
    dump.write_bytes(dump.read_bytes()[: int(dump.stat().st_size * share)])
    with pytest.raises(CorruptInput, match="cut off"):
        collect_entities(dump, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [name]


@pytest.mark.parametrize("name", NAMES[1:])
def test_a_damaged_dump_is_refused(tmp_path, name):
    dump = write_dump(tmp_path / name, [render_line(make_entity(n)) for n in range(1, 300)])
    spoiled = bytearray(dump.read_bytes())
    spoiled[len(spoiled) // 2] ^= 0x55
    dump.write_bytes(spoiled)
    with pytest.raises(CorruptInput, match="damaged or cut off"):
        collect_entities(dump, tmp_path)


BROKEN = [
    b"",
    b"\n\n",
    b"<html>",
    b'{"id":"Q1"}\n',
    b"[\n]\n[\n]\n",
    b"[\n]\njunk\n",
    b"[\n" + render_line(make_entity(1)),
]


def test_what_is_no_whole_dump_is_refused(tmp_path):
    for body in BROKEN:
        (tmp_path / "wikidata-all.json").write_bytes(body)
        with pytest.raises(CorruptInput):
            collect_entities(tmp_path / "wikidata-all.json", tmp_path)


def test_an_empty_dump_is_an_empty_table(tmp_path):
    counts, rows = collect(tmp_path, end=b"]\n")
    assert (counts["lines"], rows) == (0, [])


def test_a_line_without_end_is_refused(tmp_path):
    dump = tmp_path / "wikidata-all.json.bz2"
    dump.write_bytes(bz2.compress(b"[\n" + b"x" * (1 << 26)))
    with pytest.raises(CorruptInput, match="line 2 is longer"):
        collect_entities(dump, tmp_path)


@pytest.mark.skipif(not TWENTY.is_file(), reason=f"{TWENTY} is not here")
def test_twenty_real_entities_are_counted_as_a_parser_counts_them(tmp_path):
    with bz2.open(TWENTY) as stream:
        lines = [line.strip().rstrip(b",") for line in stream]
    entities = [json.loads(line) for line in lines if line not in (b"[", b"]")]
    counts = collect_entities(TWENTY, tmp_path)
    rows = {row["qid"]: row for row in pq.read_table(tmp_path / "entities.parquet").to_pylist()}
    with_article = {entity["id"]: entity for entity in entities if "enwiki" in entity["sitelinks"]}
    assert (counts["lines"], counts["kept"], counts["failed"]) == (20, len(with_article), 0)
    assert set(rows) == set(with_article)
    for qid, entity in with_article.items():
        statements = [statement for group in entity["claims"].values() for statement in group]
        assert rows[qid]["title"] == entity["sitelinks"]["enwiki"]["title"]
        assert rows[qid]["sitelinks"] == len(entity["sitelinks"])
        assert rows[qid]["statements"] == len(statements)
        assert rows[qid]["identifiers"] == sum(s["mainsnak"]["datatype"] == "external-id" for s in statements)
    assert rows["Q58978"]["classes"] == ["Q5"]
    assert rows["Q58978"]["sitelinks"] == 105
