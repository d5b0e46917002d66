import gzip
import random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipelines.corpus.sqltables import list_columns, read_columns, read_table
from pipelines.errors import ConfigError, CorruptInput


def read_integers(path, table, columns):
    return (block.integers for block in read_columns(path, table, columns))


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
    with pytest.raises(CorruptInput, match="not a row of this table"):
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


MANY = 300
"""Rows that make a statement long enough for the reader of whole blocks."""
REAL_TABLES = [
    "aawiki-20260101-pagelinks",
    "rmwiki-20240301-pagelinks",
    "rmwiki-20240301-page",
    "aawiki-20260101-categorylinks",
    "wikidatawiki-20240401-page_props",
    "loginwiki-20240501-pagelinks",
]


def read_numbers(path, table, columns):
    """Return all rows of number columns, as ``read_table`` would."""
    blocks = list(read_integers(path, table, columns))
    assert all(len(block[0]) for block in blocks)
    return [row for block in blocks for row in zip(*(values.tolist() for values in block), strict=True)]


def quote_sql(value):
    """Write a value as mysqldump does."""
    if value is None or isinstance(value, int):
        return b"NULL" if value is None else str(value).encode()
    for plain, escaped in ((b"\\", b"\\\\"), (b"'", b"\\'"), (b'"', b'\\"'), (b"\n", b"\\n"), (b"\0", b"\\0")):
        value = value.replace(plain, escaped)
    return b"'" + value + b"'"


def write_rows(path, columns, rows, between=b",", behind=b";\n"):
    lines = ",\n".join(f"  `{column}` blob" for column in columns)
    values = between.join(b"(" + b",".join(quote_sql(value) for value in row) + b")" for row in rows)
    path.write_bytes(f"CREATE TABLE `t` (\n{lines}\n);\nINSERT INTO `t` VALUES ".encode() + values + behind)
    return path


WHOLE = st.integers(-(2**63), 2**63 - 1) | st.integers(0, 99)
TEXT = st.none() | st.binary(max_size=12) | st.text(alphabet="a'\\\"(),;\n é_-", max_size=12).map(str.encode)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.tuples(WHOLE, TEXT, WHOLE, TEXT), min_size=1, max_size=5),
    between=st.sampled_from([b",", b",\n", b",\n  ", b" , "]),
    times=st.sampled_from([1, MANY]),
)
def test_columns_are_the_rows_that_were_written(tmp_path, rows, between, times):
    path = write_rows(tmp_path / "a.sql", ["a", "b", "c", "d"], rows * times, between)
    blocks = list(read_columns(path, "t", ["c", "a"], ["d", "b"]))
    read = [
        (a, b, c, d)
        for block in blocks
        for c, a, d, b in zip(
            *(values.tolist() for values in block.integers),
            *(values.to_pylist() for values in block.texts),
            strict=True,
        )
    ]
    assert read == rows * times


@pytest.mark.slow
def test_many_rows_over_statements_and_blocks_are_read_whole(tmp_path):
    numbers = random.Random(1)
    rows = [(numbers.randrange(10**8), 0, numbers.randrange(10 ** numbers.randrange(1, 19))) for _ in range(150_000)]
    path, body = tmp_path / "a.sql.gz", "CREATE TABLE `p` (\n  `a` int,\n  `b` int,\n  `c` int\n);\n"
    for start, count in ((0, 60_000), (60_000, 1), (60_001, 40), (60_041, 89_959)):
        body += f"INSERT INTO `p` VALUES {','.join(map(str, rows[start : start + count])).replace(' ', '')};\n"
    path.write_bytes(gzip.compress(body.encode() + b"-- Dump completed\n"))
    assert read_numbers(path, "p", ["a", "b", "c"]) == rows


def test_titles_with_punctuation_and_escapes_are_read_over_blocks(tmp_path):
    titles = [rb"O'Brien", rb"a,b),(1,2", b"x;\n", rb"back\\", b"", "Zürich".encode(), b"'", b"\\'"]
    rows = [(number, titles[number % len(titles)]) for number in range(120_000)]
    path = write_rows(tmp_path / "a.sql", ["a", "b"], rows)
    blocks = list(read_columns(path, "t", ["a"], ["b"]))
    assert np.concatenate([block.integers[0] for block in blocks]).tolist() == [*range(120_000)]
    assert [title for block in blocks for title in block.texts[0].to_pylist()] == [title for _, title in rows]
    assert len(blocks) < 100


