"""The manifest of a corpus: its inputs, its contents, and where every page of the dump went; the optional side files.

``X-pages-articles*.xml.bz2`` goes with ``X-page_props.sql.gz`` and X's other tables. ``wikidatawiki-*-page.sql.gz``
with ``wikidatawiki-*-page_props.sql.gz`` gives the numbers of sitelinks and statements. Wikidata's
``wikidata-*-all.json.*`` gives them too, and the statements themselves: facts that infoboxes lack.
``images/images.tsv`` names the local picture files, and ``news-articles.jsonl`` holds what is known of the articles of
an export of the news.
"""

import json
import re
import shutil
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

from pipelines.errors import ConfigError, Damaged
from pipelines.ids import digest_file, digest_value

SCHEMA_VERSION = 6
BUILDER_VERSION = 17
"""Raised whenever the same input would give other tables."""


PARSE_SECONDS = 30.0
"""Seconds that parsing one infobox may take."""
PARSE_MEGABYTES = 512
"""Memory that the parser process may use beyond its start."""
PASSAGE_WORDS = 120
"""Length of a search passage."""
ANCHOR_PAGES = 2
"""An anchor text is an alias when at least this many articles use it for a title."""
OPTIONS: dict[str, float] = {
    "parse_seconds": PARSE_SECONDS,
    "parse_megabytes": PARSE_MEGABYTES,
    "passage_words": PASSAGE_WORDS,
    "anchor_pages": ANCHOR_PAGES,
}
"""What decides a corpus besides its input files; part of its digest."""


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file that was read."""

    role: str
    """dump (once for each of its files), a field of ``SideFiles``, or pictures (all of them together)."""
    file: str
    sha256: str
    bytes: int


@dataclass(frozen=True, slots=True)
class CorpusManifestCounts:
    """Where the pages went (``rows_in = kept + rejected + failed``) and how much was found in them."""

    rows_in: int
    kept: int
    rejected: dict[str, int]
    failed: int
    articles: int
    redirects: int
    links: int
    """Distinct article pairs, redirects followed."""
    facts: int
    facts_with_target: int
    aliases: int
    images: int
    passages: int
    side: dict[str, dict[str, int]] = field(default_factory=dict)
    """How many rows of each file beside the dump ended where."""
    seconds: dict[str, float] = field(default_factory=dict, compare=False)
    """Wall time a phase; not written to the manifest."""


@dataclass(frozen=True, slots=True)
class CorpusManifest:
    """``manifest.json`` as an object."""

    schema_version: int
    builder_version: int
    name: str
    snapshot: str
    """Date of the dump, ``YYYY-MM-DD``."""
    dbname: str
    base_url: str
    language: str
    images_dir: str
    """Folder of the pictures, from the corpus folder where both are in one workspace, else absolute; may be empty."""
    inputs: tuple[InputFile, ...]
    options: dict[str, float]
    counts: CorpusManifestCounts
    digest: str
    """sha256 (64 hex digits) of what decides the content: see :func:`digest_corpus`."""
    files: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Bytes and sha256 of each file that was written, by its path in the folder."""

    def check_sizes(self, folder: Path) -> None:
        """Raise Damaged unless each file of the corpus is there and has its size."""
        for name, (size, _) in self.files.items():
            path = folder / name
            found = path.stat().st_size if path.is_file() else -1
            if found != size:
                what = "is missing" if found < 0 else f"has {found:,} bytes; {size:,} were written"
                raise Damaged(path, what, explain_rebuild(folder))


def explain_rebuild(folder: Path) -> str:
    """Return how a corpus is built again."""
    return f"remove {folder}: `synth run` then builds the corpus again from its dump"


