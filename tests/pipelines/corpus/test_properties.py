import gzip

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.corpus.properties import PAGE_PROPERTIES, Matches, PropertySources, collect_properties, read_matches
from pipelines.errors import ConfigError, CorruptInput

PROPS = ["pp_page", "pp_propname", "pp_value", "pp_sortkey"]
PAGE = ["page_id", "page_namespace", "page_title"]
TARGETS = ["lt_id", "lt_namespace", "lt_title"]
CATEGORIES = {
    "now": ["cl_from", "cl_sortkey", "cl_type", "cl_target_id"],
    "transition": ["cl_from", "cl_to", "cl_sortkey", "cl_type", "cl_target_id"],
    "old": ["cl_from", "cl_to", "cl_sortkey", "cl_type"],
}
TEMPLATES = {
    "now": ["tl_from", "tl_from_namespace", "tl_target_id"],
    "transition": ["tl_from", "tl_namespace", "tl_title", "tl_from_namespace", "tl_target_id"],
    "old": ["tl_from", "tl_namespace", "tl_title", "tl_from_namespace"],
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
        lines = ",\n".join(f"  `{column}` blob" + " NOT NULL" * (column in required) for column in columns)
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

    def run(**sources):
        scratch = tmp_path / "scratch"
        scratch.mkdir(exist_ok=True)
        out = tmp_path / "properties.parquet"
        count = collect_properties(PropertySources(**sources), out, scratch, 256)
        table = pq.read_table(out)
        assert table.schema.equals(PAGE_PROPERTIES)
        rows = table.to_pylist()
        assert [row["page_id"] for row in rows] == sorted({row["page_id"] for row in rows})
        assert count == len(rows)
        assert list(scratch.glob("*.parquet")) == []
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


def test_nothing_given_is_an_empty_table(collect, tmp_path):
    assert collect() == {}
    assert read_matches(tmp_path / "properties.parquet") == Matches(0, 0)


def test_counts_come_by_qid_from_wikidata(write_table, collect, tmp_path):
    props = [(number, "wikibase_item", qid, None) for number, qid in ((1, "Q5"), (2, "Q7"), (3, "Q9"), (4, "Q5"))]
    wikidata_page = [(100, 0, "Q5"), (200, 0, "Q7"), (201, 1, "Q9"), (300, 0, "Q1000"), (301, 120, "P5")]
    wikidata_props = [
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
        wikidata_pages=write_table("page", PAGE, wikidata_page, "wikidata-page"),
        wikidata_props=write_table("page_props", PROPS, wikidata_props, "wikidata-props"),
    ) == {1: {"qid": "Q5", **counted}, 2: {"qid": "Q7", "statements": 0}, 3: {"qid": "Q9"}, 4: {"qid": "Q5", **counted}}
    assert read_matches(tmp_path / "properties.parquet") == Matches(qids=4, qids_without_counts=1)
    assert read_matches(tmp_path / "properties.parquet").summarise() == {"qids": 4, "qids_without_counts": 1}


@pytest.mark.parametrize("given", ["wikidata_pages", "wikidata_props"])
def test_half_of_wikidata_gives_no_counts(write_table, collect, given):
    tables = {
        "wikidata_pages": write_table("page", PAGE, [(100, 0, "Q5")]),
        "wikidata_props": write_table("page_props", PROPS, [(100, "wb-claims", "3", 3)], "wikidata"),
    }
    props = write_table("page_props", PROPS, [(1, "wikibase_item", "Q5", None)])
    assert collect(page_props=props, **{given: tables[given]}) == {1: {"qid": "Q5"}}


@pytest.mark.parametrize("qid", ["", "Q", "Q0", "5", "P31", "Q5x", "Q99999999999999999999", "q5"])
def test_what_is_no_qid_is_not_known(write_table, collect, qid):
    props = [(1, "wikibase_item", qid, None), (1, "page_image", "A.png", None)]
    assert collect(page_props=write_table("page_props", PROPS, props)) == {1: {"image": "A.png"}}


@pytest.mark.parametrize("value", ["-1", "", "1.5", "4294967296", "x", "１"])
def test_what_is_no_count_is_not_known(write_table, collect, value):
    sources = {
        "page_props": write_table("page_props", PROPS, [(1, "wikibase_item", "Q5", None)]),
        "wikidata_pages": write_table("page", PAGE, [(100, 0, "Q5")]),
        "wikidata_props": write_table("page_props", PROPS, [(100, "wb-claims", value, None)], "wikidata"),
    }
    assert collect(**sources) == {1: {"qid": "Q5"}}


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


@pytest.mark.parametrize("layout", TEMPLATES)
def test_every_layout_of_templates_flags_the_same_articles(write_table, collect, layout):
    uses = [  # page, its namespace, namespace of what it transcludes, title
        (1, 0, 10, "Human_name_disambiguation"),
        (2, 0, 10, "Disambiguation"),
        (3, 0, 10, "Surname"),
        (4, 0, 10, "Infobox_person"),
        (5, 10, 10, "Surname"),
        (6, 0, 0, "Surname"),
    ]
    targets = {target: number for number, target in enumerate(sorted({use[2:] for use in uses}), start=50)}
    values = {
        "now": [(page, space, targets[target]) for page, space, target in ((*use[:2], use[2:]) for use in uses)],
        "transition": [(page, space, title, own, None) for page, own, space, title in uses],
        "old": [(page, space, title, own) for page, own, space, title in uses],
    }[layout]
    sources = {"templatelinks": write_table("templatelinks", TEMPLATES[layout], values)}
    if layout == "now":
        sources["linktarget"] = write_table("linktarget", TARGETS, [(n, *target) for target, n in targets.items()])
    assert collect(**sources) == FLAGGED


LATE = {  # of the transition: rows with a title, then rows written with the number alone
    "categorylinks": [
        (1, "All_disambiguation_pages", "", "page", 51),
        (2, "", "", "page", 51),
        (3, "", "", "page", 52),
    ],
    "templatelinks": [(1, 10, "Disambiguation", 0, 53), (2, 0, "", 0, 53), (3, 0, "", 0, 54)],
}
LATE_TARGETS = [
    (51, 14, "All_disambiguation_pages"),
    (52, 14, "All_set_index_articles"),
    (53, 10, "Disambiguation"),
    (54, 10, "Surname"),
]
LATE_COLUMNS = [("categorylinks", CATEGORIES, "cl_to"), ("templatelinks", TEMPLATES, "tl_title")]


@pytest.mark.parametrize(("table", "columns", "title"), LATE_COLUMNS)
def test_members_without_titles_are_found_by_the_number_that_every_row_must_have(
    write_table, collect, table, columns, title
):
    required = [title, f"{title[:2]}_target_id"]
    path = write_table(table, columns["transition"], LATE[table], required=required)
    assert collect(**{table: path}, linktarget=write_table("linktarget", TARGETS, LATE_TARGETS)) == FLAGGED
    with pytest.raises(ConfigError, match=f"rows without {title}"):
        collect(**{table: path})


@pytest.mark.parametrize(("table", "columns", "title"), LATE_COLUMNS)
def test_members_without_titles_are_refused_where_not_all_have_a_number(write_table, collect, table, columns, title):
    path = write_table(table, columns["transition"], LATE[table], required=[title])
    with pytest.raises(ConfigError, match=f"rows without {title}"):
        collect(**{table: path}, linktarget=write_table("linktarget", TARGETS, LATE_TARGETS))


def test_several_sources_of_one_flag_make_one_row(write_table, collect):
    assert collect(
        page_props=write_table("page_props", PROPS, [(1, "disambiguation", "", None)]),
        categorylinks=write_table("categorylinks", CATEGORIES["old"], [(1, "All_disambiguation_pages", "", "page")]),
        templatelinks=write_table("templatelinks", TEMPLATES["old"], [(1, 10, "Surname", 0)]),
    ) == {1: {"is_disambiguation": True, "is_set_index": True}}


@pytest.mark.parametrize(("table", "columns"), [("categorylinks", CATEGORIES), ("templatelinks", TEMPLATES)])
def test_targets_by_number_need_their_table(write_table, collect, table, columns):
    with pytest.raises(ConfigError, match="expected a linktarget table"):
        collect(**{table: write_table(table, columns["now"], [])})


def test_a_page_with_a_property_over_and_over_is_refused(write_table, collect):
    props = [(1, "wikibase_item", "Q5", None)] * 140_000
    with pytest.raises(CorruptInput, match="page 1 has over 65536 properties"):
        collect(page_props=write_table("page_props", PROPS, props))


def test_too_little_memory_is_said_so(write_table, tmp_path):
    props = [
        (page, "page_image", f"Picture of quite some length {page * 7919 % 99_991}.jpg", None) for page in range(99_991)
    ]
    sources = PropertySources(page_props=write_table("page_props", PROPS, props))
    with pytest.raises(ConfigError, match=r"cannot be sorted or joined in 3 MB of memory .* expected more"):
        collect_properties(sources, tmp_path / "properties.parquet", tmp_path, 3)


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
        found.append((tmp_path / "properties.parquet").read_bytes())
    assert found[0] == found[1]
    file = pq.ParquetFile(tmp_path / "properties.parquet")
    assert [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)] == [65_536, 4464]


def test_real_tables_give_the_properties_in_them(shared_data, collect):
    folder = shared_data / "sql-fixtures"
    known = collect(
        page_props=folder / "rmwiki-20240301-page_props.sql.gz",
        wikidata_pages=folder / "wikidatawiki-20240401-page.sql.gz",
        wikidata_props=folder / "wikidatawiki-20240401-page_props.sql.gz",
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


def test_the_schema_says_what_is_not_known():
    assert set(PAGE_PROPERTIES.names) == {"page_id", *UNKNOWN}
    assert PAGE_PROPERTIES.field("statements").type == pa.int32()
