import pytest

from pipelines.checks.rollouts import check_jumps, check_sought, check_support, find_support, fold_words, locate_answer
from schemas.proofs import Answer
from tests.pipelines.checks.rollouts.walking import (
    ANSWER,
    BRIDGE,
    CLEAN,
    ENGINEER,
    PAGES,
    TOWN,
    answer,
    call,
    fail,
    look,
    replace_step,
    search,
    see,
    visit,
    walk,
)


def make_answer(kind, value, unit="", surface="", aliases=()):
    return Answer(
        type=kind,
        value=value,
        precision="",
        unit=unit,
        surface=surface or value,
        aliases=aliases,
        key=f"{kind}:{value}",
    )


LENGTH = make_answer("number", "2000", "m", "2,000 m")
COUNT = make_answer("number", "5")
SHORT = make_answer("number", "2", "km", "2 km")
STATES = make_answer("name", "United States", aliases=("US", "U.S.", "WHO"))
NAME = make_answer("name", "Ana Kovač")


def find(text, reference):
    forms = (reference.surface, reference.value, *reference.aliases)
    span = locate_answer(text, fold_words(text), forms, reference)
    return None if span is None else text[span[0] : span[1]]


@pytest.mark.parametrize(
    ("text", "reference", "found"),
    [
        ("Founded: 5 April 1204", ANSWER, "5 April 1204"),
        ("founded on the 5th of April, 1204.", ANSWER, "5th of April, 1204"), ("in April 1204", ANSWER, None),
        ("15 April 1204", ANSWER, None), ("Length: 2,000 m", LENGTH, "2,000 m"), ("a length of 2 km", LENGTH, "2 km"),
        ("Length: 2000", LENGTH, "2000"), ("2,000 ft", LENGTH, None), ("1,5 and 5.2 and 15", COUNT, None),
        ("with five arches", COUNT, "five"), ("with 5 arches", COUNT, "5"),
        ("by ANA  KOVAC herself", NAME, "ANA  KOVAC"), ("by Ana\nKovač", NAME, "Ana\nKovač"),
        ("by Hana Kovač", NAME, None), ("Let us see who came.", STATES, None), ("in the US.", STATES, "US"),
        ("UNITED  STATES", STATES, "UNITED  STATES"), ("", NAME, None),
    ],
)  # fmt: skip
def test_an_answer_is_found_as_what_it_is(text, reference, found):
    assert find(text, reference) == found


def test_the_first_observation_that_holds_the_answer_supports_it():
    step, (start, end) = find_support(walk())
    assert step == 4
    assert CLEAN[4].observation.text[start:end] == "5 April 1204"


@pytest.mark.parametrize(
    ("step", "number"),
    [
        (look("A", "B", "C"), "3"),
        (search("x", "A", "B", "C"), "2"),
        (call("visit", see("Title: A\nURL: https://e.org/7\n\nNo more."), url="https://e.org/7"), "7"),
        (call("layout_parsing", see("text [12, 40, 500, 60] (0.93): Hello"), image="img_1"), "40"),
        (call("crop", see("img_2: a part, 300 x 200 pixels.", images=("img_2",)), image="img_1"), "300"),
    ],
)
def test_how_an_observation_is_laid_out_supports_nothing(step, number):
    trail = walk(step, answer(number), reference=make_answer("number", number), answer=number)
    assert not check_support(trail).passed


def test_a_support_points_into_the_text_as_it_is_shown():
    seen = see("[1] Kelm\nURL: https://e.org/3\nIt has 3 arches.\nPicture: img_2", images=("img_2",))
    steps = (call("text_search", seen, query="x"), answer("3"))
    step, (start, end) = find_support(walk(*steps, reference=make_answer("number", "3"), answer="3"))
    assert (step, seen.text[start - 4 : end + 7]) == (0, "has 3 arches")


@pytest.mark.parametrize(
    "step",
    [
        search("Ana Kovač", ENGINEER, thought="It must be 5 April 1204, let me see."),
        search("towns founded on April 5, 1204", ENGINEER),
        visit(ENGINEER, goal="check that it is 5 April 1204"),
    ],
)
def test_the_answer_said_before_a_tool_shows_it_is_from_memory(step):
    assert not check_sought(walk(*replace_step(2, step))).passed
    assert check_sought(walk(*CLEAN[:-1], step, answer())).passed


