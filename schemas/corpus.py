"""Rows of a corpus's tables, as its readers get them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Page:
    """A row of ``pages.parquet``: an article."""

    node: int
    page_id: int
    title: str
    revision: int
    timestamp: str
    bytes: int
    """Size of the wikitext in UTF-8."""
    text_sha256: str
    is_list: bool
    is_disambiguation: bool
    infobox: str
    """Template name such as ``Infobox bridge``, or empty."""
    type: str
    """Noun for questions: from the infobox, else from the lead, else empty."""
    lead_type: str
    """Head noun of the lead sentence, or empty."""
    domain: str
    """Person, Building/Place, Location, Organism, Artifact or Other."""
    in_degree: int
    """Number of distinct articles that link here."""
    qid: str
    sitelinks: int
    """-1 when not known."""
    statements: int
    """Statements of the Wikidata entity, identifiers included; -1 when not known."""
    identifiers: int
    """Those of the statements that name the entity in another database; -1 when not known."""
    classes: tuple[str, ...]
    """Qids of what the entity is an instance of (P31); empty without a Wikidata dump."""
    image: str
    """File name with spaces, or empty."""
    image_free: bool


@dataclass(frozen=True, slots=True)
class Fact:
    """A row of ``facts.parquet``, one readable value of one infobox field; or one of ``statements.parquet``.

    A statement of Wikidata has no place in the page: its offsets are -1.
    """

    node: int
    key: str
    field_start: int
    """Span of the whole field's value in the page's wikitext."""
    field_end: int
    value_index: int
    value_count: int
    """Values of the field, unreadable ones included; 1 means the value is the only one."""
    text: str
    iso: str
    start: int
    """Span of this value in the page's wikitext."""
    end: int
    link_start: int
    """Offset of the value's ``[[``, or -1."""
    target: int
    """Node of the linked article, redirects followed, or -1."""
    property: str = ""
    """Wikidata's property of a statement, such as ``P84``; empty for an infobox."""
    statement: str = ""
    """Its id, such as ``Q42$F078E5B3-F9A8-480E-B7AC-D97778CBBEF9``."""


@dataclass(frozen=True, slots=True)
class CorpusImage:
    """A picture with its licence, as found in the images folder."""

    file: str
    """File name as pages use it: spaces, first letter upper case."""
    title: tuple[str, ...]
    """Titles of the articles whose image it is, sorted."""
    path: str
    """Relative to the corpus's images folder; empty for a picture that is fetched."""
    sha256: str
    width: int
    height: int
    format: str
    """From the file's first bytes, such as ``JPEG``; never from its name."""
    author: str
    licence: str
    licence_url: str
    source_url: str
    phash: str
    """Perceptual hash (64 bits as hex), empty when the picture cannot be decoded."""
    error: str
    """Why it cannot be used, or empty: missing, undecodable, pixel-bomb, truncated, sha256-mismatch, path-outside."""
    url: str = ""
    """Address of the original, empty when not known."""
    bytes: int = 0
    """Size of the file; 0 when not known."""
    depicts: tuple[str, ...] = ()
    """Qids of what the file is said to show (P180); empty when not known."""
    shown: tuple[str, ...] = ()
    """Titles of the articles that show it elsewhere than as their image, sorted; empty where it is not at hand."""
