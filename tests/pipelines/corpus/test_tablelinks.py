import gzip
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipelines.corpus.dump import hash_title
from pipelines.corpus.manifest import SideFiles
from pipelines.corpus.tablelinks import LinkTables, count_table_links, hash_titles, write_table_in_degree
from pipelines.errors import ConfigError, CorruptInput

LAYOUTS = {
    "now": ["pl_from", "pl_from_namespace", "pl_target_id"],
    "transition": ["pl_from", "pl_namespace", "pl_title", "pl_from_namespace", "pl_target_id"],
    "old": ["pl_from", "pl_namespace", "pl_title", "pl_from_namespace"],
}
PAGES = [  # id, namespace, title, is redirect
    (10, 0, "Rome", 0),
    (12, 0, "O'Hare_\\_Airport", 0),
    (7, 0, "Zürich", 0),
    (20, 0, "Turitg", 1),
    (21, 0, "Zurich", 1),
    (22, 0, "Loop_A", 1),
    (23, 0, "Loop_B", 1),
    (24, 0, "Self", 1),
    (25, 0, "Wiktionary_word", 1),
    (26, 0, "Main_Page", 1),
    (27, 0, "Nowhere", 1),
    (28, 0, "Unlisted", 1),
    (30, 4, "Rome", 0),
    (31, 10, "Navigation", 0),
]
REDIRECTS = [  # from, namespace, title, interwiki, fragment
    (20, 0, "Zurich", "", ""),
    (21, 0, "Zürich", None, "History"),
    (22, 0, "Loop_B", "", ""),
    (23, 0, "Loop_A", "", ""),
    (24, 0, "Self", "", ""),
    (25, 0, "Rome", "wikt", ""),
    (26, 4, "Rome", "", ""),
    (27, 0, "Never_written", "", ""),
    (99, 0, "Rome", "", ""),
]
LINKS = [  # from, from namespace, namespace, title
    (10, 0, 0, "Zürich"),
    (10, 0, 0, "Turitg"),
    (10, 0, 0, "Rome"),
    (10, 0, 0, "Loop_A"),
    (10, 0, 0, "Self"),
    (10, 0, 0, "Wiktionary_word"),
    (10, 0, 0, "Main_Page"),
    (10, 0, 0, "Nowhere"),
    (10, 0, 0, "Unlisted"),
    (10, 0, 0, "Red_link"),
    (10, 0, 4, "Rome"),
    (12, 0, 0, "Rome"),
    (12, 0, 0, "Zurich"),
    (7, 0, 0, "O'Hare_\\_Airport"),
    (20, 0, 0, "Rome"),
    (31, 10, 0, "Rome"),
    (98, 0, 0, "Rome"),
]
EDGES = [(7, 12), (10, 7), (12, 7), (12, 10)]


def quote_sql(value):
    if value is None or isinstance(value, int):
        return "NULL" if value is None else str(value)
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def write_table(folder, name, columns, rows, required=()):
    lines = ",\n".join(f"  `{column}` blob" + " NOT NULL" * (column in required) for column in columns)
    values = ",".join("(" + ",".join(quote_sql(value) for value in row) + ")" for row in rows)
    body = f"CREATE TABLE `{name}` (\n{lines}\n);\n" + (f"INSERT INTO `{name}` VALUES {values};\n" if rows else "")
    path = folder / f"{name}.sql.gz"
    path.write_bytes(gzip.compress(body.encode()))
    return path


def write_wiki(folder, layout, pages=PAGES, redirects=REDIRECTS, links=LINKS):
    """Write the tables of a wiki in one of the layouts."""
    folder.mkdir(parents=True)
    targets = {target: number for number, target in enumerate(sorted({link[2:] for link in links}), start=2**40)}
    rows = {
        "now": [(*link[:2], targets[link[2:]]) for link in links],
        "transition": [(*make_old(link), targets[link[2:]] if link[0] % 2 else None) for link in links],
        "old": [make_old(link) for link in links],
    }[layout]
    redirect_columns = ["rd_from", "rd_namespace", "rd_title", "rd_interwiki", "rd_fragment"]
    return LinkTables(
        page=write_table(folder, "page", ["page_id", "page_namespace", "page_title", "page_is_redirect"], pages),
        pagelinks=write_table(folder, "pagelinks", LAYOUTS[layout], rows),
        redirect=write_table(folder, "redirect", redirect_columns, redirects),
        linktarget=write_table(
            folder,
            "linktarget",
            ["lt_id", "lt_namespace", "lt_title"],
            [(number, *target) for target, number in targets.items()],
        ),
    )


def make_old(link):
    source, from_namespace, namespace, title = link
    return source, namespace, title, from_namespace


def list_edges(links):
    return [
        pair for block in links.read_links() for pair in zip(*(ids.tolist() for ids in block), strict=True)
    ]  # fmt: skip


