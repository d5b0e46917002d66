"""Read the structured-data dump of Wikimedia Commons for the files that a corpus needs.

It describes over 100 M files and a corpus shows a few million of them. So a dump is cut into entities by their first
bytes, an entity's file name is found without parsing, and only what is wanted is parsed. Memory holds a hash a wanted
file, and one chunk.

What Wikimedia Commons' structured data says of one file, read from its RDF or its JSON form.

RDF is read with a real Turtle parser; a cheap cut by entities comes first, so that it only sees the files asked for.
JSON knows no size of its own: width, height and type are there only where someone stated them (P2049, P2048, P1163).

Licences as Wikidata names them (P275, P6216), turned into the short names that Wikimedia Commons shows.

Whether a short name is free is decided in one place, :mod:`pipelines.checks.pictures`; here a Qid only gets its
name. One
that is not in the table stays a Qid, which no check takes for free.

The table of a corpus's pictures: those at hand, and those of which Commons says what they are.
"""

import bz2
import gzip
import hashlib
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote, unquote, unquote_to_bytes, urlsplit

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import xxhash
from numpy.typing import NDArray
from pyoxigraph import BlankNode, Literal, NamedNode, RdfFormat, Triple, parse

from pipelines.corpus.images import QID, merge_images, read_images
from pipelines.corpus.manifest import SideFiles
from pipelines.corpus.properties import make_once
from pipelines.corpus.tables import IMAGES, TableWriter
from pipelines.errors import ConfigError, CorruptInput
from pipelines.services.image_metadata import normalise_file

PUBLIC_DOMAIN = "Public domain"
_IN_PUBLIC_DOMAIN = "Q19652"

# Sources: the search mapping of Wikimedia's own configuration (wmf-config/SearchSettingsForWikibase.php,
# $wgWBCSLicenseMapping) and the licence templates that BotMultichill maps (toollabs, own_work_to_sdoc.py). Q7257361 is
# the Public Domain Mark, Q98592850 "released into the public domain by the copyright holder".
_NAMED = {
    "Q6938433": "CC0",
    "Q7257361": PUBLIC_DOMAIN,
    "Q98592850": PUBLIC_DOMAIN,
    _IN_PUBLIC_DOMAIN: PUBLIC_DOMAIN,
    "Q6905323": "CC BY",
    "Q6905942": "CC BY-SA",
    "Q50829104": "GFDL",
    "Q26921685": "GFDL 1.1",
    "Q26921686": "GFDL 1.2",
    "Q26921691": "GFDL 1.3",
    "Q27019786": "GFDL 1.3+",
    "Q152332": "FAL",
    "Q99891660": "OGL",
    "Q99891692": "OGL 2",
    "Q99891702": "OGL 3",
}

