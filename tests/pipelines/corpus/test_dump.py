import bz2

import pytest

from pipelines.corpus.dump import read_pages, read_site
from pipelines.errors import ConfigError, CorruptInput


def test_pages_come_back_as_written(write_dump):
    path = write_dump(("A & B", 'x < y &amp; [[C]]\n"q"'), ("User:D", "hi", 2))
    first, second = read_pages(path)
    assert (first.page_id, first.namespace, first.title, first.text) == (1, 0, "A & B", 'x < y &amp; [[C]]\n"q"')
    assert (first.revision, first.timestamp, first.redirect) == (1001, "2025-01-02T00:00:00Z", None)
    assert (second.namespace, second.title) == (2, "User:D")


def test_plain_xml_and_single_stream_give_the_same_pages(write_dump, tmp_path):
    pages = [("A", "one"), ("B", "two")]
    plain = write_dump(*pages, name="a.xml")
    single = tmp_path / "single.xml.bz2"
    single.write_bytes(bz2.compress(plain.read_bytes()))
    assert list(read_pages(plain)) == list(read_pages(single)) == list(read_pages(write_dump(*pages)))


def test_redirect_tag_wins_and_a_written_redirect_counts_without_it(write_dump):
    path = write_dump(("A", "#REDIRECT [[x]]", 0, "B & C"), ("D", "#redirect: [[E_f#part|g]]"), ("G", "see [[H]]"))
    assert [page.redirect for page in read_pages(path)] == ["B & C", "E f", None]


def test_site_header_is_read(write_dump):
    site = read_site(write_dump(("A", "")))
    assert (site.dbname, site.base_url, site.language) == ("enwiki", "https://en.wikipedia.org/wiki/", "en")
    assert (site.case, site.namespaces[:2]) == ("first-letter", ((0, ""), (4, "Wikipedia")))


def test_a_dump_without_siteinfo_gets_defaults(write_dump):
    path = write_dump(("A", "text"), header="<mediawiki>\n")
    assert read_site(path).case == "first-letter"
    assert (6, "File") in read_site(path).namespaces
    assert [page.title for page in read_pages(path)] == ["A"]


@pytest.mark.parametrize("kept", [0.3, 0.6, 0.9])
def test_a_cut_file_is_refused_by_name(write_dump, kept):
    path = write_dump(*[(f"T{number}", "text " * 50) for number in range(20)])
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * kept)])
    with pytest.raises(CorruptInput, match=path.name):
        list(read_pages(path))


def test_a_missing_last_stream_is_noticed(write_dump):
    path = write_dump(("A", "text"))
    path.write_bytes(path.read_bytes().removesuffix(bz2.compress(b"</mediawiki>\n")))
    with pytest.raises(CorruptInput, match="does not end with </mediawiki>"):
        list(read_pages(path))


@pytest.mark.parametrize("content", [b"PK\x03\x04 zip", b"", b"BZhello world"])
def test_what_is_not_bz2_is_refused(tmp_path, content):
    path = tmp_path / "x.xml.bz2"
    path.write_bytes(content)
    with pytest.raises(CorruptInput, match="expected a MediaWiki export"):
        list(read_pages(path))


@pytest.mark.parametrize("content", ["<html></html>", "", "<!DOCTYPE x [<!ENTITY a 'b'>]><mediawiki></mediawiki>"])
def test_what_is_no_export_is_refused(tmp_path, content):
    path = tmp_path / "x.xml"
    path.write_text(content)
    with pytest.raises(CorruptInput):
        list(read_pages(path))


def test_a_missing_dump_is_a_configuration_error(tmp_path):
    with pytest.raises(ConfigError, match="no dump at"):
        read_site(tmp_path / "absent.xml.bz2")


def test_entities_are_decoded_once(write_dump, tmp_path):
    path = write_dump(("A", "X"), name="a.xml")
    path.write_text(path.read_text().replace(">X<", ">&amp;lt; &#65;&#x42; &lol; &#x110000;<"))
    assert next(read_pages(path)).text == "&lt; AB &lol; \ufffd"