def list_files(folder: Path) -> dict[str, tuple[int, str]]:
    """Return bytes and sha256 of each file of a folder, by its path in it."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): (path.stat().st_size, digest_file(path)) for path in paths}


def digest_corpus(inputs: tuple[InputFile, ...]) -> str:
    """Return the digest of a corpus: sha256 over all that decides its content, not over the files that were written.

    It covers the schema and builder versions, :data:`OPTIONS`, and the role and sha256 of every input in order (of the
    pictures one digest of their names and sha256). Paths, file names and times do not enter it.
    """
    return digest_value([SCHEMA_VERSION, BUILDER_VERSION, [[file.role, file.sha256] for file in inputs], OPTIONS])


def write_manifest(path: Path, manifest: CorpusManifest) -> None:
    """Write a manifest as JSON, counts at the top level beside the rest."""
    body = asdict(manifest)
    counts = body.pop("counts")
    counts.pop("seconds")
    rows = {key: counts.pop(key) for key in ("rows_in", "kept", "rejected", "failed")}
    text = json.dumps(body | rows | {"counts": counts}, indent=1, ensure_ascii=False)
    path.write_text(text, encoding="utf-8")


def read_manifest(path: Path) -> CorpusManifest:
    """Read a manifest."""
    if not path.is_file():
        raise ConfigError(
            f"no corpus at {path.parent}: {path.name} is missing; build one with `synth run --stage corpus`"
        )
    try:
        body = json.loads(path.read_bytes())
    except ValueError as error:
        raise Damaged(path, f"is no JSON ({error})", explain_rebuild(path.parent)) from error
    if body.get("schema_version") != SCHEMA_VERSION:
        found = body.get("schema_version")
        raise ConfigError(f"{path} has schema version {found}; expected {SCHEMA_VERSION}: rebuild the corpus")
    rows = {key: body.pop(key) for key in ("rows_in", "kept", "rejected", "failed")}
    counts = CorpusManifestCounts(**rows, **body.pop("counts"))
    inputs = tuple(InputFile(**file) for file in body.pop("inputs"))
    return CorpusManifest(**body | {"inputs": inputs, "counts": counts})


_PAGES = re.compile(r"-pages-(?:articles|meta)")
_DATE = re.compile(r"(?<!\d)(20\d\d)(\d\d)(\d\d)(?!\d)")
_SQL = ("sql.gz", "sql")
_JSON = ("json.bz2", "json.gz", "json")
_TABLES = ("page_props", "linktarget", "categorylinks")


@dataclass(frozen=True, slots=True)
class SideFiles:
    """Paths of the files beside a dump; None when absent."""

    page_props: Path | None = None
    linktarget: Path | None = None
    categorylinks: Path | None = None
    wikidata_page: Path | None = None
    wikidata_page_props: Path | None = None
    wikidata_entities: Path | None = None
    """Wikidata's JSON dump."""
    images: Path | None = None
    """The ``images.tsv``."""
    articles: Path | None = None
    """The table of articles beside an export of the news."""

    def list_files(self) -> list[tuple[str, Path]]:
        """Return (role, path) of the files present, in a fixed order."""
        found = ((field.name, getattr(self, field.name)) for field in fields(self))
        return [(role, path) for role, path in found if path is not None]


def find_side_files(dump: Path) -> SideFiles:
    """Find what lies beside a dump, by the prefix of its name."""
    folder = dump.parent
    prefix = _PAGES.split(dump.name)[0] if _PAGES.search(dump.name) else dump.name.partition(".")[0]
    images = folder / "images" / "images.tsv"
    articles = folder / "news-articles.jsonl"
    return SideFiles(
        **{table: _find_file(folder, (f"{prefix}-{table}",), _SQL) for table in _TABLES},
        wikidata_page=_find_file(folder, ("wikidatawiki-*-page",), _SQL),
        wikidata_page_props=_find_file(folder, ("wikidatawiki-*-page_props",), _SQL),
        wikidata_entities=_find_file(folder, ("wikidata-*-all", "latest-all"), _JSON),
        images=images if images.is_file() else None,
        articles=articles if articles.is_file() else None,
    )


def read_snapshot(dump: Path) -> str:
    """Return the date in a dump's name as ``YYYY-MM-DD``, or an empty string."""
    match = _DATE.search(dump.name)
    return "-".join(match.groups()) if match else ""


def _find_file(folder: Path, patterns: tuple[str, ...], endings: tuple[str, ...]) -> Path | None:
    wanted = [f"{pattern}.{ending}" for pattern in patterns for ending in endings]
    found = sorted({path for name in wanted for path in folder.glob(name)})
    if len(found) > 1:
        names = ", ".join(path.name for path in found)
        raise ConfigError(f"{folder} holds {names}; expected one file of {patterns[0]}.{endings[0]}")
    return found[0] if found else None


def place_unfinished(corpora: Path) -> Path:
    """Return the folder, beside corpora, that holds what was read so far of a dump whose corpus is not complete."""
    return corpora / ".building"


def clear_unfinished(corpora: Path) -> None:
    """Remove what finished or failed builds have left."""
    shutil.rmtree(place_unfinished(corpora), ignore_errors=True)
