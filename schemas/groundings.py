"""Groundings: the anchor's picture and the final question."""

from typing import Literal

from schemas.base import Nested, Record
from schemas.proofs import Answer, Proof
from schemas.seeds import Split


class Picture(Nested):
    """A picture in the workspace's image store, with what its licence asks to be kept."""

    sha256: str
    extension: str
    """From the file's magic bytes, never from its name."""
    file: str
    """File name at the source."""
    width: int
    height: int
    phash: str
    author: str
    licence: str
    licence_url: str
    source_url: str


CandidateSource = Literal["infobox", "page", "search"]
"""Where a candidate picture comes from: the article's infobox, another place of the article, a search on Commons."""
Ease = Literal["", "easy", "medium", "hard"]
"""How easily a search by picture finds the anchor. ``easy``: its page comes first with the very picture; ``medium``: it
is among the results; ``hard``: it is not. Empty where nobody searched."""


class Depiction(Nested):
    """Why this picture stands for the anchor, and what is known of how it can be seen through.

    What was not looked at is None or empty, never a number that passes.
    """

    source: CandidateSource
    ranker: str
    """What ordered the candidates: ``metadata`` or the encoder's name."""
    candidates: int
    """How many were compared (K at most)."""
    score: float
    """Cosine similarity to the anchor's description, or the metadata ranker's points (0..1)."""
    margin: float | None
    """Score less the best of all distractors; None with the metadata ranker."""
    distractors: int
    """Entities of the anchor's kind that it was held against."""
    over_threshold: bool | None
    """Whether the published absolute threshold alone would let it pass; None with the metadata ranker."""
    articles: int
    """Articles that lead with this file, the anchor's included."""
    depicts: bool | None
    """Whether Commons says that the file depicts the anchor (P180); None where it says nothing."""
    engines: tuple[str, ...]
    """OCR engines that read it."""
    text: tuple[str, ...]
    """What they read, each line once."""
    text_at_training: tuple[str, ...]
    """What they read at the resolution that a student is trained at."""
    ease: Ease
    ease_at_training: Ease


class Grounding(Record):
    """A picture and a question about it. ``record_id`` is the question's id from here on."""

    split: Split
    domain: str
    text: str
    """The final question: anchor referred to as ``the <type> in the image``, no name of any node."""
    fuzzy: str
    canonical: str
    picture: Picture | None
    """None only in the text-only form (``groundings.require_image = false``)."""
    answer: Answer
    proof: Proof
    depiction: Depiction | None = None
    """None without a picture, and for questions from outside."""
