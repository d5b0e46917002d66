"""A run without the memory it needs says so before it begins."""

import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from pipelines.errors import ConfigError
from pipelines.memory import GIB, count_segments, limit_duckdb, measure_memory
from pipelines.run.memory import check_address_space, list_tight_groups
from pipelines.run.views import connect_database
from tests.chaos.driving import ROOT


@pytest.mark.parametrize("kilobytes", [2_097_152, 838_860])
def test_a_run_with_too_little_address_space_ends_with_one_line(kilobytes: int, tmp_path: Path) -> None:
    run = f"ulimit -v {kilobytes}; exec {sys.executable} -m pipelines.cli.main run --workspace {tmp_path / 'w'}"
    done = subprocess.run(["bash", "-c", run], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2
    needed = 3 + 0.25 * len(os.sched_getaffinity(0))
    (said,) = done.stderr.splitlines()
    assert said.startswith(f"synth: memory: the address space (ulimit -v) is limited to {kilobytes / 2**20:.1f} GiB")
    assert f"a run needs {needed:.1f} GiB; ulimit -v unlimited" in said
    assert not (tmp_path / "w").exists()


def lay_group(root: Path, line: str, file: str, text: str) -> Path:
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(f"{line}\n")
    path = root / "sys/fs/cgroup" / file
    path.parent.mkdir(parents=True)
    path.write_text(f"{text}\n")
    return path


@pytest.mark.parametrize(
    ("line", "file"),
    [
        ("0::/", "memory.max"),
        ("0::/job/step", "job/memory.max"),
        ("5:memory:/docker/a1", "memory/docker/a1/memory.limit_in_bytes"),
    ],
)
def test_a_control_group_with_little_memory_is_warned_of(line: str, file: str, tmp_path: Path) -> None:
    path = lay_group(tmp_path, line, file, str(GIB // 4))
    (said,) = list_tight_groups(tmp_path)
    assert f"({path}) is limited to 0.2 GiB, and a run needs 0.5 GiB; give the container" in said


@pytest.mark.parametrize("text", ["max", "1000000000"])
def test_a_control_group_with_enough_memory_is_not_mentioned(text: str, tmp_path: Path) -> None:
    lay_group(tmp_path, "0::/job", "job/memory.max", text)
    assert not list(list_tight_groups(tmp_path))


def test_cores_of_the_host_that_a_run_may_not_use_need_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 128)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr("resource.getrlimit", lambda _: (32 * GIB, 32 * GIB))
    check_address_space()
    monkeypatch.setattr("resource.getrlimit", lambda _: (3 * GIB, 3 * GIB))
    with pytest.raises(ConfigError, match=r"limited to 3\.0 GiB, and a run needs 3\.5 GiB"):
        check_address_space()


@pytest.mark.parametrize(
    ("group", "spaces", "limit", "segments"),
    [(4, 64, "2048MiB", 2), (64, 5, "2560MiB", 2), (64, 64, "8192MiB", 8), (1, 64, "512MiB", 1)],
)
def test_duckdb_and_the_search_index_take_half_of_the_least_memory_that_anything_gives(
    group: int, spaces: int, limit: str, segments: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_group(tmp_path, "0::/job/step", "job/memory.max", str(group * GIB))
    monkeypatch.setattr("resource.getrlimit", lambda _: (spaces * GIB, spaces * GIB))
    monkeypatch.setattr("os.sysconf", lambda name: {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 4 * GIB // 1024}[name])
    assert measure_memory(tmp_path) == min(group, spaces, 16) * GIB
    assert limit_duckdb(tmp_path) == {"memory_limit": limit}
    assert [count_segments(threads, tmp_path) for threads in (1, 32)] == [1, segments]


def test_a_database_in_memory_and_one_in_a_file_keep_to_their_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect_database().execute(f"ATTACH '{tmp_path / 'a.db'}'")
    monkeypatch.setattr("pipelines.memory.measure_memory", lambda _: GIB)
    monkeypatch.setenv("SLURM_CPUS_ON_NODE", "1")
    for path in (None, tmp_path / "a.db"):
        with connect_database(path) as database:
            asked = "SELECT current_setting('memory_limit'), current_setting('threads')"
            assert database.execute(asked).fetchone() == ("512.0 MiB", 1)
            with pytest.raises(duckdb.OutOfMemoryException):
                database.execute("SELECT list(repeat('x', 1000) || n) FROM range(2000000) numbers(n)").fetchall()
