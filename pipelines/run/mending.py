"""Making again what is damaged or missing in a workspace, from what it was made of; nothing is paid twice.

A run mends before it begins: notes are removed to be noted again, a shard with a damaged file is no longer done, a
stage whose input has changed is no longer sealed, pictures come back from the corpus, releases are published again.
What is found only when it is read ends the stages, is dealt with, and they go on. The run reports every mending. A
corpus or a release is put aside and removed once its replacement stands; what no run makes again stays, and the run
says so.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from pipelines.agent.observations import shrink_picture
from pipelines.checksums import forget_checks, open_checked
from pipelines.corpus.store import Corpus
from pipelines.errors import ConfigError, CorruptInput, Damaged, RecordFailed
from pipelines.files import put_aside, remove_whole, settle_damaged, write_bytes
from pipelines.ids import digest_bytes, digest_file
from pipelines.release.manifest import MANIFEST
from pipelines.run.integrity import (
    CHECKED_BYTES,
    CitedPicture,
    StageDamage,
    count_replies,
    examine_catalogue,
    examine_notes,
    examine_pictures,
    examine_receipt,
    examine_release,
    examine_replies_missing,
    examine_stage,
    find_replied_pictures,
    list_used,
    read_pictures,
    read_receipts,
)
from pipelines.run.runner import STAGE_ORDER, PlannedStage
from pipelines.run.workspace import Workspace, write_model

Say = Callable[[str], None]
T = TypeVar("T")
TRIES = 5
"""How often a run begins again after a file turned out to be damaged."""


def _mend_notes(workspace: Workspace, say: Say) -> None:
    """Remove the workspace's damaged notes and marks: a run makes all of it anew."""
    for finding in (*examine_notes(workspace), *examine_catalogue(workspace)):
        say(finding.describe())
        finding.path.unlink(missing_ok=True)


def _check_mounted(workspace: Workspace, address: str) -> None:
    """Refuse a workspace of which a kind of files is gone as a whole: that is no damage but another disk.

    Raises:
        ConfigError: what is gone, and what to do if that is meant.
    """
    used = {name for name, _ in list_used(workspace)}
    for name, pattern in (("corpus", "*"), ("stages", "*/*")):
        made = {"corpus"} if name == "corpus" else set(STAGE_ORDER) - {"corpus"}
        if made & used and not any((workspace.root / name).glob(pattern)):
            raise ConfigError(_explain_gone(workspace.root / name, workspace.list_latest()))
    for finding in () if address else examine_replies_missing(workspace):
        raise ConfigError(finding.describe())


def _explain_gone(folder: Path, notes: Sequence[Path]) -> str:
    return (
        f"{folder}: nothing of it is there, and the workspace needs it; is it mounted, or was it moved? Bring it back; "
        f"if it was removed on purpose, remove {' and '.join(map(str, notes))}, too, and it is made again"
    )


def run_mending(workspace: Workspace, run: Callable[[], T], say: Say, address: str = "") -> T:
    """Run without damaged notes, and begin again where a file of the workspace turns out to be damaged.

    Args:
        workspace: claimed by the caller.
        run: the whole run; called again after the damage was dealt with.
        say: told of each file.
        address: of the replies in PostgreSQL; empty for none that is configured.

    Raises:
        ConfigError: if a kind of files is gone as a whole.
        CorruptInput: if no run makes the file, it was made again in vain, or files go on being damaged.
    """
    seen = set[Path]()
    try:
        _check_mounted(workspace, address)
        _mend_notes(workspace, say)
        for _ in range(TRIES - 1):
            try:
                return run()
            except Damaged as error:
                path = error.path.resolve()
                if path in seen:
                    raise CorruptInput(
                        f"{path}: {error.what}; no run can make it: bring it back from a copy"
                    ) from error
                if not _take_away(workspace, path):
                    raise CorruptInput(
                        f"{path}: {error.what}; it is no file of this workspace: copy it again, or build it again"
                    ) from error
                seen.add(path)
                say(str(error))
        return run()
    finally:
        for folder in (workspace.corpora, *workspace.releases.glob("*")):
            settle_damaged(folder)


def _take_away(workspace: Workspace, path: Path) -> bool:
    """Put aside what a damaged file belongs to, where a run makes it again; say whether it is of the workspace."""
    root = workspace.root.resolve()
    if not path.is_relative_to(root):
        return False
    top, *inner = path.relative_to(root).parts
    if top == "derived" and inner:
        remove_whole(root / top / (inner[0] if len(inner) < 3 else Path(*inner[:2])))
    elif top == "corpus" and inner and _stays_damaged(path):
        put_aside(root / top / inner[0])
    return top in ("corpus", "derived", "images", "stages", "releases")


def _stays_damaged(path: Path) -> bool:
    """Read a file of a corpus again: another host, or memory that failed, is no reason to build for hours."""
    forget_checks()
    try:
        open_checked(path).recheck()
    except Damaged:
        return True
    return False


