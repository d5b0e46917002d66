"""``quality.json`` and ``quality.md``: what is measured on a release's rows without a person or a benchmark.

Numbers are rounded, so that reports compare byte for byte.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import get_args

from pipelines.agent.agreement import bound_mean, wilson_interval
from pipelines.checks.benchmarks import describe_benchmarks
from pipelines.checks.near import count_repeated
from pipelines.checks.repeats import count_near
from pipelines.checks.sets import (
    Signature,
    count_duplicates,
    list_shared_values,
    measure_compression,
    measure_distinct,
    measure_self_bleu,
)
from pipelines.config.settings import ReleasesConfig
from pipelines.errors import GateNotMet
from pipelines.release.facts import CellFacts, QuestionFacts, ReleaseFacts, SplitFacts, TrajectoryFacts
from pipelines.release.guessing import check_guessability, count_right, measure_guessability, measure_guessing
from pipelines.release.manifest import ReleaseOrigin
from pipelines.release.reviewed import measure_reviews, name_group
from schemas.proofs import Resolution, Role, Trace

DIGITS = 4
Number = int | float
Scalar = str | Number
Counts = dict[str, Mapping[str, Number]]
Table = dict[str, Mapping[str, Scalar]]
"""Named rows of named values."""
Section = Mapping[str, Scalar | Mapping[str, Scalar]]
Quality = dict[str, Section]


def share(part: int, whole: int) -> float:
    """Return ``part / whole``, 0.0 of nothing."""
    return round(part / whole, DIGITS) if whole else 0.0


def count_rows(flags: Iterable[bool]) -> dict[str, Scalar]:
    """Return in how many rows something holds, and their share of all."""
    told = list(flags)
    return {"rows": sum(told), "share": share(sum(told), len(told))}


def count_values(values: Iterable[str]) -> Counts:
    """Return rows and share of each value, the most frequent first, then by name."""
    counts = Counter(values)
    total = sum(counts.values())
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return {value: {"rows": rows, "share": share(rows, total)} for value, rows in ordered}


def describe_numbers(values: Sequence[Number]) -> dict[str, Scalar]:
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


def count_effective(values: Iterable[str]) -> float:
    """Return exp(entropy): how many equally frequent values would be as varied."""
    counts = Counter(values)
    total = sum(counts.values())
    shares = [counts[value] / total for value in sorted(counts)]
    return round(math.exp(-sum(part * math.log(part) for part in shares)), DIGITS) if shares else 0.0


def measure_gini(counts: Iterable[int]) -> float:
    """Return the Gini coefficient of use counts: 0.0 when all are used alike."""
    ordered = sorted(counts)
    total = sum(ordered)
    if not total:
        return 0.0
    ranked = sum(rank * value for rank, value in enumerate(ordered, 1))
    return round(2 * ranked / (len(ordered) * total) - (len(ordered) + 1) / len(ordered), DIGITS)


def measure_prior(answers: Iterable[tuple[Hashable, str]]) -> float:
    """Return the share of answers that are the most frequent answer of the other rows of their group.

    A group of one is never guessed; a tie counts by the share of the tied answers.
    """
    groups: defaultdict[Hashable, Counter[str]] = defaultdict(Counter)
    for group, answer in answers:
        groups[group][answer] += 1
    right = sum(map(count_right, groups.values()), 0.0)
    total = sum(counts.total() for counts in groups.values())
    return round(right / total, DIGITS) if total else 0.0


ENOUGH = 20
"""Questions of a relation from which the share of one answer among them says something."""


def _describe_counts(questions: Sequence[QuestionFacts], name: str, later: bool | None = None) -> dict[str, Scalar]:
    """Describe the counts of a name: all of them, or those of the first hidden node or of later ones."""
    counts = [
        count
        for question in questions
        for count in question.proof.counts
        if count.name == name and (later is None or (count.node > 1) is later)
    ]
    return describe_numbers([count.value for count in counts]) | {"capped": sum(count.capped for count in counts)}


def measure_counts(questions: Sequence[QuestionFacts]) -> Table:
    """Return the distributions of the proofs' counts, and how many stopped at their threshold."""
    return {name: _describe_counts(questions, name) for name in ("chain", "alone", "anchors", "answers")}


