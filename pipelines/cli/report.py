"""``synth report``: one static HTML page about a workspace, with pictures inline and nothing loaded from elsewhere.

Page texts and captions are hostile: the template escapes every value, and the page's Content-Security-Policy forbids
scripts and foreign addresses.
"""

import base64
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

from markupsafe import Markup

from pipelines.agent.pictures import REPAIRS, has_opencv, make_repairs, read_losses
from pipelines.agent.scenes import NO_SCENE
from pipelines.cli.drawing import draw_funnel, draw_path, draw_thumbnail, list_steps, open_templates
from pipelines.cli.facets import (
    describe_branch,
    describe_cell,
    describe_evidence,
    describe_hop,
    describe_origin,
    describe_step,
    describe_thresholds,
    describe_trial,
    explain_reason,
    list_near_misses,
    list_told,
    read_refusals,
    read_stage,
    shorten_text,
)
from pipelines.errors import ConfigError, CorruptInput, RecordFailed
from pipelines.files import write_text
from pipelines.ids import draw_unit
from pipelines.release.making import read_picture
from pipelines.run.quotas import RowCost, read_spent, share_costs
from pipelines.run.views import find_corpus, list_latest, run_sql
from pipelines.run.workspace import read_model
from schemas.datasets import Certificate, Difficulty, Enhancement, Grounding, Picture, ReleaseEntry, Rewrite, Rollout
from schemas.manifest import Manifest
from schemas.proofs import UNCOUNTED, Branch, Hop, Proof, TraceLink

SIDE = 320
QUALITY = 60
QUESTIONS = 12
"""Shown if nobody says how many."""
EXAMPLES = 3
SEED = 7
"""Questions and examples are drawn by their ids and this seed."""
REFUSED = 3
"""Refused rows shown for each reason of each stage."""
TOP = 8
"""Values that a distribution shows."""
LONGEST_SHOWN = 600
FUNNEL = ("stage", "key", "rows_in", "kept", "rejected", "failed", "rows_out")


@dataclass(frozen=True, slots=True)
class Distribution:
    """The most frequent values of one property: value, number of rows, share in percent."""

    name: str
    values: tuple[tuple[str, int, float], ...]


@dataclass(frozen=True, slots=True)
class QuestionCard:
    """One sampled question with what the page shows beside it."""

    question: Grounding
    thumbnail: str
    """``data:`` address; empty if the picture is missing or cannot be shown."""
    caption: str
    certificates: tuple[Certificate, ...]
    rollout: Rollout | None


@dataclass(frozen=True, slots=True)
class CourseReport:
    """Rollouts by number of calls, and how often each tool, outcome and ending occurs."""

    rollouts: int
    kept: int
    mean_calls: float
    """Of the kept rollouts."""
    bars: tuple[tuple[int, int, int], ...]
    """Number of calls, kept rollouts, refused rollouts; without gaps from 0 to the largest number of calls."""
    distributions: tuple[Distribution, ...]


@dataclass(frozen=True, slots=True)
class EnhancementRow:
    """Pictures whose degradation ended at one tenth of its strengths."""

    degradation: str
    repair: str
    test: str
    strength: str
    """Range such as ``0.4 to 0.5``."""
    degraded: int
    """Pictures that no longer served their test."""
    restored: int

    @property
    def share(self) -> int:
        """Percent of the degraded pictures that the repair restored."""
        return round(100 * self.restored / self.degraded)


@dataclass(frozen=True, slots=True)
class EnhancementExample:
    """Label and ``data:`` address of a picture: original, degraded, and repaired if the tool is installed."""

    pictures: tuple[tuple[str, str], ...]
    caption: str


@dataclass(frozen=True, slots=True)
class EnhancementReport:
    """Degraded pictures: counts by degradation and strength, why others were left as they are, examples."""

    tried: int
    repairable: int
    """Those of which a tool repairs at least one degradation."""
    kept: int
    """Those that are degraded."""
    rows: tuple[EnhancementRow, ...]
    left: tuple[tuple[str, int], ...]
    """Why the others are as they were, or failed, with their number."""
    examples: tuple[EnhancementExample, ...]


