import io

import pytest
from PIL import Image

from pipelines.agent.observations import SIDE, Thumbnails, shrink_picture
from pipelines.errors import RecordFailed, Unavailable
from pipelines.pictures import PictureStore
from tests.pipelines.agent.trail import SOURCE


def write_picture(path, size=(640, 480), form="JPEG", **settings):
    image = Image.linear_gradient("L").resize(size).convert("RGB")
    image.save(path, form, **settings)
    return path


@pytest.mark.parametrize(("size", "form"), [((1600, 900), "JPEG"), ((900, 1600), "PNG"), ((300, 300), "WEBP")])
def test_a_thumbnail_is_a_jpeg_of_at_most_the_side_with_the_rights_of_its_picture(tmp_path, size, form):
    path = write_picture(tmp_path / "picture", size, form)
    made = Thumbnails(PictureStore(tmp_path)).make(path, "sha", SOURCE)
    assert (made.extension, max(made.width, made.height)) == ("jpg", SIDE)
    assert (made.file, made.author, made.licence) == (SOURCE.file, SOURCE.author, SOURCE.licence)
    assert (made.licence_url, made.source_url) == (SOURCE.licence_url, SOURCE.source_url)
    assert PictureStore(tmp_path).read(made)


def test_a_thumbnail_is_upright_and_tells_nothing_of_the_camera(tmp_path):
    exif = Image.Exif()
    exif[0x0112], exif[0x010F] = 6, "A camera"
    data = write_picture(tmp_path / "picture", (640, 320), exif=exif).read_bytes()
    small = Image.open(io.BytesIO(shrink_picture(data)))
    assert small.size == (SIDE // 2, SIDE)
    assert not small.getexif()


def test_a_picture_that_cannot_be_decoded_has_none_and_one_that_is_gone_is_away(tmp_path):
    (tmp_path / "broken").write_bytes(b"\xff\xd8\xff no picture")
    thumbnails = Thumbnails(PictureStore(tmp_path))
    assert thumbnails.make(tmp_path / "broken", "sha", SOURCE) is None
    with pytest.raises(Unavailable, match="bring it back"):
        thumbnails.make(tmp_path / "gone", "other", SOURCE)
    with pytest.raises(RecordFailed):
        shrink_picture(b"no picture")
