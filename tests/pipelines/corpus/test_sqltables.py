import gzip

import pytest

from pipelines.corpus.sqltables import read_table
from pipelines.errors import ConfigError, CorruptInput


def test_columns_come_by_name_in_the_order_asked_for(write_sql):
    path = write_sql("a.sql.gz", "page", ["page_id", "page_title", "page_len"], "(1,'A_b',10),(2,'C',20)")
    assert list(read_table(path, "page", ["page_len", "page_id"])) == [(10, 1), (20, 2)]


def test_values_keep_their_types(write_sql):
    rows = r"(1,NULL),(-2,0.5),(3,'it\'s a \"q\" \\ (a),(b);'),(4,''),(5,'a''b'),(6,0x4142),(7,1e3)"
    path = write_sql("a.sql", "t", ["k", "v"], rows)
    values = [value for _, value in read_table(path, "t", ["k", "v"])]
    assert values == [None, 0.5, 'it\'s a "q" \\ (a),(b);', "", "a'b", b"AB", 1000.0]


def test_bytes_that_are_no_utf8_stay_bytes(tmp_path):
    path = tmp_path / "a.sql"
    path.write_bytes(b"CREATE TABLE `t` (\n  `k` blob\n);\nINSERT INTO `t` VALUES ('\xff\\0'),('\xc3\xa9');\n")
    assert list(read_table(path, "t", ["k"])) == [(b"\xff\0",), ("é",)]


def test_rows_over_many_lines_statements_and_tables_are_read(tmp_path):
    path = tmp_path / "a.sql"
    path.write_text(
        "CREATE TABLE `u` (\n  `x` int\n);\nINSERT INTO `u` VALUES (9);\n"
        "CREATE TABLE `t` (\n  `a` int,\n  `b` int\n);\n"
        "INSERT INTO `t` VALUES\n  (1,2),\n  (3,4);\n\n"
        "INSERT INTO `t` (`b`, `a`) VALUES (6,5);INSERT INTO `t` VALUES (7,8);\n"
    )
    assert list(read_table(path, "t", ["a"])) == [(1,), (3,), (5,), (7,)]


def test_many_rows_across_buffers_are_read(write_sql):
    rows = ",\n".join(f"({number},'{'x' * 50}')" for number in range(5000))
    read = read_table(write_sql("a.sql", "t", ["a", "b"], rows), "t", ["a"])
    assert [number for (number,) in read] == [*range(5000)]


def test_missing_tables_and_columns_are_named(write_sql):
    path = write_sql("a.sql.gz", "pagelinks", ["pl_from", "pl_target_id"], "(1,2)")
    with pytest.raises(ConfigError, match="has no pl_title; it has pl_from, pl_target_id"):
        list(read_table(path, "pagelinks", ["pl_title"]))
    with pytest.raises(ConfigError, match="no table page; it has pagelinks"):
        list(read_table(path, "page", ["page_id"]))


def test_an_empty_table_has_no_rows(tmp_path):
    path = tmp_path / "a.sql"
    path.write_text("CREATE TABLE `t` (\n  `a` int\n) ENGINE=InnoDB;\n")
    assert list(read_table(path, "t", ["a"])) == []


def test_cut_files_are_refused(write_sql, tmp_path):
    whole = write_sql("a.sql.gz", "t", ["a"], ",".join(f"({number})" for number in range(9999))).read_bytes()
    cut = tmp_path / "b.sql.gz"
    cut.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CorruptInput, match=r"b\.sql\.gz"):
        list(read_table(cut, "t", ["a"]))
    plain = tmp_path / "c.sql"
    plain.write_bytes(gzip.decompress(whole)[:-40])
    with pytest.raises(CorruptInput, match=r"c\.sql"):
        list(read_table(plain, "t", ["a"]))


def test_a_row_of_another_width_is_refused(write_sql):
    with pytest.raises(CorruptInput, match="no row of this table"):
        list(read_table(write_sql("a.sql", "t", ["a", "b"], "(1,2),(3)"), "t", ["a"]))


def test_a_file_that_is_no_gzip_is_refused(tmp_path):
    path = tmp_path / "a.sql.gz"
    path.write_text("CREATE TABLE")
    with pytest.raises(CorruptInput, match="not a gzip file"):
        list(read_table(path, "t", ["a"]))


@pytest.mark.parametrize(
    ("file", "table", "column", "count"),
    [
        ("aawiki-20260101-pagelinks", "pagelinks", "pl_target_id", 637),
        ("aawiki-20260101-categorylinks", "categorylinks", "cl_target_id", 156),
        ("itwikibooks-20240301-pagelinks", "pagelinks", "pl_target_id", 3),
        ("rmwiki-20240301-pagelinks", "pagelinks", "pl_title", None),
        ("rmwiki-20240301-redirect", "redirect", "rd_title", 3),
        ("wikidatawiki-20240401-page_props", "page_props", "pp_value", None),
        ("loginwiki-20240501-pagelinks", "pagelinks", "pl_from", 0),
        ("metawiki-20240401-sites", "sites", "site_global_key", None),
    ],
)
def test_real_layouts_are_read(shared_data, file, table, column, count):
    rows = list(read_table(shared_data / "sql-fixtures" / f"{file}.sql.gz", table, [column]))
    assert len(rows) == count if count is not None else rows