# Creative Commons by version: first the international (or unported, or generic) licence, then its national ports.
_CREATIVE_COMMONS = {
    "CC BY 1.0": "Q30942811 fi:Q75446635 il:Q75446609 nl:Q75445499",
    "CC BY 2.0": """Q19125117 at:Q75450165 au:Q75452310 be:Q75457467 br:Q75457506 ca:Q75460106 cl:Q75460149
        de:Q75466259 es:Q75470365 fr:Q75470422 hr:Q75474094 it:Q75475677 jp:Q75477775 kr:Q44282633 nl:Q75476747
        pl:Q75486069 tw:Q75487055 uk:Q63241773 za:Q75488238""",
    "CC BY 2.1": "au:Q75894680 es:Q75894644 jp:Q26116436",
    "CC BY 2.5": """Q18810333 ar:Q75491630 au:Q75494411 bg:Q75500112 br:Q75501683 ca:Q75504835 ch:Q75506669
        cn:Q75434631 co:Q75663969 dk:Q75665696 es:Q75705948 hr:Q75706881 hu:Q75759387 il:Q75759731 in:Q75443434
        it:Q75760479 mk:Q75761383 mt:Q75761779 mx:Q75762418 my:Q75762784 nl:Q75763101 pe:Q75764151 pl:Q75764470
        pt:Q75764895 scotland:Q75765287 se:Q27940776 si:Q75766316 tw:Q75767185 za:Q75767606""",
    "CC BY 3.0": """Q14947546 at:Q75768706 au:Q52555753 br:Q75770766 ch:Q75771320 cl:Q75771874 cn:Q75779562
        cr:Q75789929 cz:Q67918154 de:Q62619894 ec:Q75850366 ee:Q75850813 eg:Q75850832 es:Q75775133 fr:Q75775714
        gr:Q75851799 gt:Q75852313 hk:Q75779905 hr:Q75776014 ie:Q75852938 igo:Q26259495 it:Q75776487 lu:Q75853187
        nl:Q53859967 no:Q75853549 nz:Q75853514 ph:Q75856699 pl:Q75777688 pr:Q75857518 pt:Q75854323 ro:Q75858169
        rs:Q75859019 sg:Q75859751 th:Q75866892 tw:Q75778801 ug:Q75882470 us:Q18810143 vn:Q75889409 za:Q76631753""",
    "CC BY 4.0": "Q20007257",
    "CC BY-SA 1.0": "Q47001652 fi:Q76767348 il:Q76769447 nl:Q77014037",
    "CC BY-SA 2.0": """Q19068220 at:Q77021108 au:Q77131257 be:Q77132386 br:Q77133402 ca:Q77135172 cl:Q77136299
        de:Q77143083 es:Q77352646 fr:Q77355872 hr:Q77361415 it:Q77362254 jp:Q77363039 kr:Q44282641 nl:Q77363856
        pl:Q77364488 tw:Q77364872 uk:Q77365183 za:Q77365530""",
    "CC BY-SA 2.1": "au:Q77366066 es:Q77366576 jp:Q77367349",
    "CC BY-SA 2.5": """Q19113751 ar:Q99239269 au:Q99239530 bg:Q99239903 br:Q99239977 ca:Q24331618 ch:Q99240068
        cn:Q99240158 co:Q99240246 dk:Q99240336 es:Q99240437 hr:Q99240535 hu:Q98755330 il:Q99240616 in:Q99240684
        it:Q98929925 mk:Q99437988 mt:Q99438077 mx:Q99438138 my:Q99438269 nl:Q18199175 pe:Q99438515 pl:Q98755337
        pt:Q99438743 scotland:Q99438747 se:Q15914252 si:Q99438751 tw:Q99438755 za:Q99438757""",
    "CC BY-SA 3.0": """Q14946043 at:Q80837139 au:Q86239208 br:Q98755369 ch:Q99457378 cl:Q99457535 cn:Q99458406
        cr:Q99458659 cz:Q98755321 de:Q42716613 ec:Q99458819 ee:Q86239559 es:Q86239991 fr:Q86240326 gr:Q99457707
        gt:Q99459010 hk:Q99459076 hr:Q99459365 ie:Q99459488 igo:Q56292840 it:Q98755364 lu:Q86240624 nl:Q18195572
        no:Q63340742 nz:Q99438798 ph:Q99460006 pl:Q80837607 pr:Q99460154 pt:Q99460272 ro:Q86241082 rs:Q98755344
        sg:Q99460356 th:Q99460411 tw:Q98960995 ug:Q99460475 us:Q18810341 vn:Q99460484 za:Q99460515""",
    "CC BY-SA 4.0": "Q18199165",
}
_FAMILIES = ("CC0", PUBLIC_DOMAIN, "CC BY", "CC BY-SA", "FAL", "OGL", "GFDL")
"""From the fewest conditions to the most: what a file under several licences is best used under."""
_URLS = {
    "CC0": "https://creativecommons.org/publicdomain/zero/1.0/",
    "FAL": "https://artlibre.org/licence/lal/en/",
    "OGL": "https://www.nationalarchives.gov.uk/doc/open-government-licence/version/1/",
    "OGL 2": "https://www.nationalarchives.gov.uk/doc/open-government-licence/version/2/",
    "OGL 3": "https://www.nationalarchives.gov.uk/doc/open-government-licence/version/3/",
    "GFDL": "https://www.gnu.org/licenses/fdl-1.3.html",
    "GFDL 1.1": "https://www.gnu.org/licenses/old-licenses/fdl-1.1.html",
    "GFDL 1.2": "https://www.gnu.org/licenses/old-licenses/fdl-1.2.html",
    "GFDL 1.3": "https://www.gnu.org/licenses/fdl-1.3.html",
    "GFDL 1.3+": "https://www.gnu.org/licenses/fdl-1.3.html",
}
_PUBLIC_DOMAIN_MARK = "https://creativecommons.org/publicdomain/mark/1.0/"
_PARTS = re.compile(r"(?P<family>CC BY-SA|CC BY|GFDL|OGL) (?P<version>\d(?:\.\d)?)\+?(?: (?P<port>[a-z]+))?")


