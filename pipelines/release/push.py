"""Push a release to the Hugging Face Hub: a plan, one commit of what changed, verified by digests, then a tag.

A repository may hold several of our datasets. A release lies in ``data/<dataset>/`` as it is in the workspace; a push
writes ``README.md`` for all of them, and lists every file it wrote in ``data/synth.json``, with digests. Other files
stay; a file that stands in the way and is not as a push left it is overwritten only with ``replace``.

``upload_folder`` is several commits since hub 1.20, so a crash would leave half a release on the main branch;
``create_commit`` is one. The client reads the token itself.
"""

import hashlib
import importlib.util
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import yaml  # type: ignore[import-untyped]
from pydantic import Field, ValidationError

from pipelines.errors import ConfigError, GateNotMet, Unavailable
from pipelines.ids import digest_file
from pipelines.release.manifest import MANIFEST, ReleaseManifest, check_release_files, list_inventions
from schemas.manifest import ManifestPart

if TYPE_CHECKING:
    from huggingface_hub import HfApi

KIND: Literal["dataset"] = "dataset"
CARD = "README.md"
RECORD = "data/synth.json"

Digests = tuple[str, str]
"""sha256, by which the Hub knows a large file, and git's sha1, by which it knows a small one."""


class PushedDataset(ManifestPart):
    """What the last push of a dataset left in a repository."""

    version: str
    root: str
    """sha256 of its manifest."""
    files: dict[str, Digests]
    front: dict[str, Any]
    """Front matter and text of its part of the card."""
    text: str


class PushRecord(ManifestPart):
    """``data/synth.json``: everything in a repository that pushes wrote, in the order in which datasets came."""

    card: Digests = ("", "")
    datasets: dict[str, PushedDataset] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PushOptions:
    """What a push may do.

    Attributes:
        public: make a new repository public.
        pull_request: open a pull request in place of a commit on the main branch.
        replace: overwrite what is not ours where it stands in the way.
        toy: let toy or scripted data be public.
    """

    public: bool = False
    pull_request: bool = False
    replace: bool = False
    toy: bool = False


@dataclass(frozen=True, slots=True)
class FileChange:
    """What a push does to one file; ``bytes`` are those it sends, or those of a file that it deletes."""

    path: str
    state: Literal["added", "changed", "deleted"]
    bytes: int


@dataclass(frozen=True, slots=True)
class PushPlan:
    """What a push would do. Nothing is sent for it."""

    repo: str
    url: str
    private: bool
    pull_request: bool
    dataset: str
    version: str
    root: str
    """sha256 of the release's manifest, which commit and tag name."""
    changes: tuple[FileChange, ...]
    same: int
    """Files of the release that the repository has already."""
    kept: int
    """Files in the repository that are not this release's and stay as they are."""
    replaced: tuple[str, ...]
    """What is not ours and is overwritten, with ``replace``."""
    parent: str
    """Commit that the plan was made for; empty where the repository is still to be made."""
    tagged: str
    """Commit that carries the version's tag already; may be empty."""
    contents: Mapping[str, Path | bytes] = field(repr=False)
    expected: Mapping[str, Digests | None] = field(repr=False)
    """What the repository must hold afterwards; None for what goes."""

    @property
    def tag(self) -> str:
        """The version's tag."""
        return f"v{self.version}"

    @property
    def message(self) -> str:
        """What commit and tag say: what was pushed, and what its manifest must be."""
        return f"{self.dataset} {self.version}\n\nroot sha256:{self.root}"

    @property
    def done(self) -> bool:
        """Whether there is nothing left to do."""
        return not self.changes and bool(self.tagged)


@dataclass(frozen=True, slots=True)
class PushReceipt:
    """Where a release went. Tags can be moved by the repository's owner, so the commit is the lasting name."""

    repo: str
    commit: str
    tag: str
    """Empty for a pull request: push again once it is merged, and the version is tagged."""
    files: int
    """Files that were sent or deleted."""
    url: str
    root: str = ""
    """sha256 of the manifest that was pushed: `synth verify --root` takes it."""


