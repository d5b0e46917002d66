import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.corpus.wikitext import find_links, plain_text
from pipelines.graph.prose import BLANK, MASK, blank_link, generalise_clause, make_clause, mask_names, read_prose
from tests.pipelines.checks.claims import make_hop
from tests.toy import PAGES, build_toy_corpus

ARTICLE = """{{Infobox bridge
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
    assert [sentence.text for sentence in read_prose(ARTICLE)] == [
        "Kelm Bridge (April 2, 1880) is a road bridge.",
        "It is 320 m long.",
        "It was opened in 1931.",
        "It cost 9 pounds.",
    ]


def test_the_first_sentence_leads_and_a_junior_does_not_end_it():
    assert [sentence.lead for sentence in read_prose(ARTICLE)] == [True, False, False, False]
    cut = read_prose("'''Hans Oder Jr.''' was a banker. He died.")
    assert cut[0].lead
    cut = read_prose("Hans Oder Jr. (2 May 1880 – 1931) was a banker. He died.")
    assert [sentence.lead for sentence in cut][-1] is False


CLAUSE_PAGE = (
    "It is old. The money for the bridge came from the banker [[Hans Oder|Oder]], of the old town of Kelm. It stands."
)


def make_first(page, names=()):
    return make_clause(page, find_links(page)[0], names)


def test_a_clause_is_the_sentence_around_the_link_with_the_link_blanked():
    clause = make_first(CLAUSE_PAGE)
    assert clause.text == f"The money for the bridge came from the banker {BLANK}, of the old town of Kelm."
    assert (
        CLAUSE_PAGE[clause.start : clause.end]
        == CLAUSE_PAGE[CLAUSE_PAGE.index("The money") : CLAUSE_PAGE.index(" It stands")]
    )


def test_the_blank_is_at_its_link_where_the_words_before_are_read_otherwise_alone():
    page = "On ''[[Kelm]]''<nowiki>'</nowiki>s deck he sent [[Hans Oder|a man]] away."
    assert blank_link(page, read_prose(page)[0], find_links(page)[1]) == f"On Kelm s deck he sent {BLANK} away."


@pytest.mark.parametrize(
    "page",
    [
        "Built by [[Hans Oder]].",
        "The long bridge " + "of very many words " * 15 + "came from [[Hans Oder]].",
        "The bridge was built in one, two, three, four, five, six, seven towns by [[Hans Oder]].",
        "{| class=x\n| The money for the bridge came = from || [[Hans Oder]] and others in town\n|}",
        "The money • for the bridge • came from the banker [[Hans Oder]] and others.",
    ],
    ids=["short", "long", "list", "table", "bullets"],
)
def test_what_reads_badly_makes_no_clause(page):
    assert make_first(page) is None


@given(st.text(max_size=60), st.lists(st.text(min_size=2, max_size=8), max_size=4))
def test_no_name_survives_as_a_whole_word(text, names):
    masked = mask_names(text, names).replace(MASK, "\n")
    for name in (name for name in names if name not in MASK and "\n" not in name):
        assert not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", masked, re.IGNORECASE) or name.strip(" \t\n") != name


SEEN = {
    "In 1931 [[Hans Oder]] sold the mill to [[Kelm Bridge|the Kelm company]] of [[Valdonia]].": (
        "In [a year] ____ sold the mill to [a bridge] of [a country]."
    ),
    "On 5 April 1931 [[Hans Oder]] gave 2,000 crowns and 12% of the 1920s harvest to the [[Lumby|town]].": (
        "On [a date] ____ gave [a number] crowns and [a number]% of the 1920s harvest to the town."
    ),
    "[[Hans Oder]] and the writer Ana of Ostrel met J. R. Smith at the Fair of the Three Kings.": (
        "____ and the writer [a name] met [a name] at [a name]."
    ),
    "Legal quarrels with the banker [[Hans Oder]] began in the 19th century.": (
        "Legal quarrels with the banker ____ began in the 19th century."
    ),
    "Lumby's mayor called the banker [[Hans Oder]] Mira Tolland's friend.": (
        "[a town]'s mayor called the banker ____ [an architect]'s friend."
    ),
    "The Brandt brothers, said the banker [[Hans Oder]], were no brothers.": (
        "[a name] brothers, said the banker ____, were no brothers."
    ),
    "[[Hans Oder]] was the only Lumbish Lord of the Sea.": "____ was the only Lumbish [a name].",
    "Of the [[Kelm Bridge|money]] the banker [[Hans Oder]] saw little.": "Of [a bridge] the banker ____ saw little.",
}


@pytest.mark.parametrize(("sentence", "seen"), SEEN.items())
def test_a_writer_sees_kinds_in_place_of_other_names_dates_and_numbers(tmp_path, sentence, seen):
    pages = PAGES | {"Orsa Bridge": f"{PAGES['Orsa Bridge']} {sentence}"}
    corpus = build_toy_corpus(tmp_path, pages)
    hop = make_hop(corpus, 1, (corpus.find("Orsa Bridge"), corpus.find("Hans Oder")), "mentions", ())
    assert generalise_clause(corpus, hop) == seen
    assert hop.clause.replace(BLANK, "Hans Oder") == plain_text(sentence)
