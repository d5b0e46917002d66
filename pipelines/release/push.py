"""Push a release to the Hugging Face Hub: a plan, one commit of what changed, verified by digests, then a tag.

A repository may hold several of our datasets and what others put there. A release lies in ``data/<dataset>/`` as it is
in the workspace; ``README.md`` lists every config, and ``data/synth.json`` every file that a push wrote, with digests:
only a file that still is what a push left is ours to change or to delete.

``upload_folder`` is several commits since hub 1.20, so a crash would leave half a release on the main branch;
``create_commit`` is one. The client reads the token itself.
"""

import hashlib
import importlib.util
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, ValidationError

from pipelines.errors import ConfigError, GateNotMet, Unavailable
from pipelines.ids import CHUNK, digest_file
from pipelines.release.hub_card import join_fronts, merge_card, read_front, split_card
from pipelines.release.manifest import MANIFEST, ReleaseManifest, check_release_files, list_inventions
from schemas.manifest import ManifestPart

if TYPE_CHECKING:
    from huggingface_hub import HfApi

KIND: Literal["dataset"] = "dataset"
CARD = "README.md"
RECORD = "data/synth.json"
NO_DATA = frozenset({"", ".md", ".py", ".ipynb", ".toml", ".yaml", ".yml", ".sh", ".cff", ".bib", ".lock"})
"""Endings of files that the Hub does not load as rows where a card lists no configs."""

Digests = tuple[str, str]
"""sha256, by which the Hub knows a large file, and git's sha1, by which it knows a small one."""


class PushedDataset(ManifestPart):
    """What the last push of a dataset left in a repository."""

    version: str
    files: dict[str, Digests]
    front: dict[str, Any]
    """What the card's front matter says of this dataset."""
    root: str = ""
    """sha256 of its manifest."""


class PushRecord(ManifestPart):
    """``data/synth.json``: everything in a repository that pushes wrote, in the order in which datasets came."""

    schema_version: int = 1
    front: dict[str, Any] = Field(default_factory=dict)
    """What the last push wrote into the card's front matter, of all our datasets."""
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
    expected: Mapping[str, Digests | str | None] = field(repr=False)
    """What the repository must hold afterwards; a text for what stays as the Hub has it, None for what goes."""

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
    """A repository as it is: its files as the Hub tells of them, card and record."""

    url: str
    private: bool
    commit: str = ""
    """Empty where there is no repository yet."""
    files: Mapping[str, Any] = field(default_factory=dict)
    card: str = ""
    record: PushRecord = field(default_factory=PushRecord)
    tags: Mapping[str, str] = field(default_factory=dict)


def plan_push(folder: Path, repo: str, api: "HfApi | None" = None, options: PushOptions | None = None) -> PushPlan:
    """Return what a push would do; nothing is sent.

    Args:
        folder: a published release, hashed against its manifest.
        repo: ``org/name``.
        api: a client; by default ``HfApi()``, which finds endpoint and token itself.
        options: what the push may do.

    Raises:
        ConfigError: if huggingface_hub is missing, ``repo`` is no ``org/name``, what is not ours stands in the way, toy
            or scripted data would be public, or the version's tag names another content.
        GateNotMet: if the folder is not what its manifest says.
        Unavailable: if the Hub cannot be reached.
    """
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
    """Do what a plan says, in one commit; running it again after a failure sends only what is missing.

    Raises:
        GateNotMet: if the Hub holds something else afterwards than was planned.
        Unavailable: if the Hub cannot be reached, refuses the commit, or the repository has changed since the plan.
    """
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
    """Turn what the client raises into one message with what to do."""
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
    """Return a repository as it is; one that does not exist would be made private if ``private``."""
    from huggingface_hub.errors import RepositoryNotFoundError

    url = f"{client.endpoint}/datasets/{repo}"
    try:
        about = client.repo_info(repo, repo_type=KIND)
    except RepositoryNotFoundError:
        return Remote(url, private)
    commit = str(about.sha)
    files = _list_tree(client, repo, commit)
    texts = {
        name: Path(client.hf_hub_download(repo, name, repo_type=KIND, revision=commit)).read_bytes()
        for name in (CARD, RECORD)
        if name in files
    }
    try:
        record = PushRecord.model_validate_json(texts[RECORD]) if RECORD in texts else PushRecord()
        card = texts.get(CARD, b"").decode()
    except (ValidationError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"push: {repo}: {CARD} is no text or {RECORD} no list of files that a push wrote: take it back to how it "
            "was, or push elsewhere"
        ) from error
    tags = {entry.name: str(entry.target_commit) for entry in client.list_repo_refs(repo, repo_type=KIND).tags}
    return Remote(url, bool(about.private), commit, files, card, record, tags)


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
    contents: dict[str, Path | bytes] = {**_place_files(folder, manifest)}
    ours = {path: digests for pushed in remote.record.datasets.values() for path, digests in pushed.files.items()}
    before = remote.record.datasets.get(manifest.dataset)
    gone = [path for path in (before.files if before else {}) if path not in own and path in remote.files]
    touched = [path for path in own if path in remote.files and not _is_same(own[path], remote.files[path])]
    card, record, conflicts = _write_card(folder, manifest, remote, own)
    conflicts += [
        f"{p} is not as a push left it" for p in (*touched, *gone) if not _is_same(ours.get(p), remote.files[p])
    ]
    conflicts += _list_hidden(remote, {*own, *ours, RECORD, CARD, ".gitattributes"})
    if conflicts and not options.replace:
        raise ConfigError(
            f"push: what is not ours stands in the way: {'; '.join(conflicts)}. Nothing was sent. Push to another "
            "repository, mend it there, or say --replace to overwrite just this"
        )
    contents |= {CARD: card, RECORD: record}
    wanted = {**own, CARD: _digest(card), RECORD: _digest(record)}
    sent = {path: contents[path] for path in wanted if not _is_same(wanted[path], remote.files.get(path))}
    stay = remote.files.keys() - wanted.keys() - set(gone)
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
        root=digest_file(folder / MANIFEST),
        changes=tuple(changes),
        same=len(wanted) - len(sent),
        kept=len(stay),
        replaced=tuple(conflicts),
        parent=remote.commit,
        tagged=remote.tags.get(f"v{manifest.version}", ""),
        contents=sent,
        expected={**wanted, **dict.fromkeys(gone), **{path: _tell_apart(remote.files[path]) for path in stay}},
    )


