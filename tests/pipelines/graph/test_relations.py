from collections import defaultdict

import pytest

from pipelines.corpus.relations import read_relations_table
from pipelines.graph.facts import is_layout
from pipelines.graph.relations import find_relation, list_phrases

SAME = {
    "designer": ["was designed by", "designed by", "Designer", "the designers"],
    "birth_place": ["place of birth", "born in", "was born in", "birth_place", "his birthplace", "birthplace"],
    "birth_date": ["born on", "Date of Birth", "was born on"],
    "founder": ["founded by", "was originally founded by", "co-founders"],
    "inception": ["was founded", "was founded in", "established in", "date of establishment"],
    "architect": ["architect", "its architect was"],
    "capital_of": ["is the capital of"],
    "mouth": ["flows into", "is a tributary of"],
    "opened": ["opened", "was opened", "opened in"],
    "discoverer": ["invented by", "was discovered by", "inventor"],
    "resting_place": ["was buried in", "burial_place"],
}


@pytest.mark.parametrize(("key", "phrases"), SAME.items())
def test_phrases_of_one_relation_have_one_key(key, phrases):
    assert {phrase: find_relation(phrase) for phrase in phrases} == dict.fromkeys(phrases, key)


@pytest.mark.parametrize(
    "phrase",
    [
        "designed",
        "designer of",
        "founded",
        "built",
        "directs",
        "was born",
        "influences",
        "",
        "the",
        "is",
        "of",
        "xyzzy",
    ],
)
def test_words_that_lead_the_other_way_or_say_too_little_have_no_relation(phrase):
    assert find_relation(phrase) == ""


def test_no_phrase_of_the_table_has_two_relations():
    keys = defaultdict(set)
    for phrase, key in list_phrases():
        assert find_relation(phrase), phrase
        keys[find_relation(phrase)].add(key)
    assert {found for found, given in keys.items() if given != {found}} == set()


def test_every_key_of_the_table_is_a_field_that_questions_may_ask_for():
    keys = {relation.key for relation in read_relations_table().values()}
    assert len(keys) > 150
    assert {key for key in keys if is_layout(key) or find_relation(key) != key} == set()
