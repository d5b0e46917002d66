import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.checks.leakage import build_leak_index, check_answer, check_names, find_common_tokens, find_leaks
from pipelines.graph.answers import type_answer

NODES = (
    ("Kelmor Bridge (river crossing)", "Kelmor Crossing", "KB", "bridge", "the bridge", "Мост"),
    ("Ana Dvořák", "A. Dvořák", "Lady Orn", "designer"),
    ("Nice", "Nizza"),
    ("U.N.", "United Orns"),
    ("St. Mary's Church, Tarn", "Orn Church"),
)
SOME = ("Kelmor", "kelmor", "the bridge", "KB", "Nice")
NAMES = st.one_of(st.text(min_size=1, max_size=12), st.sampled_from(SOME))
QUESTION = "Who designed the bridge that crosses the river near the church in the image?"


def typed(text, relation="label"):
    answer = type_answer(text, "", relation)
    assert answer is not None
    return answer


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("the Kelmor Bridge", 0), ("the kelmor-bridge", 0), ("KELMORBRIDGE", 0), ("Kelmor", 0), ("Kel\u200bmor", 0),
        ("\u041aelmor bridge", 0), ("near KB today", 0), ("под Мост", 0), ("Dvorak", 1), ("Dvořák’s tower", 1),
        ("the Dvořáks", 1), ("lady orn", 1), ("in Nice today", 2), ("UN seat", 3), ("U.N. seat", 3), ("united orns", 3),
        ("Saint Marys Church", 4), ("St Mary’s church", 4), ("the ORN CHURCH", 4),
    ],
)  # fmt: skip
def test_a_name_is_found_however_it_is_written(text, node):
    assert node in {leak.node for leak in find_leaks(f"What is {text}?", NODES)}


@pytest.mark.parametrize(
    "text",
    [
        QUESTION,
        "a nice view of the bridge", "the kb of the designer", "kelmorine", "unkelmor", "the bridges", "a fun",
        "marine church", "the designer of the bridge", "un nizzard", "dvorakian",
    ],
)  # fmt: skip
def test_ordinary_words_and_longer_words_do_not_alarm(text):
    assert find_leaks(text, NODES) == ()


def test_type_words_of_the_corpus_do_not_alarm():
    names = (("Rusty Velnar finchling",),)
    assert find_leaks("the finchling in the image", names) != ()
    common = find_common_tokens(["species of finchling"])
    assert find_leaks("the finchling in the image", names, common) == ()


@pytest.mark.parametrize(
    ("text", "names"), [("", NODES), (QUESTION, ()), (QUESTION, ((),)), (QUESTION, (("Kelm",), (" ",)))]
)
def test_nothing_to_look_in_or_for_is_unknown(text, names):
    assert check_names(text, names).outcome == "UNKNOWN"


@given(
    st.sampled_from([name for names in NODES for name in names if name[0].isupper() and len(name) > 5]), st.booleans()
)
def test_every_long_name_is_found_inside_a_question(name, upper):
    text = f"Who designed {name.upper() if upper else name.lower()} in the image?"
    assert not check_names(text, NODES).passed


@given(st.text(max_size=40), st.lists(NAMES, min_size=1, max_size=3), st.lists(NAMES, max_size=3))
def test_more_names_never_turn_a_leak_into_a_pass(text, names, more):
    before = check_names(f"q {text} {names[-1]}", [names])
    after = check_names(f"q {text} {names[-1]}", [[*names, *more]])
    assert before.outcome != "FAIL" or after.outcome == "FAIL"


@pytest.mark.parametrize(
    "text",
    [
        "in 1931", "on 5 April", "on April 5th", "the 5th of April", "1931-04-05", "05.04.1931", "MCMXXXI",
        "nineteen thirty-one", "in 19\u200b31", "Apr 5", "April 1931",
    ],
)  # fmt: skip
def test_a_date_is_found_in_every_order(text):
    assert check_answer(f"What happened {text}?", typed("5 April 1931")).code == "answer-leak"


@pytest.mark.parametrize("text", ["in 1932", "on 6 April", "April", "the 5 towers", "19311", "the 1930s"])
def test_another_date_does_not_alarm(text):
    assert check_answer(f"What happened {text}?", typed("5 April 1931")).outcome == "PASS"


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("1,204", "1204"), ("1,204", "1,204"), ("1,204", "1 204"), ("1,204", "twelve hundred and four"),
        ("7 km", "seven"), ("7 km", "the seventh"), ("7 km", "VII"),
        ("9,000,000", "9 million"), ("-5 °C", "minus 5"), ("3.5 kg", "3.5"),
        ("320 m", "320m"),
    ],
)  # fmt: skip
def test_a_number_is_found_in_every_form(answer, text):
    assert check_answer(f"Which one has {text} of them?", typed(answer)).outcome == "FAIL"


@pytest.mark.parametrize(
    ("answer", "text"), [("1,204", "1205"), ("7 km", "0.7"), ("7 km", "17"), ("3.5 kg", "35"), ("6 km", "I")]
)
def test_another_number_does_not_alarm(answer, text):
    assert check_answer(f"Which has {text}?", typed(answer)).outcome == "PASS"


def test_two_hundred_names_are_looked_for_in_a_few_milliseconds():
    names = [[f"Kelmor{i}x{j} Tarn{j}" for j in range(40)] for i in range(5)]
    index = build_leak_index(names)
    start = time.perf_counter()
    assert index.find(QUESTION) == ()
    assert time.perf_counter() - start < 0.01
