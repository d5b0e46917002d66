import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.services.clients.pages import cut_text, decode_page, find_encoding, is_html, read_plain, read_title


@pytest.mark.parametrize(
    ("body", "kind", "text"),
    [
        ("Zürich".encode(), "text/html; charset=utf-8", "Zürich"),
        ("Zürich".encode(), "text/html", "Zürich"),
        ("Zürich".encode("latin-1"), "text/html; charset=ISO-8859-1", "Zürich"),
        ("“Zürich”".encode("cp1252"), "text/html; charset=iso-8859-1", "“Zürich”"),
        ("“Zürich”".encode("cp1252"), "text/html", "“Zürich”"),
        ("日本".encode("shift_jis"), 'text/html; charset="Shift_JIS"', "日本"),
        ("日本".encode("gb18030"), "text/html; charset=gb2312", "日本"),
        (b'<meta charset="koi8-r">' + "мир".encode("koi8-r"), "text/html", '<meta charset="koi8-r">мир'),
        (codecs.BOM_UTF8 + "ä".encode(), "text/html; charset=latin-1", "ä"),
        (codecs.BOM_UTF16_LE + "ä".encode("utf-16-le"), "", "ä"),
        ("ä".encode(), "text/html; charset=nonsense", "ä"),
        ("ä".encode(), "text/html; charset=zlib", "ä"),
        (b"\xff\xfe", "text/html; charset=utf-8", ""),
    ],
)
def test_a_page_is_read_in_the_encoding_that_it_most_likely_has(body, kind, text):
    assert decode_page(body, {"Content-Type": kind}) == text


@pytest.mark.parametrize(
    "name", ["zlib", "rot13", "hex", "base64", "idna", "punycode", "utf-7", "unicode_escape", "mbcs"]
)
def test_what_is_no_encoding_of_pages_is_not_used(name):
    assert find_encoding(f"text/html; charset={name}") == ""


@given(st.binary(max_size=300), st.text(max_size=40))
def test_any_bytes_are_some_text(body, said):
    assert isinstance(decode_page(body, {"Content-Type": f"text/html; charset={said}"}), str)


@pytest.mark.parametrize(
    ("kind", "body", "expected"),
    [
        ("text/html", b"", True),
        ("application/xhtml+xml", b"", True),
        ("", b" \n<!DOCTYPE html>", True),
        ("", b"<html lang=en>", True),
        ("", b"%PDF", False),
        ("text/plain", b"<html>", False),
        ("image/svg+xml", b"<html>", False),
    ],
)
def test_html_is_told_by_its_type_or_where_there_is_none_by_its_beginning(kind, body, expected):
    assert is_html(kind, body) is expected


@given(st.text(alphabet="ab \n", max_size=60), st.integers(1, 50))
def test_a_text_is_cut_at_white_space_and_says_so(text, limit):
    cut = cut_text(text, limit)
    assert len(cut) <= limit + 2
    assert cut == text if len(text) <= limit else cut.endswith(" …")


def test_a_word_without_end_is_cut_in_its_middle():
    assert cut_text("a" * 100, 10) == "a" * 10 + " …"


def test_control_characters_are_left_out_of_plain_text():
    assert read_plain("\x00 a\x1b[31m\tb\u202e\nc\ud800 ") == "a[31m\tb\nc"


@given(st.text(alphabet="ab \n\x00", max_size=60), st.integers(1, 50))
def test_plain_text_is_cut_to_what_it_would_be_without_control_characters(text, limit):
    whole = text.rstrip().replace("\x00", "").lstrip()
    assert read_plain(text, limit) == cut_text(whole[: limit + 1], limit).rstrip()


def test_a_title_is_one_line():
    assert read_title(" Ada\n\tLovelace \x07") == "Ada Lovelace"
