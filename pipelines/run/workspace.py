"""The workspace: folders, manifests, the lock, and what is complete.

::

    workspace/
      corpus/<name>/                 made by the corpus stage
      stages/<stage>/<key>/          part-00000.parquet rejected-00000.parquet failed-00000.parquet part-00000.json
                                     manifest.json, written last: what exists is complete
      replies/ images/ releases/     recorded replies, pictures by sha256, published datasets
      batches/                       which requests are under way in batches
      logs/                          what runs and servers that were started here said
      progress.json                  how far the last run is or came
      runs/<name>/                   a run: its configuration, and which corpus and which key of each stage it used
      latest.json                    the run that used them last; of a run without a name, what it used
      flow-run.txt                   which flow run of Prefect held the workspace last
      .nightly                       locked by the flow run that starts runs in parts, which it names
"""

import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

from pydantic import BaseModel, ValidationError

from pipelines.errors import Damaged, WorkspaceBusy
from pipelines.files import FULL, clear_temps, explain_os_error, replacing, write_text
from schemas.manifest import Manifest, ShardSidecar, Usage

ModelT = TypeVar("ModelT", bound=BaseModel)
LOCK = ".lock"
"""File that a run locks; meanwhile it says what holds it."""
LATEST = "latest.json"
RELEASE = "release:"
"""How the name of a released dataset begins among what a run used."""
_VIEWED = ContextVar("viewed run", default="")
"""The run that a command looks at; empty for the last one."""


def read_model(path: Path, model: type[ModelT]) -> ModelT:
    """Read a JSON file as its model.

    Raises:
        Damaged: if it is not one.
    """
    try:
        return model.model_validate_json(path.read_bytes(), strict=False)
    except ValidationError as error:
        what = "is damaged, or another version of synth wrote it"
        raise Damaged(path, what, "use that version, or another --workspace") from error


def write_model(path: Path, model: BaseModel) -> None:
    """Write a model as a JSON file, whole or not at all."""
    write_text(path, model.model_dump_json(indent=1) + "\n")


def read_names(path: Path) -> dict[str, str]:
    """Read a JSON object of strings; empty when there is no file.

    Raises:
        Damaged: if it is no such object.
    """
    if not path.is_file():
        return {}
    try:
        return {str(key): str(value) for key, value in json.loads(path.read_bytes()).items()}
    except (ValueError, AttributeError) as error:
        raise Damaged(path, "is damaged", "remove it: the next run writes it again") from error


def write_names(path: Path, names: Mapping[str, str]) -> None:
    """Write a JSON object of strings, whole or not at all."""
    write_text(path, json.dumps(dict(names), indent=1, sort_keys=True) + "\n")


def pick_releases(used: Mapping[str, str]) -> dict[str, str]:
    """Return the version of each dataset that is released, by dataset, out of all that a run used."""
    return {name.removeprefix(RELEASE): version for name, version in used.items() if name.startswith(RELEASE)}


@dataclass(frozen=True, slots=True)
class StageFolder:
    """One stage's output under one key."""

    path: Path

    def part(self, shard: int) -> Path:
        """Return the path of a shard's kept rows."""
        return self.path / f"part-{shard:05d}.parquet"

    def rejected(self, shard: int) -> Path:
        """Return the path of a shard's refused rows."""
        return self.path / f"rejected-{shard:05d}.parquet"

    def failed(self, shard: int) -> Path:
        """Return the path of a shard's failed rows."""
        return self.path / f"failed-{shard:05d}.parquet"

    def sidecar(self, shard: int) -> Path:
        """Return the path of a shard's sidecar, written after its three files."""
        return self.path / f"part-{shard:05d}.json"

    def retried(self, shard: int) -> Path:
        """Return the path of the note that names the rows of a shard to ask again; it goes once the shard is made."""
        return self.path / f"retry-{shard:05d}.json"

    @property
    def replies(self) -> Path:
        """Folder of the workspace's reply store."""
        return self.path.parents[2] / "replies"

    @property
    def manifest(self) -> Path:
        """The manifest's path; it exists only when every shard is done."""
        return self.path / "manifest.json"

    @property
    def unsealed(self) -> Path:
        """What the manifest was, while the stage is made again."""
        return self.path / ".unsealed-manifest.json"

    def unseal(self) -> None:
        """Take the seal off, so that the next run seals the stage again."""
        if self.manifest.is_file():
            self.manifest.replace(self.unsealed)

    def read_manifest(self) -> Manifest | None:
        """Return the manifest, or None while the stage is not sealed."""
        return read_model(self.manifest, Manifest) if self.manifest.is_file() else None

    def note_stopped(self, usage: Usage) -> None:
        """Note what a run used for shards that it did not finish; each note is a file of its own."""
        if usage != Usage():
            self.path.mkdir(parents=True, exist_ok=True)
            write_model(self.path / f"stopped-{uuid4().hex}.json", usage)

    def read_stopped(self) -> Usage:
        """Return what runs used for shards that they did not finish."""
        return sum((read_model(path, Usage) for path in sorted(self.path.glob("stopped-*.json"))), Usage())

    def reopen(self) -> None:
        """Forget which shards of an unsealed stage are done, so that all are made again; what they used stays noted."""
        sidecars = self.list_sidecars()
        self.note_stopped(sum((sidecar.usage for sidecar in sidecars), Usage()))
        for sidecar in sidecars:
            self.sidecar(sidecar.shard).unlink()

    def list_sidecars(self) -> list[ShardSidecar]:
        """Return the sidecars of the finished shards, in order."""
        return [read_model(path, ShardSidecar) for path in sorted(self.path.glob("part-*.json"))]

    def read_sidecar(self, shard: int) -> ShardSidecar | None:
        """Return a finished shard's sidecar, or None."""
        path = self.sidecar(shard)
        return read_model(path, ShardSidecar) if path.is_file() else None


