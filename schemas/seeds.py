"""Seeds: entities a path grows from.

One row::

    {"record_id": "seed-1f0c...", "parent_id": "page:1207", "page_id": 1207, "title": "Kelm Bridge", "type": "bridge",
     "domain": "Building/Place", "in_degree": 14, "image": "Kelm Bridge.jpg", "split": "sft", "qid": "Q90001207", ...}
"""

from typing import Literal

from schemas.base import Record

Split = Literal["sft", "rl", "eval"]


class Seed(Record):
    """An eligible anchor."""

    page_id: int
    title: str
    qid: str
    type: str
    domain: str
    in_degree: int
    sitelinks: int
    """Sitelinks of the Wikidata entity on all projects; -1 when not known."""
    statements: int
    """Statements of the Wikidata entity, identifiers included; -1 when not known."""
    identifiers: int = -1
    """Those of the statements that name the entity in another database; -1 when not known."""
    image: str
    """File name of the lead picture, empty when there is none and the recipe allows that."""
    split: Split
