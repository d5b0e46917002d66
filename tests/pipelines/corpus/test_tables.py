import hashlib

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.corpus.tables import (
    BATCH_ROWS,
    GroupedTable,
    MappedTable,
    OffsetCounter,
    TableWriter,
    cut_groups,
    open_spill,
    stream_tables,
)
from pipelines.errors import ConfigError, Unavailable

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


def test_rows_are_found_by_number_across_batches(tmp_path):
    write_pieces(tmp_path, [BATCH_ROWS + 2])
    table = MappedTable(tmp_path, "toy")
    assert len(table) == BATCH_ROWS + 2
    for number in (0, BATCH_ROWS - 1, BATCH_ROWS, BATCH_ROWS + 1):
        assert table.row(number) == [number, [str(number)]]
    assert table.column("node").to_pylist() == list(range(BATCH_ROWS + 2))
    wanted = range(BATCH_ROWS - 2, BATCH_ROWS + 2)
    assert table.rows(wanted) == [(number, [str(number)]) for number in wanted]
    assert table.rows(range(5, 5)) == []


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


def test_rows_nodes_and_tables_that_are_not_there_are_errors(tmp_path):
    with pytest.raises(ConfigError, match=r"toy\.arrow"):
        MappedTable(tmp_path, "toy")
    write_pieces(tmp_path, [1])
    OffsetCounter(1).write(tmp_path, "toy")
    for number in (-1, 1):
        with pytest.raises(IndexError, match="no row"):
            MappedTable(tmp_path, "toy").row(number)
        with pytest.raises(IndexError, match=f"no node {number}"):
            GroupedTable(tmp_path, "toy").rows(number)


@given(st.lists(st.integers(0, 5), max_size=30).map(sorted), st.integers(1, 7))
def test_groups_are_whole_however_their_tables_are_cut(keys, piece):
    table = pa.table({"node": pa.array(keys, pa.int64())})
    cut = list(cut_groups((table.slice(start, piece) for start in range(0, len(keys), piece)), "node"))
    assert [key for part in cut for key in part["node"].to_pylist()] == keys
    groups = [set(part["node"].to_pylist()) for part in cut]
    assert sum(map(len, groups)) == len(set(keys))


SORTED = "SELECT hash(n) AS number, 'some words' AS words FROM range(3_000_000) t(n) ORDER BY number"


def test_too_little_memory_is_a_configuration_error(tmp_path):
    with pytest.raises(ConfigError, match=r"in 3 MB of memory .* expected more"), open_spill(tmp_path, 3) as database:
        list(stream_tables(database, SORTED, 1000))
    with pytest.raises(ConfigError, match="in 3 MB of memory"), open_spill(tmp_path, 3) as database:
        database.execute(f"CREATE TABLE found AS {SORTED}")
    with pytest.raises(ConfigError, match=r"in 256 MB .*\(Out of Memory Error: no block\)"), open_spill(tmp_path):
        raise OSError("Error: Out of Memory Error: no block\n\nPossible solutions")


def test_a_disk_too_full_to_spill_to_can_be_emptied(tmp_path):
    def sort():
        with open_spill(tmp_path, 48) as database:
            database.execute("SET max_temp_directory_size = '4MB'")
            list(stream_tables(database, SORTED, 1000))

    with pytest.raises(Unavailable, match="free some space and run again"):
        sort()
