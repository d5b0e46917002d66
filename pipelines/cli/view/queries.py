"""What the view asks a workspace: DuckDB over Parquet, read-only, a page of rows at a time."""

import json
import threading
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import duckdb

from pipelines.cli.facets import STAGE_MODELS, Refusal
from pipelines.errors import ConfigError
from pipelines.run.views import LatestStage, list_latest, open_views, quote_text, scan
from pipelines.run.workspace import StageFolder, Workspace
from schemas.base import Record, read_row
from schemas.manifest import InputEntry

PAGE = 50
MOST_RELATIVES = 400
KINDS = ("kept", "rejected", "failed")
FACETS = ("domain", "hops", "difficulty", "split")
Row = dict[str, Any]

_SHARE = (
    "list_sum(list_transform(cells, lambda cell: cell.correct)) / "
    "nullif(list_sum(list_transform(cells, lambda cell: cell.attempts - cell.unscored)), 0)"
)
_DIFFICULTY = (
    f"CASE WHEN {_SHARE} IS NULL THEN 'not scored' WHEN {_SHARE} = 0 THEN 'never solved' "
    f"WHEN {_SHARE} <= 0.25 THEN 'rarely solved' WHEN {_SHARE} <= 0.75 THEN 'sometimes solved' ELSE 'often solved' END"
)
"""By (c, n) summed over all conditions: at most a quarter is rarely, at most three quarters sometimes."""


_SOME = "{} IN (SELECT unnest(?::VARCHAR[]))"
"""One of the ids of a list, which may be long: it is bound as one value."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Which rows a list shows; everything of it stands in the address."""

    stage: str
    kind: str = "kept"
    """``kept``, ``rejected`` or ``failed``."""
    reason: str = ""
    domain: str = ""
    hops: str = ""
    difficulty: str = ""
    split: str = ""
    text: str = ""
    release: str = ""
    """``dataset/version``: only rows that it holds."""
    page: int = 1


@dataclass(frozen=True, slots=True)
class Listing:
    """One page of rows, and how many there are."""

    rows: list[Row]
    total: int


@dataclass(frozen=True, slots=True)
class Relative:
    """A row of a record's line: ancestors, itself, and what was made from it."""

    stage: str
    record_id: str
    parent_id: str
    reason: str = ""
    """Of a refused or failed row."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Rows of two outputs that are not the same: at most a page of ids of each kind, and how many there are."""

    counts: dict[str, int]
    """Of rows that are the same, added, removed and changed."""
    shown: dict[str, list[str]]


