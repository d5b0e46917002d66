"""Random bytes of a finished workspace turned into others: is each harmless, named, or mended?

``python -m tests.chaos.flips --flips 1000 --seed 1`` prints a table by kind of file and ends with 1 if a change was
silent, a command ended in a defect, or a release came out otherwise. A flip draws a kind, a file of it and a byte, each
evenly; generated worlds are input and left alone. Flips in different units (a stage's folder, a release, a picture, a
note) are laid in together and judged by one ``synth status --check``, and ``synth sql`` reads the funnel; what is not
named there is judged again alone, since one finding may hide another. *Named*: a finding is of the file or the folder
it lies in. *Harmless*: nothing is found, and what readers get of the file (replies, views) is what it was, or nobody
reads it. *Silent* is all else. Then, ``--rounds`` times, flips of every kind but replies are left in and ``synth run``
makes all again: *mended* is what the check no longer finds while every release has its bytes.
"""

import argparse
import io
import json
import random
import shutil
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import duckdb

from pipelines.cli.main import main
from tests.chaos.driving import SMALL, digest_files, list_settings, run_small

RUN = ("run", *list_settings(SMALL), "--limit", "60")
UNREAD = ("logs", ".lock", ".catalogue", "flow-run.txt")
"""What is read by people alone, or by a command that writes it again whatever it says."""
TOGETHER = 40
"""Flips that are judged by one check."""
FOUND = ("harmless", "named", "silent", "defect")


@dataclass(frozen=True, slots=True)
class Flip:
    """One byte of one file."""

    kind: str
    name: str
    """Path inside the workspace."""
    place: int
    mask: int

    @property
    def unit(self) -> str:
        """What a finding of this file mostly hides other findings of."""
        depth = {"stages": 3, "releases": 3}.get(self.name.partition("/")[0], 9)
        return "/".join(self.name.split("/")[:depth])

    @property
    def is_unread(self) -> bool:
        """Whether nothing that a command decides comes of the file."""
        return self.name.split("/")[0] in UNREAD

    def apply(self, root: Path) -> None:
        """Change the byte; a second time changes it back."""
        path = root / self.name
        data = bytearray(path.read_bytes())
        data[self.place] ^= self.mask
        path.chmod(0o644)
        path.write_bytes(data)


@dataclass(frozen=True, slots=True)
class Ending:
    """How a command ended."""

    code: int
    out: str
    err: str


def call(*arguments: str) -> Ending:
    """Run a command in this process."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main(list(arguments))
        except SystemExit as ending:
            code = ending.code if isinstance(ending.code, int) else 1
    return Ending(code, out.getvalue(), err.getvalue())


def name_kind(name: str) -> str:
    """Return the kind of a file by its path: its folder and what it is there."""
    top, *inner = name.split("/")
    if top == "stages":
        return f"stages: {'rows' if name.endswith('.parquet') else 'notes'}"
    if top == "releases":
        return f"releases: {'rows and proofs' if name.endswith('.parquet') else 'documents'}"
    return top if inner else "notes"


def list_files(root: Path) -> dict[str, list[str]]:
    """Return the files of a workspace by kind, those left out that are empty or input."""
    found: dict[str, list[str]] = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.is_file() and path.stat().st_size and not name.startswith("worlds/"):
            found.setdefault(name_kind(name), []).append(name)
    return found


def draw_flips(root: Path, count: int, rng: random.Random) -> Iterator[Flip]:
    """Yield flips: of a kind, of a file of it, of a byte."""
    files = list_files(root)
    for _ in range(count):
        kind = rng.choice(sorted(files))
        name = rng.choice(files[kind])
        yield Flip(kind, name, rng.randrange((root / name).stat().st_size), rng.randrange(1, 256))


def read_content(path: Path) -> object:
    """Return what readers get of a file, or what they are told."""
    if path.parts[-2:] == ("replies", "replies.db"):
        try:
            with closing(sqlite3.connect(path)) as store:
                # The rest are dates, sizes and a log of what was asked: statistics, which decide no row.
                return store.execute("SELECT key, backend, reply FROM replies").fetchall()
        except sqlite3.Error as error:
            return str(error)
    if path.name == "synth.duckdb":
        try:
            with duckdb.connect(str(path), read_only=True) as catalogue:
                return catalogue.execute("SELECT view_name, sql FROM duckdb_views()").fetchall()
        except duckdb.Error as error:
            return str(error)
    return path.read_bytes()


class Judge:
    """Holds a workspace to what it was."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.whole = {name: read_content(root / name) for name in ("replies/replies.db", "synth.duckdb")}
        self.releases = digest_files(root / "releases", "**/*")

    def judge_all(self, flips: Sequence[Flip]) -> Iterator[tuple[Flip, str]]:
        """Yield what each flip is: flips of different units together, what is then not named alone."""
        waiting = list(flips)
        while waiting:
            batch: dict[str, Flip] = {}
            for flip in waiting:
                if len(batch) < TOGETHER:
                    batch.setdefault(flip.unit, flip)
            together = list(batch.values())
            waiting = [flip for flip in waiting if flip not in together]
            named, is_defect = self._check(together)
            for flip in together:
                if flip in named:
                    yield flip, "named"
                elif flip.is_unread and not is_defect:
                    yield flip, "harmless"
                else:
                    yield flip, self._judge_alone(flip)

    def _check(self, flips: Sequence[Flip]) -> tuple[list[Flip], bool]:
        for flip in flips:
            flip.apply(self.root)
        try:
            check = call("status", "--check", "--json", "--workspace", str(self.root))
            asked = call("sql", "from funnel", "--workspace", str(self.root))
        finally:
            for flip in flips:
                flip.apply(self.root)
        ends = (check, asked)
        if any(end.code not in (0, 1, 2, 3) or "Traceback" in end.err for end in ends):
            return [], True
        if not check.out:
            # It ended before it could look at all files, with one message.
            return [flip for flip in flips if Path(flip.name).name in check.err], False
        found = {Path(finding["path"]) for finding in json.loads(check.out)["findings"]}
        return [flip for flip in flips if self._is_named(flip, found)], False

    def _is_named(self, flip: Flip, found: set[Path]) -> bool:
        path = (self.root / flip.name).resolve()
        places = {path, *path.parents[: len(Path(flip.name).parts) - 2]} if "/" in flip.name else {path}
        return any(place in places or (path.parent == place.parent and "*" in place.name) for place in found)

    def _judge_alone(self, flip: Flip) -> str:
        named, is_defect = self._check([flip])
        if is_defect or named:
            return "defect" if is_defect else "named"
        if flip.is_unread:
            return "harmless"
        flip.apply(self.root)
        try:
            return "harmless" if read_content(self.root / flip.name) == self.whole.get(flip.name, b"") else "silent"
        finally:
            flip.apply(self.root)

    def mend(self, flips: Sequence[Flip]) -> str:
        """Leave flips in and run; return what is not as it was, empty for nothing."""
        for flip in flips:
            path = self.root / flip.name
            # An earlier round may have made it again otherwise, or found that nobody needs it.
            if path.is_file() and path.stat().st_size > flip.place:
                flip.apply(self.root)
        run = call(*RUN, "--workspace", str(self.root))
        if run.code:
            return f"run: exit {run.code}: {run.err[-300:]}"
        if digest_files(self.root / "releases", "**/*") != self.releases:
            return "a release has other bytes"
        check = call("status", "--check", "--workspace", str(self.root))
        return f"check: {check.out[-300:]}" if check.code else ""


