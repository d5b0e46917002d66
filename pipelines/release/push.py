"""Push a release to the Hugging Face Hub: one commit, each file verified by its digest, then a tag.

``upload_folder`` is several commits since hub 1.20, so a crash would leave half a release on the main branch;
``create_commit`` is one. The client reads the token itself.
"""

import hashlib
import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.errors import ConfigError, GateNotMet, Unavailable
from pipelines.release.manifest import MANIFEST, ReleaseManifest, check_release_files
from pipelines.release.rows import list_files

if TYPE_CHECKING:
    from huggingface_hub import HfApi

HINT = "install it with: pip install -e '.[hub]'"
SERVER_FILES = frozenset({".gitattributes"})
KIND = "dataset"


@dataclass(frozen=True, slots=True)
class PushReceipt:
    """Where a release went. Tags can be moved by the repository's owner, so the commit is the lasting name."""

    repo: str
    commit: str
    tag: str
    files: int


def push_release(folder: Path, repo: str, api: "HfApi | None" = None, private: bool = True) -> PushReceipt:
    """Push a release folder; running it again after a failure sends only what is missing.

    Args:
        folder: a published release, hashed against its manifest before anything is sent.
        repo: ``org/name``; made when it does not exist.
        api: a client; by default ``HfApi()``, which finds endpoint and token itself.
        private: whether a new repository is private.

    Raises:
        ConfigError: if huggingface_hub is missing, ``repo`` is no ``org/name``, or the tag names another commit.
        GateNotMet: if the folder or what the Hub holds afterwards is not what the manifest says.
        Unavailable: if the Hub cannot be reached or refuses the commit.
    """
    if repo.count("/") != 1 or not all(repo.split("/")):
        raise ConfigError(f"push: {repo!r} is not a repository name; write org/name")
    manifest = check_release_files(folder)
    try:
        from huggingface_hub import HfApi
        from huggingface_hub.errors import HfHubHTTPError
    except ImportError as error:
        raise ConfigError(f"push: huggingface_hub is missing; {HINT}") from error
    client = api if api is not None else HfApi()
    # huggingface_hub came with httpx, or with httpx2 since its version 2.
    libraries = [name for name in ("httpx2", "httpx") if importlib.util.find_spec(name) is not None]
    transport = [importlib.import_module(name).HTTPError for name in libraries]
    failures: tuple[type[Exception], ...] = (HfHubHTTPError, OSError, *transport)
    try:
        client.create_repo(repo, repo_type=KIND, private=private, exist_ok=True)
        commit = _commit_folder(client, folder, repo, manifest)
        if problems := list_differences(client, folder, repo, commit):
            raise GateNotMet(f"push to {repo}: commit {commit} differs from the release: {'; '.join(problems)}")
        tag = _tag_commit(client, repo, commit, manifest)
    except failures as error:
        hint = "is there a network, and a token with write access in HF_TOKEN? run the same command again"
        raise Unavailable(f"push to {repo}: {error}; {hint}") from error
    return PushReceipt(repo, commit, tag, len(manifest.files) + 1)


def _commit_folder(client: "HfApi", folder: Path, repo: str, manifest: ReleaseManifest) -> str:
    """Make the main branch hold exactly the folder, in one commit on top of the state that was compared."""
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    parent = str(client.repo_info(repo, repo_type=KIND).sha)
    remote = set(client.list_repo_files(repo, repo_type=KIND))
    wanted = [*(entry.name for entry in manifest.files), MANIFEST]
    if set(wanted) <= remote and not list_differences(client, folder, repo, parent):
        return parent
    operations: list[Any] = [CommitOperationAdd(name, folder / name) for name in wanted]
    operations += [CommitOperationDelete(name) for name in sorted(remote - set(wanted) - SERVER_FILES)]
    message = f"{manifest.dataset} {manifest.version}"
    made = client.create_commit(repo, operations, commit_message=message, repo_type=KIND, parent_commit=parent)
    return str(made.oid)


def list_differences(client: "HfApi", folder: Path, repo: str, revision: str) -> list[str]:
    """Return how a revision on the Hub differs from the folder; empty when they are the same."""
    tree = client.list_repo_tree(repo, recursive=True, revision=revision, repo_type=KIND)
    remote = {entry.path: entry for entry in tree if hasattr(entry, "blob_id")}
    local = {path.relative_to(folder).as_posix(): path for path in list_files(folder)}
    problems = [f"{name} is missing" for name in sorted(local.keys() - remote.keys())]
    problems += [f"{name} should not be there" for name in sorted(remote.keys() - local.keys() - SERVER_FILES)]
    for name in sorted(local.keys() & remote.keys()):
        if not _is_same(local[name], remote[name]):
            problems.append(f"{name} has other bytes")
    return problems


def _is_same(path: Path, entry: Any) -> bool:  # noqa: ANN401 - huggingface_hub's RepoFile
    content = path.read_bytes()
    if entry.lfs is not None:
        return bool(entry.lfs.sha256 == hashlib.sha256(content).hexdigest())
    blob = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False)
    return bool(entry.blob_id == blob.hexdigest())


def _tag_commit(client: "HfApi", repo: str, commit: str, manifest: ReleaseManifest) -> str:
    tag = f"v{manifest.version}"
    found = {entry.name: entry.target_commit for entry in client.list_repo_refs(repo, repo_type=KIND).tags}
    if tag not in found:
        message = f"{manifest.dataset}, content {manifest.content}"
        client.create_tag(repo, tag=tag, tag_message=message, revision=commit, repo_type=KIND)
    elif found[tag] != commit:
        raise ConfigError(f"push to {repo}: tag {tag} names commit {found[tag]}, not {commit}; a tag never moves")
    return tag
