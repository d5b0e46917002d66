"""The table of a corpus's pictures: those at hand, and those of which Commons says what they are."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq

from pipelines.corpus.commons import collect_media, hash_files
from pipelines.corpus.images import merge_images, read_images
from pipelines.corpus.sidefiles import SideFiles
from pipelines.corpus.sideproperties import make_once
from pipelines.corpus.tables import IMAGES, TableWriter


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