def measure_proofs(questions: Sequence[QuestionFacts]) -> Table:
    """Return how near misses were resolved, and how many answers something beside the infobox confirms."""
    proofs = [question.proof for question in questions]
    told = Counter(resolution for proof in proofs for resolution in proof.resolutions)
    return {
        "near misses looked for": count_rows(proof.looked_for_misses for proof in proofs),
        "near misses a question": describe_numbers([len(proof.resolutions) for proof in proofs]),
        **{
            f"near misses: {resolution}": {"n": told[resolution], "share": share(told[resolution], told.total())}
            for resolution in get_args(Resolution)
        },
        "answer confirmed by a sentence": count_rows(proof.confirmed for proof in proofs),
        "confirmation required": count_rows(proof.confirmation_required for proof in proofs),
        "checked: the same in another dump": count_rows(proof.compared for proof in proofs),
        "volatile facts refused": count_rows(proof.volatile_refused for proof in proofs),
    }


def measure_necessity(questions: Sequence[QuestionFacts]) -> Table:
    """Return how much each part of a question decides: picture, bridges, whole path, single constraints."""
    proofs = [question.proof for question in questions]
    return {
        "R_alone, first hidden node": _describe_counts(questions, "alone", later=False),
        "R_alone, later nodes": _describe_counts(questions, "alone", later=True),
        "N_img": _describe_counts(questions, "answers"),
        "checked: no path shorter by two links": count_rows(proof.shortcuts_checked for proof in proofs),
        "checked: not found by one search": count_rows(proof.retrieval_checked for proof in proofs),
        "constraints a question": describe_numbers([proof.constraints for proof in proofs]),
        "redundant constraints a question": describe_numbers([proof.redundant for proof in proofs]),
        "questions with a redundant constraint": count_rows(bool(proof.redundant) for proof in proofs),
    }


def measure_answers(questions: Sequence[QuestionFacts]) -> Table:
    """Return lengths, aliases and use of the answers, and how often the most frequent answer would be right.

    The guess is made from the other questions with the same relation and answer type.
    """
    keys = Counter(question.signature.answer_key for question in questions)
    asked = [((q.proof.asked, q.answer_type), q.signature.answer_key) for q in questions]
    groups: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for group, key in asked:
        groups[group][key] += 1
    shares = [share(max(found.values()), found.total()) for found in groups.values() if found.total() >= ENOUGH]
    return {
        "characters": describe_numbers([question.characters for question in questions]),
        "words": describe_numbers([question.words for question in questions]),
        "aliases": describe_numbers([question.aliases for question in questions]),
        "questions an answer key": describe_numbers(list(keys.values())),
        "right by the most frequent answer": {"n": len(asked), "share": measure_prior(asked)},
        f"largest share in a relation of {ENOUGH} questions": describe_numbers(shares),
    }


def measure_grounding(questions: Sequence[QuestionFacts]) -> Table:
    """Return rankers and sources, how scores and margins lie, and what OCR and a search by picture find."""
    seen = [question.depiction for question in questions if question.depiction is not None]
    table: Table = {}
    for name, values in (
        ("ranked by", [each.ranker for each in seen]),
        ("from", [each.source for each in seen]),
        ("to look up", [each.ease or "not searched" for each in seen]),
        ("to look up at training resolution", [each.ease_at_training or "not searched" for each in seen]),
        ("read by", [" and ".join(each.engines) or "no engine" for each in seen]),
        ("Commons says it depicts the anchor", [DEPICTS[each.depicts] for each in seen]),
    ):
        table |= {f"{name}: {value}": dict(row) for value, row in count_values(values).items()}
    table["with text that tells nothing"] = count_rows(bool(each.text) for each in seen)
    table["candidates a question"] = describe_numbers([each.candidates for each in seen])
    judged = [each for each in seen if each.margin is not None]
    if judged:
        table["score"] = describe_numbers([each.score for each in judged])
        table["margin over the best distractor"] = describe_numbers([each.margin or 0.0 for each in judged])
        table["distractors"] = describe_numbers([each.distractors for each in judged])
        table["over the absolute threshold"] = count_rows(bool(each.over_threshold) for each in judged)
    return table


