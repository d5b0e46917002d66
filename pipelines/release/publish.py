"""Publish: write a release into a temporary folder, then rename it. A published version is complete and read-only."""

import os
import shutil
from collections.abc import Iterable
from importlib import resources
from pathlib import Path
from tempfile import TemporaryFile

from pipelines.errors import Damaged, GateNotMet
from pipelines.files import clear_temps, explain_os_error, make_temp_path, sync_folder
from pipelines.pictures import PictureStore
from pipelines.release.card import (
    Credit,
    list_credits,
    read_prose,
    render_credits,
    render_documents,
)
from pipelines.release.facts import ReleaseFacts
from pipelines.release.making import Example, RowMaker, make_proof_row, name_picture
from pipelines.release.manifest import (
    MANIFEST,
    PublishedRelease,
    ReleaseContext,
    SplitEntry,
    digest_content,
    find_changes,
    make_release_manifest,
    name_version,
    read_release_manifest,
    render_manifest,
)
from pipelines.release.quality import check_quality, measure_quality
from pipelines.release.reviewed import REVIEWS, render_reviews, select_reviews
from pipelines.release.rows import (
    ROW_TYPES,
    ProofRow,
    describe_file,
    list_files,
    make_release_schema,
    name_shard,
    plan_shards,
    write_shard_file,
)
from pipelines.release.spill import Shelf
from schemas.base import derive_schema
from schemas.datasets import Dataset, Enhancement, ReleaseEntry, Trajectory
from schemas.manifest import FileEntry

DATASETS: tuple[Dataset, ...] = ("sft", "rl", "vqa", "bridgevqa", "exam")
SHARD_BYTES = 400_000_000
"""Largest Parquet file, bytes before compression: what the Hub's viewer reads at once."""
READ_ONLY = 0o444
REWARDS = "rewards.py"
ATTRIBUTION = "ATTRIBUTION.tsv"


def publish_releases(
    workspace_root: Path,
    questions: Iterable[Enhancement],
    trajectories: Iterable[Trajectory],
    entries: Iterable[ReleaseEntry],
    context: ReleaseContext,
) -> list[PublishedRelease]:
    """Publish each dataset that has rows, under a version named by its content; none if one breaks a gate.

    Publishing the same content again gives the same version and writes nothing. A crash leaves only a temporary folder,
    which readers ignore and the next publish removes.
    """
    home = workspace_root / "releases"
    try:
        home.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=home) as file:
            shelf = Shelf(file, questions, trajectories, entries)
            drafts = [_Draft(workspace_root, each, shelf, context) for each in DATASETS if each in shelf.entries]
            return [draft.publish() for draft in drafts]
    except OSError as error:
        raise explain_os_error(error, "releases") from error


