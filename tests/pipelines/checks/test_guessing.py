import pytest

from pipelines.checks.shortcuts import check_guessable
from pipelines.graph.answers import type_answer
from pipelines.graph.indexes import Ground
from tests.toy import box, build_toy_corpus


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
    return Ground(build_toy_corpus(tmp_path_factory.mktemp("guessing"), pages, {}))


@pytest.mark.parametrize(
    ("relation", "value", "outcome"),
    [
        ("material", "granite", "FAIL"),
        ("material", "stone b", "PASS"),
        ("opened", "1803", "PASS"),
        ("wood", "oak", "FAIL"),
        ("wood", "elm", "PASS"),
        ("metal", "gold", "PASS"),
        ("height", "40 m", "PASS"),
    ],
)
def test_an_answer_that_many_others_have_too_is_guessable(ground, relation, value, outcome):
    result = check_guessable(ground, relation, type_answer(value, "", relation), 0.05)
    assert result.outcome == outcome
    assert result.code == ("" if outcome == "PASS" else "guessable-answer")


@pytest.mark.parametrize("value", ["Yes", "no", "Europe", "South America", "7", "0", "12", "3 children", "Male"])
def test_few_choices_are_guessable_in_any_corpus(ground, value):
    assert check_guessable(ground, "any", type_answer(value, "", "any"), 0.05).outcome == "FAIL"


@pytest.mark.parametrize("value", ["13", "7 km", "3.5", "-5", "1204", "5 April 1931"])
def test_numbers_and_days_are_not_even_where_nobody_else_has_the_relation(ground, value):
    assert check_guessable(ground, "any", type_answer(value, "", "any"), 0.05).passed


@pytest.mark.parametrize("value", ["Norway", "April 1931", "red stone"])
def test_of_other_values_nothing_is_known_without_others_to_count(ground, value):
    result = check_guessable(ground, "any", type_answer(value, "", "any"), 0.05)
    assert (result.outcome, result.code) == ("UNKNOWN", "guessable-answer")


def test_one_other_of_four_is_a_quarter_however_few_they_are(tmp_path):
    woods = ["oak", "oak", "elm", "ash", "fir"]
    pages = {f"Tower {n}": box("tower", f"'''Tower {n}''' is one.", f"wood = {w}") for n, w in enumerate(woods)}
    towers = Ground(build_toy_corpus(tmp_path, pages, {}))
    oak = type_answer("oak", "", "wood")
    assert check_guessable(towers, "wood", oak, 0.2).outcome == "FAIL"
    assert check_guessable(towers, "wood", oak, 0.25).passed


def test_a_share_of_one_switches_the_check_off(ground):
    assert check_guessable(ground, "wood", type_answer("oak", "", "wood"), 1.0).passed
    assert check_guessable(ground, "any", type_answer("7", "", "any"), 1.0).passed


@pytest.mark.parametrize("value", ["granite", "stone b", "stone z"])
def test_a_larger_share_never_refuses_more(ground, value):
    answer = type_answer(value, "", "material")
    passed = [check_guessable(ground, "material", answer, share).passed for share in (0.01, 0.05, 0.1, 0.5, 1.0)]
    assert passed == sorted(passed)
