"""DuckDB views over a workspace: every stage's rows, every refused row, the funnel and the corpus.

The catalogue ``synth.duckdb`` holds views with absolute paths, so that any client of DuckDB may open it from anywhere.
In a workspace that was moved the next run writes it again. Our own queries run in memory instead, without access
to files that are no datasets of the workspace. No extension is ever downloaded.

The SQL is kept to what DuckDB has had since 1.0: any client may open the catalogue. Views name other views, never a
table.
"""

import glob
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from rich.table import Column, Table
from rich.text import Text

from pipelines.errors import ConfigError, CorruptInput, Unavailable
from pipelines.files import explain_os_error, replacing
from pipelines.memory import limit_duckdb
from pipelines.run.workspace import StageFolder, Workspace, pick_releases
from schemas.reasons import STAGE_REASONS

USAGE = (
    "STRUCT(calls BIGINT, cached_calls BIGINT, tokens_in BIGINT, tokens_out BIGINT, cost DOUBLE, "
    "served MAP(VARCHAR, BIGINT), "
    "roles MAP(VARCHAR, STRUCT(calls BIGINT, cached_calls BIGINT, tokens BIGINT, cost DOUBLE)))"
)
NO_ATTEMPTS = (
    "SELECT NULL::VARCHAR AS question_id, NULL::VARCHAR AS reason, NULL::VARCHAR AS condition, NULL::VARCHAR AS role, "
    "NULL::VARCHAR AS solver, NULL::BIGINT AS sample, NULL::VARCHAR AS reply, NULL::VARCHAR AS verdict, "
    "NULL::VARCHAR AS problem, NULL::VARCHAR AS question, NULL::VARCHAR AS answer, NULL::VARCHAR AS picture_path "
    "WHERE false"
)


@dataclass(frozen=True, slots=True)
class LatestStage:
    """The sealed output of a stage that the last run used."""

    stage: str
    folder: StageFolder

    @property
    def key(self) -> str:
        """The stage key."""
        return self.folder.path.name

    @property
    def path(self) -> Path:
        """Where its files lie."""
        return self.folder.path

    @property
    def inputs(self) -> tuple[str, ...]:
        """The stages that it was made from; any version of synth wrote the manifest."""
        manifest = json.loads(self.folder.manifest.read_bytes())
        return tuple(entry["name"] for entry in manifest.get("inputs", ()) if entry["name"] != "corpus")


def quote_text(text: str) -> str:
    """Return text as an SQL string."""
    return "'" + text.replace("'", "''") + "'"


def quote_file(path: Path) -> str:
    """Return a path as an SQL string in which only the name is a pattern: a workspace may be called ``a[1]``."""
    return quote_text(f"{glob.escape(path.parent.as_posix())}/{path.name}")


NO_HIVE = "hive_partitioning = false"
"""Option of a reader: else a folder ``split=x`` on the way to a workspace is taken for a column."""


def scan(path: Path) -> str:
    """Return a reader of the Parquet files whose names match."""
    return f"read_parquet({quote_file(path)}, {NO_HIVE})"


def select_rows(root: Path, folder: Path) -> str:
    """Return a stage's rows, with the path of each picture that a row names."""
    paths = [f"{_name_file(root, value)} AS {name}" for name, value in list_pictures(folder).items()]
    return f"SELECT {', '.join(['*', *paths])} FROM {scan(folder / 'part-*.parquet')}"


def select_table(corpus: Path, name: str) -> str:
    """Return a table of the corpus; pictures with the path of each file, wherever they lie."""
    if name != "images":
        return f"SELECT * FROM {scan(corpus / f'{name}.parquet')}"
    folder = (corpus / json.loads((corpus / "manifest.json").read_bytes()).get("images_dir", "")).resolve()
    path = f"CASE WHEN path <> '' THEN {quote_text(f'{folder.as_posix()}/')} || path END"
    return f"SELECT *, {path} AS picture_path FROM {scan(corpus / f'{name}.parquet')}"


def list_pictures(folder: Path) -> dict[str, str]:
    """Return where rows of a stage name a picture, by the name of the column that gives its path."""
    found: dict[str, str] = {}
    for field in _read_schema(folder, "part") or ():
        if _is_picture(field.type):
            found[f"{field.name}_path"] = field.name
        elif pa.types.is_list(field.type) and pa.types.is_struct(field.type.value_type):
            # What a rollout sees begins with the question's picture.
            inner = {part.name: part.type for part in field.type.value_type}
            if field.name == "images" and _is_picture(inner.get("picture", pa.null())):
                found["picture_path"] = "images[1].picture"
    return found


