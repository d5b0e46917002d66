import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.agent.dialects import (
    DIALECTS,
    UnsayableTurn,
    drop_defaults,
    find_dialect,
    list_specs,
    list_tools,
)
from pipelines.agent.transcript import BadTurn, Turn, parse_turn, render_turn
from pipelines.ids import canonical_json

TEXT = [dialect for dialect in DIALECTS.values() if not dialect.native]
PUBLISHED = [dialect for dialect in DIALECTS.values() if dialect.forms is not None]
EACH = pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
EACH_TEXT = pytest.mark.parametrize("dialect", TEXT, ids=[dialect.name for dialect in TEXT])
EACH_PUBLISHED = pytest.mark.parametrize("dialect", PUBLISHED, ids=[dialect.name for dialect in PUBLISHED])

PLAIN = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
THOUGHTS = st.one_of(
    PLAIN, st.sampled_from(["Look.", "a\nSummary: b", "a\nSummary: b\nSummary: ", "Summary: x", "<img>"])
)
EDGES = st.integers(-3, 1200) | st.floats(0, 1000)
NAMES = [
    "image",
    "box",
    "unit",
    "query",
    "top_k",
    "url",
    "goal",
    "q",
    "x",
    "y",
    "width",
    "height",
    "bbox_2d",
    "img_idx",
]
NAMES += ["label", "amount", "scale", "?query", "?image", "??q", "other"]
VALUES = st.one_of(
    st.sampled_from(
        ["img_1", "img_2", "img_12", "?img_2", "?3", "normalised", "pixels", "region", "", 5, 1.0, True, 0]
    ),
    st.lists(EDGES, min_size=4, max_size=4),
    st.none() | st.booleans() | st.integers(-2, 9) | PLAIN,
)
TOOL_NAMES = [*list_tools(), *(f"?{name}" for name in list_tools()), "other", "?other", "image_zoom_in_tool", "search"]


def make_turns() -> st.SearchStrategy:
    arguments = st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=4).map(canonical_json)
    calls = st.builds(Turn, THOUGHTS, st.sampled_from(TOOL_NAMES), arguments)
    return calls | st.builds(Turn, THOUGHTS, answer=PLAIN)


def weigh(turn: Turn) -> tuple:
    """Return what a turn means, without arguments that say what their absence says."""
    values = drop_defaults(turn.tool, json.loads(turn.arguments)) if turn.tool else {}
    return turn.thought, turn.tool, canonical_json(values), turn.answer


def write_call(dialect: str, name: str, **values) -> str:
    think = find_dialect(dialect).think
    call = json.dumps({"name": name, "arguments": values})
    return f"<{think}>x</{think}><tool_call>{call}</tool_call>"


def read_call(dialect: str, name: str, **values) -> tuple[str, dict]:
    turn = parse_turn(write_call(dialect, name, **values), find_dialect(dialect))
    return turn.tool, json.loads(turn.arguments)


def say_call(dialect: str, tool: str, **values) -> tuple[str, dict]:
    text = render_turn(Turn("x", tool, canonical_json(values)), find_dialect(dialect))
    call = json.loads(text.split("<tool_call>")[1].split("</tool_call>")[0])
    return call["name"], call["arguments"]


# There and back


@EACH_PUBLISHED
@given(turn=make_turns())
def test_what_a_dialect_says_is_read_as_what_was_meant_and_else_it_says_so(dialect, turn):
    try:
        text = render_turn(turn, dialect)
    except UnsayableTurn:
        return
    read = parse_turn(text, dialect)
    assert weigh(read) == weigh(turn)
    assert parse_turn(render_turn(read, dialect), dialect) == read


@EACH_TEXT
@given(turn=make_turns())
def test_a_turn_that_was_read_is_said_and_read_again_without_a_change(dialect, turn):
    # A call as a model would write it, in the dialect's names or any other.
    name = next((form.name for form in dialect.forms or () if form.tool == turn.tool), turn.tool)
    values = json.loads(turn.arguments) if turn.tool else {}
    call = f"<tool_call>{json.dumps({'name': name, 'arguments': values})}</tool_call>"
    action = call if turn.tool else f"<{dialect.answer}>{turn.answer}</{dialect.answer}>"
    try:
        read = parse_turn(f"<{dialect.think}>{turn.thought}</{dialect.think}>{action}", dialect)
    except BadTurn:
        return
    assert parse_turn(render_turn(read, dialect), dialect) == read