def _read_table() -> dict[str, str]:
    names = dict(_NAMED)
    for version, row in _CREATIVE_COMMONS.items():
        for entry in row.split():
            port, _, qid = entry.rpartition(":")
            names[qid] = f"{version} {port}" if port else version
    return names


_NAMES = _read_table()


def name_licence(qid: str) -> str:
    """Return a licence's short name such as ``CC BY-SA 3.0 de``, or the Qid itself when the table has none."""
    return _NAMES.get(qid, qid)


def find_licence_url(name: str) -> str:
    """Return the address of a licence's text by its short name, empty when there is no one address."""
    if name == PUBLIC_DOMAIN:
        return _PUBLIC_DOMAIN_MARK
    family, version, port = _split_name(name)
    if not version or not family.startswith("CC BY"):
        return _URLS.get(name, "")
    return f"https://creativecommons.org/licenses/{family[3:].lower()}/{version}/" + (f"{port}/" if port else "")


def choose_licence(licences: Iterable[str], statuses: Iterable[str], in_parts: bool) -> str:
    """Return the one short name a file goes under.

    Of several licences the taker may choose any: the one with the fewest conditions is taken, its newest version, the
    international text before a port. Where they hold for parts of the file (a photograph of a sculpture), all of them
    bind: they are joined, and the joined name is on no list of free licences. Without a licence, a file whose only
    copyright status is the public domain goes under that; one that is protected somewhere goes under nothing.

    Args:
        licences: Qids of P275.
        statuses: Qids of P6216.
        in_parts: whether a licence or a status is said to hold for a part of the file only (P518).

    Returns:
        A short name, Qids where the table has none, or an empty string when nothing is stated.
    """
    names = sorted({name_licence(qid) for qid in licences}, key=_rank_name)
    if in_parts:
        return "; ".join([*names, "in parts"])
    if names:
        return names[0]
    return PUBLIC_DOMAIN if set(statuses) == {_IN_PUBLIC_DOMAIN} else ""


def _rank_name(name: str) -> tuple[int, float, str, str]:
    family, version, port = _split_name(name)
    rank = _FAMILIES.index(family) if family in _FAMILIES else len(_FAMILIES)
    return rank, -float(version or 0), port, name


def _split_name(name: str) -> tuple[str, str, str]:
    match = _PARTS.fullmatch(name)
    return (match["family"], match["version"], match["port"] or "") if match else (name, "", "")


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


MEDIA = pa.schema(
    [
        ("file", pa.string()),
        ("url", pa.string()),
        ("width", pa.int32()),
        ("height", pa.int32()),
        ("mime", pa.string()),
        ("bytes", pa.int64()),
        ("licence", pa.string()),
        ("licence_url", pa.string()),
        ("copyright_status", pa.string()),
        ("author", pa.string()),
        ("source_url", pa.string()),
        ("depicts", pa.list_(pa.string())),
    ]
)
CHUNK = 4 << 20
"""Bytes read at a time."""
_MAX_CHUNKS = 16
"""Chunks that one entity may be long."""
_ROWS = 8_192

