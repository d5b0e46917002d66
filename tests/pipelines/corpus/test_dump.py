import bz2
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.corpus.dump import list_parts, read_pages, read_site
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


@pytest.mark.parametrize("word", ["REDIRECT", "Weiterleitung", "REDIRECCIÓN", "ПЕРЕНАПРАВЛЕНИЕ", "転送"])
def test_a_redirect_is_known_in_the_words_of_any_edition(write_dump, word):
    (page,) = read_pages(write_dump(("A", f"\n#{word} [[B c#d|e]]")))
    assert page.redirect == "B c"


@pytest.mark.parametrize("text", ["#REDIRECTED [[B]]", "x #REDIRECT [[B]]", "#REDIRECT B", "# REDIRECT [[B]]"])
def test_what_only_looks_like_a_redirect_is_an_article(write_dump, text):
    assert [page.redirect for page in read_pages(write_dump(("A", text)))] == [None]


@pytest.mark.parametrize("version", ["0.10", "0.11"])
def test_both_schemas_are_read_with_and_without_siteinfo(write_dump, version):
    header = f'<mediawiki xmlns="http://www.mediawiki.org/xml/export-{version}/" version="{version}" xml:lang="de">\n'
    body = "<siteinfo><dbname>dewiki</dbname></siteinfo>\n"
    for name, start in (("with.xml", header + body), ("without.xml", header)):
        path = write_dump(("A", "one"), ("B", "two"), header=start, name=name)
        if version == "0.10":
            path.write_text(path.read_text().replace("<origin>5</origin>", ""))
        assert [(page.title, page.text) for page in read_pages(path)] == [("A", "one"), ("B", "two")]
        assert read_site(path).language == "de"


@pytest.mark.parametrize("text", ["#redirect :[[A]]", "#redirect : [[:A]]", "#redirect\n[[A#b]]", "#REDIRECT[[ A ]]"])
def test_spaces_and_a_colon_may_stand_in_a_written_redirect(write_dump, text):
    assert [page.redirect for page in read_pages(write_dump(("X", text)))] == ["A"]


@pytest.mark.parametrize("end", ["x", ":", "[", "[["])
def test_a_redirect_that_never_names_a_page_takes_linear_time(write_dump, end):
    path = write_dump(("A", "#redirect" + " " * 200_000 + end))
    started = time.process_time()
    assert [page.redirect for page in read_pages(path)] == [None]
    assert time.process_time() - started < 2


def test_pages_without_text_take_linear_time(tmp_path):
    path = tmp_path / "x.xml.bz2"
    page = b"<page><title>A</title><ns>0</ns><id>1</id></page>\n"
    path.write_bytes(bz2.compress(b"<mediawiki>" + page * 80_000 + b"</mediawiki>"))
    started = time.process_time()
    assert sum(1 for _ in read_pages(path)) == 80_000
    assert time.process_time() - started < 5


@given(st.lists(st.booleans(), max_size=30), st.sampled_from(["", "\n"]))
def test_pages_with_and_without_text_keep_what_is_theirs(tmp_path_factory, have_text, space):
    path = tmp_path_factory.mktemp("mixed") / "x.xml"
    pages = [
        f"<page><title>T{number}</title><ns>0</ns><id>{number}</id>"
        + (f"<revision><id>1</id><text>text {number}</text></revision></page>" if has_text else "</page>")
        for number, has_text in enumerate(have_text)
    ]
    path.write_text(space.join(["<mediawiki>", *pages, "</mediawiki>"]))
    expected = [(number, f"text {number}" if has_text else "") for number, has_text in enumerate(have_text)]
    assert [(page.page_id, page.text) for page in read_pages(path)] == expected


@pytest.mark.parametrize("number", ["\u00b2", "\u0663", "--5", "-", "", "x", "5 5", "1" * 19, "9" * 5000])
@pytest.mark.parametrize("element", ["ns", "id"])
def test_a_page_with_no_number_where_one_belongs_is_refused(write_dump, element, number):
    path = write_dump(("A", "X"), name="a.xml")
    whole = path.read_text()
    start = whole.index(f"<{element}>") + len(element) + 2
    path.write_text(whole[:start] + number + whole[whole.index("<", start) :])
    with pytest.raises(CorruptInput, match=f"a.xml has '{number[:5]}.*' as a <{element}>; expected a number"):
        list(read_pages(path))


def test_a_page_id_is_not_negative_and_a_namespace_may_be(write_dump):
    path = write_dump(("A", "X"), name="a.xml")
    whole = path.read_text()
    path.write_text(whole.replace("<ns>0</ns>", "<ns>-1</ns>"))
    assert [page.namespace for page in read_pages(path)] == [-1]
    path.write_text(whole.replace("<id>1</id>", "<id>-1</id>", 1))
    with pytest.raises(CorruptInput, match="'-1' as a <id>"):
        list(read_pages(path))


@pytest.mark.parametrize("key", ["", "x", "--1", "1" * 5000])
def test_a_namespace_without_a_number_is_refused(write_dump, key):
    header = f'<mediawiki><siteinfo><namespaces><namespace key="{key}">A</namespace></namespaces></siteinfo>'
    with pytest.raises(CorruptInput, match=r"as a namespace key; expected a number"):
        read_site(write_dump(("A", ""), header=header))


