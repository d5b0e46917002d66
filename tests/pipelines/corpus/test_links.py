import time
import tracemalloc
from collections import Counter
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.corpus.dump import (
    DEFAULT_NAMESPACES,
    Site,
    TitleRules,
    hash_title,
    plan_ranges,
    read_pages,
    read_range,
    read_site,
)
from pipelines.corpus.wikitext import LinkReader, find_links

SITE = Site("enwiki", "https://en.wikipedia.org/wiki/", "en", "first-letter", DEFAULT_NAMESPACES)
RULES = TitleRules(SITE)
GERMAN = TitleRules(
    Site("dewiki", "", "de", "first-letter", ((0, ""), (6, "Datei"), (10, "Vorlage"), (14, "Kategorie")))
)

# wikitext, and the titles that its links name
PITFALLS = {
    "fragment": ("[[a b#c|x]]", ["A b"]),
    "fragment of this page": ("[[#local]] [[#local|x]]", []),
    "empty": ("[[]] [[|x]] [[ ]] [[:]] [[#]]", []),
    "colon form of a page": ("[[:Paris]] [[ : Rome]]", ["Paris", "Rome"]),
    "colon form of a category": ("[[:Category:X]] [[Category:X]]", []),
    "nested caption": ("[[File:F.jpg|thumb|cap [[B]] and [[c|d]] end]] [[E]]", ["B", "C", "E"]),
    "twice nested caption": ("[[File:F.jpg|a [[Image:G.png|b [[C]]]]]] [[D]]", ["C", "D"]),
    "other language": ("[[fr:X]] [[:de:X]] [[zh-min-nan:X]] [[FR:X]]", []),
    "other project": ("[[wikt:x]] [[s:X]] [[commons:X]] [[m:X]]", []),
    "self prefix": ("[[w:X]] [[en:Y]] [[:en:Z]] [[w:fr:A]] [[w:File:B]]", ["X", "Y", "Z"]),
    "underscores": ("[[X_y]] [[_X__y_]]", ["X y", "X y"]),
    "spaces": ("[[X  y]] [[ X y ]] [[X\u00a0y]] [[X\u2003 y]]", ["X y"] * 4),
    "named entities": ("[[X&nbsp;y]] [[AT&amp;T]] [[Caf&eacute;]]", ["X y", "AT&T", "Café"]),
    "numeric entities": ("[[It&#39;s]] [[It&#x27;s]]", ["It's", "It's"]),
    "entity without end": ("[[AT&T]] [[A &copy B]]", ["AT&T", "A &copy B"]),
    "percent-encoding": ("[[Caf%C3%A9]] [[100% wool]] [[A%20b]]", ["Café", "100% wool", "A b"]),
    "percent-encoded twice": ("[[A%2525]]", []),
    "percent-encoded bracket": ("[[A%5B]] [[A%3Cb]]", []),
    "first letter": ("[[éa]] [[ßa]] [[ŉa]] [[ǰa]] [[აb]] [[ǆa]] [[ǅa]] [[ᾳ]]", "Éa ßa ŉa ǰa აb Ǆa ǅa ᾼ".split()),
    "composition": ("[[Cafe\u0301]] [[e\u0301a]] [[\u212b]]", ["Café", "Éa", "Å"]),
    "directional marks": ("[[\u200eX\u200f]] [[Y\u202az\u202c]]", ["X", "Yz"]),
    "namespace aliases": ("[[Image:A.jpg]] [[WP:X]] [[project:X]] [[uSeR tAlK:X]] [[Talk:X]]", []),
    "trail": ("[[cat]]s [[dog]]'s [[bus]]es,", ["Cat", "Dog", "Bus"]),
    "empty anchor": ("[[X|]] [[X| ]]", ["X", "X"]),
    "comment": ("<!-- [[A]] --> [[B]] <!--[[C]]", ["B"]),
    "comment inside a target": ("[[A<!-- b -->]] [[C <!-- é --> d]]", ["A", "C d"]),
    "nowiki": ("<nowiki>[[A]]</nowiki> <NoWiki >[[B]]</nowiki > <nowiki/>[[C]]", ["C"]),
    "pre": ("<pre>[[A]]</pre> <pre class='x'>[[B]]</pre> <pre[[C]]", ["C"]),
    "math": ("<math>[[A]]</math> <math display=block>[[B]]</math>", []),
    "code": ("<syntaxhighlight lang='c'>a[[0]]</syntaxhighlight> <source lang=c>[[A]]</source>", []),
    "gallery": ("<gallery>\nF.jpg|[[D]]\n</gallery>[[F]]", ["F"]),
    "reference": ("x<ref name='a'>see [[A]]</ref> <ref name=b/>[[B]]", ["A", "B"]),
    "template argument": ("{{x|[[A]]|y=[[b|c]]}} {{main|Z}}", ["A", "B"]),
    "colon that is no namespace": ("[[2001: A Space Odyssey]] [[Foo:Bar]]", ["2001: A Space Odyssey", "Foo:Bar"]),
    "no title": ("[[a<b]] [[a{b]] [[a}b]] [[a\nb]] [[a]b]] [[../x]] [[a/./b]] [[a~~~b]]", []),
    "brackets in an anchor": ("[[A|b [c] d]] [[B|c [d]] [[[C]]] [[D|[http://x y]]] [[E|f] g]]", list("ABCDE")),
    "external": ("[http://x [[A]]] [[http://x y]]", ["A", "Http://x y"]),
    "too long": (f"[[{'x' * 256}]] [[{'x' * 255}]] [[{'é' * 128}]]", ["X" + "x" * 254]),
    "unclosed": ("[[A [[B]] [[C|d", ["B"]),
    "anchor over lines": ("[[A|b\nc]] [[B\n|c]]", ["A"]),
    "beyond the basic plane": ("😀[[A😀]] 𝒳[[B]]", ["A😀", "B"]),
}
PIECES = [
    *"[[ ]] [ ] [[[ | {{ }} { } # : _ & % ' \" > < . / ../ ~~~ a A x w: fr: File: Category: &amp; &lt; &#39;".split(),
    *"<!-- --> <nowiki> </nowiki> <pre </pre> <math> <ref> </ref> &nbsp; &quot; %C3%A9 %5B é İ ß 😀".split(),
    *["\u0301", "\u00a0", "\u200e", "\ud800", "\n", " "],
]
ODD = [
    *[b"&amp;", b"&lt;", b"&gt;", b"&quot;", b"&#39;", b"&apos;", b"&", b"&ax;", b"&quo;", b">", b"[[", b"]]", b"A"],
    *[b"!--", b"--", b"pre", b"/", b"\xc3\xa9", b"\xff", b"\xc3", b"\xed\xa0\x80", b" "],
]
MARKUP = st.lists(st.sampled_from([*PIECES, "[[A|b]]", "[[c d]]s", "[[File:x|y [[Z]]]]", "  "]), max_size=30).map(
    "".join
)
SLOW = settings(max_examples=400, deadline=None)


