import pytest

from pipelines.agent.dialects import DIALECTS
from pipelines.agent.transcript import Turn, render_turn
from pipelines.checks.rollouts import check_tool_errors, check_turns, list_loss
from tests.pipelines.checks.rollouts.walking import CLEAN, answer, call, fail, replace_step, see, visit, walk

BAD_TURN = call("visit", see("That is no turn.", ok=False, error="bad-turn")).model_copy(
    update={"tool": "", "arguments": "", "thought": "", "reply": "I will look."}
)


def change(step, **changes):
    return step.model_copy(update=changes)


def test_a_clean_rollout_has_its_form():
    assert check_turns(walk()).passed


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        (replace_step(2, change(CLEAN[2], reply=CLEAN[2].reply.replace("</think>", ""))), "step 2: the tags are"),
        (replace_step(2, change(CLEAN[2], tool="visit")), "step 2: the step is not what its reply says"),
        (replace_step(2, change(CLEAN[2], thought="Another.")), "step 2: the step is not what its reply says"),
        (replace_step(2, change(CLEAN[2], observation=None)), "step 2: a step before the answer must be a call"),
        (replace_step(2, answer()), "step 2: a step before the answer must be a call"),
        (replace_step(2, fail("dance", "unknown-tool")), "step 2: dance: unknown-tool"),
        (replace_step(2, fail("visit", "bad-arguments")), "step 2: visit: bad-arguments"),
        (replace_step(2, BAD_TURN), "step 2: the tags are absent"),
    ],
)
def test_one_malformed_step_is_named(steps, problem):
    result = check_turns(walk(*steps))
    assert (result.outcome, result.code) == ("FAIL", "format")
    assert result.detail.startswith(problem)


def test_an_answer_that_is_not_the_last_replys_is_refused():
    assert "the last reply answers '5 April 1204'" in check_turns(walk(answer="1204")).detail


def test_what_stopped_by_format_is_refused_and_what_met_a_limit_is_not():
    for stop in ("turn-limit", "context-limit", "time-limit"):
        assert check_turns(walk(*CLEAN[:-1], stop_reason=stop)).passed
    assert check_turns(walk(*CLEAN[:-1], stop_reason="format")).detail == "step 5: stopped by format"
    assert check_turns(walk(*CLEAN[:-1], stop_reason="answered")).detail == "step 5: the last step makes a call"


def test_no_step_is_no_form_unless_a_limit_was_met():
    nothing = walk().__class__(walk(steps=(), stop_reason="answered").rollout, " ", ())
    assert check_turns(nothing).detail == "no step"
    limited = walk(steps=(), stop_reason="context-limit")
    assert check_turns(limited).passed


@pytest.mark.parametrize("name", [name for name in DIALECTS if name != "synth"])
def test_a_rollout_is_held_to_its_own_dialect(name):
    page = CLEAN[1]
    turn = Turn("So.", answer="5 April 1204")
    last = change(answer(), thought="So.", reply=render_turn(turn, DIALECTS[name]))
    assert check_turns(walk(last, dialect=name, answer="5 April 1204")).passed
    assert not check_turns(walk(last, dialect="nobody", answer="5 April 1204")).passed
    if last.reply != render_turn(turn):
        assert not check_turns(walk(last, answer="5 April 1204")).passed
    assert page.tool == "visit"


def test_errors_one_after_the_other_are_fatal_at_their_number():
    two = (fail(url="a"), fail(url="b"))
    assert check_tool_errors(walk(*two, CLEAN[1], fail(url="c"), answer())).passed
    result = check_tool_errors(walk(CLEAN[0], *two, fail(url="c"), answer()))
    assert (result.outcome, result.code) == ("FAIL", "tool-errors")
    assert not check_tool_errors(walk(*two, answer()), fatal_errors=2).passed
    assert check_tool_errors(walk(*two, fail(url="c"), answer()), fatal_errors=4).passed


@pytest.mark.parametrize(
    "changes", [{"fatal_reached": 4}, {"fatal_begins": 2}, {"stop_reason": "tool-errors", "answer": ""}]
)
def test_a_fatal_step_that_the_steps_do_not_show_is_refused_too(changes):
    assert check_tool_errors(walk(**changes)).code == "tool-errors"


def test_failed_calls_and_turns_that_are_none_are_not_trained_on():
    steps = (CLEAN[0], fail(), BAD_TURN, visit("Kelm Bridge"), answer())
    assert list_loss(steps) == (True, False, False, True, True)
    ended = change(BAD_TURN, observation=None)
    assert list_loss((ended,)) == (False,)
