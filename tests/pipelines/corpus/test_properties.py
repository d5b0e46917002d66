import bz2
import gzip
import json

import pyarrow.parquet as pq
import pytest

from pipelines.corpus.build import build_corpus
from pipelines.corpus.manifest import SideFiles, find_side_files, place_unfinished
from pipelines.corpus.properties import (
    ENTITIES,
    PAGE_PROPERTIES,
    collect_entities,
    collect_properties,
    read_entity,
)
from pipelines.corpus.store import Corpus
from pipelines.errors import ConfigError, CorruptInput
from tests.pipelines.corpus.entity_lines import make_entity, make_instance, render_line, write_dump

PROPS = ["pp_page", "pp_propname", "pp_value", "pp_sortkey"]
PAGE = ["page_id", "page_namespace", "page_title"]
TARGETS = ["lt_id", "lt_namespace", "lt_title"]
CATEGORIES = {
    "now": ["cl_from", "cl_sortkey", "cl_type", "cl_target_id"],
    "transition": ["cl_from", "cl_to", "cl_sortkey", "cl_type", "cl_target_id"],
    "old": ["cl_from", "cl_to", "cl_sortkey", "cl_type"],
}
UNKNOWN = {"qid": "", "image_free": "", "image": "", "is_disambiguation": False, "is_set_index": False,
           "sitelinks": -1, "statements": -1, "identifiers": -1}  # fmt: skip


@pytest.fixture
def write_table(tmp_path):
    """Write a table dump of rows of None, int, str or bytes."""

    def quote(value):
        if value is None or isinstance(value, int):
            return b"NULL" if value is None else str(value).encode()
        value = value.encode() if isinstance(value, str) else value
        return b"'" + value.replace(b"\\", b"\\\\").replace(b"'", b"\\'") + b"'"

    def write(table, columns, rows, name="", required=()):
        lines = ",\n".join(f"  `{column}` blob{' NOT NULL' if column in required else ''}" for column in columns)
        values = b",".join(b"(" + b",".join(map(quote, row)) + b")" for row in rows)
        body = f"CREATE TABLE `{table}` (\n{lines}\n);\n".encode()
        body += f"INSERT INTO `{table}` VALUES ".encode() + values + b";\n" if rows else b""
        path = tmp_path / f"{name or table}.sql.gz"
        path.write_bytes(gzip.compress(body))
        return path

    return write


@pytest.fixture
def collect(tmp_path):
    """Collect properties of sources; return what is known of each page, by page id."""

    def run(**tables):
        scratch = tmp_path / "scratch"
        scratch.mkdir(exist_ok=True)
        run.counts = collect_properties(SideFiles(**tables), scratch)
        out = scratch / "properties.parquet"
        table = pq.read_table(out)
        assert table.schema.equals(PAGE_PROPERTIES)
        rows = table.to_pylist()
        assert [row["page_id"] for row in rows] == sorted({row["page_id"] for row in rows})
        assert run.counts["pages"] == len(rows)
        assert list(scratch.glob("*.parquet")) == [out]
        return {row.pop("page_id"): {key: value for key, value in row.items() if value != UNKNOWN[key]} for row in rows}

    return run


def test_counts_come_by_qid_from_wikidata(write_table, collect):
    props = [(number, "wikibase_item", qid, None) for number, qid in ((1, "Q5"), (2, "Q7"), (3, "Q9"), (4, "Q5"))]
    pages = [(100, 0, "Q5"), (200, 0, "Q7"), (201, 1, "Q9"), (300, 0, "Q1000"), (301, 120, "P5")]
    props_there = [
        (100, "wb-sitelinks", "12", 12),
        (100, "wb-claims", "34", 34),
        (100, "wb-identifiers", "5", 5),
        (200, "wb-claims", "0", 0),
        (200, "wb-sitelinks", "many", None),
        (201, "wb-claims", "99", 99),
        (300, "wb-claims", "98", 98),
        (999, "wb-claims", "97", 97),
    ]
    counted = {"sitelinks": 12, "statements": 34, "identifiers": 5}
    assert collect(
        page_props=write_table("page_props", PROPS, props),
        wikidata_page=write_table("page", PAGE, pages, "wikidata-page"),
        wikidata_page_props=write_table("page_props", PROPS, props_there, "wikidata-props"),
    ) == {1: {"qid": "Q5", **counted}, 2: {"qid": "Q7", "statements": 0}, 3: {"qid": "Q9"}, 4: {"qid": "Q5", **counted}}
    assert collect.counts == {"pages": 4, "qids": 4, "qids_without_counts": 1}


