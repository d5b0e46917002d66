import gzip

import pyarrow.parquet as pq
import pytest

from pipelines.corpus.manifest import SideFiles
from pipelines.corpus.properties import PAGE_PROPERTIES, collect_properties
from pipelines.errors import ConfigError, CorruptInput

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

    def write(table, columns, rows, name=""):
        lines = ",\n".join(f"  `{column}` blob" for column in columns)
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


def test_properties_of_a_page_come_as_one_row_sorted_by_page(write_table, collect):
    props = [
        (9, "page_image_free", "O'Brien_\\_a.jpg", None),
        (9, "page_image", "Logo_of_X.png", None),
        (9, "wikibase_item", "Q42", None),
        (9, "defaultsort", "x,y);(", None),
        (3, "disambiguation", "", None),
        (5, "displaytitle", "<i>x</i>;", None),
        (7, "page_image_free", b"caf\xff.jpg", 0),
    ]
    assert collect(page_props=write_table("page_props", PROPS, props)) == {
        3: {"is_disambiguation": True},
        7: {"image_free": "caf�.jpg"},
        9: {"qid": "Q42", "image_free": "O'Brien \\ a.jpg", "image": "Logo of X.png"},
    }


def test_nothing_given_is_an_empty_table(collect):
    assert collect() == {}
    assert collect.counts == {"pages": 0, "qids": 0, "qids_without_counts": 0}


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


@pytest.mark.parametrize("given", ["wikidata_page", "wikidata_page_props"])
def test_half_of_wikidata_gives_no_counts(write_table, collect, given):
    tables = {
        "wikidata_page": write_table("page", PAGE, [(100, 0, "Q5")]),
        "wikidata_page_props": write_table("page_props", PROPS, [(100, "wb-claims", "3", 3)], "wikidata"),
    }
    props = write_table("page_props", PROPS, [(1, "wikibase_item", "Q5", None)])
    assert collect(page_props=props, **{given: tables[given]}) == {1: {"qid": "Q5"}}


def test_an_invalid_qid_or_count_is_not_known(write_table, collect):
    qids = ["", "Q", "Q0", "5", "P31", "Q5x", "Q99999999999999999999", "q5"]
    props = [(page, "wikibase_item", qid, None) for page, qid in enumerate(qids)]
    props += [(100 + page, "wikibase_item", f"Q{page}", None) for page in range(1, 7)]
    values = ["-1", "", "1.5", "4294967296", "x", "１"]
    known = collect(
        page_props=write_table("page_props", PROPS, props),
        wikidata_page=write_table("page", PAGE, [(page, 0, f"Q{page}") for page in range(1, 7)]),
        wikidata_page_props=write_table(
            "page_props", PROPS, [(page, "wb-claims", value, None) for page, value in enumerate(values, 1)], "wikidata"
        ),
    )
    assert known == {100 + page: {"qid": f"Q{page}"} for page in range(1, 7)}


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


def test_rows_without_a_title_or_without_a_number_are_refused(write_table, collect):
    rows = [(1, "All_disambiguation_pages", "", "page", 51), (2, "", "", "page", 51), (3, "", "", "page", 52)]
    targets = [(51, 14, "All_disambiguation_pages"), (52, 14, "All_set_index_articles")]
    linktarget = write_table("linktarget", TARGETS, targets)
    path = write_table("categorylinks", CATEGORIES["transition"], rows)
    assert collect(categorylinks=path, linktarget=linktarget) == FLAGGED
    with pytest.raises(ConfigError, match="rows without cl_to"):
        collect(categorylinks=path)
    early = write_table("categorylinks", CATEGORIES["transition"], [(1, "All_disambiguation_pages", "", "page", None)])
    with pytest.raises(CorruptInput, match="cl_target_id holds None"):
        collect(categorylinks=early, linktarget=linktarget)


def test_several_sources_of_one_flag_make_one_row(write_table, collect):
    assert collect(
        page_props=write_table("page_props", PROPS, [(1, "disambiguation", "", None)]),
        categorylinks=write_table("categorylinks", CATEGORIES["old"], [(1, "All_disambiguation_pages", "", "page")]),
    ) == {1: {"is_disambiguation": True}}


def test_targets_by_number_need_their_table(write_table, collect):
    with pytest.raises(ConfigError, match="expected a linktarget table"):
        collect(categorylinks=write_table("categorylinks", CATEGORIES["now"], []))


def test_a_page_with_a_property_over_and_over_is_refused(write_table, collect):
    props = [(1, "wikibase_item", "Q5", None)] * 140_000
    with pytest.raises(CorruptInput, match="page_id 1 has over 65536 rows"):
        collect(page_props=write_table("page_props", PROPS, props))


def test_too_little_memory_is_said_so(write_table, tmp_path):
    props = [
        (page, "page_image", f"Picture of quite some length {page * 7919 % 99_991}.jpg", None) for page in range(99_991)
    ]
    side = SideFiles(page_props=write_table("page_props", PROPS, props))
    with pytest.raises(ConfigError, match=r"cannot be sorted or joined in 3 MB of memory .* expected more"):
        collect_properties(side, tmp_path, 3)


@pytest.mark.slow
def test_many_pages_give_the_same_bytes_in_whatever_order_they_come(write_table, collect, tmp_path):
    props = [
        row
        for page in range(70_000)
        for row in (
            (page, "wikibase_item", f"Q{page + 1}", None),
            (page, "page_image_free", f"Picture_{page}.jpg", None),
        )
    ]
    found = []
    for rows in (props, props[::-1]):
        known = collect(page_props=write_table("page_props", PROPS, rows))
        assert known[69_999] == {"qid": "Q70000", "image_free": "Picture 69999.jpg"}
        found.append((tmp_path / "scratch" / "properties.parquet").read_bytes())
    assert found[0] == found[1]
    file = pq.ParquetFile(tmp_path / "scratch" / "properties.parquet")
    assert [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)] == [65_536, 4464]


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


def test_the_real_slice_has_the_properties_that_were_counted_there(shared_data, collect):
    known = collect(page_props=shared_data / "enwiki-slice" / "enwiki-slice-page_props.sql.gz").values()
    assert [sum(name in page for page in known) for name in ("image_free", "image", "is_disambiguation")] == [98, 17, 9]


def test_real_categories_of_today_are_read(shared_data, collect, write_table):
    targets = write_table("linktarget", TARGETS, [(208, 14, "All_disambiguation_pages")])
    known = collect(
        categorylinks=shared_data / "sql-fixtures" / "aawiki-20260101-categorylinks.sql.gz", linktarget=targets
    )
    assert {1341, 1425} <= known.keys()
    assert all(page == {"is_disambiguation": True} for page in known.values())