def count_links(tables, scratch):
    scratch.mkdir()
    return count_table_links(tables, scratch)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_links_between_articles_with_redirects_followed(tmp_path, layout):
    links = count_links(write_wiki(tmp_path / layout, layout), tmp_path / "scratch")
    assert list_edges(links) == EDGES
    assert links.page_ids.tolist() == [7, 10, 12]
    assert links.in_degree.tolist() == [2, 1, 1]
    assert (links.link_count, links.redirects, links.lost_redirects) == (4, 9, 7)


@pytest.fixture
def write_late_wiki(tmp_path):
    """Write a wiki of the transition whose later links have a number and no title; which columns are required."""

    def write(*required):
        tables = write_wiki(tmp_path / "wiki", "transition")
        targets = {target: number for number, target in enumerate(sorted({link[2:] for link in LINKS}), start=2**40)}
        rows = [
            (link[0], *(link[2:] if place % 2 else (0, "")), link[1], targets[link[2:]])
            for place, link in enumerate(LINKS)
        ]
        write_table(tmp_path / "wiki", "pagelinks", LAYOUTS["transition"], rows, required)
        return tables

    return write


def test_links_without_titles_are_found_by_the_number_that_every_row_must_have(write_late_wiki, tmp_path):
    links = count_links(write_late_wiki("pl_title", "pl_target_id"), tmp_path / "scratch")
    assert list_edges(links) == EDGES


def test_links_without_titles_are_refused_where_not_all_have_a_number(write_late_wiki, tmp_path):
    with pytest.raises(ConfigError, match="rows without pl_title, which name their target by number"):
        count_links(write_late_wiki("pl_title"), tmp_path / "scratch")


def test_links_without_titles_are_refused_where_there_is_no_table_of_targets(write_late_wiki, tmp_path):
    tables = replace(write_late_wiki("pl_title", "pl_target_id"), linktarget=None)
    with pytest.raises(ConfigError, match="and a linktarget table beside it"):
        count_links(tables, tmp_path / "scratch")


def test_titles_in_all_rows_need_no_table_of_targets_though_numbers_are_required(tmp_path):
    tables = write_wiki(tmp_path / "wiki", "transition")
    rows = [(*make_old(link), 5) for link in LINKS]
    write_table(tmp_path / "wiki", "pagelinks", LAYOUTS["transition"], rows, ["pl_title", "pl_target_id"])
    assert list_edges(count_links(replace(tables, linktarget=None), tmp_path / "scratch")) == EDGES


def test_a_link_without_title_is_none_where_there_are_no_numbers(tmp_path):
    tables = write_wiki(tmp_path / "wiki", "old", links=[*LINKS, (10, 0, 0, "")])
    assert list_edges(count_links(tables, tmp_path / "scratch")) == EDGES


@pytest.mark.parametrize("layout", LAYOUTS)
def test_tables_without_rows_give_no_links(tmp_path, layout):
    links = count_links(write_wiki(tmp_path / layout, layout, [], [], []), tmp_path / "scratch")
    assert (list_edges(links), links.link_count, links.page_ids.tolist()) == ([], 0, [])


WIKIS = st.integers(2, 12).flatmap(
    lambda size: st.tuples(
        st.lists(st.integers(-1, size), min_size=size, max_size=size),
        st.lists(st.tuples(st.integers(0, size), st.integers(0, size)), max_size=40),
    )
)


def follow(place, ends):
    """Return the article that a page leads to, or None."""
    seen = set()
    while place < len(ends) and ends[place] >= 0 and place not in seen:
        seen.add(place)
        place = ends[place]
    return place if place < len(ends) and ends[place] < 0 else None


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(wiki=WIKIS)
def test_any_wiki_gives_the_links_found_one_by_one(tmp_path_factory, wiki):
    ends, pairs = wiki
    pages = [(place + 100, 0, f"Page {place}".replace(" ", "_"), int(end >= 0)) for place, end in enumerate(ends)]
    redirects = [(place + 100, 0, f"Page_{end}", "", "") for place, end in enumerate(ends) if end >= 0]
    expected = set()
    for source, target in pairs:
        end = follow(target, ends)
        if source < len(ends) and ends[source] < 0 and end is not None and end != source:
            expected.add((source + 100, end + 100))
    links = [(source + 100, 0, 0, f"Page_{target}") for source, target in pairs]
    folder = tmp_path_factory.mktemp("wiki")
    found = [
        count_links(write_wiki(folder / layout, layout, pages, redirects, links), folder / f"{layout}-scratch")
        for layout in LAYOUTS
    ]
    assert [list_edges(links) for links in found] == [sorted(expected)] * 3
    for links in found:
        degrees = dict(zip(links.page_ids.tolist(), links.in_degree.tolist(), strict=True))
        counted = defaultdict(int)
        for _, target in expected:
            counted[target] += 1
        assert degrees == {place + 100: counted[place + 100] for place, end in enumerate(ends) if end < 0}


