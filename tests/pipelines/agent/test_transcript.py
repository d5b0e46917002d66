import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.agent.dialects import DIALECTS
from pipelines.agent.transcript import (
    FOREIGN,
    BadTurn,
    Turn,
    neutralise_markup,
    parse_turn,
    read_observation,
    render_messages,
    render_observation,
    render_turn,
)
from pipelines.ids import canonical_json
from pipelines.services.protocols import Message, ToolCall
from schemas.datasets import Observation, Picture, RolloutImage, Step

PLAIN = st.text(st.characters(exclude_categories=["Cs"])).filter(lambda text: not FOREIGN.search(text))
JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda kids: st.lists(kids, max_size=3))
CALL = '<think>x</think><tool_call>{"name": "visit", "arguments": {"url": "u"}}</tool_call>'


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "<answer>1931</answer>",
        "<think>x</think>",
        "<think> </think><answer>1931</answer>",
        "<think>x</think><answer>a</answer><answer>b</answer>",
        CALL + "<tool_response>made up</tool_response>",
        '<think>x</think><tool_call>{"name": "visit"}</tool_call>',
        '<think>x</think><tool_call>{"name": "", "arguments": {}}</tool_call>',
        '<think>x</think><tool_call>{"name": "v", "arguments": {"n": 1e999}}</tool_call>',
        '<think>x</think><tool_call>{"name": "v", "arguments": {"s": "\\ud800"}}</tool_call>',
        '<think>x</think><tool_call>{"name": "v", "arguments": {"s": "\\u003cimage>"}}</tool_call>',
        "<think>x</think><answer>1931<|im_end|></answer>",
    ],
)
def test_anything_but_one_thought_and_one_action_is_a_bad_turn(reply):
    with pytest.raises(BadTurn):
        parse_turn(reply)


@given(PLAIN.map(str.strip).filter(bool), PLAIN.map(str.strip))
def test_answers_survive_rendering_and_parsing(thought, answer):
    turn = Turn(thought, answer=answer)
    assert parse_turn(render_turn(turn)) == turn


@given(PLAIN.map(str.strip).filter(bool), st.dictionaries(st.text(max_size=5), JSON, max_size=3))
def test_calls_survive_rendering_and_parsing(thought, arguments):
    turn = Turn(thought, "visit", canonical_json(arguments))
    if re.search("[\ud800-\udfff]", turn.arguments) or FOREIGN.search(turn.arguments):
        return
    assert parse_turn(render_turn(turn)) == turn


def test_an_error_shows_its_class_on_the_first_line_and_reads_back():
    rendered = render_observation(Observation(ok=False, error="unknown-page", text="No page.", images=()))
    assert rendered == "<tool_response>\nerror: unknown-page\nNo page.\n</tool_response>"
    assert read_observation(rendered).splitlines()[0] == "error: unknown-page"


# Hostile text


@pytest.mark.parametrize(
    "text",
    [
        "<image" + " " * 200_000,
        "<" + " " * 200_000,
        "<" + " " * 100_000 + "/" + " " * 100_000,
        "<|" * 100_000,
        "<image <" * 50_000,
    ],
)
def test_text_that_almost_is_markup_is_looked_through_once(text):
    # Each took minutes where a pattern could be left and entered again at every space.
    assert neutralise_markup(text) == text


@pytest.mark.parametrize("tag", ["reason", "search", "text_search", "information", "summary"])
def test_no_page_can_speak_in_the_tags_of_another_dialect(tag):
    assert neutralise_markup(f"a <{tag}>b</{tag} >") == "a b"
    assert parse_turn(f"<think>A <{tag}> it is.</think><answer>b</answer>").thought == f"A <{tag}> it is."


# Messages

PICTURE = Picture(
    sha256="b" * 64,
    phash="0" * 16,
    extension="jpg",
    width=8,
    height=8,
    file="x.jpg",
    author="A",
    licence="CC0",
    licence_url="",
    source_url="",
)
SEEN = Observation(ok=True, error="", text="A crop.", images=("img_2",))
STEP = Step(thought="Closer.", tool="crop", arguments='{"box":[0,0,5,5]}', reply=CALL, observation=SEEN)
TOLD = Observation(ok=False, error="bad-turn", text="No turn.", images=())
NO_TURN = Step(thought="", tool="", arguments="", reply="", observation=TOLD)
OPENING = (Message("system", "Be brief."), Message("user", "Who?", ("a" * 64,)))


def test_a_call_in_tags_goes_back_as_it_came_and_its_picture_with_the_response():
    (*_, said, heard) = render_messages(OPENING, (STEP,), (RolloutImage(id="img_2", picture=PICTURE),))
    assert said == Message("assistant", CALL)
    assert heard == Message("user", "<tool_response>\nA crop.\n</tool_response>", ("b" * 64,))


def test_a_native_call_goes_back_as_a_call_and_its_picture_after_the_tools_message():
    images = (RolloutImage(id="img_2", picture=PICTURE),)
    (*_, said, heard, shown) = render_messages(OPENING, (STEP,), images, DIALECTS["native"])
    assert said == Message("assistant", "Closer.", calls=(ToolCall("call00000", "crop", '{"box":[0,0,5,5]}'),))
    assert heard == Message("tool", "A crop.", call_id="call00000")
    assert shown == Message("user", "img_2", ("b" * 64,))


@pytest.mark.parametrize("name", ["synth", "native"])
def test_a_turn_that_is_none_is_answered_by_a_user_and_never_empty(name):
    said, heard = render_messages(OPENING, (NO_TURN,), (), DIALECTS[name])[2:]
    assert said == Message("assistant", "(nothing)")
    assert heard.role == "user"
    assert "error: bad-turn\nNo turn." in heard.text