class _Draft:
    """One dataset about to be published, its rows surveyed and their report held to its gates."""

    def __init__(self, root: Path, dataset: Dataset, shelf: Shelf, context: ReleaseContext) -> None:
        self.dataset, self.shelf, self.context = dataset, shelf, context
        self.entries = shelf.entries[dataset]
        self.home = root / "releases" / dataset
        self.prose = read_prose(dataset)
        self.maker = RowMaker(root, context.tools, context.system)
        self.facts = ReleaseFacts()
        self.credits: set[Credit] = set()
        self.weights: dict[str, list[int]] = {}
        store = PictureStore(root / "images")
        origin = (context.base_url, context.corpus, context.settings.unknown_licences, context.articles)
        for example in map(shelf.read, self.entries):
            self.facts.add(example)
            self.credits.update(list_credits(example, *origin))
            self.weights.setdefault(example.entry.split, []).append(_weigh(store, example))
        self.facts.reviews = select_reviews(context.reviews, self.facts.questions)
        self.quality = measure_quality(self.facts, shelf.signatures, context, context.settings)
        check_quality(self.quality)

    def publish(self) -> PublishedRelease:
        self.home.mkdir(parents=True, exist_ok=True)
        clear_temps(self.home)
        staging = make_temp_path(self.home / "release")
        staging.mkdir()
        try:
            version = self._fill(staging)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
        return PublishedRelease(self.dataset, version, self.home / version, len(self.entries))

    def _fill(self, staging: Path) -> str:
        files, splits = self._write_rows(staging)
        files.append(_write(staging, ATTRIBUTION, render_credits(sorted(self.credits)), len(self.credits)))
        if self.dataset == "rl":
            files.append(_write(staging, REWARDS, (resources.files("pipelines.release") / REWARDS).read_text("utf-8")))
        if self.facts.reviews:
            files.append(_write(staging, REVIEWS, render_reviews(self.facts.reviews)))
        content = digest_content(files, self.prose.text)
        target = self.home / name_version(content)
        if target.exists():
            _check_published(target, content)
            return target.name
        manifest = make_release_manifest(self.dataset, content, splits, tuple(files), self.context)
        shown = self.shelf.read(min(self.entries, key=lambda entry: entry.trajectory_id or entry.parent_id))
        row = self.maker.make_row(shown, 0)
        documents = render_documents(manifest, self.quality, self.prose, shown, row)
        files += [_write(staging, name, text) for name, text in documents.items()]
        whole = manifest.model_copy(update={"files": tuple(sorted(files, key=lambda entry: entry.name))})
        (staging / MANIFEST).write_text(render_manifest(whole), encoding="utf-8")
        _seal(staging, target)
        return target.name

    def _write_rows(self, staging: Path) -> tuple[list[FileEntry], tuple[SplitEntry, ...]]:
        schema, proofs = make_release_schema(ROW_TYPES[self.dataset]), derive_schema(ProofRow)
        read, make_row = self.shelf.read, self.maker.make_row
        files, splits = [], []
        for split, weights in sorted(self.weights.items()):
            entries = [entry for entry in self.entries if entry.split == split]
            memory = 0
            for name, places in plan_shards(split, weights, SHARD_BYTES):
                rows = (make_row(read(entries[index]), index) for index in places)
                entry, size = write_shard_file(staging / "data" / name, schema, rows)
                files.append(entry)
                memory += size
            questions = sorted({entry.parent_id: entry for entry in entries}.items())
            path = staging / "proofs" / name_shard(split, 0, 1)
            files.append(write_shard_file(path, proofs, (make_proof_row(read(entry)) for _, entry in questions))[0])
            splits.append(SplitEntry(name=split, rows=len(entries), questions=len(questions), bytes=memory))
        return files, tuple(splits)


def _write(staging: Path, name: str, text: str, rows: int = 0) -> FileEntry:
    (staging / name).write_text(text, encoding="utf-8")
    return describe_file(staging / name, staging, rows)


def _check_published(folder: Path, content: str) -> None:
    existing = read_release_manifest(folder)
    if existing.content != content:
        raise GateNotMet(f"release {folder}: its version is that of another content; move the folder away")
    if changes := find_changes(folder, existing):
        raise Damaged(folder, "; ".join(changes), f"remove {folder}: `synth run` then publishes it again")


def _weigh(store: PictureStore, example: Example) -> int:
    shown = [picture for picture in (*example.list_pictures(), *example.list_thumbnails()) if name_picture(picture)]
    paths = [store.path(picture.sha256, picture.extension) for picture in shown]
    pictures = sum(path.stat().st_size for path in paths if path.is_file())
    steps = example.trajectory.steps if example.trajectory else ()
    text = sum(len(step.reply) + len(step.observation.text if step.observation else "") for step in steps)
    return pictures + text + len(example.question.text)


def _seal(staging: Path, target: Path) -> None:
    # A rename onto a version that exists fails.
    for path in list_files(staging):
        with path.open("rb+") as written:
            os.fsync(written.fileno())
        path.chmod(READ_ONLY)
    for folder in sorted(path for path in staging.rglob("*") if path.is_dir()):
        sync_folder(folder)
    sync_folder(staging)
    staging.rename(target)
    sync_folder(target.parent)