def measure_enhancements(questions: Sequence[QuestionFacts]) -> Table:
    """Return how many pictures are degraded, by degradation, repair and test, and the strengths."""
    trials = [question.trial for question in questions if question.trial is not None]
    found = Counter(f"{trial.degradation}, {trial.repair}, shown by {trial.test}" for trial in trials)
    rows = {"degraded": len(trials), **dict(sorted(found.items()))}
    table: Table = {name: {"rows": count, "share": share(count, len(questions))} for name, count in rows.items()}
    for degradation in sorted({trial.degradation for trial in trials}):
        strengths = [trial.strength for trial in trials if trial.degradation == degradation]
        table[f"strength of {degradation}"] = describe_numbers(strengths)
    shares = [question.object_share for question in questions if question.object_share is not None]
    if shares:
        table["set in a scene, crop"] = {"rows": len(shares), "share": share(len(shares), len(questions))}
        table["share of the scene's area"] = describe_numbers(shares)
    return table


def measure_difficulty(questions: Sequence[QuestionFacts]) -> Table:
    """Return the attempts by condition and solver; an interval counts each question's attempts as one."""
    cells: dict[str, list[CellFacts]] = {}
    for question in questions:
        for cell in question.cells:
            cells.setdefault(cell.name, []).append(cell)
    return {name: _sum_cells(cells[name]) for name in sorted(cells)}


def _sum_cells(cells: Sequence[CellFacts]) -> dict[str, Scalar]:
    correct, attempts = sum(cell.correct for cell in cells), sum(cell.attempts for cell in cells)
    scored = attempts - sum(cell.unscored for cell in cells)
    asked = sum(cell.attempts > cell.unscored for cell in cells)
    # Attempts at one question depend on each other: in the worst case they count as one.
    interval = bound_mean(asked * correct / scored if scored else 0.0, asked, 1.0)
    return {
        "questions": len(cells),
        "planned": sum(cell.planned for cell in cells),
        "attempts": attempts,
        "unscored": attempts - scored,
        "correct": correct,
        "rate": share(correct, scored),
        "low": round(interval.low, DIGITS),
        "high": round(interval.high, DIGITS),
        "never solved": sum(cell.correct == 0 for cell in cells),
        "latest reply": max(cell.day for cell in cells),
    }


def measure_standing(questions: Sequence[QuestionFacts]) -> Table:
    """Return rows and shares by standing, of alternative answers, and of what was not measured or left out."""
    counts: Counter[str] = Counter()
    for question in questions:
        counts[f"standing: {question.standing}"] += 1
        counts["search need not measured"] += not question.signature.search_need
        counts["with wrong answers given twice, all refuted"] += question.alternatives
        counts["shown a swapped picture"] += question.swapped
        counts.update(f"left out: {name}" for name in question.left_out)
    return {name: {"rows": counts[name], "share": share(counts[name], len(questions))} for name in sorted(counts)}


def measure_pools(questions: Sequence[QuestionFacts]) -> Table:
    """Return rows and shares of all rows by their pool; questions made here have no pool."""
    pools = Counter(question.pool for question in questions if question.pool)
    return {pool: {"rows": pools[pool], "share": share(pools[pool], len(questions))} for pool in sorted(pools)}


def measure_balance(questions: Sequence[QuestionFacts]) -> Table:
    """Return rows and shares by the search that a question takes and by its knowledge, with 95% Wilson intervals.

    Shares are of the questions for which it was measured.
    """
    table: Table = {}
    for what, values in (
        ("search need", [each.signature.search_need for each in questions if each.signature.search_need]),
        ("knowledge", [each.knowledge for each in questions if each.knowledge]),
    ):
        for value, count in sorted(Counter(values).items()):
            low, high = wilson_interval(count, len(values))
            bounds = {"low": round(low, DIGITS), "high": round(high, DIGITS)}
            table[f"{what}: {value}"] = {"rows": count, "share": share(count, len(values)), **bounds}
    return table


TOP = 10
USUAL = ReleasesConfig()
DUPLICATES = ("duplicate-question", "duplicate-path", "duplicate-picture")
DEPICTS = {None: "not stated", True: "yes", False: "no"}