MAIN = '<text bytes="4" xml:space="preserve">main</text>'
EXTRA = '<content><role>mediainfo</role><model>wikibase-mediainfo</model><text bytes="2">{}</text></content>'
NAMED = "<content><role>main</role><model>wikitext</model><text>main</text></content>"


@pytest.mark.parametrize(
    ("slots", "text"),
    [(MAIN + EXTRA, "main"), (EXTRA + NAMED, "main"), (EXTRA, ""), ('<text bytes="4" deleted="deleted" />', "")],
)
def test_the_text_of_a_page_is_its_main_slot(write_dump, slots, text):
    path = write_dump(("A", "X"), name="a.xml")
    path.write_text(path.read_text().replace('<text bytes="1" xml:space="preserve">X</text>', slots))
    assert [page.text for page in read_pages(path)] == [text]


def test_the_header_says_which_namespaces_keep_their_first_letter(write_dump):
    header = """<mediawiki xml:lang="de"><siteinfo><case>case-sensitive</case><namespaces>
      <namespace key="0" case="case-sensitive" /><namespace key="2" case="first-letter">Benutzer</namespace>
      <namespace key="10" case="case-sensitive">Vorlage &amp; B</namespace></namespaces></siteinfo>"""
    site = read_site(write_dump(("A", ""), header=header))
    assert site.case_sensitive == {0, 10}
    assert site.namespaces == ((0, ""), (2, "Benutzer"), (10, "Vorlage & B"))


def test_an_empty_export_has_no_pages(tmp_path):
    path = tmp_path / "x.xml"
    path.write_text("<mediawiki>\n<siteinfo></siteinfo>\n</mediawiki>\n")
    assert list(read_pages(path)) == []


def test_a_page_without_text_ends_where_it_ends(write_dump):
    path = write_dump(("A", "one"), ("B", "two"), name="a.xml")
    path.write_text(path.read_text().replace('<text bytes="1" xml:space="preserve">one</text>', ""))
    assert [(page.title, page.text) for page in read_pages(path)] == [("A", ""), ("B", "two")]


def write_parts(folder, *names):
    for name in names:
        (folder / f"enwiki-20250101-pages-articles-multistream{name}").write_bytes(b"")
    return [folder / f"enwiki-20250101-pages-articles-multistream{name}" for name in names]


def test_parts_are_listed_by_their_first_page(tmp_path):
    late, first, split, middle = write_parts(
        tmp_path, "10.xml-p900p999.bz2", "1.xml-p1p5.bz2", "10.xml-p1000p1200.bz2", "2.xml-p7p800.bz2"
    )
    rest = write_parts(tmp_path, *[f"{number}.xml-p{number + 800}p{number + 800}.bz2" for number in range(3, 10)])
    write_parts(tmp_path, "-index1.txt-p1p5.bz2", "1.xml-p1p5.bz2.tmp", "1.xml-p1p5")
    (tmp_path / "frwiki-20250101-pages-articles-multistream1.xml-p1p5.bz2").write_bytes(b"")
    expected = (first, middle, *rest, late, split)
    assert [list_parts(part) for part in expected] == [expected] * len(expected)


def test_a_whole_file_is_its_own_only_part(write_dump):
    path = write_dump(("A", ""))
    assert list_parts(path) == (path,)


def test_a_missing_part_is_named(tmp_path):
    part = write_parts(tmp_path, "1.xml-p1p5.bz2", "3.xml-p8p9.bz2")[0]
    with pytest.raises(ConfigError, match=r"lacks part 2 of .*multistream; expected parts 1 to 3"):
        list_parts(part)
    with pytest.raises(ConfigError, match="no dump at"):
        list_parts(tmp_path / "absent1.xml-p1p5.bz2")


def test_parts_that_share_pages_are_refused(tmp_path):
    part = write_parts(tmp_path, "1.xml-p1p5.bz2", "2.xml-p5p9.bz2")[0]
    with pytest.raises(ConfigError, match="begins at page 5"):
        list_parts(part)


GAP = "2.xml-p11p1500010.bz2", "2.xml-p3000011p4500010.bz2"


@pytest.mark.parametrize(
    ("names", "pages"),
    [
        (["1.xml-p1p10.bz2", *GAP], "pages 1500011 to 3000010"),
        (["1.xml-p1p10.bz2", "1.xml-p1012p2000.bz2"], "pages 11 to 1011"),
        (["1.xml-p1001p2000.bz2"], "pages 1 to 1000"),
    ],
)
def test_a_missing_file_among_those_of_one_part_is_noticed_by_its_pages(tmp_path, names, pages):
    for part in write_parts(tmp_path, *names):
        with pytest.raises(ConfigError, match=f"lacks the part with {pages}, before .*; expected every part"):
            list_parts(part)


def test_a_few_deleted_pages_between_parts_are_no_missing_part(tmp_path):
    parts = write_parts(tmp_path, "1.xml-p1000p1200.bz2", "1.xml-p2201p2300.bz2", "2.xml-p2301p9000.bz2")
    assert list_parts(parts[0]) == tuple(parts)


def test_a_part_with_an_enormous_number_lacks_those_before_it(tmp_path):
    part = write_parts(tmp_path, f"{10**17}.xml-p1p5.bz2")[0]
    with pytest.raises(ConfigError, match="lacks part 1 of"):
        list_parts(part)
