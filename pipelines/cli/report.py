"""``synth report``: one static HTML page about a workspace, with pictures inline and nothing loaded from anywhere.

Every value is escaped by the template and the page forbids scripts and foreign addresses (Content-Security-Policy):
page text and captions are hostile.

One question of a report, with everything a reader needs to judge it.

How rollouts went: how many calls they made, by which tools, how they ended, and which were kept.

What became of the pictures that were to be degraded: a table, and examples before, after and repaired.

Small pictures to put inline into a page.
"""

import base64
import io
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from math import ceil
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

from pipelines.agent.pictures import REPAIRS, Loss, has_opencv, make_repairs, read_loss
from pipelines.cli.facets import (
    describe_cell,
    describe_evidence,
    describe_hop,
    describe_step,
    describe_thresholds,
    describe_trial,
    list_near_misses,
    list_told,
    read_refusals,
    read_stage,
    shorten_text,
)
from pipelines.errors import ConfigError, CorruptInput, RecordFailed
from pipelines.files import write_text
from pipelines.ids import draw_unit
from pipelines.pictures import open_pixels
from pipelines.release.making import read_picture
from pipelines.release.quality import Number, count_values
from pipelines.run.views import find_corpus, list_latest
from schemas.datasets import Certificate, Difficulty, Enhancement, Grounding, Picture, Rewrite, Rollout, Trial
from schemas.manifest import Manifest
from schemas.proofs import UNCOUNTED, Proof

SIDE = 320
QUALITY = 60


def make_thumbnail(root: Path, picture: Picture) -> str:
    """Return a ``data:`` address of a WebP picture of at most 320 pixels a side, upright.

    Raises:
        CorruptInput: if the picture is missing, changed, broken, or too large to open safely.
    """
    try:
        return shrink_to_address(read_picture(root, picture))
    except RecordFailed as error:
        raise CorruptInput(f"picture {picture.file!r}: cannot be shown: {error}") from error


def shrink_to_address(content: bytes) -> str:
    """Return the same of a picture file's bytes.

    Raises:
        RecordFailed: if it is broken or too large to open safely.
    """
    shown = open_pixels(content, max_side=2 * SIDE)
    shown.thumbnail((SIDE, SIDE))
    buffer = io.BytesIO()
    shown.save(buffer, "WEBP", quality=QUALITY)
    return "data:image/webp;base64," + base64.b64encode(buffer.getvalue()).decode()


LONGEST_SHOWN = 600


@dataclass(frozen=True, slots=True)
class ReportTurn:
    """One step of a trajectory for reading."""

    thought: str
    call: str
    observation: str


@dataclass(frozen=True, slots=True)
class QuestionCard:
    """One sampled question with everything a reader needs to judge it."""

    id: str
    split: str
    text: str
    answer: str
    aliases: str
    thumbnail: str
    """``data:`` address, empty when there is none to show."""
    caption: str
    hops: tuple[tuple[str, str], ...]
    """Hop and its evidence; the last one is the answer's."""
    confirmed: str
    """Sentence of the answer's page that says the answer too."""
    counts: str
    required: str
    """What the counts had to reach; empty when nothing was counted."""
    told: tuple[tuple[str, str], ...]
    """Node and what the question says of it beside the chain."""
    near_misses: tuple[tuple[str, str], ...]
    """Node and the entities that were looked up because they might fit too."""
    steps: tuple[str, ...]
    """Which entity was hidden behind what, in the order of the rewriting, with its round of injection."""
    difficulty: tuple[str, ...]
    turns: tuple[ReportTurn, ...]
    outcome: str


def make_card(
    root: Path, question: Grounding, certificates: Sequence[Certificate], rollout: Rollout | None
) -> QuestionCard:
    """Return a question's card; a picture that cannot be shown is named with the reason."""
    proof = question.proof
    thumbnail, caption = _show_picture(root, question)
    hops = [(describe_hop(hop, proof.nodes), describe_evidence(hop.evidence)) for hop in proof.hops]
    asked = f"{proof.nodes[-1].title} -{proof.answer_relation}-> {question.answer.surface}"
    hops.append((asked, describe_evidence(proof.answer_evidence)))
    return QuestionCard(
        id=question.record_id,
        split=question.split,
        text=question.text,
        answer=question.answer.surface,
        aliases=", ".join(question.answer.aliases),
        thumbnail=thumbnail,
        caption=caption,
        hops=tuple(hops),
        confirmed=describe_evidence(proof.corroboration) if proof.corroboration else "",
        counts=_show_counts(proof),
        required=describe_thresholds(proof.thresholds) if proof.thresholds != UNCOUNTED else "",
        told=tuple(list_told(proof)),
        near_misses=tuple(list_near_misses(proof)),
        steps=tuple(map(describe_step, certificates)),
        difficulty=_show_difficulty(question) if isinstance(question, Difficulty) else (),
        turns=tuple(_list_turns(rollout)),
        outcome=f"{rollout.stop_reason}: {rollout.answer or rollout.failure}" if rollout else "",
    )


