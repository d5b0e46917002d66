import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.agent.agreement import wilson_interval
from pipelines.release.quality import NOT_MEASURED, list_unmeasured, measure_difficulty, measure_standing
from schemas.datasets import Alternative, Cell
from tests.pipelines.release.builders import make_question


def make_cell(**changes):
    values = {
        "condition": "image", "solver": "knower", "prompt": "p/v1", "planned": 8, "attempts": 8, "correct": 0,
        "unscored": 0, "low": 0.0, "high": 0.3,
    }  # fmt: skip
    return Cell(**(values | changes))


def make_rows(*cells):
    return [make_question(number, None, cells=found) for number, found in enumerate(cells)]


def test_cells_are_summed_by_condition_and_solver():
    first = make_cell(correct=1, attempts=2, day="2026-11-20")
    rows = make_rows((first,), (make_cell(unscored=2, day="2026-11-22"), make_cell(solver="other")))
    found = measure_difficulty(rows)
    assert list(found) == ["image, knower", "image, other"]
    low, high = found["image, knower"].pop("low"), found["image, knower"].pop("high")
    assert found["image, knower"] == {
        "questions": 2, "planned": 16, "attempts": 10, "unscored": 2, "correct": 1, "rate": 0.125, "never solved": 1,
        "latest reply": "2026-11-22",
    }  # fmt: skip
    assert low < 0.125 < high


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=1, max_size=30))
def test_an_interval_holds_the_rate_and_is_as_wide_as_that_of_one_attempt_a_question(counts):
    cells = [make_cell(correct=correct, attempts=correct + wrong) for correct, wrong in counts]
    (found,) = measure_difficulty(make_rows(*((cell,) for cell in cells))).values()
    asked = sum(cell.attempts > 0 for cell in cells)
    assert found["low"] <= found["rate"] <= found["high"] if asked else (found["low"], found["high"]) == (0.0, 1.0)
    if asked and not found["correct"]:
        assert found["high"] == round(wilson_interval(0, asked)[1], 4)


def test_standing_need_alternatives_and_what_was_left_out_are_counted():
    refuted = Alternative(text="1999", times=2)
    rows = [
        make_question(1, None, search_need="image", standing="solved", swapped_with="Orsa Bridge"),
        make_question(2, None, standing="proved", alternatives=(refuted,), left_out=("swapped", "picture-too-simple")),
    ]
    assert {name: row["rows"] for name, row in measure_standing(rows).items()} == {
        "left out: picture-too-simple": 1,
        "left out: swapped": 1,
        "search need: image": 1,
        "search need: not measured": 1,
        "shown a swapped picture": 1,
        "standing: proved": 1,
        "standing: solved": 1,
        "with wrong answers given twice, all refuted": 1,
    }
    assert measure_standing(rows)["standing: proved"]["share"] == 0.5


@pytest.mark.parametrize(("swapped_with", "named"), [("", True), ("Orsa Bridge", False)])
def test_a_release_whose_pictures_were_swapped_does_not_say_that_none_was(swapped_with, named):
    rows = [make_question(1, None, swapped_with=swapped_with)]
    assert ("picture ablation" in list_unmeasured(rows, NOT_MEASURED)) is named
