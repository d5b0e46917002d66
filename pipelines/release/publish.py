"""Publish: write a release into a temporary folder, then rename it. A published version is complete and read-only."""

import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from importlib import resources
from pathlib import Path

from pipelines.checks.sets import Signature
from pipelines.errors import Damaged, GateNotMet
from pipelines.files import clear_temps, explain_os_error, make_temp_path, sync_folder
from pipelines.pictures import PictureStore
from pipelines.release.card import (
    Credit,
    Prose,
    find_cards,
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
    ReleaseManifest,
    SplitEntry,
    digest_content,
    find_changes,
    make_release_manifest,
    name_version,
    read_release_manifest,
    render_manifest,
)
from pipelines.release.quality import Quality, check_quality, measure_quality
from pipelines.release.reviewed import REVIEWS, render_reviews, select_reviews
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
from pipelines.release.spill import Examples, spill_material
from schemas.base import derive_schema
from schemas.datasets import Dataset, Enhancement, ReleaseEntry, Trajectory
from schemas.manifest import FileEntry

DATASETS: tuple[Dataset, ...] = ("sft", "rl", "vqa", "bridgevqa", "exam")
READ_ONLY = 0o444
REWARDS = "rewards.py"
ATTRIBUTION = "ATTRIBUTION.tsv"


@dataclass(frozen=True, slots=True)
class ReleaseDraft:
    """One dataset about to be published."""

    root: Path
    """The workspace."""
    dataset: Dataset
    examples: Examples
    signatures: tuple[Signature, ...]
    """Of every released question, those of other datasets included."""
    context: ReleaseContext
    prose: Prose


@dataclass(slots=True)
class Survey:
    """What one pass over a dataset's rows finds out: its report, facts, credits, and sizes for the shards."""

    facts: ReleaseFacts = field(default_factory=ReleaseFacts)
    quality: Quality = field(default_factory=dict)
    credits: set[Credit] = field(default_factory=set)
    weights: dict[str, list[int]] = field(default_factory=dict)
    """Bytes of each row, by split."""


def publish_releases(
    workspace_root: Path,
    questions: Iterable[Enhancement],
    trajectories: Iterable[Trajectory],
    entries: Iterable[ReleaseEntry],
    context: ReleaseContext,
) -> list[PublishedRelease]:
    """Publish each dataset that has rows, under a version named by its content; none if one breaks a gate.

    Rows are read once and wait on disk. Publishing the same content again gives the same version and writes nothing.
    A crash leaves only a temporary folder, which readers ignore and the next publish removes.

    Raises:
        ConservationError: if an entry names a question or trajectory that is not there.
        CorruptInput: if a picture is missing from the image store or has other bytes than its name says.
        GateNotMet: if a transcript, a licence, the splits or the card would break a rule of releases, or a version that
            exists has other content.
        Unavailable: if the disk is full.
    """
    home = workspace_root / "releases"
    try:
        home.mkdir(parents=True, exist_ok=True)
        with spill_material(questions, trajectories, entries, home) as material:
            drafts = [
                ReleaseDraft(workspace_root, each, material.examples[each], material.signatures, context, prose)
                for each, prose in (
                    (each, read_prose(each, find_cards())) for each in DATASETS if each in material.examples
                )
            ]
            surveys = [_survey_rows(draft) for draft in drafts]
            return [_publish_dataset(draft, survey) for draft, survey in zip(drafts, surveys, strict=True)]
    except OSError as error:
        raise explain_os_error(error, "releases") from error


def _publish_dataset(draft: ReleaseDraft, survey: Survey) -> PublishedRelease:
    home = draft.root / "releases" / draft.dataset
    try:
        home.mkdir(parents=True, exist_ok=True)
        clear_temps(home)
        staging = make_temp_path(home / "release")
        staging.mkdir()
        try:
            version = _fill_folder(draft, survey, staging, home)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    except OSError as error:
        raise explain_os_error(error, f"release {draft.dataset}") from error
    return PublishedRelease(draft.dataset, version, home / version, len(draft.examples))