def measure_diversity(questions: Sequence[QuestionFacts]) -> dict[str, Scalar]:
    """Return skeletons, relations and type sequences: how many, how evenly used, and the shares of the most used."""
    skeletons = Counter(question.skeleton for question in questions)
    chains = [question.proof.relations for question in questions]
    relations = [relation for chain in chains for relation in chain]
    bigrams = [f"{left} {right}" for chain in chains for left, right in pairwise(chain)]
    sequences = [" > ".join(node.type for node in question.proof.nodes) for question in questions]
    top = sum(rows for _, rows in Counter(bigrams).most_common(TOP))
    return {
        "skeletons": len(skeletons),
        "top skeleton share": share(max(skeletons.values(), default=0), len(questions)),
        "relations": len(set(relations)),
        "effective relations": count_effective(relations),
        "relation bigrams": len(set(bigrams)),
        "effective relation bigrams": count_effective(bigrams),
        f"top {TOP} bigrams share": share(top, len(bigrams)),
        "type sequences": len(set(sequences)),
        "effective type sequences": count_effective(sequences),
    }


def measure_wording(questions: Sequence[QuestionFacts]) -> Table:
    """Return how much the questions' texts, and their skeletons, repeat each other."""
    table: Table = {}
    for name, texts in (
        ("text", [each.text for each in questions]),
        ("skeleton", [each.skeleton for each in questions]),
    ):
        table[name] = {
            **{f"distinct-{size}": round(measure_distinct(texts, size), DIGITS) for size in (1, 2, 3)},
            "self-BLEU": round(measure_self_bleu(texts), DIGITS),
            "compression ratio": round(measure_compression(texts), 2),
            "near duplicates": share(count_repeated(texts, USUAL.near_text), len(texts)),
        }
    return table


def measure_near(signatures: Sequence[Signature]) -> Table:
    """Return how many questions nearly repeat another, by the default thresholds of releases."""
    counts = count_near(signatures, USUAL)
    return {name: {"rows": rows, "share": share(rows, len(signatures))} for name, rows in counts.items()}


def measure_reuse(questions: Sequence[QuestionFacts]) -> Table:
    """Return how often entities are used in each role."""
    table: Table = {}
    roles: tuple[Role, ...] = ("anchor", "bridge", "answer")
    for role in roles:
        uses = Counter(n.page_id for question in questions for n in question.proof.nodes if n.role == role)
        numbers = describe_numbers(list(uses.values()))
        table[role] = {
            "entities": len(uses),
            "median uses": numbers.get("median", 0),
            "p95 uses": numbers.get("p95", 0),
            "most uses": numbers.get("max", 0),
            "gini": measure_gini(uses.values()),
        }
    return table


NOT_MEASURED = {
    "human audit": "no person has examined a sample of this version",
    "judge": "false accepts and false rejects of the judge: run synth bench judge",
    "planted defects": "recall and false alarms of the checks: run synth bench planted",
    "benchmark contamination": "no benchmark was compared with",
    "picture ablation": "no attempt with a swapped picture was made",
    "people": "balance of country and gender of the people asked about was not counted",
}


