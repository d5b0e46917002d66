"""Questions that nearly repeat another: in words about the same thing, or by a path that is mostly the same.

Words alone make no duplicate: questions of one template are alike, and a question about a picture need not name what
it asks about. Near words count where both questions ask for one fact, follow one fact or show one picture, and where
nothing proves one of them, if both have one answer. Paths are compared as sets of facts: a question in other words
whose path is mostly that of another is the same to a model that learns to search.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from heapq import merge

from pipelines.checks.near import Sketches, digest_set, find_alike
from pipelines.checks.sets import RANKS, Signature
from schemas.base import Rejection

NEAR_TEXT, NEAR_TEXT_ACROSS = 0.8, 0.6
"""Similarity of words (Jaccard, runs of three) from which a question repeats another of its split, where both share a
fact or the picture, or without a proof the answer; and one of another split, where a shared entity is enough."""
NEAR_PATH, NEAR_PATH_ACROSS = 0.6, 0.3
"""The same of paths (Jaccard of their facts, the one asked for included), whatever the words."""
Found = tuple[int, int, str]
"""Places of a question and of one that it nearly repeats, and what is alike in words."""


def refuse_near(signatures: Iterable[Signature]) -> dict[str, Rejection]:
    """Refuse questions that nearly repeat one of their split; the first is kept (``near-duplicate``)."""
    refused: dict[str, Rejection] = {}
    for own in _divide(signatures):
        words = _find_words(own, own, NEAR_TEXT, across=False)
        for one, other, alike in merge(words, _find_paths(own, own, NEAR_PATH)):
            if own[other].record_id not in refused and own[one].record_id not in refused:
                _refuse(refused, own[one], f"{alike} as {own[other].record_id}")
    return refused


def refuse_near_across(signatures: Iterable[Signature]) -> dict[str, Rejection]:
    """Refuse questions that nearly repeat one of another split, by lower thresholds than within one.

    One entity on both paths is enough for near words. Evaluation keeps its own, and imitation before reinforcement.
    """
    refused: dict[str, Rejection] = {}
    kept: list[Signature] = []
    for own in _divide(signatures):
        words = _find_words(own, kept, NEAR_TEXT_ACROSS, across=True)
        for one, other, alike in merge(words, _find_paths(own, kept, NEAR_PATH_ACROSS)):
            if own[one].record_id not in refused:
                _refuse(refused, own[one], f"{alike} as {kept[other].record_id} in {kept[other].split}")
        kept += [each for each in own if each.record_id not in refused]
    return refused


def count_near(signatures: Sequence[Signature]) -> dict[str, int]:
    """Return how many questions nearly repeat one before them, by what is measured and the threshold, in words."""
    found: Counter[str] = Counter()
    earlier: list[Signature] = []
    for own in _divide(sorted(signatures, key=lambda each: each.record_id)):
        for name, pairs in {
            f"words {NEAR_TEXT:g} alike, one split": _find_words(own, own, NEAR_TEXT, across=False),
            f"path {NEAR_PATH:g} alike, one split": _find_paths(own, own, NEAR_PATH),
            f"words {NEAR_TEXT_ACROSS:g} alike, two splits": _find_words(own, earlier, NEAR_TEXT_ACROSS, across=True),
            f"path {NEAR_PATH_ACROSS:g} alike, two splits": _find_paths(own, earlier, NEAR_PATH_ACROSS),
        }.items():
            found[name] += len({one for one, _, _ in pairs})
        earlier += own
    facts = Counter(signature.final for signature in signatures if signature.final)
    return {**found, "final fact of another row": sum(rows for rows in facts.values() if rows > 1)}


def _divide(signatures: Iterable[Signature]) -> list[list[Signature]]:
    ordered = tuple(signatures)
    return [[each for each in ordered if each.split == split] for split in RANKS]


def _refuse(refused: dict[str, Rejection], signature: Signature, detail: str) -> None:
    refused[signature.record_id] = Rejection(record_id=signature.record_id, reason="near-duplicate", detail=detail)


def _find_words(
    asked: Sequence[Signature], known: Sequence[Signature], similarity: float, across: bool
) -> Iterator[Found]:
    links = [_list_links(each, across) for each in asked]
    ours = theirs = Sketches([each.shingles for each in asked], similarity, list(map(digest_set, links)))
    other_links = links
    if known is not asked:
        other_links = [_list_links(each, across) for each in known]
        theirs = Sketches([each.shingles for each in known], similarity, list(map(digest_set, other_links)))
    for one, other, found in find_alike(ours, theirs):
        proved = bool(asked[one].final and known[other].final)
        if link := _find_link(links[one] & other_links[other], proved):
            yield one, other, f"{found:.2f} of the words and the same {link}"


def _list_links(signature: Signature, across: bool) -> set[str]:
    pictures = filter(None, (signature.sha256, signature.phash, *signature.parts))
    links = {f"answer {signature.answer_key}", *(f"hop {hop}" for hop in signature.hops)}
    links |= {f"picture {picture}" for picture in pictures}
    links |= {f"entity {name}" for name in signature.entities} if across else set()
    return links | ({f"final fact {signature.final}"} if signature.final else set())


def _find_link(shared: AbstractSet[str], proved: bool) -> str:
    # Two facts may have one answer: what proves both questions says that they are two.
    return min((link for link in shared if not (proved and link.startswith("answer "))), default="")


def _find_paths(asked: Sequence[Signature], known: Sequence[Signature], similarity: float) -> Iterator[Found]:
    ours = [place for place, each in enumerate(asked) if each.hops and each.final]
    theirs = [place for place, each in enumerate(known) if each.hops and each.final]
    sketches = Sketches([digest_set(_list_facts(asked[place])) for place in ours], similarity)
    if known is not asked:
        others = Sketches([digest_set(_list_facts(known[place])) for place in theirs], similarity)
    else:
        others = sketches
    for one, other, found in find_alike(sketches, others):
        yield ours[one], theirs[other], f"{found:.2f} of the facts of its path"


def _list_facts(signature: Signature) -> tuple[str, ...]:
    return (*signature.hops, f"asked {signature.final}")
