"""Whether the prose of a page agrees with its infobox."""

from collections import Counter

import pytest

from pipelines.agent.agreement import wilson_interval
from pipelines.checks.agreement import check_agreement, check_alternative, find_corroboration
from pipelines.graph.answers import type_answer
from pipelines.graph.facts import read_attributes
from pipelines.graph.query import Indexes
from tests.pipelines.checks.claims import prove
from tests.pipelines.checks.planted_alternatives import PLANTS, ask, draw
from tests.pipelines.painters import PAGES, born, paint
from tests.planted.scenes import OverlayCorpus, PoolSize, make_pool
from tests.toy import box, build_toy_corpus

TOWNS = {
    "Kelm Bridge": box(
        "bridge",
        "'''Kelm Bridge''' is a [[bridge]]. It was opened on 5 April 1931.<ref>R. Quill, 1987.</ref> It is "
        "{{convert|320|m}} long. A fair was held on 7 May 1950. It is built in the Art Deco style. It cost 321 crowns.",
        "open = 5 April 1931",
        "length = 320 m",
        "style = Art Deco",
        "height = 40 m",
    ),
    "Orsa Bridge": box(
        "bridge",
        "'''Orsa Bridge''' is a [[bridge]]. It was opened on 6 April 1931. It is 321 m long and of great beauty.",
        "open = 5 April 1931",
        "length = 320 m",
        "style = Gothic Revival",
    ),
    "Mira Tolland": box(
        "architect",
        "'''Mira Tolland''' ({{birth date|1880|4|2}} – 9 May 1931) was an architect.",
        "birth_date = {{birth date|1880|4|2}}",
        "death_date = 9 May 1931",
    ),
    "Jon Vask": box("architect", "'''Jon Vask''' was an architect. He built 3 bridges.", "birth_date = 2 April 1880"),
    "Dunn Bridge": box(
        "bridge",
        "'''Dunn Bridge''' is a [[bridge]]. It was built by hand, and the work went on for 3 winters.",
        "arches = 3",
    ),
}


@pytest.fixture(scope="module")
def ground(tmp_path_factory):
    return Indexes(build_toy_corpus(tmp_path_factory.mktemp("agreement"), TOWNS, {}))


def corroborate(ground, title, relation, value):
    answer = type_answer(value, "", relation)
    assert answer is not None
    return find_corroboration(ground, ground.corpus.find(title), relation, answer)


@pytest.mark.parametrize(
    ("title", "relation", "value", "outcome"),
    [
        ("Kelm Bridge", "open", "5 April 1931", "agrees"),
        ("Kelm Bridge", "open", "1931", "agrees"),
        ("Kelm Bridge", "open", "6 April 1931", "disputes"),
        ("Kelm Bridge", "length", "320 m", "agrees"),
        ("Kelm Bridge", "length", "321 m", "disputes"),
        ("Kelm Bridge", "style", "Art Deco", "agrees"),
        ("Kelm Bridge", "style", "Gothic Revival", "disputes"),
        ("Kelm Bridge", "height", "40 m", "silent"),
        ("Mira Tolland", "death_date", "9 May 1931", "agrees"),
        ("Jon Vask", "birth_date", "2 April 1880", "silent"),
        ("Dunn Bridge", "num_built", "3", "silent"),
    ],
)  # fmt: skip
def test_prose_agrees_disputes_or_is_silent(ground, title, relation, value, outcome):
    found = corroborate(ground, title, relation, value)
    assert found.outcome == outcome
    assert check_agreement(found, "required").passed == (outcome == "agrees")
    assert check_agreement(found, "uncontradicted").passed == (outcome != "disputes")
    assert check_agreement(found, "required", read=True).passed == (outcome != "silent")


def test_the_toy_world_agrees_with_itself_and_disputes_its_neighbour_values(demo, demo_corpus):
    ground = Indexes(demo_corpus)
    stated = {(row["subject"], row["key"]) for row in demo.truth("facts") if row["sentence"] and row["value"]}
    outcomes = {True: [], False: []}
    for node in demo_corpus.article_nodes():
        title = demo_corpus.page(node).title
        for attribute in read_attributes(demo_corpus, node):
            found = find_corroboration(ground, node, attribute.fact.key, attribute.answer)
            outcomes[(title, attribute.fact.key) in stated].append(found.outcome)
    assert outcomes[True].count("agrees") / len(outcomes[True]) > 0.97
    assert "disputes" not in outcomes[True] + outcomes[False]


