"""What Wikimedia Commons' structured data says of one file, read from its RDF or its JSON form.

RDF is read with a real Turtle parser; a cheap cut by entities comes first, so that it only sees the files asked for.
JSON knows no size of its own: width, height and type are there only where someone stated them (P2049, P2048, P1163).
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import orjson
from pyoxigraph import BlankNode, Literal, NamedNode, RdfFormat, Triple, parse

from pipelines.corpus.images import QID, normalise_file
from pipelines.corpus.licences import choose_licence, find_licence_url

_UPLOADS = "https://upload.wikimedia.org/wikipedia/commons"
_FILE_PAGES = "https://commons.wikimedia.org/wiki/File:"
_SCHEMA = "http://schema.org/"
_PROPERTIES = ("http://www.wikidata.org/prop/", "https://commons.wikimedia.org/prop/")
_ITEMS = "http://www.wikidata.org/entity/"
_MEDIA = "https://commons.wikimedia.org/entity/M"
_PIXEL, _BYTE = "Q355198", "Q8799"
_LICENCE, _STATUS, _CREATOR, _DEPICTS = "P275", "P6216", "P170", "P180"
_NAME, _USER, _PART = "P2093", "P4174", "P518"
_UNQUOTED = "/:;@$!*(),~"
"""What MediaWiki leaves as it is in the addresses of pages (wfUrlencode)."""
_MOST_PIXELS = (1 << 31) - 1
_MOST_BYTES = 1 << 50
_MAX_AUTHOR = 1_000


class Malformed(ValueError):
    """An entity does not have the form that the dump promises; the argument is one word for counting."""


@dataclass(frozen=True, slots=True)
class Media:
    """A row of ``media.parquet``: a file of Wikimedia Commons, in the order of ``commons.MEDIA``."""

    file: str
    """File name as pages use it: spaces, first letter upper case."""
    url: str
    """Address of the original."""
    width: int
    """In pixels as displayed; 0 when not known."""
    height: int
    mime: str
    bytes: int
    licence: str
    """Short name such as ``CC BY-SA 4.0``, a Qid that has none, or empty when nothing is stated."""
    licence_url: str
    copyright_status: str
    """Qids of P6216, separated by spaces."""
    author: str
    """Names as the file's creators are to be credited, else user names or Qids; empty when not known."""
    source_url: str
    """The file's page on Wikimedia Commons."""
    depicts: tuple[str, ...]
    """Qids of the best statements of what it shows (P180): where some are marked as prominent, those alone."""


@dataclass(frozen=True, slots=True)
class _Creator:
    """One statement of P170."""

    qid: str = ""
    name: str = ""
    user: str = ""

    @property
    def label(self) -> str:
        return self.name or (f"User:{self.user}" if self.user else self.qid)


@dataclass(frozen=True, slots=True)
class _Statements:
    """What a file's statements say of rights, authors and what is to be seen."""

    licences: Sequence[str]
    statuses: Sequence[str]
    in_parts: bool
    creators: Sequence[_Creator]
    depicts: Sequence[str]


