"""Dialects: tags, tool names and system prompts of a rollout, ours and those of published systems.

A step always holds our own tool names and arguments; a dialect decides only what the model is shown and how its turns
are parsed. Sources: OpenSearch-VL appendix E (figures 7 and 8), VSearcher appendix B, MMSearch-R1 appendix D.2,
SenseNova-MARS (its tool configuration; figures 16 and 18 of the paper show another set), DR-MMSearchAgent appendix G
and its tool configuration. Names and shapes are theirs, every text is ours.

Each tool has one argument model, from which its JSON schema is derived. A dialect maps tool and argument names both
ways. A model that uses one of our own names where the dialect has another has invented it: such a name is read with a
leading ``?``, which no tool and no argument has.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pipelines.errors import ConfigError
from pipelines.ids import canonical_json
from pipelines.services.prompting import Prompt, load_prompt, render_messages

FULL_BOX = 1000
"""Of a normalised box: 0 is the left or upper edge of the picture, 1000 the right or lower one."""

BOX_EDGES = 4
UNIT = "what the box counts in. normalised: each edge from 0 to 1000, whatever the picture's size"
Edge = Annotated[float, Field(ge=0, le=100_000)]
BoxUnit = Literal["normalised", "pixels"]


class Arguments(BaseModel):
    """Arguments of one call: strict types, nothing undeclared."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class TextSearchArguments(Arguments):
    """A full-text query."""

    query: str = Field(min_length=1, max_length=400, description="words to look for")
    top_k: int = Field(5, ge=1, le=10, description="most pages to return")


class PictureArguments(Arguments):
    """One of the rollout's pictures."""

    image: str = Field("img_1", description="name of the picture, such as img_1")


class BoxArguments(PictureArguments):
    """A part of a picture, or the whole of it."""

    box: list[Edge] = Field([], max_length=BOX_EDGES, description="left, top, right, bottom; empty: the whole picture")
    unit: BoxUnit = Field("normalised", description=UNIT)

    @model_validator(mode="after")
    def check_order(self) -> Self:
        """Refuse a box whose right or lower edge does not lie beyond the other, or beyond 1000 where that is all."""
        if not self.box:
            return self
        if len(self.box) != BOX_EDGES:
            raise ValueError(f"the box must have {BOX_EDGES} edges: left, top, right, bottom")
        left, top, right, bottom = self.box
        if not (left < right and top < bottom):
            raise ValueError("the box must have left < right and top < bottom")
        if self.unit == "normalised" and max(right, bottom) > FULL_BOX:
            raise ValueError(f"a normalised box goes from 0 to {FULL_BOX}; there is unit pixels, too")
        return self


class ImageSearchArguments(BoxArguments):
    """A picture, or a part of one, to look up."""


class VisitArguments(Arguments):
    """A page to read."""

    url: str = Field(min_length=1, max_length=2000, description="address as a search returned it")
    goal: str = Field("", max_length=400, description="what to find on the page")


class CropArguments(BoxArguments):
    """A part of a picture."""

    box: list[Edge] = Field(min_length=BOX_EDGES, max_length=BOX_EDGES, description="left, top, right, bottom")


class SharpenArguments(PictureArguments):
    """A blurred picture."""

    amount: float = Field(1.5, ge=0.1, le=5.0, description="how much")


class SuperResolutionArguments(PictureArguments):
    """A small picture."""

    scale: Literal[2, 3, 4] = Field(4, description="factor of width and height")


class PerspectiveArguments(PictureArguments):
    """A picture seen from the side."""


class LayoutArguments(PictureArguments):
    """A picture with text."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as it is described to the model."""

    name: str
    description: str
    arguments: type[Arguments]

    @property
    def parameters(self) -> dict[str, object]:
        """JSON schema of the arguments, without the titles pydantic adds."""
        return _drop_titles(self.arguments.model_json_schema())


