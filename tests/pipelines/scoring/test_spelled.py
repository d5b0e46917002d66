import pytest

from pipelines.graph.values import sum_spelled


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("zero", 0), ("twelve", 12), ("twenty one", 21), ("one hundred", 100), ("one hundred and five", 105),
        ("three hundred and twenty thousand", 320_000), ("two million three hundred", 2_000_300),
        ("one thousand one hundred", 1_100),
    ],
)  # fmt: skip
def test_a_number_in_words_is_summed(text, value):
    assert sum_spelled(text.split()) == value


@pytest.mark.parametrize(
    "text",
    ["", "and", "hundred", "five six", "twenty twenty", "twenty eleven", "nineteen thirty one", "twelve hundred",
     "thousand million", "one hundred and", "two thousand three million", "zero five"],
)  # fmt: skip
def test_words_in_no_good_order_are_no_number(text):
    assert sum_spelled(text.split()) is None
