import pytest

from pipelines.graph.cues import CueIndex, find_kin, stem_word
from pipelines.graph.facts import FactIndex
from tests.toy import box, build_toy_corpus


def test_a_word_that_is_frequent_near_the_values_of_a_relation_alone_becomes_a_cue(tmp_path):
    pages = {f"Pit {number}": f"'''Pit {number}''' is a pit. It was dug by monks." for number in range(12)}
    for number in range(12):
        prose = f"'''Mill {number}''' is a mill. The stone was quarried at [[Pit {number}]] by hand. The wheel turns."
        pages[f"Mill {number}"] = box("mill", prose, f"stone_source = [[Pit {number}]]")
    corpus = build_toy_corpus(tmp_path, pages, {})
    index = CueIndex(corpus, FactIndex(corpus))
    assert index.states("stone_source", "It was quarried in Lumby.")
    assert not index.states("stone_source", "The wheel turns.")


@pytest.mark.parametrize(
    ("relation", "sentence"),
    [
        ("birth_date", "Tolland was born on 2 April 1880."),
        ("death_place", "She died in Lumby."),
        ("architect", "It was designed by Mira Tolland."),
        ("opened", "The bridge was inaugurated in 1931."),
        ("elevation_m", "The town lies 300 m above the sea."),
        ("subject", "The novel is about Tolland."),
        ("predecessor", "Before Tolland the office was held by Odo Lumby."),
    ],
)
def test_the_words_of_a_key_and_their_kin_are_cues_in_a_corpus_that_teaches_nothing(toy, relation, sentence):
    assert CueIndex(toy, FactIndex(toy)).states(relation, sentence)


def test_sentences_of_the_toy_world_that_state_a_fact_hold_a_cue(demo, demo_corpus):
    index = CueIndex(demo_corpus, FactIndex(demo_corpus))
    stated = [row for row in demo.truth("facts") if row["sentence"] and row["value"]]
    found = sum(index.states(row["key"], row["sentence"]) for row in stated)
    assert found / len(stated) > 0.9


def test_words_of_one_family_have_one_stem_and_keys_have_kin():
    families = ("design designed designer designers designs designing", "found founded founder founders foundation",
                "populate populated population populations", "discover discovered discoverer")  # fmt: skip
    for words in families:
        assert len({stem_word(word) for word in words.split()}) == 1
    assert "born" in find_kin(stem_word("birth"))
    assert "built" in find_kin(stem_word("construction"))
    assert find_kin("xyz") == ()
