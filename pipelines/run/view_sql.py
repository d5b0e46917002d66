"""The SQL of the views that answer questions: pictures as files, released questions, costs, refused attempts, fates.

It is kept to what DuckDB has had since 1.0: any client may open the catalogue. Views name other views, never a table.
"""

import glob
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.checksums import read_note

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
class Source:
    """A sealed stage as the views read it."""

    stage: str
    inputs: tuple[str, ...]
    """Stages that it was made from."""
    folder: Path


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
    folder = (corpus / json.loads(read_note(corpus / "manifest.json")).get("images_dir", "")).resolve()
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


def select_pictures(root: Path, sources: Iterable[Source]) -> str:
    """Return the pictures that questions show, each once, with its licence; empty where no stage has any."""
    columns = ("sha256", "file", "author", "licence", "licence_url", "source_url", "width", "height")
    fields = ", ".join(f"picture.{name} AS {name}" for name in columns)
    selects = [
        f"SELECT {fields}, {_name_file(root, 'picture')} AS picture_path FROM {_quote_name(source.stage)} "
        "WHERE picture IS NOT NULL"
        for source in sources
        if "picture" in list_pictures(source.folder).values()
    ]
    return " UNION ".join(selects)


def _quote_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def select_released(root: Path, releases: Mapping[str, Path]) -> str:
    """Return one row for each dataset and question of the latest releases; empty where there is none.

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


def select_attempts(root: Path, sources: Sequence[Source]) -> str:
    """Return the attempts at the questions that the stage difficulty refused, with what was asked."""
    stages = {source.stage: source for source in sources}
    difficulty = stages.get("difficulty")
    schema = _read_schema(difficulty.folder, "rejected") if difficulty else None
    asked = next((name for name in difficulty.inputs if name in stages), "") if difficulty else ""
    if difficulty is None or schema is None or "attempts" not in schema.names or not asked:
        return NO_ATTEMPTS
    columns = ", ".join(
        f"a.{name} AS {name}" for name in ("condition", "role", "solver", "sample", "reply", "verdict", "problem")
    )
    refused = scan(difficulty.folder / "rejected-*.parquet")
    return (
        f"SELECT r.record_id AS question_id, r.reason AS reason, {columns}, q.text AS question, "
        f"q.answer.surface AS answer, {_name_file(root, 'q.picture')} AS picture_path "
        f"FROM (SELECT record_id, reason, unnest(attempts) AS a FROM {refused}) r "
        f"LEFT JOIN {_quote_name(asked)} q ON q.record_id = r.record_id"
    )


UNTRACED = ("rollouts", "trajectories")
"""Stages whose rows are attempts at a question: a seed's fate is that of its questions alone."""


def select_fates(sources: Sequence[Source]) -> str:
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
