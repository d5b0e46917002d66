"""Each kind of file in a workspace, with a byte turned over or gone: a check names it, and the next run makes it again.

Nothing is silent and nothing ends in a traceback; no request is asked twice, and what a run is for has its bytes again.
"""

import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pipelines.run.integrity import read_pictures
from tests.chaos.driving import (
    SMALL,
    Outcome,
    call_here,
    copy_workspace,
    digest_files,
    list_settings,
    read_ledger,
    share_small_run,
)

Capture = pytest.CaptureFixture[str]
RUN = ("run", *list_settings((*SMALL, "runtime.workers=1")), "--limit", 60)
KEPT = ("corpus/**/*", "images/**/*", "releases/**/*", "stages/**/*.parquet", "stages/**/used-*")
"""What must have its bytes again."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of file."""

    pattern: str
    said: str
    """What a check advises."""
    made: str = ""
    """What the next run makes again; empty for no stage."""
    picture: str = ""
    """Which pictures, by :func:`list_pictures`."""


BUILT, GENERATED, REPLAYED = "builds this corpus again", "generates this world again", "again from recorded replies"
AGAIN = "`synth run` makes it again"
PUBLISHED = "publishes this version again"
KINDS = (
    Kind("corpus/*/manifest.json", BUILT, "corpus"),
    Kind("corpus/*/checksums.bin", BUILT, "corpus"),
    Kind("corpus/*/pages.parquet", BUILT, "corpus"),
    Kind("corpus/*/pages.arrow", BUILT, "corpus"),
    Kind("corpus/*/pages-ends.npy", BUILT, "corpus"),
    Kind("corpus/*/facts-offsets.npy", BUILT, "corpus"),
    Kind("corpus/*/title-hashes.npy", BUILT, "corpus"),
    Kind("corpus/*/graph/targets.npy", BUILT, "corpus"),
    Kind("corpus/*/store/texts-*.zst", BUILT, "corpus"),
    Kind("corpus/*/store/spans.npy", BUILT, "corpus"),
    Kind("corpus/*/search/*.idx", BUILT, "corpus"),
    Kind("corpus/*/search/meta.json", BUILT, "corpus"),
    Kind("corpus/*/rejected-00000.parquet", BUILT, "corpus"),
    Kind("worlds/*/*multistream.xml.bz2", GENERATED),
    Kind("worlds/*/images/*.jpg", GENERATED),
    Kind("worlds/*/checksums.bin", GENERATED),
    Kind("stages/seeds/*/part-*.parquet", REPLAYED, "seeds"),
    Kind("stages/seeds/*/rejected-*.parquet", REPLAYED, "seeds"),
    Kind("stages/paths/*/part-*.parquet", REPLAYED, "paths"),
    Kind("stages/questions/*/part-*.parquet", REPLAYED, "questions"),
    Kind("stages/questions/*/rejected-*.parquet", REPLAYED, "questions"),
    Kind("stages/questions/*/failed-*.parquet", REPLAYED, "questions"),
    Kind("stages/questions/*/used-*.txt", REPLAYED, "questions"),
    Kind("stages/questions/*/part-*.json", AGAIN),
    Kind("stages/questions/*/manifest.json", REPLAYED, "questions"),
    Kind("stages/rollouts/*/part-*.parquet", REPLAYED, "rollouts"),
    Kind("stages/trajectories/*/part-*.parquet", REPLAYED, "trajectories"),
    Kind("stages/trajectories/*/manifest.json", REPLAYED, "trajectories"),
    Kind("stages/releases/*/part-*.parquet", REPLAYED, "releases"),
    Kind("stages/releases/*/published.json", "publishes again"),
    Kind("images/*/*.jpg", REPLAYED, picture="anchor"),
    Kind("images/*/*.jpg", REPLAYED, picture="thumbnail"),
    Kind("images/*/*.jpg", REPLAYED, "selections", "worsened"),
    Kind("releases/sft/*/manifest.json", PUBLISHED),
    Kind("releases/sft/*/data/*.parquet", PUBLISHED),
    Kind("releases/sft/*/proofs/*.parquet", PUBLISHED),
    Kind("releases/rl/*/README.md", PUBLISHED),
    Kind("derived/*.npy", AGAIN),
    Kind("latest.json", "notes again"),
    Kind("runs/*/latest.json", "notes again"),
    Kind("inputs.json", "hashes the inputs again"),
    Kind("synth.duckdb", AGAIN),
)