def test_numbers_come_from_lists_of_columns_and_from_between_other_tables(tmp_path):
    path = tmp_path / "a.sql"
    rows = ",".join(f"({number},{-number},7)" for number in range(MANY))
    path.write_text(
        "CREATE TABLE `u` (\n  `x` int\n);\nINSERT INTO `u` VALUES (9);\n"
        "CREATE TABLE `t` (\n  `a` int,\n  `b` int,\n  `c` int\n);\n"
        f"INSERT INTO `t` (`b`, `a`, `c`) VALUES {rows};INSERT INTO `t` VALUES (1,2,3);\n"
        "REPLACE INTO `t` VALUES (4,5,6);\n"
        "CREATE TABLE `v` (\n  `a` int\n);\nINSERT INTO `v` VALUES (1);\n-- and a remark; with ( and '\n"
    )
    assert read_numbers(path, "t", ["a", "b"]) == [*((-number, number) for number in range(MANY)), (1, 2), (4, 5)]


@pytest.mark.parametrize(
    "head", ["INSERT INTO `t`VALUES", "insert into t values", "  INSERT IGNORE INTO `wiki`.`t` (`a`) VALUES"]
)
def test_heads_of_statements_are_known_however_they_are_written(tmp_path, head):
    path = tmp_path / "a.sql"
    path.write_text(f"CREATE TABLE `t` (\n  `a` int\n);\n{head} (1),(2);\nINSERT INTO `t2` VALUES (3);\n")
    assert read_numbers(path, "t", ["a"]) == [(1,), (2,)]


def test_a_column_that_is_not_asked_for_may_hold_anything(tmp_path):
    rows = [(number, None, b"\xff", -1) for number in range(MANY)]
    path = write_rows(tmp_path / "a.sql", ["a", "b", "c", "d"], rows)
    assert read_numbers(path, "t", ["a"]) == [(number,) for number in range(MANY)]


@pytest.mark.parametrize("value", ["NULL", "1.5", "'1'", "9223372036854775808", "18446744073709551616", "1e3"])
@pytest.mark.parametrize("times", [1, MANY])
def test_what_is_no_whole_number_is_refused(tmp_path, value, times):
    path = tmp_path / "a.sql"
    rows = "(1,2)," * times + f"(3,{value})" + ",(1,2)" * times
    path.write_text(f"CREATE TABLE `t` (\n  `a` int,\n  `b` int\n);\nINSERT INTO `t` VALUES {rows};\n")
    with pytest.raises(CorruptInput, match=r"a\.sql: column b .* expected whole numbers of at most 64 bits"):
        read_numbers(path, "t", ["a", "b"])


def test_a_number_where_a_string_is_expected_is_refused(tmp_path):
    path = write_rows(tmp_path / "a.sql", ["a", "b"], [(1, b"x")] * MANY + [(1, 2)])
    with pytest.raises(CorruptInput, match=r"column b .* expected strings"):
        list(read_columns(path, "t", ["a"], ["b"]))


@pytest.mark.parametrize(
    "wrong",
    ["(1)", "(1,2,3)", "(1,,3)", "(1,2)(3,4)", "(1 2,3)", "1,(2,3)", "(1,2),5", "((1,2)", "(1,2))", "(1,2),,(3,4)",
     "(1,x)", "(1,2):", "(-,2)", "(1-2,3)", "(,2)", "()", "(1,2,", "('1,2)", "(1,'2'3)", "(1,2)\0"],
)  # fmt: skip
@pytest.mark.parametrize("column", ["a", "b"])
@pytest.mark.parametrize("times", [1, MANY])
def test_what_is_not_the_table_is_refused_and_never_shifted(tmp_path, wrong, column, times):
    path = tmp_path / "a.sql"
    rows = "(1,2)," * times + wrong + ",(1,2)" * times
    path.write_text(f"CREATE TABLE `t` (\n  `a` int,\n  `b` int\n);\nINSERT INTO `t` VALUES {rows};\n")
    with pytest.raises(CorruptInput, match=r"a\.sql"):
        read_numbers(path, "t", [column])


