"""Damage to a workspace: every file whose sha256 is known is read and compared."""

from collections.abc import Iterator
from pathlib import Path

from pipelines.corpus.manifest import explain_rebuild, read_manifest
from pipelines.ids import digest_file
from pipelines.release.manifest import find_changes, read_release_manifest
from pipelines.run.shards import explain_remake
from pipelines.run.workspace import StageFolder, Workspace


def find_damage(workspace: Workspace) -> Iterator[str]:
    """Yield a line for each file that is missing or has other bytes than were written, with how it is made again."""
    for folder in sorted(workspace.root.glob("stages/*/[!.]*")):
        stage = StageFolder(folder)
        manifest = stage.read_manifest()
        for sidecar in manifest.shards if manifest else stage.list_sidecars():
            yield from _compare({folder / entry.name: entry.sha256 for entry in sidecar.files}, explain_remake(folder))
    for path in sorted(workspace.corpora.glob("[!.]*/manifest.json")):
        files = {path.parent / name: sha256 for name, (_, sha256) in read_manifest(path).files.items()}
        yield from _compare(files, explain_rebuild(path.parent))
    pictures = {path: path.stem for path in sorted(workspace.images.glob("??/[!.]*"))}
    yield from _compare(pictures, "bring it back from a copy, or remove the stages whose rows cite it")
    for folder in workspace.list_releases():
        for change in find_changes(folder, read_release_manifest(folder)):
            yield f"{folder}: {change}; remove it: `synth run` then publishes it again"


def _compare(files: dict[Path, str], remedy: str) -> Iterator[str]:
    for path, sha256 in files.items():
        if not path.is_file():
            yield f"{path}: is missing; {remedy}"
        elif digest_file(path) != sha256:
            yield f"{path}: has other bytes than were written; {remedy}"
