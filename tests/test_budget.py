"""The budget of `.ci/budget.py`: what it counts and what it refuses."""

import importlib.util
from pathlib import Path

import pytest

spec = importlib.util.spec_from_file_location("budget", Path(__file__).parents[1] / ".ci" / "budget.py")
assert spec
assert spec.loader
budget = importlib.util.module_from_spec(spec)
spec.loader.exec_module(budget)

BEFORE = {"product_lines": {"run": 10, "cli": 10}, "whole": {"options": 3}}


def test_docstrings_comments_and_layout_are_no_tokens() -> None:
    assert budget.count_tokens('"""Doc."""\n# why\nx = [1,\n\n 2]\n') == budget.count_tokens("x = [1, 2]\n") == 7


def test_a_room_over_its_number_is_named() -> None:
    found = list(budget.find_over({"product_lines": {"run": 12, "cli": 10}}, BEFORE))
    assert found == ["run in product_lines is 12; its budget is 10"]


@pytest.mark.parametrize(
    ("after", "message", "rises"),
    [
        ({"product_lines": {"run": 12, "cli": 8}, "whole": {"options": 3}}, "", 0),
        ({"product_lines": {"run": 12, "cli": 10}, "whole": {"options": 3}}, "", 1),
        ({"product_lines": {"run": 10, "cli": 10}, "whole": {"options": 4}}, "", 1),
        (
            {"product_lines": {"run": 12, "cli": 10}, "whole": {"options": 3}},
            "Budget allowance: issue 40, +2 lines, +0 tokens",
            0,
        ),
        (
            {"product_lines": {"run": 13, "cli": 10}, "whole": {"options": 3}},
            "Budget allowance: issue 40, +2 lines, +0 tokens",
            1,
        ),
    ],
)
def test_a_sum_rises_only_by_an_allowance(after: dict[str, dict[str, int]], message: str, rises: int) -> None:
    assert len(list(budget.find_rises([("a", "", BEFORE), ("b", message, after)]))) == rises
