"""Streams the SQL tables that say something of a page into small tables of what is wanted, ready to be joined."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pipelines.corpus.sqlcolumns import Block, read_columns, require_titles
from pipelines.corpus.sqlsource import is_by_number, list_columns
from pipelines.errors import ConfigError

FLAGS = ("disambiguation", "set_index")
PROPERTIES = pa.schema([("page_id", pa.int64()), ("name", pa.string()), ("value", pa.string())])
"""A property of a page: qid, image_free, image, or one of ``FLAGS`` with an empty value."""
ENTITY_PAGES = pa.schema([("page_id", pa.int64()), ("number", pa.int64())])
"""A page of Wikidata, and the number in its Qid."""
COUNTS = pa.schema([("page_id", pa.int64()), ("name", pa.string()), ("value", pa.int32())])
"""A count of a page of Wikidata: sitelinks, statements or identifiers."""

_PROPERTY_NAMES = {
    b"wikibase_item": "qid",
    b"page_image_free": "image_free",
    b"page_image": "image",
    b"disambiguation": "disambiguation",
}
_COUNT_NAMES = {b"wb-sitelinks": "sitelinks", b"wb-claims": "statements", b"wb-identifiers": "identifiers"}
_QID = "^Q[1-9][0-9]{0,17}$"
_COUNT = "^[0-9]{1,9}$"
_TEMPLATE, _CATEGORY = 10, 14

# Tracking categories of English Wikipedia; every disambiguation template and every set index template adds its own.
_CATEGORIES: Mapping[str, tuple[str, ...]] = {
    "disambiguation": ("All_disambiguation_pages", "All_article_disambiguation_pages"),
    "set_index": ("All_set_index_articles",),
}
# Templates of English Wikipedia, for a run without categories. A page that uses one under another name also counts as
# using the name it redirects to, so only the templates' own names are here. Lists of people with one name, of mountains
# or of ships are set indexes: each line links to another subject, as on a disambiguation page.
_TEMPLATES: Mapping[str, tuple[str, ...]] = {
    "disambiguation": (
        "Disambiguation",
        "Airport_disambiguation",
        "Biology_disambiguation",
        "Call_sign_disambiguation",
        "Caselaw_disambiguation",
        "Chinese_title_disambiguation",
        "Church_disambiguation",
        "Genus_disambiguation",
        "Geodis",
        "Hospital_disambiguation",
        "Human_name_disambiguation",
        "Letter–number_combination_disambiguation",
        "Mathematical_disambiguation",
        "Military_unit_disambiguation",
        "Number_disambiguation",
        "Place_name_disambiguation",
        "Road_disambiguation",
        "School_disambiguation",
        "Species_Latin_name_abbreviation_disambiguation",
        "Species_Latin_name_disambiguation",
        "Station_disambiguation",
    ),
    "set_index": (
        "Set_index_article",
        "Surname",
        "Given_name",
        "Nickname",
        "Animal_common_name",
        "Chemistry_index",
        "Fungus_common_name",
        "Lake_index",
        "Locomotive_index",
        "Media_set_index",
        "Molecular_formula_index",
        "Mountain_index",
        "Plant_common_name",
        "River_index",
        "Road_index",
        "Ship_index",
        "Sport_index",
        "Storm_index",
    ),
}


@dataclass(frozen=True, slots=True)
class MemberTable:
    """A table that says which pages use a template or are in a category."""

    table: str
    prefix: str
    """Of the names of its columns."""
    title: str
    """Column of the title in the layouts that have one."""
    namespace: int
    titles: Mapping[str, tuple[str, ...]]
    """With underscores, by flag."""
    title_filters: Mapping[str, int]
    """What other columns must be, in the layouts with titles."""
    number_filters: Mapping[str, int]
    """What other columns must be, in the layout with numbers of link targets."""


CATEGORY_LINKS = MemberTable("categorylinks", "cl", "cl_to", _CATEGORY, _CATEGORIES, {}, {})
TEMPLATE_LINKS = MemberTable(
    "templatelinks",
    "tl",
    "tl_title",
    _TEMPLATE,
    _TEMPLATES,
    {"tl_namespace": _TEMPLATE, "tl_from_namespace": 0},
    {"tl_from_namespace": 0},
)


def read_properties(path: Path) -> Iterator[pa.Table]:
    """Yield the properties in a wiki's page_props; file names have spaces, and a Qid that is none is left out."""
    for pages, names, values in _read_named(path, _PROPERTY_NAMES):
        texts = _decode(pc.replace_substring(values, b"_", b" "))
        fits = pc.or_(pc.not_equal(names, "qid"), pc.match_substring_regex(texts, _QID))
        yield pa.table([pages, names, texts], schema=PROPERTIES).filter(fits)


