import pytest

from pipelines.corpus.tables import open_spill, stream_tables
from pipelines.errors import ConfigError, Unavailable

SORTED = "SELECT hash(n) AS number, 'some words' AS words FROM range(3_000_000) t(n) ORDER BY number"


def test_rows_come_in_pieces_in_the_order_of_the_query(tmp_path):
    with open_spill(tmp_path) as database:
        tables = list(stream_tables(database, "SELECT n FROM range(10) t(n) ORDER BY n DESC", 4))
    assert [number for table in tables for number in table["n"].to_pylist()] == list(range(10))[::-1]


def test_too_little_memory_to_stream_is_said_so(tmp_path):
    with pytest.raises(ConfigError, match=r"in 3 MB of memory .* expected more"), open_spill(tmp_path, 3) as database:
        list(stream_tables(database, SORTED, 1000))


def test_too_little_memory_to_write_is_said_so(tmp_path):
    with pytest.raises(ConfigError, match="in 3 MB of memory"), open_spill(tmp_path, 3) as database:
        database.execute(f"CREATE TABLE found AS {SORTED}")


def test_a_disk_too_full_to_spill_to_can_be_emptied(tmp_path):
    def sort():
        with open_spill(tmp_path, 48) as database:
            database.execute("SET max_temp_directory_size = '4MB'")
            list(stream_tables(database, SORTED, 1000))

    with pytest.raises(Unavailable, match="free some space and run again"):
        sort()


def test_a_shortage_in_the_middle_of_a_result_is_said_so(tmp_path):
    with (
        pytest.raises(ConfigError, match=r"in 256 MB of memory \(Out of Memory Error: no block\)"),
        open_spill(tmp_path),
    ):
        raise OSError("Error: Out of Memory Error: no block\n\nPossible solutions")


def test_any_other_error_of_the_disk_stays_what_it_is(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such"), open_spill(tmp_path):
        raise FileNotFoundError("no such file")
