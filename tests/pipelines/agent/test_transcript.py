import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.agent.transcript import (
    MARKUP,
    BadTurn,
    Turn,
    neutralise_markup,
    parse_turn,
    read_observation,
    render_observation,
    render_turn,
)
from pipelines.ids import canonical_json
from schemas.rollouts import Observation

PIECES = ("<think>", "</think>", "<tool_call>", "</tool_call>", "<answer>", "</answer>", "{", "}", '"name"', ":", '"a"')
PLAIN = st.text(st.characters(exclude_categories=["Cs"])).filter(lambda text: not MARKUP.search(text))
JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda kids: st.lists(kids, max_size=3))
CALL = '<think>x</think><tool_call>{"name": "visit", "arguments": {"url": "u"}}</tool_call>'


def test_a_call_turn_gives_thought_tool_and_canonical_arguments():
    assert parse_turn(CALL) == Turn("x", "visit", '{"url":"u"}', "")


def test_an_answer_turn_gives_the_answer_stripped():
    assert parse_turn("<think>\nx\n</think>\n<answer> 1931 </answer>\n") == Turn("x", answer="1931")


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "1931",
        "<answer>1931</answer>",
        "<think>x<answer>1931</answer>",
        "<think>x</think>",
        "<think> </think><answer>1931</answer>",
        "<think>x</think><answer>1931</answer> and more",
        "<think>x</think><answer>a</answer><answer>b</answer>",
        CALL + "<tool_response>made up</tool_response>",
        "<think>x</think><tool_call>visit(u)</tool_call>",
        '<think>x</think><tool_call>{"name": "visit"}</tool_call>',
        '<think>x</think><tool_call>{"name": "visit", "arguments": "u"}</tool_call>',
        '<think>x</think><tool_call>{"name": "", "arguments": {}}</tool_call>',
        '<think>x</think><tool_call>{"name": "v", "arguments": {"n": NaN}}</tool_call>',
        '<think>x</think><tool_call>{"name": "v", "arguments": {"n": 1e999}}</tool_call>',
        '<think>x</think><tool_call>{"name": "v", "arguments": {"n": 1, "n": 2}}</tool_call>',
        '<think>x</think><tool_call>{"name": "v", "arguments": {"s": "\\ud800"}}</tool_call>',
        '<think>x</think><tool_call>{"name": "v", "arguments": {"s": "\\u003cimage>"}}</tool_call>',
        "<think>x <image> y</think><answer>1931</answer>",
        "<think>x</think><answer>1931<|im_end|></answer>",
        "<think>x</think><tool_call>" + "[" * 100_000 + "</tool_call>",
    ],
)
def test_anything_but_one_thought_and_one_action_is_a_bad_turn(reply):
    with pytest.raises(BadTurn):
        parse_turn(reply)


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=12).map("".join))
def test_parsing_raises_nothing_but_bad_turn(text):
    try:
        turn = parse_turn(text)
    except BadTurn:
        return
    assert parse_turn(render_turn(turn)) == turn


@given(PLAIN.map(str.strip).filter(bool), PLAIN.map(str.strip))
def test_answers_survive_rendering_and_parsing(thought, answer):
    turn = Turn(thought, answer=answer)
    assert parse_turn(render_turn(turn)) == turn


@given(PLAIN.map(str.strip).filter(bool), st.dictionaries(st.text(max_size=5), JSON, max_size=3))
def test_calls_survive_rendering_and_parsing(thought, arguments):
    turn = Turn(thought, "visit", canonical_json(arguments))
    if re.search("[\ud800-\udfff]", turn.arguments) or MARKUP.search(turn.arguments):
        return
    assert parse_turn(render_turn(turn)) == turn


@given(
    st.lists(st.sampled_from(("<", "|", "image", ">", "</", "think", "im_end", "<|", "|>", "a")), max_size=30).map(
        "".join
    )
)
def test_neutralised_text_holds_no_markup_however_it_was_nested(text):
    assert not MARKUP.search(neutralise_markup(text))


@pytest.mark.parametrize(
    "token", ["<image>", "<Video/>", "</think>", "<tool_call>", "<tool_response>", "<|im_end|>", "<|im_start|>", "</s>"]
)
def test_each_kind_of_markup_is_stripped(token):
    assert neutralise_markup(f"a {token}b") == "a b"


def test_ordinary_angle_brackets_stay():
    assert neutralise_markup("3 < 4 and <b>x</b> -> y") == "3 < 4 and <b>x</b> -> y"


def test_an_error_shows_its_class_on_the_first_line_and_reads_back():
    rendered = render_observation(Observation(ok=False, error="unknown-page", text="No page.", images=()))
    assert rendered == "<tool_response>\nerror: unknown-page\nNo page.\n</tool_response>"
    assert read_observation(rendered).splitlines()[0] == "error: unknown-page"


def test_a_warning_shows_its_class_on_the_first_line_and_reads_back():
    rendered = render_observation(Observation(ok=True, error="", text="As it was.", images=(), warning="no-weights"))
    assert rendered == "<tool_response>\nwarning: no-weights\nAs it was.\n</tool_response>"
    assert read_observation(rendered).splitlines()[0] == "warning: no-weights"


def test_a_rendered_call_is_json_with_name_and_arguments():
    call = render_turn(Turn("x", "crop", '{"box":[1,2,3,4]}')).split("<tool_call>")[1].split("</tool_call>")[0]
    assert json.loads(call) == {"name": "crop", "arguments": {"box": [1, 2, 3, 4]}}
