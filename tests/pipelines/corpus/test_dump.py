import bz2
import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.corpus.dump import (
    MAX_PAGE_BYTES,
    ByteRange,
    FailedPage,
    LinkTarget,
    RawPage,
    Site,
    TitleRules,
    cover_file,
    default_namespaces,
    is_disambiguation_title,
    is_list_title,
    list_parts,
    plan_ranges,
    read_blocks,
    read_range,
    read_site,
    sample_ranges,
    strip_qualifier,
)
from pipelines.errors import ConfigError, CorruptInput


def read_pages(path):
    return read_range(path, cover_file(path))


def test_pages_come_back_as_written(write_dump):
    path = write_dump(("A & B", 'x < y &amp; [[C]]\n"q"'), ("User:D", "hi", 2))
    first, second = read_pages(path)
    assert (first.page_id, first.namespace, first.title, first.text) == (1, 0, "A & B", 'x < y &amp; [[C]]\n"q"')
    assert (first.revision, first.timestamp, first.redirect) == (1001, "2025-01-02T00:00:00Z", None)
    assert (second.namespace, second.title) == (2, "User:D")


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


def test_a_cut_file_is_refused_by_name(write_dump):
    path = write_dump(*[(f"T{number}", "text " * 50) for number in range(20)])
    whole = path.read_bytes()
    footer = bz2.compress(b"</mediawiki>\n")
    for broken in (
        *(whole[: int(len(whole) * kept)] for kept in (0.3, 0.6, 0.9)),
        whole.removesuffix(footer),
        whole + b"x",
    ):
        path.write_bytes(broken)
        with pytest.raises(CorruptInput, match=path.name):
            list(read_pages(path))


NO_EXPORTS = {
    "x.xml.bz2": [b"PK\x03\x04 zip", b"", b"BZhello world"],
    "x.xml": [b"<html></html>", b"", b"<!DOCTYPE x [<!ENTITY a 'b'>]><mediawiki></mediawiki>"],
}


def test_what_is_no_export_is_refused(tmp_path):
    for path, content in ((tmp_path / name, content) for name, contents in NO_EXPORTS.items() for content in contents):
        path.write_bytes(content)
        with pytest.raises(CorruptInput, match="expected a MediaWiki export"):
            list(read_pages(path))


def test_a_missing_dump_and_an_empty_range_are_configuration_errors(write_dump, tmp_path):
    for read in (read_site, list_parts, lambda path: plan_ranges(path, 10)):
        with pytest.raises(ConfigError, match="no dump at"):
            read(tmp_path / "absent.xml.bz2")
    with pytest.raises(ConfigError, match="0 bytes a range"):
        plan_ranges(write_dump(("A", "text")), 0)


def test_entities_are_decoded_once(write_dump):
    path = write_dump(("A", "X"), name="a.xml")
    path.write_text(path.read_text().replace(">X<", ">&amp;lt; &#65;&#x42;<"))
    assert next(read_pages(path)).text == "&lt; AB"


REDIRECTS = {
    "B c": ["\n#REDIRECT [[B c#d|e]]", "#Weiterleitung [[B c]]", "#REDIRECCIÓN[[ B c ]]", "#ПЕРЕНАПРАВЛЕНИЕ\n[[B c]]",
            "#転送 [[B c]]", "#redirect :[[B c]]", "#redirect : [[:B_c]]"],
    None: ["#REDIRECTED [[B]]", "x #REDIRECT [[B]]", "#REDIRECT B", "# REDIRECT [[B]]"],
}  # fmt: skip


@pytest.mark.parametrize("target", REDIRECTS)
def test_a_redirect_is_recognised_in_the_words_of_any_edition(write_dump, target):
    pages = list(read_pages(write_dump(*(("A", text) for text in REDIRECTS[target]))))
    assert [page.redirect for page in pages] == [target] * len(REDIRECTS[target])