MEMBERS = [  # page, category
    (1, "All_disambiguation_pages"),
    (1, "Aa"),
    (2, "All_article_disambiguation_pages"),
    (3, "All_set_index_articles"),
    (4, "Set_index_articles"),
]
FLAGGED = {1: {"is_disambiguation": True}, 2: {"is_disambiguation": True}, 3: {"is_set_index": True}}


@pytest.mark.parametrize("layout", CATEGORIES)
def test_every_layout_of_categories_flags_the_same_pages(write_table, collect, layout):
    numbers = {title: number for number, (_, title) in enumerate(MEMBERS, start=50)}
    values = {
        "now": [(page, b"\xff\x00", "page", numbers[title]) for page, title in MEMBERS],
        "transition": [(page, title, b"\xff", "page", None) for page, title in MEMBERS],
        "old": [(page, title, "K", "page") for page, title in MEMBERS],
    }[layout]
    targets = [(number, 14, title) for title, number in numbers.items()] + [(40, 0, "All_disambiguation_pages")]
    sources = {"categorylinks": write_table("categorylinks", CATEGORIES[layout], values)}
    if layout == "now":
        sources["linktarget"] = write_table("linktarget", TARGETS, targets)
    assert collect(**sources) == FLAGGED


def test_real_tables_give_the_properties_in_them(shared_data, collect):
    folder = shared_data / "sql-fixtures"
    known = collect(
        page_props=folder / "rmwiki-20240301-page_props.sql.gz",
        wikidata_page=folder / "wikidatawiki-20240401-page.sql.gz",
        wikidata_page_props=folder / "wikidatawiki-20240401-page_props.sql.gz",
    )
    assert known[799] == {"qid": "Q72", "image_free": "Karte Gemeinde Zürich 2007.png", "sitelinks": 186,
                          "statements": 550, "identifiers": 85}  # fmt: skip
    assert known[1] == {"qid": "Q5296"}


# Entities of Wikidata's JSON dump

NAMES = ("wikidata-all.json", "wikidata-all.json.gz", "wikidata-all.json.bz2")


def collect_lines(folder, *lines, site="enwiki", **form):
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


def test_odd_entities_are_read(tmp_path):
    named = make_entity(1, sitelinks=0)
    named["labels"]["en"]["value"] = '"enwiki":{"site":"enwiki"'
    bare = make_entity(2, statements=0, identifiers=0, classes=()) | {"labels": []}
    assert bare["claims"] == []
    deleted = make_entity(3, statements=9, identifiers=2)  # the properties of these statements were deleted
    for group in deleted["claims"].values():
        group[0]["mainsnak"].pop("datatype")
    counts, rows = collect_lines(tmp_path, *map(render_line, (named, bare, deleted)))
    assert counts == {"lines": 3, "kept": 2, "without_article": 1, "failed": 0}
    read = [(row["qid"], row["label"], row["statements"], row["identifiers"], row["classes"]) for row in rows]
    assert read == [("Q2", "", 0, 0, []), ("Q3", "Label 3", 9, 1, ["Q100"])]


def spoil(**changes):
    return render_line(make_entity(1) | changes)


MALFORMED = [
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
]


def test_a_malformed_line_is_counted_as_failed(tmp_path):
    good = render_line(make_entity(2))
    counts, rows = collect_lines(tmp_path, good, *MALFORMED, good, render_line(make_entity(3)))
    failed = len(MALFORMED) + 1  # the second of two equal entities
    assert counts == {"lines": failed + 2, "kept": 2, "without_article": 0, "failed": failed}
    assert [row["qid"] for row in rows] == ["Q2", "Q3"]


@pytest.mark.parametrize("name", NAMES)
def test_a_truncated_or_damaged_dump_is_refused(tmp_path, name):
    dump = write_dump(tmp_path / name, [render_line(make_entity(n)) for n in range(1, 300)])
    whole = dump.read_bytes()
    middle = len(whole) // 2
    broken = [whole[: int(len(whole) * share)] for share in (0.3, 0.7, 0.99)]
    if name != NAMES[0]:
        broken.append(whole[:middle] + bytes([whole[middle] ^ 0x55]) + whole[middle + 1 :])
    for source in broken:
        dump.write_bytes(source)
        with pytest.raises(CorruptInput, match="truncated"):
            collect_entities(dump, tmp_path)


