"""Answers that are articles: their names, what confirms and denies them, where they leak, and how they verify."""

from dataclasses import replace

import pytest

from pipelines.checks.agreement import find_corroboration
from pipelines.checks.answers import check_not_bridge
from pipelines.checks.leakage import check_answer
from pipelines.checks.proofs import find_problems
from pipelines.checks.shortcuts import check_earlier_pages
from pipelines.graph.facts import name_answer, read_askable
from pipelines.graph.query import Indexes
from schemas.proofs import Thresholds
from tests.pipelines.checks.claims import prove
from tests.toy import box, build_toy_corpus

TOWER = "'''Kelm Tower''' is a tower. It was designed by [[Mira Tolland|a pupil of the old school]]."
LIMITS = Thresholds(alone_first=1, alone=1, answers=0, volatile=False)
PAGES = {
    "Grand Race": box("event", "'''Grand Race''' is a race.", "venue = [[Kelm Tower]]", "date = 1931"),
    "Kelm Tower": box("building", TOWER, "architect = [[M. Tolland]]", "mayor = [[Jon Vask]]", "height = 90 m"),
    "Orsa Tower": box(
        "building", "'''Orsa Tower''' is a tower. It was designed by [[Jon Vask]].", "architect = [[Mira Tolland]]"
    ),
    "Pell Tower": box(
        "building",
        "'''Pell Tower''' is a tower. It was designed by [[Jon Vask]] and its architect [[Mira Tolland]] built it.",
        "architect = [[Jon Vask]]",
        "owner = Otto Lind",
    ),
    "Dunn Tower": box("building", "'''Dunn Tower''' is a tower.", "architect = {{ubl|[[Jon Vask]]|[[Mira Tolland]]}}"),
    "Sund Tower": box("building", "'''Sund Tower''' is a tower near [[Kelm Tower]].", "architect = [[Towers]]"),
    "Mira Tolland (architect)": box("architect", "'''Mira Tolland''' was an architect.", "birth_date = 2 April 1880"),
    "Jon Vask": box("architect", "'''Jon Vask''' was an architect.", "birth_date = 1 May 1881"),
    "Towers": "'''Towers''' may be: {{disambiguation}}",
}
REDIRECTS = {
    "Mira Tolland": "Mira Tolland (architect)", "M. Tolland": "Mira Tolland (architect)",
    "MT": "Mira Tolland (architect)", "The Lady of Kelm": "Mira Tolland (architect)",
}  # fmt: skip


@pytest.fixture(scope="module")
def ground(tmp_path_factory):
    return Indexes(build_toy_corpus(tmp_path_factory.mktemp("names"), PAGES, REDIRECTS))


def ask(ground, title, key):
    """Return the node of a page and what it answers."""
    node = ground.corpus.find(title)
    return node, next(each for each in read_askable(ground.corpus, node) if each.fact.key == key)


def prove_architect(ground):
    path = ("Grand Race", "Kelm Tower")
    return prove(
        ground, path, ("venue",), "architect", ("",), "Who designed the venue of the race in the image", LIMITS
    )


def test_a_linked_value_is_a_name_with_all_names_of_the_article_it_leads_to(ground):
    _, asked = ask(ground, "Kelm Tower", "architect")
    answer = asked.answer
    assert (answer.type, answer.surface, answer.key) == ("name", "Mira Tolland", "text:mira tolland")
    assert set(answer.aliases) == {"M. Tolland", "MT", "The Lady of Kelm"}
    assert ask(ground, "Orsa Tower", "architect")[1].answer == answer


@pytest.mark.parametrize(
    ("title", "key", "outcome"),
    [("Kelm Tower", "architect", "agrees"), ("Orsa Tower", "architect", "disputes"), ("Kelm Tower", "mayor", "silent")],
)
def test_a_link_to_the_article_confirms_a_name_whatever_it_says(ground, title, key, outcome):
    node, asked = ask(ground, title, key)
    assert find_corroboration(ground, node, key, asked.answer).outcome == outcome


@pytest.mark.parametrize("name", ["Mira Tolland", "M. Tolland", "The Lady of Kelm", "MT", "Tolland"])
def test_any_name_of_the_answer_leaks_in_text(ground, name):
    _, asked = ask(ground, "Kelm Tower", "architect")
    assert check_answer(f"Who drew the plans of {name}?", asked.answer).code == "answer-leak"


def test_an_answer_is_no_entity_of_its_path_and_no_earlier_page_leads_to_it(ground):
    corpus = ground.corpus
    node, asked = ask(ground, "Kelm Tower", "architect")
    race, architect = corpus.find("Grand Race"), asked.fact.target
    assert check_not_bridge(asked.answer, ["Grand Race", "Mira Tolland (architect)"]).code == "answer-is-bridge"
    assert check_earlier_pages(corpus, (race, node), asked.answer, architect).passed
    for earlier in (architect, corpus.find("Orsa Tower")):
        refused = check_earlier_pages(corpus, (earlier, node), asked.answer, architect)
        assert refused.code == "answer-on-earlier-page"


def test_a_linked_answer_is_derived_again_through_its_redirect(ground):
    claim = prove_architect(ground)
    assert claim.proof.answer_evidence.text == "[[M. Tolland]]"
    assert find_problems(ground, claim) == []


@pytest.mark.parametrize("title", ["Jon Vask", "Mira Tolland"])
def test_another_answer_and_another_alias_are_named_by_verification(ground, title):
    claim = prove_architect(ground)
    forged = name_answer(ground.corpus, ground.corpus.find(title))
    forged = forged if title == "Jon Vask" else forged.model_copy(update={"aliases": (*forged.aliases, "Otto Lind")})
    (problem, *_) = find_problems(ground, replace(claim, answer=forged))
    assert problem.startswith("answer: the evidence gives Mira Tolland")
