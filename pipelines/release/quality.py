"""``quality.json`` and ``quality.md``: what is measured on a release's rows without a person or a benchmark.

Numbers are rounded, so that reports compare byte for byte.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import get_args

from pipelines.agent.agreement import bound_mean, wilson_interval
from pipelines.checks.benchmarks import describe_benchmarks
from pipelines.checks.repeats import count_near
from pipelines.checks.sets import (
    Signature,
    count_duplicates,
    list_shared_values,
)
from pipelines.config.settings import ReleasesConfig
from pipelines.errors import GateNotMet
from pipelines.release.facts import COUNTS, Number, ReleaseFacts
from pipelines.release.guessing import check_guessability, measure_guessability
from pipelines.release.manifest import ReleaseOrigin
from pipelines.release.reviewed import measure_reviews
from schemas.proofs import Resolution

DIGITS = 4
Scalar = str | Number
Table = dict[str, Mapping[str, Scalar]]
"""Named rows of named values."""
Section = Mapping[str, Scalar | Mapping[str, Scalar]]
Quality = dict[str, Section]
FEW = 5
"""Questions of a source up to which the paper counts it as rare (DR-MMSearchAgent, figure 9)."""
DUPLICATES = ("duplicate-question", "duplicate-path", "duplicate-picture")
NOT_MEASURED = {
    "human audit": "no person has examined a sample of this version",
    "judge": "false accepts and false rejects of the judge",
    "planted defects": "recall and false alarms of the checks: `make bench` in a clone of synth",
    "benchmark contamination": "no benchmark was compared with",
    "people": "balance of country and gender of the people asked about was not counted",
}


def share(part: int, whole: int) -> float:
    """Return ``part / whole``, 0.0 of nothing."""
    return round(part / whole, DIGITS) if whole else 0.0


def count_rows(rows: int, whole: int) -> dict[str, Scalar]:
    """Return in how many rows something holds, and their share of all."""
    return {"rows": rows, "share": share(rows, whole)}


def count_values(counts: Counter[str]) -> Table:
    """Return rows and share of each value, the most frequent first, then by name."""
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return {value: count_rows(rows, counts.total()) for value, rows in ordered}


def describe_numbers(values: Iterable[Number]) -> dict[str, Scalar]:
    """Return count, min, median, 95th percentile (nearest rank) and max; only the count when there are none."""
    ordered = sorted(values)
    if not ordered:
        return {"n": 0}
    return {
        "n": len(ordered),
        "min": ordered[0],
        "median": ordered[math.ceil(len(ordered) * 0.5) - 1],
        "p95": ordered[math.ceil(len(ordered) * 0.95) - 1],
        "max": ordered[-1],
    }


def _count_flags(facts: ReleaseFacts, *names: str) -> Table:
    return {name: count_rows(facts.flags[name][True], facts.flags[name].total()) for name in names}


def _describe(facts: ReleaseFacts, *names: str) -> Table:
    return {name: describe_numbers(facts.numbers[name]) for name in names}


def _describe_counts(facts: ReleaseFacts, name: str) -> dict[str, Scalar]:
    return describe_numbers(facts.numbers[f"count {name}"]) | {"capped": facts.words["capped"][name]}


def _measure_answers(facts: ReleaseFacts) -> Table:
    keys = Counter(question.signature.answer_key for question in facts.questions.values())
    table = _describe(facts, "characters", "words", "aliases")
    return {**table, "questions an answer key": describe_numbers(keys.values())}


def _measure_proofs(facts: ReleaseFacts) -> Table:
    told = facts.words["resolutions"]
    return {
        **_count_flags(facts, "near misses looked for"),
        "near misses a question": describe_numbers(facts.numbers["near misses"]),
        **{
            f"near misses: {each}": {"n": told[each], "share": share(told[each], told.total())}
            for each in get_args(Resolution)
        },
        **_count_flags(
            facts,
            "answer confirmed by a sentence",
            "confirmation required",
            "volatile facts refused",
            "checked: no path shorter by two links",
            "checked: not found by one search",
        ),
        "constraints a question": describe_numbers(facts.numbers["constraints"]),
        "redundant constraints a question": describe_numbers(facts.numbers["redundant"]),
        **_count_flags(facts, "questions with a redundant constraint"),
    }


def _measure_difficulty(facts: ReleaseFacts) -> Table:
    table: Table = {}
    for name, cell in sorted(facts.cells.items()):
        correct, scored, asked = cell["correct"], cell["attempts"] - cell["unscored"], cell["asked"]
        # Attempts at one question depend on each other: in the worst case they count as one.
        interval = bound_mean(asked * correct / scored if scored else 0.0, asked, 1.0)
        table[name] = {
            **{each: cell[each] for each in ("questions", "planned", "attempts", "unscored", "correct")},
            "rate": share(correct, scored),
            "low": round(interval.low, DIGITS),
            "high": round(interval.high, DIGITS),
            "never solved": cell["never solved"],
            "latest reply": facts.days[name],
        }
    return table


def _measure_balance(facts: ReleaseFacts) -> Table:
    table: Table = {}
    for what in ("search need", "knowledge"):
        counts = facts.words[what]
        for value, count in sorted(counts.items()):
            low, high = wilson_interval(count, counts.total())
            bounds = {"low": round(low, DIGITS), "high": round(high, DIGITS)}
            table[f"{what}: {value}"] = count_rows(count, counts.total()) | bounds
    return table


def _measure_grounding(facts: ReleaseFacts) -> Table:
    names = ("ranked by", "from", "to look up", "to look up at training resolution", "read by")
    table: Table = {
        f"{name}: {value}": row
        for name in (*names, "Commons says it depicts the anchor")
        for value, row in count_values(facts.words[name]).items()
    }
    table |= _count_flags(facts, "with text that tells nothing") | _describe(facts, "candidates a question")
    if facts.numbers["score"]:
        table |= _describe(facts, "score", "margin over the best distractor", "distractors")
        table |= _count_flags(facts, "over the absolute threshold")
    return table


def _measure_enhancements(facts: ReleaseFacts) -> Table:
    whole, areas = len(facts.questions), facts.numbers["share of the scene's area"]
    table: Table = {"degraded": count_rows(facts.flags["degraded"][True], whole)}
    table |= {name: count_rows(count, whole) for name, count in sorted(facts.words["trials"].items())}
    table |= _describe(facts, *sorted(name for name in facts.numbers if name.startswith("strength of ")))
    if areas:
        table["set in a scene, crop"] = count_rows(len(areas), whole)
        table |= _describe(facts, "share of the scene's area")
    return table


def _measure_news(facts: ReleaseFacts) -> dict[str, Section]:
    counts, days = facts.words["news sources"], sorted(facts.words["news days"])
    common = sum(count for count in counts.values() if count > FEW)
    numbers: Table = {
        "sources": {"n": len(counts)},
        f"questions of sources with more than {FEW}": {"n": common, "share": share(common, counts.total())},
    }
    for name in ("questions with facts of two articles", "decided by a person"):
        holds = facts.flags[name]
        numbers[name] = {"n": holds[True], "share": share(holds[True], holds.total())}
    numbers |= {"first day": {"day": days[0]}, "last day": {"day": days[-1]}}
    return {"news": numbers, "news sources": count_values(counts)}


def _measure_trajectories(facts: ReleaseFacts) -> dict[str, Section]:
    table = _describe(facts, "turns", "tool calls", "training tokens", "process mark", "pictures", "supports")
    table["accepted a question"] = describe_numbers(facts.words["accepted"].values())
    names = ("tools", "tool outcomes", "stop reasons", "decided by")
    return {"trajectories": table, **{name: count_values(facts.words[name]) for name in names}}


def measure_quality(
    facts: ReleaseFacts, signatures: Sequence[Signature], context: ReleaseOrigin, settings: ReleasesConfig
) -> Quality:
    """Return the report's sections.

    ``signatures`` are of every question of the run, of other splits too: overlap and near duplicates are measured
    over them all.
    """
    own, pictures, whole = list(facts.questions.values()), facts.pictures.values(), len(facts.questions)
    quality: Quality = {
        **_describe_origin(context),
        "splits": {
            name: {"rows": each.rows, "questions": len(each.questions), "pictures": len(each.pictures)}
            for name, each in sorted(facts.splits.items())
        },
        "overlap": {name: len(found) for name, found in list_shared_values(signatures).items()},
        "benchmarks": describe_benchmarks(context.benchmarks),
        **{name: count_values(facts.words[name]) for name in ("hops", "answer types", "domains", "anchor types")},
        "answers": _measure_answers(facts),
        "guessability": measure_guessability([each.asked for each in own], settings),
        "proof counts": {
            **{name: _describe_counts(facts, name) for name in COUNTS},
            "alone, first hidden node": _describe_counts(facts, "alone, 1"),
            "alone, later nodes": _describe_counts(facts, "alone, later"),
        },
        "proof": _measure_proofs(facts),
        "duplicates": {**dict.fromkeys(DUPLICATES, 0), **count_duplicates(question.signature for question in own)},
        "near duplicates": {name: count_rows(rows, len(signatures)) for name, rows in count_near(signatures).items()},
        "difficulty": _measure_difficulty(facts),
        "standing": {name: count_rows(rows, whole) for name, rows in sorted(facts.words["standing"].items())},
        "pools": {name: count_rows(rows, whole) for name, rows in sorted(facts.words["pools"].items())},
        "balance": _measure_balance(facts),
        "pictures": {
            "shorter side, pixels": describe_numbers(each.side for each in pictures),
            **_describe(facts, "pictures a row"),
            "distinct perceptual hashes": {"n": len({each.phash for each in pictures})},
        },
        "grounding": _measure_grounding(facts),
        "enhancements": _measure_enhancements(facts),
        "picture licences": count_values(Counter(each.licence for each in pictures)),
    }
    if facts.words["news sources"]:
        quality |= _measure_news(facts)
    if facts.numbers["turns"]:
        quality |= _measure_trajectories(facts)
    reviewed = measure_reviews({name: each.stratum for name, each in facts.questions.items()}, facts.reviews)
    done = {
        "benchmark contamination": bool(context.benchmarks),
        "human audit": bool(reviewed),
    }
    left = {name: why for name, why in NOT_MEASURED.items() if not done.get(name)}
    return quality | reviewed | {"not measured": left}


def _describe_origin(context: ReleaseOrigin) -> Quality:
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
    identity |= {f"key of {entry.name}": entry.key for entry in context.lineage}
    funnel = {
        row.stage: {**row.model_dump(exclude={"stage"}), "rejected": sum(row.rejected.values())}
        for row in context.funnel
    }
    rejections = {
        f"{row.stage}: {reason}": count_rows(rows, row.rows_in)
        for row in context.funnel
        for reason, rows in sorted(row.rejected.items())
    }
    return {"identity": identity, "funnel": funnel, "rejections": rejections}


def check_quality(quality: Quality) -> None:
    """Refuse a release whose report breaks a gate."""
    shared = {name: value for name, value in quality["overlap"].items() if value}
    if shared:
        raise GateNotMet(f"quality: the splits share {shared}; all must be 0")
    check_guessability({name: row for name, row in quality["guessability"].items() if isinstance(row, Mapping)})


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