# Each entity begins with the triples of its data page; Turtle names it once, N-Triples in each of its lines.
_ENTITY = re.compile(rb"\n(?:sdcdata:|<https://commons\.wikimedia\.org/wiki/Special:EntityData/)M(\d{1,18})[ >]")
_ENTITY_BYTES = 96
"""No shorter than what the expression above matches, so that a match cut by the end of a chunk is found again."""
_CONTENT = re.compile(rb"(?:schema:contentUrl|<http://schema\.org/contentUrl>)\s+<([^<>\s]*)>")
_PREFIXES = re.compile(rb"^@prefix [^\n]*\n", re.MULTILINE)
_TITLE = re.compile(rb'"title":"File:((?:[^"\\]|\\.)*+)"')

Candidate = tuple[str, bytes, bytes]
"""A file name, empty when none is found; the prefixes in force; the entity's source."""


@dataclass(frozen=True, slots=True)
class MediaCounts:
    """Where the entities of a dump ended: each is kept, not wanted, unnamed, repeated or malformed."""

    entities: int
    kept: int
    without_licence: int
    """Among those kept."""
    not_wanted: int
    unnamed: int
    """Without a file name, so that nobody can want them."""
    repeated: int
    """Wanted, but kept before."""
    malformed: dict[str, int]
    """Wanted, but not of the dump's form, by reason: see :func:`pipelines.corpus.commons.read_json`."""

    def summarise(self) -> dict[str, int]:
        """Return the counts by name, the malformed ones by ``malformed: <reason>``."""
        names = ("entities", "kept", "without_licence", "not_wanted", "unnamed", "repeated")
        counts = {name: getattr(self, name) for name in names}
        return counts | {f"malformed: {reason}": count for reason, count in self.malformed.items()}


@dataclass(frozen=True, slots=True)
class _Dump:
    path: Path
    chunk: int

    @property
    def most_bytes(self) -> int:
        """Bytes that one entity may be long."""
        return _MAX_CHUNKS * self.chunk


def hash_files(names: Iterable[str]) -> NDArray[np.uint64]:
    """Return the sorted distinct 64-bit hashes of file names, in any form that pages use; empty names do not count."""
    hashes = (_hash_file(normalise_file(name)) for name in names if name)
    return np.unique(np.fromiter(hashes, dtype=np.uint64))


def collect_media(paths: Sequence[Path], wanted: NDArray[np.uint64], out: Path, chunk: int = CHUNK) -> MediaCounts:
    """Write ``media.parquet``: what Commons says of the wanted files, in the order of the dump.

    Args:
        paths: MediaInfo dumps or parts of one: ``.ttl``, ``.nt`` or ``.json``, plain, ``.gz`` or ``.bz2``. What an
            earlier one says of a file stands.
        wanted: as :func:`hash_files` returns; what has one of these hashes is kept.
        out: the Parquet file to write, columns :data:`MEDIA`.
        chunk: bytes read at a time; an entity may be 16 of them long.

    Raises:
        ConfigError: a path does not end in one of these, or there is no such file.
        CorruptInput: a dump is cut short, holds no entity of Commons, or names no file (JSON dumps before 2022 have no
            titles).
    """
    counts: Counter[str] = Counter()
    seen = np.zeros(len(wanted), dtype=np.bool_)
    with TableWriter(out.parent, out.name.removesuffix(".parquet"), MEDIA) as writer:
        rows: list[tuple[object, ...]] = []
        for path in paths:
            for media in _collect(_Dump(path, chunk), wanted, seen, counts):
                rows.append(tuple(getattr(media, field.name) for field in fields(Media)))
                if len(rows) == _ROWS:
                    writer.write_rows(rows)
                    rows.clear()
        writer.write_rows(rows)
    return MediaCounts(
        entities=counts["entities"],
        kept=counts["kept"],
        without_licence=counts["without_licence"],
        not_wanted=counts["not_wanted"],
        unnamed=counts["unnamed"],
        repeated=counts["repeated"],
        malformed={key[10:]: count for key, count in sorted(counts.items()) if key.startswith("malformed:")},
    )


