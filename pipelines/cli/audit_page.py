"""The page of ``synth audit --html``: by defect, the first rows that have it with their pictures.

Files are hostile: the template escapes every value, the page's Content-Security-Policy forbids scripts and foreign
addresses, and of a picture only a JPEG that was made here is shown.
"""

import base64
import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from itertools import chain
from pathlib import Path

from jinja2 import Environment, StrictUndefined

from pipelines.cli.audit import DEFECTS, UNCHECKED, AuditOptions, AuditReport, Defect, open_named
from pipelines.corpus.layouts import ForeignQuestion, NamedPicture, read_questions
from pipelines.errors import RecordFailed
from pipelines.files import write_text
from pipelines.pictures import open_pixels

SIDE, QUALITY = 220, 60
"""Pixels of a picture's longer side on the page, and its JPEG quality."""
PICTURES = 4
"""Pictures of a row that are shown."""
LONGEST_SHOWN = 400
Key = tuple[int, int]
"""A row: number of the file and of the question in it."""


@dataclass(frozen=True, slots=True)
class RowCard:
    """A row as the page shows it."""

    id: str
    question: str
    answers: str
    pictures: tuple[str, ...]
    """``data:`` addresses."""


@dataclass(frozen=True, slots=True)
class FindingCard:
    """A row with what was found in it, and the row that it repeats."""

    detail: str
    row: RowCard
    other: RowCard | None


@dataclass(frozen=True, slots=True)
class DefectSection:
    """One kind of defect."""

    name: str
    meaning: str
    rows: int
    share: float
    """Percent of the file."""
    file: Path
    cards: tuple[FindingCard, ...]


def write_audit_page(report: AuditReport, options: AuditOptions, out: Path) -> None:
    """Write the page; the files are read once more, for the rows that it shows."""
    rows = dict(_read_cards(report, options))
    counts = {file.path: file.rows for file in report.files}
    sections = [_make_section(defect, counts[defect.file], rows) for defect in report.defects]
    source = (resources.files("pipelines.cli") / "audit.html.j2").read_text(encoding="utf-8")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    page = environment.from_string(source).render(report=report, sections=sections, meanings=UNCHECKED)
    # A lone surrogate of a file can be written in no encoding.
    write_text(out, page.encode("utf-8", "replace").decode("utf-8"))


def _make_section(defect: Defect, rows: int, cards: Mapping[Key, RowCard]) -> DefectSection:
    found = (
        FindingCard(
            finding.detail,
            cards.get((finding.row.file, finding.row.number), RowCard(finding.row.id, "", "", ())),
            cards.get((finding.other.file, finding.other.number)) if finding.other else None,
        )
        for finding in defect.findings
    )
    return DefectSection(
        defect.name, DEFECTS[defect.name], defect.rows, 100 * defect.rows / rows, defect.file, tuple(found)
    )


def _read_cards(report: AuditReport, options: AuditOptions) -> Iterator[tuple[Key, RowCard]]:
    """Yield the rows that defects name."""
    findings = chain.from_iterable(defect.findings for defect in report.defects)
    places = chain.from_iterable((finding.row, finding.other) for finding in findings)
    wanted = {(place.file, place.number) for place in places if place is not None}
    for number, file in enumerate(report.files):
        left = {row for of, row in wanted if of == number}
        if not left:
            continue
        for row, question in enumerate(read_questions(file.path, file.layout, dict(options.columns) or None)):
            if row in left and isinstance(question, ForeignQuestion):
                yield (number, row), _make_card(question, file.path.parent, options.images)
            left.discard(row)
            if not left:
                break


def _make_card(question: ForeignQuestion, beside: Path, images: Path | None) -> RowCard:
    return RowCard(
        question.id,
        question.question[:LONGEST_SHOWN],
        " · ".join(question.answers)[:LONGEST_SHOWN],
        tuple(_list_thumbnails(question.pictures[:PICTURES], beside, images)),
    )


def _list_thumbnails(pictures: Iterable[NamedPicture], beside: Path, images: Path | None) -> Iterator[str]:
    for picture in pictures:
        data = picture.content or open_named(picture.name, beside, images)[0]
        if data:
            try:
                small = open_pixels(data, max_side=SIDE)
            except RecordFailed:
                # The page says that it cannot be opened in the words of the defect.
                continue
            target = io.BytesIO()
            small.save(target, "JPEG", quality=QUALITY)
            yield "data:image/jpeg;base64," + base64.b64encode(target.getvalue()).decode("ascii")
