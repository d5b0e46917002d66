"""Making again what is damaged or missing in a workspace, from what it was made of; nothing is paid twice.

A run mends before it begins: notes are removed to be noted again, a shard with a damaged file is no longer done, a
stage whose input has changed is no longer sealed, pictures come back from the corpus, releases are published again.
What is found only when it is read ends the stages, is taken away, and they go on. Every mending is told.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from pipelines.agent.observations import shrink_picture
from pipelines.corpus.store import Corpus
from pipelines.errors import ConfigError, CorruptInput, Damaged, RecordFailed
from pipelines.files import remove_whole, write_bytes
from pipelines.ids import digest_bytes
from pipelines.run.integrity import (
    CHECKED_BYTES,
    CitedPicture,
    StageDamage,
    examine_catalogue,
    examine_notes,
    examine_pictures,
    examine_receipt,
    examine_release,
    examine_replies_missing,
    examine_stage,
    find_replied_picture,
    read_latest,
    read_pictures,
    read_receipts,
)
from pipelines.run.runner import PlannedStage
from pipelines.run.workspace import Workspace, write_model
from schemas.manifest import Usage

Say = Callable[[str], None]
T = TypeVar("T")
TRIES = 5
"""How often a run begins again after a file turned out to be damaged."""


def _mend_notes(workspace: Workspace, say: Say) -> None:
    """Remove the workspace's damaged notes and marks: a run makes all of it anew."""
    for finding in (*examine_notes(workspace), *examine_catalogue(workspace)):
        say(finding.describe())
        finding.path.unlink(missing_ok=True)


def run_mending(workspace: Workspace, run: Callable[[], T], say: Say) -> T:
    """Run without damaged notes, and begin again without a file of the workspace that turns out to be damaged.

    Args:
        workspace: claimed by the caller.
        run: the whole run; called again after a file was taken away.
        say: told of each file.

    Raises:
        CorruptInput: if the file is none that a run makes, or files go on being damaged.
    """
    _mend_notes(workspace, say)
    for _ in range(TRIES - 1):
        try:
            return run()
        except Damaged as error:
            if not _take_away(workspace, error.path):
                raise CorruptInput(
                    f"{error.path}: {error.what}; it is no file of this workspace: copy it again, or build it again"
                ) from error
            say(str(error))
    return run()


def _take_away(workspace: Workspace, path: Path) -> bool:
    """Remove what a damaged file belongs to, where a run makes it again; a stage's files are left to its mending."""
    root = workspace.root.resolve()
    if not path.resolve().is_relative_to(root):
        return False
    top, *inner = path.resolve().relative_to(root).parts
    if top in ("corpus", "derived") and inner:
        remove_whole(root / top / (inner[0] if top == "corpus" or len(inner) < 3 else Path(*inner[:2])))
    elif top == "images":
        path.unlink(missing_ok=True)
    return top in ("corpus", "derived", "images", "stages", "releases")


def mend_stages(workspace: Workspace, planned: Sequence[PlannedStage], corpus: Corpus, say: Say) -> None:
    """Look at the stages of a run, their pictures and releases, and undo what is damaged, so that the run makes it.

    Shards that lose a picture which neither the corpus nor another picture gives back are made again, too.
    """
    latest = read_latest(workspace)
    found = [examine_stage(plan.folder, latest.get(plan.name) == plan.key) for plan in planned]
    for finding in (*(each for damage in found for each in damage.findings), *examine_replies_missing(workspace)):
        say(finding.describe())
    sound = {plan.folder.part(s.shard): (plan, s.shard) for plan, damage in zip(planned, found, strict=True)
             for s in (damage.manifest.shards if damage.manifest else ()) if s.shard not in damage.shards}  # fmt: skip
    for part in _mend_pictures(workspace, corpus, list(sound), say):
        plan, shard = sound[part]
        damage = found[planned.index(plan)]
        damage.shards[shard] = plan.folder.read_sidecar(shard)
        damage.add(part, "cites a picture that is gone")
    for damage in found:
        mend_stage(damage)
    for plan, damage in zip(planned, found, strict=True):
        if plan.name == "releases" and damage.manifest is not None:
            _mend_releases(workspace, plan, say)


def mend_stage(damage: StageDamage) -> None:
    """Undo what is damaged of a stage: whole shards, whose cost stays noted, and the manifest with any."""
    folder = damage.folder
    for path in damage.notes:
        path.unlink()
    if damage.manifest is not None and not damage.shards:
        for sidecar in damage.sidecars:
            write_model(folder.sidecar(sidecar.shard), sidecar)
        if damage.lost or damage.notes:
            for path in folder.path.glob("stopped-*.json"):
                path.unlink()
            folder.note_stopped(damage.manifest.stopped)
        return
    if damage.shards or damage.lost:
        # Before the shards: a crash in between leaves a stage that is not sealed.
        folder.manifest.unlink(missing_ok=True)
    for shard, lost in damage.shards.items():
        folder.note_stopped(lost.usage if lost else Usage())
        folder.sidecar(shard).unlink(missing_ok=True)
    for sidecar in damage.sidecars:
        if sidecar.shard not in damage.shards:
            write_model(folder.sidecar(sidecar.shard), sidecar)


def _mend_pictures(workspace: Workspace, corpus: Corpus, parts: Sequence[Path], say: Say) -> Iterator[Path]:
    """Bring back pictures that are damaged or missing, and yield the parts whose rows cite one that stays away."""
    for finding in list(examine_pictures(workspace, CHECKED_BYTES, parts)):
        say(finding.describe())
        finding.path.unlink(missing_ok=True)
        sha256 = finding.path.stem
        citing = {part: cited[sha256] for part in parts if sha256 in (cited := read_pictures([part]))}
        cited_as = next(iter(citing.values()), None) or find_replied_picture(workspace, sha256)
        if cited_as is not None and not _restore_picture(workspace, corpus, cited_as):
            yield from citing


def _restore_picture(workspace: Workspace, corpus: Corpus, cited: CitedPicture) -> bool:
    """Write a picture, or the thumbnail of one, from the corpus's file."""
    try:
        data = corpus.image_path(cited.file).read_bytes()
    except (ConfigError, OSError):
        return False
    for made in (data, _shrink(data)):
        if digest_bytes(made) == cited.sha256:
            write_bytes(workspace.images / cited.sha256[:2] / f"{cited.sha256}.{cited.extension}", made)
            return True
    return False


def _shrink(data: bytes) -> bytes:
    try:
        return shrink_picture(data)
    except RecordFailed:
        return b""


def _mend_releases(workspace: Workspace, plan: PlannedStage, say: Say) -> None:
    """Take away the damaged releases that the run would publish, with the receipt: they are published again."""
    receipt = plan.folder.path / "published.json"
    for finding in examine_receipt(workspace, plan.folder):
        say(finding.describe())
    for folder, sealed in read_receipts(workspace, [receipt]).items():
        for finding in examine_release(folder, sealed, CHECKED_BYTES):
            say(finding.describe())
            receipt.unlink(missing_ok=True)
            if folder.is_dir():
                remove_whole(folder)