@dataclass(frozen=True, slots=True)
class RefusedRows:
    """Some rows that a stage refused for one reason: their ids, and what the check saw of each."""

    stage: str
    reason: str
    rows: int
    shown: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ReleaseCosts:
    """What a released row took of each stage; without rows there are no costs."""

    rows: int
    what: str
    """What is counted: rows of sft, or of all datasets where it has none."""
    stages: tuple[RowCost, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """Everything the page shows."""

    corpus: str
    funnel: tuple[Mapping[str, Any], ...]
    costs: "ReleaseCosts"
    distributions: tuple[Distribution, ...]
    questions: tuple[QuestionCard, ...]
    total: int
    enhancements: EnhancementReport
    courses: CourseReport
    refused: tuple[RefusedRows, ...]


def write_report(workspace_root: Path, out: Path, count: int = QUESTIONS) -> Path:
    """Write the page with at most ``count`` questions and return its path.

    Raises:
        ConfigError: if the workspace has no sealed stage to report on.
    """
    write_text(out, render_report(collect_report(workspace_root, count)))
    return out


def collect_report(root: Path, count: int = QUESTIONS) -> Report:
    """Return what the page shows; the same workspace always gives the same report.

    Raises:
        ConfigError: if the workspace has no sealed stage.
    """
    funnel = read_funnel(root)
    if not funnel:
        raise ConfigError(f"report: {root} has no finished stage; run synth run first")
    questions = _read_questions(root)
    corpus = find_corpus(root)
    return Report(
        corpus=corpus.name if corpus else "",
        funnel=funnel,
        costs=share_release_costs(root),
        distributions=_make_distributions(questions),
        questions=_make_cards(root, sample_questions(questions, count)),
        total=len(questions),
        enhancements=report_enhancements(root),
        courses=report_courses(root),
        refused=tuple(_read_refused(root, funnel)),
    )


def render_report(report: Report) -> str:
    """Return the page as HTML; the template escapes every value."""
    style = (Path(__file__).parent / "view/templates/drawing.css").read_text(encoding="utf-8")
    environment = open_templates()
    functions = (
        describe_branch,
        describe_evidence,
        describe_origin,
        describe_hop,
        describe_step,
        describe_thresholds,
        list_near_misses,
        list_told,
    )
    environment.globals |= {function.__name__: function for function in functions}
    environment.globals |= {"describe_counts": _describe_counts, "list_difficulty": _list_difficulty}
    environment.globals |= {"shorten": lambda text: shorten_text(text, LONGEST_SHOWN), "UNCOUNTED": UNCOUNTED}
    environment.globals |= {"explain_reason": explain_reason, "draw_path": draw_path, "list_steps": list_steps}
    # The style is a file of ours, not a value of a row.
    return environment.get_template("report.html.j2").render(
        report=report,
        style=Markup(style),
        diagram=draw_funnel(report.funnel),
    )


def _read_refused(root: Path, funnel: Sequence[Mapping[str, Any]]) -> Iterator[RefusedRows]:
    """Yield for each stage and reason the first rows by id, reasons with the most rows first."""
    found = run_sql(
        root,
        "SELECT stage, reason, record_id, detail FROM rejections "
        f"QUALIFY row_number() OVER (PARTITION BY stage, reason ORDER BY record_id) <= {REFUSED} ORDER BY record_id",
    )
    shown: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for stage, reason, record_id, detail in found.rows:
        shown.setdefault((stage, reason), []).append((record_id, shorten_text(detail, LONGEST_SHOWN)))
    for row in funnel:
        for reason, rows in sorted(row["rejected"].items(), key=lambda pair: (-pair[1], pair[0])):
            yield RefusedRows(row["stage"], reason, rows, tuple(shown.get((row["stage"], reason), ())))


def read_funnel(root: Path) -> tuple[Mapping[str, Any], ...]:
    """Return the counts of the corpus and of each latest sealed stage, in pipeline order."""
    found: list[Mapping[str, Any]] = []
    corpus = find_corpus(root)
    if corpus is not None:
        counts = json.loads((corpus / "manifest.json").read_bytes())
        counts |= {"stage": "corpus", "key": corpus.name, "rows_out": counts["kept"]}
        found.append({name: counts[name] for name in FUNNEL})
    for latest in list_latest(root):
        manifest = read_model(latest.folder.manifest, Manifest)
        found.append(manifest.model_dump(include=set(FUNNEL)))
    return tuple(found)


def share_release_costs(root: Path) -> ReleaseCosts:
    """Return what the latest stages took for each row of the latest releases."""
    datasets = Counter(row.dataset for row in read_stage(root, "releases") if isinstance(row, ReleaseEntry))
    rows, what = (datasets["sft"], "sft") if datasets["sft"] else (datasets.total(), "all datasets")
    manifests = (read_model(latest.folder.manifest, Manifest) for latest in list_latest(root))
    used = [(manifest.stage, read_spent(manifest)) for manifest in manifests]
    return ReleaseCosts(rows, what, share_costs(used, rows))


def _read_questions(root: Path) -> list[Grounding]:
    """Return the questions of the latest stage that has any."""
    for stage in ("enhancements", "difficulty", "mixtures", "groundings"):
        found = [row for row in read_stage(root, stage) if isinstance(row, Grounding)]
        if found:
            return found
    return []


def sample_questions(questions: Sequence[Grounding], count: int) -> list[Grounding]:
    """Return at most ``count`` questions, drawn by their ids alone, so that a report changes only where rows do."""
    return sorted(questions, key=lambda question: draw_unit(SEED, question.record_id))[:count]


def _make_cards(root: Path, questions: Sequence[Grounding]) -> tuple[QuestionCard, ...]:
    """Add to each question its picture, its certificates, and one trajectory, or a rollout if none was accepted."""
    ids, parents = {each.record_id for each in questions}, {each.parent_id for each in questions}
    rollouts: dict[str, Rollout] = {}
    for stage in ("trajectories", "rollouts"):
        for row in read_stage(root, stage):
            if isinstance(row, Rollout) and row.parent_id in ids:
                rollouts.setdefault(row.parent_id, row)
    rewrites = (row for row in read_stage(root, "rewrites") if isinstance(row, Rewrite))
    certificates = {row.record_id: row.certificates for row in rewrites if row.record_id in parents}
    return tuple(
        QuestionCard(
            question,
            *_show_picture(root, question.picture),
            certificates.get(question.parent_id, ()),
            rollouts.get(question.record_id),
        )
        for question in questions
    )


def _show_picture(root: Path, picture: Picture | None) -> tuple[str, str]:
    """Return a picture's thumbnail and caption; the caption says why there is no thumbnail."""
    if picture is None:
        return "", "no picture"
    try:
        return _shrink(read_picture(root, picture)), f"{picture.file} · {picture.author} · {picture.licence}"
    except (CorruptInput, RecordFailed) as error:
        return "", f"picture {picture.file!r} cannot be shown: {error}"


def _shrink(content: bytes) -> str:
    """Return the ``data:`` address of a small copy, which :func:`draw_thumbnail` makes."""
    return "data:image/webp;base64," + base64.b64encode(draw_thumbnail(content, SIDE, QUALITY)).decode()


def _describe_counts(proof: Proof) -> str:
    """Return the proof's counts by name, in node order, such as ``chain 1, 1 · alone 6 · answers ≥8``."""
    shown: dict[str, list[str]] = {}
    for count in sorted(proof.counts, key=lambda count: count.node):
        shown.setdefault(count.name, []).append(f"{'≥' if count.capped else ''}{count.value}")
    return " · ".join(f"{name} {', '.join(values)}" for name, values in shown.items())


def _list_difficulty(question: Grounding) -> list[str]:
    if not isinstance(question, Difficulty):
        return []
    cells = [f"{cell.condition}, {cell.solver}: {describe_cell(cell)}" for cell in question.cells]
    need = [f"needs: {question.search_need}"] if question.search_need else []
    need += [f"knowledge: {question.knowledge}"] if question.knowledge else []
    others = [f"also given {other.times} times: {other.text}" for other in question.alternatives]
    return [*cells, question.standing, *need, *others]


def _list_facts(question: Grounding) -> tuple[Hop | Branch | TraceLink, ...]:
    """Return the facts of a question's chain, of its branches, or of its trace."""
    if question.trace is not None:
        return question.trace.links
    return (*question.proof.hops, *question.proof.branches)


def _make_distributions(questions: Sequence[Grounding]) -> tuple[Distribution, ...]:
    proved = [question for question in questions if question.proof.nodes]
    made = (
        _distribute("Hops", Counter(question.hops_named for question in questions)),
        _distribute("Answer types", Counter(question.answer.type for question in questions)),
        _distribute("Splits", Counter(question.split for question in questions)),
        _distribute("Pools", Counter(question.origin.pool for question in questions if question.origin)),
        _distribute("Domains", Counter(question.domain for question in questions)),
        _distribute("Anchor types", Counter(question.anchor_type for question in questions)),
        _distribute("Relations", Counter(fact.relation for question in questions for fact in _list_facts(question))),
        _distribute("Asked for", Counter(question.proof.answer_relation for question in proved)),
    )
    return tuple(distribution for distribution in made if distribution.values)


def _distribute(name: str, counts: Mapping[str, int]) -> Distribution:
    total = sum(counts.values())
    shown = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:TOP]
    return Distribution(name, tuple((value, count, round(100 * count / total, 1)) for value, count in shown))


