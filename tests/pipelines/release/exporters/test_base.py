"""Pictures, tables and picture rules of exports."""

import io
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from pipelines.errors import CorruptInput
from pipelines.release.exporters.base import ExportedPicture, check_picture, read_table
from pipelines.release.exporters.rules import describe_picture_fault
from pipelines.release.rows import EmbeddedImage
from tests.pipelines.release.exporters.pictures import draw

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


@pytest.mark.parametrize(("content", "message"), [(b"<svg/>", "is not a JPEG"), (encode(1), "holds the bytes of")])
def test_a_picture_is_not_believed_to_be_what_it_is_called(content, message):
    with pytest.raises(CorruptInput, match=f"row 7: .*{message}"):
        check_picture(EmbeddedImage(bytes=content, path="a.svg"), "row 7")


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
    assert describe_picture_fault(draw(kind, width, height, **options)) == ""


@pytest.mark.parametrize("data", [b"", b"GIF89a", b"\xff\xd8", b"\xff\xd8\xff\xff", b"RIFF....WEBPVP8 ", b"BM"])
def test_what_is_no_picture_is_a_fault(data):
    assert "is not a PNG" in describe_picture_fault(data)


@pytest.mark.parametrize(("width", "height", "faults"), [(200, 1, 0), (201, 1, 1), (1, 201, 1)])
def test_a_picture_may_be_two_hundred_times_as_long_as_wide(width, height, faults):
    assert bool(describe_picture_fault(draw("PNG", width, height))) is bool(faults)


@given(
    st.sampled_from([b"\x89PNG\r\n\x1a\n", b"GIF89a", b"\xff\xd8", b"RIFF1234WEBPVP8X", b"RIFF1234WEBPVP8L"]),
    st.binary(),
)
def test_no_bytes_break_the_rule(head, rest):
    assert isinstance(describe_picture_fault(head + rest), str)


PICTURE = 100_000
GROUPS = 60


def test_memory_does_not_grow_with_a_table(tmp_path):
    picture = random.Random(7).randbytes(PICTURE)
    group = pa.table({"number": list(range(8)), "picture": [picture] * 8})
    with pq.ParquetWriter(tmp_path / "rows.parquet", group.schema, use_dictionary=False, compression="none") as writer:
        for _ in range(GROUPS):
            writer.write_table(group)
    before, most, rows = pa.total_allocated_bytes(), 0, 0
    for row in read_table(tmp_path / "rows.parquet"):
        assert row["picture"] == picture
        most = max(most, pa.total_allocated_bytes() - before)
        rows += 1
    assert rows == 8 * GROUPS
    assert most < 5 * 8 * PICTURE