ADA = "Her movement was Luminist. She was 170 cm tall. She was born on 2 April 1871. Her patron was Jon Vask."
WIKI = {
    **PAGES,
    "Ada Brill": paint("Ada Brill", "birth_place = [[Ostrel]]", born(1871), "movement = Luminist", "height = 170 cm",
                       "patron = Jon Vask", prose=ADA),
    "Luminism": box("movement", "'''Luminism''', or '''Luminist''', is an art movement."),
    "Pell Bridge": box(
        "bridge",
        "'''Pell Bridge''' is a bridge. It was designed by [[Ada Brill]]. It is 95 m long, and was opened in 1931.",
        "designer = [[Ada Brill]]",
        "length = 95 m",
        "opened = {{start date|1931|5|9}}",
    ),
}  # fmt: skip
REDIRECTS = {"Luminist": "Luminism", "Lumists": "Luminism", "Old Ostrel": "Ostrel"}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    corpus = build_toy_corpus(tmp_path_factory.mktemp("wiki"), WIKI, REDIRECTS)
    yield corpus
    corpus.close()


def claim(ground, attribute="movement", **changes):
    """Return the question for a fact of the painter of the 1870s who was born in Ostrel."""
    asked = {"asking": "What of hers", "descriptors": ("the painter of the 1870s born in [subject]",)} | changes
    return prove(ground, ["Ostrel", "Ada Brill"], ["<birth_place"], attribute, **asked)


def check(corpus, text, attribute="movement", edits=(), added=(), **changes):
    """Return what is said of an alternative after some pages were changed and added; the proof is that of before."""
    said = claim(Indexes(corpus), attribute, **changes)
    overlay = OverlayCorpus(corpus, {corpus.find(title): page for title, page in dict(edits).items()}, added)
    return check_alternative(Indexes(overlay), said.proof, said.answer, text)


def edit(corpus, old, new, title="Ada Brill"):
    text = corpus.text(corpus.find(title))
    assert old in text
    return {title: text.replace(old, new)}


@pytest.mark.parametrize(
    ("attribute", "text"),
    [("movement", "Tonalist"), ("height", "171 cm"), ("birth_date", "3 April 1871"), ("birth_date", "2 April 1872")],
)
def test_what_nothing_supports_where_infobox_and_prose_agree_is_refuted(corpus, attribute, text):
    assert check(corpus, text, attribute).passed


def test_a_name_that_nothing_here_bears_may_be_another_one_of_the_answer(corpus):
    """Twain is Clemens, and no spelling says so; a name that an article bears is told from the answer's."""
    found = {name: check(corpus, name, "patron") for name in ("Samuel Clemens", "Cleo Dahl")}
    assert {name: result.outcome for name, result in found.items()} == {
        "Samuel Clemens": "UNKNOWN",
        "Cleo Dahl": "PASS",
    }
    assert "another wording" in found["Samuel Clemens"].detail


@pytest.mark.parametrize(
    ("attribute", "text", "changes"),
    [
        ("birth_date", "3 April 1871", {"derivation": "year"}), ("birth_date", "April 1871", {}),
        ("birth_date", "1871", {}), ("height", "5.5 ft", {}), ("movement", "Early Luminist", {}),
        ("movement", "Vorticist", {"edit": "silent"}),
    ],
)  # fmt: skip
def test_what_may_be_the_answer_itself_or_cannot_be_told_stays_open(corpus, attribute, text, changes):
    edits = edit(corpus, "Her movement was Luminist. ", "") if changes.pop("edit", "") else ()
    assert check(corpus, text, attribute, edits=edits, **changes).outcome == "UNKNOWN"


# measured on a generated world

QUESTIONS = 75
CONFIRMED = {"prose": 0.8}
"""Least share that is confirmed of a kind of plant; that of others is .95. What prose says of names is left open more
often: the sentence need not link them."""


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    pool = make_pool(tmp_path_factory.mktemp("pool"), 7, 0.1, PoolSize(600, {"paths": 480, "injection": 30}))
    yield pool
    pool.corpus.close()


@pytest.mark.slow
@pytest.mark.parametrize("kind", PLANTS)
def test_planted_alternatives_are_confirmed_and_never_refuted(pool, kind):
    outcomes = Counter(ask(case, planted.scene, planted.given).outcome for case, planted in draw(pool, kind))
    assert outcomes["PASS"] == 0
    assert sum(outcomes.values()) >= QUESTIONS
    assert wilson_interval(outcomes["FAIL"], sum(outcomes.values()))[0] >= CONFIRMED.get(kind, 0.95)
