from hypothesis import given
from hypothesis import strategies as st

from pipelines.graph.answers import Repeat, find_repeats


def test_dates_are_the_same_however_they_are_written():
    assert find_repeats(["12 May 1900", "May 12, 1900", "1900-05-12"], "date") == (Repeat("12 May 1900", 3),)


def test_numbers_are_the_same_in_other_units():
    assert find_repeats(["2 km", "3 km", "2000 m"], "number") == (Repeat("2 km", 2),)


def test_a_sign_and_a_decimal_point_make_another_number():
    assert find_repeats(["1.5", "15", "-15"], "number") == ()


def test_many_different_answers_are_compared_with_a_bounded_number_and_still_found_by_their_words():
    names = [f"Ana {chr(97 + n % 26)}{chr(97 + n // 26 % 26)}{chr(97 + n // 676)}" for n in range(5_000)]
    dates = [f"12 May {1000 + n}" for n in range(500)]
    assert find_repeats([*names, names[-1]], "name") == (Repeat(names[-1], 2),)
    assert find_repeats([*dates, dates[-1], "1000-05-12"], "date") == (Repeat(dates[0], 2), Repeat(dates[-1], 2))


@given(st.lists(st.sampled_from(["1900", "AD 1900", "1901", "x", "X", "y"]), max_size=12))
def test_every_attempt_counts_for_one_answer_at_most(given_answers):
    assert sum(repeat.times for repeat in find_repeats(given_answers, "date")) <= len(given_answers)


@given(st.lists(st.text(max_size=20), max_size=6))
def test_whatever_models_say_twice_is_found(texts):
    said = [text for text in texts if text.strip()]
    assert len(find_repeats([*said, *said], "name")) >= bool(said)
