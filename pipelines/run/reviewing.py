"""Questions written out for people, and their decisions read back.

Questions become forms: a CSV for any spreadsheet, and files that Argilla and Label Studio import, with the paths of the
pictures. The CSV with its last columns filled in, or what either tool exports, is read back. A run writes the chains of
reasoning that a model left open into ``review/bridges/``, and ``news.decisions`` names what people said of them;
:mod:`pipelines.run.sampling` asks about a sample of any questions.
"""

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pipelines.config.settings import NewsConfig
from pipelines.corpus.articles import MAX_FILE_BYTES, read_day
from pipelines.errors import ConfigError
from pipelines.files import write_text
from pipelines.pictures import PictureStore
from pipelines.release.card import render_cell
from pipelines.run.runner import PlannedStage
from pipelines.run.shards import read_parts
from pipelines.run.workspace import Workspace
from pipelines.stages.reviews import Decision
from schemas.datasets import Bridge

COLUMNS = ("id", "picture", "question", "answer", "steps", "remark", "decision", "decided_by", "decided_on")
ACCEPTED, REFUSED = "accept", "refuse"
CONFIG = """<View>
  <Image name="picture" value="$picture"/>
  <Header value="$question"/><Header value="$answer"/>
  <Text name="steps" value="$steps"/><Text name="remark" value="$remark"/>
  <Choices name="decision" toName="steps" choice="single" required="true">
    <Choice value="accept"/><Choice value="refuse"/>
  </Choices>
</View>
"""
"""Labelling interface for Label Studio."""


def list_undecided(planned: Sequence[PlannedStage]) -> Iterator[Bridge]:
    """Return the questions of a run that a model left open, in order; those that people decided among them."""
    return (row for row in _read_bridges(planned) if row.verdict == "unsure")


def _read_bridges(planned: Sequence[PlannedStage]) -> Iterator[Bridge]:
    for plan in planned:
        if plan.name == "bridges" and plan.folder.read_manifest() is not None:
            yield from read_parts(plan.folder, Bridge)


def count_unmatched(news: NewsConfig, planned: Sequence[PlannedStage]) -> int:
    """Return how many decisions are on no question of a run."""
    known = {row.record_id for row in _read_bridges(planned)}
    return sum(bridge not in known for bridge in read_decisions(news.decisions))


def export_undecided(news: NewsConfig, workspace: Workspace, planned: Sequence[PlannedStage]) -> int:
    """Write what is still undecided for people, in place of what an earlier run wrote; return how many there are."""
    known, store = read_decisions(news.decisions), PictureStore(workspace.images)
    folder = workspace.reviews / "bridges"
    rows = [_describe(row, store) for row in list_undecided(planned) if row.record_id not in known]
    if not rows and not folder.exists():
        return 0
    write_forms(folder, "undecided", rows)
    return len(rows)