def read_rdf(source: bytes) -> Media:
    """Read one entity from Turtle or N-Triples: its own triples and those of its statements, prefixes before them.

    Raises:
        Malformed: ``syntax``, or one of the words of :func:`read_json`.
    """
    try:
        triples = list(parse(source, format=RdfFormat.TURTLE, lenient=True))
    except (SyntaxError, ValueError) as error:
        raise Malformed("syntax") from error
    said: dict[str, list[Any]] = defaultdict(list)
    qualifiers: dict[str, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for triple in triples:
        if not isinstance(triple.subject, NamedNode) or isinstance(triple.object, Triple):
            continue
        predicate = _shorten_predicate(triple.predicate.value)
        if predicate.startswith(("qualifier/", "statement/")):
            qualifiers[triple.subject.value][predicate].append(triple.object)
        elif triple.subject.value.startswith(_MEDIA):
            said[predicate].append(triple.object)
    urls = [node.value for node in said["contentUrl"] if isinstance(node, NamedNode)]
    if len(set(urls)) != 1:
        raise Malformed("url")
    return _make_media(
        _read_file(urls[0]),
        urls[0],
        {name: _read_literal(said[name]) for name in ("width", "height", "contentSize", "encodingFormat")},
        _Statements(
            _list_items(said[f"direct/{_LICENCE}"]),
            _list_items(said[f"direct/{_STATUS}"]),
            any(qualifiers[node.value][f"qualifier/{_PART}"] for node in (*said[_LICENCE], *said[_STATUS])),
            tuple(_read_creators(said, qualifiers)),
            _list_items(said[f"direct/{_DEPICTS}"]),
        ),
    )


def read_json(line: bytes) -> Media:
    """Read one entity from a line of the JSON dump, without the comma at its end.

    Raises:
        Malformed: ``syntax``, ``title`` (no file's title), ``url`` (not https, or not one), ``number`` (a size that is
            none), ``statement`` (not of Wikibase's form).
    """
    try:
        entity = orjson.loads(line)
        title = entity["title"]
        # PHP writes an empty mapping as an empty list.
        statements = entity.get("statements") or {}
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise Malformed("syntax") from error
    file = normalise_file(title) if isinstance(title, str) and title.startswith("File:") else ""
    if not file:
        raise Malformed("title")
    try:
        sizes = {
            "width": _read_quantity(statements, "P2049", _PIXEL),
            "height": _read_quantity(statements, "P2048", _PIXEL),
            "contentSize": _read_quantity(statements, "P3575", _BYTE),
            "encodingFormat": next(
                (value for value in _list_values(statements, "P1163") if isinstance(value, str)), ""
            ),
        }
        said = _Statements(
            _list_qids(statements, _LICENCE),
            _list_qids(statements, _STATUS),
            any(
                _PART in claim.get("qualifiers", {}) for key in (_LICENCE, _STATUS) for claim in _best(statements, key)
            ),
            [_read_creator(claim) for claim in _best(statements, _CREATOR)],
            _list_qids(statements, _DEPICTS),
        )
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise Malformed("statement") from error
    return _make_media(file, make_file_url(file), sizes, said)


def make_file_url(file: str) -> str:
    """Return where a file's original lies: under the first digits of the MD5 of its name, as MediaWiki stores it."""
    name = file.replace(" ", "_")
    digest = hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()
    return f"{_UPLOADS}/{digest[0]}/{digest[:2]}/{quote(name, safe='')}"


def make_source_url(file: str) -> str:
    """Return the address of a file's page on Wikimedia Commons."""
    return _FILE_PAGES + quote(file.replace(" ", "_"), safe=_UNQUOTED)


def _make_media(file: str, url: str, sizes: Mapping[str, str], said: _Statements) -> Media:
    if not file or urlsplit(url).scheme != "https":
        raise Malformed("url")
    licence = choose_licence(said.licences, said.statuses, said.in_parts)
    names = dict.fromkeys(" ".join(creator.label.split()) for creator in said.creators if creator.label)
    return Media(
        file=file,
        url=url,
        width=_read_number(sizes["width"], _MOST_PIXELS),
        height=_read_number(sizes["height"], _MOST_PIXELS),
        mime=sizes["encodingFormat"],
        bytes=_read_number(sizes["contentSize"], _MOST_BYTES),
        licence=licence,
        licence_url=find_licence_url(licence),
        copyright_status=" ".join(dict.fromkeys(said.statuses)),
        author="; ".join(names)[:_MAX_AUTHOR],
        source_url=make_source_url(file),
        depicts=tuple(qid for qid in dict.fromkeys(said.depicts) if QID.fullmatch(qid)),
    )


def _read_number(text: str, most: int) -> int:
    """Return a count, 0 for an absent one."""
    if not text:
        return 0
    if not (text.isascii() and text.isdecimal()) or len(text) > 18 or int(text) > most:
        raise Malformed("number")
    return int(text)


def _read_file(url: str) -> str:
    try:
        path = urlsplit(url).path
    except ValueError as error:
        raise Malformed("url") from error
    return normalise_file(unquote(path.rpartition("/")[2]))


def _shorten_predicate(iri: str) -> str:
    """Return ``width``, ``direct/P275``, ``P170`` or ``qualifier/P2093``; what is not used stays as it is."""
    for base in (_SCHEMA, *_PROPERTIES):
        if iri.startswith(base):
            return iri[len(base) :]
    return iri


def _read_literal(nodes: Sequence[object]) -> str:
    return next((node.value for node in nodes if isinstance(node, Literal)), "")


def _list_items(nodes: Iterable[object]) -> list[str]:
    iris = [node.value for node in nodes if isinstance(node, NamedNode)]
    return [iri.removeprefix(_ITEMS) for iri in iris if iri.startswith(_ITEMS)]


def _read_creators(
    said: Mapping[str, list[Any]], qualifiers: Mapping[str, Mapping[str, list[Any]]]
) -> Iterator[_Creator]:
    """Yield the creators of the statements that count, as the truthy triples name them; the dump's order."""
    truthy = said[f"direct/{_CREATOR}"]
    for node in said[_CREATOR]:
        stated = qualifiers[node.value]
        values = stated[f"statement/{_CREATOR}"]
        if truthy and values and not _share_value(values, truthy):
            continue  # a statement of lower rank
        yield _Creator(
            next(iter(_list_items(values)), ""),
            _read_literal(stated[f"qualifier/{_NAME}"]),
            _read_literal(stated[f"qualifier/{_USER}"]),
        )
    if not said[_CREATOR]:
        yield from (_Creator(qid) for qid in _list_items(truthy))


def _share_value(values: Sequence[object], others: Sequence[object]) -> bool:
    """Say whether two lists have a value in common; unknown values (blank nodes) count as one."""
    if any(isinstance(value, BlankNode) for value in values):
        return any(isinstance(other, BlankNode) for other in others)
    return any(value in others for value in values)


def _best(statements: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    """Return the statements of the best rank, as Wikibase's truthy triples have them."""
    claims = [claim for claim in statements.get(key, []) if claim["rank"] != "deprecated"]
    preferred = [claim for claim in claims if claim["rank"] == "preferred"]
    return preferred or claims


def _list_values(statements: Mapping[str, Any], key: str) -> Iterator[Any]:
    for claim in _best(statements, key):
        if claim["mainsnak"]["snaktype"] == "value":
            yield claim["mainsnak"]["datavalue"]["value"]


def _list_qids(statements: Mapping[str, Any], key: str) -> list[str]:
    return [str(value["id"]) for value in _list_values(statements, key)]


def _read_quantity(statements: Mapping[str, Any], key: str, unit: str) -> str:
    """Return an amount in one unit: the same property also gives a painting's size in centimetres."""
    for value in _list_values(statements, key):
        if str(value["unit"]).endswith(f"/{unit}"):
            return str(value["amount"]).removeprefix("+")
    return ""


def _read_creator(claim: Mapping[str, Any]) -> _Creator:
    snak = claim["mainsnak"]
    qid = str(snak["datavalue"]["value"]["id"]) if snak["snaktype"] == "value" else ""
    qualifiers = claim.get("qualifiers") or {}
    texts = [
        next((str(snak["datavalue"]["value"]) for snak in qualifiers.get(key, []) if snak["snaktype"] == "value"), "")
        for key in (_NAME, _USER)
    ]
    return _Creator(qid, *texts)
