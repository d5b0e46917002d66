"""What the rejection cascade finds in a rollout."""

import pytest

from pipelines.agent.observations import Shown, render_hits
from pipelines.checks.rollouts import (
    check_claims,
    check_contamination,
    check_images,
    check_jumps,
    check_path,
    check_repetition,
    check_sought,
    check_tool_errors,
    check_turns,
    find_support,
    fold_words,
    locate_answer,
)
from schemas.datasets import RolloutImage
from schemas.proofs import Answer
from tests.pipelines.checks.walking import (
    ANSWER,
    BRIDGE,
    CLEAN,
    ENGINEER,
    QUESTION,
    TOWN,
    answer,
    call,
    fail,
    look,
    make_picture,
    make_url,
    replace_step,
    search,
    see,
    visit,
    walk,
)

PAGE = visit(
    "Velm",
    "Velm has 12,500 people and 3.5 million trees on 1,931 hectares. The Saint John Hospital of J. R. Oder opened on "
    "16 December 1881, the U.S. Embassy in 1956. The tower is 320 m high, it has twelve bells. Beaulieu lies on a "
    "firth that is no Firth of Oder. Mount Kelm was climbed in the 20th century.",
)


def judge(thought, text="5 April 1204", **settings):
    return check_claims(walk(*CLEAN[:-1], PAGE, answer(text, thought)), **settings)


@pytest.mark.parametrize(
    "thought",
    [
        "So it is 5 April 1204.", "It was founded on April 5th, 1204, as the page says.",
        "According to Wikipedia, Saint John Hospital opened in December 1881.",
        "The US Embassy dates from the 1950s, the 20th century.",
        "Velm has 12500 people, 3,500,000 trees and 12 bells.", "The tower is 320 metres (0.32 km) high.",
        "Between 1881 and 1956 lie 75 years.", "Step 1 led to img_1 and 7 hits; see https://example.org/Nowhere_99.",
        "Opening the page helped. Nothing else did. I am sure.",
        "I am 100% sure. Confidence: 95 %. I'm 99 percent certain, with a confidence level of 90%.",
        "The User asks for the Town. The JSON result and the Infobox say so. Let me VERIFY: yes.", "",
    ],
)  # fmt: skip
def test_what_was_shown_in_other_words_is_no_new_claim(thought):
    assert judge(thought or ".").passed


@pytest.mark.parametrize(
    ("thought", "claim"),
    [
        ("It was founded in 1307.", "1307"), ("The town has 12,501 people.", "12,501"),
        ("It opened on 17 December 1881.", "17 December 1881"), ("It opened in January 1881.", "January 1881"),
        ("The tower is 321 m high.", "321"), ("It was built by Hans Oder.", "Hans Oder"),
        ("It lies on the Beaulieu Firth.", "Beaulieu Firth"), ("As I know, Lumby is near.", "Lumby"),
        ("The Tollmark Consortium paid for it.", "The Tollmark Consortium"), ("The share is 47 percent.", "47"),
        ("Surely 47% of it.", "47"), ("It is by Hans Oder, Ana Kovač and the Velm " + "Kelm " * 30, "Hans Oder"),
    ],
)  # fmt: skip
def test_a_claim_that_nothing_shows_is_named(thought, claim):
    result = judge(thought)
    assert (result.outcome, result.code) == ("FAIL", "unseen-claim")
    assert repr(claim) in result.detail


@pytest.mark.parametrize("check", [check_contamination, check_turns, check_jumps])
def test_a_clean_rollout_passes(check):
    assert check(walk()).passed


@pytest.mark.parametrize(
    ("text", "flag"),
    [
        (f"A quiz: {QUESTION.upper()}", "question-text"),
        ("see question-0001 in the table", "row-id"),
        ("see rollout-00000001", "row-id"),
        ("so <think> it is", "protocol-tags"),
    ],
)
def test_a_flag_that_the_row_lacks_is_found_again(text, flag):
    step = call("visit", see(text), url="https://e.org/x")
    assert flag in check_contamination(walk(CLEAN[0], step, answer())).detail


@pytest.mark.parametrize(
    ("steps", "missing"),
    [
        (
            (look(BRIDGE), search("Marlow", TOWN), visit(TOWN), answer()),
            "no page links 'Ana Kovač' and 'Marlow (town)'",
        ),
        ((search("Marlow", TOWN), visit(TOWN), answer()), "no page links 'Kelm Bridge' and 'Ana Kovač'"),
        ((*CLEAN[:4], answer()), "no page gives the answer for 'Marlow (town)'"),
        ((*CLEAN[:4], visit("Ister", "It froze on 5 April 1204."), answer()), "no page gives the answer"),
        ((answer(),), "no page links"),
    ],
)
def test_a_link_that_was_not_seen_is_named(steps, missing):
    result = check_path(walk(*steps))
    assert (result.outcome, result.code) == ("FAIL", "path-not-covered")
    assert missing in result.detail


BAD_TURN = call("visit", see("That is no turn.", ok=False, error="bad-turn")).model_copy(
    update={"tool": "", "arguments": "", "thought": "", "reply": "I will look."}
)


