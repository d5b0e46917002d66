import bz2
import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.corpus.dump import (
    MAX_PAGE_BYTES,
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


def test_a_damaged_range_is_refused_and_the_others_are_read(dump):
    ranges = plan_ranges(dump, dump.stat().st_size // 3)[:3]
    source = dump.read_bytes()
    for number, piece in enumerate(ranges):
        middle = (piece.start + piece.end) // 2
        dump.write_bytes(source[:middle] + bytes(40) + source[middle + 40 :])
        with pytest.raises(CorruptInput, match=dump.name):
            read_titles(dump, [piece])
        assert read_titles(dump, ranges[:number] + ranges[number + 1 :])


def test_a_bomb_is_unpacked_a_few_megabytes_at_a_time(tmp_path):
    path = tmp_path / "bomb.xml.bz2"
    path.write_bytes(bz2.compress(b"<mediawiki>" + bytes(40 << 20)))
    assert max(len(block) for block in read_blocks(path, cover_file(path))) <= 4 << 20


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