def test_a_long_chain_of_redirects_ends_at_its_article(tmp_path):
    length = 3000
    pages = [(number, 0, f"P{number}", int(number > 0)) for number in range(length)] + [(9000, 0, "Source", 0)]
    redirects = [(number, 0, f"P{number - 1}", "", "") for number in range(1, length)]
    tables = write_wiki(tmp_path / "wiki", "now", pages, redirects, [(9000, 0, 0, f"P{length - 1}")])
    links = count_links(tables, tmp_path / "scratch")
    assert (list_edges(links), links.lost_redirects) == ([(9000, 0)], 0)


def test_links_over_many_files_are_sorted_and_distinct(tmp_path):
    count = 1000
    pages = [(number * 3, 0, f"P{number}", 0) for number in range(count)]
    generator = np.random.default_rng(1)
    pairs = generator.integers(0, count, (20_000, 2)).tolist()
    links = [(source * 3, 0, 0, f"P{target}") for source, target in pairs]
    counted = count_links(write_wiki(tmp_path / "wiki", "old", pages, [], links), tmp_path / "scratch")
    assert list_edges(counted) == sorted({(source * 3, target * 3) for source, target in pairs if source != target})
    assert len(counted.files) > 100


def test_without_redirects_none_leads_anywhere(tmp_path):
    tables = write_wiki(tmp_path / "wiki", "old")
    links = count_links(LinkTables(tables.page, tables.pagelinks), tmp_path / "scratch")
    assert list_edges(links) == [(7, 12), (10, 7), (12, 10)]
    assert links.lost_redirects == links.redirects == 9


def test_targets_by_number_need_their_table(tmp_path):
    tables = write_wiki(tmp_path / "wiki", "now")
    with pytest.raises(ConfigError, match="expected a linktarget table"):
        count_links(LinkTables(tables.page, tables.pagelinks, tables.redirect), tmp_path / "scratch")


def test_two_pages_of_one_title_are_refused(tmp_path):
    tables = write_wiki(tmp_path / "wiki", "now", [*PAGES, (77, 0, "Rome", 0)])
    with pytest.raises(CorruptInput, match=r"pages (10 and 77|77 and 10) have one title"):
        count_links(tables, tmp_path / "scratch")


def test_titles_hash_as_the_texts_of_the_dump_do():
    titles = ["Rome", "New_York_(city)", "Zürich", "", "日本"]
    array = pa.array([b"left out", *(title.encode() for title in titles)], type=pa.binary())[1:]
    assert hash_titles(array).tolist() == [hash_title(title.replace("_", " ")) for title in titles]
    assert hash_titles(array[:0]).tolist() == []


def test_the_in_degree_table_has_each_article_once(tmp_path):
    tables = write_wiki(tmp_path / "wiki", "transition")
    side = SideFiles(
        page=tables.page, pagelinks=tables.pagelinks, redirect=tables.redirect, linktarget=tables.linktarget
    )
    path = write_table_in_degree(side, tmp_path)
    assert pq.read_table(path).to_pydict() == {"page_id": [7, 10, 12], "table_in_degree": [2, 1, 1]}
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["table_in_degree.parquet", "wiki"]


def test_links_without_pages_are_refused_by_name(tmp_path):
    tables = write_wiki(tmp_path / "wiki", "old")
    with pytest.raises(ConfigError, match="no page table"):
        write_table_in_degree(SideFiles(pagelinks=tables.pagelinks), tmp_path)


def test_the_real_slice_has_the_links_that_were_counted_there(shared_data, tmp_path):
    folder = shared_data / "enwiki-slice"
    paths = {name: folder / f"enwiki-slice-{name}.sql.gz" for name in ("page", "pagelinks", "redirect", "linktarget")}
    links = count_links(LinkTables(**paths), tmp_path / "scratch")
    assert (len(links.page_ids), links.link_count, links.in_degree.max()) == (4736, 98_279, 1404)
    assert (links.in_degree == 0).sum() == 756


@pytest.mark.parametrize(
    ("wiki", "articles", "count"),
    [("rmwiki-20240301", 2, 1), ("itwikibooks-20240301", 3, 2), ("loginwiki-20240501", 1, 0)],
)
def test_real_tables_of_each_layout_are_read(shared_data, tmp_path, wiki, articles, count):
    folder = shared_data / "sql-fixtures"
    found = {name: folder / f"{wiki}-{name}.sql.gz" for name in ("page", "pagelinks", "redirect", "linktarget")}
    links = count_links(LinkTables(**{name: p for name, p in found.items() if p.is_file()}), tmp_path / "scratch")
    assert (len(links.page_ids), links.link_count) == (articles, count)
