"""The queries behind every look at rows: DuckDB over Parquet, read-only, a page of rows at a time."""

import threading
from collections.abc import Mapping, Sequence, Set
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import duckdb

from pipelines.corpus.manifest import read_manifest
from pipelines.errors import ConfigError
from pipelines.run.views import LatestStage, find_corpus, list_latest, open_views, scan
from pipelines.run.workspace import StageFolder, Workspace
from schemas import datasets
from schemas.base import Record, read_row
from schemas.datasets import Enhancement, Grounding

PAGE = 50
KINDS = {"kept": "'kept'", "rejected": "reason", "failed": "error"}
"""What may become of a row, and the column that says so."""
FACETS = ("domain", "hops", "difficulty", "split")
Row = dict[str, Any]
STAGE_MODELS: Mapping[str, type[Record]] = {
    "seeds": datasets.Seed,
    "paths": datasets.Path,
    "questions": datasets.Question,
    "rewrites": datasets.Rewrite,
    "articles": datasets.Article,
    "anchors": datasets.Anchor,
    "bridges": datasets.Bridge,
    "groundings": Grounding,
    "pools": Grounding,
    "mixtures": Grounding,
    "difficulty": datasets.Difficulty,
    "enhancements": Enhancement,
    "selections": Enhancement,
    "rollouts": datasets.Rollout,
    "trajectories": datasets.Trajectory,
    "releases": datasets.ReleaseEntry,
}
_SHARE = (
    "list_sum(list_transform(cells, lambda cell: cell.correct)) / "
    "nullif(list_sum(list_transform(cells, lambda cell: cell.attempts - cell.unscored)), 0)"
)
# Over all conditions: at most a quarter right is rarely, at most three quarters sometimes.
_DIFFICULTY = (
    f"CASE WHEN {_SHARE} IS NULL THEN 'not scored' WHEN {_SHARE} = 0 THEN 'never solved' "
    f"WHEN {_SHARE} <= 0.25 THEN 'rarely solved' WHEN {_SHARE} <= 0.75 THEN 'sometimes solved' ELSE 'often solved' END"
)
# A list of ids may be long, so it is bound as one value.
_SOME = "{} IN (SELECT unnest(?::VARCHAR[]))"


@dataclass(frozen=True, slots=True)
class Choice:
    """Which rows a list shows; the page's address holds all of it."""

    stage: str
    kind: str = "kept"
    reason: str = ""
    domain: str = ""
    hops: str = ""
    difficulty: str = ""
    split: str = ""
    text: str = ""
    release: str = ""
    """Only rows that this ``dataset/version`` holds."""
    page: int = 1


@dataclass(frozen=True, slots=True)
class Relative:
    """A row of a record's line: an ancestor, the record itself, or a row made from it."""

    stage: str
    record_id: str
    parent_id: str
    outcome: str
    """``kept``, or why the stage refused the row or failed over it."""
    detail: str = ""


