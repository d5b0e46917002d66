import pytest

from pipelines.graph.cues import CueIndex, find_kin, stem_word
from pipelines.graph.facts import FactIndex
from tests.toy import box, build_toy_corpus

COUNT = 12


def write_mill(number: int) -> str:
    """A mill whose prose says who quarried its stone with a word that no key holds."""
    return box(
        "mill",
        f"'''Mill {number}''' is a mill. The stone was quarried at [[Pit {number}]] by hand. It stands in a valley. "
        "Many people walk there. The wheel turns in spring.",
        f"stone_source = [[Pit {number}]]",
    )


@pytest.fixture(scope="module")
def taught(tmp_path_factory):
    pages = {f"Mill {number}": write_mill(number) for number in range(COUNT)}
    pages |= {f"Pit {number}": f"'''Pit {number}''' is a pit. It was dug by monks." for number in range(COUNT)}
    return build_toy_corpus(tmp_path_factory.mktemp("taught"), pages, {})


@pytest.mark.parametrize(
    ("relation", "sentence"),
    [
        ("birth_date", "Tolland was born on 2 April 1880."),
        ("death_place", "She died in Lumby."),
        ("architect", "It was designed by Mira Tolland."),
        ("opened", "The bridge was inaugurated in 1931."),
        ("elevation_m", "The town lies 300 m above the sea."),
    ],
)
def test_the_words_of_a_key_and_their_kin_are_cues_in_a_corpus_that_teaches_nothing(toy, relation, sentence):
    assert CueIndex(toy, FactIndex(toy)).states(relation, sentence)


def test_sentences_of_the_toy_world_that_state_a_fact_hold_a_cue(demo, demo_corpus):
    index = CueIndex(demo_corpus, FactIndex(demo_corpus))
    stated = [row for row in demo.truth("facts") if row["sentence"] and row["value"]]
    found = sum(index.states(row["key"], row["sentence"]) for row in stated)
    assert found / len(stated) > 0.9


@pytest.mark.parametrize(
    "words",
    [
        ("design", "designed", "designer", "designers", "designs", "designing"),
        ("found", "founded", "founder", "founders", "foundation"),
        ("populate", "populated", "population", "populations"),
        ("discover", "discovered", "discoverer"),
    ],
)
def test_words_of_one_family_have_one_stem(words):
    assert len({stem_word(word) for word in words}) == 1


def test_kin_of_a_key_word_is_what_prose_says():
    assert "born" in find_kin(stem_word("birth"))
    assert "built" in find_kin(stem_word("construction"))
    assert find_kin("xyz") == ()
