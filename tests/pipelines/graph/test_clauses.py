import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.corpus.wikitext import find_links
from pipelines.graph.prose import BLANK, MASK, make_clause, mask_names

PAGE = (
    "It is old. The money for the bridge came from the banker [[Hans Oder|Oder]], of the old town of Kelm. It stands."
)


def make_first(page, names=()):
    return make_clause(page, find_links(page)[0], names)


def test_a_clause_is_the_sentence_around_the_link_with_the_link_blanked():
    clause = make_first(PAGE)
    assert clause.text == f"The money for the bridge came from the banker {BLANK}, of the old town of Kelm."
    assert PAGE[clause.start : clause.end] == PAGE[PAGE.index("The money") : PAGE.index(" It stands")]


def test_other_mentions_of_a_name_are_masked_in_any_case():
    clause = make_first(PAGE.replace("of Kelm", "of KELM and Kelmhurst"), ["Kelm"])
    assert f"town of {MASK} and Kelmhurst" in clause.text


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


def test_a_sentence_that_holds_the_blank_twice_makes_no_clause():
    assert make_first(f"The money for the {BLANK} bridge came from the banker [[Hans Oder]] of town.") is None


@given(st.text(max_size=60), st.lists(st.text(min_size=2, max_size=8), max_size=4))
def test_no_name_survives_as_a_whole_word(text, names):
    masked = mask_names(text, names).replace(MASK, "\n")
    for name in (name for name in names if name not in MASK and "\n" not in name):
        assert not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", masked, re.IGNORECASE) or name.strip(" \t\n") != name
