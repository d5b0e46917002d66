"""``manifest.json`` of a release: what it holds, where it came from, and whether a folder still holds it."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
from pydantic import Field, ValidationError

from pipelines.config.disclosure import Told
from pipelines.config.settings import ReleasesConfig
from pipelines.errors import ConfigError, GateNotMet
from pipelines.ids import digest_file, digest_value
from pipelines.release.reviewed import Review
from schemas.datasets import Dataset
from schemas.manifest import BenchmarkEntry, FileEntry, InputEntry, ManifestPart, ModelEntry, PluginEntry


class FunnelRow(ManifestPart):
    """What became of the rows of one stage: ``rows_in = kept + rejected + failed``."""

    stage: str
    rows_in: int
    kept: int
    rejected: dict[str, int]
    failed: int
    rows_out: int


class ArticleRights(ManifestPart):
    """What may be done with the texts of articles of the news."""

    licence: str
    """As the operator knows it; empty if not known."""
    licence_url: str
    live: bool = False
    """Whether transcripts may show other pages than these articles: nobody knows the rights in those."""


class ReleaseOrigin(ManifestPart):
    """Where the rows come from. Nothing here may differ between two runs of the same work: no time, host or cost."""

    corpus: str
    """Content digest of the corpus that the proofs' offsets refer to."""
    snapshot: str
    """The dump's date as the corpus gives it, such as ``2026-09-01``."""
    base_url: str
    """Address that a title with underscores is appended to, such as ``https://en.wikipedia.org/wiki/``."""
    recipe: str
    seeds: dict[str, int]
    """Seed of each random choice by name."""
    config_digest: str
    git_commit: str
    told: dict[str, Told] = Field(default_factory=dict)
    """Resolved settings by ``section.key`` that hold no path, address or name of somebody's own."""
    untold: dict[str, str] = Field(default_factory=dict)
    """sha256 of each other setting: ``config_digest`` follows from both and the corpus."""
    lineage: tuple[InputEntry, ...]
    """Corpus and stages with their keys and manifest digests, in pipeline order."""
    funnel: tuple[FunnelRow, ...]
    models: tuple[ModelEntry, ...]
    prompts: dict[str, str]
    """Prompt label to the sha256 of its file."""
    articles: ArticleRights | None = Field(None, exclude_if=lambda rights: rights is None)
    """Set where the corpus is made of articles of the news; None for a wiki."""
    benchmarks: tuple[BenchmarkEntry, ...] = Field((), exclude_if=lambda entries: not entries)
    """Those that questions were kept apart from."""
    plugins: tuple[PluginEntry, ...] = Field((), exclude_if=lambda entries: not entries)
    """Those that decided rows, without private settings."""


SERVED = ("openai@", "plugin@")
"""How the identity of a model behind a server or of a plugin begins; every other model is a scripted player."""


def is_invented(address: str) -> bool:
    """Say whether an address is of a generated world: RFC 2606 keeps this ending for examples, no real wiki has it."""
    return (urlsplit(address).hostname or "").endswith(".example")


def list_inventions(origin: ReleaseOrigin) -> list[str]:
    """Return what of a release is invented, in words: its wiki, and the roles that scripted players had."""
    told = [f"its wiki <{origin.base_url}> is invented"] if is_invented(origin.base_url) else []
    scripted = sorted({model.role for model in origin.models if not model.revision.startswith(SERVED)})
    return told + ([f"scripted players were its {', '.join(scripted)}"] if scripted else [])


class ReleaseContext(ReleaseOrigin):
    """The origin, and how the rows are made."""

    tools: str
    """JSON array of the tools' schemas, as the teacher saw them."""
    system: str = ""
    """System message of the rows where the teacher's own does not describe the calls, as with native calls."""
    settings: ReleasesConfig = Field(default_factory=ReleasesConfig)
    reviews: tuple[Review, ...] = ()
    """What people said of questions; a release holds decisions on its own questions."""


@dataclass(frozen=True, slots=True)
class PublishedRelease:
    """One published dataset; the same content always has the same version."""

    dataset: Dataset
    version: str
    path: Path
    rows: int

    @property
    def root(self) -> str:
        """sha256 of the manifest, which has that of every other file: the root of trust in the release."""
        return digest_file(self.path / MANIFEST)


