"""Dialects: the tags, tool names and system prompts in which a rollout is held, ours and those of published systems.

A step always holds our own tool names and arguments; a dialect decides only what the model is told and how its turns
read. Sources: OpenSearch-VL appendix E (figures 7 and 8), VSearcher appendix B, MMSearch-R1 appendix D.2,
SenseNova-MARS (its tool configuration; figures 16 and 18 of the paper show another set), DR-MMSearchAgent appendix G
and its tool configuration. Names and shapes are theirs, every text is ours.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from pydantic import BaseModel

from pipelines.agent.toolforms import MADE_UP, ToolForm, UnsayableTurn, Values, list_arguments, list_tools
from pipelines.errors import ConfigError
from pipelines.prompting import Prompt, load_prompt, render_messages

VERSION = 2
"""Raised when a dialect is read or written otherwise, so that rollouts are made anew."""
CALL = "tool_call"


@dataclass(frozen=True, slots=True, eq=False)
class Dialect:
    """A protocol between a model and the tools.

    Attributes:
        name: as settings and rows have it.
        prompt: name and version of its prompt.
        forms: its tools; None: all of ours, under our names.
        think: tag of the thought.
        answer: tag of the answer.
        response: tag that a tool's reply stands in.
        summary: tag of a block that may stand between the last thought and the answer; empty for none.
        native: whether calls go by the server's own tool calls instead of tags.
        calls: tool calls that the published system allows; 0 where it names no limit.
    """

    name: str
    prompt: tuple[str, int]
    forms: tuple[ToolForm, ...] | None = None
    think: str = "think"
    answer: str = "answer"
    response: str = "tool_response"
    summary: str = ""
    native: bool = False
    calls: int = 0

    @property
    def identity(self) -> str:
        """Name and version of how it is read."""
        return f"{self.name}@{VERSION}"

    @property
    def stop(self) -> tuple[str, ...]:
        """Texts that end a reply: a model that goes on after its call would make the tool's response up."""
        return () if self.native else (f"<{self.response}>",)

    @property
    def actions(self) -> tuple[str, ...]:
        """Tags of what follows the thought, that of the answer last."""
        tags = dict.fromkeys(form.tag or CALL for form in self.forms) if self.forms is not None else {CALL: None}
        return (*tags, self.answer)

    def offers(self, tool: str) -> bool:
        """Whether a tool of ours can be called in it."""
        return self.forms is None or any(form.tool == tool for form in self.forms)

    def find_form(self, tool: str) -> ToolForm | None:
        """Return how a tool of ours is called, None if it is not or if it is called as we do."""
        return next((form for form in self.forms or () if form.tool == tool), None)

    def name_tool(self, tool: str) -> str:
        """Return its name of a tool of ours, or of what a model made up."""
        form = self.find_form(tool)
        return form.name if form is not None else self.say_unknown(tool)

    def say_unknown(self, tool: str) -> str:
        """Return a made-up tool's name as the model had it."""
        bare = tool.removeprefix(MADE_UP)
        taken = self.forms is None or any(form.name == bare for form in self.forms)
        return bare if bare in list_tools() and not taken else tool

    def read_call(self, name: str, values: Values) -> tuple[str, Values]:
        """Return a call as one of ours; a tool that it does not have keeps a name that none of ours has."""
        if self.forms is None:
            return name, values
        for form in self.forms:
            if form.name == name and not form.tag:
                return form.tool, form.read_values(values)
        return (MADE_UP + name if name in list_tools() else name), values

    def write_call(self, tool: str, values: Values) -> tuple[str, Values]:
        """Return one of our calls as its own.

        Raises:
            UnsayableTurn: if it has no such tool, or no words for the arguments.
        """
        if self.forms is None:
            return tool, values
        form = self.find_form(tool)
        if form is not None:
            return form.name, form.write_values(values)
        if tool in list_tools():
            raise UnsayableTurn(f"dialect {self.name} has no tool {tool}")
        return self.say_unknown(tool), values

    def load_prompt(self) -> Prompt:
        """Return its prompt."""
        return load_prompt(*self.prompt)


def _keep(tool: str, required: tuple[str, ...] = ()) -> ToolForm:
    """Return the form of a tool that is called as ours is."""
    return ToolForm(tool, tool, {name: name for name in list_arguments(tool)}, required=required)