def _is_picture(kind: pa.DataType) -> bool:
    return pa.types.is_struct(kind) and {"sha256", "extension"} <= {part.name for part in kind}


def _read_schema(folder: Path, files: str) -> pa.Schema | None:
    """Return the columns of a stage's first file; None where that cannot be read: the view's own error says so."""
    path = min(folder.glob(f"{files}-*.parquet"), default=None)
    try:
        return pq.read_schema(path) if path else None
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        return None


def _name_file(root: Path, picture: str) -> str:
    images = quote_text(f"{(root / 'images').as_posix()}/")
    sha256 = f"{picture}.sha256"
    return f"{images} || left({sha256}, 2) || '/' || {sha256} || '.' || {picture}.extension"


def select_pictures(root: Path, sources: Iterable[LatestStage]) -> str:
    """Return the pictures that questions show, each once, with its licence; empty where no stage has any."""
    columns = ("sha256", "file", "author", "licence", "licence_url", "source_url", "width", "height")
    fields = ", ".join(f"picture.{name} AS {name}" for name in columns)
    selects = [
        f"SELECT {fields}, {_name_file(root, 'picture')} AS picture_path FROM {_quote_name(source.stage)} "
        "WHERE picture IS NOT NULL"
        for source in sources
        if "picture" in list_pictures(source.path).values()
    ]
    return " UNION ".join(selects)


def _quote_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def select_released(root: Path, releases: Mapping[str, Path]) -> str:
    """Return one row for each dataset and question of the latest releases; may be empty.

    A question that two datasets hold has two rows, with one ``question_id``.

    Args:
        root: the workspace.
        releases: folder of each dataset's release.
    """
    scored = "(SELECT 1 - sum(c.correct) / nullif(sum(c.attempts - c.unscored), 0) FROM (SELECT unnest({0}) AS c))"
    return " UNION ALL ".join(
        f"SELECT {quote_text(dataset)} AS dataset, {quote_text(folder.name)} AS version, split, "
        "record_id AS question_id, text AS question, answer.surface AS answer, answer.type AS answer_type, "
        "CASE WHEN trace IS NULL THEN len(proof.hops) ELSE len(trace.links) + 1 END AS hops, domain, "
        f"{scored.format('difficulty')} AS difficulty, standing, search_need, picture.licence AS licence, "
        f"{_name_file(root, 'picture')} AS picture_path FROM {scan(folder / 'proofs' / '*.parquet')}"
        for dataset, folder in sorted(releases.items())
    )


def select_costs(released: bool) -> str:
    """Return calls, tokens and money by stage, role and model; both are '' for tools, and where none was noted.

    Args:
        released: whether there is a stage of releases. Money is then also divided by its rows of sft, or by all of
            its rows if none is of sft.
    """
    rows = "SELECT coalesce(nullif(count(*) FILTER (dataset = 'sft'), 0), nullif(count(*), 0)) FROM releases"
    return (
        "WITH used AS (SELECT stage, usage FROM manifests UNION ALL SELECT stage, stopped FROM manifests), "
        "roles AS (SELECT stage, e.key AS name, e.value AS u FROM "
        "(SELECT stage, unnest(map_entries(usage.roles)) AS e FROM used)), "
        "parts AS (SELECT stage, left(name, strpos(name, ': ') - 1) AS role, substr(name, strpos(name, ': ') + 2) "
        "AS model, u.calls AS calls, u.cached_calls AS cached, u.tokens AS tokens, u.cost AS money FROM roles "
        "UNION ALL SELECT stage, '', '', usage.calls, usage.cached_calls, usage.tokens_in + usage.tokens_out, "
        "usage.cost FROM used WHERE usage IS NOT NULL "
        "UNION ALL SELECT stage, '', '', -u.calls, -u.cached_calls, -u.tokens, -u.cost FROM roles) "
        "SELECT stage, role, model, sum(calls)::BIGINT AS calls, sum(cached)::BIGINT AS cached, "
        "sum(tokens)::BIGINT AS tokens, round(sum(money), 9) AS money, "
        f"round(sum(money) / ({rows if released else 'NULL::DOUBLE'}), 9) AS money_per_row FROM parts "
        "GROUP BY stage, role, model HAVING sum(calls) + sum(cached) > 0"
    )


