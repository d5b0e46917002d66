"""The manifest: what a sealed stage folder holds and where it came from. Existence means complete."""

from collections import Counter
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

SCHEMA_VERSION = 1


class ManifestPart(BaseModel):
    """Frozen, no undeclared fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class BenchmarkEntry(ManifestPart):
    """A benchmark that questions were kept apart from."""

    name: str
    layouts: tuple[str, ...]
    digest: str
    """Of its files and what was said of them."""
    questions: int
    unread: int
    """Rows without a question."""
    pictures: int
    """Compared."""
    pictures_missing: int
    """Named by a question and not found, or not readable: not compared."""
    hits: dict[str, int] = {}
    """Questions refused for it, by kind; one may count under several."""


def _add(one: ManifestPart, other: ManifestPart, names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(one, name) + getattr(other, name) for name in names}


class RoleUsage(ManifestPart):
    """Use of one model in one role."""

    calls: int = 0
    cached_calls: int = 0
    tokens: int = 0
    """In and out."""
    cost: float = 0.0

    def __add__(self, other: "RoleUsage") -> "RoleUsage":
        """Return the sum, field by field."""
        return RoleUsage.model_construct(**_add(self, other, RoleUsage.model_fields))


class Usage(ManifestPart):
    """Use of models and tools: requests, tokens, time, money."""

    calls: int = 0
    """Requests that a backend answered, and that a recording keeps."""
    cached_calls: int = 0
    """Requests answered from the recording."""
    retries: int = 0
    """Requests sent again because no complete reply came; they may have cost, too."""
    tokens_in: int = 0
    tokens_out: int = 0
    gpu_seconds: float = 0.0
    """Seconds of the GPUs behind a model, shared out among the requests that were under way at the same time."""
    cost: float = 0.0
    """In the currency of the configured prices; 0.0 for scripted models."""
    discount: float = 0.0
    """What the requests would have cost more if none had been asked in a batch."""
    served: dict[str, int] = Field(default_factory=dict)
    """Replies by ``model asked: model and fingerprint that the server named``, recorded ones included."""
    roles: dict[str, RoleUsage] = Field(default_factory=dict)
    """What of it models used, by ``role: model``; the rest are tools."""

    def __add__(self, other: "Usage") -> "Usage":
        """Return the sum, field by field; sums of what was checked need no check."""
        return Usage.model_construct(
            **_add(self, other, Usage.model_fields.keys() - {"served", "roles"}),
            served=dict(Counter(self.served) + Counter(other.served)) if other.served else self.served,
            roles=self.roles | {name: self.roles.get(name, RoleUsage()) + use for name, use in other.roles.items()},
        )


def _check_inside(name: str) -> str:
    """Refuse a name that leads out of the folder, or that systems read differently."""
    path = PurePosixPath(name)
    if path.is_absolute() or not path.parts or ".." in path.parts or path.as_posix() != name or {*name} & {*"\\\0"}:
        raise ValueError(f"{name!r} is no name of a file inside the folder")
    return name


class FileEntry(ManifestPart):
    """One file: name inside the folder, rows, bytes and sha256."""

    name: Annotated[str, AfterValidator(_check_inside)]
    rows: int
    bytes: int
    sha256: str


class ShardSidecar(ManifestPart):
    """``part-00000.json``: written after the shard's three files, so its existence means they are whole."""

    shard: int
    source: str
    """sha256 of the part the rows were read from: a shard of another cut of the same input is not this one."""
    rows_in: int
    kept: int
    rejected: dict[str, int]
    failed: int
    rows_out: int
    files: tuple[FileEntry, ...]
    usage: Usage
    seconds: float


class RetryNote(ManifestPart):
    """Rows of a shard that are asked anew: ``retry-00000.json``, until the shard is made."""

    before: int
    """When the retry began, in seconds of Unix: replies recorded until then are not used."""
    ids: tuple[str, ...]
    """``record_id`` of each row."""


class ModelEntry(ManifestPart):
    """A model's part in the stage."""

    role: str
    name: str
    revision: str
    sampling: dict[str, float]
    served: tuple[str, ...] = ()
    """Of a release: models and fingerprints that the server named in its replies, sorted; empty if it named none."""


PluginSetting = str | int | float | bool
PluginKind = Literal["backends", "checks", "exporters", "sources", "prompts", "stages"]
"""Its group of entry points is ``synth.`` and this."""


class PluginEntry(ManifestPart):
    """A plugin that decided rows: what it is known by, and what it was told."""

    kind: PluginKind
    name: str
    """Of its entry point."""
    distribution: str
    version: str
    sha256: str
    """Over the files of its package."""
    reasons: dict[str, str] = {}
    """What it refuses rows for, with what each means; a row has it as ``name:reason``."""
    settings: dict[str, PluginSetting] = {}
    """As the configuration gives them; in a release numbers and switches alone."""
    untold: dict[str, str] = Field({}, exclude_if=lambda digests: not digests)
    """In a release: sha256 of each other setting."""

    def describe(self) -> str:
        """Return its name and the distribution it is from, as messages have them."""
        return f"{self.name!r} of {self.distribution} {self.version}"

    def list_reasons(self) -> tuple[str, ...]:
        """Return its reasons as rows have them."""
        return tuple(f"{self.name}:{reason}" for reason in self.reasons)


class InputEntry(ManifestPart):
    """An input: a stage or the corpus, its key and the sha256 of its manifest's content lines."""

    name: str
    key: str
    digest: str


class Manifest(ManifestPart):
    """``manifest.json`` of a stage folder, written last."""

    schema_version: int = SCHEMA_VERSION
    stage: str
    stage_version: int
    key: str
    inputs: tuple[InputEntry, ...]
    prompts: dict[str, str]
    """Prompt name and version to the sha256 of its file."""
    models: tuple[ModelEntry, ...]
    config_digest: str
    git_commit: str
    """Commit of the code, with ``+dirty`` when the tree had changes; empty outside a checkout."""
    rows_in: int
    kept: int
    rejected: dict[str, int]
    failed: int
    rows_out: int
    usage: Usage
    stopped: Usage = Usage()
    """What runs that were stopped used for shards they did not finish: paid and recorded, and so ``cached_calls`` in
    ``usage``. What a killed run used is in neither."""
    seconds: float
    shards: tuple[ShardSidecar, ...]
    digest: str
    """sha256 over the names, row counts and sha256 of all data files: the content, without times and commits."""
    plugins: tuple[PluginEntry, ...] = Field((), exclude_if=lambda entries: not entries)
    """Those that decided its rows."""