def _show_counts(proof: Proof) -> str:
    """Return the proof's counts by name, in node order, such as ``chain 1, 1 · alone 6 · answers ≥8``."""
    shown: dict[str, list[str]] = {}
    for count in sorted(proof.counts, key=lambda count: count.node):
        shown.setdefault(count.name, []).append(f"{'≥' if count.capped else ''}{count.value}")
    return " · ".join(f"{name} {', '.join(values)}" for name, values in shown.items())


def _show_difficulty(question: Difficulty) -> tuple[str, ...]:
    cells = tuple(f"{cell.condition}, {cell.solver}: {describe_cell(cell)}" for cell in question.cells)
    need = (f"needs: {question.search_need}",) if question.search_need else ()
    others = tuple(f"also given {other.times} times: {other.text}" for other in question.alternatives)
    return (*cells, question.standing, *need, *others)


def _show_picture(root: Path, question: Grounding) -> tuple[str, str]:
    picture = question.picture
    if picture is None:
        return "", "no picture"
    credit = f"{picture.file} · {picture.author} · {picture.licence}"
    try:
        return make_thumbnail(root, picture), credit
    except CorruptInput as error:
        return "", str(error)


def _list_turns(rollout: Rollout | None) -> list[ReportTurn]:
    steps = rollout.steps if rollout else ()
    return [
        ReportTurn(
            thought=shorten_text(step.thought, LONGEST_SHOWN),
            call=f"{step.tool} {shorten_text(step.arguments, LONGEST_SHOWN)}" if step.tool else "",
            observation=(step.observation.error or shorten_text(step.observation.text, LONGEST_SHOWN))
            if step.observation
            else "",
        )
        for step in steps
    ]


COURSES_TOP = 12


@dataclass(frozen=True, slots=True)
class CallBar:
    """Rollouts with one number of tool calls; widths are in percent of the longest bar."""

    calls: int
    kept: int
    refused: int
    kept_width: float
    refused_width: float


@dataclass(frozen=True, slots=True)
class ValueShare:
    """How often one value occurs, and its share in percent."""

    value: str
    count: int
    percent: float


@dataclass(frozen=True, slots=True)
class CourseReport:
    """The rollouts of a run; empty without any."""

    rollouts: int
    kept: int
    mean_calls: float
    """Of the kept ones."""
    bars: tuple[CallBar, ...]
    """By number of calls, from none to the most, those in between that nobody made included."""
    tools: tuple[ValueShare, ...]
    """Of all calls."""
    outcomes: tuple[ValueShare, ...]
    """Of all calls: ``ok`` or the class of the error."""
    endings: tuple[ValueShare, ...]
    """Of all rollouts."""


def report_courses(root: Path) -> CourseReport:
    """Return how the latest rollouts of a workspace went; one at a time is held in memory."""
    kept = {row.record_id for row in read_stage(root, "trajectories")}
    calls: dict[bool, Counter[int]] = {True: Counter(), False: Counter()}
    tools, outcomes, endings = Counter[str](), Counter[str](), Counter[str]()
    for row in read_stage(root, "rollouts"):
        if not isinstance(row, Rollout):
            continue
        seen = [(step.tool, step.observation) for step in row.steps if step.observation is not None]
        calls[row.record_id in kept][sum(bool(tool) for tool, _ in seen)] += 1
        tools.update(tool or "(no call)" for tool, _ in seen)
        outcomes.update("ok" if told.ok else told.error for _, told in seen)
        endings[row.stop_reason] += 1
    number = calls[True].total()
    return CourseReport(
        rollouts=number + calls[False].total(),
        kept=number,
        mean_calls=round(sum(count * rows for count, rows in calls[True].items()) / number, 2) if number else 0.0,
        bars=_make_bars(calls[True], calls[False]),
        tools=_share(tools),
        outcomes=_share(outcomes),
        endings=_share(endings),
    )