class Explorer:
    """Questions to one workspace; a run that ends meanwhile is seen by the next one. Safe to use from threads."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._lock = threading.Lock()
        self._opened: tuple[dict[str, str], duckdb.DuckDBPyConnection, list[LatestStage]] | None = None
        self.read_facets = lru_cache(maxsize=64)(self._read_facets)

    def _open(self) -> tuple[duckdb.DuckDBPyConnection, list[LatestStage]]:
        latest = Workspace(self.root).read_latest()
        with self._lock:
            if self._opened is None or self._opened[0] != latest:
                self._opened = latest, open_views(self.root), list_latest(self.root)
                self.read_facets.cache_clear()
            return self._opened[1].cursor(), self._opened[2]

    def ask(self, sql: str, values: Sequence[object] = ()) -> list[Row]:
        """Return the rows of a query by column name; values are bound, never written into it."""
        cursor, _ = self._open()
        cursor.execute(sql, list(values))
        names = [column[0] for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def list_stages(self) -> list[LatestStage]:
        """Return the latest sealed stages in pipeline order."""
        return self._open()[1]

    def find_stage(self, name: str) -> LatestStage:
        """Return a stage's latest output.

        Raises:
            ConfigError: if the workspace has none.
        """
        for found in self.list_stages():
            if found.stage == name:
                return found
        raise ConfigError(f"no finished stage {name!r} in this workspace")

    def list_columns(self, folder: StageFolder) -> frozenset[str]:
        """Return the names of the columns of a stage's kept rows."""
        return frozenset(row["column_name"] for row in self.ask(f"DESCRIBE SELECT * FROM {scan_rows(folder)}"))

    def list_rows(self, choice: Choice) -> Listing:
        """Return a page of the rows that a choice names, in the order of their files."""
        found = self.find_stage(choice.stage)
        if choice.kind != "kept":
            return self._list_refused(found, choice)
        columns = self.list_columns(found.folder)
        where, values = self._filter(choice, columns)
        source = f"{scan_rows(found.folder)} WHERE {where}"
        total = self.ask(f"SELECT count(*) AS total FROM {source}", values)[0]["total"]
        shown = ", ".join(f"{sql} AS {name}" for name, sql in _name_columns(columns).items())
        page = f"LIMIT {PAGE} OFFSET {PAGE * (choice.page - 1)}"
        rows = self.ask(f"SELECT {shown} FROM {source} {page}", values)
        return Listing([row | {"reason": "", "detail": ""} for row in rows], total)

    def _filter(self, choice: Choice, columns: frozenset[str]) -> tuple[str, list[object]]:
        names, parts, values = _name_columns(columns), ["true"], list[object]()
        for facet in FACETS:
            if wanted := getattr(choice, facet):
                parts.append(f"{names[facet]} = ?")
                values.append(wanted)
        if choice.text:
            parts.append(f"contains(lower(concat_ws(' ', record_id, {names['label']}, {names['answer']})), lower(?))")
            values.append(choice.text)
        if choice.release:
            held = self._list_held(choice.release)
            parts.append(f"(record_id IN ({held}) OR parent_id IN ({held}))")
        return " AND ".join(parts), values

    def _list_held(self, release: str) -> str:
        """Return a query of the ids of a release's rows, and of the questions that they are about."""
        rows = scan_release(self.find_release(release))
        columns = {row["column_name"] for row in self.ask(f"DESCRIBE SELECT * FROM {rows}")}
        names = [name for name in ("id", "question_id") if name in columns]
        return " UNION ALL ".join(f"SELECT {name} FROM {rows}" for name in names)

    def _list_refused(self, found: LatestStage, choice: Choice) -> Listing:
        column = "reason" if choice.kind == "rejected" else "error"
        parts, values = ["true"], list[object]()
        if choice.reason:
            parts.append(f"{column} = ?")
            values.append(choice.reason)
        if choice.text:
            parts.append("contains(lower(concat_ws(' ', record_id, detail)), lower(?))")
            values.append(choice.text)
        inputs = self.list_inputs(found)
        asked = replace(choice, text="", release="")
        if any(getattr(choice, facet) for facet in FACETS):
            came = []
            for folder in inputs:
                where, bound = self._filter(asked, self.list_columns(folder))
                came.append(f"SELECT record_id FROM {scan_rows(folder)} WHERE {where}")
                values += bound
            parts.append(f"record_id IN ({' UNION ALL '.join(came)})" if came else "false")
        source = f"{scan_rows(found.folder, choice.kind)} WHERE {' AND '.join(parts)}"
        total = self.ask(f"SELECT count(*) AS total FROM {source}", values)[0]["total"]
        page = f"LIMIT {PAGE} OFFSET {PAGE * (choice.page - 1)}"
        rows = self.ask(f"SELECT record_id, {column} AS reason, detail FROM {source} {page}", values)
        came_in = {row["record_id"]: row for folder in inputs for row in self._show(folder, rows)}
        blank = dict.fromkeys(_name_columns(frozenset()))
        return Listing([blank | came_in.get(row["record_id"], {}) | row for row in rows], total)

    def _show(self, folder: StageFolder, rows: Sequence[Row]) -> list[Row]:
        """Return what a list shows of those rows that a folder has."""
        shown = ", ".join(f"{sql} AS {name}" for name, sql in _name_columns(self.list_columns(folder)).items())
        ids = [row["record_id"] for row in rows]
        return self.ask(f"SELECT {shown} FROM {scan_rows(folder)} WHERE {_among('record_id', ids)}", ids)

    def list_inputs(self, found: LatestStage) -> list[StageFolder]:
        """Return the outputs that a stage was made from and that are still there."""
        manifest = found.folder.read_manifest()
        inputs: tuple[InputEntry, ...] = manifest.inputs if manifest else ()
        folders = [Workspace(self.root).stage(entry.name, entry.key) for entry in inputs if entry.name != "corpus"]
        return [folder for folder in folders if folder.manifest.is_file()]

    def _read_facets(self, stage: str, kind: str) -> dict[str, list[tuple[str, int]]]:
        """Return the values of each facet and their numbers of rows; of refused rows those of what came in."""
        found = self.find_stage(stage)
        if kind != "kept":
            column = "reason" if kind == "rejected" else "error"
            counted = f"SELECT {column} AS value, count(*) AS rows FROM {scan_rows(found.folder, kind)}"
            reasons = [(row["value"], row["rows"]) for row in self.ask(f"{counted} GROUP BY ALL ORDER BY 2 DESC, 1")]
            inputs = self.list_inputs(found)
            return self._count_facets(inputs[0] if inputs else None) | {"reason": reasons}
        return self._count_facets(found.folder)

    def _count_facets(self, folder: StageFolder | None) -> dict[str, list[tuple[str, int]]]:
        if folder is None:
            return {}
        columns = self.list_columns(folder)
        names = _name_columns(columns)
        facets = {}
        for facet in FACETS:
            valued = f"SELECT {names[facet]} AS value FROM {scan_rows(folder)}"
            counted = f"SELECT value, count(*) AS rows FROM ({valued}) WHERE value != '' GROUP BY value"
            rows = self.ask(f"{counted} ORDER BY value LIMIT 200")
            facets[facet] = [(row["value"], row["rows"]) for row in rows]
        return {facet: values for facet, values in facets.items() if values}

    def find_record(self, stage: str, record_id: str) -> Record | Row | None:
        """Return a kept row of a stage as its record; as a plain row where the stage is not one of ours."""
        found = self.find_stage(stage)
        rows = self.ask(f"SELECT * FROM {scan_rows(found.folder)} WHERE record_id = ? LIMIT 1", [record_id])
        if not rows:
            return None
        rows[0].pop("key", None)
        return read_row(STAGE_MODELS[stage], rows[0]) if stage in STAGE_MODELS else rows[0]

    def find_refusal(self, stage: str, record_id: str) -> tuple[Refusal, tuple[str, ...]] | None:
        """Return why a stage refused a row, or failed over it, and all reasons that applied."""
        found = self.find_stage(stage)
        for kind, column, codes in (("rejected", "reason", "codes"), ("failed", "error", "[]::VARCHAR[]")):
            asked = (
                f"SELECT record_id, {column} AS reason, detail, {codes} AS codes FROM {scan_rows(found.folder, kind)}"
            )
            for row in self.ask(f"{asked} WHERE record_id = ? LIMIT 1", [record_id]):
                return Refusal(stage, record_id, kind, row["reason"], row["detail"]), tuple(row["codes"] or ())
        return None

    def find_ids(self, prefix: str) -> list[str]:
        """Return the ids that begin with a prefix, of rows that were kept, refused or failed."""
        sources = [scan_rows(found.folder, kind) for found in self.list_stages() for kind in KINDS]
        every = " UNION ".join(f"SELECT record_id FROM {source}" for source in sources)
        asked = f"SELECT record_id FROM ({every}) WHERE starts_with(record_id, ?) ORDER BY record_id"
        return [row["record_id"] for row in self.ask(asked, [prefix])] if sources else []

    def find_outcomes(self, stage: str, ids: Sequence[str]) -> dict[str, str]:
        """Return what a stage made of rows: ``kept``, or why it refused or failed over them."""
        if stage not in {found.stage for found in self.list_stages()}:
            return {}
        folder, among = self.find_stage(stage).folder, _among("record_id", ids)
        sources = (("kept", "'kept'"), ("rejected", "reason"), ("failed", "error"))
        asked = " UNION ALL ".join(
            f"SELECT record_id, {column} AS outcome FROM {scan_rows(folder, kind)} WHERE {among}"
            for kind, column in sources
        )
        return {row["record_id"]: row["outcome"] for row in self.ask(asked, [*ids, *ids, *ids])}

    def trace_line(self, record_id: str, parent_id: str) -> list[Relative]:
        """Return the line of a record in pipeline order: ancestors, itself, what was made of it, refusals on the way.

        Siblings are left out.
        """
        stages = self.list_stages()
        # A row is made from rows of stages before: each stage is read once on the way up and once on the way down.
        line = {record_id, parent_id}
        for found in reversed(stages):
            line |= {row["parent_id"] for row in self._find_links(found, line)}
        made, rows = {record_id}, list[Row]()
        for found in stages:
            links = self._find_links(found, line | made, made)
            rows += links
            made |= {row["record_id"] for row in links if row["parent_id"] in made}
        ids = sorted({record_id} | {row["record_id"] for row in rows})
        refused = " UNION ALL ".join(
            f"SELECT {quote_text(found.stage)} AS stage, record_id, '' AS parent_id, {column} AS reason "
            f"FROM {scan_rows(found.folder, kind)}"
            for found in stages
            for kind, column in (("rejected", "reason"), ("failed", "error"))
        )
        rows += self.ask(f"SELECT * FROM ({refused}) WHERE {_SOME.format('record_id')}", [ids])
        order = {found.stage: place for place, found in enumerate(stages)}
        rows.sort(key=lambda row: (order[row["stage"]], row["record_id"]))
        return [Relative(**row) for row in rows]

    def _find_links(self, found: LatestStage, ids: Set[str], parents: Set[str] = frozenset()) -> list[Row]:
        """Return a stage's rows with one of these ids, or made from one of these parents, by id."""
        among = f"{_SOME.format('record_id')} OR {_SOME.format('parent_id')}"
        return self.ask(
            f"SELECT {quote_text(found.stage)} AS stage, record_id, parent_id FROM {scan_rows(found.folder)} "
            f"WHERE {among} ORDER BY record_id",
            [sorted(ids), sorted(parents)],
        )

    # Releases and comparisons

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
        """Return the releases that hold a row with one of these ids; one whose data are gone holds none."""
        folders = {name: self.find_release(name) for name in self.list_releases()}
        asked = {name: scan_release(folder) for name, folder in folders.items() if any(folder.glob("data/*.parquet"))}
        return [
            name
            for name, rows in asked.items()
            if self.ask(f"SELECT id FROM {rows} WHERE {_SOME.format('id')} LIMIT 1", [list(ids)])
        ]

    def list_keys(self, stage: str) -> list[str]:
        """Return the keys of all sealed outputs of a stage, the newest first."""
        folder = self.root / "stages"
        if not folder.is_dir() or stage not in {path.name for path in folder.iterdir()}:
            return []
        found = (folder / stage).glob("*/manifest.json")
        return [path.parent.name for path in sorted(found, key=lambda path: (-path.stat().st_mtime, path.parent.name))]

    def find_output(self, stage: str, key: str) -> StageFolder:
        """Return a sealed output of a stage.

        Raises:
            ConfigError: if there is none under that key.
        """
        if key not in self.list_keys(stage):
            raise ConfigError(f"no sealed output {key!r} of {stage} in this workspace")
        return Workspace(self.root).stage(stage, key)

    def compare_outputs(self, before: StageFolder, after: StageFolder, page: int) -> Difference:
        """Return which rows of one stage's two outputs differ; the stage's key does not count."""
        digests = [
            f"(SELECT record_id, hash(row) AS digest FROM (SELECT * EXCLUDE (key) FROM {scan_rows(folder)}) AS row)"
            for folder in (before, after)
        ]
        joined = (
            "SELECT coalesce(old.record_id, new.record_id) AS id, CASE WHEN old.record_id IS NULL THEN 'added' "
            "WHEN new.record_id IS NULL THEN 'removed' WHEN old.digest = new.digest THEN 'same' ELSE 'changed' END "
            f"AS kind FROM {digests[0]} AS old FULL JOIN {digests[1]} AS new ON old.record_id = new.record_id"
        )
        counts = {
            row["kind"]: row["rows"] for row in self.ask(f"SELECT kind, count(*) AS rows FROM ({joined}) GROUP BY 1")
        }
        shown = {
            kind: [
                row["id"]
                for row in self.ask(
                    f"SELECT id FROM ({joined}) WHERE kind = ? ORDER BY id LIMIT {PAGE} OFFSET {PAGE * (page - 1)}",
                    [kind],
                )
            ]
            for kind in ("added", "removed", "changed")
        }
        return Difference({kind: counts.get(kind, 0) for kind in ("same", "added", "removed", "changed")}, shown)

    def read_cells(self, source: str, column: str, row_id: str) -> Row:
        """Return a row's cells as text by column name; empty without such a row."""
        rows = self.ask(f"SELECT * FROM {source} WHERE {column} = ? LIMIT 1", [row_id])
        return {name: _write_cell(value) for name, value in rows[0].items() if name != "key"} if rows else {}