_FIRST = MappingProxyType({"image": "img_1"})
_LOOK = (
    "Find pages that show the same picture as the question, or a like one. Takes no argument and looks up the "
    "question's whole picture; gives titles and addresses."
)
_WHOLE: Values = {"type": "integer", "minimum": 0}
_OPENSEARCH_VL = (
    ToolForm(
        "crop",
        "crop",
        {"image": "image"},
        schemas={
            "x": {**_WHOLE, "description": "left edge, in pixels"},
            "y": {**_WHOLE, "description": "upper edge, in pixels"},
            "width": {**_WHOLE, "description": "pixels from the left edge to the right one"},
            "height": {**_WHOLE, "description": "pixels from the upper edge to the lower one"},
        },
        required=("image", "x", "y", "width", "height"),
        boxes="corner",
    ),
    _keep("layout_parsing"),
    ToolForm("text_search", "text_search", {"q": "query", "top_k": "top_k"}, required=("q",)),
    ToolForm(
        "image_search",
        "image_search",
        {"url": "image"},
        schemas={"url": {"type": "string", "description": "name of the picture to look up, such as img_1"}},
        required=("url",),
    ),
    _keep("perspective_correct", ("image",)),
    _keep("super_resolution", ("image",)),
    _keep("sharpen", ("image",)),
)
_VSEARCHER = (
    ToolForm("text_search", "text_search", {"query": "query"}, required=("query",)),
    ToolForm("image_search", "image_search", fixed=_FIRST, description=_LOOK),
    ToolForm("visit", "visit", {"url": "url", "goal": "goal"}, required=("url", "goal")),
)
_MMSEARCH_R1 = (
    ToolForm("image_search", "search", fixed=_FIRST, description=_LOOK, tag="search", content="<img>"),
    ToolForm("text_search", "text_search", {"query": "query"}, required=("query",), tag="text_search"),
)
_MARS = (
    ToolForm(
        "crop",
        "image_zoom_in_tool",
        {"bbox_2d": "box", "img_idx": "image"},
        added={"label": "region"},
        schemas={
            "label": {"type": "string", "description": "what the box holds, in a word or two"},
            "img_idx": {"type": "number", "description": "number of the picture: 0 for img_1, 1 for img_2 and so on"},
            "bbox_2d": {
                "type": "array",
                "items": {"type": "number"},
                "minItems": 4,
                "maxItems": 4,
                "description": "left, top, right, bottom, each from 0 to 1000 whatever the picture's size",
            },
        },
        required=("bbox_2d", "label", "img_idx"),
        counts_from=0,
    ),
    ToolForm("text_search", "text_search_tool", {"query": "query"}, required=("query",)),
    ToolForm("image_search", "image_search_tool", fixed=_FIRST, description=_LOOK),
)
_DR_MMSEARCH = (
    ToolForm("text_search", "web_text_search", {"query": "query"}, required=("query",)),
    ToolForm("image_search", "web_image_to_image_search", fixed=_FIRST, description=_LOOK),
    ToolForm("visit", "web_visit", {"url": "url", "goal": "goal"}, required=("url", "goal")),
)

SYNTH = Dialect("synth", ("act", 3))
NATIVE = Dialect("native", ("act_native", 1), native=True)
DIALECTS: Mapping[str, Dialect] = MappingProxyType(
    {
        dialect.name: dialect
        for dialect in (
            SYNTH,
            Dialect("opensearch-vl", ("act_opensearch_vl", 1), _OPENSEARCH_VL, answer="response"),
            Dialect("vsearcher", ("act_vsearcher", 1), _VSEARCHER, calls=30),
            # Three turns are published: two calls and the answer.
            Dialect(
                "mmsearch-r1", ("act_mmsearch_r1", 1), _MMSEARCH_R1, think="reason", response="information", calls=2
            ),
            Dialect("mars", ("act_mars", 1), _MARS),
            Dialect("dr-mmsearch", ("act_dr_mmsearch", 1), _DR_MMSEARCH, summary="summary"),
            NATIVE,
        )
    }
)


def find_dialect(name: str) -> Dialect:
    """Return a dialect.

    Raises:
        ConfigError: if there is none of that name.
    """
    if name not in DIALECTS:
        raise ConfigError(f"dialect {name!r}: there is none; there are: {', '.join(DIALECTS)}")
    return DIALECTS[name]


@lru_cache(maxsize=64)
def translate_tools(tools: str, dialect: Dialect) -> str:
    """Return our tools (a JSON array of function schemas) as a dialect offers them; those that it lacks are left out.

    A name that two dialects share may stand for the same tool with other arguments.
    """
    if dialect.forms is None:
        return tools
    functions = {each["function"]["name"]: each["function"] for each in json.loads(tools)}
    forms = [form for form in dialect.forms if form.tool in functions]
    shown = [{"type": "function", "function": form.describe(functions[form.tool])} for form in forms]
    return json.dumps(shown, ensure_ascii=False)


class SystemInputs(BaseModel):
    """What a system message is rendered from."""

    tools: str
    turns_left: int
    question: str = ""


def render_system(dialect: Dialect, tools: str, calls: int) -> str:
    """Return the system message of a dialect.

    Args:
        dialect: in which the model is to speak.
        tools: ours, as :func:`pipelines.agent.toolspecs.render_tools` gives them.
        calls: tool calls that the model may make; one more turn is for the answer.
    """
    inputs = SystemInputs(tools=translate_tools(tools, dialect), turns_left=calls + 1)
    return render_messages(dialect.load_prompt(), inputs)[0].text
