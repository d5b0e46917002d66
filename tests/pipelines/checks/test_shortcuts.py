"""Shorter ways to an answer than the question's."""

import pytest

from pipelines.checks.endings import Probe
from pipelines.checks.shortcuts import check_earlier_pages, check_guessable, check_path_length, check_retrieval
from pipelines.graph.answers import type_answer
from pipelines.graph.query import Indexes
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


@pytest.mark.parametrize(
    ("told", "found"),
    [
        # As on pages of Wikipedia: an etymology tells nobody which language is official in Ostrel.
        ("The word bridge comes from the Greek for a way.", False),
        ("In Ostrel, Greek is spoken.", True),
        (
            "Greek is spoken in many towns. "
            + "Nothing is known. " * 20
            + "Ostrel is near. "
            + "Nothing is known. " * 20,
            False,
        ),
    ],
)
def test_words_that_very_many_articles_hold_say_the_answer_only_beside_its_entity(tmp_path, told, found):
    many = {f"Mill {number}": f"'''Mill {number}''' is a mill with a Greek name." for number in range(50)}
    corpus = build_toy_corpus(tmp_path, PAGES | many | {"Kelm Bridge": f"'''Kelm Bridge''' is a bridge. {told}"})
    answer = type_answer("Greek", "", "official_language")
    result = check_earlier_pages(corpus, locate(corpus, "Kelm Bridge", "Mira Tolland", "Ostrel"), answer)
    assert result.outcome == ("FAIL" if found else "PASS")
    rare = type_answer("Etruscan", "", "official_language")
    other = PAGES | {"Kelm Bridge": f"'''Kelm Bridge''' is a bridge. {told.replace('Greek', 'Etruscan')}"}
    corpus = build_toy_corpus(tmp_path / "rare", other)
    assert not check_earlier_pages(corpus, locate(corpus, "Kelm Bridge", "Mira Tolland", "Ostrel"), rare).passed


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


@pytest.fixture(scope="module")
def ground(tmp_path_factory):
    common = ["granite"] * 3 + [f"stone {chr(97 + number)}" for number in range(26)]
    few = ["oak"] * 4 + ["elm"]
    alone = ["gold", "tin", "lead"]
    pages = {}
    for number, stone in enumerate(common):
        fields = [f"material = {stone}", f"opened = {1800 + number // 2}"]
        fields += [f"wood = {few[number]}"] if number < len(few) else []
        fields += [f"metal = {alone[number]}"] if number < len(alone) else []
        pages[f"Tower {number}"] = box("tower", f"'''Tower {number}''' is a tower.", *fields)
    return Indexes(build_toy_corpus(tmp_path_factory.mktemp("guessing"), pages, {}))


@pytest.mark.parametrize(
    ("relation", "value", "outcome"),
    [
        ("material", "granite", "FAIL"), ("material", "stone b", "PASS"), ("opened", "1803", "PASS"),
        ("wood", "oak", "FAIL"), ("wood", "elm", "PASS"), ("metal", "gold", "PASS"), ("height", "40 m", "PASS"),
    ],
)  # fmt: skip
def test_an_answer_that_many_others_have_too_is_guessable(ground, relation, value, outcome):
    result = check_guessable(ground, relation, type_answer(value, "", relation), 0.05)
    assert result.outcome == outcome
    assert result.code == ("" if outcome == "PASS" else "guessable-answer")


COUNT = 220


@pytest.fixture(scope="module")
def wiki(tmp_path_factory):
    pages = {
        f"Page {number}": f"'''Page {number}''' is about zebras and lions.\n\n" + "Zebras graze in the plain. " * 5
        for number in range(COUNT)
    }
    pages["Kelm"] = (
        "'''Kelm''' is a lighthouse of granite. " + "Zebras and lions are painted on its quartz walls. " * 40
    )
    return build_toy_corpus(tmp_path_factory.mktemp("retrieval"), pages, {})


@pytest.fixture(scope="module")
def kelm(wiki):
    return wiki.find("Kelm")


@pytest.mark.parametrize(
    ("text", "rank", "outcome"),
    [
        ("Which lighthouse is of granite?", 10, "FAIL"), ("Which lighthouse is of granite?", 0, "PASS"),
        ("Who grazes in the plain?", 10, "PASS"), ("", 10, "UNKNOWN"), ("  ", 10, "UNKNOWN"),
    ],
)  # fmt: skip
def test_one_search_must_not_find_the_page(wiki, kelm, text, rank, outcome):
    result = check_retrieval(wiki, text, kelm, rank)
    assert result.outcome == outcome
    assert result.code == ("" if outcome == "PASS" else "one-retrieval")


@pytest.mark.parametrize(
    ("words", "title", "found"),
    [
        ("the lighthouse is of granite", "Kelm", True), ("the lighthouse is of granite", "Page 7", False),
        ("a granite lighthouse", "Kelm", False),
    ],
)  # fmt: skip
def test_a_piece_of_four_words_may_not_put_one_of_its_pages_first(wiki, kelm, words, title, found):
    probes = [Probe("Who grazes in the plain", (kelm,)), Probe(words, (wiki.find("Page 8"), wiki.find(title)))]
    result = check_retrieval(wiki, "Who grazes in the plain?", kelm, 10, probes)
    assert (result.outcome, result.code) == (("FAIL", "one-retrieval") if found else ("PASS", ""))
    assert not found or result.detail == f"{words!r} alone finds {title!r}"
    assert check_retrieval(wiki, "Who grazes in the plain?", kelm, 0, probes).passed