def write_forms(folder: Path, name: str, rows: Sequence[Mapping[str, str]]) -> None:
    """Write questions for people, in place of what is there.

    Files: ``<name>.csv``, ``argilla.json`` (records for ``Dataset.records.log``), ``label-studio.json`` (tasks) and
    ``label-studio.xml`` (its labelling interface).

    Args:
        folder: that they are written to.
        name: of the CSV.
        rows: id, picture (its path), question, answer, steps and remark of each.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = io.StringIO(newline="")
    writer = csv.DictWriter(written, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: render_cell(row.get(name, "")) for name in COLUMNS} for row in rows)
    tasks = [{"data": {**row, "picture": f"/data/local-files/?d={row['picture'].lstrip('/')}"}} for row in rows]
    shown = ("picture", "question", "answer", "steps", "remark")
    records = [{"id": row["id"], "fields": {name: row[name] for name in shown}} for row in rows]
    write_text(folder / f"{name}.csv", written.getvalue())
    write_text(folder / "argilla.json", json.dumps(records, indent=1, ensure_ascii=False) + "\n")
    write_text(folder / "label-studio.json", json.dumps(tasks, indent=1, ensure_ascii=False) + "\n")
    write_text(folder / "label-studio.xml", CONFIG)


def _describe(row: Bridge, store: PictureStore) -> dict[str, str]:
    return {
        "id": row.record_id,
        "picture": str(store.path(row.picture.sha256, row.picture.extension).resolve()),
        "question": row.text,
        "answer": row.answer.surface,
        "steps": " → ".join(row.trace.steps),
        "remark": row.remark,
    }


# Reading back.


def read_decisions(file: str) -> dict[str, Decision]:
    """Return people's decisions by the id of the bridge; rows without a decision are passed over.

    Args:
        file: the CSV, or JSON as Argilla or Label Studio export it; empty: none.

    Raises:
        ConfigError: there is no such file, it has another shape, a decision is neither ``accept`` nor ``refuse``, does
            not say who decided and when, or two contradict each other.
    """
    if not file:
        return {}
    decisions: dict[str, Decision] = {}
    for said in read_forms(Path(file), "news.decisions"):
        decision = said.settle()
        if decisions.setdefault(said.id, decision).accepted != decision.accepted:
            raise ConfigError(f"{said.where}: two decisions on {said.id} contradict each other; settle it first")
    return decisions


@dataclass(frozen=True, slots=True)
class Said:
    """One decision as a file has it, before it is held to the rules."""

    id: str
    word: str
    by: str
    when: str
    where: str
    """File and place in it, for messages."""

    def settle(self) -> Decision:
        """Return the decision.

        Raises:
            ConfigError: if it is no word that is allowed, or does not say who decided and on which day.
        """
        word, day = self.word.strip().casefold(), read_day(self.when.strip())
        if word not in (ACCEPTED, REFUSED):
            raise ConfigError(f"{self.where}: decision {self.word!r} on {self.id}; allowed: {ACCEPTED}, {REFUSED}")
        by = " ".join(self.by.split())
        if not by or not self.when.strip():
            raise ConfigError(f"{self.where}: the decision on {self.id} does not say who made it and on which day")
        if not day:
            raise ConfigError(
                f"{self.where}: the day {self.when.strip()!r} of {self.id} is none; write it as 2026-11-22"
            )
        # A day has begun somewhere up to fourteen hours before it does in UTC.
        if day > (datetime.now(UTC) + timedelta(hours=14)).date().isoformat():
            raise ConfigError(f"{self.where}: the day {day} of {self.id} is still to come; write when it was decided")
        return Decision(word == ACCEPTED, by, day)


def read_forms(path: Path, asked: str) -> list[Said]:
    """Return what people said in a form; rows without a decision are passed over.

    Args:
        path: the CSV, or JSON as Argilla or Label Studio export it.
        asked: the setting or command that names the file, for messages.

    Raises:
        ConfigError: there is no such file, or it has another shape.
    """
    if not path.is_file() or path.stat().st_size > MAX_FILE_BYTES:
        raise ConfigError(f"{asked} {path}: no such file, or more than {MAX_FILE_BYTES >> 20} MiB")
    try:
        text = _read_text(path, asked)
        found = list(_read_json(text) if path.suffix == ".json" else _read_csv(text))
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError, csv.Error) as error:
        raise ConfigError(
            f"{asked} {path}: neither the CSV that was written for people nor an export of Argilla or Label Studio: "
            f"{type(error).__name__} {error}"
        ) from error
    said = [
        Said(str(key), str(word), str(by), str(when), f"{asked} {path}, {place}")
        for key, word, by, when, place in found
    ]
    for each in said:
        if any("\ud800" <= char <= "\udfff" for char in each.id + each.word + each.by + each.when):
            raise ConfigError(f"{each.where}: half a character (a lone surrogate) in the id, the decision, name or day")
    return said


def _read_text(path: Path, asked: str) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            f"{asked} {path}: line {line} is not UTF-8; save it as CSV UTF-8 (a choice of its own in Excel)"
        ) from error


Found = tuple[str, str, str, str, str]
"""Id, decision, who, when, and where in the file."""


def _read_csv(text: str) -> Iterator[Found]:
    # Excel separates by semicolons where the comma is the decimal sign.
    first = text.partition("\n")[0]
    rows = csv.DictReader(io.StringIO(text), delimiter=";" if first.count(";") > first.count(",") else ",")
    missing = {"id", "decision", "decided_by", "decided_on"} - set(rows.fieldnames or ())
    if missing:
        raise KeyError(f"no column {', '.join(sorted(missing))}")
    for row in rows:
        if (row["decision"] or "").strip():
            place = f"line {rows.line_num}"
            yield row["id"], row["decision"], row["decided_by"] or "", row["decided_on"] or "", place


def _read_json(text: str) -> Iterator[Found]:
    for number, row in enumerate(json.loads(text), 1):
        told: Iterable[tuple[str, str, str, str]] = _read_task(row) if "annotations" in row else _read_record(row)
        yield from ((*each, f"record {number}") for each in told)


def _read_task(task: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """Yield the decisions of a task as Label Studio exports it."""
    for annotation in task["annotations"]:
        if annotation.get("was_cancelled"):
            continue
        found = [each["value"]["choices"][0] for each in annotation["result"] if each["from_name"] == "decision"]
        by = annotation["completed_by"]
        # An export may hold the address of a mailbox, which no release may publish.
        name = f"Label Studio user {by['id'] if isinstance(by, dict) else by}"
        when = str(annotation.get("updated_at") or annotation["created_at"])
        yield from ((task["data"]["id"], word, name, when) for word in found)


def _read_record(record: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """Yield the decisions of a record as Argilla's ``records.to_json`` writes it; drafts are left out."""
    when = re.sub(r" ", "T", str(record.get("updated_at") or record.get("inserted_at") or ""))
    for response in record["responses"].get("decision", ()):
        if response.get("status") == "submitted":
            yield record["id"], response["value"], f"Argilla user {response['user_id']}", when
