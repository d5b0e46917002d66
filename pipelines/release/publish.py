"""Publish: write a release into a temporary folder, then rename it. A published version is complete and read-only."""

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib import resources
from pathlib import Path

from pipelines.errors import ConfigError, CorruptInput, GateNotMet
from pipelines.files import clear_temps, explain_os_error, make_temp_path, sync_folder
from pipelines.pictures import PictureStore
from pipelines.release.card import (
    CardFacts,
    Prose,
    find_cards,
    list_credits,
    make_croissant,
    read_prose,
    render_card,
    render_credits,
)
from pipelines.release.making import Example, RowMaker, join_examples, make_proofs, name_picture
from pipelines.release.manifest import (
    MANIFEST,
    PublishedRelease,
    ReleaseContext,
    SplitEntry,
    check_release_files,
    digest_content,
    make_release_manifest,
    name_version,
)
from pipelines.release.quality import check_quality, measure_quality, render_quality
from pipelines.release.rows import (
    ROW_TYPES,
    ProofRow,
    Shard,
    describe_file,
    list_files,
    make_release_schema,
    plan_shards,
    write_shard_file,
)
from schemas.base import derive_schema
from schemas.datasets import Dataset, Enhancement, ReleaseEntry, Trajectory
from schemas.manifest import FileEntry

DATASETS: tuple[Dataset, ...] = ("sft", "rl", "bridgevqa")
READ_ONLY = 0o444
REWARDS = "rewards.py"


@dataclass(frozen=True, slots=True)
class ReleaseDraft:
    """One dataset about to be published."""

    root: Path
    """The workspace."""
    dataset: Dataset
    examples: tuple[Example, ...]
    questions: tuple[Enhancement, ...]
    """Every released question, those of other datasets included."""
    context: ReleaseContext
    prose: Prose

    def list_splits(self) -> list[str]:
        """Return the names of the splits that have rows."""
        return sorted({example.entry.split for example in self.examples})

    def list_examples(self, split: str) -> list[Example]:
        """Return a split's rows in their order in the files."""
        return [example for example in self.examples if example.entry.split == split]


def publish_releases(
    workspace_root: Path,
    questions: Sequence[Enhancement],
    trajectories: Sequence[Trajectory],
    entries: Sequence[ReleaseEntry],
    context: ReleaseContext,
) -> list[PublishedRelease]:
    """Publish each dataset that has rows, under a version named by its content.

    Publishing the same content again gives the same version and writes nothing. A crash leaves only a temporary folder,
    which readers ignore and the next publish removes.

    Raises:
        CorruptInput: if a picture is missing from the image store or has other bytes than its name says.
        GateNotMet: if a transcript, a licence, the splits or the card would break a rule of releases, or a version that
            exists no longer holds what its manifest says.
        Unavailable: if the disk is full.
    """
    examples = join_examples(questions, trajectories, entries)
    released = {example.question.record_id for example in examples}
    kept = tuple(question for question in questions if question.record_id in released)
    published = []
    for dataset in DATASETS:
        own = tuple(example for example in examples if example.entry.dataset == dataset)
        if own:
            prose = read_prose(dataset, find_cards())
            published.append(publish_dataset(ReleaseDraft(workspace_root, dataset, own, kept, context, prose)))
    return published


def publish_dataset(draft: ReleaseDraft) -> PublishedRelease:
    """Publish one dataset; see :func:`publish_releases`."""
    home = draft.root / "releases" / draft.dataset
    try:
        home.mkdir(parents=True, exist_ok=True)
        clear_temps(home)
        staging = make_temp_path(home / "release")
        staging.mkdir()
        try:
            version = _fill_folder(draft, staging, home)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    except OSError as error:
        raise explain_os_error(error, f"release {draft.dataset}") from error
    return PublishedRelease(draft.dataset, version, home / version, len(draft.examples))


def _fill_folder(draft: ReleaseDraft, staging: Path, home: Path) -> str:
    """Write the release into ``staging`` and move it home, unless its version is already there."""
    files, splits = _write_data(draft, staging)
    files += _write_proofs(draft, staging)
    credits_path = staging / "ATTRIBUTION.tsv"
    credit_lines = list_credits(
        draft.examples, draft.context.base_url, draft.context.corpus, draft.context.settings.unknown_licences
    )
    credits_path.write_text(render_credits(credit_lines), encoding="utf-8")
    files.append(describe_file(credits_path, staging, len(credit_lines)))
    if draft.dataset == "rl":
        path = staging / REWARDS
        path.write_bytes((resources.files("pipelines.release") / REWARDS).read_bytes())
        files.append(describe_file(path, staging, 0))
    content = digest_content(files, draft.prose.text)
    version = name_version(content)
    if (home / version).exists():
        _check_existing(home / version, content)
        return version
    _write_documents(draft, staging, content, (tuple(files), splits))
    _seal(staging, home / version)
    return version


