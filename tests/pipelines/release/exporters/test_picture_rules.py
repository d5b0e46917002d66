import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.release.exporters.rules import find_picture_faults
from tests.pipelines.release.exporters.pictures import draw


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("PNG", {}),
        ("GIF", {}),
        ("JPEG", {}),
        ("JPEG", {"progressive": True, "comment": b"\xff\xc0 of no frame"}),
        ("WEBP", {}),
        ("WEBP", {"lossless": True}),
        ("WEBP", {"exif": b"Exif\x00\x00MM\x00*\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00"}),
    ],
)
@pytest.mark.parametrize(("width", "height"), [(64, 48), (1, 200), (300, 257)])
def test_each_kind_of_picture_is_known(kind, options, width, height):
    assert list(find_picture_faults(draw(kind, width, height, **options), "it")) == []


@pytest.mark.parametrize(
    "data", [None, b"", "text", b"GIF89a", b"\xff\xd8", b"\xff\xd8\xff\xff", b"RIFF....WEBPVP8 ", b"BM"]
)
def test_what_is_no_picture_is_a_fault(data):
    assert list(find_picture_faults(data, "it"))


@pytest.mark.parametrize(("width", "height", "faults"), [(200, 1, 0), (201, 1, 1), (1, 201, 1)])
def test_a_picture_may_be_two_hundred_times_as_long_as_wide(width, height, faults):
    assert len(list(find_picture_faults(draw("PNG", width, height), "it"))) == faults


@given(
    st.sampled_from([b"\x89PNG\r\n\x1a\n", b"GIF89a", b"\xff\xd8", b"RIFF1234WEBPVP8X", b"RIFF1234WEBPVP8L"]),
    st.binary(),
)
def test_no_bytes_break_the_rule(head, rest):
    assert len(list(find_picture_faults(head + rest, "it"))) <= 1
