import pytest

from pipelines.checks.shortcuts import check_earlier_pages, check_path_length
from pipelines.graph.answers import type_answer
from pipelines.graph.query import locate_nodes
from schemas.datasets import Rewrite
from tests.toy import PAGES, box, build_toy_corpus


def locate(corpus, *titles):
    return [corpus.find(title) for title in titles]


@pytest.mark.parametrize(
    ("titles", "code"),
    [
        (("Kelm Bridge", "Mira Tolland", "Ostrel"), ""),
        (("Kelm Bridge", "Mira Tolland", "Ostrel", "Valdonia"), ""),
        (("Kelm Bridge", "Mira Tolland", "Ostrel", "Lumby"), "shorter-path"),
        (("Ines Farrow", "Marn", "Valdonia"), ""),
    ],
)
def test_links_that_lead_there_two_steps_sooner_are_a_shorter_path(toy, titles, code):
    result = check_path_length(toy, locate(toy, *titles), hub_in_degree=100)
    assert result.outcome == ("FAIL" if code else "PASS")
    assert not code or result.code == code


@pytest.mark.parametrize(
    ("told", "value", "found"),
    [
        ("It opened on {{start date|1931|4|5|df=y}}.", "5 April 1931", True),
        ("It opened on April 5th, 1931.", "5 April 1931", True), ("It opened on 5 May 1931.", "5 April 1931", False),
        ("It is {{convert|410|m|ft}} long.", "410 m", True), ("It is 0.41 km long.", "410 m", True),
        ("It is 410.0 m long.", "410 m", True), ("It is 1,345 feet long.", "410 m", True),
        ("It is four hundred and ten metres long.", "410 m", True), ("It is 0.42 km long.", "410 m", False),
        ("It is 4.1 km long.", "410 m", False), ("* {{convert|410|m|ft}} long", "410 m", True),
    ],
)  # fmt: skip
def test_dates_and_measures_on_an_earlier_page_are_found_in_any_writing(tmp_path, told, value, found):
    corpus = build_toy_corpus(tmp_path, PAGES | {"Kelm Bridge": f"{PAGES['Kelm Bridge']}\n\n{told}\n"})
    answer = type_answer(value, "", "opened" if "April" in value else "length")
    result = check_earlier_pages(corpus, locate(corpus, "Kelm Bridge", "Mira Tolland", "Ostrel"), answer)
    assert (result.outcome == "FAIL") is found


def test_a_shorter_path_over_a_hub_does_not_count(tmp_path):
    pages = PAGES | {
        "Kelm Bridge": PAGES["Kelm Bridge"] + " [[Hub]]",
        "Hub": "'''Hub'''. [[Z]]",
        "Z": "'''Z''' is a town.",
    }
    pages |= {f"Other {number}": "[[Hub]]" for number in range(5)}
    pages["Valdonia"] = box("country", "'''Valdonia'''", "capital = [[Z]]")
    corpus = build_toy_corpus(tmp_path, pages)
    nodes = locate(corpus, "Kelm Bridge", "Mira Tolland", "Ostrel", "Valdonia", "Z")
    assert check_path_length(corpus, nodes, hub_in_degree=100).code == "shorter-path"
    assert check_path_length(corpus, nodes, hub_in_degree=5).passed


@pytest.mark.parametrize(
    ("told", "found"),
    [
        ("It was founded in 1204.", True), ("It has the number 12045.", False), ("It cost 1204.50 crowns.", False),
        ("It cost 1,204 crowns.", False), ("Nothing is known.", False),
    ],
)  # fmt: skip
def test_the_answer_on_the_anchors_page_is_found_as_a_whole_word(tmp_path, told, found):
    corpus = build_toy_corpus(tmp_path, PAGES | {"Kelm Bridge": f"{PAGES['Kelm Bridge']} {told}"})
    answer = type_answer("1204", "1204", "established_date")
    result = check_earlier_pages(corpus, locate(corpus, "Kelm Bridge", "Mira Tolland", "Ostrel"), answer)
    assert result.outcome == ("FAIL" if found else "PASS")
    assert not found or ("answer-on-earlier-page", "Kelm Bridge" in result.detail) == (result.code, True)


def test_no_rewrite_of_the_demo_has_a_shortcut(demo, demo_corpus):
    for row in demo.rows("rewrites", Rewrite):
        nodes = locate_nodes(demo_corpus, row.proof.nodes)
        assert check_path_length(demo_corpus, nodes, 10_000).passed or len(nodes) > 3
        assert check_earlier_pages(demo_corpus, nodes, row.answer).passed