def measure_quality(
    facts: ReleaseFacts, signatures: Sequence[Signature], context: ReleaseOrigin, settings: ReleasesConfig
) -> Quality:
    """Return the report's sections.

    ``signatures`` are of every question of the run, of other splits too: overlap and near duplicates are measured
    over them all.
    """
    own, pictures = list(facts.questions.values()), facts.pictures.values()
    quality: Quality = {
        **_describe_origin(context),
        "splits": {name: _describe_split(facts.splits[name]) for name in sorted(facts.splits)},
        "overlap": {name: len(found) for name, found in list_shared_values(signatures).items()},
        "benchmarks": describe_benchmarks(context.benchmarks),
        "hops": count_values(question.hops for question in own),
        "answer types": count_values(question.answer_type for question in own),
        "domains": count_values(question.domain for question in own),
        "anchor types": count_values(question.anchor_type for question in own),
        "answers": measure_answers(own),
        "guessing": measure_guessing((each.proof.asked, each.signature.answer_key) for each in own),
        "guessability": measure_guessability([each.asked for each in own], settings),
        "proof counts": measure_counts(own),
        "proof": measure_proofs(own),
        "necessity": measure_necessity(own),
        "diversity": measure_diversity(own),
        "wording": measure_wording(own),
        "entity reuse": measure_reuse(own),
        "duplicates": {**dict.fromkeys(DUPLICATES, 0), **count_duplicates(question.signature for question in own)},
        "near duplicates": measure_near(signatures),
        "difficulty": measure_difficulty(own),
        "standing": measure_standing(own),
        "pools": measure_pools(own),
        "balance": measure_balance(own),
        "pictures": {
            "shorter side, pixels": describe_numbers([each.side for each in pictures]),
            "pictures a row": describe_numbers(facts.shown),
            "distinct perceptual hashes": {"n": len({each.phash for each in pictures})},
        },
        "grounding": measure_grounding(own),
        "enhancements": measure_enhancements(own),
        "picture licences": count_values(each.licence for each in pictures),
    }
    traces = [question.trace for question in own if question.trace is not None]
    if traces:
        quality |= measure_news(traces)
    if facts.trajectories.turns:
        quality |= _measure_trajectories(facts.trajectories)
    strata = {key: name_group(each.hops, each.domain, each.cells) for key, each in facts.questions.items()}
    reviewed = measure_reviews(strata, facts.reviews)
    quality |= reviewed
    swapped = any(question.swapped for question in own)
    skipped = {"picture ablation"} if swapped else set[str]()
    skipped |= {"benchmark contamination"} if context.benchmarks else set()
    skipped |= {"human audit"} if reviewed else set()
    return quality | {"not measured": {name: why for name, why in NOT_MEASURED.items() if name not in skipped}}


FEW = 5
"""Questions of a source up to which the paper counts it as rare (DR-MMSearchAgent, figure 9)."""


def measure_news(traces: Sequence[Trace]) -> dict[str, Section]:
    """Return which sources the pictures' articles are from, their days, and who found the reasoning sound."""
    shown = [trace.links[0] for trace in traces]
    counts = Counter(link.source for link in shown)
    common = sum(count for count in counts.values() if count > FEW)
    days = sorted(link.published for link in shown)
    people = sum(bool(trace.decided_on) for trace in traces)
    apart = sum(trace.links[0].evidence.page_id != trace.links[1].evidence.page_id for trace in traces)
    numbers: Section = {
        "sources": {"n": len(counts)},
        f"questions of sources with more than {FEW}": {"n": common, "share": share(common, len(traces))},
        "questions with facts of two articles": {"n": apart, "share": share(apart, len(traces))},
        "decided by a person": {"n": people, "share": share(people, len(traces))},
        "first day": {"day": days[0]},
        "last day": {"day": days[-1]},
    }
    return {"news": numbers, "news sources": count_values(counts.elements())}


def check_quality(quality: Quality) -> None:
    """Refuse a release whose report breaks a gate.

    Raises:
        GateNotMet: if anything is shared between splits, or a guesser scores too much.
    """
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


def _describe_origin(context: ReleaseOrigin) -> Quality:
    """Return the sections identity, funnel and rejections."""
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
        f"{row.stage}: {reason}": {"rows": rows, "share": share(rows, row.rows_in)}
        for row in context.funnel
        for reason, rows in sorted(row.rejected.items())
    }
    return {"identity": identity, "funnel": funnel, "rejections": rejections}


def _describe_split(split: SplitFacts) -> dict[str, Scalar]:
    return {"rows": split.rows, "questions": len(split.questions), "pictures": len(split.pictures)}


def _measure_trajectories(facts: TrajectoryFacts) -> Mapping[str, Section]:
    return {
        "trajectories": {
            "turns": describe_numbers(facts.turns),
            "tool calls": describe_numbers(facts.calls),
            "training tokens": describe_numbers(facts.tokens),
            "process mark": describe_numbers(facts.marks),
            "pictures": describe_numbers(facts.pictures),
            "supports": describe_numbers(facts.supports),
            "accepted a question": describe_numbers(list(facts.accepted.values())),
        },
        "tools": count_values(facts.tools.elements()),
        "tool outcomes": count_values(facts.outcomes.elements()),
        "stop reasons": count_values(facts.stops.elements()),
        "decided by": count_values(facts.deciders.elements()),
    }
