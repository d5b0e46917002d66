"""Paths: walks that passed the rules, with roles, relations and evidence."""

from schemas.base import Record
from schemas.proofs import Evidence, Hop, PathNode
from schemas.seeds import Split


class Path(Record):
    """``v0 -> v1 -> ... -> vh`` and the attribute of ``vh`` that will be asked for. ``h`` is ``len(hops)``."""

    split: Split
    domain: str
    image: str
    nodes: tuple[PathNode, ...]
    hops: tuple[Hop, ...]
    answer_relation: str
    answer_text: str
    """The attribute's value, cleaned of markup."""
    answer_iso: str
    """The value's ISO date when its markup gives one (``{{birth date|...}}``), else empty."""
    answer_evidence: Evidence
    walks: int
    """How many walks this seed took, the accepted one included (at most ten)."""
