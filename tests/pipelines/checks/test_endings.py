"""Ends of questions and pieces of them, asked and searched for alone."""

import pytest

from pipelines.checks.endings import list_endings, list_probes
from pipelines.graph.query import Indexes, locate_nodes
from tests.pipelines.checks.claims import prove
from tests.toy import PAGES, build_toy_corpus

LINE = "In 1931 the mill at Lumby was given to the banker [[Hans Oder]] by [[Marn|the town of Marn]]."


@pytest.fixture(scope="module")
def ground(tmp_path_factory):
    pages = PAGES | {"Mira Tolland": f"{PAGES['Mira Tolland']} {LINE}"}
    return Indexes(build_toy_corpus(tmp_path_factory.mktemp("endings"), pages))


@pytest.fixture(scope="module")
def stated(ground):
    """Bridge -> architect -> town -> country . established."""
    relations = ("architect", "birth_place", "country")
    said = ("the architect of [subject]", "the town where [subject] was born", "")
    titles = ("Kelm Bridge", "Mira Tolland", "Ostrel", "Valdonia")
    return prove(ground, titles, relations, "established_date", said, "When was its country established")


@pytest.fixture(scope="module")
def quoted(ground):
    """Bridge -> architect -> a sentence of her page -> banker -> town . established."""
    relations = ("architect", "mentions", "birth_place")
    said = ("the architect of [subject]", "the person who was given the mill next to [subject]", "")
    titles = ("Kelm Bridge", "Mira Tolland", "Hans Oder", "Lumby")
    return prove(ground, titles, relations, "established_date", said, "When was the place of birth established")


@pytest.fixture(scope="module")
def told(ground):
    """Bridge -> architect -> a sentence of her page -> town . established: the answer node is the blank."""
    titles = ("Kelm Bridge", "Mira Tolland", "Marn")
    said = ("the architect of [subject]", "")
    return prove(ground, titles, ("architect", "mentions"), "established_date", said, "a mill was given to a banker")


def test_an_ending_begins_at_a_bridge_that_is_called_by_its_type(ground, stated):
    assert list_endings(ground.corpus, stated.proof, stated.answer) == (
        "What is the year of the established date of the country of an unnamed town?",
        "What is the year of the established date of the country of the town where an unnamed architect was born?",
    )


def test_an_answer_node_in_a_sentence_is_asked_for_as_the_writer_saw_the_sentence(ground, told):
    (ending,) = list_endings(ground.corpus, told.proof, told.answer)
    line = "In [a year] the mill at [a town] was given to the banker [a person] by ____."
    assert f"the town that fills the blank in the line “{line}” of the article on an unnamed architect" in ending


def test_relations_in_a_readers_words_tell_no_kind_of_what_they_lead_to(ground, stated):
    hops = (*stated.proof.hops[:2], stated.proof.hops[2].model_copy(update={"gloss": "lies in"}))
    proof = stated.proof.model_copy(update={"hops": hops, "answer_gloss": "was founded in"})
    ending, _ = list_endings(ground.corpus, proof, stated.answer)
    assert ending == "An unnamed town lies in X. What fills the blank: X was founded in ____?"


def test_a_sentence_is_probed_for_its_own_page_and_a_relation_for_that_of_the_answer_node(ground, quoted):
    numbers = locate_nodes(ground.corpus, quoted.proof.nodes)
    probes = {probe.words: probe.pages for probe in list_probes(numbers, quoted.text, quoted.proof)}
    assert probes == {
        "birth place": (numbers[3],),
        "birth place town established date": (numbers[3],),
        "the person who was given the mill next to": (numbers[3], numbers[1]),
        "the architect of": (numbers[3],),
    }