def _drop_titles(schema: dict[str, object]) -> dict[str, object]:
    kept = {key: value for key, value in schema.items() if key not in ("title", "description")}
    properties = kept.get("properties")
    if isinstance(properties, dict):
        kept["properties"] = {
            name: {key: value for key, value in field.items() if key != "title"} for name, field in properties.items()
        }
    return kept


_SEARCHES = (
    ToolSpec(
        "image_search",
        "Find pages that show the same or a like picture. The first thing to try when the question hangs on what a "
        "picture shows; gives titles, addresses and a line of text. With a box it looks at that part alone.",
        ImageSearchArguments,
    ),
    ToolSpec(
        "text_search",
        "Find pages by words. Gives titles, addresses and what fits best of each page; use it to find the page of a "
        "name or to look for a fact.",
        TextSearchArguments,
    ),
    ToolSpec(
        "visit",
        "Read one page by its address: its table of facts as lines, then its text; of a long page what fits the goal. "
        "Use it to confirm what a snippet only hints at.",
        VisitArguments,
    ),
)
_CROP = ToolSpec(
    "crop",
    "Cut a part out of a picture and get it as a new picture. Use it when the subject fills little of the frame "
    "or several things are in view.",
    CropArguments,
)
_SHARPEN = ToolSpec(
    "sharpen",
    "Sharpen a picture (unsharp mask) and get it as a new picture. Use it when edges or letters are blurred.",
    SharpenArguments,
)
_SUPER_RESOLUTION = ToolSpec(
    "super_resolution",
    "Enlarge a picture with a network that restores detail (EDSR) and get it as a new picture. Use it when a picture "
    "or a part of one is small; gives no new picture, and a warning, where the network is not at hand.",
    SuperResolutionArguments,
)
_PERSPECTIVE = ToolSpec(
    "perspective_correct",
    "Straighten the largest four-sided area of a picture and get it as a new picture. Use it when a sign, a page or "
    "a whole photograph is seen at an angle; gives no new picture, and a warning, where no such area is found.",
    PerspectiveArguments,
)
_LAYOUT = ToolSpec(
    "layout_parsing",
    "Read the text in a picture: blocks in reading order, each with its kind, its box (left, top, right, bottom; 0 to "
    "1000 whatever the picture's size) and the reader's confidence. Use it on signs, captions and documents.",
    LayoutArguments,
)


def list_specs(opencv: bool = False, layout: bool = False) -> tuple[ToolSpec, ...]:
    """Return the tools that can be offered."""
    return (
        *_SEARCHES,
        _CROP,
        _SHARPEN,
        *((_SUPER_RESOLUTION, _PERSPECTIVE) if opencv else ()),
        *((_LAYOUT,) if layout else ()),
    )


@lru_cache(maxsize=16)
def render_tools(specs: tuple[ToolSpec, ...]) -> str:
    """Return the tools as a JSON array of function schemas, as chat templates and trainers take them."""
    functions = [
        {
            "type": "function",
            "function": {"name": spec.name, "description": spec.description, "parameters": spec.parameters},
        }
        for spec in specs
    ]
    return json.dumps(functions, ensure_ascii=False)


Values = dict[str, object]
Boxes = Literal["ours", "corner"]
"""A box as we have it, or its upper left corner with width and height, in pixels."""
MADE_UP = "?"
_CORNER = ("x", "y", "width", "height")


class UnsayableTurn(ValueError):
    """A turn that a dialect has no words for; the message says which."""


