"""Pictures of exports."""

import hashlib
import io

import pytest
from PIL import Image

from pipelines.errors import CorruptInput
from pipelines.release.exporters.base import check_picture
from pipelines.release.rows import EmbeddedImage

ORIENTATION = 0x0112


def encode(orientation=1, size=(40, 20)):
    buffer = io.BytesIO()
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    Image.new("RGB", size).save(buffer, "JPEG", exif=exif)
    return buffer.getvalue()


def embed(content):
    return EmbeddedImage(bytes=content, path=f"{hashlib.sha256(content).hexdigest()}.jpg")


@pytest.mark.parametrize(("orientation", "size"), [(1, (40, 20)), (3, (40, 20)), (6, (20, 40))])
def test_a_picture_is_measured_as_it_is_displayed(orientation, size):
    assert check_picture(embed(encode(orientation)), "row 7").size == size


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (EmbeddedImage(bytes=b"<svg/>", path="a.svg"), "is not a JPEG"),
        (EmbeddedImage(bytes=encode(), path="a.jpg"), "holds the bytes of"),
        (embed(encode()[:30]), "picture-undecodable"),
        (embed(encode(size=(401, 2))), "is 401 x 2"),
    ],
)
def test_a_picture_that_a_loader_would_not_take_is_refused_by_its_row(image, message):
    with pytest.raises(CorruptInput, match=f"row 7: .*{message}"):
        check_picture(image, "row 7")