def select_attempts(root: Path, sources: Sequence[LatestStage]) -> str:
    """Return the attempts at the questions that the stage difficulty refused, with what was asked."""
    stages = {source.stage: source for source in sources}
    difficulty = stages.get("difficulty")
    schema = _read_schema(difficulty.path, "rejected") if difficulty else None
    asked = next((name for name in difficulty.inputs if name in stages), "") if difficulty else ""
    if difficulty is None or schema is None or "attempts" not in schema.names or not asked:
        return NO_ATTEMPTS
    columns = ", ".join(
        f"a.{name} AS {name}" for name in ("condition", "role", "solver", "sample", "reply", "verdict", "problem")
    )
    refused = scan(difficulty.path / "rejected-*.parquet")
    return (
        f"SELECT r.record_id AS question_id, r.reason AS reason, {columns}, q.text AS question, "
        f"q.answer.surface AS answer, {_name_file(root, 'q.picture')} AS picture_path "
        f"FROM (SELECT record_id, reason, unnest(attempts) AS a FROM {refused}) r "
        f"LEFT JOIN {_quote_name(asked)} q ON q.record_id = r.record_id"
    )


UNTRACED = ("rollouts", "trajectories")
"""Stages whose rows are attempts at a question: a seed's fate is that of its questions alone."""


def select_fates(sources: Sequence[LatestStage]) -> str:
    """Return for each seed whether it was released, else the last stage that refused or failed a row of it, and why.

    Empty where no seeds were drawn. A row is known by the row that it was made from, or keeps its id.
    """
    traced = {"seeds": "SELECT record_id AS seed_id, record_id FROM seeds"}
    ends: list[str] = []
    for source in sources:
        before = next((place for place, name in enumerate(traced) if name in source.inputs), None)
        if before is None or source.stage in UNTRACED:
            continue
        joined = f"SELECT l.seed_id, s.record_id FROM l{before} l JOIN {_quote_name(source.stage)} s ON l.record_id ="
        traced[source.stage] = f"{joined} s.parent_id UNION ALL {joined} s.record_id"
        ends.append(
            f"SELECT l.seed_id, {len(ends)} AS place, r.stage, r.reason, r.detail FROM l{before} l JOIN lost r "
            f"ON r.record_id = l.record_id AND r.stage = {quote_text(source.stage)}"
        )
    if not ends or all(source.stage != "seeds" for source in sources):
        return ""
    named = ", ".join(f"l{place} AS ({sql})" for place, sql in enumerate(traced.values()))
    made = list(traced).index("releases") if "releases" in traced else None
    return (
        "WITH lost AS (SELECT stage, record_id, reason, detail FROM rejections UNION ALL "
        f"SELECT stage, record_id, error, detail FROM failures), {named}, ends AS ({' UNION ALL '.join(ends)}), "
        f"made AS (SELECT DISTINCT seed_id FROM {'ends WHERE false' if made is None else f'l{made}'}), "
        "last AS (SELECT seed_id, arg_max(stage, place) AS stage, arg_max(reason, place) AS reason, "
        "arg_max(detail, place) AS detail FROM ends WHERE seed_id NOT IN (FROM made) GROUP BY seed_id) "
        "SELECT s.record_id AS seed_id, s.title AS title, s.domain AS domain, "
        "s.record_id IN (FROM made) AS released, e.stage AS stage, e.reason AS reason, e.detail AS detail "
        "FROM seeds s LEFT JOIN last e ON e.seed_id = s.record_id"
    )


