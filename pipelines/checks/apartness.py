"""What a benchmark may not share with releases that models are trained on (VSearcher, section 2.4: no seed of them)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pipelines.checks.sets import Signature, name_final
from pipelines.ids import digest_value
from schemas.base import Rejection
from schemas.datasets import Picture
from schemas.proofs import Answer, Proof


@dataclass(frozen=True, slots=True)
class Apart:
    """The entities from picture to answer, final facts, answers and pictures of other releases."""

    entities: frozenset[int] = frozenset()
    """Page ids of anchors, bridges and answer nodes: what lies between picture and answer, not what is beside it."""
    facts: frozenset[str] = frozenset()
    """Page id of the answer node and the relation asked for."""
    answers: frozenset[str] = frozenset()
    pictures: frozenset[str] = frozenset()
    """sha256, and what a picture looks like."""

    @classmethod
    def of(cls, rows: Iterable[tuple[Proof, Answer, Sequence[Picture]]]) -> "Apart":
        """Return what rows hold: of each its proof, its answer, and its pictures."""
        entities, facts, answers, pictures = set[int](), set[str](), set[str](), set[str]()
        for proof, answer, shown in rows:
            entities.update(node.page_id for node in proof.nodes)
            facts.update(name_final(proof))
            answers.add(answer.key)
            pictures.update(mark for picture in shown for mark in (picture.sha256, picture.phash))
        return cls(frozenset(entities), frozenset(facts), frozenset(answers), frozenset(pictures))

    @property
    def digest(self) -> str:
        """Digest of all of it."""
        return digest_value(
            [sorted(map(str, part)) for part in (self.entities, self.facts, self.answers, self.pictures)]
        )

    def find_shared(self, other: "Apart") -> Iterator[str]:
        """Yield what others share with these, in words."""
        kinds = {"entity": (self.entities, other.entities), "final fact": (self.facts, other.facts),
                 "answer": (self.answers, other.answers), "picture": (self.pictures, other.pictures)}  # fmt: skip
        for kind, (own, given) in kinds.items():
            yield from (f"{kind} {value}" for value in sorted(map(str, own & given)))

    def refuse(self, signatures: Iterable[Signature]) -> dict[str, Rejection]:
        """Return the rejections of questions that share something with the other releases."""
        refused = {}
        for signature in signatures:
            marks = frozenset(filter(None, (signature.sha256, signature.phash)))
            own = Apart(
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
