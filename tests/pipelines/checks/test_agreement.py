import pytest

from pipelines.checks.agreement import check_agreement, find_corroboration
from pipelines.graph.answers import type_answer
from pipelines.graph.facts import read_attributes
from pipelines.graph.indexes import Ground
from tests.toy import box, build_toy_corpus

PAGES = {
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
    "Sold Bridge": box(
        "bridge",
        "'''Sold Bridge''' is a [[bridge]]. It was sold on 5 April 1931.",
        "open = 5 April 1931",
        "sold = 5 April 1931",
    ),
}


@pytest.fixture(scope="module")
def ground(tmp_path_factory):
    return Ground(build_toy_corpus(tmp_path_factory.mktemp("agreement"), PAGES, {}))


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
        ("Kelm Bridge", "open", "5 April 1932", "disputes"),
        ("Kelm Bridge", "open", "7 May 1950", "disputes"),
        ("Kelm Bridge", "open", "1950", "disputes"),
        ("Kelm Bridge", "length", "320 m", "agrees"),
        ("Kelm Bridge", "length", "0.32 km", "agrees"),
        ("Kelm Bridge", "length", "321 m", "disputes"),
        ("Kelm Bridge", "style", "Art Deco", "agrees"),
        ("Kelm Bridge", "style", "Gothic Revival", "disputes"),
        ("Kelm Bridge", "height", "40 m", "silent"),
        ("Mira Tolland", "birth_date", "2 April 1880", "agrees"),
        ("Mira Tolland", "birth_date", "9 May 1931", "disputes"),
        ("Mira Tolland", "death_date", "9 May 1931", "agrees"),
        ("Mira Tolland", "death_date", "2 April 1880", "disputes"),
        ("Jon Vask", "birth_date", "2 April 1880", "silent"),
        ("Jon Vask", "num_built", "3", "agrees"),
        ("Dunn Bridge", "num_built", "3", "silent"),
    ],
)  # fmt: skip
def test_prose_agrees_disputes_or_is_silent(ground, title, relation, value, outcome):
    assert corroborate(ground, title, relation, value).outcome == outcome


def test_agreement_is_cited_byte_for_byte(ground):
    node = ground.corpus.find("Kelm Bridge")
    evidence = corroborate(ground, "Kelm Bridge", "length", "320 m").evidence
    assert (evidence.kind, evidence.key, evidence.link_start) == ("sentence", "", -1)
    assert evidence.text == "It is {{convert|320|m}} long."
    assert ground.corpus.text(node)[evidence.start : evidence.end] == evidence.text
    assert evidence.revision == ground.corpus.page(node).revision


def test_a_date_that_the_page_gives_for_two_relations_is_not_confirmed_by_a_mention(ground):
    assert corroborate(ground, "Sold Bridge", "open", "5 April 1931").outcome == "silent"
    assert corroborate(ground, "Sold Bridge", "sold", "5 April 1931").outcome == "agrees"


def test_what_a_cue_states_outweighs_what_another_sentence_says_of_somebody_else(tmp_path):
    text = "'''Jon Vask''' (born 2 April 1880) was an architect. His son was born on 5 May 1911."
    corpus = build_toy_corpus(tmp_path, {"Jon Vask": box("architect", text, "birth_date = 2 April 1880")}, {})
    assert corroborate(Ground(corpus), "Jon Vask", "birth_date", "2 April 1880").outcome == "agrees"


@pytest.mark.parametrize(
    ("more", "outcome"),
    [
        ("Later, in Paris, her movement was Tonalist.", "mixed"), ("Her movement was Tonalist.", "mixed"),
        ("The painter joined the Tonalist movement.", "mixed"), ("Brill joined the Tonalist movement.", "mixed"),
        ("She left the Tonalist movement.", "mixed"), ("Her son was of the Tonalist movement.", "agrees"),
        ("The town had a Tonalist movement.", "agrees"), ("Ben Corr founded the Tonalist movement.", "agrees"),
        ("She knew a Tonalist.", "agrees"), ("Her movement was Luminist.", "agrees"),
    ],
)  # fmt: skip
def test_another_value_of_the_same_subject_beside_the_answer_leaves_it_open(tmp_path, more, outcome):
    text = f"'''Ada Brill''' was a painter. Her movement was Luminist. {more}"
    pages = {"Ada Brill": box("painter", text, "movement = Luminist")}
    pages["Dora Esk"] = box("painter", "'''Dora Esk''' was a painter.", "movement = Tonalist")
    found = corroborate(Ground(build_toy_corpus(tmp_path, pages, {})), "Ada Brill", "movement", "Luminist")
    assert found.outcome == outcome
    result = check_agreement(found, "uncontradicted")
    assert (result.outcome, result.code) == (("PASS", "") if outcome == "agrees" else ("UNKNOWN", "answer-disputed"))
    assert check_agreement(found, "off").passed


@pytest.mark.parametrize(
    ("value", "mode", "outcome", "code"),
    [
        ("320 m", "required", "PASS", ""),
        ("321 m", "required", "FAIL", "answer-disputed"),
        ("321 m", "uncontradicted", "FAIL", "answer-disputed"),
        ("321 m", "off", "PASS", ""),
    ],
)
def test_the_mode_says_what_is_demanded(ground, value, mode, outcome, code):
    result = check_agreement(corroborate(ground, "Kelm Bridge", "length", value), mode)
    assert (result.outcome, result.code) == (outcome, code)


def test_the_toy_world_agrees_with_itself_and_disputes_its_neighbour_values(demo, demo_corpus):
    ground = Ground(demo_corpus)
    stated = {(row["subject"], row["key"]) for row in demo.truth("facts") if row["sentence"] and row["value"]}
    outcomes = {True: [], False: []}
    for node in demo_corpus.article_nodes():
        title = demo_corpus.page(node).title
        for attribute in read_attributes(demo_corpus, node):
            found = find_corroboration(ground, node, attribute.fact.key, attribute.answer)
            outcomes[(title, attribute.fact.key) in stated].append(found.outcome)
    assert outcomes[True].count("agrees") / len(outcomes[True]) > 0.97
    assert {"disputes", "mixed"}.isdisjoint(outcomes[True] + outcomes[False])