def _fill_folder(draft: ReleaseDraft, survey: Survey, staging: Path, home: Path) -> str:
    """Write the release into ``staging`` and move it home, unless its version is already there."""
    files, splits = _write_data(draft, staging, survey)
    files += _write_proofs(draft, staging)
    credits_path = staging / ATTRIBUTION
    credit_lines = sorted(survey.credits)
    credits_path.write_text(render_credits(credit_lines), encoding="utf-8")
    files.append(describe_file(credits_path, staging, len(credit_lines)))
    if draft.dataset == "rl":
        path = staging / REWARDS
        path.write_bytes((resources.files("pipelines.release") / REWARDS).read_bytes())
        files.append(describe_file(path, staging, 0))
    if survey.facts.reviews:
        path = staging / REVIEWS
        path.write_text(render_reviews(survey.facts.reviews), encoding="utf-8")
        files.append(describe_file(path, staging, 0))
    content = digest_content(files, draft.prose.text)
    version = name_version(content)
    if (home / version).exists():
        _check_published(home / version, content)
        return version
    manifest = make_release_manifest(draft.dataset, content, splits, tuple(files), draft.context)
    _write_documents(draft, staging, survey.quality, manifest)
    _seal(staging, home / version)
    return version


def _check_published(folder: Path, content: str) -> None:
    existing = read_release_manifest(folder)
    if existing.content != content:
        raise GateNotMet(f"release {folder}: its version is that of another content; move the folder away")
    if changes := find_changes(folder, existing):
        raise Damaged(folder, "; ".join(changes), f"remove {folder}: `synth run` then publishes it again")


def _survey_rows(draft: ReleaseDraft) -> Survey:
    """Read a dataset's rows once, and hold their report to its gates."""
    survey, store, context = Survey(), PictureStore(draft.root / "images"), draft.context
    origin = (context.base_url, context.corpus, context.settings.unknown_licences, context.articles)
    for example in draft.examples:
        survey.facts.add(example)
        survey.credits.update(list_credits(example, *origin))
        survey.weights.setdefault(example.entry.split, []).append(_weigh(store, example))
    survey.facts.reviews = select_reviews(context.reviews, survey.facts.questions)
    survey.quality = measure_quality(survey.facts, draft.signatures, context, context.settings)
    check_quality(survey.quality)
    return survey


def _write_data(draft: ReleaseDraft, staging: Path, survey: Survey) -> tuple[list[FileEntry], tuple[SplitEntry, ...]]:
    schema = make_release_schema(ROW_TYPES[draft.dataset])
    maker = RowMaker(draft.root, draft.context.tools, draft.context.system)
    files, splits = [], []
    for split in draft.examples.list_splits():
        rows = draft.examples.select(split)
        memory = 0
        for shard in plan_shards(split, survey.weights[split], draft.context.settings.shard_bytes):
            make_row = partial(maker.make_row, rows)
            entry, size = write_shard_file(staging / "data" / shard.name, schema, shard, make_row)
            files.append(entry)
            memory += size
        questions = len(survey.facts.splits[split].questions)
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
    for split in draft.examples.list_splits():
        rows = draft.examples.select(split).list_questions()
        shard = Shard(split, 0, 1, 0, len(rows))
        path = staging / "proofs" / shard.name
        entry, _ = write_shard_file(path, derive_schema(ProofRow), shard, partial(_make_proof, rows))
        files.append(entry)
    return files


def _make_proof(rows: Examples, index: int) -> ProofRow:
    return make_proof_row(rows[index])


def _write_documents(draft: ReleaseDraft, staging: Path, quality: Quality, manifest: ReleaseManifest) -> None:
    """Write the report, the card and the Croissant description, then the manifest over them all."""
    shown = draft.examples.find_first()
    row = RowMaker(draft.root, draft.context.tools, draft.context.system).make_row([shown], 0)
    documents = render_documents(manifest, quality, draft.prose, shown, row)
    for name, text in documents.items():
        (staging / name).write_text(text, encoding="utf-8")
    more = tuple(describe_file(staging / name, staging, 0) for name in documents)
    files = tuple(sorted((*manifest.files, *more), key=lambda entry: entry.name))
    whole = manifest.model_copy(update={"files": files})
    (staging / MANIFEST).write_text(render_manifest(whole), encoding="utf-8")


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
