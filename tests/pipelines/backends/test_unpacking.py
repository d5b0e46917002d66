import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.services.clients.http import Bomb, Unpackable, unpack_body

PACKERS = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    " GZIP ": gzip.compress,
    "": bytes,
    "identity": bytes,
}


def pack_bare(data):
    """Pack as some servers do that leave the header out."""
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


@given(st.binary(max_size=2000), st.sampled_from(sorted(PACKERS)))
def test_what_was_packed_is_unpacked(data, packing):
    assert unpack_body(PACKERS[packing](data), packing, 2000) == data


@given(st.binary(max_size=2000))
def test_deflate_without_its_header_is_unpacked(data):
    assert unpack_body(pack_bare(data), "deflate", 2000) == data


def test_every_member_of_a_gzip_body_is_unpacked():
    assert unpack_body(gzip.compress(b"one ") + gzip.compress(b"two"), "gzip", 10) == b"one two"


@pytest.mark.parametrize("packing", ["gzip", "deflate"])
def test_a_bomb_is_not_unpacked_beyond_the_bound(packing):
    with pytest.raises(Bomb, match="1,000"):
        unpack_body(PACKERS[packing](bytes(1 << 24)), packing, 1000)
    assert len(unpack_body(PACKERS[packing](bytes(1000)), packing, 1000)) == 1000


def test_many_small_members_are_a_bomb_too():
    with pytest.raises(Bomb):
        unpack_body(gzip.compress(bytes(600)) * 2, "gzip", 1000)


def test_a_million_empty_members_are_not_unpacked_one_by_one():
    with pytest.raises(Bomb, match="over 256 parts"):
        unpack_body(gzip.compress(b"") * 400_000, "gzip", 1 << 23)


def test_nothing_is_nothing_however_it_was_packed():
    assert unpack_body(b"", "gzip", 10) == b""


@pytest.mark.parametrize("packing", ["gzip", "deflate"])
@given(st.data())
def test_a_body_that_breaks_off_is_refused(packing, data):
    whole = PACKERS[packing](b"some words that are packed")
    cut = data.draw(st.integers(1, len(whole) - 1))
    with pytest.raises(Unpackable):
        unpack_body(whole[:cut], packing, 1000)


@pytest.mark.parametrize("packing", ["br", "zstd", "gzip, gzip", "compress"])
def test_a_packing_that_was_not_asked_for_is_refused(packing):
    with pytest.raises(Unpackable, match="asked for was gzip, deflate"):
        unpack_body(b"x", packing, 1000)


def test_what_is_not_packed_is_refused():
    with pytest.raises(Unpackable, match="cannot be unpacked"):
        unpack_body(b"plain text", "gzip", 1000)
