"""What a question claims: the text, the answer, and the proof that leads from one to the other."""

from dataclasses import dataclass

from schemas.proofs import Answer, Proof


@dataclass(frozen=True, slots=True)
class Claim:
    """What a released question claims of its answer."""

    text: str
    answer: Answer
    proof: Proof
