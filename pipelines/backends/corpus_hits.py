"""Pages of the corpus that a search by picture found, each with a small copy of its picture."""

import asyncio
from collections.abc import Sequence

from pipelines.agent.results import Thumbnails
from pipelines.backends.local_pages import make_page_url
from pipelines.backends.protocols import ImageHit
from pipelines.corpus.plaintext import lead_paragraph
from pipelines.corpus.store import Corpus
from pipelines.pictures import PictureSource
from schemas.groundings import Picture

Found = tuple[str, str, float]
"""Title of a page, file name of the picture that was found on it, distance."""


async def make_hits(corpus: Corpus, found: Sequence[Found], thumbnails: Thumbnails | None) -> tuple[ImageHit, ...]:
    """Return pages as hits, the first paragraph of each as its snippet.

    Args:
        corpus: the pages and the pictures.
        found: in order.
        thumbnails: makes the small copies, with author and licence of the picture; None: there are none.

    Raises:
        Unavailable: if a picture is not at hand any more, or its copy cannot be written.
    """
    small: list[Picture | None] = [None] * len(found)
    if thumbnails is not None:
        small = await asyncio.to_thread(_make_thumbnails, corpus, found, thumbnails)
    return tuple(_make_hit(corpus, one, picture) for one, picture in zip(found, small, strict=True))


def _make_hit(corpus: Corpus, found: Found, thumbnail: Picture | None) -> ImageHit:
    title, _, distance = found
    node = corpus.find(title)
    snippet = "" if node is None else lead_paragraph(corpus.text(node))
    return ImageHit(make_page_url(corpus.manifest.base_url, title), title, snippet, distance, thumbnail)


def _make_thumbnails(corpus: Corpus, found: Sequence[Found], thumbnails: Thumbnails) -> list[Picture | None]:
    return [_make_thumbnail(corpus, file, thumbnails) for _, file, _ in found]


def _make_thumbnail(corpus: Corpus, file: str, thumbnails: Thumbnails) -> Picture | None:
    image = corpus.image(file)
    if image is None:
        return None
    source = PictureSource(image.file, image.author, image.licence, image.licence_url, image.source_url)
    return thumbnails.make(corpus.image_path(file), image.sha256, source)