@dataclass(frozen=True, slots=True)
class Remote:
    """A repository as it is: its files as the Hub tells of them, and the record of our pushes."""

    url: str
    private: bool
    commit: str = ""
    """Empty where there is no repository yet."""
    files: Mapping[str, Any] = field(default_factory=dict)
    record: PushRecord = field(default_factory=PushRecord)
    tags: Mapping[str, str] = field(default_factory=dict)


def plan_push(folder: Path, repo: str, api: "HfApi | None" = None, options: PushOptions | None = None) -> PushPlan:
    """Return what a push of a published release into ``repo`` would do; nothing is sent."""
    if repo.count("/") != 1 or not all(repo.split("/")):
        raise ConfigError(f"push: {repo!r} is not a repository name; write org/name")
    options, manifest = options or PushOptions(), check_release_files(folder)
    with _explaining(repo):
        client = api or _open_client()
        remote = _read_remote(client, repo, not options.public)
        if remote.private and options.public:
            raise ConfigError(
                f"push: {repo} exists and is private; make it public in its settings, if all that it holds may be"
            )
        invented = list_inventions(manifest)
        if invented and not remote.private and not options.toy:
            raise ConfigError(
                f"push: {manifest.dataset} {manifest.version} would be public, and {'; '.join(invented)}; "
                "push it to a private repository, or say --toy if that is meant"
            )
        own = {path: _digest(source) for path, source in _place_files(folder, manifest).items()}
        tagged = remote.tags.get(f"v{manifest.version}", "")
        if tagged and (told := _list_differences(client, repo, tagged, own)):
            raise ConfigError(f"push to {repo}: tag v{manifest.version} names commit {tagged}, where {told[0]}; "
                              "a tag never moves")  # fmt: skip
    return _make_plan(folder, manifest, repo, remote, options, own)


def carry_out(plan: PushPlan, api: "HfApi | None" = None) -> PushReceipt:
    """Do what a plan says, in one commit; running it again after a failure sends only what is missing."""
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    with _explaining(plan.repo):
        client, tag, commit, url = api or _open_client(), plan.tag, plan.tagged or plan.parent, plan.url
        if not plan.parent:
            client.create_repo(plan.repo, repo_type=KIND, private=plan.private, exist_ok=False)
        if plan.changes:
            operations: list[Any] = [
                CommitOperationDelete(change.path)
                if change.state == "deleted"
                else CommitOperationAdd(change.path, plan.contents[change.path])
                for change in plan.changes
            ]
            made = client.create_commit(
                plan.repo,
                operations,
                commit_message=plan.message,
                repo_type=KIND,
                parent_commit=plan.parent or str(client.repo_info(plan.repo, repo_type=KIND).sha),
                create_pr=plan.pull_request,
            )
            commit, url = str(made.oid), made.pr_url or url
            if problems := _list_differences(client, plan.repo, made.pr_revision or commit, plan.expected):
                raise GateNotMet(f"push to {plan.repo}: commit {commit} differs from the plan: {'; '.join(problems)}")
        if plan.pull_request and plan.changes:
            tag = ""
        elif not plan.tagged:
            client.create_tag(plan.repo, tag=tag, tag_message=plan.message, revision=commit, repo_type=KIND)
    return PushReceipt(plan.repo, commit, tag, len(plan.changes), url, plan.root)


def _open_client() -> "HfApi":
    try:
        from huggingface_hub import HfApi
    except ImportError as error:
        hint = "install it with: pip install -e '.[hub]'"
        raise ConfigError(f"push: huggingface_hub is missing; {hint}") from error
    return HfApi()


