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
        ("material", "granite", "FAIL"), ("material", "stone b", "PASS"), ("opened", "1803", "PASS"),
        ("wood", "oak", "FAIL"), ("wood", "elm", "PASS"), ("metal", "gold", "PASS"), ("height", "40 m", "PASS"),
    ],
)  # fmt: skip
def test_an_answer_that_many_others_have_too_is_guessable(ground, relation, value, outcome):
    result = check_guessable(ground, relation, type_answer(value, "", relation), 0.05)
    assert result.outcome == outcome
    assert result.code == ("" if outcome == "PASS" else "guessable-answer")


def test_one_other_of_four_is_a_quarter_however_few_they_are(tmp_path):
    woods = ["oak", "oak", "elm", "ash", "fir"]
    pages = {f"Tower {n}": box("tower", f"'''Tower {n}''' is one.", f"wood = {w}") for n, w in enumerate(woods)}
    towers = Ground(build_toy_corpus(tmp_path, pages, {}))
    oak = type_answer("oak", "", "wood")
    assert check_guessable(towers, "wood", oak, 0.2).outcome == "FAIL"
    assert check_guessable(towers, "wood", oak, 0.25).passed


@pytest.mark.parametrize("value", ["granite", "stone b", "stone z"])
def test_a_larger_share_never_refuses_more(ground, value):
    answer = type_answer(value, "", "material")
    passed = [check_guessable(ground, "material", answer, share).passed for share in (0.01, 0.05, 0.1, 0.5, 1.0)]
    assert passed == sorted(passed)
