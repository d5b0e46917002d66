import signal

import pytest

from pipelines.checks.foreign import (
    find_answer_faults,
    find_answer_leak,
    find_encoding_fault,
    find_named_answer,
    find_question_faults,
    find_second_question,
    is_refusal,
    judge_pointing,
)
from pipelines.checks.overlaps import is_specific, make_skeleton


@pytest.mark.parametrize(
    ("question", "answer", "found"),
    [
        ("Which Norwegian architect designed it?", "Norway", "norwegian"),
        ("How many of the three towers are red?", "3", "three"),
        ("When did the nineteen sixty-nine fair open?", "1969", "1969"),
        ("这座埃菲尔铁塔在哪里？", "埃菲尔铁塔", "埃菲尔铁塔"),
        ("В каком году Москве дали имя?", "Москва", "Москве"),
        ("ما اسم القاهرة؟", "قاهرة", "القاهرة"),
        ("Which city runs the tram to «Владивосток»?", "Vladivostok", "Владивосток"),
        ("What is Beijing like?", "北京", "Beijing"),
        ("Which one is red?", "1", ""),
        ("Is the car red or blue?", "red", ""),
        ("Which of these is it? A. oak B. elm", "oak", ""),
        ("Which Austrian town is this?", "Australia", ""),
        ("Who built it?", "Mira Tolland", ""),
    ],
)
def test_an_answer_is_found_in_whatever_writing_but_not_among_choices(question, answer, found):
    assert find_answer_leak(question, [answer]) == found


REFUSALS = """unknown|N/A|None|I'm sorry, I cannot|not found|Not Found|No Answer|无法确定|-|[]|sorry|SORRY|nan|NaN|NULL
Sorry, I can't help with that|I can't tell|We cannot see it|I don't know|No match|no idea|I DON'T KNOW|todo|I'm sorry
The image does not show it|It cannot be determined|As an AI language model, I refuse|Error: timed out"""


@pytest.mark.parametrize("text", REFUSALS.replace("\n", "|").split("|"))
def test_a_refusal_is_no_answer(text):
    assert is_refusal(text)


ANSWERS = """Norway|No|42|The Unknown|None of them|X|Unknown Pleasures|I Can't Stop Loving You|Sorry|Nan|No Match
I Don't Want to Miss a Thing|We Can't Stop|Sorry Seems to Be the Hardest Word|We Don't Talk About Bruno|Null|Dummy"""


@pytest.mark.parametrize("text", ANSWERS.replace("\n", "|").split("|"))
def test_an_answer_is_no_refusal(text):
    assert not is_refusal(text)


@pytest.mark.parametrize(
    "text", ["Who built it and when did it open?", "Who is this? Where was he born?", "这是谁？他在哪里出生？"]
)
def test_a_second_question_is_found(text):
    assert find_second_question(text)


@pytest.mark.parametrize(
    "text",
    [
        "Which river flows through the city where the man in the image was born and which lies in France?",
        "In the city where he lived and where he was born, what is seen?",
        "What is the name of the painting “Who are we? Where?”?",
    ],
)
def test_clauses_and_titles_ask_nothing(text):
    assert not find_second_question(text)


@pytest.mark.parametrize(
    "text", ["CafÃ© de Flore", "caf\\u00e9", "Tom &amp; Son", "a\u200bb", "Caf\ufffd", "<b>it</b>", "x%20y"]
)
def test_broken_encodings_are_found(text):
    assert find_encoding_fault(text)


@pytest.mark.parametrize(
    "text", ["café", "Đặng Thái Sơn", "100% of it?", "“São Paulo”", "https://a.org/x?y=%20", "北京"]
)
def test_odd_letters_are_no_fault(text):
    assert not find_encoding_fault(text)


@pytest.mark.parametrize(
    ("text", "points"),
    [
        ("In which year was this building built?", "plain"),
        ("Was ist das für ein Gebäude auf dem Bild?", "plain"),
        ("这是谁？", "plain"),
        ("Who built it?", "meant"),
        ("What is the man holding?", "implied"),
        ("Who designed the Eiffel Tower?", "none"),
        ("How many legs does a spider have?", "none"),
        ("法国的首都是哪里？", "none"),
        ("Quelle est la capitale de la France ?", "unknown"),
    ],
)
def test_how_a_question_points_to_its_picture(text, points):
    assert judge_pointing(text) == points


def test_a_pictures_name_tells_a_named_answer_and_no_number():
    assert find_named_answer("https://x.example/a/Mira_Tolland.jpg", ["Mira Tolland"])
    assert not find_named_answer("bridge_1901.jpg", ["1901"])
    assert not find_named_answer("", ["Mira Tolland"])


@pytest.fixture
def patience():
    """End a test that takes for ever."""
    before = signal.signal(signal.SIGALRM, lambda *_: pytest.fail("it takes for ever"))
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize(
    "text", ["who," * 60_000, "“" * 60_000, "«" * 60_000, "What is the" + " " * 60_000 + "x", "<a " * 20_000]
)
def test_no_text_of_a_stranger_takes_for_ever(text):
    assert {fault.name for fault in find_question_faults(text)} <= {"encoding", "missing-question"}
    faults = {fault.name for fault in find_answer_faults("Who is it?", [text])}
    assert faults <= {"encoding", "answer-too-long", "no-real-answer"}
    assert len(make_skeleton(text).split()) <= 9
    assert is_specific("Who built Berlin?" + text)


def test_a_long_question_keeps_both_of_its_ends():
    filler = "and this one " * 400
    assert make_skeleton(f"Who of all those {filler}is the oldest here?") == "who of all those and _ the oldest here"
