"""What is written about the rows of a release, made again from them: attribution, quality report, card, Croissant.

A few numbers of the report are about what no row tells; :data:`CLAIMED` names them, and they are taken from the report
itself. Whoever adds a section that the rows do not decide adds it there, and a line about it is in every report.
"""

import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from importlib import resources
from pathlib import Path
from typing import Any

from pipelines.config.disclosure import read_sections
from pipelines.config.settings import ReleasesConfig
from pipelines.errors import ConfigError, GateNotMet
from pipelines.release.card import (
    DOCUMENTS,
    Credit,
    list_credits,
    read_prose,
    render_credits,
    render_documents,
)
from pipelines.release.facts import ReleaseFacts
from pipelines.release.making import Example
from pipelines.release.manifest import ReleaseManifest
from pipelines.release.publish import ATTRIBUTION, REWARDS
from pipelines.release.quality import Quality, check_quality, measure_quality
from pipelines.release.reviewed import REVIEWS, read_reviews, render_reviews, select_reviews
from pipelines.release.rows import ReleaseRow, RlRow, shorten
from pipelines.release.verify.reports import Problem

CLAIMED: Mapping[str, tuple[str, ...]] = {
    "standing": ("with wrong answers given twice, all refuted", "left out: "),
    "trajectories": ("process mark",),
    "decided by": ("",),
}
"""Entries of the quality report that rows do not decide, by section: how their names begin."""


@dataclass(slots=True)
class Survey:
    """What one pass over a release's rows finds out, as publishing does."""

    manifest: ReleaseManifest
    facts: ReleaseFacts = field(default_factory=ReleaseFacts)
    credits: set[Credit] = field(default_factory=set)
    first: tuple[Example, ReleaseRow] | None = None
    """The row with the smallest id."""
    places: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By question, the first place of its rows in the order of all."""

    def add(self, example: Example, row: ReleaseRow) -> str:
        """Take a row, and return what keeps it from being credited; empty if nothing does."""
        self.facts.add(example)
        if self.first is None or row.id < self.first[1].id:
            self.first = (example, _show_alone(row))
        question, place = example.question.record_id, place_row(example)
        self.places[question] = min(place, self.places.get(question, place))
        origin = (self.manifest.base_url, self.manifest.corpus)
        lenient = self.manifest.told.get("releases.unknown_licences") is True
        try:
            self.credits.update(list_credits(example, *origin, lenient, self.manifest.articles))
        except GateNotMet as error:
            return str(error)
        return ""

    def measure(self) -> Quality:
        """Return the quality report of the rows."""
        ordered = sorted(self.facts.questions, key=lambda question: self.places[question])
        self.facts.questions = {question: self.facts.questions[question] for question in ordered}
        signatures = [question.signature for question in self.facts.questions.values()]
        settings = ReleasesConfig.model_validate(read_sections(self.manifest.told).get("releases", {}), strict=False)
        return measure_quality(self.facts, signatures, self.manifest, settings)


def _show_alone(row: ReleaseRow) -> ReleaseRow:
    if not isinstance(row, RlRow):
        return row
    return row.model_copy(update={"extra_info": row.extra_info.model_copy(update={"index": 0})})


def place_row(example: Example) -> tuple[str, str]:
    """Return what the rows of a split are sorted by: their first picture, then their id."""
    pictures = example.list_pictures()
    return (pictures[0].sha256 if pictures else "", example.row_id)


def read_credits(folder: Path) -> dict[str, Credit]:
    """Return the lines of a release's attribution about pictures, by sha256; those that cannot be read are left out."""
    path = folder / ATTRIBUTION
    text = path.read_text("utf-8", errors="replace") if path.is_file() else ""
    names = [each.name for each in fields(Credit)]
    rows = csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)
    try:
        lines = [Credit(**{name: row[name] or "" for name in names}) for row in rows if row.keys() == set(names)]
    except csv.Error:
        return {}
    return {line.source: line for line in lines if line.kind == "image"}


def find_document_problems(folder: Path, survey: Survey) -> Iterator[Problem]:
    """Yield what the documents of a release say otherwise than its rows, byte by byte."""
    yield from _compare(folder, ATTRIBUTION, render_credits(sorted(survey.credits)))
    if survey.manifest.dataset == "rl":
        yield from _compare(folder, REWARDS, (resources.files("pipelines.release") / REWARDS).read_text("utf-8"))
    if survey.first is None:
        return
    try:
        claimed = json.loads((folder / "quality.json").read_bytes())
        survey.facts.reviews = select_reviews(read_reviews(folder / REVIEWS), survey.facts.questions)
        quality = take_claims(survey.measure(), claimed)
        prose = read_prose(survey.manifest.dataset)
        documents = render_documents(survey.manifest, quality, prose, *survey.first)
    except (OSError, ValueError, TypeError, AttributeError, KeyError, GateNotMet, ConfigError) as error:
        yield Problem("quality.json", f"documents: they cannot be made again: {error}")
        return
    try:
        check_quality(quality)
    except GateNotMet as error:
        yield Problem("quality.json", f"gates: {error}")
    yield from (problem for name in DOCUMENTS for problem in _compare(folder, name, documents[name]))
    if (folder / REVIEWS).exists():
        yield from _compare(folder, REVIEWS, render_reviews(survey.facts.reviews))


def take_claims(derived: Quality, claimed: Mapping[str, Any]) -> Quality:
    """Return a derived report with the entries of :data:`CLAIMED` as the given report has them."""
    merged = dict(derived)
    for name in CLAIMED.keys() & derived.keys():
        starts, told = CLAIMED[name], claimed[name]
        own = {key: value for key, value in told.items() if key.startswith(starts)}
        whole = {key: value for key, value in derived[name].items() if not key.startswith(starts)} | own
        merged[name] = {key: whole[key] for key in told if key in whole} | whole
    return merged


def _compare(folder: Path, name: str, wanted: str) -> Iterator[Problem]:
    path = folder / name
    given = path.read_bytes() if path.is_file() else b""
    if given == wanted.encode():
        return
    lines, right = given.decode("utf-8", "replace").split("\n"), wanted.split("\n")
    pairs = ((n, a, b) for n, (a, b) in enumerate(zip(lines, right, strict=False), 1) if a != b)
    number, said, line = next(pairs, (min(len(lines), len(right)) + 1, f"{len(lines)} lines", f"{len(right)} lines"))
    yield Problem(name, f"{name}: line {number} says {shorten(said)}, made again it says {shorten(line)}")
