"""What a release's proofs and answers come to in numbers; every one is counted from rows."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import get_args

from pipelines.release.statistics import (
    Number,
    Table,
    count_rows,
    count_values,
    describe_numbers,
    measure_prior,
    share,
)
from schemas.difficulty import Difficulty
from schemas.proofs import Count, Resolution

ENOUGH = 20
"""Questions of a relation from which the share of one answer among them says something."""


def measure_counts(questions: Sequence[Difficulty]) -> Table:
    """Return the distributions of the proofs' counts, and how many stopped at their threshold."""
    return {name: _describe_counts(questions, name) for name in ("chain", "alone", "anchors", "answers")}


def _describe_counts(questions: Sequence[Difficulty], name: str, later: bool | None = None) -> dict[str, Number]:
    """Describe the counts of a name: all of them, or those of the first hidden node or of later ones."""
    counts: list[Count] = [
        count
        for question in questions
        for count in question.proof.counts
        if count.name == name and (later is None or (count.node > 1) is later)
    ]
    return describe_numbers([count.value for count in counts]) | {"capped": sum(count.capped for count in counts)}


def measure_proofs(questions: Sequence[Difficulty]) -> Table:
    """Return how near misses were resolved, and how many answers something beside the infobox confirms."""
    proofs = [question.proof for question in questions]
    misses = [miss for proof in proofs for miss in proof.near_misses]
    told = Counter(miss.resolution for miss in misses)
    return {
        "near misses looked for": count_rows(proof.thresholds.near_misses > 0 for proof in proofs),
        "near misses a question": describe_numbers([len(proof.near_misses) for proof in proofs]),
        **{
            f"near misses: {resolution}": {"n": told[resolution], "share": share(told[resolution], len(misses))}
            for resolution in get_args(Resolution)
        },
        "answer confirmed by a sentence": count_rows(proof.corroboration is not None for proof in proofs),
        "confirmation required": count_rows(proof.thresholds.agreement == "required" for proof in proofs),
        "checked: the same in another dump": count_rows(bool(proof.compared_snapshot) for proof in proofs),
        "volatile facts refused": count_rows(not proof.thresholds.volatile for proof in proofs),
    }


def measure_necessity(questions: Sequence[Difficulty]) -> Table:
    """Return how much each part of a question decides: picture, bridges, whole path, single constraints."""
    proofs = [question.proof for question in questions]
    return {
        "R_alone, first hidden node": _describe_counts(questions, "alone", later=False),
        "R_alone, later nodes": _describe_counts(questions, "alone", later=True),
        "N_img": _describe_counts(questions, "answers"),
        "checked: no path shorter by two links": count_rows(proof.shortcuts_checked for proof in proofs),
        "checked: not found by one search": count_rows(proof.thresholds.retrieval_rank > 0 for proof in proofs),
        "constraints a question": describe_numbers([len(proof.constraints) for proof in proofs]),
        "redundant constraints a question": describe_numbers([len(proof.redundant) for proof in proofs]),
        "questions with a redundant constraint": count_rows(bool(proof.redundant) for proof in proofs),
    }


def measure_answers(questions: Sequence[Difficulty]) -> Table:
    """Return lengths, aliases and use of the answers, and how far guessing by what is asked would come.

    The guesser knows the relation and the answer's type, and gives what most other questions of both have.
    """
    keys = Counter(question.answer.key for question in questions)
    asked = [((q.proof.answer_relation, q.answer.type), q.answer.key) for q in questions]
    groups: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for group, key in asked:
        groups[group][key] += 1
    shares = [share(max(found.values()), found.total()) for found in groups.values() if found.total() >= ENOUGH]
    return {
        "characters": describe_numbers([len(question.answer.surface) for question in questions]),
        "words": describe_numbers([len(question.answer.surface.split()) for question in questions]),
        "aliases": describe_numbers([len(question.answer.aliases) for question in questions]),
        "questions an answer key": describe_numbers(list(keys.values())),
        "right by the most frequent answer": {"n": len(asked), "share": measure_prior(asked)},
        f"largest share in a relation of {ENOUGH} questions": describe_numbers(shares),
    }


def count_precisions(questions: Sequence[Difficulty]) -> Table:
    """Return how precise the dates are, and how many ask for less than the page says."""
    dates = [question for question in questions if question.answer.type == "date"]
    table = count_values(question.answer.precision or "none" for question in dates)
    derived = Counter(question.proof.derivation for question in questions if question.proof.derivation)
    for part, rows in sorted(derived.items()):
        table[f"{part} of a fuller date"] = {"rows": rows, "share": share(rows, len(dates))}
    return table
