import io

import pytest
from PIL import Image

from pipelines.errors import CorruptInput
from pipelines.release.exporters.base import ExportedPicture, check_picture
from pipelines.release.rows import EmbeddedImage

ORIENTATION = 0x0112


def encode(orientation):
    buffer = io.BytesIO()
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    Image.new("RGB", (40, 20)).save(buffer, "JPEG", exif=exif)
    return buffer.getvalue()


@pytest.mark.parametrize(("orientation", "size"), [(1, (40, 20)), (3, (40, 20)), (6, (20, 40))])
def test_a_picture_is_measured_as_it_is_displayed(orientation, size):
    assert ExportedPicture(encode(orientation), "", "jpg").measure() == size


def test_a_picture_that_ends_early_has_no_size():
    with pytest.raises(CorruptInput, match="picture-undecodable"):
        ExportedPicture(encode(1)[:30], "0" * 64, "jpg").measure()


@pytest.mark.parametrize(("content", "message"), [(b"<svg/>", "is no JPEG"), (encode(1), "holds the bytes of")])
def test_a_picture_is_not_believed_to_be_what_it_is_called(content, message):
    with pytest.raises(CorruptInput, match=f"row 7: .*{message}"):
        check_picture(EmbeddedImage(bytes=content, path="a.svg"), "row 7")
