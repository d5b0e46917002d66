"""Groundings: the anchor's picture and the final question."""

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