def report_courses(root: Path) -> CourseReport:
    """Return statistics of the latest rollouts of a workspace; one rollout at a time is in memory."""
    accepted = {row.record_id for row in read_stage(root, "trajectories")}
    kept, refused = Counter[int](), Counter[int]()
    tools, outcomes, endings = Counter[str](), Counter[str](), Counter[str]()
    for row in read_stage(root, "rollouts"):
        if not isinstance(row, Rollout):
            continue
        seen = [(step.tool, step.observation) for step in row.steps if step.observation is not None]
        (kept if row.record_id in accepted else refused)[sum(bool(tool) for tool, _ in seen)] += 1
        tools.update(tool or "(no call)" for tool, _ in seen)
        outcomes.update("ok" if observation.ok else observation.error for _, observation in seen)
        endings[row.stop_reason] += 1
    number = kept.total()
    return CourseReport(
        rollouts=number + refused.total(),
        kept=number,
        mean_calls=round(sum(calls * rows for calls, rows in kept.items()) / number, 2) if number else 0.0,
        bars=tuple((calls, kept[calls], refused[calls]) for calls in range(max([*kept, *refused], default=-1) + 1)),
        distributions=(
            _distribute("Calls by tool", tools),
            _distribute("Outcomes of calls", outcomes),
            _distribute("Endings of rollouts", endings),
        ),
    )


