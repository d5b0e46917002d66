"""Duplicates and splits: what questions are compared by, which are refused, and whether the splits are disjoint."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from pipelines.errors import ConfigError, GateNotMet
from pipelines.ids import digest_value
from schemas.base import Record, Rejection
from schemas.difficulty import Difficulty
from schemas.reasons import Reason
from schemas.seeds import Split

EXAMPLES = 3
Identity = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Signature:
    """What duplicates and splits are compared by; a question's text and evidence are not held in memory."""

    record_id: str
    split: Split
    anchor: int
    """Page id of the entity the picture shows."""
    answer_node: int
    answer_key: str
    edges: str
    """Digest of the set of (subject, relation, object) of the path."""
    sha256: str
    """Content of the picture; empty for a question without one."""
    phash: str


def make_signature(row: Record) -> Signature:
    """Return a question's signature.

    Raises:
        ConfigError: if the row is no Difficulty.
    """
    if not isinstance(row, Difficulty):
        raise ConfigError(f"releases: the first input holds {type(row).__name__} rows; it takes Difficulty rows")
    edges = sorted({(hop.subject_id, hop.relation, hop.object_id) for hop in row.proof.hops})
    return Signature(
        record_id=row.record_id,
        split=row.split,
        anchor=row.proof.nodes[0].page_id,
        answer_node=row.proof.nodes[-1].page_id,
        answer_key=row.answer.key,
        edges=digest_value(edges),
        sha256=row.picture.sha256 if row.picture else "",
        phash=row.picture.phash if row.picture else "",
    )


def refuse_duplicates(signatures: Iterable[Signature]) -> tuple[list[Signature], dict[str, Rejection]]:
    """Return the kept signatures and a rejection for every duplicate of an earlier one."""
    kept: list[Signature] = []
    refused: dict[str, Rejection] = {}
    questions: dict[Identity, str] = {}
    pictures: dict[str, Signature] = {}
    for signature in signatures:
        found = _find_duplicate(signature, questions, pictures)
        if found:
            reason, detail = found
            refused[signature.record_id] = Rejection(record_id=signature.record_id, reason=reason, detail=detail)
            continue
        kept.append(signature)
        for identity in _list_identities(signature):
            questions[identity] = signature.record_id
        for mark in _list_marks(signature):
            pictures.setdefault(mark, signature)
    return kept, refused


def refuse_over_used(signatures: Iterable[Signature], cap: int) -> dict[str, Rejection]:
    """Refuse questions beyond the first ``cap`` of a split that share an answer, or an answer node.

    A split in which one answer is right every third time is passed by guessing (research: S7, D3).
    """
    refused: dict[str, Rejection] = {}
    used: Counter[tuple[Split, str, str]] = Counter()
    for signature in signatures:
        marks = [
            (signature.split, "answer", signature.answer_key),
            (signature.split, "answer node", str(signature.answer_node)),
        ]
        over = [mark for mark in marks if used[mark] >= cap]
        if over:
            detail = f"{over[0][1]} {over[0][2]} already answers {cap} questions of {signature.split}"
            refused[signature.record_id] = Rejection(
                record_id=signature.record_id, reason="answer-over-used", detail=detail
            )
        else:
            used.update(marks)
    return refused


def _find_duplicate(
    signature: Signature, questions: dict[Identity, str], pictures: dict[str, Signature]
) -> tuple[Reason, str] | None:
    for identity in _list_identities(signature):
        if identity in questions:
            return "duplicate-question", f"same {identity[0]} as {questions[identity]}"
    for mark in _list_marks(signature):
        if mark in pictures and pictures[mark].anchor != signature.anchor:
            return "duplicate-picture", f"same {mark.split(':')[0]} as {pictures[mark].record_id}, another anchor"
    return None


def _list_identities(signature: Signature) -> tuple[Identity, ...]:
    anchor_and_answer = f"{signature.anchor}:{signature.answer_key}"
    return (("anchor and answer key", anchor_and_answer), ("edge set", signature.edges))


def _list_marks(signature: Signature) -> list[str]:
    marks = [("picture sha256", signature.sha256), ("picture phash", signature.phash)]
    return [f"{name}:{value}" for name, value in marks if value]


def list_shared_values(signatures: Iterable[Signature]) -> dict[str, list[str]]:
    """Return, for anchor, answer node, answer key and picture, the values that more than one split has, sorted."""
    splits: dict[str, defaultdict[str, set[str]]] = {
        name: defaultdict(set) for name in ("anchor", "answer node", "answer key", "picture")
    }
    for signature in signatures:
        splits["anchor"][str(signature.anchor)].add(signature.split)
        splits["answer node"][str(signature.answer_node)].add(signature.split)
        splits["answer key"][signature.answer_key].add(signature.split)
        if signature.sha256:
            splits["picture"][signature.sha256].add(signature.split)
    return {name: sorted(value for value, of in seen.items() if len(of) > 1) for name, seen in splits.items()}


def check_splits(signatures: Iterable[Signature]) -> None:
    """Refuse questions whose splits are not disjoint.

    Raises:
        GateNotMet: naming what is shared, with examples.
    """
    shared = {name: values for name, values in list_shared_values(signatures).items() if values}
    if shared:
        found = "; ".join(
            f"{len(values)} by {name} ({', '.join(values[:EXAMPLES])})" for name, values in shared.items()
        )
        raise GateNotMet(f"releases: the splits sft, rl and eval are not disjoint: {found}; none may be shared")
