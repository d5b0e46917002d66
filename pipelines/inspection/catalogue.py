"""What views a workspace has: every stage's rows, every refused row, the funnel, the corpus.

Only names and SQL are made here; :mod:`pipelines.inspection.views` runs them.
"""

from dataclasses import dataclass
from pathlib import Path

from pipelines.workspace import StageFolder, Workspace
from schemas.reasons import STAGE_REASONS

CORPUS_TABLES = ("pages", "facts", "redirects", "aliases", "images")
USAGE = "STRUCT(calls BIGINT, cached_calls BIGINT, tokens_in BIGINT, tokens_out BIGINT, cost DOUBLE)"
COUNTS = "rows_in: 'BIGINT', kept: 'BIGINT', rejected: 'MAP(VARCHAR, BIGINT)', failed: 'BIGINT'"
STAGE_MANIFEST = (
    f"{{stage: 'VARCHAR', stage_version: 'BIGINT', key: 'VARCHAR', config_digest: 'VARCHAR', git_commit: 'VARCHAR', "
    f"{COUNTS}, rows_out: 'BIGINT', usage: '{USAGE}', seconds: 'DOUBLE', digest: 'VARCHAR'}}"
)
CORPUS_MANIFEST = f"{{name: 'VARCHAR', builder_version: 'BIGINT', digest: 'VARCHAR', {COUNTS}}}"
NO_REJECTIONS = (
    "SELECT ''::VARCHAR AS stage, ''::VARCHAR AS record_id, ''::VARCHAR AS reason, ''::VARCHAR AS detail, "
    "''::VARCHAR AS key WHERE false"
)
NO_FAILURES = NO_REJECTIONS.replace("reason", "error")


@dataclass(frozen=True, slots=True)
class View:
    """A named query."""

    name: str
    sql: str


@dataclass(frozen=True, slots=True)
class LatestStage:
    """The sealed output of a stage that the last run used."""

    stage: str
    folder: StageFolder

    @property
    def key(self) -> str:
        """The stage key."""
        return self.folder.path.name


def list_latest(root: Path) -> list[LatestStage]:
    """Return the sealed stages that ``latest.json`` names, in pipeline order; an unsealed one is left out."""
    workspace = Workspace(root)
    order = {stage: place for place, stage in enumerate(STAGE_REASONS)}
    latest = [
        LatestStage(stage, workspace.stage(stage, key))
        for stage, key in workspace.read_latest().items()
        if stage != "corpus" and workspace.stage(stage, key).manifest.is_file()
    ]
    return sorted(latest, key=lambda found: (order.get(found.stage, len(order)), found.stage))


def find_corpus(root: Path) -> Path | None:
    """Return the folder of the corpus that the last run used, or None when it is not there."""
    name = Workspace(root).read_latest().get("corpus", "")
    folder = Workspace(root).corpora / name
    return folder if name and (folder / "manifest.json").is_file() else None


def list_views(root: Path, absolute: bool) -> list[View]:
    """Return every view of a workspace.

    Args:
        root: the workspace.
        absolute: write paths from the file system's root instead of relative to the workspace.
    """
    base = root.absolute() if absolute else Path()
    stages, corpus = list_latest(root), find_corpus(root)
    folders = [(found.stage, found.key, base / found.folder.path.relative_to(root)) for found in stages]
    home = base / corpus.relative_to(root) if corpus else None
    sources = [(found[0], found[1], found[2]) for found in folders]
    if corpus is not None and home is not None:
        sources.insert(0, ("corpus", corpus.name, home))
    views = [View(stage, f"SELECT * FROM {_scan(folder / 'part-*.parquet')}") for stage, _, folder in folders]
    views.append(View("rejections", _union_refused(sources, "rejected", "reason") or NO_REJECTIONS))
    views.append(View("failures", _union_refused(sources, "failed", "error") or NO_FAILURES))
    views += _make_manifest_views([folder for _, _, folder in folders], home)
    if corpus is not None and home is not None:
        present = [name for name in CORPUS_TABLES if (corpus / f"{name}.parquet").is_file()]
        views += [View(name, f"SELECT * FROM {_scan(home / f'{name}.parquet')}") for name in present]
    return views


def quote_text(text: str) -> str:
    """Return text as an SQL string."""
    return "'" + text.replace("'", "''") + "'"


def _scan(path: Path) -> str:
    return f"read_parquet({quote_text(path.as_posix())})"


def _union_refused(sources: list[tuple[str, str, Path]], files: str, column: str) -> str:
    return " UNION ALL ".join(
        f"SELECT {quote_text(stage)} AS stage, record_id, {column}, detail, {quote_text(key)} AS key "
        f"FROM {_scan(folder / f'{files}-*.parquet')}"
        for stage, key, folder in sources
    )


def _make_manifest_views(folders: list[Path], corpus: Path | None) -> list[View]:
    """Return ``manifests`` and ``funnel``; their rows stand in pipeline order, the corpus first."""
    selects = []
    if corpus is not None:
        path = quote_text((corpus / "manifest.json").as_posix())
        selects.append(
            "SELECT 'corpus' AS stage, builder_version AS stage_version, name AS key, '' AS config_digest, "
            "'' AS git_commit, rows_in, kept, rejected, failed, kept AS rows_out, "
            f"NULL::{USAGE} AS usage, NULL::DOUBLE AS seconds, digest "
            f"FROM read_json({path}, columns = {CORPUS_MANIFEST})"
        )
    for folder in folders:
        path = quote_text((folder / "manifest.json").as_posix())
        selects.append(f"SELECT * FROM read_json({path}, columns = {STAGE_MANIFEST})")
    if not selects:
        return []
    funnel = (
        "SELECT stage, key, rows_in, kept, coalesce(list_sum(map_values(rejected)), 0)::BIGINT AS rejected, failed, "
        "rows_out FROM manifests"
    )
    return [View("manifests", " UNION ALL ".join(selects)), View("funnel", funnel)]