def change(step, **changes):
    return step.model_copy(update=changes)


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        (replace_step(2, change(CLEAN[2], reply=CLEAN[2].reply.replace("</think>", ""))), "step 2: the tags are"),
        (replace_step(2, change(CLEAN[2], tool="visit")), "step 2: the step is not what its reply says"),
        (replace_step(2, change(CLEAN[2], observation=None)), "step 2: a step before the answer must be a call"),
        (replace_step(2, fail("dance", "unknown-tool")), "step 2: dance: unknown-tool"),
        (replace_step(2, BAD_TURN), "step 2: the tags are absent"),
    ],
)
def test_one_malformed_step_is_named(steps, problem):
    result = check_turns(walk(*steps))
    assert (result.outcome, result.code) == ("FAIL", "format")
    assert result.detail.startswith(problem)


def test_errors_one_after_the_other_are_fatal_at_their_number():
    two = (fail(url="a"), fail(url="b"))
    assert check_tool_errors(walk(*two, CLEAN[1], fail(url="c"), answer())).passed
    result = check_tool_errors(walk(CLEAN[0], *two, fail(url="c"), answer()))
    assert (result.outcome, result.code) == ("FAIL", "tool-errors")


def list_images(count):
    return tuple(RolloutImage(id=f"img_{n}", picture=make_picture()) for n in range(1, count + 1))


def crop(*made, image="img_1", **changes):
    return call("crop", see("A crop.", images=made), image=image, box=[1, 2, 3, 4], **changes)


def judge_images(*steps, count=1):
    return check_images(walk(*steps, answer(), images=list_images(count)))


@pytest.mark.parametrize(
    ("steps", "count", "problem"),
    [
        ((call("image_search", see("x"), image="img_2"), crop("img_2")), 2, "step 0: the call names img_2"),
        ((fail("image_search", "unknown-image", image="photo"),), 1, "step 0: the call names photo"),
        ((visit("A", thought="As img_2 shows."),), 1, "step 0: the thought names img_2"),
        ((crop("img_3"),), 3, "step 0: the observation shows ['img_3']; next are ['img_2']"),
        ((crop("img_2"),), 1, "the pictures are ['img_1']; the steps show ['img_1', 'img_2']"),
        ((), 0, "the pictures are []; the first is img_1"),
    ],
)
def test_a_picture_that_is_not_there_yet_is_named(steps, count, problem):
    result = judge_images(*steps, count=count)
    assert (result.outcome, result.code) == ("FAIL", "unknown-image")
    assert problem in result.detail


def judge_repeats(*steps, **settings):
    return check_repetition(walk(*steps, answer()), **settings)


@pytest.mark.parametrize(
    ("first", "second", "repeats"),
    [
        ("Ana Kovač birth place", "birth place of the Ana Kovač", True),
        ("Ana Kovač birth place", "KOVAC, Ana: birth-place?", True),
        ("Ana Kovač birth place", "Ana Kovač death place", False),
        ("Ana Kovač birth place", "Ana Kovač", False),
        ("the who", "who is the", False),
        ("one two three four", "one two three four five", True),
        ("one two three four", "one two three four five six", False),
    ],
)
def test_queries_of_the_same_words_are_a_repetition(first, second, repeats):
    assert judge_repeats(search(first, ENGINEER), search(second)).passed != repeats


def test_a_page_found_again_repeats_nothing_where_it_now_shows_the_fact():
    def ask(query, text):
        return call("text_search", see(render_hits([Shown(make_url(TOWN), TOWN, text)], 600)), query=query)

    said = ask("Marlow highest hill", "Marlow has hills.")
    assert judge_repeats(said, ask("highest hill of Marlow", "Its highest hill is Mount Elbert.")).passed
    again = judge_repeats(said, ask("Which hill is Marlow's Mount Elbert?", "Nothing of Mount Elbert is said."))
    assert again.code == "repetition"
    assert "the same results" in again.detail


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
        ("with five arches", COUNT, "five"), ("with 5 arches", COUNT, "5"),
        ("by ANA  KOVAC herself", NAME, "ANA  KOVAC"), ("by Ana\nKovač", NAME, "Ana\nKovač"),
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
    ("reference", "thought", "by_chance"),
    [
        (COUNT, "There are 5 hits.", True), (SHORT, "I have 2 candidates.", True),
        (make_answer("string", "stone"), "The stone comes next.", True),
        (make_answer("name", "Stone Bridge of Velm", aliases=("Bridge",)), "Which bridge may it be?", True),
        (STATES, "Let us look at it; who knows.", True), (SHORT, "It must be 2 km.", False),
        (SHORT, "Some 2,000 m, I think.", False), (make_answer("string", "stone bridge"), "A stone bridge.", False),
        (STATES, "That is in the US.", False), (STATES, "That is in the united states.", False),
    ],
)  # fmt: skip
def test_small_numbers_and_ordinary_words_are_said_by_chance_and_others_from_memory(reference, thought, by_chance):
    steps = replace_step(2, search("Ana Kovač", ENGINEER, thought=thought))
    assert check_sought(walk(*steps, reference=reference, answer=reference.surface)).passed is by_chance


@pytest.mark.parametrize(
    ("steps", "title"),
    [
        ((look("A page"), search("Kelm Bridge designer", "A page"), *CLEAN[2:]), BRIDGE),
        ((look("A page"), fail(url="https://e.org/Kelm_Bridge"), *CLEAN[2:]), BRIDGE),
        ((look("A page"), answer(thought="That is the Kelm Bridge.")), BRIDGE),
        ((*CLEAN[:2], search("Marlow founded", TOWN), *CLEAN[5:]), TOWN),
        ((CLEAN[0], visit(BRIDGE, "A bridge.", goal="is it by Ana Kovač?"), answer()), ENGINEER),
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
