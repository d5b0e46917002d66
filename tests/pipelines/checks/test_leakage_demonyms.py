"""Demonyms and adjectives (research/quality.md L3)."""

import tomllib
from importlib import resources

import pytest

from pipelines.checks.leakage import check_answer, check_demonyms
from pipelines.graph.answers import type_answer
from pipelines.names import fold_name

RAW = tomllib.loads(resources.files("pipelines.checks").joinpath("data/demonyms.toml").read_text("utf-8"))
KNOWN = [
    (name, demonym) for group in ("places", "people") for name, row in RAW[group].items() for demonym in row.split(", ")
]


def check(text, *names, types=frozenset()):
    return check_demonyms(f"Who is the {text} of the image?", (names,), types)


def test_every_demonym_of_the_table_is_found():
    assert [(name, demonym) for name, demonym in KNOWN if check(demonym, name).outcome != "FAIL"] == []


def test_the_table_is_large_and_gives_each_demonym_to_a_name_once():
    folded = [(fold_name(name), fold_name(demonym)) for name, demonym in KNOWN]
    assert len(folded) == len(set(folded)) > 300


def test_an_ordinary_word_of_the_table_is_never_derived_by_rule():
    words = RAW["ordinary"].split()
    assert [word for word in words if check(word, f"Xan {word[:4].capitalize()}").outcome != "PASS"] == []


def test_a_demonym_counts_wherever_its_name_stands_in_the_title():
    assert check("Dutch painter", "Kingdom of the Netherlands").code == "demonym-leak"
    assert check("Dutch painter", "Tarn", "Netherlands").code == "demonym-leak"
    assert check("Dutch painter", "Tarn", "Friends of the Netherlands").outcome == "PASS"
    assert check("Dutch painter", "Tarn (Netherlands)").outcome == "PASS"


@pytest.mark.parametrize("text", ["Polish", "POLISH", "“Polish”"])
def test_a_demonym_that_is_also_a_word_counts_with_a_capital(text):
    assert check(f"{text} king", "Poland").outcome == "FAIL"
    assert check("man who used polish", "Poland").outcome == "PASS"


@pytest.mark.parametrize(
    ("answer", "text"), [("Switzerland", "Swiss"), ("Vask Tarnov", "Tarnovian"), ("Italy", "Italians")]
)
def test_a_demonym_of_the_answer_is_the_answer(answer, text):
    typed = type_answer(answer, "", "label")
    assert check_answer(f"Where did the {text} live?", typed).code == "answer-leak"
    assert check_answer("Where did the Belgians live?", typed).outcome == "PASS"
