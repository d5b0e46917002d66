import io

import pytest
from PIL import Image

from pipelines.agent.tools import cut_picture
from pipelines.errors import RecordFailed
from pipelines.pictures import open_pixels


def draw_halves(extension="PNG", orientation=1):
    """A picture, 200 by 100 pixels as stored: left half red, right half blue."""
    image = Image.new("RGB", (200, 100), (255, 0, 0))
    image.paste((0, 0, 255), (100, 0, 200, 100))
    exif = Image.Exif()
    exif[0x0112] = orientation
    target = io.BytesIO()
    image.save(target, extension, exif=exif)
    return target.getvalue()


@pytest.mark.parametrize(
    ("box", "unit"),
    [((500, 0, 1000, 1000), "normalised"), ((100, 0, 200, 100), "pixels"), ((99.6, 0, 200, 100), "pixels")],
)
def test_both_units_cut_the_same_part(box, unit):
    part = open_pixels(cut_picture(draw_halves(), box, unit))
    assert part.size == (100, 100)
    assert part.getcolors() == [(10_000, (0, 0, 255))]


@pytest.mark.parametrize("box", [(0, 0, 201, 100), (0, 0, 200, 101)])
def test_pixels_beyond_the_picture_are_refused_with_its_size(box):
    with pytest.raises(RecordFailed, match="200 x 100"):
        cut_picture(draw_halves(), box, "pixels")