@pytest.mark.parametrize(
    ("reference", "thought"),
    [
        (COUNT, "There are 5 hits."),
        (SHORT, "I have 2 candidates."),
        (make_answer("string", "stone"), "The stone comes next."),
        (make_answer("name", "Stone Bridge of Velm", aliases=("Bridge",)), "Which bridge may it be?"),
        (STATES, "Let us look at it; who knows."),
    ],
)
def test_small_numbers_and_ordinary_words_are_said_by_chance(reference, thought):
    steps = replace_step(2, search("Ana Kovač", ENGINEER, thought=thought))
    assert check_sought(walk(*steps, reference=reference, answer=reference.surface)).passed


@pytest.mark.parametrize(
    ("reference", "thought"),
    [
        (SHORT, "It must be 2 km."),
        (SHORT, "Some 2,000 m, I think."),
        (make_answer("string", "stone bridge"), "It will be a stone bridge."),
        (STATES, "That is in the US."),
        (STATES, "That is in the united states."),
    ],
)
def test_what_is_said_of_nothing_else_is_from_memory(reference, thought):
    steps = replace_step(2, search("Ana Kovač", ENGINEER, thought=thought))
    assert not check_sought(walk(*steps, reference=reference, answer=reference.surface)).passed


def test_what_the_question_says_is_no_memory():
    steps = replace_step(2, search("Ana Kovač 1931", ENGINEER, thought="In 1931, so."))
    reference = make_answer("date", "1931")
    early = (look("A"), *steps[2:])
    assert not check_sought(walk(*early, reference=reference, answer="1931")).passed
    said = "Which bridge of 1931 is in the image?"
    assert check_sought(walk(*early, reference=reference, answer="1931", question=said)).passed


def test_a_clean_rollout_jumps_nowhere():
    assert check_jumps(walk()).passed


@pytest.mark.parametrize(
    ("steps", "title"),
    [
        ((look("A page"), search("Kelm Bridge designer", "A page"), *CLEAN[2:]), BRIDGE),
        ((look("A page"), fail(url="https://e.org/Kelm_Bridge"), *CLEAN[2:]), BRIDGE),
        ((look("A page"), answer(thought="That is the Kelm Bridge.")), BRIDGE),
        ((CLEAN[0], search("Ana Kovac birthplace", ENGINEER), *CLEAN[3:]), ENGINEER),
        ((CLEAN[0], search("Kovač, Ana", ENGINEER), *CLEAN[3:]), ENGINEER),
        ((*CLEAN[:2], search("Marlow founded", TOWN), *CLEAN[5:]), TOWN),
        ((CLEAN[0], visit(BRIDGE, "A bridge.", goal="is it by Ana Kovač?"), answer()), ENGINEER),
        ((CLEAN[0], fail(url="https://en.wikipedia.org/wiki/Ana_Kova%C4%8D"), *CLEAN[3:]), ENGINEER),
        ((CLEAN[0], answer(thought="Ana Kovač built it, so 5 April 1204.")), ENGINEER),
    ],
)
def test_a_name_used_before_it_was_seen_is_a_memory_jump(steps, title):
    hits = steps[0].model_copy(
        update={"observation": see("[1] Kelm Bridge\nURL: https://e.org/Kelm_Bridge\nA bridge.")}
    )
    first = hits if steps[0] is CLEAN[0] else steps[0]
    blind = [step if step is not CLEAN[1] else visit(BRIDGE, "A bridge in Velm.") for step in (first, *steps[1:])]
    result = check_jumps(walk(*blind))
    assert (result.outcome, result.code) == ("FAIL", "memory-jump")
    assert repr(title) in result.detail


@pytest.mark.parametrize("step", [search("Kelm Bridge designer", BRIDGE), visit(BRIDGE)])
def test_what_is_in_the_picture_may_be_told_by_sight_where_the_call_shows_it(step):
    assert check_jumps(walk(look("A page"), step, *CLEAN[1:])).passed
    assert check_jumps(walk(step, *CLEAN[1:])).passed
    hidden = walk(look("A page"), step, *CLEAN[1:], path=("Velm", *PAGES), bridges=(BRIDGE, ENGINEER))
    assert not check_jumps(hidden).passed
