"""Rewrites: the fuzzy question, and a certificate for each entity that was hidden."""

from schemas.base import Nested, Record
from schemas.proofs import Answer, Proof
from schemas.seeds import Split


class Candidate(Nested):
    """A descriptor that was tried, and what the checks said."""

    descriptor: str
    verdict: str
    """``accepted``, or the reason it was refused."""


class Certificate(Nested):
    """One rewriting step: one entity hidden, the three invariants shown to hold (OpenSearch-VL, equation 6)."""

    node: int
    """Index of the hidden bridge in the path; steps run from the farthest bridge toward the anchor."""
    name: str
    candidates: tuple[Candidate, ...]
    descriptor: str
    text_after: str
    chain_count: int
    alone_count: int
    answer_after: str
    """Canonical answer of the rewritten query: equal to the answer before."""
    near_misses: int = 0
    """Entities that were looked up in their articles because their infoboxes leave a fact open."""
    round: int = 0
    """Round of injection, 1 for the first; 0 in the path recipe."""


class Rewrite(Record):
    """The fuzzy question: every bridge hidden, the anchor still named (the picture replaces it next)."""

    split: Split
    domain: str
    image: str
    canonical: str
    text: str
    answer: Answer
    proof: Proof
    certificates: tuple[Certificate, ...]