def print_table(found: Counter[tuple[str, str]]) -> None:
    """Print how many flips of each kind came to what."""
    kinds = sorted({kind for kind, _ in found})
    print(f"| {'file':<28} | flips | {' | '.join(f'{name:>8}' for name in FOUND)} |")  # noqa: T201 - a script
    print(f"|{'-' * 30}|{'-' * 7}|{('-' * 10 + '|') * len(FOUND)}")  # noqa: T201
    for kind in [*kinds, "all"]:
        counts = [sum(found[each, name] for each in ([kind] if kind != "all" else kinds)) for name in FOUND]
        print(f"| {kind:<28} | {sum(counts):>5} | {' | '.join(f'{count:>8}' for count in counts)} |")  # noqa: T201


def run_flips(root: Path, flips: int, seed: int, rounds: int) -> tuple[Counter[tuple[str, str]], list[str]]:
    """Judge random flips of a workspace, and mend some; return counts by kind and finding, and what went wrong."""
    rng, judge, found, wrong = random.Random(seed), Judge(root), Counter[tuple[str, str]](), list[str]()
    drawn = list(dict.fromkeys(draw_flips(root, flips, rng)))
    for flip, what in judge.judge_all(drawn):
        found[flip.kind, what] += 1
        if what in ("silent", "defect"):
            wrong.append(f"{what}: {flip}")
    mendable = [flip for flip in drawn if flip.kind not in ("replies", "logs")]
    for _ in range(rounds):
        by_file = {flip.name: flip for flip in rng.sample(mendable, min(TOGETHER, len(mendable)))}
        if said := judge.mend(list(by_file.values())):
            return found, [*wrong, said]
    return found, wrong


def start(arguments: Sequence[str]) -> int:
    """Run the script."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--flips", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=1, help="how often flips are left in and a run mends them")
    parser.add_argument("--workspace", type=Path, help="a finished one of the small run, copied; made if not given")
    asked, since = parser.parse_args(arguments), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="synth-flips-") as folder:
        root = Path(folder).resolve() / "workspace"
        if asked.workspace:
            shutil.copytree(asked.workspace, root)
        else:
            run_small(root, "--limit", 60)
        # A copy lies elsewhere than it did: the first command writes the catalogue for its new place.
        call("status", "--workspace", str(root))
        found, wrong = run_flips(root, asked.flips, asked.seed, asked.rounds)
    print_table(found)
    print(f"\n{asked.rounds} rounds of mending; {time.monotonic() - since:,.0f} s")  # noqa: T201
    print("\n".join(wrong) or "0 silent, 0 defects; every release has its bytes")  # noqa: T201
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(start(sys.argv[1:]))
