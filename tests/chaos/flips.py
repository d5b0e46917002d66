"""Random bytes of a finished workspace turned into others: is each harmless, named, or mended?

``python -m tests.chaos.flips --flips 1000 --seed 1`` prints a table by kind of file and ends with 1 if a change was
silent, a command ended in a defect, or a release came out otherwise. A flip draws a kind, a file of it and a byte, each
evenly; the dump is input and left alone. Flips in different units (a stage's folder, a release, a picture, a note) are
laid in together and judged by one ``synth status --check``, and ``synth sql`` reads the funnel; what is not named there
is judged again alone, since one finding may hide another. *Named*: a finding is of the file or the folder it lies in;
*Harmless*: nothing is found, and what readers get of the file (replies by their
keys, embeddings, views) is what it was, or nobody reads it. *Silent* is all else. Then all flips that a run can mend
are left in, as many at a time, and the runs of the workspace make all again: *mended* is what the check no longer finds
while every release has its bytes. Replies are repaired as advised, and the stages that used them made again.
"""

import argparse
import asyncio
import csv
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

from pipelines.agent.picture_search import ClipImageSearch
from pipelines.checksums import seal_note
from pipelines.cli.main import main
from pipelines.corpus.store import Corpus
from pipelines.errors import SynthError
from pipelines.services.clients.batch import BatchNote
from pipelines.services.clients.encoder import CachedEncoder
from pipelines.services.protocols import PictureFile
from tests.chaos.driving import SMALL, digest_files, list_settings, run_small
from tests.pipelines.services.clients.fake_encoder import FakeEncoder

RUN = ("run", "demo", *list_settings(SMALL), "--limit", "60")
NEWS = ("run", "news", "--recipe", "bridgevqa", "--models", "scripted", "--limit", "30",
        *list_settings(('groundings.ocr=["layer"]', "rollouts.attempts=1")))  # fmt: skip
UNREAD = ("logs", "review", ".lock", ".catalogue", "flow-run.txt")
"""What is read by people alone, or by a command that writes it again whatever it says."""
DECIDING = ("review/questions/sample.json", "review/questions/decisions.json")
REPLIES, EMBEDDINGS = "replies/replies.db", "derived/embeddings/embeddings.db"
UNMENDED = ("review", "batches", "replies/fresh.json", "derived/embeddings", "derived/image-indexes")
"""What no run makes again, or none of these runs needs: such flips are named, and it is said what to do."""
ASKING = ("questions", "rewrites", "difficulty", "rollouts")
"""Stages that replies decide."""
TOGETHER = 100
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
        return self.name.split("/")[0] in UNREAD and self.name not in DECIDING

    @property
    def is_mended(self) -> bool:
        """Whether a run makes the file again."""
        return not (self.is_unread or self.name.startswith(UNMENDED))

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
        kinds = {".parquet": "rows and proofs"}
        return f"releases: {kinds.get(Path(name).suffix, 'documents')}"
    if name in DECIDING:
        return "review: decisions"
    return top if inner else "notes"


def list_files(root: Path) -> dict[str, list[str]]:
    """Return the files of a workspace by kind, those left out that are empty or input."""
    found: dict[str, list[str]] = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        is_dump = name.startswith("worlds/") and "-pages-articles" in name
        if path.is_file() and path.stat().st_size and not is_dump:
            found.setdefault(name_kind(name), []).append(name)
    return found


def draw_flips(root: Path, count: int, rng: random.Random) -> Iterator[Flip]:
    """Yield flips: of a kind, of a file of it, of a byte."""
    files = list_files(root)
    for _ in range(count):
        kind = rng.choice(sorted(files))
        name = rng.choice(files[kind])
        yield Flip(kind, name, rng.randrange((root / name).stat().st_size), rng.randrange(1, 256))


