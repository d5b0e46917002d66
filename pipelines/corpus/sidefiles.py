"""Files that lie beside a dump, all of them optional.

``X-pages-articles*.xml.bz2`` goes with ``X-page_props.sql.gz`` and X's other tables. ``wikidatawiki-*-page.sql.gz``
with ``wikidatawiki-*-page_props.sql.gz``, or Wikidata's ``wikidata-*-all.json.*``, gives the numbers of sitelinks and
statements, ``commons-*-mediainfo.*`` what Commons knows of the pictures, ``images/images.tsv`` the pictures at hand.
"""

import re
from dataclasses import dataclass, fields
from pathlib import Path

from pipelines.errors import ConfigError

_PAGES = re.compile(r"-pages-(?:articles|meta)")
_DATE = re.compile(r"(?<!\d)(20\d\d)(\d\d)(\d\d)(?!\d)")
_SQL = ("sql.gz", "sql")
_JSON = ("json.bz2", "json.gz", "json")
_RDF = ("ttl.bz2", "ttl.gz", "ttl", "nt.bz2", "nt.gz", "nt")
_TABLES = ("page_props", "page", "redirect", "linktarget", "pagelinks", "categorylinks", "templatelinks")


@dataclass(frozen=True, slots=True)
class SideFiles:
    """Where the files beside a dump are; None for what is absent."""

    page_props: Path | None = None
    page: Path | None = None
    redirect: Path | None = None
    linktarget: Path | None = None
    pagelinks: Path | None = None
    categorylinks: Path | None = None
    templatelinks: Path | None = None
    wikidata_page: Path | None = None
    wikidata_page_props: Path | None = None
    wikidata_entities: Path | None = None
    """Wikidata's JSON dump."""
    media: Path | None = None
    """Commons' MediaInfo dump, RDF or JSON."""
    images: Path | None = None
    """The ``images.tsv``."""

    def list_files(self) -> list[tuple[str, Path]]:
        """Return (role, path) of the files present, in a fixed order."""
        found = ((field.name, getattr(self, field.name)) for field in fields(self))
        return [(role, path) for role, path in found if path is not None]


def find_side_files(dump: Path) -> SideFiles:
    """Find what lies beside a dump, by the prefix of its name.

    Raises:
        ConfigError: more than one snapshot of a file lies there, so that it is open which one is meant.
    """
    folder = dump.parent
    prefix = _PAGES.split(dump.name)[0] if _PAGES.search(dump.name) else dump.name.partition(".")[0]
    images = folder / "images" / "images.tsv"
    return SideFiles(
        **{table: _find_file(folder, (f"{prefix}-{table}",), _SQL) for table in _TABLES},
        wikidata_page=_find_file(folder, ("wikidatawiki-*-page",), _SQL),
        wikidata_page_props=_find_file(folder, ("wikidatawiki-*-page_props",), _SQL),
        wikidata_entities=_find_file(folder, ("wikidata-*-all", "latest-all"), _JSON),
        media=_find_file(folder, ("commons*-mediainfo", "latest-mediainfo"), (*_RDF, *_JSON)),
        images=images if images.is_file() else None,
    )


def read_snapshot(dump: Path) -> str:
    """Return the date in a dump's name as ``YYYY-MM-DD``, or an empty string."""
    match = _DATE.search(dump.name)
    return "-".join(match.groups()) if match else ""


def _find_file(folder: Path, patterns: tuple[str, ...], endings: tuple[str, ...]) -> Path | None:
    wanted = [f"{pattern}.{ending}" for pattern in patterns for ending in endings]
    found = sorted({path for name in wanted for path in folder.glob(name)})
    if len(found) > 1:
        names = ", ".join(path.name for path in found)
        raise ConfigError(f"{folder} holds {names}; expected one file of {patterns[0]}.{endings[0]}")
    return found[0] if found else None