def find_slowly(texts, rules=RULES):
    """The links one by one, as the rest of synth finds them: (page, hash, position), and pages by anchor."""
    rows, anchors = [], Counter()
    for page, text in enumerate(texts):
        seen = set()
        for link in find_links(text, rules.language):
            target = rules.resolve(link.target)
            if target is not None and target.namespace == 0:
                rows.append((page, hash_title(target.title), link.start))
                seen.add((hash_title(target.title), link.anchor_text))
        anchors.update(seen)
    return rows, dict(anchors)


def list_rows(block):
    return list(zip(block.sources.tolist(), block.target_hashes.tolist(), block.positions.tolist(), strict=True))


def read_together(texts, rules=RULES):
    reader = LinkReader(rules)
    for page, text in enumerate(texts):
        reader.add_page(page, text)
    block = reader.take()
    return list_rows(block), block.anchors


@pytest.mark.parametrize("name", PITFALLS)
def test_pitfall(name):
    text, titles = PITFALLS[name]
    rows, _ = read_together([text])
    assert [digest for _, digest, _ in rows] == [hash_title(title) for title in titles]
    assert all(text[position : position + 2] == "[[" for _, _, position in rows)


@SLOW
@given(st.lists(MARKUP, max_size=4))
def test_links_read_together_are_those_found_one_by_one(texts):
    assert read_together(texts) == find_slowly(texts)


@SLOW
@given(st.lists(st.text(st.sampled_from("[]|aäß é\u0301&;%#:<>!-ſK\x85\x1c\ud800😀"), max_size=40), max_size=4))
def test_links_of_a_german_wiki_are_those_found_one_by_one(texts):
    assert read_together(texts, GERMAN) == find_slowly(texts, GERMAN)


def test_a_reader_gives_what_was_added_since_the_last_time():
    reader = LinkReader(RULES)
    assert list_rows(reader.take()) == []
    reader.add_page(7, "[[A]]")
    reader.add_page(9, "é [[b|c]] [[b|c]]")
    block = reader.take()
    assert list_rows(block) == [(7, hash_title("A"), 0), (9, hash_title("B"), 2), (9, hash_title("B"), 10)]
    assert block.anchors == {(hash_title("A"), "A"): 1, (hash_title("B"), "c"): 1}
    assert (block.sources.dtype, block.target_hashes.dtype, block.positions.dtype) == (np.uint32, np.uint64, np.uint32)
    reader.add_page(1, "[[b|c]]")
    assert reader.take().anchors == {(hash_title("B"), "c"): 1}


