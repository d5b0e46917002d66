import hashlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.corpus.tables import BATCH_ROWS, GroupedTable, MappedTable, OffsetCounter, TableWriter
from pipelines.errors import ConfigError

SCHEMA = pa.schema([("node", pa.uint32()), ("names", pa.list_(pa.string()))])


def write_pieces(folder, sizes):
    folder.mkdir(exist_ok=True)
    start = 0
    with TableWriter(folder, "toy", SCHEMA, mapped=True) as writer:
        for size in sizes:
            numbers = range(start, start + size)
            writer.write_columns({"node": list(numbers), "names": [[str(number)] for number in numbers]})
            start += size
    return [hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in ("toy.parquet", "toy.arrow")]


@pytest.mark.parametrize("sizes", [[BATCH_ROWS + 1], [1, BATCH_ROWS], [0, BATCH_ROWS - 1, 0, 2], [3] * 21_845 + [2]])
def test_the_bytes_do_not_tell_how_rows_came(tmp_path, sizes):
    assert write_pieces(tmp_path / "cut", sizes) == write_pieces(tmp_path / "whole", [sum(sizes)])


def test_batches_have_one_size_but_for_the_last(tmp_path):
    write_pieces(tmp_path, [2 * BATCH_ROWS + 5])
    groups = pq.ParquetFile(tmp_path / "toy.parquet").metadata
    assert [groups.row_group(number).num_rows for number in range(3)] == [BATCH_ROWS, BATCH_ROWS, 5]


def test_rows_are_found_by_number_across_batches(tmp_path):
    write_pieces(tmp_path, [BATCH_ROWS + 2])
    table = MappedTable(tmp_path, "toy")
    assert len(table) == BATCH_ROWS + 2
    for number in (0, BATCH_ROWS - 1, BATCH_ROWS, BATCH_ROWS + 1):
        assert table.row(number) == [number, [str(number)]]
    assert table.column("node").to_pylist() == list(range(BATCH_ROWS + 2))


@pytest.mark.parametrize("number", [-1, 3])
def test_a_row_that_is_not_there_is_an_index_error(tmp_path, number):
    write_pieces(tmp_path, [3])
    with pytest.raises(IndexError, match="no row"):
        MappedTable(tmp_path, "toy").row(number)


def test_a_table_of_no_rows_opens(tmp_path):
    write_pieces(tmp_path, [0])
    assert len(MappedTable(tmp_path, "toy")) == 0
    assert MappedTable(tmp_path, "toy").column("node").to_pylist() == []


def test_a_missing_table_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"toy\.arrow"):
        MappedTable(tmp_path, "toy")


@settings(max_examples=30)
@given(st.lists(st.integers(0, 9), max_size=40), st.integers(1, 7))
def test_the_rows_of_a_node_lie_where_its_offsets_say(tmp_path_factory, nodes, piece):
    folder = tmp_path_factory.mktemp("grouped")
    nodes.sort()
    counter = OffsetCounter(10)
    with TableWriter(folder, "toy", SCHEMA, mapped=True) as writer:
        for start in range(0, len(nodes), piece):
            cut = nodes[start : start + piece]
            writer.write_rows([(node, []) for node in cut])
            counter.add(np.array(cut))
    counter.write(folder, "toy")
    grouped = GroupedTable(folder, "toy")
    for node in range(10):
        rows = [grouped.table.row(number)[0] for number in grouped.rows(node)]
        assert rows == [node] * nodes.count(node)


def test_a_node_beyond_the_table_is_an_index_error(tmp_path):
    write_pieces(tmp_path, [1])
    OffsetCounter(1).write(tmp_path, "toy")
    with pytest.raises(IndexError, match="no node 1"):
        GroupedTable(tmp_path, "toy").rows(1)


def test_rows_side_by_side_are_read_across_batches(tmp_path):
    write_pieces(tmp_path, [BATCH_ROWS + 3])
    table = MappedTable(tmp_path, "toy")
    wanted = range(BATCH_ROWS - 2, BATCH_ROWS + 2)
    assert table.rows(wanted) == [(number, [str(number)]) for number in wanted]
    assert table.rows(range(5, 5)) == []