@dataclass(frozen=True, slots=True)
class Workspace:
    """A folder that one run at a time writes to."""

    root: Path

    @property
    def derived(self) -> Path:
        """Folder of files computed from a corpus; they may be removed at any time."""
        return self.root / "derived"

    @property
    def corpora(self) -> Path:
        """Folder of corpora."""
        return self.root / "corpus"

    @property
    def replies(self) -> Path:
        """Folder of the reply store."""
        return self.root / "replies"

    @property
    def batches(self) -> Path:
        """Folder of notes of requests that servers answer in batches."""
        return self.root / "batches"

    @property
    def progress(self) -> Path:
        """File that says how far the last run is or came."""
        return self.root / "progress.json"

    @property
    def logs(self) -> Path:
        """Folder of what runs and servers that were started here said."""
        return self.root / "logs"

    @property
    def images(self) -> Path:
        """Folder of pictures by sha256."""
        return self.root / "images"

    @property
    def releases(self) -> Path:
        """Folder of published datasets."""
        return self.root / "releases"

    @property
    def reviews(self) -> Path:
        """Folder of what people are asked to decide."""
        return self.root / "review"

    @property
    def runs(self) -> Path:
        """Folder of named runs."""
        return self.root / "runs"

    @property
    def news(self) -> Path:
        """Folder of exports of the news' articles, and of fetched pictures."""
        return self.root / "news"

    @property
    def worlds(self) -> Path:
        """Folder of generated toy wikis."""
        return self.root / "worlds"

    def stage(self, name: str, key: str) -> StageFolder:
        """Return a stage's output folder."""
        return StageFolder(self.root / "stages" / name / key)

    def read_latest(self, run: str = "") -> dict[str, str]:
        """Return the corpus name, the key of each stage and the releases that a run used; empty before any run.

        The run is ``run``, else that of :func:`viewing`, else the last one that noted what it used.
        """
        name = run or _VIEWED.get()
        last = {"run": name} if name else read_names(self.root / LATEST)
        return read_names(self.runs / last["run"] / LATEST) if "run" in last else last

    def list_releases(self) -> list[Path]:
        """Return the folders of the published releases, by dataset and version."""
        return [path.parent for path in sorted(self.releases.glob("*/[!.]*/manifest.json"))]

    def list_latest(self) -> list[Path]:
        """Return the notes of what runs used: the last one's, and each named run's."""
        return [path for path in (self.root / LATEST, *sorted(self.runs.glob(f"[!.]*/{LATEST}"))) if path.is_file()]

    def note_latest(self, entries: dict[str, str], run: str = "") -> None:
        """Note what a run used, by one configuration from one corpus, and that it was the last run.

        Args:
            entries: what it used; of runs without a name only the last one's entries are kept.
            run: its name; may be empty.
        """
        if run and entries != read_names(self.runs / run / LATEST):
            write_names(self.runs / run / LATEST, entries)
        last, before = {"run": run} if run else entries, read_names(self.root / LATEST)
        if last != before:
            write_names(self.root / LATEST, last)

    @contextmanager
    def claim(self, holder: str = "run") -> Iterator[str]:
        """Hold the workspace for one run, and yield a name for it; the lock goes with the process, however that ends.

        Raises:
            ConfigError: if the folder cannot be written, or its file system cannot rename or lock.
            WorkspaceBusy: if another run holds it.
            Unavailable: if the disk is full.
        """
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            lock = (self.root / LOCK).open("a+")
        except OSError as error:
            raise explain_os_error(error, f"workspace {self.root}") from error
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._probe()
            except BlockingIOError as error:
                busy = "another run holds it; wait for it to end or use another --workspace"
                raise WorkspaceBusy(f"workspace {self.root}: {busy}") from error
            except OSError as error:
                raise explain_os_error(error, f"workspace {self.root}") from error
            # Names sort by time.
            name = f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{uuid4().hex[:8]}"
            try:
                lock.truncate(0)
                lock.write(f"{holder}\n")
                lock.flush()
                inner = (path for pattern in ("stages/*", "stages/*/*", "images/*") for path in self.root.glob(pattern))
                for folder in (self.root, self.batches, *inner):
                    clear_temps(folder)
                yield name
            except OSError as error:
                if error.errno not in FULL:
                    raise
                raise explain_os_error(error, f"workspace {self.root}") from error
            finally:
                lock.truncate(0)

    def read_holder(self) -> str:
        """Return which command holds the workspace, such as ``run`` or ``prune``; may be empty.

        It is that of the last holder where that was killed. For a moment after a claim it is still empty.
        """
        path = self.root / LOCK
        return path.read_text(encoding="ascii", errors="replace").strip() if path.is_file() else ""

    def _probe(self) -> None:
        with replacing(self.root / ".probe") as temp:
            temp.write_bytes(os.urandom(4096))
        (self.root / ".probe").unlink()


@contextmanager
def viewing(run: str) -> Iterator[None]:
    """Read workspaces inside the block as a run has left them; as the last one has, if the name is empty."""
    token = _VIEWED.set(run)
    try:
        yield
    finally:
        _VIEWED.reset(token)