CORPUS_TABLES = ("pages", "facts", "statements", "redirects", "aliases", "images")
COUNTS = "rows_in: 'BIGINT', kept: 'BIGINT', rejected: 'MAP(VARCHAR, BIGINT)', failed: 'BIGINT'"
STAGE_MANIFEST = (
    f"{{stage: 'VARCHAR', stage_version: 'BIGINT', key: 'VARCHAR', config_digest: 'VARCHAR', git_commit: 'VARCHAR', "
    f"{COUNTS}, rows_out: 'BIGINT', usage: '{USAGE}', stopped: '{USAGE}', seconds: 'DOUBLE', digest: 'VARCHAR'}}"
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


def list_latest(root: Path) -> list[LatestStage]:
    """Return the sealed stages that ``latest.json`` names, in pipeline order; an unsealed one is left out."""
    workspace = Workspace(root)
    order = {stage: float(place) for place, stage in enumerate(STAGE_REASONS)}
    latest = [
        LatestStage(stage, workspace.stage(stage, key))
        for stage, key in workspace.read_latest().items()
        if stage != "corpus" and workspace.stage(stage, key).manifest.is_file()
    ]
    # A plugin's stage stands behind the one that it reads, which may be a plugin's, too.
    waiting = [found for found in latest if found.stage not in order]
    for _ in range(len(waiting)):
        for found in waiting:
            manifest = found.folder.read_manifest()
            read = [order.get(entry.name, -1.0) for entry in (manifest.inputs if manifest else ())]
            order[found.stage] = max(read, default=-1.0) + 1 / (len(latest) + 1)
    return sorted(latest, key=lambda found: (order[found.stage], found.stage))


def find_corpus(root: Path) -> Path | None:
    """Return the folder of the corpus that the last run used, or None when it is not there."""
    name = Workspace(root).read_latest().get("corpus", "")
    folder = Workspace(root).corpora / name
    return folder if name and (folder / "manifest.json").is_file() else None


def list_views(root: Path) -> list[View]:
    """Return every view of a workspace, with paths from the file system's root."""
    root = root.resolve()
    stages, corpus = list_latest(root), find_corpus(root)
    sources = [(found.stage, found.key, found.folder.path) for found in stages]
    if corpus is not None:
        sources.insert(0, ("corpus", corpus.name, corpus))
    views = [View(found.stage, select_rows(root, found.folder.path)) for found in stages]
    views.append(View("rejections", _union_refused(sources, "rejected", "reason") or NO_REJECTIONS))
    views.append(View("failures", _union_refused(sources, "failed", "error") or NO_FAILURES))
    views += _make_manifest_views([found.folder.path for found in stages], corpus)
    views += _list_answers(root, stages)
    if corpus is not None:
        present = [name for name in CORPUS_TABLES if (corpus / f"{name}.parquet").is_file()]
        views += [View(name, select_table(corpus, name)) for name in present]
    return views


def _list_answers(root: Path, stages: Sequence[LatestStage]) -> list[View]:
    """Return the views over stages and releases together; each stands after those that it names."""
    workspace = Workspace(root)
    published = pick_releases(workspace.read_latest())
    folders = {dataset: workspace.releases / dataset / version for dataset, version in published.items()}
    releases = {dataset: folder for dataset, folder in folders.items() if any(folder.glob("proofs/*.parquet"))}
    found = [
        View("released", select_released(root, releases)),
        View("pictures", select_pictures(root, stages)),
        View("costs", select_costs(any(found.stage == "releases" for found in stages)) if stages else ""),
        View("rejected_attempts", select_attempts(root, stages)),
        View("fates", select_fates(stages)),
    ]
    return [view for view in found if view.sql]


def _union_refused(sources: list[tuple[str, str, Path]], files: str, column: str) -> str:
    return " UNION ALL ".join(
        f"SELECT {quote_text(stage)} AS stage, record_id, {column}, detail, {quote_text(key)} AS key "
        f"FROM {scan(folder / f'{files}-*.parquet')}"
        for stage, key, folder in sources
    )


def _make_manifest_views(folders: list[Path], corpus: Path | None) -> list[View]:
    """Return ``manifests`` and ``funnel``; their rows stand in pipeline order, the corpus first."""
    selects = []
    if corpus is not None:
        path = quote_file(corpus / "manifest.json")
        selects.append(
            "SELECT 'corpus' AS stage, builder_version AS stage_version, name AS key, '' AS config_digest, "
            "'' AS git_commit, rows_in, kept, rejected, failed, kept AS rows_out, "
            f"NULL::{USAGE} AS usage, NULL::{USAGE} AS stopped, NULL::DOUBLE AS seconds, digest "
            f"FROM read_json({path}, columns = {CORPUS_MANIFEST}, {NO_HIVE})"
        )
    for folder in folders:
        path = quote_file(folder / "manifest.json")
        selects.append(f"SELECT * FROM read_json({path}, columns = {STAGE_MANIFEST}, {NO_HIVE})")
    if not selects:
        return []
    funnel = (
        "SELECT stage, key, rows_in, kept, coalesce(list_sum(map_values(rejected)), 0)::BIGINT AS rejected, failed, "
        "rows_out FROM manifests"
    )
    return [View("manifests", " UNION ALL ".join(selects)), View("funnel", funnel)]


CATALOGUE = "synth.duckdb"
STORAGE_VERSION = "v1.0.0"
"""Any DuckDB since 1.0 opens the catalogue."""
OFFLINE: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
}
READABLE = ("corpus", "stages", "releases")
"""Folders of a workspace whose files a statement may read: its datasets, and neither replies nor anything else."""
LONGEST_CELL = 200
LONGEST_ERROR = 300


@dataclass(frozen=True, slots=True)
class QueryRows:
    """What a statement returned."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def as_dicts(self) -> list[dict[str, Any]]:
        """Return each row by column name."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


