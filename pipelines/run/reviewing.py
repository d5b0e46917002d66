"""Questions written out for people, and their decisions read back.

Questions become two forms: a CSV for any spreadsheet or for Label Studio, and records for Argilla. The CSV with its
last columns filled in, or what ``records.to_json`` of Argilla writes, is read back. A run writes the chains of
reasoning that a model left open into ``review/bridges/``, and ``news.decisions`` names what people said of them.

``review/questions/`` holds a sample of any questions: the forms, ``sample.json`` (every question that was ever given
out, with its stratum) and ``decisions.json``, which a run puts into its releases: the version is another one, and card
and report say the result.
"""

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pipelines.config.settings import NewsConfig
from pipelines.corpus.articles import MAX_FILE_BYTES, read_day
from pipelines.errors import ConfigError
from pipelines.files import write_bytes, write_text
from pipelines.ids import digest_value
from pipelines.pictures import PictureStore
from pipelines.release.card import render_cell
from pipelines.release.making import make_chain, name_picture, read_proofs
from pipelines.release.manifest import check_release_files
from pipelines.release.reviewed import Numbers, Review, measure_reviews, name_group, read_reviews, render_reviews
from pipelines.release.rows import ProofRow, read_values
from pipelines.run.runner import PlannedStage
from pipelines.run.shards import read_parts
from pipelines.run.workspace import Workspace, read_names, write_names
from pipelines.stages.reviews import Decision
from schemas.datasets import Bridge, Enhancement, Picture

SHOWN = ("id", "picture", "question", "answer", "steps", "remark")
ASKED = ("decision", "decided_by", "decided_on")
ACCEPTED, REFUSED = "accept", "refuse"
SAMPLE, DECISIONS = "sample.json", "decisions.json"


def _list_bridges(planned: Sequence[PlannedStage]) -> Iterator[Bridge]:
    for plan in planned:
        if plan.name == "bridges" and plan.folder.read_manifest() is not None:
            yield from read_parts(plan.folder, Bridge)


def count_unmatched(news: NewsConfig, planned: Sequence[PlannedStage]) -> int:
    """Return how many decisions are on no question of a run."""
    known = {row.record_id for row in _list_bridges(planned)}
    return sum(bridge not in known for bridge in read_decisions(news.decisions))


def export_undecided(news: NewsConfig, workspace: Workspace, planned: Sequence[PlannedStage]) -> int:
    """Write what a model left open and nobody decided, in place of an earlier run's; return how many there are."""
    known, store = read_decisions(news.decisions), PictureStore(workspace.images)
    folder = workspace.reviews / "bridges"
    rows = [
        {
            "id": row.record_id,
            "picture": str(store.path(row.picture.sha256, row.picture.extension).resolve()),
            "question": row.text,
            "answer": row.answer.surface,
            "steps": " → ".join(row.trace.steps),
            "remark": row.remark,
        }
        for row in _list_bridges(planned)
        if row.verdict == "unsure" and row.record_id not in known
    ]
    if rows or folder.exists():
        write_forms(folder, "undecided", rows)
    return len(rows)


def write_forms(folder: Path, name: str, rows: Sequence[Mapping[str, str]]) -> None:
    """Write ``<name>.csv`` and ``argilla.json`` in place of what is there; rows have the columns of :data:`SHOWN`."""
    folder.mkdir(parents=True, exist_ok=True)
    written = io.StringIO(newline="")
    writer = csv.DictWriter(written, SHOWN + ASKED, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: render_cell(row.get(name, "")) for name in SHOWN + ASKED} for row in rows)
    records = [{"id": row["id"], "fields": {name: row[name] for name in SHOWN[1:]}} for row in rows]
    write_text(folder / f"{name}.csv", written.getvalue())
    write_text(folder / "argilla.json", json.dumps(records, indent=1, ensure_ascii=False) + "\n")


def read_decisions(file: str) -> dict[str, Decision]:
    """Return people's decisions by the id of the bridge; rows without a decision are passed over.

    Args:
        file: a filled in form; empty: none.
    """
    decisions: dict[str, Decision] = {}
    for key, decision, where in read_forms(Path(file), "news.decisions") if file else ():
        if decisions.setdefault(key, decision).accepted != decision.accepted:
            raise ConfigError(f"{where}: two decisions on {key} contradict each other; settle it first")
    return decisions