@contextmanager
def _explaining(repo: str) -> Iterator[None]:
    # huggingface_hub came with httpx, or with httpx2 since its version 2; Xet's library raises a RuntimeError.
    errors = {"httpx": "HTTPError", "httpx2": "HTTPError", "huggingface_hub": "errors.HfHubHTTPError"}
    failures: list[type[Exception]] = [OSError, RuntimeError]
    for library, name in errors.items():
        if importlib.util.find_spec(library) is not None:
            module, _, kind = f"{library}.{name}".rpartition(".")
            failures.append(getattr(importlib.import_module(module), kind))
    try:
        yield
    except tuple(failures) as error:
        hint = "is there a network, and a token with write access in HF_TOKEN? run the same command again"
        told = f"{error}: {error.__cause__}" if isinstance(error, RuntimeError) and error.__cause__ else str(error)
        raise Unavailable(f"push to {repo}: {told}; {hint}") from error
    except ValueError as error:
        # The client's own word on names, and the Hub's on cards.
        raise ConfigError(f"push to {repo}: {error}") from error


def _read_remote(client: "HfApi", repo: str, private: bool) -> Remote:
    from huggingface_hub.errors import RepositoryNotFoundError

    url = f"{client.endpoint}/datasets/{repo}"
    try:
        about = client.repo_info(repo, repo_type=KIND)
    except RepositoryNotFoundError:
        return Remote(url, private)
    commit = str(about.sha)
    files = _list_tree(client, repo, commit)
    record = PushRecord()
    if RECORD in files:
        path = client.hf_hub_download(repo, RECORD, repo_type=KIND, revision=commit)
        try:
            record = PushRecord.model_validate_json(Path(path).read_bytes())
        except ValidationError as error:
            raise ConfigError(
                f"push: {repo}: {RECORD} is no list of files that a push of this synth wrote: push elsewhere"
            ) from error
    tags = {entry.name: str(entry.target_commit) for entry in client.list_repo_refs(repo, repo_type=KIND).tags}
    return Remote(url, bool(about.private), commit, files, record, tags)


def _list_tree(client: "HfApi", repo: str, revision: str) -> dict[str, Any]:
    tree = client.list_repo_tree(repo, recursive=True, revision=revision, repo_type=KIND)
    return {entry.path: entry for entry in tree if hasattr(entry, "blob_id")}


def _make_plan(
    folder: Path,
    manifest: ReleaseManifest,
    repo: str,
    remote: Remote,
    options: PushOptions,
    own: Mapping[str, Digests],
) -> PushPlan:
    datasets = remote.record.datasets
    left = {CARD: remote.record.card, **{path: each for one in datasets.values() for path, each in one.files.items()}}
    pushed = _describe(folder, manifest, own)
    gone = [path for path in left if path.startswith(f"data/{manifest.dataset}/") and path not in own]
    gone = [path for path in gone if path in remote.files]
    card = _render_card(datasets | {manifest.dataset: pushed})
    record = PushRecord(card=_digest(card), datasets=datasets | {manifest.dataset: pushed})
    listed = f"{record.model_dump_json(indent=1)}\n".encode()
    contents: dict[str, Path | bytes] = {**_place_files(folder, manifest), CARD: card, RECORD: listed}
    wanted = {**own, CARD: record.card, RECORD: _digest(listed)}
    sent = {path: contents[path] for path in wanted if not _is_same(wanted[path], remote.files.get(path))}
    conflicts = [
        f"{path} is not as a push left it"
        for path in (*sent, *gone)
        if path in remote.files and path != RECORD and not _is_same(left.get(path), remote.files[path])
    ]
    if conflicts and not options.replace:
        raise ConfigError(
            f"push: what is not ours stands in the way: {'; '.join(conflicts)}. Nothing was sent. Push to another "
            "repository, mend it there, or say --replace to overwrite just this"
        )
    changes = [
        FileChange(path, "changed" if path in remote.files else "added", _measure(content))
        for path, content in sorted(sent.items())
    ]
    changes += [FileChange(path, "deleted", int(remote.files[path].size)) for path in sorted(gone)]
    return PushPlan(
        repo=repo,
        url=remote.url,
        private=remote.private,
        pull_request=options.pull_request,
        dataset=manifest.dataset,
        version=manifest.version,
        root=pushed.root,
        changes=tuple(changes),
        same=len(wanted) - len(sent),
        kept=len(remote.files.keys() - wanted.keys() - set(gone)),
        replaced=tuple(conflicts),
        parent=remote.commit,
        tagged=remote.tags.get(f"v{manifest.version}", ""),
        contents=sent,
        expected={**wanted, **dict.fromkeys(gone)},
    )