@dataclass(frozen=True, slots=True, eq=False)
class ToolForm:
    """One tool in a dialect.

    Attributes:
        tool: our name.
        name: the dialect's name.
        fields: the dialect's arguments that match one of ours: theirs to ours.
        fixed: our arguments that the dialect's calls lack, or may lack, with their value there.
        added: the dialect's arguments that we ignore, with the value written in a call.
        also: our name of an argument, heard in place of the dialect's; what is kept of a turn has the dialect's.
        schemas: JSON schemas of its arguments where ours do not fit.
        required: arguments that a call must have.
        description: shown to the model; empty: that of our tool.
        boxes: how it gives a box.
        counts_from: number of the first picture if pictures have numbers; -1 if they have names.
        tag: tag of its calls, without the angle brackets; empty: ``tool_call``, with JSON.
        content: content of that tag; empty: its one argument.
    """

    tool: str
    name: str
    fields: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, object] = field(default_factory=dict)
    added: Mapping[str, object] = field(default_factory=dict)
    also: str = ""
    schemas: Mapping[str, Values] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    description: str = ""
    boxes: Boxes = "ours"
    counts_from: int = -1
    tag: str = ""
    content: str = ""

    def read_values(self, said: Values) -> Values:
        """Return a call's arguments as ours; an unknown argument keeps a name that no tool accepts."""
        ours = list_arguments(self.tool)
        read: Values = dict(self.fixed)
        for name, value in said.items():
            if name in self.fields:
                read[self.fields[name]] = value
            elif name == self.also and said.keys().isdisjoint(self.fields):
                read[name] = value
            elif name not in self.added:
                read[MADE_UP + name if name in ours else name] = value
        if self.boxes == "corner":
            _join_box(read)
        if self.counts_from >= 0 and any(self.fields.get(name) == "image" for name in said):
            read["image"] = _name_picture(read["image"], self.counts_from)
        known = list_arguments(self.tool)
        return {our: known[our] for _, our in self._list_filled()} | read

    def write_values(self, ours: Values) -> Values:
        """Return our arguments as theirs."""
        left = dict(ours)
        if self.boxes == "corner":
            _split_box(left)
        if self.counts_from >= 0:
            self._number(left)
        theirs = {our: name for name, our in self.fields.items()}
        known = list_arguments(self.tool)
        written: Values = dict(self.added)
        for name, value in left.items():
            bare = name.removeprefix(MADE_UP)
            if name in theirs:
                written[theirs[name]] = value
            elif name not in known:
                written[bare if bare in known and bare not in self.fields else name] = value
            elif not _is_default(known, name, value):
                raise UnsayableTurn(f"{self.name} has no word for {self.tool}'s {name} {canonical_json(value)[:80]}")
        return written | {name: known[our] for name, our in self._list_filled() if name not in written}

    def _number(self, left: Values) -> None:
        name = left.pop("image", "img_1")
        needed = any(our == "image" and theirs in self.required for theirs, our in self.fields.items())
        if needed or not _is_default(list_arguments(self.tool), "image", name):
            left["image"] = _number_picture(name, self.counts_from)

    def _list_filled(self) -> list[tuple[str, str]]:
        known = list_arguments(self.tool)
        needed = [(name, self.fields[name]) for name in self.required if name in self.fields]
        return [(name, our) for name, our in needed if known.get(our) is not None]

    def describe(self, function: Mapping[str, object]) -> Values:
        """Return the function schema of the tool from that of ours."""
        ours = function["parameters"]
        properties = ours.get("properties", {}) if isinstance(ours, dict) else {}
        shown = {name: properties[our] for name, our in self.fields.items() if our in properties}
        parameters: Values = {"type": "object", "properties": {**shown, **self.schemas}}
        if self.required:
            parameters["required"] = list(self.required)
        description = self.description or function["description"]
        return {"name": self.name, "description": description, "parameters": parameters}


@lru_cache(maxsize=1)
def list_tools() -> Mapping[str, Mapping[str, object]]:
    """Return our tools by name, each with its arguments and their defaults; a required one's default is None."""
    found = {}
    for spec in list_specs(opencv=True, layout=True):
        fields = spec.arguments.model_fields.items()
        found[spec.name] = {name: None if given.is_required() else given.default for name, given in fields}
    return found


def list_arguments(tool: str) -> Mapping[str, object]:
    """Return the arguments of one of our tools with their defaults; empty for any other tool."""
    return list_tools().get(tool, {})


