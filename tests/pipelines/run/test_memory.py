"""A run without the memory it needs says so before it begins."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.errors import ConfigError
from pipelines.run.memory import GIB, check_memory, list_limits
from tests.chaos.driving import ROOT


@pytest.mark.parametrize("kilobytes", [2_097_152, 838_860])
def test_a_run_with_too_little_address_space_ends_with_one_line(kilobytes: int, tmp_path: Path) -> None:
    run = f"ulimit -v {kilobytes}; exec {sys.executable} -m pipelines.cli.main run --workspace {tmp_path / 'w'}"
    done = subprocess.run(["bash", "-c", run], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2
    needed = 3 + 0.25 * (os.cpu_count() or 1)
    (said,) = done.stderr.splitlines()
    assert said.startswith(f"synth: memory: the address space (ulimit -v) is limited to {kilobytes / 2**20:.1f} GB")
    assert f"a run needs {needed:.1f} GB; ulimit -v unlimited" in said
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
def test_a_control_group_with_too_little_memory_is_named(line: str, file: str, tmp_path: Path) -> None:
    path = lay_group(tmp_path, line, file, str(GIB // 2))
    with pytest.raises(
        ConfigError, match=r"is limited to 0\.5 GB, and a run needs 1\.0 GB; give the container"
    ) as told:
        check_memory(tmp_path)
    assert str(path) in str(told.value)


@pytest.mark.parametrize("text", ["max", str(2 * GIB)])
def test_a_control_group_with_enough_memory_is_no_hindrance(text: str, tmp_path: Path) -> None:
    lay_group(tmp_path, "0::/job", "job/memory.max", text)
    check_memory(tmp_path)
    assert [limit.limit for limit in list_limits(tmp_path)] == ([] if text == "max" else [2 * GIB])
