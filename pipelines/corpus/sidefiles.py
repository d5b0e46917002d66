"""Files that lie beside a dump: page properties, Wikidata's counts, and a table of images. All are optional.

``X-pages-articles*.xml.bz2`` goes with ``X-page_props.sql.gz``; ``wikidatawiki-*-page.sql.gz`` and
``wikidatawiki-*-page_props.sql.gz`` give the numbers of sitelinks and statements of each Qid; ``images/images.tsv``
lists the pictures at hand with author and licence.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

from pipelines.corpus.sqltables import read_table
from pipelines.errors import ConfigError

_PAGES = re.compile(r"-pages-(?:articles|meta)")
_DATE = re.compile(r"(?<!\d)(20\d\d)(\d\d)(\d\d)(?!\d)")
_WANTED_PROPERTIES = frozenset(["wikibase_item", "page_image_free", "page_image", "disambiguation"])


@dataclass(frozen=True, slots=True)
class SideFiles:
    """Where the files beside a dump are; None for what is absent."""

    page_props: Path | None
    wikidata_pages: Path | None
    wikidata_props: Path | None
    images: Path | None
    """The ``images.tsv``."""

    def list_paths(self) -> list[Path]:
        """Return the files present, in a fixed order."""
        return [p for p in (self.page_props, self.wikidata_pages, self.wikidata_props, self.images) if p is not None]


@dataclass(frozen=True, slots=True)
class PageProps:
    """Page properties by page id, and counts by Qid."""

    qid: dict[int, str] = field(default_factory=dict)
    image_free: dict[int, str] = field(default_factory=dict)
    """File name with spaces."""
    image: dict[int, str] = field(default_factory=dict)
    disambiguation: frozenset[int] = frozenset()
    sitelinks: dict[str, int] = field(default_factory=dict)
    statements: dict[str, int] = field(default_factory=dict)


def find_side_files(dump: Path) -> SideFiles:
    """Find what lies beside a dump, by the prefix of its name.

    Raises:
        ConfigError: more than one Wikidata snapshot lies there, so that it is open which one is meant.
    """
    prefix = _PAGES.split(dump.name)[0] if _PAGES.search(dump.name) else dump.name.partition(".")[0]
    images = dump.parent / "images" / "images.tsv"
    return SideFiles(
        page_props=_find_table(dump.parent, f"{prefix}-page_props"),
        wikidata_pages=_find_table(dump.parent, "wikidatawiki-*-page"),
        wikidata_props=_find_table(dump.parent, "wikidatawiki-*-page_props"),
        images=images if images.is_file() else None,
    )


def read_snapshot(dump: Path) -> str:
    """Return the date in a dump's name as ``YYYY-MM-DD``, or an empty string."""
    match = _DATE.search(dump.name)
    return "-".join(match.groups()) if match else ""


def read_props(files: SideFiles) -> PageProps:
    """Read the properties of all pages and the counts of all Qids."""
    found: dict[str, dict[int, str]] = {name: {} for name in _WANTED_PROPERTIES}
    if files.page_props is not None:
        for page_id, name, value in read_table(files.page_props, "page_props", ["pp_page", "pp_propname", "pp_value"]):
            if name in _WANTED_PROPERTIES and isinstance(page_id, int):
                found[str(name)][page_id] = _decode(value)
    sitelinks, statements = _read_counts(files)
    return PageProps(
        qid=found["wikibase_item"],
        image_free={page: name.replace("_", " ") for page, name in found["page_image_free"].items()},
        image={page: name.replace("_", " ") for page, name in found["page_image"].items()},
        disambiguation=frozenset(found["disambiguation"]),
        sitelinks=sitelinks,
        statements=statements,
    )


def _read_counts(files: SideFiles) -> tuple[dict[str, int], dict[str, int]]:
    counts: dict[str, dict[str, int]] = {"wb-sitelinks": {}, "wb-claims": {}}
    if files.wikidata_pages is not None and files.wikidata_props is not None:
        qids = {
            page_id: _decode(title)
            for page_id, namespace, title in read_table(
                files.wikidata_pages, "page", ["page_id", "page_namespace", "page_title"]
            )
            if namespace == 0
        }
        columns = ["pp_page", "pp_propname", "pp_value"]
        for page_id, name, value in read_table(files.wikidata_props, "page_props", columns):
            if name in counts and page_id in qids and _decode(value).isdecimal():
                counts[str(name)][qids[page_id]] = int(_decode(value))
    return counts["wb-sitelinks"], counts["wb-claims"]


def _find_table(folder: Path, pattern: str) -> Path | None:
    found = sorted([*folder.glob(f"{pattern}.sql.gz"), *folder.glob(f"{pattern}.sql")])
    if len(found) > 1:
        raise ConfigError(
            f"{folder} holds {', '.join(path.name for path in found)}; expected one file of {pattern}.sql.gz"
        )
    return found[0] if found else None


def _decode(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
