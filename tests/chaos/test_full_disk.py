"""A disk that is full, read-only or taken: one line that says so, and nothing half made that a later run trusts."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.chaos.driving import (
    call,
    call_here,
    check_one_line,
    copy_workspace,
    digest_outputs,
    list_trusted,
    make_run,
    share_small_run,
)

PAGE = 4096
ROOMY = 96 << 20
Mount = Callable[[int], Path]


def can_mount() -> bool:
    """Whether a file system can be mounted here: Linux and root, and not in a container that forbids it."""
    return sys.platform == "linux" and os.geteuid() == 0 and subprocess.run(
        ["unshare", "--mount", "true"], capture_output=True, check=False
    ).returncode == 0  # fmt: skip


needs_mount = pytest.mark.skipif(not can_mount(), reason="mounting a small file system takes root on Linux")


@contextmanager
def mount_small(folder: Path, size: int) -> Iterator[Path]:
    """Mount a file system of ``size`` bytes on a folder."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Mount]:
    with ExitStack() as mounted:
        yield lambda size: mounted.enter_context(mount_small(tmp_path / "disk", size))


def remount(folder: Path, options: str) -> None:
    """Change a mounted file system's size or make it read-only."""
    subprocess.run(["mount", "-o", f"remount,{options}", str(folder)], check=True)


def measure_folder(*folders: Path) -> int:
    """Return the bytes that folders take in whole pages, entries included."""
    files = [path for folder in folders for path in (folder, *folder.rglob("*"))]
    return sum(-(-path.stat().st_size // PAGE) * PAGE if path.is_file() else PAGE for path in files)


@pytest.fixture
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return share_small_run(tmp_path_factory.getbasetemp())[0]


@pytest.mark.slow
@needs_mount
def test_a_disk_full_of_half_a_world_leaves_none(mount: Mount, clean: Path) -> None:
    disk = mount(measure_folder(clean / "worlds") // 2)
    command = make_run(disk / "work", "--limit", 60, "--until", "seeds")
    assert "disk is full" in check_one_line(call(command), 3)
    assert list_trusted(disk / "work") == []
    remount(disk, f"size={ROOMY}")
    assert [stage["ran"] for stage in call(command).document["stages"]] == [True, True]


@pytest.mark.slow
@needs_mount
def test_a_disk_full_of_half_a_corpus_leaves_none(mount: Mount, clean: Path) -> None:
    disk = mount(measure_folder(clean / "corpus") // 2)
    world = next((clean / "worlds").iterdir())
    command = make_run(disk / "work", "--limit", 60, "--until", "seeds", settings=(f"corpus.world={world}",))
    assert "disk is full" in check_one_line(call(command), 3)
    assert list_trusted(disk / "work") == []
    remount(disk, f"size={ROOMY}")
    assert [stage["ran"] for stage in call(command).document["stages"]] == [True, True]


def begin_work(disk: Path, clean: Path) -> Path:
    """Put a world and its corpus, and nothing else, into a workspace on a disk."""
    for name in ("worlds", "corpus"):
        copy_workspace(clean / name, disk / "work" / name)
    return disk / "work"


@pytest.mark.slow
@needs_mount
@pytest.mark.parametrize(("share", "sealed", "missing"), [(0.0, "corpus", "paths"), (0.35, "paths", "rollouts")])
def test_a_full_disk_amid_the_stages_is_gone_on_from(
    mount: Mount, clean: Path, share: float, sealed: str, missing: str
) -> None:
    rest = measure_folder(*(clean / name for name in ("replies", "stages", "images", "releases")))
    disk = mount(ROOMY)
    work = begin_work(disk, clean)
    # A build needs room for its parts beside the corpus; what fills up here is the disk of the stages after it.
    assert call(make_run(work, "--until", "corpus")).code == 0
    remount(disk, f"size={measure_folder(work) + 10 * PAGE + int(share * rest)}")
    command = make_run(work, "--limit", 60)
    assert "full" in check_one_line(call(command), 3)
    done = " ".join(list_trusted(work))
    assert sealed in done
    assert f"stages/{missing}/" not in done
    remount(disk, f"size={ROOMY}")
    assert call(command).code == 0
    assert digest_outputs(work) == digest_outputs(clean)


@pytest.mark.slow
@needs_mount
def test_a_disk_full_at_publishing_leaves_no_part_of_a_release(mount: Mount, clean: Path) -> None:
    disk = mount(ROOMY)
    work = copy_workspace(clean, disk / "work")
    subprocess.run(
        ["rm", "-r", str(work / "releases"), *map(str, work.glob("stages/releases/*/published.json"))], check=True
    )
    remount(disk, f"size={measure_folder(work) + measure_folder(clean / 'releases') // 2}")
    assert "disk is full" in check_one_line(call(make_run(work, "--limit", 60)), 3)
    whole = {path.parent for path in work.glob("releases/*/*/manifest.json")}
    assert {path for path in work.glob("releases/*/*") if path.is_dir()} == whole
    assert len(whole) < 3
    remount(disk, f"size={ROOMY}")
    assert call(make_run(work, "--limit", 60)).code == 0
    assert digest_outputs(work) == digest_outputs(clean)


@needs_mount
def test_a_read_only_disk_is_a_mistake_of_ours(mount: Mount, capsys: pytest.CaptureFixture[str]) -> None:
    disk = mount(1 << 20)
    remount(disk, "ro")
    assert str(disk / "work") in check_one_line(call_here(capsys, "run", "--workspace", disk / "work"), 2)


@pytest.mark.slow
@needs_mount
def test_a_disk_full_at_the_catalogue_is_said_in_one_line(mount: Mount, clean: Path) -> None:
    disk = mount(ROOMY)
    work = begin_work(disk, clean)
    world = next((work / "worlds").iterdir())
    command = make_run(work, "--until", "corpus", settings=(f"corpus.world={world}",))
    remount(disk, f"size={measure_folder(work) + 24 * PAGE}")
    assert "full" in check_one_line(call(command), 3)
    remount(disk, f"size={ROOMY}")
    assert call(command).code == 0
