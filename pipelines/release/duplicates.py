"""Duplicates and splits: what questions are compared by, which are refused, and whether the splits are disjoint."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from pipelines.checks.sets import Wording, delexicalise, find_over_used
from pipelines.errors import ConfigError, GateNotMet
from pipelines.ids import digest_value
from schemas.base import Record, Rejection
from schemas.difficulty import SearchNeed
from schemas.enhancements import Enhancement
from schemas.reasons import ReleaseReason
from schemas.seeds import Split

EXAMPLES = 3
SHOWN_DIGITS = 8
ROUNDING = 1e-9
"""Forgiven where a share in binary falls short of a whole number."""
Identity = tuple[ReleaseReason, str, str]
"""The reason that questions alike in it are refused for, its name for a reader, and its value."""


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
    """Content of the picture before it was degraded; empty for a question without one."""
    phash: str
    skeleton: str
    """Digest of the wording without names, types and values."""
    search_need: SearchNeed = ""
    """Which search its answer takes; empty where that was not measured."""


def make_signature(row: Record) -> Signature:
    """Return a question's signature.

    Raises:
        ConfigError: if the row is no Enhancement.
    """
    if not isinstance(row, Enhancement):
        raise ConfigError(f"releases: the first input holds {type(row).__name__} rows; it takes Enhancement rows")
    # Degraded in two ways a picture is still one picture.
    picture = row.original or row.picture
    edges = sorted({(hop.subject_id, hop.relation, hop.object_id) for hop in row.proof.hops})
    return Signature(
        record_id=row.record_id,
        split=row.split,
        anchor=row.proof.nodes[0].page_id,
        answer_node=row.proof.nodes[-1].page_id,
        answer_key=row.answer.key,
        edges=digest_value(edges),
        sha256=picture.sha256 if picture else "",
        phash=picture.phash if picture else "",
        skeleton=digest_value(delexicalise(row)),
        search_need=row.search_need,
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


def refuse_anchors(signatures: Iterable[Signature], cap: int) -> dict[str, Rejection]:
    """Refuse questions beyond the first ``cap`` of a split that share an anchor (research: D3)."""
    return _refuse_beyond(signatures, cap, "anchor-over-used", lambda signature: {"anchor": str(signature.anchor)})


def refuse_answers(signatures: Iterable[Signature], cap: int) -> dict[str, Rejection]:
    """Refuse questions beyond the first ``cap`` of a split that share an answer, or an answer node.

    A split in which one answer is right every third time is passed by guessing (research: S7, D3).
    """
    return _refuse_beyond(
        signatures,
        cap,
        "answer-over-used",
        lambda signature: {"answer": signature.answer_key, "answer node": str(signature.answer_node)},
    )


def _refuse_beyond(
    signatures: Iterable[Signature], cap: int, reason: ReleaseReason, read: Callable[[Signature], dict[str, str]]
) -> dict[str, Rejection]:
    """Refuse a question any of whose values ``cap`` kept questions of its split have before it."""
    refused: dict[str, Rejection] = {}
    used: Counter[tuple[Split, str, str]] = Counter()
    for signature in signatures:
        marks = [(signature.split, name, value) for name, value in read(signature).items()]
        over = [mark for mark in marks if used[mark] >= cap]
        if over:
            split, name, value = over[0]
            detail = f"{cap} questions of {split} have the {name} {value} already"
            refused[signature.record_id] = Rejection(record_id=signature.record_id, reason=reason, detail=detail)
        else:
            used.update(marks)
    return refused


def refuse_skeletons(signatures: Sequence[Signature], solved: Collection[str], share: float) -> dict[str, Rejection]:
    """Refuse questions whose skeleton has its share already of a dataset that they would go into (research: D1).

    The share is of what is kept, so that a stranger who counts finds it; a dataset of fewer than ``1 / share``
    questions keeps each skeleton once.

    Args:
        signatures: those kept so far; earlier ones come first.
        solved: ids of questions with a trajectory: those of the sft dataset.
        share: largest share of one skeleton in each dataset; 1.0 is no limit.
    """
    wordings = [Wording(signature.skeleton, _list_datasets(signature, solved)) for signature in signatures]
    refused: dict[str, Rejection] = {}
    for signature, dataset in zip(signatures, find_over_used(wordings, share), strict=True):
        if dataset:
            detail = f"skeleton {signature.skeleton[:SHOWN_DIGITS]} has its {share:.1%} of {dataset} already"
            refused[signature.record_id] = Rejection(
                record_id=signature.record_id, reason="skeleton-over-used", detail=detail
            )
    return refused


def refuse_search_free(signatures: Sequence[Signature], share: float) -> dict[str, Rejection]:
    """Refuse questions that need no search beyond their share of a split (MMSearch-R1, search balancing).

    The share is of what is kept and was measured: of s questions that need a search, ``share / (1 - share) * s`` that
    need none may stand beside them. A question whose need was not measured counts for neither.

    Args:
        signatures: those kept so far; earlier ones come first.
        share: largest share; 1.0 is no limit.
    """
    if share >= 1.0:
        return {}
    searched = Counter(signature.split for signature in signatures if signature.search_need not in ("", "search-free"))
    left = {split: math.floor(share / (1.0 - share) * count + ROUNDING) for split, count in searched.items()}
    refused: dict[str, Rejection] = {}
    for signature in signatures:
        if signature.search_need != "search-free":
            continue
        if left.get(signature.split, 0) > 0:
            left[signature.split] -= 1
            continue
        detail = f"{share:.1%} of {signature.split} need no search already"
        refused[signature.record_id] = Rejection(
            record_id=signature.record_id, reason="search-free-over-share", detail=detail
        )
    return refused


def _list_datasets(signature: Signature, solved: Collection[str]) -> tuple[str, ...]:
    own = signature.split == "rl" or (signature.split == "sft" and signature.record_id in solved)
    return ("bridgevqa", signature.split) if own else ("bridgevqa",)


def _find_duplicate(
    signature: Signature, questions: dict[Identity, str], pictures: dict[str, Signature]
) -> tuple[ReleaseReason, str] | None:
    for identity in _list_identities(signature):
        if identity in questions:
            return identity[0], f"same {identity[1]} as {questions[identity]}"
    for mark in _list_marks(signature):
        if mark in pictures and pictures[mark].anchor != signature.anchor:
            return "duplicate-picture", f"same {mark.split(':')[0]} as {pictures[mark].record_id}, another anchor"
    return None


def _list_identities(signature: Signature) -> tuple[Identity, ...]:
    return (
        ("duplicate-question", "anchor and answer key", f"{signature.anchor}:{signature.answer_key}"),
        ("duplicate-path", "edge set", signature.edges),
    )


def _list_marks(signature: Signature) -> list[str]:
    marks = [("picture sha256", signature.sha256), ("picture phash", signature.phash)]
    return [f"{name}:{value}" for name, value in marks if value]


def count_duplicates(signatures: Iterable[Signature]) -> Counter[str]:
    """Return how many questions repeat an earlier one, by reason."""
    return Counter(rejection.reason for rejection in refuse_duplicates(signatures)[1].values())


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