def _check_existing(folder: Path, content: str) -> None:
    try:
        existing = check_release_files(folder)
    except (ConfigError, GateNotMet) as error:
        raise CorruptInput(f"{error}; this published release was damaged: remove it and run again") from error
    if existing.content != content:
        raise GateNotMet(f"release {folder}: its version is that of another content; move the folder away")


def _write_data(draft: ReleaseDraft, staging: Path) -> tuple[list[FileEntry], tuple[SplitEntry, ...]]:
    schema = make_release_schema(ROW_TYPES[draft.dataset])
    maker = RowMaker(draft.root, draft.context.tools, draft.context.system)
    files, splits = [], []
    for split in draft.list_splits():
        rows = draft.list_examples(split)
        weights = [_weigh(PictureStore(draft.root / "images"), example) for example in rows]
        memory = 0
        for shard in plan_shards(split, weights, draft.context.settings.shard_bytes):
            make_row = partial(maker.make_row, rows)
            entry, size = write_shard_file(staging / "data" / shard.name, schema, shard, make_row)
            files.append(entry)
            memory += size
        questions = len({example.question.record_id for example in rows})
        splits.append(SplitEntry(name=split, rows=len(rows), questions=questions, bytes=memory))
    return files, tuple(splits)


def _weigh(store: PictureStore, example: Example) -> int:
    """Return about how many bytes a row takes before compression: its pictures and its text."""
    shown = [picture for picture in (*example.list_pictures(), *example.list_thumbnails()) if name_picture(picture)]
    paths = [store.path(picture.sha256, picture.extension) for picture in shown]
    pictures = sum(path.stat().st_size for path in paths if path.is_file())
    steps = example.trajectory.steps if example.trajectory else ()
    text = sum(len(step.reply) + len(step.observation.text if step.observation else "") for step in steps)
    return pictures + text + len(example.question.text)


def _write_proofs(draft: ReleaseDraft, staging: Path) -> list[FileEntry]:
    files = []
    for split in draft.list_splits():
        rows = make_proofs(draft.list_examples(split))
        shard = Shard(split, 0, 1, 0, len(rows))
        path = staging / "proofs" / shard.name
        entry, _ = write_shard_file(path, derive_schema(ProofRow), shard, rows.__getitem__)
        files.append(entry)
    return files


def _write_documents(
    draft: ReleaseDraft, staging: Path, content: str, written: tuple[tuple[FileEntry, ...], tuple[SplitEntry, ...]]
) -> None:
    """Write the report, the card and the Croissant description, then the manifest over them all."""
    files, splits = written
    quality = measure_quality(draft.examples, draft.questions, draft.context)
    check_quality(quality)
    manifest = make_release_manifest(draft.dataset, content, splits, files, draft.context)
    schema = make_release_schema(ROW_TYPES[draft.dataset])
    shown = min(draft.examples, key=lambda example: example.row_id)
    row = RowMaker(draft.root, draft.context.tools, draft.context.system).make_row([shown], 0)
    title = f"Quality of {draft.dataset} {manifest.version}"
    croissant = make_croissant(manifest, schema, draft.prose)
    documents = {
        "quality.json": json.dumps(quality, indent=1, ensure_ascii=False) + "\n",
        "quality.md": render_quality(quality, title),
        "croissant.json": json.dumps(croissant, indent=1, ensure_ascii=False) + "\n",
        "README.md": render_card(draft.prose, CardFacts(manifest, quality, schema, shown, row)),
    }
    for name, text in documents.items():
        (staging / name).write_text(text, encoding="utf-8")
    more = tuple(describe_file(staging / name, staging, 0) for name in documents)
    whole = manifest.model_copy(update={"files": tuple(sorted((*files, *more), key=lambda entry: entry.name))})
    (staging / MANIFEST).write_text(whole.model_dump_json(indent=1) + "\n", encoding="utf-8")


def _seal(staging: Path, target: Path) -> None:
    """Flush everything, make the files read-only and rename; a rename onto a version that exists fails."""
    for path in list_files(staging):
        with path.open("rb+") as written:
            os.fsync(written.fileno())
        path.chmod(READ_ONLY)
    for folder in sorted(path for path in staging.rglob("*") if path.is_dir()):
        sync_folder(folder)
    sync_folder(staging)
    staging.rename(target)
    sync_folder(target.parent)