def drop_defaults(tool: str, values: Values) -> Values:
    """Return arguments without those that say what a call without them means, too."""
    defaults = list_arguments(tool)
    return {name: value for name, value in values.items() if not _is_default(defaults, name, value)}


def _is_default(defaults: Mapping[str, object], name: str, value: object) -> bool:
    # As JSON, since True is 1 and 1 is 1.0 to Python.
    return defaults.get(name) is not None and canonical_json(defaults[name]) == canonical_json(value)


def _join_box(read: Values) -> None:
    corner = [read[name] for name in _CORNER if type(read.get(name)) is int]
    if len(corner) == len(_CORNER):
        left, top, width, height = (part for part in corner if isinstance(part, int))
        for name in _CORNER:
            del read[name]
        read |= {"box": [left, top, left + width, top + height], "unit": "pixels"}


def _split_box(left: Values) -> None:
    if "box" not in left:
        return
    box = left["box"]
    if left.get("unit") != "pixels" or not isinstance(box, list) or len(box) != len(_CORNER):
        raise UnsayableTurn("a box can be said in pixels alone here, as corner, width and height")
    edges = [int(edge) if isinstance(edge, float) and edge.is_integer() else edge for edge in box]
    if any(type(edge) is not int for edge in edges):
        raise UnsayableTurn(f"box {canonical_json(box)[:80]}: only whole pixels can be said here")
    del left["box"], left["unit"]
    left |= zip(_CORNER, (edges[0], edges[1], edges[2] - edges[0], edges[3] - edges[1]), strict=True)


def _name_picture(number: object, first: int) -> object:
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    if type(number) is int and number >= first:
        return f"img_{number - first + 1}"
    return MADE_UP + number if isinstance(number, str) else number


def _number_picture(name: object, first: int) -> object:
    if not isinstance(name, str):
        return name
    if name.startswith(MADE_UP):
        return name.removeprefix(MADE_UP)
    digits = name.removeprefix("img_")
    if not (digits.isascii() and digits.isdecimal()):
        raise UnsayableTurn(f"picture {name[:80]!r} has no number")
    return int(digits) - 1 + first


VERSION = 2
"""Raised when a dialect's syntax changes, so that rollouts are made again."""
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
        reads: whether its text search reads the pages that it finds; else it gives snippets, and a visit reads.
        tells_bad_turns: whether a turn that does not parse is answered with an error; else it ends the rollout.
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
    reads: bool = True
    tells_bad_turns: bool = False

    @property
    def identity(self) -> str:
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

    def reads_pages(self, summarised: bool) -> bool:
        """Whether a text search reads pages: where they are summed up, or where nothing else opens them."""
        return self.reads and (summarised or not self.offers("visit"))

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
        """Return one of our calls as its own."""
        if self.forms is None:
            return tool, values
        form = self.find_form(tool)
        if form is not None:
            return form.name, form.write_values(values)
        if tool in list_tools():
            raise UnsayableTurn(f"dialect {self.name} has no tool {tool}")
        return self.say_unknown(tool), values

    def load_prompt(self, folder: str = "") -> Prompt:
        """Return its prompt, or the user's own in ``folder``, of the version that is chosen for its name."""
        return load_prompt(*self.prompt, folder)


def _keep(tool: str, required: tuple[str, ...] = ()) -> ToolForm:
    return ToolForm(tool, tool, {name: name for name in list_arguments(tool)}, required=required)


