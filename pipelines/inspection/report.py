"""``synth report``: one static HTML page about a workspace, with pictures inline and nothing loaded from anywhere.

Every value is escaped by the template and the page forbids scripts and foreign addresses (Content-Security-Policy):
page text and captions are hostile.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

from pipelines.errors import ConfigError
from pipelines.files import write_text
from pipelines.ids import draw_unit
from pipelines.inspection.cards import QuestionCard, make_card
from pipelines.inspection.catalogue import find_corpus, list_latest
from pipelines.inspection.courses import CourseReport, report_courses
from pipelines.inspection.enhancements import EnhancementReport, report_enhancements
from pipelines.inspection.rows import read_stage
from pipelines.release.statistics import Number, count_values
from schemas.groundings import Grounding
from schemas.manifest import Manifest
from schemas.rewrites import Certificate, Rewrite
from schemas.rollouts import Rollout

QUESTIONS = 50
SEED = 7
TOP = 12


@dataclass(frozen=True, slots=True)
class FunnelBar:
    """One stage of the funnel with the width of its bars in percent of the widest."""

    stage: str
    key: str
    rows_in: int
    kept: int
    rejected: int
    failed: int
    rows_out: int
    reasons: tuple[tuple[str, int], ...]
    kept_width: float
    rejected_width: float
    failed_width: float


@dataclass(frozen=True, slots=True)
class Distribution:
    """Shares of the values of one property; ``rows`` and share in percent by value, the most frequent first."""

    name: str
    values: tuple[tuple[str, Number, float], ...]


@dataclass(frozen=True, slots=True)
class Report:
    """Everything the page shows."""

    title: str
    corpus: str
    funnel: tuple[FunnelBar, ...]
    distributions: tuple[Distribution, ...]
    questions: tuple[QuestionCard, ...]
    total: int
    enhancements: EnhancementReport
    courses: CourseReport


def write_report(workspace_root: Path, out: Path) -> Path:
    """Write the page and return its path.

    Raises:
        ConfigError: if the workspace has no sealed stage to report on.
    """
    write_text(out, render_report(collect_report(workspace_root)))
    return out


def collect_report(root: Path) -> Report:
    """Return what the page shows; the same workspace always gives the same report.

    Raises:
        ConfigError: if the workspace has no sealed stage.
    """
    funnel = make_funnel(list_manifests(root))
    if not funnel:
        raise ConfigError(f"report: {root} has no finished stage; run synth run first")
    questions = _read_questions(root)
    chosen = sample_questions(questions, QUESTIONS)
    rollouts = _choose_rollouts(root, {question.record_id for question in chosen})
    certificates = _choose_certificates(root, {question.parent_id for question in chosen})
    corpus = find_corpus(root)
    return Report(
        title="synth report",
        corpus=corpus.name if corpus else "",
        funnel=funnel,
        distributions=make_distributions(questions),
        questions=tuple(
            make_card(root, question, certificates.get(question.parent_id, ()), rollouts.get(question.record_id))
            for question in chosen
        ),
        total=len(questions),
        enhancements=report_enhancements(root),
        courses=report_courses(root),
    )


def render_report(report: Report) -> str:
    """Return the page as HTML; the template escapes every value."""
    source = (resources.files("pipelines.inspection") / "report.html.j2").read_text(encoding="utf-8")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(source).render(report=report)


def list_manifests(root: Path) -> list[Mapping[str, Any]]:
    """Return the counts of the corpus and of each latest sealed stage, in pipeline order."""
    found: list[Mapping[str, Any]] = []
    corpus = find_corpus(root)
    if corpus is not None:
        counts = json.loads((corpus / "manifest.json").read_bytes())
        numbers = {name: counts[name] for name in ("rows_in", "kept", "rejected", "failed")}
        found.append({"stage": "corpus", "key": corpus.name, "rows_out": counts["kept"]} | numbers)
    for latest in list_latest(root):
        manifest = Manifest.model_validate_json(latest.folder.manifest.read_bytes())
        found.append(manifest.model_dump(include={"stage", "key", "rows_in", "kept", "rejected", "failed", "rows_out"}))
    return found


def make_funnel(manifests: Sequence[Mapping[str, Any]]) -> tuple[FunnelBar, ...]:
    """Return a bar a stage; widths are shares of the stage's own rows in, so that small stages can be read."""
    bars = []
    for row in manifests:
        rejected, whole = sum(row["rejected"].values()), max(row["rows_in"], 1)
        reasons = sorted(row["rejected"].items(), key=lambda pair: (-pair[1], pair[0]))
        bars.append(
            FunnelBar(
                stage=row["stage"],
                key=row["key"],
                rows_in=row["rows_in"],
                kept=row["kept"],
                rejected=rejected,
                failed=row["failed"],
                rows_out=row["rows_out"],
                reasons=tuple(reasons),
                kept_width=round(100 * row["kept"] / whole, 2),
                rejected_width=round(100 * rejected / whole, 2),
                failed_width=round(100 * row["failed"] / whole, 2),
            )
        )
    return tuple(bars)


def _read_questions(root: Path) -> list[Grounding]:
    """Return the questions with the most known about them: measured ones, else grounded ones."""
    for stage in ("enhancements", "difficulty", "groundings"):
        found = [row for row in read_stage(root, stage) if isinstance(row, Grounding)]
        if found:
            return found
    return []


def sample_questions(questions: Sequence[Grounding], count: int) -> list[Grounding]:
    """Return at most ``count`` questions, drawn by their ids alone, so that a report changes only where rows do."""
    return sorted(questions, key=lambda question: draw_unit(SEED, question.record_id))[:count]


def _choose_rollouts(root: Path, wanted: set[str]) -> dict[str, Rollout]:
    """Return one trajectory of each question, or one rollout where none was accepted."""
    chosen: dict[str, Rollout] = {}
    for stage in ("trajectories", "rollouts"):
        for row in read_stage(root, stage):
            if isinstance(row, Rollout) and row.parent_id in wanted:
                chosen.setdefault(row.parent_id, row)
    return chosen


def _choose_certificates(root: Path, wanted: set[str]) -> dict[str, tuple[Certificate, ...]]:
    """Return the certificates of each rewrite that a shown question was made from."""
    rows = (row for row in read_stage(root, "rewrites") if isinstance(row, Rewrite))
    return {row.record_id: row.certificates for row in rows if row.record_id in wanted}


def make_distributions(questions: Sequence[Grounding]) -> tuple[Distribution, ...]:
    """Return the distributions of hops, answer types, domains, anchor types, splits and relations."""
    properties: dict[str, Iterable[str]] = {
        "Hops": (str(len(question.proof.hops)) for question in questions),
        "Answer types": (question.answer.type for question in questions),
        "Splits": (question.split for question in questions),
        "Domains": (question.domain for question in questions),
        "Anchor types": (question.proof.nodes[0].type for question in questions),
        "Relations": (hop.relation for question in questions for hop in question.proof.hops),
        "Asked for": (question.proof.answer_relation for question in questions),
    }
    made = []
    for name, values in properties.items():
        rows = count_values(values)
        shown = tuple((value, row["rows"], round(100 * row["share"], 1)) for value, row in list(rows.items())[:TOP])
        made.append(Distribution(name, shown))
    return tuple(distribution for distribution in made if distribution.values)