def connect_database(path: Path | None = None) -> duckdb.DuckDBPyConnection:
    """Open a database file to read it, or one in memory, which loads no extension and keeps to its share of memory."""
    if path is not None:
        return duckdb.connect(str(path), read_only=True, config=limit_duckdb())
    return duckdb.connect(":memory:", config=OFFLINE | limit_duckdb())


def open_views(workspace_root: Path) -> duckdb.DuckDBPyConnection:
    """Open an in-memory database with every view; it can read the datasets of the workspace and nothing else.

    Raises:
        ConfigError: if there is no workspace there.
    """
    root = workspace_root.resolve()
    if not root.is_dir():
        raise ConfigError(f"workspace {workspace_root}: no such folder; run `synth run` first")
    connection = connect_database()
    _create_views(connection, list_views(root))
    # A pattern is checked as it stands, and a workspace may be called ``a[1]``.
    folders = [(root / folder).as_posix() for folder in READABLE]
    readable = ", ".join(quote_text(name) for folder in folders for name in {folder, glob.escape(folder)})
    connection.execute(f"SET allowed_directories = [{readable}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def _create_views(connection: duckdb.DuckDBPyConnection, views: list[View]) -> None:
    for view in views:
        name = view.name.replace('"', '""')
        try:
            connection.execute(f'CREATE VIEW "{name}" AS {view.sql}')
        except duckdb.Error as error:
            said = " ".join(str(error).split())[:LONGEST_ERROR]
            raise CorruptInput(f"view {view.name}: {said}; `synth doctor --deep` names what is damaged") from error


def write_catalogue(workspace_root: Path) -> Path:
    """Write ``synth.duckdb`` into the workspace, whole or not at all, and return its path.

    Raises:
        ConfigError: if there is no workspace there, or it cannot be written to.
        Unavailable: if the disk is full.
    """
    root = workspace_root.resolve()
    if not root.is_dir():
        raise ConfigError(f"workspace {workspace_root}: no such folder; run `synth run` first")
    try:
        _write_views(root)
    except OSError as error:
        raise explain_os_error(error, f"catalogue of {workspace_root}") from error
    except duckdb.IOException as error:
        # DuckDB gives no number of the error, only its text, over several lines.
        said = "the disk is full" if "No space left" in str(error) else " ".join(str(error).split())
        message = f"catalogue of {workspace_root}: {said}; mend that and run the same command again"
        raise Unavailable(message) from error
    return root / CATALOGUE


def _write_views(root: Path) -> None:
    with replacing(root / CATALOGUE) as temp, connect_database() as connection:
        connection.execute(f"ATTACH {quote_text(temp.as_posix())} AS made (STORAGE_VERSION '{STORAGE_VERSION}')")
        connection.execute("USE made")
        _create_views(connection, list_views(root))
        connection.execute("USE memory")
        connection.execute("DETACH made")


def run_sql(workspace_root: Path, statement: str) -> QueryRows:
    """Run one statement that only reads, in a transaction that only reads.

    Raises:
        ConfigError: if it is not exactly one SELECT, FROM, DESCRIBE, SUMMARIZE or SHOW, or DuckDB refuses it.
    """
    with open_views(workspace_root) as connection:
        names = [
            row[0] for row in connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
        ]
        try:
            _check_reading(connection, statement)
            connection.execute("BEGIN TRANSACTION READ ONLY")
            connection.execute(statement)
            columns = tuple(column[0] for column in connection.description or ())
            return QueryRows(columns, tuple(connection.fetchall()))
        except duckdb.Error as error:
            raise ConfigError(f"sql: {error}\nviews: {', '.join(sorted(names))}") from error


def _check_reading(connection: duckdb.DuckDBPyConnection, statement: str) -> None:
    """Refuse all but one SELECT, as DuckDB's parser calls everything that reads."""
    kinds = [entry.type.name for entry in connection.extract_statements(statement)]
    if kinds != ["SELECT"]:
        given = ", ".join(kinds) or "nothing"
        raise ConfigError(f"sql: given {given}; one SELECT, FROM, DESCRIBE, SUMMARIZE or SHOW is allowed")


def render_result(found: QueryRows) -> Table:
    """Return rows as a rich table; long cells are cut."""
    table = Table(*(Column(Text(name)) for name in found.columns))
    for row in found.rows:
        table.add_row(*(Text(_cut("" if cell is None else str(cell))) for cell in row))
    return table


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_CELL else f"{text[: LONGEST_CELL - 1]}…"
