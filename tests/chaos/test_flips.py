"""118 bits that a disk turns over in a finished workspace: each is harmless or named, no release changes in silence."""

import random
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.driving import SMALL, Outcome, call_here, copy_workspace, digest_files, list_settings, share_small_run

Capture = pytest.CaptureFixture[str]
SECONDS = re.compile(r"\d+\.\d+ s\b|\s-\s|\s\d+\.\d\s")
LIMIT = ("--limit", 60)


@dataclass(frozen=True, slots=True)
class Finished:
    """A workspace in which everything is done, as it was before any bit was turned."""

    root: Path
    before: dict[Path, bytes]

    def list_files(self, pattern: str) -> list[Path]:
        """Return the files that are not empty and whose path inside matches."""
        names = {path: path.relative_to(self.root).as_posix() for path, data in self.before.items() if data}
        return [path for path, name in sorted(names.items()) if re.search(pattern, name)]

    def flip(self, path: Path, rng: random.Random) -> None:
        """Turn one bit of a file over."""
        data = bytearray(self.before[path])
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.chmod(0o644)
        path.write_bytes(data)

    def restore(self) -> list[Path]:
        """Put every file back and return those that were not as before."""
        now = {path: path.read_bytes() for path in list_kept(self.root)}
        changed = [path for path in {**now, **self.before} if now.get(path) != self.before.get(path)]
        for path in changed:
            path.unlink(missing_ok=True)
            if path in self.before:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(self.before[path])
        return changed


def list_kept(root: Path) -> list[Path]:
    """Return the files of a workspace but for worlds, which are input, and what anybody may remove."""
    tops = {path for path in root.iterdir() if path.name not in ("worlds", "derived", "logs", ".lock")}
    return sorted(path for top in tops for path in ([top] if top.is_file() else top.rglob("*")) if path.is_file())


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    source, _ = share_small_run(tmp_path_factory.getbasetemp())
    root = copy_workspace(source, tmp_path_factory.mktemp("flips") / "workspace")
    return Finished(root, {path: path.read_bytes() for path in list_kept(root)})


@pytest.fixture
def whole(finished: Finished) -> Iterator[Finished]:
    yield finished
    finished.restore()


def is_harmless(outcome: Outcome, usual: str) -> bool:
    """Whether a command said what it says of the whole workspace."""
    return outcome.code == 0 and SECONDS.sub("_", outcome.out) == SECONDS.sub("_", usual)


def check_named(outcome: Outcome, path: Path, root: Path) -> None:
    """Assert that a command names a file, or the stage, release or store it lies in; a run may go on without it."""
    said = (outcome.out + outcome.err).replace("\n", "")
    assert outcome.code in (1, 2, 3) or "dealt with" in said, (path, outcome)
    assert "Traceback" not in said, (path, outcome)
    top, *names = path.relative_to(root).parts
    assert any(name in said for name in ([top] if top == "replies" else names or [top])), (path, outcome)


Command = tuple[Any, ...]
Choose = Callable[[Path], list[Command]]


def flip_each(whole: Finished, capsys: Capture, pattern: str, count: int, choose: Choose) -> int:
    """Turn so many bits, one at a time, and run commands at each; return how many were named."""
    rng, files, named = random.Random(pattern), whole.list_files(pattern), 0
    usual: dict[Command, str] = {}
    for _ in range(count):
        path = rng.choice(files)
        commands = choose(path)
        for command in commands:
            if command not in usual:
                usual[command] = call_here(capsys, *command, "--workspace", whole.root).out
        whole.flip(path, rng)
        harmless = True
        for command in commands:
            outcome = call_here(capsys, *command, "--workspace", whole.root)
            if not is_harmless(outcome, usual[command]):
                check_named(outcome, path, whole.root)
                harmless = False
        named += not harmless
        written = set(whole.restore()) - {path}
        assert not [other for other in written if other.is_relative_to(whole.root / "releases")], (path, written)
    return named


RUN: Command = ("run", "--recipe", "demo", *list_settings(SMALL), *LIMIT)


def test_a_flip_in_a_sidecar_or_manifest_is_harmless_or_named(whole: Finished, capsys: Capture) -> None:
    choose: Choose = lambda _: [("status",), RUN]  # noqa: E731
    assert flip_each(whole, capsys, r"^stages/.*\.json$|^latest", 16, choose) > 4


def test_a_flip_in_the_corpus_is_named(whole: Finished, capsys: Capture) -> None:
    choose: Choose = lambda _: [("status", "--check")]  # noqa: E731
    assert flip_each(whole, capsys, r"^corpus/", 16, choose) == 16


def test_a_flip_in_the_replies_is_harmless_or_named(whole: Finished, capsys: Capture) -> None:
    assert flip_each(whole, capsys, r"^replies/replies\.db$", 40, lambda _: [("replies", "check")]) > 6


def test_a_flip_in_a_release_is_named(whole: Finished, capsys: Capture) -> None:
    choose: Choose = lambda path: [("verify", whole.root.joinpath(*path.relative_to(whole.root).parts[:3]))]  # noqa: E731
    assert flip_each(whole, capsys, r"^releases/.*(?<!/manifest\.json)$", 16, choose) == 16


def test_a_release_made_again_over_flipped_rows_and_pictures_has_its_bytes_and_they_are_named(
    whole: Finished, capsys: Capture
) -> None:
    """Thirty bits: the run names each, makes it again, and then the release."""
    rng, files = random.Random(3), whole.list_files(r"^stages/(?!releases).*\.parquet$|^images/")
    remove_releases(whole.root)
    assert call_here(capsys, *RUN, "--workspace", whole.root).code == 0
    usual = digest_files(whole.root / "releases", "**/*")
    flipped = rng.sample(files, min(30, len(files)))
    for path in flipped:
        whole.flip(path, rng)
    remove_releases(whole.root)
    outcome = call_here(capsys, *RUN, "--workspace", whole.root)
    assert outcome.code == 0, outcome
    assert "Traceback" not in outcome.err
    assert [path for path in flipped if str(path) not in outcome.err] == []
    assert digest_files(whole.root / "releases", "**/*") == usual
    assert call_here(capsys, "status", "--check", "--workspace", whole.root).code == 0


def test_one_run_mends_a_release_and_the_stage_that_made_it(whole: Finished, capsys: Capture) -> None:
    damaged = [
        *whole.list_files(r"^releases/vqa/.*README\.md$"),
        *whole.list_files(r"^stages/releases/.*/manifest\.json$"),
    ]
    for path in damaged:
        whole.flip(path, random.Random(1))
    outcome = call_here(capsys, *RUN, "--workspace", whole.root)
    assert outcome.code == 0, outcome
    assert damaged[0].read_bytes() == whole.before[damaged[0]]


def remove_releases(root: Path) -> None:
    """Remove the stage of releases and what it published, so that the next run makes both again."""
    for folder in ("stages/releases", "releases"):
        shutil.rmtree(root / folder)