def read_counts(path: Path) -> Iterator[pa.Table]:
    """Yield the counts in Wikidata's page_props; a value that is no count is left out."""
    for pages, names, values in _read_named(path, _COUNT_NAMES):
        fits = pc.match_substring_regex(values, _COUNT)
        numbers = values.filter(fits).cast(pa.string()).cast(pa.int32())
        yield pa.table([pages.filter(fits), names.filter(fits), numbers], schema=COUNTS)


def read_entity_pages(path: Path) -> Iterator[pa.Table]:
    """Yield the entities in Wikidata's page table."""
    for block in read_columns(path, "page", ["page_id", "page_namespace"], ["page_title"]):
        fits = pc.and_(pa.array(block.integers[1] == 0), pc.match_substring_regex(block.texts[0], _QID))
        numbers = pc.binary_replace_slice(block.texts[0].filter(fits), 0, 1, b"").cast(pa.string()).cast(pa.int64())
        yield pa.table([pa.array(block.integers[0]).filter(fits), numbers], schema=ENTITY_PAGES)


def read_flags(path: Path, kind: MemberTable, linktarget: Path | None) -> Iterator[pa.Table]:
    """Yield flags of pages, as rows of ``PROPERTIES``.

    Args:
        path: a table in any of its layouts.
        kind: which table it is.
        linktarget: needed for the layout that has numbers in place of titles, in all rows or in some.

    Raises:
        ConfigError: it is needed and not given, or some rows have a title and others a number; or as ``read_columns``.
        CorruptInput: as ``read_columns``.
    """
    columns, number = list_columns(path, kind.table), f"{kind.prefix}_target_id"
    by_title = not is_by_number(columns, kind.title, number, linktarget is not None)
    if not by_title and linktarget is None:
        raise ConfigError(f"{path} names its targets by number; expected a linktarget table beside it")
    filters = kind.title_filters if by_title else kind.number_filters
    numbers = {} if by_title or linktarget is None else _read_numbers(linktarget, kind)
    integers = [f"{kind.prefix}_from", *filters, *([] if by_title else [number])]
    for block in read_columns(path, kind.table, integers, [kind.title] if by_title else []):
        if by_title and number in columns:
            require_titles(path, kind.title, block.texts[0])
        fits = np.ones(len(block.integers[0]), dtype=np.bool_)
        for values, expected in zip(block.integers[1:], filters.values(), strict=False):
            fits &= values == expected
        for flag in FLAGS:
            member = _match_titles(block, kind.titles[flag]) if by_title else np.isin(block.integers[-1], numbers[flag])
            pages = block.integers[0][fits & member]
            if len(pages):
                yield pa.table([pages, [flag] * len(pages), [""] * len(pages)], schema=PROPERTIES)


def _read_named(path: Path, names: Mapping[bytes, str]) -> Iterator[tuple[pa.Array, pa.Array, pa.Array]]:
    """Yield page ids, our names and values of the properties of these names."""
    wanted = pa.array(list(names), type=pa.binary())
    ours = pa.array(list(names.values()))
    for block in read_columns(path, "page_props", ["pp_page"], ["pp_propname", "pp_value"]):
        places = pc.index_in(block.texts[0], value_set=wanted)
        fits = pc.and_(places.is_valid(), block.texts[1].is_valid())
        yield pa.array(block.integers[0]).filter(fits), ours.take(places.filter(fits)), block.texts[1].filter(fits)


def _read_numbers(path: Path, kind: MemberTable) -> dict[str, NDArray[np.int64]]:
    """Return the numbers of the link targets of each flag."""
    found: dict[str, list[int]] = {flag: [] for flag in FLAGS}
    for block in read_columns(path, "linktarget", ["lt_id", "lt_namespace"], ["lt_title"]):
        here = block.integers[1] == kind.namespace
        for flag in FLAGS:
            found[flag] += block.integers[0][here & _match_titles(block, kind.titles[flag])].tolist()
    return {flag: np.array(numbers, dtype=np.int64) for flag, numbers in found.items()}


def _match_titles(block: Block, titles: tuple[str, ...]) -> NDArray[np.bool_]:
    wanted = pa.array([title.encode() for title in titles], type=pa.binary())
    found: NDArray[np.bool_] = pc.is_in(block.texts[0], value_set=wanted).to_numpy(zero_copy_only=False)
    return found


def _decode(values: pa.BinaryArray) -> pa.StringArray:
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([value.decode("utf-8", "replace") for value in values.to_pylist()])
