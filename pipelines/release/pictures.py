"""Pictures from the workspace's image store, believed only after their bytes were hashed again."""

import re
from pathlib import Path

from pipelines.errors import CorruptInput
from pipelines.pictures import PictureStore
from schemas.groundings import Picture

SHA256 = re.compile(r"[0-9a-f]{64}")
EXTENSION = re.compile(r"[a-z0-9]{1,8}")


def name_picture(picture: Picture) -> str:
    """Return ``<sha256>.<extension>``.

    Raises:
        CorruptInput: if a part could not be a file's name in the store.
    """
    if not SHA256.fullmatch(picture.sha256) or not EXTENSION.fullmatch(picture.extension):
        raise CorruptInput(
            f"picture {picture.file!r}: {picture.sha256!r}.{picture.extension!r} is no name in the image store; "
            "it takes 64 hex digits and a short extension"
        )
    return f"{picture.sha256}.{picture.extension}"


def locate_picture(root: Path, picture: Picture) -> Path:
    """Return the picture's path under the workspace's ``images/<ab>/``.

    Raises:
        CorruptInput: if there is no such file.
    """
    name_picture(picture)
    path = PictureStore(root / "images").path(picture.sha256, picture.extension)
    if not path.is_file():
        raise CorruptInput(f"picture {picture.file!r}: {path} is missing from the image store")
    return path


def read_picture(root: Path, picture: Picture) -> bytes:
    """Return the picture's bytes, hashed again.

    Raises:
        CorruptInput: if the file is missing or its bytes are not those its name promises.
    """
    locate_picture(root, picture)
    return PictureStore(root / "images").read(picture)
