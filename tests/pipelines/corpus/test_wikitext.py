import time
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.corpus.dump import Site, TitleRules, default_namespaces, hash_title
from pipelines.corpus.wikitext import (
    LinkReader,
    blank_ignored,
    find_links,
    find_sentence,
    lead_paragraph,
    plain_text,
)

SITE = Site("enwiki", "https://en.wikipedia.org/wiki/", "en", "first-letter", default_namespaces())
RULES = TitleRules(SITE)

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
LINKED = st.lists(st.sampled_from([*PIECES, "[[A|b]]", "[[c d]]s", "[[File:x|y [[Z]]]]", "  "]), max_size=30).map(
    "".join
)
SLOW = settings(max_examples=200, deadline=None)


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
@given(st.lists(LINKED, max_size=4))
def test_links_read_together_are_those_found_one_by_one(texts):
    assert read_together(texts) == find_slowly(texts)


def test_trails_follow_the_language():
    text = "[[Haus]]tür [[Fluß]]ärme [[дом]]ами [[cat]]s"
    anchors = {language: [link.anchor_text for link in find_links(text, language)] for language in ("en", "de", "ru")}
    assert anchors == {
        "en": ["Haust", "Fluß", "дом", "cats"],
        "de": ["Haustür", "Flußärme", "дом", "cats"],
        "ru": ["Haust", "Fluß", "домами", "cats"],
    }


PROSE = "[[ ]] {{ }} | <!-- --> <nowiki> </nowiki> <ref> </ref> == a {| |} File:x &amp; ( )".split()
MARKUP = st.lists(st.sampled_from([*PROSE, "'''", "\n", " b", ". C"]), max_size=40).map("".join)


def test_links_have_offsets_anchors_and_trails():
    text = "The [[cat]]s and [[Dog (pet)|the ''dog'']] of [[a b#c]]."
    links = find_links(text)
    assert [(link.target, link.anchor_text) for link in links] == [
        ("cat", "cats"),
        ("Dog (pet)", "the dog"),
        ("a b#c", "a b#c"),
    ]
    assert [text[link.start : link.end] for link in links] == ["[[cat]]s", "[[Dog (pet)|the ''dog'']]", "[[a b#c]]"]


ENDS = {"[[A|b [c] d]]s": "b [c] ds", "[[A|b [c]]]s": "b [c]s", "[[A|b [c]]s": "b [cs", "[[A|b] c]]s": "b] cs",
        "[[A|[b [c]]]s": "[b [c]s"}  # fmt: skip


def test_a_link_ends_at_its_first_closing_brackets_but_for_one_of_its_text():
    for text, anchor in ENDS.items():
        (link,) = find_links(text)
        assert (link.anchor_text, link.end) == (anchor, len(text))


@given(MARKUP)
def test_blanking_keeps_every_offset(text):
    blanked = blank_ignored(text)
    assert len(blanked) == len(text)
    assert all(new in (old, " ") for old, new in zip(text, blanked, strict=True))


def test_plain_text_drops_what_is_not_prose():
    text = (
        "{{Infobox x|a={{b}}}}\n[[File:F.jpg|thumb|cap [[B]]]]"
        "'''Ada''' ({{lang|fr|x}}; born 1815) was a [[poet|writer]]"
        "<ref name=a>no</ref> of&nbsp;''note''.<!-- no -->\n{| class=x\n| cell\n|}"
        "\n\n== Life ==\n* born [http://x there]\n"
        "[[Category:Poets]]"
    )
    assert plain_text(text) == "Ada (x; born 1815) was a writer of note.\n\nLife\nborn there"


def test_unbalanced_braces_lose_nothing():
    assert plain_text("before {{ after [[B]] }") == "before {{ after B }"


def test_lead_paragraph_is_the_defining_one():
    text = "{{Infobox x|a=b}}\n:''For other uses, see [[Y]].''\n\n'''X''' is a bridge in [[Z]] over water."
    text += "\n\nMore.\n== H =="
    assert lead_paragraph(text) == "X is a bridge in Z over water."


@pytest.mark.parametrize(
    "sentence",
    [
        "Mr. [[J. R. Smith|Smith]] paid 3.5 million U.S. dollars to St. Mary's.",
        "The [[Foo Inc. Bar]] opened.<ref>Cited. Here.</ref>{{sfn|A|2001}}",
        "It cost {{convert|3|m}} (approx. 10 ft).",
        '"Is it so?"',
        "She met J. K. Rowling there!",
    ],
)
def test_a_sentence_is_not_cut_inside(sentence):
    text = f"First one here. {sentence} Last one there.\nOther line."
    for position in (16, 16 + len(sentence) // 2, 16 + len(sentence) - 1):
        start, end = find_sentence(text, position)
        assert text[start:end] == sentence


@given(MARKUP.filter(bool), st.data())
def test_sentences_never_cross_lines(text, data):
    position = data.draw(st.integers(0, len(text) - 1))
    start, end = find_sentence(text, position)
    assert 0 <= start <= end <= len(text)
    assert "\n" not in text[start:end]


HOSTILE = "{{ [[ [[[ <pre> <ref> <!-- [[a| [[a|b] [[a|[b] [[a|b]] (; }}{{ [[A<!----x-->]]".split()


@pytest.mark.parametrize("unit", [*HOSTILE, "{|\n", "[http://a ", ". ", ". <ref>", "|}\n{|", "<pre "])
def test_hostile_text_takes_linear_time(unit):
    text = unit * 20_000
    start = time.process_time()
    blank_ignored(text), plain_text(text), lead_paragraph(text), find_sentence(text, len(text) // 2)
    read_together([text, text])
    assert time.process_time() - start < 3