def read_forms(path: Path, asked: str) -> Iterator[tuple[str, Decision, str]]:
    """Yield the id, the decision and its place in a form; rows without a decision are passed over.

    Args:
        path: the CSV, or JSON as Argilla writes it.
        asked: the setting or command that names the file, for messages.
    """
    if not path.is_file() or path.stat().st_size > MAX_FILE_BYTES:
        raise ConfigError(f"{asked} {path}: no such file, or more than {MAX_FILE_BYTES >> 20} MiB")
    try:
        text = path.read_text(encoding="utf-8-sig")
        found = list(_read_records(text) if path.suffix == ".json" else _read_csv(text))
    except UnicodeDecodeError as error:
        raise ConfigError(f"{asked} {path}: not UTF-8; save it as CSV UTF-8 (a choice of its own in Excel)") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, csv.Error) as error:
        told = f"{type(error).__name__} {error}"
        raise ConfigError(
            f"{asked} {path}: neither the CSV that was written for people nor records of Argilla: {told}"
        ) from error
    for place, *words in found:
        where = f"{asked} {path}, {place}"
        yield words[0], _settle(where, *words), where


def _read_csv(text: str) -> Iterator[tuple[str, ...]]:
    # Excel separates by semicolons where the comma is the decimal sign.
    first = text.partition("\n")[0]
    rows = csv.DictReader(io.StringIO(text), delimiter=";" if first.count(";") > first.count(",") else ",")
    for row in rows:
        if row["decision"].strip():
            yield f"line {rows.line_num}", row["id"], *(row[name] or "" for name in ASKED)


def _read_records(text: str) -> Iterator[tuple[str, ...]]:
    for number, record in enumerate(json.loads(text), 1):
        when = str(record.get("updated_at") or record.get("inserted_at") or "").replace(" ", "T")
        for response in record["responses"].get("decision", ()):
            if response.get("status") == "submitted":
                said = (response["value"], f"Argilla user {response['user_id']}", when)
                yield f"record {number}", str(record["id"]), *map(str, said)


def _settle(where: str, key: str, word: str, by: str, when: str) -> Decision:
    word, by, day = word.strip().casefold(), " ".join(by.split()), read_day(when.strip())
    if word not in (ACCEPTED, REFUSED):
        raise ConfigError(f"{where}: decision {word!r} on {key}; allowed: {ACCEPTED}, {REFUSED}")
    if not by or not by.isprintable() or not day:
        raise ConfigError(
            f"{where}: the decision on {key} must say who made it and on which day, such as 2026-11-22: "
            f"{by!r}, {when.strip()!r}"
        )
    # A day has begun somewhere up to fourteen hours before it does in UTC.
    if day > (datetime.now(UTC) + timedelta(hours=14)).date().isoformat():
        raise ConfigError(f"{where}: the day {day} of {key} is still to come; write when it was decided")
    return Decision(word == ACCEPTED, by, day)


# A sample of any questions.