CALLS = [
    ("image_search", {"image": "img_1"}),
    ("text_search", {"query": "Kelm Bridge"}),
    ("visit", {"url": "https://example.org/Kelm", "goal": "find the designer"}),
    ("crop", {"image": "img_2", "box": [10, 20, 500, 600]}),
    ("crop", {"image": "img_2", "box": [10, 20, 500, 600], "unit": "pixels"}),
    ("sharpen", {"image": "img_1", "amount": 2.0}),
    ("layout_parsing", {"image": "img_3"}),
]
SAYABLE = {
    "synth": {0, 1, 2, 3, 4, 5, 6},
    "opensearch-vl": {0, 1, 4, 5, 6},
    "vsearcher": {0, 1, 2},
    "mmsearch-r1": {0, 1},
    "mars": {0, 1, 3},
    "dr-mmsearch": {0, 1, 2},
    "native": {0, 1, 2, 3, 4, 5, 6},
}


@EACH
def test_each_dialect_can_say_exactly_what_its_tools_can_do(dialect):
    said = set()
    for number, (tool, values) in enumerate(CALLS):
        turn = Turn("Look.", tool, canonical_json(values))
        try:
            assert parse_turn(render_turn(turn, dialect), dialect) == turn
            said.add(number)
        except UnsayableTurn:
            assert dialect.forms is not None
    assert said == SAYABLE[dialect.name]
    answer = Turn("Done.", answer="5 April 1204")
    assert parse_turn(render_turn(answer, dialect), dialect) == answer


# Shapes


def test_pictures_go_by_number_from_zero_and_boxes_by_thousandths():
    zoom = {"bbox_2d": [0, 0, 500, 1000], "label": "tower", "img_idx": 1}
    ours = {"box": [0, 0, 500, 1000], "image": "img_2"}
    assert read_call("mars", "image_zoom_in_tool", **zoom) == ("crop", ours)
    assert say_call("mars", "crop", **ours) == ("image_zoom_in_tool", zoom | {"label": "region"})
    assert read_call("mars", "image_zoom_in_tool", **zoom | {"img_idx": "img_2"})[1]["image"] == "?img_2"
    assert read_call("mars", "image_zoom_in_tool", **zoom | {"img_idx": -1})[1]["image"] == -1


@pytest.mark.parametrize(
    ("dialect", "name"),
    [("vsearcher", "image_search"), ("dr-mmsearch", "web_image_to_image_search")],
)
def test_a_search_without_arguments_looks_up_the_first_picture(dialect, name):
    assert read_call(dialect, name) == ("image_search", {"image": "img_1"})
    assert say_call(dialect, "image_search") == (name, {})
    with pytest.raises(UnsayableTurn, match=f"{name} has no word for image_search's image"):
        say_call(dialect, "image_search", image="img_2")


# Strictness


@EACH_TEXT
@pytest.mark.parametrize(
    "reply",
    [
        "",
        "{answer}1931{/answer}",
        "{think}x{/think}",
        "{think} {/think}{answer}1931{/answer}",
        "{think}x{/think}{answer}a{/answer}{answer}b{/answer}",
        "{think}x{/think}{think}y{/think}{answer}b{/answer}",
        "{think}x{/think}{answer}1931{/answer}<tool_response>made up</tool_response>",
        "{think}x{/think}{answer}1931<|im_end|>{/answer}",
        "{think}x{/think}{action}",
    ],
)
def test_anything_but_one_thought_and_one_action_is_a_bad_turn_in_every_dialect(dialect, reply):
    for name in ("think", "answer", "response"):
        tag = getattr(dialect, name)
        reply = reply.replace(f"{{{name}}}", f"<{tag}>").replace(f"{{/{name}}}", f"</{tag}>")
    with pytest.raises(BadTurn):
        parse_turn(reply.replace("{action}", f"<{dialect.actions[0]}>"), dialect)


@EACH_TEXT
@given(pieces=st.data())
def test_parsing_raises_nothing_but_bad_turn_in_any_dialect(dialect, pieces):
    tags = [f"<{end}{name}>" for name in (dialect.think, *dialect.actions, "summary") for end in ("", "/")]
    text = "".join(pieces.draw(st.lists(st.sampled_from([*tags, "{", "}", "<img>", '"name"']) | PLAIN, max_size=10)))
    try:
        turn = parse_turn(text, dialect)
    except BadTurn:
        return
    assert parse_turn(render_turn(turn, dialect), dialect) == turn


# What a model is told


SPECS = list_specs(opencv=True, layout=True)
CONFIGURATIONS = [list_specs(opencv=cv, layout=layout) for cv in (False, True) for layout in (False, True)]
CONFIGURATIONS += [tuple(spec for spec in SPECS if spec is not left) for left in SPECS]