@pytest.mark.parametrize("behind", [b"", b",", b"\n", b",(1", b",(1,'x"])
def test_a_statement_without_end_is_refused(tmp_path, behind):
    path = write_rows(tmp_path / "a.sql", ["a", "b"], [(1, 2)] * MANY, behind=behind)
    with pytest.raises(CorruptInput, match=r"a\.sql"):
        read_numbers(path, "t", ["a"])


@pytest.mark.parametrize(
    ("head", "says"), [("INSERT INTO `t` SELECT 1;", "then VALUES"), ("CREATE TABLE `u` (\n", "no end")]
)
def test_a_head_that_is_none_is_refused(tmp_path, head, says):
    path = tmp_path / "a.sql"
    path.write_text(f"CREATE TABLE `t` (\n  `a` int\n);\n{head}\n")
    with pytest.raises(CorruptInput, match=says):
        read_numbers(path, "t", ["a"])


def test_a_packed_file_with_a_wrong_checksum_is_refused(write_sql, tmp_path):
    whole = bytearray(write_sql("a.sql.gz", "t", ["a"], ",".join(f"({number})" for number in range(9999))).read_bytes())
    whole[-5] ^= 255
    path = tmp_path / "b.sql.gz"
    path.write_bytes(whole)
    with pytest.raises(CorruptInput, match=r"b\.sql\.gz"):
        read_numbers(path, "t", ["a"])


def test_a_row_without_end_is_refused_before_it_fills_memory(tmp_path):
    path = tmp_path / "a.sql"
    path.write_text("CREATE TABLE `t` (\n  `a` int,\n  `b` text\n);\nINSERT INTO `t` VALUES (1,'" + "x" * (40 << 20))
    with pytest.raises(CorruptInput, match="not a row of this table"):
        list(read_columns(path, "t", ["a"], ["b"]))


def test_a_line_that_is_no_statement_is_passed_over_whatever_its_length(tmp_path):
    path = tmp_path / "a.sql"
    remark = "-- " + "INSERT INTO `t` VALUES (9);" * 100_000
    path.write_text(f"{remark}\nCREATE TABLE `t` (\n  `a` int\n);\n{remark}\nINSERT INTO `t` VALUES (1);\n{remark}")
    assert read_numbers(path, "t", ["a"]) == [(1,)]


def test_the_columns_of_a_table_are_listed(write_sql):
    path = write_sql("a.sql.gz", "pagelinks", ["pl_from", "pl_target_id"], "(1,2)")
    assert list_columns(path, "pagelinks") == {"pl_from": False, "pl_target_id": False}
    with pytest.raises(ConfigError, match="no table page; it has pagelinks"):
        list_columns(path, "page")


def test_a_column_may_be_null_unless_its_own_declaration_says_no(tmp_path):
    columns = [
        "`a` int(8) unsigned NOT NULL DEFAULT 0",
        "`b` bigint(20) unsigned DEFAULT NULL",
        "`c` varbinary(255) not  null DEFAULT ''",
        "`d` varbinary(255) DEFAULT 'NOT NULL' COMMENT 'it\\'s NOT NULL'",
        "PRIMARY KEY (`a`)",
    ]
    path = tmp_path / "a.sql"
    path.write_text("CREATE TABLE `t` (\n  " + ",\n  ".join(columns) + "\n) ENGINE=InnoDB;\n")
    assert list_columns(path, "t") == {"a": False, "b": True, "c": False, "d": True}


@pytest.mark.parametrize("file", REAL_TABLES)
def test_columns_of_real_tables_are_those_of_their_rows(shared_data, file):
    path, table = shared_data / "sql-fixtures" / f"{file}.sql.gz", file.rpartition("-")[2]
    for column in list_columns(path, table):
        values = [value for (value,) in read_table(path, table, [column])]
        if all(isinstance(value, int) for value in values):
            assert [number for (number,) in read_numbers(path, table, [column])] == values
        elif not any(isinstance(value, int | float) for value in values):
            texts = [text for block in read_columns(path, table, [], [column]) for text in block.texts[0].to_pylist()]
            assert texts == [value.encode() if isinstance(value, str) else value for value in values]