def report_enhancements(root: Path) -> EnhancementReport:
    """Return the outcome of every picture that was tried in the latest run of a workspace."""
    rows = [row for row in read_stage(root, "enhancements") if isinstance(row, Enhancement)]
    selected = [row for row in read_stage(root, "selections") if isinstance(row, Enhancement)]
    kept = [row for row in selected if row.trial is not None]
    repairable = [row for row in rows if row.offers]
    reasons = [row.left_whole.partition(": ")[0] for row in rows if row.left_whole and not row.offers]
    left = [reason for reason in reasons if reason != NO_SCENE]
    latest = [found for found in list_latest(root) if found.stage == "enhancements"]
    failed = [refusal.reason for found in latest for refusal in read_refusals(found)]
    others = Counter([*left, *failed])
    shown = sorted(kept, key=lambda row: draw_unit(SEED, row.record_id))[:EXAMPLES]
    return EnhancementReport(
        tried=len(repairable) + others.total(),
        repairable=len(repairable),
        kept=len(kept),
        rows=_count_rows(rows),
        left=tuple(sorted(others.items())),
        examples=tuple(make_example(root, row) for row in shown),
    )


def _count_rows(rows: Sequence[Enhancement]) -> tuple[EnhancementRow, ...]:
    held = [offer.trial for row in rows for offer in row.offers]
    losses = [loss for row in rows for loss in read_losses(row.left_whole.partition(": ")[2])]
    restored = Counter((trial.degradation, trial.test, _find_tenth(trial.strength)) for trial in held)
    lost = Counter((loss.degradation, loss.test, _find_tenth(loss.strength)) for loss in losses)
    return tuple(
        EnhancementRow(
            degradation=degradation,
            repair=REPAIRS[degradation],
            test=test,
            strength=f"{tenth / 10:.1f} to {(tenth + 1) / 10:.1f}",
            degraded=restored[degradation, test, tenth] + lost[degradation, test, tenth],
            restored=restored[degradation, test, tenth],
        )
        for degradation, test, tenth in sorted(restored.keys() | lost.keys())
    )


def _find_tenth(strength: float) -> int:
    """Return the tenth that a strength lies in, its upper end included."""
    return max(0, ceil(round(strength * 10, 6)) - 1)


def make_example(root: Path, row: Enhancement) -> EnhancementExample:
    """Return the pictures of a degraded question: before, degraded, and repaired where the tool is installed."""
    original, degraded, trial = row.original, row.picture, row.trial
    if original is None or degraded is None or trial is None:
        return EnhancementExample((), f"{row.record_id}: has no picture")
    try:
        content = read_picture(root, degraded)
        shown = [("original", _shrink(read_picture(root, original))), (trial.degradation, _shrink(content))]
        tool = make_repairs(None, has_opencv()).get(trial.degradation)
        repaired = tool.mend(content) if tool else None
        if repaired is not None:
            shown.append((trial.repair, _shrink(repaired)))
    except (CorruptInput, RecordFailed) as error:
        return EnhancementExample((), f"{degraded.file}: {error}")
    credit = f"{original.file} · {original.author} · {original.licence}"
    return EnhancementExample(tuple(shown), f"{describe_trial(trial)} · {credit}")