def mend_stages(
    workspace: Workspace, planned: Sequence[PlannedStage], corpus: Corpus, say: Say
) -> dict[Path, list[Path]]:
    """Look at the stages of a run, their pictures and releases, and undo what is damaged, so that the run makes it.

    Returns:
        The pictures that the corpus does not give back, each with the parts whose rows cite it: these shards are made
        again, too, and :func:`check_pictures` says whether that brought it back.

    Raises:
        ConfigError: if a stage or its pictures are of another version or gone as a whole, or replies would be paid
            again. Nothing was changed.
    """
    used = list_used(workspace)
    found = [examine_stage(plan.folder, (plan.name, plan.key) in used) for plan in planned]
    for finding in (each for damage in found for each in damage.findings):
        say(finding.describe())
    sound = {damage.folder.part(s.shard): (damage, s) for damage in found
             for s in (damage.manifest.shards if damage.manifest else ()) if s.shard not in damage.shards}  # fmt: skip
    lost = _mend_pictures(workspace, corpus, list(sound), say)
    for part in sorted({part for parts in lost.values() for part in parts}):
        damage, sealed = sound[part]
        # Not the file beside it, which may be damaged, too.
        damage.shards[sealed.shard] = sealed
        damage.add(part, "cites a picture that is gone")
    _check_paid(workspace, found)
    for damage in found:
        mend_stage(damage)
    for plan in planned:
        if plan.name == "releases":
            _mend_releases(workspace, plan, say)
    return lost


def _check_paid(workspace: Workspace, found: Sequence[StageDamage]) -> None:
    """Refuse to make a shard again of which a recorded reply is gone: it would be paid again."""
    for damage in found:
        named = {finding.path for finding in damage.findings}
        used = [path for path in map(damage.folder.used, damage.shards) if path.is_file() and path not in named]
        keys = sorted({key for path in used for key in path.read_text(encoding="ascii").split()})
        if gone := len(keys) - count_replies(workspace, keys):
            raise ConfigError(
                f"{damage.folder.path}: it is damaged, and {gone:,} of the {len(keys):,} recorded replies that it was "
                "made from are gone; bring them back from a copy, or remove the folder to ask, and pay, for them again"
            )


def mend_stage(damage: StageDamage) -> None:
    """Undo what is damaged of a stage: whole shards, whose cost stays noted, and the manifest with any."""
    folder, manifest = damage.folder, damage.manifest
    notes = damage.notes
    if manifest is not None and not damage.shards and (damage.lost or damage.notes):
        notes = sorted({*notes, *folder.path.glob("stopped-*.json")})
        folder.note_stopped(manifest.stopped)
    for path in notes:
        path.unlink()
    if damage.shards or (damage.lost and manifest is None):
        # Before the shards: a crash in between leaves a stage that is not sealed.
        folder.unseal()
    for shard, lost in damage.shards.items():
        if lost is not None:
            folder.note_lost(lost)
        folder.sidecar(shard).unlink(missing_ok=True)
    for sidecar in damage.sidecars:
        if sidecar.shard not in damage.shards:
            write_model(folder.sidecar(sidecar.shard), sidecar)


def _mend_pictures(workspace: Workspace, corpus: Corpus, parts: Sequence[Path], say: Say) -> dict[Path, list[Path]]:
    """Bring back pictures that are damaged or missing; return those that stay away, with the parts that cite them."""
    findings = {finding.path: finding for finding in examine_pictures(workspace, CHECKED_BYTES, parts)}
    if len(findings) > 1 and not any(workspace.images.glob("??/*")):
        raise ConfigError(_explain_gone(workspace.images, [workspace.root / "stages"]))
    wanted = {path.stem for path in findings}
    cited, citing = dict[str, CitedPicture](), defaultdict[str, list[Path]](list)
    for part in parts if wanted else ():
        for sha256, picture in read_pictures([part]).items():
            if sha256 in wanted:
                cited[sha256] = picture
                citing[sha256].append(part)
    cited |= find_replied_pictures(workspace, wanted - cited.keys())
    for finding in findings.values():
        say(finding.describe())
    stay = [
        path for path in findings if path.stem not in cited or not _restore_picture(workspace, corpus, cited[path.stem])
    ]
    for path in stay:
        if path.stem not in citing and path.is_file():
            # No row of this run needs it, and it is not what its name says: it goes aside, and may be fetched again.
            put_aside(path)
    return {path: citing[path.stem] for path in stay if path.stem in citing}


def check_pictures(lost: Mapping[Path, Sequence[Path]]) -> None:
    """Check that shards which were made again brought back the pictures that they cite.

    Args:
        lost: as :func:`mend_stages` returned them.

    Raises:
        ConfigError: naming one that is still gone.
    """
    gone = [
        path
        for path, parts in lost.items()
        if path.stem in read_pictures(filter(Path.is_file, parts))
        and not (path.is_file() and digest_file(path) == path.stem)
    ]
    if gone:
        raise ConfigError(
            f"{gone[0]}: rows cite it, and nothing here makes it again ({len(gone):,} such pictures); bring it back "
            "from a copy, or name the tool that found it in --fresh-replies"
        )


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
    """Remove the receipt of damaged releases: the run publishes again, and a damaged version stays until then."""
    receipt = plan.folder.path / "published.json"
    for finding in examine_receipt(workspace, plan.folder):
        say(finding.describe())
    for folder, sealed in read_receipts(workspace, [receipt]).items():
        for finding in examine_release(folder, sealed, CHECKED_BYTES):
            say(finding.describe())
            receipt.unlink(missing_ok=True)
            if finding.path.name == MANIFEST and folder.is_dir():
                # Publishing goes by the manifest, so it would not notice.
                put_aside(folder)