@pytest.mark.parametrize("end", ["x", ":", "[", "[["])
def test_a_redirect_that_never_names_a_page_takes_linear_time(write_dump, end):
    path = write_dump(("A", "#redirect" + " " * 200_000 + end))
    started = time.process_time()
    assert [page.redirect for page in read_pages(path)] == [None]
    assert time.process_time() - started < 2


@pytest.mark.parametrize("element", ["ns", "id"])
def test_a_page_with_an_invalid_number_is_failed(write_dump, element):
    path = write_dump(("A", "X"), name="a.xml")
    whole = path.read_text()
    start = whole.index(f"<{element}>") + len(element) + 2
    for number in ("\u00b2", "\u0663", "--5", "", "x", "5 5", "1" * 19):
        path.write_text(whole[:start] + number + whole[whole.index("<", start) :])
        (page,) = read_pages(path)
        assert page.error == "invalid-number"


def test_a_page_id_is_not_negative_and_a_namespace_may_be(write_dump):
    path = write_dump(("A", "X"), name="a.xml")
    whole = path.read_text()
    path.write_text(whole.replace("<ns>0</ns>", "<ns>-1</ns>"))
    assert [page.namespace for page in read_pages(path)] == [-1]
    path.write_text(whole.replace("<id>1</id>", "<id>-1</id>", 1))
    assert [page.record_id for page in read_pages(path)] == ["title:A"]


# Hostile pages

REVISION = "<revision><id>7</id><timestamp>2025-01-02T03:04:05Z</timestamp><text>a text</text></revision>"
GOOD = f"<page><title>Good</title><ns>0</ns><id>1</id>{REVISION}</page>"
BAD = f"<page><title>Bad</title><ns>0</ns><id>2</id>{REVISION}</page>"
HOSTILE = {
    "no title": ("<title>Bad</title>", "", "page:2", "no-title"),
    "an empty title": ("<title>Bad</title>", "<title />", "page:2", "no-title"),
    "a title of 100 kB": (">Bad<", f">{'B' * 100_000}<", "page:2", "title-too-long"),
    "two titles": ("<ns>", "<title>C</title><ns>", "page:2", "duplicate-element"),
    "an element in a title": (">Bad<", "><b>Bad</b><", "page:2", "nested-element"),
    "no id": ("<id>2</id>", "", "title:Bad", "invalid-number"),
    "two ids": ("<id>2</id>", "<id>2</id><id>3</id>", "page:2", "duplicate-element"),
    "an id with a fraction": ("<id>2</id>", "<id>2.5</id>", "title:Bad", "invalid-number"),
    "no namespace": ("<ns>0</ns>", "", "page:2", "invalid-number"),
    "no revision id": ("<id>7</id>", "", "page:2", "invalid-number"),
    "an id of the contributor alone": ("<id>7</id>", "<contributor><id>9</id></contributor>", "page:2",
                                       "invalid-number"),
    "a broken timestamp": ("2025-01-02T", "last Tuesday ", "page:2", "invalid-timestamp"),
    "a day that no year has": ("2025-01-02", "2025-02-30", "page:2", "invalid-timestamp"),
    "two timestamps": ("<timestamp>", "<timestamp>2025-01-01T00:00:00Z</timestamp><timestamp>", "page:2",
                       "duplicate-element"),
    "two texts": ("</text>", "</text><text>b</text>", "page:2", "duplicate-element"),
    "an element in the text": ("a text", "a <b>text</b>", "page:2", "nested-element"),
    "a text in the text": ("a text", "<text>a</text>", "page:2", "nested-element"),
    "an element that stays open": ("<ns>0</ns>", "<ns>0</ns><b>", "page:2", "no-xml"),
    "elements that overlap": (">Bad</title>", "><b>Bad</title></b>", "page:2", "no-xml"),
    "an entity of its own": ("a text", "&lol;", "page:2", "no-xml"),
    "a text that is not UTF-8": ("a text", "a t\xff\xfext", "page:2", "not-utf8"),
    "a title that is not UTF-8": (">Bad<", ">B\xe4d<", "page:2", "not-utf8"),
    "half a surrogate pair": ("a text", "\xed\xa0\x80", "page:2", "not-utf8"),
    "elements in a thousand levels": ("<id>2</id>", "<b>" * 1000 + "</b>" * 1000, "title:Bad", "invalid-number"),
}  # fmt: skip


