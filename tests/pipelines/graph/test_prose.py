from hypothesis import given
from hypothesis import strategies as st

from pipelines.graph.prose import read_prose, show_sentence

PAGE = """{{Infobox bridge
| length = 320 m
}}
'''Kelm Bridge''' ({{birth date|1880|4|2}}) is a [[bridge|road bridge]].<ref>A book. Not read.</ref> It is \
{{convert|320|m|ft}} long.

[[File:Kelm.jpg|thumb|A bridge of 1900.]]
== History ==
{{Main|History}}
It was opened in 1931{{efn|so they say}}. It cost {{unknown|9}} pounds.
* A list of 1932.
{| class="wikitable"
| 1933
|}
"""


def test_sentences_are_those_outside_infobox_tables_lists_headings_and_captions():
    assert [sentence.text for sentence in read_prose(PAGE)] == [
        "Kelm Bridge (April 2, 1880) is a road bridge.",
        "It is 320 m long.",
        "It was opened in 1931.",
        "It cost pounds.",
    ]


def test_the_span_of_a_sentence_holds_its_wikitext():
    for sentence in read_prose(PAGE):
        assert show_sentence(PAGE[sentence.start : sentence.end]) == sentence.text


def test_the_first_sentence_leads_and_a_junior_does_not_end_it():
    assert [sentence.lead for sentence in read_prose(PAGE)] == [True, False, False, False]
    cut = read_prose("'''Hans Oder Jr.''' was a banker. He died.")
    assert cut[0].lead
    cut = read_prose("Hans Oder Jr. (2 May 1880 – 1931) was a banker. He died.")
    assert [sentence.lead for sentence in cut][-1] is False


def test_templates_of_a_sentence_with_very_many_are_not_rendered():
    assert show_sentence("{{convert|3|m}} " * 2 + "word.") == "3 m 3 m word."
    assert show_sentence("{{convert|3|m}} " * 40 + "word.") == "word."


@given(st.text(alphabet="ab .{}[]|<>\n'=*!", max_size=200))
def test_any_wikitext_gives_spans_in_order(page):
    spans = [(sentence.start, sentence.end) for sentence in read_prose(page)]
    assert spans == sorted(spans)
    assert all(0 <= start < end <= len(page) for start, end in spans)