@dataclass(frozen=True, slots=True)
class SampleReport:
    """What was written out for people."""

    folder: Path
    questions: int
    drawn_from: int
    strata: dict[str, int]
    """Questions of the sample by stratum."""


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What was read back."""

    file: Path
    added: int
    known: int
    """Decisions that an earlier import brought already."""
    result: dict[str, Numbers] = field(default_factory=dict)
    """Of all decisions so far, by stratum; see :func:`pipelines.release.reviewed.measure_reviews`."""


def find_folder(workspace: Workspace) -> Path:
    """Return where samples and decisions lie."""
    return workspace.reviews / "questions"


def read_decided(workspace: Workspace) -> tuple[Review, ...]:
    """Return everything that people decided on questions of a workspace."""
    return read_reviews(find_folder(workspace) / DECISIONS)


def export_sample(workspace: Workspace, release: Path | None, size: int, seed: int) -> SampleReport:
    """Write a stratified sample out for people.

    A stratum is hops, domain and how often a question was solved. Every stratum has its share of the sample, so that a
    share of the sample is an estimate of the share of all; what is drawn depends on the questions and the seed alone.

    Args:
        workspace: that the forms are written into.
        release: to draw from; None for the questions that the last run selected.
        size: of the sample; all questions where there are no more.
        seed: of the draw.
    """
    if release is not None:
        check_release_files(release)
    strata = {row.record_id: _name_group(row) for row in _read_questions(workspace, release)}
    if not strata:
        raise ConfigError("review export: there are no questions; let `synth run` come to its selections first")
    drawn = draw_sample(strata, size, seed)
    rows = [row for row in _read_questions(workspace, release) if row.record_id in drawn]
    folder = find_folder(workspace)
    places = _place_pictures(workspace, release, [row.picture for row in rows if row.picture])
    write_forms(folder, "questions", [_describe(row, places) for row in rows])
    write_names(folder / SAMPLE, read_names(folder / SAMPLE) | {key: strata[key] for key in drawn})
    return SampleReport(folder, len(drawn), len(strata), dict(sorted(Counter(drawn.values()).items())))


def draw_sample(strata: Mapping[str, str], size: int, seed: int) -> dict[str, str]:
    """Return a sample by id with strata: every n-th question of all, ordered by stratum and then at random."""
    ordered = sorted(strata, key=lambda key: (strata[key], digest_value([seed, key])))
    count = min(size, len(ordered))
    chosen = (ordered[(2 * place + 1) * len(ordered) // (2 * count)] for place in range(count))
    return {key: strata[key] for key in chosen}


def _read_questions(workspace: Workspace, release: Path | None) -> Iterator[Enhancement | ProofRow]:
    key = workspace.read_latest().get("selections", "")
    if release is not None:
        yield from read_proofs(release)
    elif key:
        yield from read_parts(workspace.stage("selections", key), Enhancement)


def _name_group(row: Enhancement | ProofRow) -> str:
    cells = row.cells if isinstance(row, Enhancement) else row.difficulty
    return name_group(row.hops_named, row.domain, cells)


def _describe(row: Enhancement | ProofRow, places: Mapping[str, Path]) -> dict[str, str]:
    links = (f"{link.subject}: {link.relation}: {link.object}" for link in make_chain(row))
    return {
        "id": row.record_id,
        "picture": str(places[row.picture.sha256].resolve()) if row.picture else "",
        "question": row.text,
        "answer": row.answer.surface,
        "steps": " → ".join(row.trace.steps if row.trace else links),
        "remark": "",
    }


def _place_pictures(workspace: Workspace, release: Path | None, pictures: Sequence[Picture]) -> dict[str, Path]:
    store, folder = PictureStore(workspace.images), find_folder(workspace) / "pictures"
    places = {picture.sha256: store.path(picture.sha256, picture.extension) for picture in pictures}
    missing = {name_picture(each): each.sha256 for each in pictures if not places[each.sha256].is_file()}
    for path in sorted((release / "data").glob("*.parquet")) if release is not None and missing else ():
        for row in read_values(path):
            for image in [row.get("image"), *(row.get("images") or ())]:
                if image and (sha256 := missing.pop(image["path"], "")):
                    places[sha256] = folder / image["path"]
                    write_bytes(places[sha256], image["bytes"])
    if missing:
        raise ConfigError(f"review export: picture {min(missing)} is neither in {workspace.images} nor in the release")
    return places


def import_decisions(workspace: Workspace, files: Iterable[Path]) -> ImportReport:
    """Add what people said to ``decisions.json``; nothing is written unless every decision is valid."""
    file, strata = find_folder(workspace) / DECISIONS, read_names(find_folder(workspace) / SAMPLE)
    if not strata:
        raise ConfigError(f"review import: no sample was given out from {workspace.root}; see `synth review export`")
    before = read_decided(workspace)
    decided = {(review.question, review.reviewer): (review, str(file)) for review in before}
    spelling = {review.reviewer.casefold(): review.reviewer for review in before}
    told = set[tuple[str, str]]()
    for key, decision, where in (each for path in files for each in read_forms(path, "review import")):
        if key not in strata:
            raise ConfigError(f"{where}: {key!r} is no question of a sample that was given out here")
        # A person's name is spelt as it was first.
        name = spelling.setdefault(decision.decided_by.casefold(), decision.decided_by)
        review = Review(question=key, reviewer=name, accepted=decision.accepted, decided_on=decision.decided_on)
        earlier, there = decided.setdefault((key, name), (review, where))
        if (key, name) in told or earlier.accepted != review.accepted:
            raise ConfigError(
                f"{where}: {name} decided on {key} before: {there}; keep one of the two; for a changed mind "
                f"remove {file} and import the forms again"
            )
        told.add((key, name))
    reviews = [review for review, _ in decided.values()]
    write_text(file, render_reviews(reviews))
    added = len(reviews) - len(before)
    return ImportReport(file, added, len(told) - added, measure_reviews(strata, reviews))