def scan_rows(folder: StageFolder, kind: str = "part") -> str:
    """Return a table of a stage's rows: kept ones, ``rejected`` or ``failed``."""
    name = "part" if kind == "kept" else kind
    return scan(folder.path / f"{name}-*.parquet")


def scan_release(folder: Path) -> str:
    """Return a table of a release's rows, of all splits."""
    return scan(folder / "data" / "*.parquet")


def _among(column: str, values: Iterable[object]) -> str:
    marks = ", ".join("?" for _ in values)
    return f"{column} IN ({marks})" if marks else "false"


def _name_columns(columns: frozenset[str]) -> dict[str, str]:
    """Return what a list shows as SQL by name, by the columns that a stage's rows have."""
    none = "NULL::VARCHAR"
    label = next((name for name in ("text", "question", "title", "dataset") if name in columns), none)
    if "nodes" in columns:
        label = "array_to_string(list_transform(nodes, lambda node: node.title), ' → ')"
    return {
        "record_id": "record_id" if "record_id" in columns else none,
        "label": label,
        "answer": "answer.surface" if {"answer", "text"} <= columns else "answer" if "answer" in columns else none,
        "domain": "domain" if "domain" in columns else none,
        "hops": _count_hops(columns),
        "difficulty": _DIFFICULTY if "cells" in columns else none,
        "split": "split" if "split" in columns else none,
        "picture": "picture.sha256" if "picture" in columns else none,
        "ending": "stop_reason" if "stop_reason" in columns else none,
    }


def _count_hops(columns: frozenset[str]) -> str:
    if "hops" in columns and "nodes" in columns:
        return "len(hops)::VARCHAR"
    if "path" in columns:
        return "CASE WHEN len(path) > 0 THEN (len(path) - 1)::VARCHAR END"
    proved = (
        "CASE WHEN len(proof.nodes) > 0 THEN len(proof.hops)::VARCHAR END" if "proof" in columns else "NULL::VARCHAR"
    )
    if "trace" in columns:
        return f"CASE WHEN trace IS NOT NULL THEN (len(trace.links) + 1)::VARCHAR ELSE {proved} END"
    return proved


def _write_cell(value: object) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, indent=1, default=_name_bytes)


def _name_bytes(value: object) -> str:
    return f"{len(value):,} bytes" if isinstance(value, bytes) else str(value)