def write_export(path, *pages):
    """Write pages, one stream each where the name ends so; letters are bytes."""
    parts = ["<mediawiki>", *pages, "</mediawiki>"]
    pack = bz2.compress if path.suffix == ".bz2" else bytes
    path.write_bytes(b"".join(pack(part.encode("latin-1")) for part in parts))
    return path


@pytest.mark.parametrize("name", ["x.xml", "x.xml.bz2"])
@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_page_is_a_failed_one_and_the_pages_around_it_are_read(tmp_path, case, name):
    old, new, record_id, error = HOSTILE[case]
    assert BAD.count(old) == 1
    bad = BAD.replace(old, new)
    path = write_export(tmp_path / name, GOOD, bad, bad, GOOD, bad)
    pages = list(read_pages(path))
    assert [page for page in pages if isinstance(page, RawPage)] == [pages[0]] * 2 == [pages[0], pages[3]]
    assert {(page.record_id, page.error) for page in pages if isinstance(page, FailedPage)} == {(record_id, error)}
    assert len(pages) == 5
    assert max(len(page.detail) for page in pages if isinstance(page, FailedPage)) < 250


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("</page>", "", "not closed"),
        ("<page>", "x<page>", "between two pages"),
        ("a text", "x" * MAX_PAGE_BYTES, "over 64 MiB"),
        ("<ns>", "<page></page><ns>", "not closed"),
    ],
)
def test_a_file_whose_pages_cannot_be_told_apart_is_refused(tmp_path, old, new, told):
    path = write_export(tmp_path / "x.xml", GOOD, BAD.replace(old, new), GOOD)
    with pytest.raises(CorruptInput, match=told):
        list(read_pages(path))


@given(
    st.lists(st.sampled_from([None, *HOSTILE]), max_size=12), st.integers(1, 900), st.sampled_from([".xml", ".xml.bz2"])
)
def test_hostile_pages_anywhere_are_counted_and_cost_no_other_page(tmp_path_factory, cases, range_bytes, ending):
    pages = [GOOD if case is None else BAD.replace(*HOSTILE[case][:2]) for case in cases]
    path = write_export(tmp_path_factory.mktemp("hostile") / f"x{ending}", *(f"  {page}\n" for page in pages))
    ranges = plan_ranges(path, range_bytes)
    found = [page for byte_range in ranges for page in read_range(path, byte_range)]
    errors = [page.error if isinstance(page, FailedPage) else None for page in found]
    assert errors == [None if case is None else HOSTILE[case][3] for case in cases]


@pytest.mark.parametrize("key", ["", "x"])
def test_a_namespace_with_an_invalid_number_is_refused(write_dump, key):
    header = f'<mediawiki><siteinfo><namespaces><namespace key="{key}">A</namespace></namespaces></siteinfo>'
    with pytest.raises(CorruptInput, match="header that cannot be read"):
        read_site(write_dump(("A", ""), header=header))


MAIN = '<text bytes="4" xml:space="preserve">main</text>'
EXTRA = '<content><role>mediainfo</role><model>wikibase-mediainfo</model><text bytes="2">{}</text></content>'
NAMED = "<content><role>main</role><model>wikitext</model><text>main</text></content>"