def _describe(folder: Path, manifest: ReleaseManifest, files: Mapping[str, Digests]) -> PushedDataset:
    _, front, body = (folder / CARD).read_text(encoding="utf-8").split("---\n", 2)
    name, place = manifest.dataset, f"data/{manifest.dataset}"
    configs = []
    for config, kind in ((name, "data"), (f"{name}-proofs", "proofs")):
        shards = []
        for split in manifest.splits:
            # A pattern names the number of shards, so that it matches no older file.
            count = sum(entry.name.startswith(f"{kind}/{split.name}-") for entry in manifest.files)
            shards.append({"split": split.name, "path": f"{place}/{kind}/{split.name}-*-of-{count:05d}.parquet"})
        configs.append({"config_name": config, "data_files": shards})
    text = f"Files of this dataset, with its proofs and credits: [`{place}/`](./{place}). Load it by name: `{name}`."
    return PushedDataset(
        version=manifest.version,
        root=digest_file(folder / MANIFEST),
        files=dict(files),
        front={**yaml.safe_load(front), "configs": configs},
        text=f"{text}\n\n{body.strip()}",
    )


def _render_card(datasets: Mapping[str, PushedDataset]) -> bytes:
    joined: dict[str, Any] = {}
    for key, value in (item for each in datasets.values() for item in each.front.items()):
        if key not in joined:
            joined[key] = value
        elif isinstance(value, list):
            joined[key] = [*joined[key], *(entry for entry in value if entry not in joined[key])]
        elif value != joined[key]:
            joined[key] = f"{joined[key]}; {value}"
    joined["configs"] = [{**joined["configs"][0], "default": True}, *joined["configs"][1:]]
    front = "".join(f"{key}: {json.dumps(value, ensure_ascii=False)}\n" for key, value in joined.items())
    return "\n\n".join([f"---\n{front}---", *(each.text for each in datasets.values()), ""]).encode()


def _place_files(folder: Path, manifest: ReleaseManifest) -> dict[str, Path]:
    names = [*(entry.name for entry in manifest.files), MANIFEST]
    return {f"data/{manifest.dataset}/{name}": folder / name for name in names}


def _measure(content: Path | bytes) -> int:
    return len(content) if isinstance(content, bytes) else content.stat().st_size


def _digest(content: Path | bytes) -> Digests:
    blob = hashlib.sha1(b"blob %d\0" % _measure(content), usedforsecurity=False)
    if isinstance(content, bytes):
        blob.update(content)
        return hashlib.sha256(content).hexdigest(), blob.hexdigest()
    with content.open("rb") as source:
        return digest_file(content), hashlib.file_digest(source, lambda: blob).hexdigest()


def _is_same(digests: Digests | None, entry: Any) -> bool:  # noqa: ANN401 - huggingface_hub's RepoFile, None for none
    if entry is None or digests is None:
        return entry is digests
    told: str = entry.blob_id if entry.lfs is None else entry.lfs.sha256
    return told in digests


def _list_differences(client: "HfApi", repo: str, revision: str, expected: Mapping[str, Digests | None]) -> list[str]:
    remote = _list_tree(client, repo, revision)
    apart = [path for path in sorted(expected) if not _is_same(expected[path], remote.get(path))]
    return [f"{path} {'has other bytes' if path in remote else 'is missing'}" for path in apart]