def furnish(root: Path) -> None:
    """Add what the small run leaves none of: decisions of people, news, notes, embeddings."""
    place = ("--workspace", str(root))
    form = root / "review/questions/questions.csv"
    expect(call("review", "export", "--size", "20", *place))
    with form.open(newline="", encoding="utf-8") as source:
        rows = [{**row, "decision": "accept", "decided_by": "Ana", "decided_on": "2026-11-20"}
                for row in csv.DictReader(source)]  # fmt: skip
    with form.open("w", newline="", encoding="utf-8") as target:
        writer = csv.DictWriter(target, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    expect(call("review", "import", str(form), *place))
    # Decisions make other versions, and no run makes again what it would not publish now.
    for folder in ("releases", "stages/releases"):
        shutil.rmtree(root / folder)
    for command in list_runs(root):
        expect(call(*command, *place))
    _furnish_notes(root)
    asyncio.run(_furnish_embeddings(root))


def expect(ending: Ending) -> None:
    """Assert that a command succeeded."""
    assert ending.code == 0, ending


def list_runs(root: Path) -> list[tuple[str, ...]]:
    """Return the runs of the workspace."""
    (world,) = (path for path in (root / "worlds").iterdir() if not path.name.startswith("."))
    return [RUN, (*NEWS, "--set", f"corpus.world={world}")]


def _furnish_notes(root: Path) -> None:
    batch = BatchNote(tag="a", backend="b", server="http://a/v1", written=1, digest="0" * 64, keys=("k" * 32,))
    notes = {"batches/a.json": batch.model_dump_json(), "vendors.json": '{"http://a/v1 m": {"takes": ["temperature"]}}'}
    for name, text in notes.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(seal_note(text), encoding="utf-8")
    (root / "flow-run.txt").write_text(f"{'0' * 8}-0000-0000-0000-{'0' * 12}\n", encoding="utf-8")


async def _furnish_embeddings(root: Path) -> None:
    corpus = Corpus.open(next(iter(sorted((root / "corpus").iterdir()))))
    encoder = CachedEncoder(FakeEncoder(), root / "derived/embeddings")
    search = ClipImageSearch(corpus, encoder, root / "derived/image-indexes")
    try:
        await search.search_image(list_pictures(root)[0], 1)
        await encoder.encode_pictures(list_pictures(root))
    finally:
        encoder.close()


def list_pictures(root: Path) -> list[PictureFile]:
    """Return the pictures of a workspace."""
    return [PictureFile(path.stem, path) for path in sorted((root / "images").glob("??/*"))]


def read_content(path: Path) -> object:
    """Return what readers get of a file, or what they are told."""
    if path.name == Path(EMBEDDINGS).name:
        return read_embeddings(path)
    try:
        if path.name == Path(REPLIES).name:
            return read_replies(path)
        if path.name == "synth.duckdb":
            with duckdb.connect(str(path), read_only=True) as catalogue:
                return catalogue.execute("SELECT view_name, sql FROM duckdb_views()").fetchall()
    except (sqlite3.Error, duckdb.Error) as error:
        return str(error)
    return path.read_bytes()


def read_replies(path: Path) -> object:
    """Return all replies, as they lie there and by their keys, as runs read them."""
    with closing(sqlite3.connect(path)) as store:
        # The rest are dates, sizes and a log of what was asked: statistics, which decide no row.
        rows = store.execute("SELECT key, backend, reply FROM replies NOT INDEXED").fetchall()
        query = "SELECT key, backend, reply FROM replies WHERE key = ?"
        return rows, [store.execute(query, (key,)).fetchall() for key, *_ in rows]


def read_embeddings(path: Path) -> object:
    """Return the embeddings that a run would use: of a copy, since a damaged one is made again there."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(path, folder)
        encoder = CachedEncoder(FakeEncoder(), Path(folder))
        try:
            return asyncio.run(encoder.encode_pictures(list_pictures(path.parents[2]))).tobytes()
        except SynthError as error:
            return str(error)
        finally:
            encoder.close()


class Judge:
    """Holds a workspace to what it was."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.whole = {name: read_content(root / name) for name in (REPLIES, EMBEDDINGS, "synth.duckdb")}
        self.releases = self._digest_releases()

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
                    # Of some files a check looks at nothing else, so that no other finding hid this one.
                    checked = not is_defect and flip.name in self.whole
                    yield flip, self._judge_alone(flip, checked)

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

    def _judge_alone(self, flip: Flip, checked: bool) -> str:
        named, is_defect = ([], False) if checked else self._check([flip])
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
        """Leave flips in and run, as the findings advise; return what is not as it was, empty for nothing."""
        for flip in flips:
            path = self.root / flip.name
            # An earlier round may have made it again otherwise, or found that nobody needs it.
            if path.is_file() and path.stat().st_size > flip.place:
                flip.apply(self.root)
        place = ("--workspace", str(self.root))
        self._follow_advice({flip.name for flip in flips}, place)
        for command in list_runs(self.root):
            run = call(*command, *place)
            if run.code or "Traceback" in run.err:
                return f"run {command[1]}: exit {run.code}: {run.err[-600:]}"
        now = self._digest_releases()
        if changed := {name for name in {*now, *self.releases} if now.get(name) != self.releases.get(name)}:
            return f"releases have other bytes: {sorted(changed)[:9]}"
        check = call("status", "--check", *place)
        return f"check: {check.out[-600:]}" if check.code else ""

    def _digest_releases(self) -> dict[str, str]:
        return digest_files(self.root / "releases", "*/[!.]*/**/*")

    def _follow_advice(self, names: set[str], place: tuple[str, ...]) -> None:
        """Do what is said of damage that a run leaves alone."""
        if REPLIES in names:
            call("replies", "repair", *place)
            for folder in (folder for stage in ASKING for folder in (self.root / "stages" / stage).glob("[!.]*")):
                shutil.rmtree(folder)
        for run in sorted(
            name.split("/")[1] for name in names if name.startswith("runs/") and name.endswith("/config.toml")
        ):
            # It ends by naming what else is damaged, where another run is.
            call("runs", "--forget", run, *place)


def print_table(found: Counter[tuple[str, str]]) -> None:
    """Print how many flips of each kind came to what."""
    kinds = sorted({kind for kind, _ in found})
    print(f"| {'file':<28} | flips | {' | '.join(f'{name:>8}' for name in FOUND)} |")  # noqa: T201 - a script
    print(f"|{'-' * 30}|{'-' * 7}|{('-' * 10 + '|') * len(FOUND)}")  # noqa: T201
    for kind in [*kinds, "all"]:
        counts = [sum(found[each, name] for each in ([kind] if kind != "all" else kinds)) for name in FOUND]
        print(f"| {kind:<28} | {sum(counts):>5} | {' | '.join(f'{count:>8}' for count in counts)} |")  # noqa: T201


def run_flips(root: Path, flips: int, seed: int, shown: int) -> list[str]:
    """Judge random flips of a workspace, print what they are by kind, and mend them; return what went wrong.

    Args:
        root: of the workspace.
        flips: how many.
        seed: of the draw.
        shown: harmless flips that are printed.
    """
    rng, judge, found, wrong = random.Random(seed), Judge(root), Counter[tuple[str, str]](), list[str]()
    drawn = list(dict.fromkeys(draw_flips(root, flips, rng)))
    for flip, what in judge.judge_all(drawn):
        found[flip.kind, what] += 1
        if what in ("silent", "defect"):
            wrong.append(f"{what}: {flip}")
        if what == "harmless" and (shown := shown - (not flip.is_unread)) >= 0 and not flip.is_unread:
            print(f"harmless: {flip}")  # noqa: T201 - a script
    print_table(found)
    rounds = list(list_rounds(drawn))
    for number, together in enumerate(rounds, 1):
        said = judge.mend(together)
        print(f"round {number} of {len(rounds)}: {len(together)} flips: {said or 'mended'}", flush=True)  # noqa: T201
        if said:
            wrong.append(f"round {number}: {said}")
            shutil.rmtree(root)
            shutil.copytree(root.with_name("whole"), root)
    return wrong


def list_rounds(flips: Sequence[Flip]) -> Iterator[list[Flip]]:
    """Yield all flips that a run can mend, ``TOGETHER`` at a time, one a file; those in replies by themselves."""
    waiting = [flip for flip in flips if flip.is_mended]
    while waiting:
        files: dict[str, Flip] = {}
        for flip in waiting:
            if flip.name != REPLIES and len(files) < TOGETHER:
                files.setdefault(flip.name, flip)
        together = list(files.values()) or waiting[:TOGETHER]
        yield together
        waiting = [flip for flip in waiting if flip not in together]


def start(arguments: Sequence[str]) -> int:
    """Run the script."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--flips", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=0, help="so many harmless flips of what is read are printed")
    asked, since = parser.parse_args(arguments), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="synth-flips-") as folder:
        root = Path(folder).resolve() / "workspace"
        run_small(root, "--limit", 60, "--fresh-replies", "writer")
        furnish(root)
        shutil.copytree(root, root.with_name("whole"))
        wrong = run_flips(root, asked.flips, asked.seed, asked.show)
    print(f"\n{time.monotonic() - since:,.0f} s")  # noqa: T201
    print("\n".join(wrong) or "0 silent, 0 defects; every release has its bytes")  # noqa: T201
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(start(sys.argv[1:]))
