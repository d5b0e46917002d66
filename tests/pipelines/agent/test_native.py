import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.agent.transcript import BadTurn, Turn, parse_turn, write_down
from pipelines.services.protocols import ChatReply, ToolCall

LOOK = ToolCall("1", "image_search", '{"image": "img_1"}')
TEXT = st.text(max_size=30) | st.sampled_from(
    ["<think>a</think>", "<answer>b</answer>", "}", '{"a": 1}', "<tool_call>"]
)


def read(text: str = "", calls=(), reasoning: str = "") -> Turn:
    return parse_turn(write_down(ChatReply(text, 1, 1, calls=tuple(calls), reasoning=reasoning)))


@pytest.mark.parametrize(
    ("text", "reasoning", "thought"),
    [
        ("What is it?", "", "What is it?"),
        ("What is it?", "A bridge, perhaps.", "A bridge, perhaps."),
        ("", "A bridge, perhaps.", "A bridge, perhaps."),
        ("<think>\nA bridge.\n</think>\n\n", "", "A bridge."),
        ("<think>A bridge.</think>Let me see.", "", "A bridge."),
        ("A bridge.\n</think>\n\n", "", "A bridge."),
        ("", "I make one <tool_call>, then I give <answer>...</answer>.", "I make one , then I give ...."),
    ],
)
def test_the_thought_is_the_reasoning_or_else_the_text(text, reasoning, thought):
    assert read(text, [LOOK], reasoning) == Turn(thought, "image_search", '{"image":"img_1"}')


@pytest.mark.parametrize(
    ("text", "calls", "said"),
    [
        ("Both.", [LOOK, LOOK], "2 tool calls"),
        ("", [], "neither a tool call nor an answer"),
        ("<answer>1931</answer>", [], "the thought is empty"),
        ("x <answer>1</answer>", [LOOK], "the tags are"),
        ("x", [ToolCall("1", "", "{}")], "name must be"),
        ("x", [ToolCall("1", "visit", "[1]")], "arguments are not a JSON object"),
        ("x", [ToolCall("1", "visit", "[" * 100_000)], "arguments are not a JSON object"),
        ("x <image>", [LOOK], "may not stand inside"),
    ],
)
def test_anything_else_is_a_bad_turn(text, calls, said):
    with pytest.raises(BadTurn, match=said):
        read(text, calls)


@given(TEXT, TEXT, st.lists(st.builds(ToolCall, TEXT, TEXT, TEXT), max_size=2))
def test_reading_raises_nothing_but_bad_turn_and_what_was_read_is_what_was_called(text, reasoning, calls):
    try:
        turn = read(text, calls, reasoning)
    except BadTurn:
        return
    assert turn.thought
    if calls:
        assert turn.tool == calls[0].name.strip()
        assert json.loads(turn.arguments) == json.loads(calls[0].arguments or "{}")
    else:
        assert turn.answer in text
