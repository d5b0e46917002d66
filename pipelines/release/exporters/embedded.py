"""The pictures that a release holds in its rows; none is believed to be what it is called."""

import hashlib
from dataclasses import dataclass

from pipelines.errors import CorruptInput, RecordFailed
from pipelines.picturefiles.stripping import find_extension, strip_picture
from pipelines.release.rows import EmbeddedImage

FIRST_LYING = 5
"""From this orientation on, width and height change places."""


@dataclass(frozen=True, slots=True)
class ShownPicture:
    """A picture whose bytes were hashed again."""

    content: bytes
    sha256: str
    extension: str
    """From the bytes, never from a name."""

    @property
    def name(self) -> str:
        """``<sha256>.<extension>``."""
        return f"{self.sha256}.{self.extension}"

    def measure(self) -> tuple[int, int]:
        """Return width and height in pixels as it is displayed, without decoding it.

        Raises:
            CorruptInput: if it is a broken file.
        """
        try:
            bare = strip_picture(self.content)
        except RecordFailed as error:
            raise CorruptInput(f"picture {self.name}: {error}") from error
        return (bare.height, bare.width) if bare.orientation >= FIRST_LYING else (bare.width, bare.height)


def check_picture(image: EmbeddedImage, where: str) -> ShownPicture:
    """Return a row's picture.

    Raises:
        CorruptInput: if it is none, or its name is not that of its content; ``where`` names the row.
    """
    extension = find_extension(image.bytes)
    if not extension:
        raise CorruptInput(f"{where}: {image.path!r} is no JPEG, PNG, GIF or WebP picture")
    picture = ShownPicture(image.bytes, hashlib.sha256(image.bytes).hexdigest(), extension)
    if picture.name != image.path:
        raise CorruptInput(f"{where}: a picture called {image.path!r} holds the bytes of {picture.name}")
    return picture