def _make_bars(kept: Counter[int], refused: Counter[int]) -> tuple[CallBar, ...]:
    most = max([*kept, *refused], default=-1)
    longest = max((kept[calls] + refused[calls] for calls in range(most + 1)), default=1)
    return tuple(
        CallBar(
            calls,
            kept[calls],
            refused[calls],
            round(100 * kept[calls] / longest, 2),
            round(100 * refused[calls] / longest, 2),
        )
        for calls in range(most + 1)
    )


def _share(counts: Counter[str]) -> tuple[ValueShare, ...]:
    shown = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:COURSES_TOP]
    return tuple(ValueShare(value, count, round(100 * count / counts.total(), 1)) for value, count in shown)


EXAMPLES = 6
ENHANCEMENTS_SEED = 7


@dataclass(frozen=True, slots=True)
class EnhancementRow:
    """What became of the pictures that ended at one degradation and a tenth of its strengths."""

    degradation: str
    repair: str
    test: str
    strength: str
    """From, and to: strengths are looked for picture by picture, and hardly two are alike."""
    degraded: int
    """Pictures that were of no use any more."""
    restored: int

    @property
    def share(self) -> int:
        """Per cent of the degraded pictures that the repair truly restored."""
        return round(100 * self.restored / self.degraded)


@dataclass(frozen=True, slots=True)
class ShownPicture:
    """A picture as a ``data:`` address with what it is."""

    label: str
    data: str


@dataclass(frozen=True, slots=True)
class EnhancementExample:
    """One picture before, degraded, and repaired where the tool is installed here."""

    pictures: tuple[ShownPicture, ...]
    caption: str


@dataclass(frozen=True, slots=True)
class EnhancementReport:
    """Everything the page says of degraded pictures."""

    chosen: int
    kept: int
    rows: tuple[EnhancementRow, ...]
    refused: tuple[tuple[str, int], ...]
    examples: tuple[EnhancementExample, ...]


def report_enhancements(root: Path) -> EnhancementReport:
    """Return what became of the pictures that were to be degraded in the latest run of a workspace."""
    kept = [row for row in read_stage(root, "enhancements") if isinstance(row, Enhancement) and row.trial is not None]
    refusals = [
        refusal for found in list_latest(root) if found.stage == "enhancements" for refusal in read_refusals(found)
    ]
    refused = Counter(refusal.reason for refusal in refusals)
    losses = [loss for refusal in refusals if (loss := read_loss(refusal.detail or "")) is not None]
    shown = sorted(kept, key=lambda row: draw_unit(ENHANCEMENTS_SEED, row.record_id))[:EXAMPLES]
    examples = [example for row in shown if (example := _show_example(root, row)) is not None]
    return EnhancementReport(
        chosen=len(kept) + refused.total(),
        kept=len(kept),
        rows=_count_rows([row.trial for row in kept if row.trial is not None], losses),
        refused=tuple(sorted(refused.items())),
        examples=tuple(examples),
    )


def _count_rows(held: Sequence[Trial], losses: Sequence[Loss]) -> tuple[EnhancementRow, ...]:
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


def _show_example(root: Path, row: Enhancement) -> EnhancementExample | None:
    if row.original is None or row.picture is None or row.trial is None:
        return None
    try:
        pictures = [
            ShownPicture("original", make_thumbnail(root, row.original)),
            ShownPicture(row.trial.degradation, make_thumbnail(root, row.picture)),
        ]
        repaired = _repair(root, row.picture, row.trial)
    except (CorruptInput, RecordFailed) as error:
        return EnhancementExample((), f"{row.picture.file}: {error}")
    if repaired is not None:
        pictures.append(ShownPicture(row.trial.repair, shrink_to_address(repaired)))
    credit = f"{row.original.file} · {row.original.author} · {row.original.licence}"
    return EnhancementExample(tuple(pictures), f"{describe_trial(row.trial)} · {credit}")


def _repair(root: Path, picture: Picture, trial: Trial) -> bytes | None:
    """Return the picture as its tool repairs it; None where the tool is not installed or needs weights."""
    tool = make_repairs(None, has_opencv()).get(trial.degradation)
    return None if tool is None else tool.mend(read_picture(root, picture))


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
    source = (resources.files("pipelines.cli") / "report.html.j2").read_text(encoding="utf-8")
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