class Explorer:
    """Questions to the stages of one workspace. Threads may share it, and a run that ends meanwhile is seen at once."""

    def __init__(self, root: Path, stages: Sequence[LatestStage] = ()) -> None:
        """Look at these stages; at those of the last run if none is given."""
        self.root = root.resolve()
        self._given = list(stages)
        self._lock = threading.Lock()
        self._opened: tuple[dict[str, str], duckdb.DuckDBPyConnection, list[LatestStage]] | None = None

    def _open(self) -> tuple[duckdb.DuckDBPyConnection, list[LatestStage]]:
        latest = Workspace(self.root).read_latest()
        with self._lock:
            if self._opened is None or self._opened[0] != latest:
                self._opened = latest, open_views(self.root), self._given or list_latest(self.root)
            return self._opened[1].cursor(), self._opened[2]

    def ask(self, sql: str, values: Sequence[object] = ()) -> list[Row]:
        """Return the rows of a query by column name; values are bound, never written into it."""
        cursor, _ = self._open()
        cursor.execute(sql, list(values))
        names = [column[0] for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def list_stages(self) -> list[LatestStage]:
        """Return the sealed stages in pipeline order."""
        return self._open()[1]

    def find_stage(self, name: str) -> LatestStage:
        """Return a stage's output.

        Raises:
            ConfigError: if the workspace has none.
        """
        for found in self.list_stages():
            if found.stage == name:
                return found
        raise ConfigError(f"no finished stage {name!r} in this workspace")

    def read_funnel(self) -> list[Row]:
        """Return how many rows of the corpus and of each stage were kept, rejected for each reason, or failed."""
        corpus = find_corpus(self.root)
        counted = {"corpus": asdict(read_manifest(corpus / "manifest.json").counts)} if corpus else {}
        for found in self.list_stages():
            manifest = found.folder.read_manifest()
            counted |= {found.stage: manifest.model_dump()} if manifest else {}
        counts = ("rows_in", "kept", "rejected", "failed")
        return [{"stage": stage} | {name: row[name] for name in counts} for stage, row in counted.items()]

    def list_rows(self, choice: Choice) -> tuple[list[Row], int]:
        """Return a page of the rows that a choice names, and how many there are in all."""
        parts, values = ["true"], list[object]()
        for name in ("reason", *FACETS):
            if wanted := getattr(choice, name):
                parts.append(f"{name} = ?")
                values.append(wanted)
        if choice.text:
            parts.append("contains(lower(concat_ws(' ', record_id, label, answer, detail)), lower(?))")
            values.append(choice.text)
        if choice.release:
            rows = scan_release(self.find_release(choice.release))
            columns = [name for name in ("id", "question_id") if name in self._list_columns(rows)]
            held = " UNION ALL ".join(f"SELECT {name} FROM {rows}" for name in columns)
            parts.append(f"(record_id IN ({held}) OR parent_id IN ({held}))")
        source = f"({self._select(choice.stage, choice.kind)}) WHERE {' AND '.join(parts)}"
        (counted,) = self.ask(f"SELECT count(*) AS total FROM {source}", values)
        page = f"ORDER BY record_id LIMIT {PAGE} OFFSET {PAGE * (choice.page - 1)}"
        return self.ask(f"FROM {source} {page}", values), counted["total"]

    def count_facets(self, stage: str, kind: str) -> dict[str, dict[str, int]]:
        """Return the values of each facet of a stage's rows, each with its number of rows."""
        source, found = self._select(stage, kind), dict[str, dict[str, int]]()
        for facet in ("reason", *FACETS):
            counted = f"SELECT {facet} AS value, count(*) AS rows FROM ({source}) WHERE value != '' GROUP BY value"
            rows = self.ask(f"{counted} ORDER BY value LIMIT 200")
            found[facet] = {row["value"]: row["rows"] for row in rows}
        return {facet: values for facet, values in found.items() if values}

    def _list_columns(self, rows: str) -> set[str]:
        return {row["column_name"] for row in self.ask(f"DESCRIBE FROM {rows}")}

    def _select(self, stage: str, kind: str) -> str:
        """Return a query of what a list shows of a stage's rows; a refused row has the columns that it came with."""
        found = self.find_stage(stage)
        if kind == "kept":
            return self._select_shown(found.folder)
        manifest = found.folder.read_manifest()
        inputs = [entry for entry in (manifest.inputs if manifest else ()) if entry.name != "corpus"]
        folders = [Workspace(self.root).stage(entry.name, entry.key) for entry in inputs]
        came = [self._select_shown(folder) for folder in folders if folder.manifest.is_file()]
        joined = " UNION ALL ".join(came) or f"SELECT {_list_shown(set())} WHERE false"
        return (
            f"SELECT came.* REPLACE (r.record_id AS record_id, r.{KINDS[kind]} AS reason, r.detail AS detail) "
            f"FROM {scan_rows(found.folder, kind)} r LEFT JOIN ({joined}) came ON came.record_id = r.record_id"
        )

    def _select_shown(self, folder: StageFolder) -> str:
        rows = scan_rows(folder)
        return f"SELECT {_list_shown(self._list_columns(rows))} FROM {rows}"

    def find_record(self, stage: str, record_id: str) -> Record | Row | None:
        """Return a kept row of a stage as its record; as a plain row where a plugin made the stage."""
        found = self.find_stage(stage)
        rows = self.ask(f"SELECT * FROM {scan_rows(found.folder)} WHERE record_id = ? LIMIT 1", [record_id])
        if not rows:
            return None
        rows[0].pop("key", None)
        return read_row(STAGE_MODELS[stage], rows[0]) if stage in STAGE_MODELS else rows[0]

    def find_ids(self, prefix: str) -> list[str]:
        """Return the ids of kept and refused rows that begin with a prefix."""
        sources = [scan_rows(found.folder, kind) for found in self.list_stages() for kind in KINDS]
        every = " UNION ".join(f"SELECT record_id FROM {source}" for source in sources)
        asked = f"SELECT record_id FROM ({every}) WHERE starts_with(record_id, ?) ORDER BY record_id"
        return [row["record_id"] for row in self.ask(asked, [prefix])] if sources else []

    def trace_line(self, record_id: str) -> list[Relative]:
        """Return a record's line in pipeline order: ancestors, itself, the rows made from it, refusals on the way.

        Siblings are left out.
        """
        stages = self.list_stages()
        # A row is made from rows of earlier stages: each stage is read once on the way up and once on the way down.
        line = {record_id}
        for found in reversed(stages):
            line |= {relative.parent_id for relative in self._find_links(found, line, set())}
        made, rows = {record_id}, list[Relative]()
        for found in stages:
            rows += self._find_links(found, line | made, made)
            made |= {relative.record_id for relative in rows if relative.parent_id in made}
        ids = sorted({record_id, *(relative.record_id for relative in rows)})
        for found in stages:
            for kind in ("rejected", "failed"):
                refused = f"SELECT record_id, '' AS parent_id, {KINDS[kind]} AS outcome, detail"
                source = f"{scan_rows(found.folder, kind)} WHERE {_SOME.format('record_id')}"
                rows += [Relative(found.stage, **row) for row in self.ask(f"{refused} FROM {source}", [ids])]
        order = [found.stage for found in stages]
        return sorted(rows, key=lambda relative: (order.index(relative.stage), relative.record_id))

    def _find_links(self, found: LatestStage, ids: Set[str], parents: Set[str]) -> list[Relative]:
        among = f"{_SOME.format('record_id')} OR {_SOME.format('parent_id')}"
        rows = self.ask(
            f"SELECT record_id, parent_id, 'kept' AS outcome FROM {scan_rows(found.folder)} WHERE {among}",
            [sorted(ids), sorted(parents)],
        )
        return [Relative(found.stage, **row) for row in rows]

    def list_rollouts(self, question: str) -> list[Row]:
        """Return a question's rollouts, with what the stage trajectories made of each and where each is shown."""
        folders = {found.stage: found.folder for found in self.list_stages()}
        if "rollouts" not in folders:
            return []
        judged = "SELECT NULL::VARCHAR AS record_id, '' AS outcome WHERE false"
        if "trajectories" in folders:
            judged = " UNION ALL ".join(
                f"SELECT record_id, {outcome} AS outcome FROM {scan_rows(folders['trajectories'], kind)}"
                for kind, outcome in KINDS.items()
            )
        return self.ask(
            "SELECT r.record_id, attempt, answer, stop_reason, coalesce(outcome, '') AS outcome, "
            "CASE WHEN outcome IS NULL THEN 'rollouts' ELSE 'trajectories' END AS stage "
            f"FROM {scan_rows(folders['rollouts'])} r LEFT JOIN ({judged}) j ON j.record_id = r.record_id "
            f"WHERE parent_id = ? ORDER BY attempt LIMIT {PAGE}",
            [question],
        )

    def list_releases(self) -> list[str]:
        """Return ``dataset/version`` of each published release."""
        return [f"{path.parent.name}/{path.name}" for path in Workspace(self.root).list_releases()]

    def find_release(self, name: str) -> Path:
        """Return the folder of a published release.

        Raises:
            ConfigError: if the workspace has none of that name.
        """
        if name not in self.list_releases():
            raise ConfigError(f"no release {name!r} in this workspace")
        return self.root / "releases" / name

    def find_holding(self, ids: Sequence[str]) -> list[str]:
        """Return the releases that hold a row with one of these ids."""
        folders = {name: self.find_release(name) for name in self.list_releases()}
        asked = {name: scan_release(folder) for name, folder in folders.items() if any(folder.glob("data/*.parquet"))}
        held = f"WHERE {_SOME.format('id')} LIMIT 1"
        return [name for name, rows in asked.items() if self.ask(f"SELECT id FROM {rows} {held}", [list(ids)])]


def scan_rows(folder: StageFolder, kind: str = "kept") -> str:
    """Return a table of a stage's rows: ``kept``, ``rejected`` or ``failed``."""
    return scan(folder.path / f"{'part' if kind == 'kept' else kind}-*.parquet")


def scan_release(folder: Path) -> str:
    """Return a table of a release's rows, of all splits."""
    return scan(folder / "data" / "*.parquet")


def _list_shown(columns: Set[str]) -> str:
    """Return what a list shows as SQL, by the columns that a stage's rows have."""
    none = "NULL::VARCHAR"
    label = next((name for name in ("text", "question", "title", "dataset") if name in columns), none)
    if "nodes" in columns:
        label = "array_to_string(list_transform(nodes, lambda node: node.title), ' → ')"
    shown = {
        **{name: name if name in columns else none for name in ("record_id", "parent_id", "domain", "split")},
        "label": label,
        "answer": "answer.surface" if {"answer", "text"} <= columns else "answer" if "answer" in columns else none,
        "hops": _count_hops(columns),
        "difficulty": _DIFFICULTY if "cells" in columns else none,
        "picture": "picture.sha256" if "picture" in columns else none,
        "ending": "stop_reason" if "stop_reason" in columns else none,
        "reason": "''",
        "detail": "''",
    }
    return ", ".join(f"{sql} AS {name}" for name, sql in shown.items())


def _count_hops(columns: Set[str]) -> str:
    if {"hops", "nodes"} <= columns:
        return "len(hops)::VARCHAR"
    if "path" in columns:
        return "CASE WHEN len(path) > 0 THEN (len(path) - 1)::VARCHAR END"
    found = (
        "CASE WHEN len(proof.nodes) > 0 THEN len(proof.hops)::VARCHAR END" if "proof" in columns else "NULL::VARCHAR"
    )
    if "trace" in columns:
        return f"CASE WHEN trace IS NOT NULL THEN (len(trace.links) + 1)::VARCHAR ELSE {found} END"
    return found