MANIFEST = "manifest.json"
RELEASE_SCHEMA_VERSION = 2
SERIES = "1.0.0"
"""Layout of rows and folders; raised by hand when a consumer must change."""


class SplitEntry(ManifestPart):
    """One split: rows, questions, and bytes in Arrow memory (the Hub's ``num_bytes``)."""

    name: str
    rows: int
    questions: int
    bytes: int


class ReleaseManifest(ReleaseOrigin):
    """Everything about a release but its own sha256. Holds no time, host or cost: the same work has the same bytes."""

    schema_version: int = RELEASE_SCHEMA_VERSION
    dataset: Dataset
    version: str
    content: str
    """sha256 over names, rows and sha256 of the data, proofs and attribution: the content without its origin."""
    writer: str
    """Library whose version decides the Parquet bytes."""
    splits: tuple[SplitEntry, ...]
    files: tuple[FileEntry, ...]
    """Every file but the manifest, names relative to the release folder."""

    @property
    def rows(self) -> int:
        """Rows of all splits."""
        return sum(split.rows for split in self.splits)


def digest_content(files: list[FileEntry], prose: str) -> str:
    """Return the digest a version is named by: data, proofs and attribution, and the card's prose."""
    entries = sorted([entry.name, entry.rows, entry.sha256] for entry in files)
    return digest_value({"schema": RELEASE_SCHEMA_VERSION, "files": entries, "prose": prose})


def name_version(content: str) -> str:
    """Return the version: readable series, then the first eight digits of the content's digest."""
    return f"{SERIES}-{content[:8]}"


def make_release_manifest(
    dataset: Dataset,
    content: str,
    splits: tuple[SplitEntry, ...],
    files: tuple[FileEntry, ...],
    context: ReleaseContext,
) -> ReleaseManifest:
    """Return the manifest of a release."""
    origin = {name: getattr(context, name) for name in ReleaseOrigin.model_fields}
    origin |= {name: dict(sorted(origin[name].items())) for name in ("seeds", "prompts")}
    return ReleaseManifest(
        **origin,
        dataset=dataset,
        version=name_version(content),
        content=content,
        writer=f"pyarrow {pa.__version__}",
        splits=splits,
        files=files,
    )


def read_release_manifest(folder: Path) -> ReleaseManifest:
    """Return a release folder's manifest."""
    path = folder / MANIFEST
    if not path.is_file():
        raise ConfigError(f"release {folder}: no {MANIFEST}; give a folder such as releases/sft/{SERIES}-0a1b2c3d")
    try:
        manifest = ReleaseManifest.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise ConfigError(f"release {folder}: {MANIFEST} is malformed: {error}") from error
    if manifest.schema_version != RELEASE_SCHEMA_VERSION:
        raise ConfigError(
            f"release {folder}: its layout is {manifest.schema_version}, this synth reads {RELEASE_SCHEMA_VERSION}; "
            "use the synth of that layout"
        )
    return manifest


def render_manifest(manifest: ReleaseManifest) -> str:
    """Return the text of a manifest's file; publishing writes no other text."""
    return f"{manifest.model_dump_json(indent=1)}\n"


def find_changes(folder: Path, manifest: ReleaseManifest) -> list[str]:
    """Return which files of a release are missing or have changed; files that are not its own do not matter."""
    problems = []
    for entry in sorted(manifest.files, key=lambda entry: entry.name):
        path = folder / entry.name
        if not path.is_file():
            problems.append(f"{entry.name} is missing")
        elif path.stat().st_size != entry.bytes or digest_file(path) != entry.sha256:
            problems.append(f"{entry.name} has changed")
    return problems


def find_strange(folder: Path, own: Collection[str]) -> list[str]:
    """Return which files of a release folder are not among its own."""
    names = (path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*")) if not path.is_dir())
    return [f"{name} is not in the manifest" for name in names if name not in own]


def check_release_files(folder: Path) -> ReleaseManifest:
    """Hash every file of a release again and return its manifest."""
    manifest = read_release_manifest(folder)
    problems = find_changes(folder, manifest)
    problems += find_strange(folder, {MANIFEST, *(entry.name for entry in manifest.files)})
    if problems:
        raise GateNotMet(f"release {folder}: {'; '.join(problems)}")
    return manifest