@dataclass(frozen=True, slots=True)
class Finished:
    """A finished workspace, and what of it must have its bytes after each mending."""

    source: Path
    root: Path
    digests: dict[str, str]
    asked: int

    @classmethod
    def copy(cls, source: Path, root: Path) -> "Finished":
        copy_workspace(source, root)
        return cls(source, root, digest_kept(root), len(read_ledger(root).asks))

    def restore(self) -> None:
        """Put all back unless it is as it was."""
        if digest_kept(self.root) != self.digests:
            shutil.rmtree(self.root)
            copy_workspace(self.source, self.root)


def find_file(root: Path, kind: Kind) -> Path:
    """Return a file of a kind that is not empty; a picture that the stage makes, or else one that the corpus has."""
    files = sorted(path for path in root.glob(kind.pattern) if path.stat().st_size)
    if kind.picture:
        chosen = list_pictures(root)[kind.picture]
        files = [path for path in files if path.stem in chosen]
    return files[len(files) // 2]


def list_pictures(root: Path) -> dict[str, set[str]]:
    """Return the sha256 of pictures by what they are: an anchor's, a worsened copy of one, a hit's thumbnail."""
    anchors = read_pictures(root.glob("stages/groundings/*/part-*.parquet")).keys()
    parts = list(root.glob("stages/selections/*/part-*.parquet"))
    rows = [row for part in parts for row in pq.read_table(part, columns=["picture", "original"]).to_pylist()]
    worsened = {row["picture"]["sha256"] for row in rows if row["original"]}
    thumbnails = read_pictures(parts).keys() - anchors - worsened
    return {"anchor": set(anchors), "worsened": worsened, "thumbnail": thumbnails}


def digest_kept(root: Path) -> dict[str, str]:
    return {name: digest for pattern in KEPT for name, digest in digest_files(root, pattern).items()}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    source, _ = share_small_run(tmp_path_factory.getbasetemp())
    # Brackets: no reader may take the path for a pattern.
    return Finished.copy(source, tmp_path_factory.mktemp("integrity") / "work [1]space")


def flip(path: Path) -> None:
    """Turn one bit of a file over."""
    rng, data = random.Random(path.name), bytearray(path.read_bytes())
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.chmod(0o644)
    path.write_bytes(data)


HARMS: dict[str, Callable[[Path], None]] = {"flipped": flip, "removed": Path.unlink}


def call(capsys: Capture, finished: Finished, *command: object) -> Outcome:
    outcome = call_here(capsys, *command, "--workspace", finished.root, "--json")
    assert "Traceback" not in outcome.err
    return outcome


CASES = [
    pytest.param(kind, harm, id=f"{kind.pattern} {kind.picture} {name}")
    for kind in KINDS
    for name, harm in HARMS.items()
]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "harm"), [case for case in CASES if case.id != "derived/*.npy  removed"])
def test_damage_is_named_by_a_check_and_by_the_next_run_which_makes_it_again(
    kind: Kind, harm: Callable[[Path], None], finished: Finished, capsys: Capture
) -> None:
    path = find_file(finished.root, kind)
    harm(path)
    try:
        check = call(capsys, finished, "status", "--check")
        findings = check.document["findings"]
        assert check.code == 1
        assert [kind.said in finding["remedy"] for finding in findings] == [True] * len(findings) != []
        assert any(Path(finding["path"]) in (path, path.parents[1], path.parent) for finding in findings), findings
        run = call(capsys, finished, *RUN)
        assert run.code == 0, run.err
        assert [stage["stage"] for stage in run.document["stages"] if stage["ran"]] == [kind.made] * bool(kind.made)
        assert call(capsys, finished, "status", "--check").code == 0
        assert digest_kept(finished.root) == finished.digests
        assert len(read_ledger(finished.root).asks) == finished.asked
    finally:
        finished.restore()