def _collect(dump: _Dump, wanted: NDArray[np.uint64], seen: NDArray[np.bool_], counts: Counter[str]) -> Iterator[Media]:
    read, candidates = _open_candidates(dump)
    before = counts["entities"] - counts["unnamed"]
    for batch in candidates:
        counts["entities"] += len(batch)
        for place, source in _pick_wanted(batch, wanted, counts):
            if seen[place]:
                counts["repeated"] += 1
                continue
            try:
                media = read(source)
                if _hash_file(media.file) != wanted[place]:
                    raise Malformed("title")
            except Malformed as error:
                counts[f"malformed:{error}"] += 1
                continue
            seen[place] = True
            counts["kept"] += 1
            counts["without_licence"] += not media.licence
            yield media
    if counts["entities"] - counts["unnamed"] == before:
        raise CorruptInput(
            f"{dump.path} names no file of Wikimedia Commons; expected a MediaInfo dump with sdcdata: entities and "
            "schema:contentUrl (RDF), or with titles (JSON, from 2022 on)"
        )


def _pick_wanted(
    batch: list[Candidate], wanted: NDArray[np.uint64], counts: Counter[str]
) -> Iterator[tuple[int, bytes]]:
    named = [candidate for candidate in batch if candidate[0]]
    counts["unnamed"] += len(batch) - len(named)
    hashes = np.fromiter((_hash_file(candidate[0]) for candidate in named), dtype=np.uint64, count=len(named))
    places = np.searchsorted(wanted, hashes)
    hits = np.flatnonzero(np.take(wanted, places, mode="clip") == hashes) if len(wanted) else ()
    counts["not_wanted"] += len(named) - len(hits)
    for hit in hits:
        _, prefixes, source = named[hit]
        yield int(places[hit]), prefixes + source


def _hash_file(name: str) -> int:
    return xxhash.xxh3_64_intdigest(name.encode("utf-8", "surrogatepass"))


def _open_candidates(dump: _Dump) -> tuple[Callable[[bytes], Media], Iterator[list[Candidate]]]:
    path = dump.path
    plain = path.name.removesuffix(".bz2").removesuffix(".gz")
    if not path.is_file():
        raise ConfigError(f"no Commons dump at {path}; expected a .ttl, .nt or .json file, plain, .gz or .bz2")
    if plain.endswith(".json"):
        return read_json, _cut_lines(dump)
    if plain.endswith((".ttl", ".nt")):
        return read_rdf, _cut_rdf(dump)
    raise ConfigError(f"{path.name} is no Commons dump; expected .ttl, .nt or .json, plain, .gz or .bz2")


def _open_dump(path: Path) -> BinaryIO | bz2.BZ2File | gzip.GzipFile:
    if path.suffix == ".bz2":
        return bz2.BZ2File(path)
    return gzip.GzipFile(path) if path.suffix == ".gz" else path.open("rb")


def _read_chunks(dump: _Dump) -> Iterator[bytes]:
    try:
        with _open_dump(dump.path) as stream:
            while chunk := stream.read(dump.chunk):
                yield chunk
    except (EOFError, OSError, zlib.error) as error:
        raise CorruptInput(f"{dump.path} is cut short or not compressed as its name says: {error}") from error


def _cut_rdf(dump: _Dump) -> Iterator[list[Candidate]]:
    """Yield the entities of each chunk, the prefixes in force before each; an entity is all from its first bytes on."""
    prefixes, buffer, number, searched = b"", b"\n", b"", 0
    for chunk in _read_chunks(dump):
        buffer += chunk
        start, batch = 0, list[Candidate]()
        for match in _ENTITY.finditer(buffer, searched):
            if match.group(1) == number:
                continue
            prefixes = _end_entity(batch, buffer[start : match.start() + 1], number, prefixes)
            number, start = match.group(1), match.start() + 1
        yield batch
        buffer = buffer[start:]
        searched = max(0, len(buffer) - _ENTITY_BYTES)
        if len(buffer) > dump.most_bytes:
            raise CorruptInput(f"{dump.path}: over {dump.most_bytes} bytes without an entity of Wikimedia Commons")
    if not buffer.rstrip().endswith(b".") or not buffer.endswith(b"\n"):
        raise CorruptInput(f"{dump.path} is cut short: it ends with {buffer[-40:]!r}; expected a statement's full stop")
    batch = []
    _end_entity(batch, buffer, number, prefixes)
    yield batch


