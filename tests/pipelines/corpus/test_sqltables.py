import gzip

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipelines.corpus.sqltables import list_columns, read_columns
from pipelines.errors import ConfigError, CorruptInput

MANY = 300
"""Rows that make a statement longer than a block's reading step."""


def read_numbers(path, table, columns):
    blocks = [block.integers for block in read_columns(path, table, columns)]
    assert all(len(block[0]) for block in blocks)
    return [row for block in blocks for row in zip(*(values.tolist() for values in block), strict=True)]


def read_texts(path, table, column):
    return [text for block in read_columns(path, table, [], [column]) for text in block.texts[0].to_pylist()]


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


def test_strings_are_unescaped_bytes(tmp_path):
    path = tmp_path / "a.sql"
    rows = rb"""(NULL),('it\'s a \"q\" \\ (a),(b);'),(''),('a''b'),(0x4142),('""" + b"\xff\\0')"
    path.write_bytes(b"CREATE TABLE `t` (\n  `k` blob\n);\nINSERT INTO `t` VALUES " + rows + b";\n")
    assert read_texts(path, "t", "k") == [None, b'it\'s a "q" \\ (a),(b);', b"", b"a'b", b"AB", b"\xff\0"]


def test_missing_tables_and_columns_are_named(write_sql):
    path = write_sql("a.sql.gz", "pagelinks", ["pl_from", "pl_target_id"], "(1,2)")
    with pytest.raises(ConfigError, match="has no pl_title; it has pl_from, pl_target_id"):
        read_texts(path, "pagelinks", "pl_title")
    for read in (lambda: read_numbers(path, "page", ["page_id"]), lambda: list_columns(path, "page")):
        with pytest.raises(ConfigError, match="no table page; it has pagelinks"):
            read()


def test_cut_and_damaged_files_are_refused(write_sql, tmp_path):
    whole = write_sql("a.sql.gz", "t", ["a"], ",".join(f"({number})" for number in range(9999))).read_bytes()
    broken = {
        "cut.sql.gz": whole[: len(whole) // 2],
        "checksum.sql.gz": whole[:-5] + bytes([whole[-5] ^ 255]) + whole[-4:],
        "plain.sql": gzip.decompress(whole)[:-40],
        "none.sql.gz": b"CREATE TABLE",
    }
    for name, source in broken.items():
        (tmp_path / name).write_bytes(source)
        with pytest.raises(CorruptInput, match=name.replace(".", r"\.")):
            read_numbers(tmp_path / name, "t", ["a"])


@pytest.mark.parametrize(
    ("file", "table", "column", "count"),
    [
        ("aawiki-20260101-pagelinks", "pagelinks", "pl_target_id", 637),
        ("aawiki-20260101-categorylinks", "categorylinks", "cl_target_id", 156),
        ("itwikibooks-20240301-pagelinks", "pagelinks", "pl_target_id", 3),
        ("loginwiki-20240501-pagelinks", "pagelinks", "pl_from", 0),
    ],
)
def test_real_layouts_are_read(shared_data, file, table, column, count):
    assert len(read_numbers(shared_data / "sql-fixtures" / f"{file}.sql.gz", table, [column])) == count


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


def test_a_value_of_another_type_is_refused(tmp_path):
    path = tmp_path / "a.sql"
    for value in ("NULL", "1.5", "'1'", "9223372036854775808"):
        path.write_text(f"CREATE TABLE `t` (\n  `a` int,\n  `b` int\n);\nINSERT INTO `t` VALUES (1,2),(3,{value});\n")
        with pytest.raises(CorruptInput, match=r"a\.sql: column b .* expected whole numbers of at most 64 bits"):
            read_numbers(path, "t", ["a", "b"])
    path = write_rows(tmp_path / "a.sql", ["a", "b"], [(1, b"x"), (1, 2)])
    with pytest.raises(CorruptInput, match=r"column b .* expected strings"):
        read_texts(path, "t", "b")


WRONG = ["(1)", "(1,2,3)", "(1,,3)", "(1,2)(3,4)", "(1 2,3)", "1,(2,3)", "(1,2),5", "((1,2)", "(1,2))", "(1,2),,(3,4)",
         "(1,x)", "(1,2):", "(-,2)", "(1-2,3)", "(,2)", "()", "(1,2,", "('1,2)", "(1,'2'3)", "(1,2)\0"]  # fmt: skip


@pytest.mark.parametrize("times", [1, MANY])
def test_what_is_not_the_table_is_refused_and_never_shifted(tmp_path, times):
    path = tmp_path / "a.sql"
    for wrong in WRONG:
        rows = "(1,2)," * times + wrong + ",(1,2)" * times
        path.write_text(f"CREATE TABLE `t` (\n  `a` int,\n  `b` int\n);\nINSERT INTO `t` VALUES {rows};\n")
        for column in ("a", "b"):
            with pytest.raises(CorruptInput, match=r"a\.sql"):
                read_numbers(path, "t", [column])
