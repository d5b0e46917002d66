"""What a benchmark may not share with releases that models are trained on (VSearcher, section 2.4: no seed of them)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pipelines.checks.sets import Signature, list_entities, name_final
from pipelines.ids import digest_value
from schemas.base import Rejection
from schemas.datasets import Origin, Picture
from schemas.proofs import Answer, Proof, Trace


class Held(NamedTuple):
    """What a row of another release holds."""

    proof: Proof
    answer: Answer
    pictures: Sequence[Picture]
    """As shown, before it was degraded, and the others of a scene."""
    trace: Trace | None = None
    origin: Origin | None = None


@dataclass(frozen=True, slots=True)
class Apart:
    """The entities from picture to answer, final facts, answers and pictures of other releases."""

    entities: frozenset[int] = frozenset()
    """Page ids of anchors, bridges and answer nodes: what lies between picture and answer, not what is beside it."""
    names: frozenset[str] = frozenset()
    """Of the same, and of those that are no pages: of news and of pools."""
    facts: frozenset[str] = frozenset()
    """Name of the answer node and the relation asked for."""
    answers: frozenset[str] = frozenset()
    pictures: frozenset[str] = frozenset()
    """sha256, and what a picture looks like."""

    @classmethod
    def of(cls, rows: Iterable[Held | tuple[Proof, Answer, Sequence[Picture]]]) -> "Apart":
        """Return what rows hold; a question of a path may be given without what others have."""
        entities, names, facts, answers, pictures = set[int](), set[str](), set[str](), set[str](), set[str]()
        for row in rows:
            held = Held(*row)
            entities.update(node.page_id for node in held.proof.nodes)
            names.update(list_entities(held))
            facts.update(name_final(held))
            answers.add(held.answer.key)
            pictures.update(mark for picture in held.pictures for mark in (picture.sha256, picture.phash))
        return cls(frozenset(entities), frozenset(names), frozenset(facts), frozenset(answers), frozenset(pictures))

    @property
    def digest(self) -> str:
        """Digest of all of it."""
        return digest_value(
            [sorted(map(str, part)) for part in (self.entities, self.names, self.facts, self.answers, self.pictures)]
        )

    def find_shared(self, other: "Apart") -> Iterator[str]:
        """Yield what others share with these, in words."""
        kinds = {"page": (self.entities, other.entities), "entity": (self.names, other.names),
                 "final fact": (self.facts, other.facts), "answer": (self.answers, other.answers),
                 "picture": (self.pictures, other.pictures)}  # fmt: skip
        for kind, (own, given) in kinds.items():
            yield from (f"{kind} {value}" for value in sorted(map(str, own & given)))

    def refuse(self, signatures: Iterable[Signature]) -> dict[str, Rejection]:
        """Return the rejections of questions that share something with the other releases."""
        refused = {}
        for signature in signatures:
            marks = frozenset(filter(None, (signature.sha256, signature.phash, *signature.parts)))
            own = Apart(
                frozenset(signature.pages),
                frozenset(signature.entities),
                frozenset(filter(None, [signature.final])),
                frozenset([signature.answer_key]),
                marks,
            )
            if shared := list(self.find_shared(own)):
                refused[signature.record_id] = Rejection(
                    record_id=signature.record_id, reason="in-other-release", detail="; ".join(shared)
                )
        return refused
