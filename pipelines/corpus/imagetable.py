"""The table of a corpus's pictures: those at hand, and those of which Commons says what they are."""

from pathlib import Path

import pyarrow.parquet as pq

from pipelines.corpus.commons import collect_media, hash_files
from pipelines.corpus.images import merge_images, read_images
from pipelines.corpus.sidefiles import SideFiles
from pipelines.corpus.tables import IMAGES, TableWriter


def write_images(folder: Path, scratch: Path, side: SideFiles) -> tuple[int, list[tuple[str, str]]]:
    """Write the table of pictures of a corpus whose pages are written.

    Returns:
        The number of rows, and (file, sha256) of every picture at hand.
    """
    pages = folder / "pages.parquet"
    media = None
    if side.media is not None:
        media = scratch / "media.parquet"
        images = pq.read_table(pages, columns=["image"])["image"]
        collect_media([side.media], hash_files(name.as_py() for name in images), media)
    local = read_images(side.images, {}) if side.images is not None else []
    with TableWriter(folder, "images", IMAGES, mapped=True) as writer:
        for rows in merge_images(local, media, pages):
            for name, absent in (("url", ""), ("bytes", 0)):
                rows = rows.set_column(rows.column_names.index(name), name, rows[name].fill_null(absent))
            writer.write_table(rows)
    return writer.rows, [(image.file, image.sha256) for image in local]