def _list_hidden(remote: Remote, ours: set[str]) -> list[str]:
    """Return what could no longer be loaded once a card that lists no configs lists ours."""
    if read_front(split_card(remote.card)[0], "the repository").get("configs"):
        return []
    strange = (path for path in sorted(remote.files) if path not in ours)
    data = [path for path in strange if PurePosixPath(path).suffix.lower() not in NO_DATA][:1]
    return [f"{path} is loaded without a name, as {CARD} lists no configs: list it there first" for path in data]


def _write_card(
    folder: Path, manifest: ReleaseManifest, remote: Remote, files: Mapping[str, Digests]
) -> tuple[bytes, bytes, list[str]]:
    """Return card and record of the repository after the push, and what in the card stands in the way."""
    front, body = split_card((folder / CARD).read_text(encoding="utf-8"))
    name, place = manifest.dataset, f"data/{manifest.dataset}"
    values = read_front(front, str(folder))
    text = f"Files of this dataset, with its proofs and credits: [`{place}/`](./{place}). Load it by name: `{name}`."
    features = [{**entry, "config_name": name} for entry in values.get("dataset_info", [])]
    own = {**values, "configs": _name_configs(manifest), "dataset_info": features}
    root = files[f"{place}/{MANIFEST}"][0]
    pushed = PushedDataset(version=manifest.version, files=dict(files), front=own, root=root)
    datasets = {**remote.record.datasets, name: pushed}
    wanted = join_fronts([entry.front for entry in datasets.values()])
    card, conflicts = merge_card(remote.card, remote.record.front, wanted, {name: f"{text}\n\n{body.strip()}"})
    record = PushRecord(front=wanted, datasets=datasets)
    return card.encode(), f"{record.model_dump_json(indent=1)}\n".encode(), conflicts


def _name_configs(manifest: ReleaseManifest) -> list[dict[str, Any]]:
    """Return the configs of a dataset; patterns name the number of shards, so that they match no older file."""
    name = manifest.dataset
    found: dict[str, list[dict[str, str]]] = {"data": [], "proofs": []}
    for folder, files in found.items():
        for split in manifest.splits:
            count = sum(entry.name.startswith(f"{folder}/{split.name}-") for entry in manifest.files)
            path = f"data/{name}/{folder}/{split.name}-*-of-{count:05d}.parquet"
            files.append({"split": split.name, "path": path})
    return [
        {"config_name": name, "default": True, "data_files": found["data"]},
        {"config_name": f"{name}-proofs", "data_files": found["proofs"]},
    ]


def _place_files(folder: Path, manifest: ReleaseManifest) -> dict[str, Path]:
    names = [*(entry.name for entry in manifest.files), MANIFEST]
    return {f"data/{manifest.dataset}/{name}": folder / name for name in names}


def _measure(content: Path | bytes) -> int:
    return len(content) if isinstance(content, bytes) else content.stat().st_size


def _digest(content: Path | bytes) -> Digests:
    sha256, blob = hashlib.sha256(), hashlib.sha1(b"blob %d\0" % _measure(content), usedforsecurity=False)
    for chunk in [content] if isinstance(content, bytes) else _read_chunks(content):
        sha256.update(chunk)
        blob.update(chunk)
    return sha256.hexdigest(), blob.hexdigest()


def _read_chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as source:
        while chunk := source.read(CHUNK):
            yield chunk


def _tell_apart(entry: Any) -> str:  # noqa: ANN401 - huggingface_hub's RepoFile
    return str(entry.lfs.sha256 if entry.lfs is not None else entry.blob_id)


def _is_same(digests: Digests | str | None, entry: Any) -> bool:  # noqa: ANN401 - as above, or None for no file
    if entry is None or digests is None:
        return entry is digests
    told = _tell_apart(entry)
    return digests == told if isinstance(digests, str) else digests[0 if entry.lfs is not None else 1] == told


def _list_differences(
    client: "HfApi", repo: str, revision: str, expected: Mapping[str, Digests | str | None]
) -> list[str]:
    """Return how a revision on the Hub differs from what is expected there; other files are not looked at."""
    remote = _list_tree(client, repo, revision)
    told = {path: "has other bytes" if path in remote else "is missing" for path in expected}
    told |= {path: "is still there" for path, digests in expected.items() if digests is None}
    return [f"{path} {told[path]}" for path in sorted(expected) if not _is_same(expected[path], remote.get(path))]