def test_twenty_real_entities_are_counted_as_a_parser_counts_them(shared_data, tmp_path):
    dump = shared_data / "wikidata-twenty-entities.json.bz2"
    with bz2.open(dump) as stream:
        lines = [line.strip().rstrip(b",") for line in stream]
    entities = [json.loads(line) for line in lines if line not in (b"[", b"]")]
    counts = collect_entities(dump, tmp_path)
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


# Beside a dump

PREFIX = "enwiki-20250131"
PAGES = [("Kelm", "See [[Ost]]."), ("Ost", "See [[Kelm]]."), ("Kelm (surname)", "Names: [[Kelm]]")]


@pytest.fixture
def build(write_dump, tmp_path):
    """Build the corpus of PAGES with whatever the test has put beside the dump."""

    def make():
        build_corpus(write_dump(*PAGES, name=f"{PREFIX}-pages-articles.xml"), tmp_path / "out")
        return Corpus.open(tmp_path / "out")

    return make


def write_entities(tmp_path, *entities):
    lines = [render_line(entity) for entity in entities]
    write_dump(tmp_path / "wikidata-20250131-all.json.gz", lines)


def read_counts(page):
    return page.qid, page.sitelinks, page.statements, page.identifiers, page.classes


def test_an_entity_is_found_by_the_qid_of_page_props_else_by_its_title(build, write_sql, tmp_path):
    write_sql(f"{PREFIX}-page_props.sql.gz", "page_props", PROPS[:3], "(1,'wikibase_item','Q9')")
    write_entities(
        tmp_path,
        make_entity(8, 2, 4, 0, (400,), "Kelm"),
        make_entity(9, 5, 12, 1, (300,), "An older name"),
        *(make_entity(number, 3, 9, 2, (100, 200), "Ost") for number in (10, 7)),
    )
    corpus = build()
    assert read_counts(corpus.page(0)) == ("Q9", 5, 12, 1, ("Q300",))
    assert read_counts(corpus.page(1)) == ("Q7", 3, 9, 2, ("Q100", "Q200"))  # of two Qids the lower
    assert (*read_counts(corpus.page(2)), corpus.page(2).image) == ("", -1, -1, -1, (), "")


def test_a_mistake_in_a_file_beside_the_dump_does_not_make_the_dump_be_read_again(write_dump, tmp_path):
    dump, out = write_dump(*PAGES, name=f"{PREFIX}-pages-articles.xml"), tmp_path / "out"
    write_entities(tmp_path, make_entity(7, title="Ost"))
    entities = tmp_path / "wikidata-20250131-all.json.gz"
    whole = entities.read_bytes()
    entities.write_bytes(whole[:-30])
    with pytest.raises(CorruptInput):
        build_corpus(dump, out)
    (part,) = place_unfinished(tmp_path).glob("*/00000/texts.zst")
    read = part.stat().st_ino
    entities.write_bytes(whole)
    build_corpus(dump, out)
    corpus = Corpus.open(out)
    assert (corpus.folder / "store" / "texts-00000.zst").stat().st_ino == read
    assert corpus.page(1).qid == "Q7"
    assert corpus.manifest.counts.side["entities"] == {"lines": 1, "kept": 1, "without_article": 0, "failed": 0}


def test_a_dump_that_does_not_say_of_which_wiki_it_is_gets_no_entities(write_dump, tmp_path):
    write_entities(tmp_path, make_entity(7, title="Ost"))
    bare = '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="en">\n'
    dump = write_dump(*PAGES, name=f"{PREFIX}-pages-articles.xml", header=bare)
    with pytest.raises(ConfigError, match="siteinfo"):
        build_corpus(dump, tmp_path / "out")


NAMES_OF_FILES = {
    "wikidata-20250106-all.json.gz": "wikidata_entities",
    "wikidatawiki-20250101-page.sql.gz": "wikidata_page",
    "enwiki-20250131-categorylinks.sql.gz": "categorylinks",
}


def test_files_are_found_by_the_names_they_are_published_under(tmp_path):
    for name in NAMES_OF_FILES:
        (tmp_path / name).touch()
    found = find_side_files(tmp_path / f"{PREFIX}-pages-articles-multistream.xml.bz2").list_files()
    assert {path.name: role for role, path in found} == NAMES_OF_FILES


def test_two_snapshots_of_one_file_are_refused(tmp_path):
    for date in ("20250106", "20250113"):
        (tmp_path / f"wikidata-{date}-all.json.gz").touch()
    with pytest.raises(ConfigError, match="expected one"):
        find_side_files(tmp_path / f"{PREFIX}-pages-articles.xml")