_READ = (
    "Find pages by words and read the best of them. Gives titles, addresses and what each page says of the query; use "
    "it to find the page of a name or to look for a fact."
)
"""Of a text search that reads, in dialects without a tool that opens a page."""
_FIRST = MappingProxyType({"image": "img_1"})
_LOOK = (
    "Find pages that show the same picture as the question, or a like one. Takes no argument and looks up the "
    "question's whole picture; gives titles and addresses."
)
_LOOK_AT = (
    "Find pages that show the same picture as the one with this number, or a like one; without a number it looks up "
    "the question's whole picture. Gives titles and addresses."
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
    ToolForm("text_search", "text_search", {"q": "query", "top_k": "top_k"}, required=("q",), description=_READ),
    ToolForm(
        "image_search",
        "image_search",
        {"url": "image"},
        also="image",  # the published call says url, every other tool image: teachers mix them up
        schemas={"url": {"type": "string", "description": "name of the picture to look up, such as img_1"}},
        required=("url",),
        description="Find pages that show the same or a like picture; gives titles, addresses and a line of text.",
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
    ToolForm(
        "text_search", "text_search", {"query": "query"}, required=("query",), description=_READ, tag="text_search"
    ),
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
    ToolForm("text_search", "text_search_tool", {"query": "query"}, required=("query",), description=_READ),
    # The published configuration has no argument here and looks up the first picture, as a call without one still does;
    # by the paper (4.1) the tool takes a picture's number, without which what was zoomed into cannot be looked up.
    ToolForm(
        "image_search",
        "image_search_tool",
        {"img_idx": "image"},
        fixed=_FIRST,
        schemas={
            "img_idx": {
                "type": "number",
                "description": "number of the picture: 0 for img_1, which is also the default",
            }
        },
        description=_LOOK_AT,
        counts_from=0,
    ),
)
_DR_MMSEARCH = (
    ToolForm("text_search", "web_text_search", {"query": "query"}, required=("query",)),
    ToolForm("image_search", "web_image_to_image_search", fixed=_FIRST, description=_LOOK),
    ToolForm("visit", "web_visit", {"url": "url", "goal": "goal"}, required=("url", "goal")),
)

SYNTH = Dialect("synth", ("act", 4))
NATIVE = Dialect("native", ("act_native", 2), native=True)
DIALECTS: Mapping[str, Dialect] = MappingProxyType(
    {
        dialect.name: dialect
        for dialect in (
            SYNTH,
            Dialect("opensearch-vl", ("act_opensearch_vl", 2), _OPENSEARCH_VL, answer="response", tells_bad_turns=True),
            Dialect("vsearcher", ("act_vsearcher", 1), _VSEARCHER, calls=30, reads=False),
            # Three turns are published: two calls and the answer.
            Dialect(
                "mmsearch-r1", ("act_mmsearch_r1", 2), _MMSEARCH_R1, think="reason", response="information", calls=2
            ),
            Dialect("mars", ("act_mars", 3), _MARS),
            Dialect("dr-mmsearch", ("act_dr_mmsearch", 1), _DR_MMSEARCH, summary="summary", reads=False),
            NATIVE,
        )
    }
)


def find_dialect(name: str) -> Dialect:
    """Return a dialect."""
    if name not in DIALECTS:
        raise ConfigError(f"dialect {name!r}: unknown dialect; there are: {', '.join(DIALECTS)}")
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


@lru_cache(maxsize=64)
def restore_tools(tools: str, dialect: Dialect) -> str:
    """Return tools as ours where they are offered as a dialect's, as a release has them; ours stay as they are."""
    offered = set(list_offered(tools))
    if dialect.forms is None or not offered <= {form.name for form in dialect.forms}:
        return tools
    named = {form.tool for form in dialect.forms if form.name in offered}
    return render_tools(tuple(spec for spec in list_specs(opencv=True, layout=True) if spec.name in named))


@lru_cache(maxsize=64)
def list_offered(tools: str) -> tuple[str, ...]:
    """Return the names in a JSON array of function schemas."""
    return tuple(each["function"]["name"] for each in json.loads(tools))


class SystemInputs(BaseModel):
    """What a system message is rendered from."""

    tools: str
    offered: tuple[str, ...]
    turns_left: int
    question: str = ""


def render_system(dialect: Dialect, tools: str, calls: int) -> str:
    """Return the system message of a dialect."""
    shown = translate_tools(tools, dialect)
    inputs = SystemInputs(tools=shown, offered=list_offered(shown), turns_left=calls + 1)
    return render_messages(dialect.load_prompt(), inputs)[0].text
