"""How a published system calls one of our tools: another name, other arguments, and the way there and back.

What a form cannot say is no call of it. A model that uses one of our own names where the form has another has made it
up, so such a name is read with a leading ``?``, which no tool and no argument has.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from pipelines.agent.toolspecs import list_specs
from pipelines.ids import canonical_json

Values = dict[str, object]
Boxes = Literal["ours", "corner"]
"""A box as we have it, or its upper left corner with width and height, in pixels."""
MADE_UP = "?"
_CORNER = ("x", "y", "width", "height")


class UnsayableTurn(ValueError):
    """A turn that a dialect has no words for; the message says which."""


@dataclass(frozen=True, slots=True, eq=False)
class ToolForm:
    """One tool as a dialect has it.

    Attributes:
        tool: our name.
        name: the dialect's.
        fields: the dialect's arguments that are one of ours under another name, or the same: theirs to ours.
        fixed: ours that it cannot say, with their value in its calls.
        added: theirs that mean nothing to us, with what a call is written with.
        schemas: JSON schemas of its arguments, where those of ours do not fit.
        required: its arguments that a call must have.
        description: what a model is told of it; empty: what is told of ours.
        boxes: how it gives a box.
        counts_from: number of the first picture where pictures go by number; -1 where they go by name.
        tag: tag that its calls are written in, without the angle brackets; empty: ``tool_call``, with JSON.
        content: what stands in that tag; empty: its one argument.
    """

    tool: str
    name: str
    fields: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, object] = field(default_factory=dict)
    added: Mapping[str, object] = field(default_factory=dict)
    schemas: Mapping[str, Values] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    description: str = ""
    boxes: Boxes = "ours"
    counts_from: int = -1
    tag: str = ""
    content: str = ""

    def read_values(self, said: Values) -> Values:
        """Return a call's arguments as ours; what is none of theirs stays, under a name that no tool takes."""
        ours = list_arguments(self.tool)
        read: Values = dict(self.fixed)
        for name, value in said.items():
            if name in self.fields:
                read[self.fields[name]] = value
            elif name not in self.added:
                read[MADE_UP + name if name in ours else name] = value
        if self.boxes == "corner":
            _join_box(read)
        if self.counts_from >= 0 and "image" in read:
            read["image"] = _name_picture(read["image"], self.counts_from)
        known = list_arguments(self.tool)
        return {our: known[our] for _, our in self._list_filled()} | read

    def write_values(self, ours: Values) -> Values:
        """Return our arguments as theirs.

        Raises:
            UnsayableTurn: if one of them has no word there and is not what a call without it means.
        """
        left = dict(ours)
        if self.boxes == "corner":
            _split_box(left)
        if self.counts_from >= 0:
            left["image"] = _number_picture(left.get("image", "img_1"), self.counts_from)
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

    def _list_filled(self) -> list[tuple[str, str]]:
        """Return what a call must have there and ours may leave out: theirs and ours."""
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
    """Return the arguments of a tool of ours with their defaults; none of a tool that is not ours."""
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
    """Return the name of a picture from its number; what is no number becomes the name of none."""
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
