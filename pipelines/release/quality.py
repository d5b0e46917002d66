"""``quality.json`` and ``quality.md``: what can be measured on a release without a person or a benchmark."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from pipelines.errors import GateNotMet
from pipelines.release.attempts import list_unmeasured, measure_difficulty, measure_standing
from pipelines.release.context import ReleaseContext
from pipelines.release.counts import (
    count_precisions,
    measure_answers,
    measure_counts,
    measure_necessity,
    measure_proofs,
)
from pipelines.release.duplicates import list_shared_values, make_signature
from pipelines.release.making import Example
from pipelines.release.sight import measure_enhancements, measure_grounding
from pipelines.release.statistics import Number, count_values, describe_numbers, share
from pipelines.release.variety import (
    count_bigrams,
    count_sequences,
    measure_diversity,
    measure_duplicates,
    measure_reuse,
    measure_wording,
)
from schemas.enhancements import Enhancement
from schemas.trajectories import Trajectory

Scalar = str | Number
Section = Mapping[str, Scalar | Mapping[str, Scalar]]
Quality = dict[str, Section]

NOT_MEASURED = {
    "human audit": "no person has looked at a sample of this version",
    "judge": "false accepts and false rejects of the judge: run synth bench judge",
    "planted defects": "recall and false alarms of the checks: run synth bench planted",
    "benchmark contamination": "no benchmark was compared with",
    "picture ablation": "no attempt with a swapped picture was made",
    "people": "balance of country and gender of the people asked about was not counted",
}


def measure_quality(examples: Sequence[Example], questions: Sequence[Enhancement], context: ReleaseContext) -> Quality:
    """Return the report's sections.

    Args:
        examples: the release's rows.
        questions: every question of the run, those of other splits included: overlap is measured over them all.
        context: where the rows come from.
    """
    own = list({example.question.record_id: example.question for example in examples}.values())
    trajectories = [example.trajectory for example in examples if example.trajectory is not None]
    quality: Quality = {
        "identity": _describe_identity(context),
        "funnel": _describe_funnel(context),
        "rejections": _describe_rejections(context),
        "splits": _describe_splits(examples),
        "overlap": _measure_overlap(questions),
        "hops": _count(str(len(question.proof.hops)) for question in own),
        "answer types": _count(question.answer.type for question in own),
        "domains": _count(question.domain for question in own),
        "anchor types": _count(question.proof.nodes[0].type for question in own),
        "answer precision": count_precisions(own),
        "answers": measure_answers(own),
        "proof counts": measure_counts(own),
        "proof": measure_proofs(own),
        "necessity": measure_necessity(own),
        "diversity": measure_diversity(own),
        "wording": measure_wording(own),
        "relation bigrams": count_bigrams(own),
        "type sequences": count_sequences(own),
        "entity reuse": measure_reuse(own),
        "duplicates": measure_duplicates(own),
        "difficulty": measure_difficulty(own),
        "standing": measure_standing(own),
        "pictures": _measure_pictures(examples),
        "grounding": measure_grounding(own),
        "enhancements": measure_enhancements(own),
        "picture licences": _count_licences(examples),
    }
    if trajectories:
        quality |= _measure_trajectories(trajectories)
    quality["not measured"] = list_unmeasured(own, NOT_MEASURED)
    return quality


def check_quality(quality: Quality) -> None:
    """Refuse a release whose report breaks a gate.

    Raises:
        GateNotMet: if anything is shared between splits.
    """
    shared = {name: value for name, value in quality["overlap"].items() if value}
    if shared:
        raise GateNotMet(f"quality: the splits share {shared}; all must be 0")


def render_quality(quality: Quality, title: str) -> str:
    """Return the report as Markdown: one table a section."""
    parts = [f"# {title}"]
    for name, section in quality.items():
        parts.append(f"## {name[0].upper()}{name[1:]}\n\n{render_section(section)}")
    return "\n\n".join(parts) + "\n"


def render_section(section: Section) -> str:
    """Return one section as a Markdown table; a section of sections has a column for each inner name."""
    if not section:
        return "None."
    columns = list(dict.fromkeys(name for value in section.values() if isinstance(value, Mapping) for name in value))
    head = ["", *columns] if columns else ["", "value"]
    rows: list[list[Scalar]] = []
    for name, value in section.items():
        inner = value if isinstance(value, Mapping) else {"value": value}
        rows.append([name, *(inner.get(column, "") for column in head[1:])])
    texts = [any(isinstance(row[index], str) and row[index] for row in rows) for index in range(len(head))]
    lines: list[Sequence[Scalar]] = [head, ["---" if text else "---:" for text in texts], *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


def _count(values: Iterable[str]) -> dict[str, dict[str, Scalar]]:
    return {value: dict(row) for value, row in count_values(values).items()}


def _describe_identity(context: ReleaseContext) -> dict[str, Scalar]:
    identity: dict[str, Scalar] = {
        "corpus": context.corpus,
        "snapshot": context.snapshot,
        "recipe": context.recipe,
        "config": context.config_digest,
        "commit": context.git_commit,
    }
    identity |= {f"seed {name}": seed for name, seed in sorted(context.seeds.items())}
    identity |= {f"model {model.role}": f"{model.name} {model.revision}".strip() for model in context.models}
    identity |= {f"prompt {label}": digest for label, digest in sorted(context.prompts.items())}
    return identity | {f"key of {entry.name}": entry.key for entry in context.lineage}


def _describe_funnel(context: ReleaseContext) -> dict[str, dict[str, Scalar]]:
    return {
        row.stage: {
            "rows_in": row.rows_in,
            "kept": row.kept,
            "rejected": sum(row.rejected.values()),
            "failed": row.failed,
            "rows_out": row.rows_out,
        }
        for row in context.funnel
    }


def _describe_rejections(context: ReleaseContext) -> dict[str, dict[str, Scalar]]:
    return {
        f"{row.stage}: {reason}": {"rows": rows, "share": share(rows, row.rows_in)}
        for row in context.funnel
        for reason, rows in sorted(row.rejected.items())
    }


def _describe_splits(examples: Sequence[Example]) -> dict[str, dict[str, Scalar]]:
    splits: dict[str, dict[str, Scalar]] = {}
    for name in sorted({example.entry.split for example in examples}):
        rows = [example for example in examples if example.entry.split == name]
        pictures = {example.question.picture.sha256 for example in rows if example.question.picture}
        splits[name] = {
            "rows": len(rows),
            "questions": len({example.question.record_id for example in rows}),
            "pictures": len(pictures),
        }
    return splits


def _measure_overlap(questions: Sequence[Enhancement]) -> dict[str, Scalar]:
    return {name: len(values) for name, values in list_shared_values(map(make_signature, questions)).items()}


def _measure_pictures(examples: Sequence[Example]) -> dict[str, dict[str, Scalar]]:
    pictures = {picture.sha256: picture for example in examples for picture in example.list_pictures()}
    sides = [min(picture.width, picture.height) for picture in pictures.values()]
    return {
        "shorter side, pixels": dict(describe_numbers(sides)),
        "pictures a row": dict(describe_numbers([len(example.list_pictures()) for example in examples])),
        "distinct perceptual hashes": {"n": len({picture.phash for picture in pictures.values()})},
    }


def _count_licences(examples: Sequence[Example]) -> dict[str, dict[str, Scalar]]:
    pictures = {picture.sha256: picture for example in examples for picture in example.list_pictures()}
    return _count(picture.licence for picture in pictures.values())


def _measure_trajectories(trajectories: Sequence[Trajectory]) -> Mapping[str, dict[str, dict[str, Scalar]]]:
    steps = [step for trajectory in trajectories for step in trajectory.steps]
    observations = [step.observation for step in steps if step.observation is not None]
    questions = Counter(trajectory.parent_id for trajectory in trajectories)
    return {
        "trajectories": {
            "turns": dict(describe_numbers([len(trajectory.steps) for trajectory in trajectories])),
            "tool calls": dict(describe_numbers([sum(bool(s.tool) for s in one.steps) for one in trajectories])),
            "training tokens": dict(describe_numbers([trajectory.tokens for trajectory in trajectories])),
            "process mark": dict(describe_numbers([one.process.score for one in trajectories if one.process])),
            "pictures": dict(describe_numbers([len(trajectory.images) for trajectory in trajectories])),
            "supports": dict(describe_numbers([len(trajectory.supports) for trajectory in trajectories])),
            "accepted a question": dict(describe_numbers(list(questions.values()))),
        },
        "tools": _count(step.tool or "answer" for step in steps),
        "tool outcomes": _count("ok" if seen.ok else seen.error for seen in observations),
        "stop reasons": _count(trajectory.stop_reason for trajectory in trajectories),
        "decided by": _count(trajectory.decided_by for trajectory in trajectories),
    }