def _end_entity(batch: list[Candidate], source: bytes, number: bytes, prefixes: bytes) -> bytes:
    """Add an entity to a batch and return the prefixes that hold after it."""
    cut = source.find(b"\n@prefix ") + 1 if number else 0
    entity = source[:cut] if cut else source
    if number:
        match = _CONTENT.search(entity)
        file = unquote_to_bytes(match.group(1).rpartition(b"/")[2]).decode("utf-8", "replace") if match else ""
        batch.append((normalise_file(file), prefixes, entity))
    if number and not cut:
        return prefixes
    found = b"".join(_PREFIXES.findall(source[cut:]))
    return found or prefixes


def _cut_lines(dump: _Dump) -> Iterator[list[Candidate]]:
    """Yield the entities of each chunk of a JSON dump: one a line, a comma after each but the last."""
    rest, last = b"", b""
    for chunk in _read_chunks(dump):
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > dump.most_bytes:
            raise CorruptInput(f"{dump.path}: a line of over {dump.most_bytes} bytes; expected one entity a line")
        batch = [line for line in (line.strip() for line in lines) if line]
        last = batch[-1] if batch else last
        yield [_name_line(line) for line in batch if line not in (b"[", b"]")]
    if rest.strip():
        last = rest.strip()
        yield [_name_line(last)] if last != b"]" else []
    if last != b"]":
        raise CorruptInput(f"{dump.path} is cut short: its last line is {last[-40:]!r}; expected a closing bracket")


def _name_line(line: bytes) -> Candidate:
    match = _TITLE.search(line)
    if match is None:
        return "", b"", line
    title = match.group(1)
    try:
        name = str(orjson.loads(b'"' + title + b'"')) if b"\\" in title else title.decode()
    except ValueError:  # not UTF-8, or an escape that is none: counted as unnamed
        return "", b"", line
    return normalise_file(name), b"", line.removesuffix(b",")


@dataclass(frozen=True, slots=True)
class WrittenImages:
    """What was written of pictures."""

    rows: int
    at_hand: list[tuple[str, str]]
    """(file, sha256) of every picture at hand."""
    media: dict[str, int]
    """How many entities of Commons' dump ended where; empty without one."""


def write_images(folder: Path, side: SideFiles, kept: Path) -> WrittenImages:
    """Write the table of pictures of a corpus whose pages are written.

    Args:
        folder: of the corpus.
        side: the files beside the dump.
        kept: folder for what a build begun anew need not make again.
    """
    pages = folder / "pages.parquet"
    media, counts = None, dict[str, int]()
    if side.media is not None:
        # Which pictures are wanted is decided by the dump and by all that lies beside it.
        files = [path for _, path in side.list_files()]
        media, counts = make_once(kept, "media", files, partial(_collect_media, side.media, pages))
    local = read_images(side.images, {}) if side.images is not None else []
    with TableWriter(folder, "images", IMAGES, mapped=True) as writer:
        for rows in merge_images(local, media, pages):
            writer.write_table(rows)
    return WrittenImages(writer.rows, [(image.file, image.sha256) for image in local], counts)


def _collect_media(dump: Path, pages: Path, place: Path) -> dict[str, int]:
    """Keep what Commons says of the pictures that articles lead with."""
    with pq.ParquetFile(pages) as source:
        batches = source.iter_batches(columns=["image"])
        wanted = hash_files(name for batch in batches for name in batch.column(0).to_pylist())
    return collect_media([dump], wanted, place / "media.parquet").summarise()