@pytest.mark.parametrize(
    ("slots", "text"),
    [
        (MAIN + EXTRA, "main"),
        (EXTRA + NAMED, "main"),
        (EXTRA, ""),
        ("", ""),
        ('<text bytes="4" deleted="deleted" />', ""),
        (MAIN + "</revision><revision><id>2</id><text>later</text>", "later"),
    ],
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


GAP = "2.xml-p11p1500010.bz2", "2.xml-p3000011p4500010.bz2"


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["1.xml-p1p5.bz2", "2.xml-p5p9.bz2"], "begins at page 5"),
        (["1.xml-p1p10.bz2", *GAP], "lacks the part with pages 1500011 to 3000010, before .*; expected every part"),
        (["1.xml-p1p10.bz2", "1.xml-p1012p2000.bz2"], "lacks the part with pages 11 to 1011"),
        (["1.xml-p1001p2000.bz2"], "lacks the part with pages 1 to 1000"),
    ],
)
def test_missing_parts_and_parts_that_share_pages_are_refused(tmp_path, names, message):
    for part in write_parts(tmp_path, *names):
        with pytest.raises(ConfigError, match=message):
            list_parts(part)


def test_a_few_deleted_pages_between_parts_are_no_missing_part(tmp_path):
    assert list_parts(write_parts(tmp_path, "")[0]) == (tmp_path / "enwiki-20250101-pages-articles-multistream",)
    parts = write_parts(tmp_path, "1.xml-p1000p1200.bz2", "1.xml-p2201p2300.bz2", "2.xml-p2301p9000.bz2")
    assert list_parts(parts[0]) == tuple(parts)


# Byte ranges

MAGIC = b"BZh91AY&SY"


