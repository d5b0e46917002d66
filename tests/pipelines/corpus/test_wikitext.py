import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.corpus.wikitext import (
    blank_ignored,
    find_links,
    find_sentence,
    lead_paragraph,
    plain_text,
    split_sentences,
)

PIECES = [
    "[[",
    "]]",
    "{{",
    "}}",
    "|",
    "<!--",
    "-->",
    "<nowiki>",
    "</nowiki>",
    "<ref>",
    "</ref>",
    "'''",
    "==",
    "\n",
    "a",
]
MARKUP = st.lists(st.sampled_from([*PIECES, " b", ". C", "{|", "|}", "File:x", "&amp;", "(", ")"]), max_size=40).map(
    "".join
)


def test_links_have_offsets_anchors_and_trails():
    text = "The [[cat]]s and [[Dog (pet)|the ''dog'']] of [[a b#c]]."
    links = find_links(text)
    assert [(link.target, link.anchor_text) for link in links] == [
        ("cat", "cats"),
        ("Dog (pet)", "the dog"),
        ("a b#c", "a b#c"),
    ]
    assert [text[link.start : link.end] for link in links] == ["[[cat]]s", "[[Dog (pet)|the ''dog'']]", "[[a b#c]]"]


def test_a_link_takes_the_letters_after_it_by_language():
    text = "[[Haus]]tür [[дом]]ами [[cat]]s"
    anchors = {language: [link.anchor_text for link in find_links(text, language)] for language in ("en", "de", "ru")}
    assert anchors["en"] == ["Haust", "дом", "cats"]
    assert anchors["de"] == ["Haustür", "дом", "cats"]
    assert anchors["ru"] == ["Haust", "домами", "cats"]


@pytest.mark.parametrize(
    ("text", "anchor"),
    [
        ("[[A|b [c] d]]s", "b [c] ds"),
        ("[[A|b [c]]]s", "b [c]s"),
        ("[[A|b [c]]s", "b [cs"),
        ("[[A|b] c]]s", "b] cs"),
        ("[[A|[b [c]]]s", "[b [c]s"),
    ],
)
def test_a_link_ends_at_its_first_closing_brackets_but_for_one_of_its_text(text, anchor):
    (link,) = find_links(text)
    assert (link.anchor_text, link.end) == (anchor, len(text))


def test_letters_that_only_resemble_a_tag_name_hide_nothing():
    assert [link.target for link in find_links("<\u017fource>[[A]]</source> <nowi\u212ai>[[B]]</nowiki>")] == ["A", "B"]


def test_links_in_captions_templates_and_references_are_found():
    text = "[[File:F.jpg|thumb|a [[B]] c]] {{x|[[C|d]]}} <ref>[[E]]</ref>"
    assert [link.target for link in find_links(text)] == ["B", "C", "E"]


def test_links_in_comments_and_hiding_tags_do_not_count():
    text = "<!-- [[A]] --><nowiki>[[B]]</nowiki><math>[[C]]</math><gallery>\nF.jpg|[[D]]\n</gallery>[[F]]"
    assert [link.target for link in find_links(text)] == ["F"]


def test_an_unclosed_tag_is_text_and_an_unclosed_comment_runs_to_the_end():
    assert [link.target for link in find_links("<nowiki>[[A]] <!-- [[B]]")] == ["A"]


@given(MARKUP)
def test_blanking_keeps_every_offset(text):
    blanked = blank_ignored(text)
    assert len(blanked) == len(text)
    assert all(new in (old, " ") for old, new in zip(text, blanked, strict=True))


@given(MARKUP)
def test_links_point_at_brackets(text):
    for link in find_links(text):
        assert text[link.start : link.start + 2] == "[["
        assert "]]" in text[link.start : link.end]


def test_plain_text_drops_what_is_not_prose():
    text = (
        "{{Infobox x|a={{b}}}}\n[[File:F.jpg|thumb|cap [[B]]]]"
        "'''Ada''' ({{lang|fr|x}}; born 1815) was a [[poet|writer]]"
        "<ref name=a>no</ref> of&nbsp;''note''.<!-- no -->\n{| class=x\n| cell\n|}"
        "\n\n== Life ==\n* born [http://x there]\n"
        "[[Category:Poets]]"
    )
    assert plain_text(text) == "Ada (born 1815) was a writer of note.\n\nLife\nborn there"


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


def test_sentences_end_at_lines():
    text = "== Head ==\n* item one\n* item two. Three"
    assert [text[start:end] for start, end in split_sentences(text)] == [
        "== Head ==",
        "* item one",
        "* item two.",
        "Three",
    ]


def test_a_position_outside_is_an_error():
    with pytest.raises(ValueError, match="position 3"):
        find_sentence("abc", 3)


@given(MARKUP.filter(bool), st.data())
def test_sentences_never_cross_lines(text, data):
    position = data.draw(st.integers(0, len(text) - 1))
    start, end = find_sentence(text, position)
    assert 0 <= start <= end <= len(text)
    assert "\n" not in text[start:end]


@pytest.mark.parametrize(
    "unit",
    [
        "{{",
        "[[",
        "<pre>",
        "<ref>",
        "{|\n",
        "[[a|",
        "[[a|b]",
        "(;",
        "<!--",
        "[http://a ",
        ". ",
        ". <ref>",
        "}} {{",
        "|}\n{|",
    ],
)
def test_hostile_text_takes_linear_time(unit):
    text = unit * 20_000
    start = time.process_time()
    blank_ignored(text), find_links(text), plain_text(text), lead_paragraph(text), find_sentence(text, len(text) // 2)
    assert time.process_time() - start < 3