def test_trails_follow_the_language():
    german = [link.anchor_text for link in find_links("[[Haus]]tür [[Fluß]]ärme", "de")]
    assert german == ["Haustür", "Flußärme"]
    assert [link.anchor_text for link in find_links("[[Haus]]tür")] == ["Haust"]
    assert read_together(["[[Haus]]tür"], GERMAN)[1] == {(hash_title("Haus"), "Haustür"): 1}


@pytest.mark.parametrize(
    "unit", ["[[", "[[a|", "[[a|[b]", "[[[", "<!--", "<pre ", "<pre>", "[[A<!-- -->]]", "[[a|b]] "]
)
def test_hostile_text_takes_linear_time(unit):
    text = unit * 40_000
    started = time.process_time()
    read_together([text, text])
    assert time.process_time() - started < 3


# From a dump's bytes to links


def read_by_ranges(path, rules=None):
    """(page id, target hash, position) of all links, read range by range as a build reads them."""
    reader = LinkReader(rules or TitleRules(read_site(path)))
    for byte_range in plan_ranges(path, 5000):
        for page in read_range(path, byte_range):
            if page.namespace == 0 and page.redirect is None:
                reader.add_page(page.page_id, page.text)
    return list_rows(reader.take())


def read_slowly(path):
    articles = [page for page in read_pages(path) if page.namespace == 0 and page.redirect is None]
    rows, _ = find_slowly([page.text for page in articles], TitleRules(read_site(path)))
    return [(articles[page].page_id, digest, position) for page, digest, position in rows]


@cache
def make_pitfall_pages():
    return tuple((f"T{n} & é", text) for n, (text, _) in enumerate(PITFALLS.values()))


def test_links_of_ranges_are_the_links_of_the_pages(write_dump):
    path = write_dump(
        *make_pitfall_pages(),
        ("User:X", "[[A]]", 2),
        ("R & D", "#REDIRECT [[x]]", 0, "B & C"),
        ("Written", " #redirect: [[E_f#part|g]]"),
        ("Umleitung", "#WEITERLEITUNG [[Ziel]]"),
        ("Elsewhere", "#REDIRECT [[x]]", 0, "Category:X"),
        ("Hash", "# a list with [[L]]"),
        ("Empty", ""),
    )
    assert read_by_ranges(path) == read_slowly(path)
    rules = TitleRules(read_site(path))
    targets = {page.title: rules.resolve(page.redirect) for page in read_pages(path) if page.redirect is not None}
    assert {title: (target.namespace, target.title) for title, target in targets.items()} == {
        "R & D": (0, "B & C"),
        "Written": (0, "E f"),
        "Umleitung": (0, "Ziel"),
        "Elsewhere": (14, "X"),
    }


@settings(max_examples=150, deadline=None)
@given(raw=st.lists(st.sampled_from(ODD), max_size=25))
def test_odd_bytes_and_entities_are_read_as_in_the_pages(tmp_path_factory, raw):
    path = tmp_path_factory.mktemp("odd") / "x.xml"
    first, second = wrap_pages(["%", "[[Z]]"]).encode().split(b"%")
    path.write_bytes(first + b"".join(raw) + second)
    assert read_by_ranges(path) == read_slowly(path)


def wrap_pages(texts):
    pages = "".join(
        f"<page><title>T{number}</title><ns>0</ns><id>{number}</id><revision><id>1</id>"
        f"<text>{text}</text></revision></page>\n"
        for number, text in enumerate(texts, start=1)
    )
    return f"<mediawiki>\n{pages}</mediawiki>"


def test_a_page_with_several_revisions_counts_with_its_last(tmp_path):
    path = tmp_path / "x.xml"
    path.write_text(
        wrap_pages(["[[A]]"]).replace("</page>", "<revision><id>2</id><text>[[B]]</text></revision></page>")
    )
    assert read_by_ranges(path) == read_slowly(path)
    assert [digest for _, digest, _ in read_by_ranges(path)] == [hash_title("B")]


def test_what_is_long_in_a_link_is_not_remembered():
    reader = LinkReader(RULES)
    tracemalloc.start()
    for number in range(60):
        reader.add_page(
            number, ("[[A]]{}", "[[A|{}]]", "[[:Category:{}]]")[number % 3].format("x" * (100_000 + number))
        )
    reader.take()
    kept = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert kept < 1 << 20


def test_targets_beyond_the_table_are_still_found():
    texts = [" ".join(f"[[t{page} {number}]]" for number in range(9000)) for page in range(60)]
    rows, _ = read_together(texts)
    assert len(rows) == 540_000 > 1 << 19
    assert rows[-1] == (59, hash_title("T59 8999"), texts[-1].rindex("[["))
    assert len({digest for _, digest, _ in rows}) == len(rows)