def make_noise(size: int, seed: int = 0) -> str:
    """Text that bz2 cannot make much smaller, so that a small file has many ranges."""
    return random.Random(seed).randbytes(size // 2).hex()


@pytest.fixture
def dump(write_dump):
    return write_dump(*[(f"T{number}", make_noise(4000, number)) for number in range(40)])


def find_streams(dump):
    whole = dump.read_bytes()
    return [place for place in range(len(whole)) if whole.startswith(MAGIC, place)]


def read_titles(dump, ranges):
    return [page.title for byte_range in ranges for page in read_range(dump, byte_range)]


def assert_covers(dump, ranges):
    assert [byte_range.number for byte_range in ranges] == list(range(len(ranges)))
    edges = [byte_range.start for byte_range in ranges] + [ranges[-1].end]
    assert [byte_range.end for byte_range in ranges] == edges[1:]
    assert (edges[0], edges[-1]) == (0, dump.stat().st_size)
    assert edges == sorted(set(edges))


@pytest.mark.parametrize("range_bytes", [1, 3000, 20_000, 10**9])
@pytest.mark.parametrize("name", ["toywiki-20250131-pages-articles-multistream.xml.bz2", "toywiki.xml"])
def test_ranges_cover_the_file_and_hold_each_page_once(write_dump, name, range_bytes):
    dump = write_dump(*[(f"T{number}", make_noise(4000, number)) for number in range(20)], name=name)
    ranges = plan_ranges(dump, range_bytes)
    assert_covers(dump, ranges)
    assert len(ranges) == {1: 20, 10**9: 1}.get(range_bytes, len(ranges))
    assert read_titles(dump, ranges) == [f"T{number}" for number in range(20)]


@given(st.lists(st.integers(0, 3000), min_size=1, max_size=12), st.integers(1, 9000))
def test_ranges_hold_the_pages_of_the_whole_in_order(tmp_path_factory, sizes, range_bytes):
    pages = [f"<page><title>{n}</title><ns>0</ns><id>{n}</id></page>{make_noise(0)}" for n in range(len(sizes))]
    texts = [page.replace("</id>", f"</id><revision><id>1</id><text>{make_noise(size)}</text></revision>")
             for page, size in zip(pages, sizes, strict=True)]  # fmt: skip
    dump = tmp_path_factory.mktemp("ranges") / "x.xml.bz2"
    streams = ["<mediawiki>", *texts, "</mediawiki>"]
    dump.write_bytes(b"".join(bz2.compress(stream.encode()) for stream in streams))
    ranges = plan_ranges(dump, range_bytes)
    assert_covers(dump, ranges)
    assert [page for byte_range in ranges for page in read_range(dump, byte_range)] == list(read_pages(dump))


def test_bytes_that_look_like_a_start_are_proved_by_unpacking(dump):
    whole = bytearray(dump.read_bytes())
    starts = find_streams(dump)
    place = starts[3] + 200
    whole[place : place + len(MAGIC)] = MAGIC  # the stream is damaged by it, the plan must not be
    dump.write_bytes(whole)
    assert place not in [byte_range.start for byte_range in plan_ranges(dump, 1)]


STEP = 1 << 18
"""Bytes that a search for a cut reads at a time."""


@pytest.mark.parametrize("name", ["x.xml.bz2", "x.xml"])
def test_a_cut_is_found_where_two_steps_of_the_search_meet(tmp_path, name):
    first, second = (f"<page><title>{n}</title>{make_noise(700_000, n)}</page>".encode() for n in (1, 2))
    parts = [b"<mediawiki>", first, second, b"</mediawiki>"]
    parts = [bz2.compress(part) if name.endswith("bz2") else part for part in parts]
    dump = tmp_path / name
    dump.write_bytes(b"".join(parts))
    start = len(parts[0]) + len(parts[1])
    for steps in (1, 0):
        for before in range(12):
            aim = start - steps * STEP + before if steps else start - before
            assert plan_ranges(dump, aim)[0].end == start


def test_a_cut_is_proved_when_its_first_block_is_longer_than_a_step(tmp_path):
    page = f"<page><title>A</title>{make_noise(850_000)}</page>".encode()
    dump = tmp_path / "x.xml.bz2"
    parts = [bz2.compress(part) for part in (b"<mediawiki>", page, page, b"</mediawiki>")]
    assert len(parts[1]) > STEP
    dump.write_bytes(b"".join(parts))
    assert plan_ranges(dump, len(parts[1]))[0].end == len(parts[0]) + len(parts[1])


def test_a_single_stream_and_streams_cut_inside_pages_are_one_range(write_dump, tmp_path):
    plain = write_dump(*[(f"T{number}", make_noise(3000, number)) for number in range(9)], name="a.xml").read_bytes()
    pieces = tmp_path / "pieces.xml.bz2"
    pieces.write_bytes(b"".join(bz2.compress(plain[start : start + 5000]) for start in range(0, len(plain), 5000)))
    single = tmp_path / "single.xml.bz2"
    single.write_bytes(bz2.compress(plain))
    for dump in (pieces, single):
        assert plan_ranges(dump, 1000) == (cover_file(dump),)
        assert len(list(read_pages(dump))) == 9


@pytest.mark.parametrize("name", ["toywiki.xml.bz2", "toywiki.xml"])
def test_a_file_cut_after_planning_is_refused(write_dump, name):
    dump = write_dump(*[(f"T{number}", make_noise(4000, number)) for number in range(20)], name=name)
    ranges = plan_ranges(dump, 20_000)
    dump.write_bytes(dump.read_bytes()[: ranges[1].end - 100])
    with pytest.raises(CorruptInput, match="truncated"):
        read_titles(dump, ranges[1:])


def test_a_damaged_range_is_refused_and_the_others_are_read(dump):
    ranges = plan_ranges(dump, dump.stat().st_size // 3)[:3]
    source = dump.read_bytes()
    for number, piece in enumerate(ranges):
        middle = (piece.start + piece.end) // 2
        dump.write_bytes(source[:middle] + bytes(40) + source[middle + 40 :])
        with pytest.raises(CorruptInput, match=dump.name):
            read_titles(dump, [piece])
        assert read_titles(dump, ranges[:number] + ranges[number + 1 :])


def test_a_range_that_ends_inside_a_stream_is_refused(dump):
    first = plan_ranges(dump, 20_000)[0]
    with pytest.raises(CorruptInput, match="truncated inside a bz2 stream"):
        list(read_blocks(dump, ByteRange(0, 0, first.end - 50)))


def test_a_range_that_begins_or_ends_inside_a_page_is_refused(write_dump):
    dump = write_dump(("A", "one"), ("B", "two"), name="a.xml")
    source = dump.read_bytes()
    with pytest.raises(CorruptInput, match="ends inside a page"):
        read_titles(dump, [ByteRange(0, 0, source.index(b"two"))])
    with pytest.raises(CorruptInput, match="between two pages"):
        read_titles(dump, [ByteRange(1, source.index(b"one"), len(source))])


def test_a_bomb_is_unpacked_a_few_megabytes_at_a_time(tmp_path):
    path = tmp_path / "bomb.xml.bz2"
    path.write_bytes(bz2.compress(b"<mediawiki>" + bytes(40 << 20)))
    assert max(len(block) for block in read_blocks(path, cover_file(path))) <= 4 << 20


def test_samples_are_spread_over_a_dump_and_hold_whole_pages(write_dump):
    dump = write_dump(*((f"Page {number}", make_noise(400, number)) for number in range(400)))
    size = dump.stat().st_size
    samples = sample_ranges(dump, 4, size // 40)
    assert len(samples) == 4
    assert samples[-1].start > size // 2
    assert all(size // 40 <= piece.end - piece.start < size // 20 for piece in samples)
    titles = [read_titles(dump, [piece]) for piece in samples]
    assert all(titles)
    assert len({title for group in titles for title in group}) == sum(map(len, titles))
    assert_covers(dump, sample_ranges(dump, 4, 1 << 20))


# Titles

SITE = Site("enwiki", "https://en.wikipedia.org/wiki/", "en", "first-letter", default_namespaces())
RULES = TitleRules(SITE)


TARGETS = [
    ("a b#c", 0, "A b", "c"), ("X_y", 0, "X y", ""), ("  foo \u00a0 bar\u200e_", 0, "Foo bar", ""),
    ("Caf%C3%A9", 0, "Café", ""), ("Cafe\u0301", 0, "Café", ""), ("AT&amp;T", 0, "AT&T", ""),
    ("100% wool", 0, "100% wool", ""), ("ébène", 0, "Ébène", ""), ("ßeta", 0, "ßeta", ""),
    ("2001: A Space Odyssey", 0, "2001: A Space Odyssey", ""), (":Category:things", 14, "Things", ""),
    ("category : things", 14, "Things", ""), ("Image:a.jpg", 6, "A.jpg", ""), ("WP:NPOV", 4, "NPOV", ""),
    ("w:Paris", 0, "Paris", ""), ("en::Paris", 0, "Paris", ""), ("FILE talk:a.jpg", 7, "A.jpg", ""),
    ("en:Image:a.jpg", 6, "A.jpg", ""), ("R&amp", 0, "R&amp", ""), ("a...b", 0, "A...b", ""),
    ("X#a#b", 0, "X", "a#b"), (":en:Paris", 0, "Paris", ""), ("w:en:Paris", 0, "Paris", ""),
    ("w:en:Image:a.jpg", 6, "A.jpg", ""), ("W:En:2001: A Space Odyssey", 0, "2001: A Space Odyssey", ""),
    ("w", 0, "W", ""), ("Wikipedia:w:X", 4, "W:X", ""),
]  # fmt: skip


def test_targets_are_normalised():
    for raw, *target in TARGETS:
        assert RULES.resolve(raw) == LinkTarget(*target)


NO_PAGES = ["#here", "", " ", ":", "fr:Paris", ":de:X", "wikt:cat", "a<b", "x" * 300, "Category:", "::X", "Category::X",
            ".", "..", "./a", "a/..", "a/./b", "a~~~b", "a%2541", "a&amp;amp;b", "&#35;x", "a\x7f", "w:en:w:Paris",
            "en:en:en:File:a.jpg", "w:en:fr:Paris", "w:en:w:"]  # fmt: skip


def test_what_is_no_page_of_this_wiki_is_none():
    assert [raw for raw in NO_PAGES if RULES.resolve(raw) is not None] == []


def test_a_chain_of_own_prefixes_takes_linear_time():
    started = time.process_time()
    assert RULES.resolve("w:" * 400_000 + "x") is None
    assert time.process_time() - started < 2


@given(st.text(max_size=60))
def test_resolving_a_resolved_title_changes_nothing(raw):
    target = RULES.resolve(raw)
    if target is not None and target.namespace == 0 and not set("&%") & set(target.title):
        again = RULES.resolve(":" + target.title)
        assert again is None or again == LinkTarget(again.namespace, again.title, "")
        assert again is None or again.namespace != 0 or again.title == target.title


def test_titles_of_lists_and_disambiguation_pages_are_known_and_qualifiers_stripped():
    assert [is_list_title(title) for title in ("List of bridges", "Listening")] == [True, False]
    assert is_disambiguation_title("Ada (disambiguation)")
    titles = {"Paris (mythology)": "Paris", "Springfield, Ohio": "Springfield", "(?)": "(?)", "Ohio": "Ohio"}
    assert {title: strip_qualifier(title) for title in titles} == titles


# Of Wikimedia's UcfirstOverrides.php: letters that stay, and letters with a capital of one character.
KEPT = "ßŉǰΐΰևაჰჿẖẚὐᾲᾶῂΐῲ\u0345ǅǈǋǲᾈῼⅰⅿⓐⓩꞹﬀﬆﬓ𖹠𖹿"
RAISED = dict(zip("ǆǉǌǳᾀᾇᾐᾠᾳῃῳàяωıſ𐐨", "ǄǇǊǱᾈᾏᾘᾨᾼῌῼÀЯΩIS𐐀", strict=True))


def test_first_letters_are_raised_as_wikimedia_does():
    assert "".join(RULES.capitalise(letter + "x")[:-1] for letter in KEPT) == KEPT
    assert {letter: RULES.capitalise(letter + "x")[:-1] for letter in RAISED} == RAISED


def test_a_turkish_i_keeps_its_dot():
    for language, capital in {"tr": "İ", "az": "İ", "en": "I"}.items():
        rules = TitleRules(Site("xwiki", "", language, "first-letter", default_namespaces()))
        assert rules.resolve("iz") == LinkTarget(0, capital + "z", "")


def test_case_is_by_wiki_and_by_namespace():
    rules = TitleRules(Site("xwiktionary", "", "en", "case-sensitive", default_namespaces()))
    assert rules.resolve("cat") == LinkTarget(0, "cat", "")
    rules = TitleRules(Site("x", "", "en", "case-sensitive", default_namespaces(), frozenset({0, 10})))
    assert [rules.resolve(raw).title for raw in ("cat", "Template:cat", "User:cat")] == ["cat", "cat", "Cat"]


GERMAN = ((6, "Datei"), (14, "Kategorie"))


def test_namespaces_go_by_local_names_canonical_names_and_aliases():
    for language, names, raw, namespace in (
        ("de", GERMAN, "datei:a.jpg", 6),
        ("de", GERMAN, "Bild:a.jpg", 6),
        ("de", GERMAN, "KATEGORIE:a", 14),
        ("de", GERMAN, "Category:a", 14),
        ("de", ((2, "Benutzer"),), "Benutzerin:A", 2),
        ("ru", ((6, "Файл"),), "ИЗОБРАЖЕНИЕ:a.jpg", 6),
        ("fr", ((3, "Discussion utilisateur"),), "discussion_Utilisateur:A", 3),
        ("en", ((6, "Datei"),), "Bild:a.jpg", 0),
    ):
        assert (
            TitleRules(Site(f"{language}wiki", "", language, "first-letter", names)).resolve(raw).namespace == namespace
        )


OWN = {"dewiki": {"de:X": "X", "w:X": "X", "en:X": None}, "zh_min_nanwiki": {"zh-min-nan:X": "X"},
       "enwiktionary": {"w:X": None}, "commonswiki": {"w:X": None, "commons:X": "X"}}  # fmt: skip


def test_the_prefix_of_the_own_wiki_leads_home():
    for dbname, titles in OWN.items():
        rules = TitleRules(Site(dbname, "", "de", "first-letter", default_namespaces()))
        found = {raw: rules.resolve(raw) for raw in titles}
        assert {raw: target and target.title for raw, target in found.items()} == titles
