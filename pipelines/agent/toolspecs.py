"""What the tools are called and what they take: one argument model a tool, its JSON schema derived."""

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

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
    """A tool as the model is told of it."""

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
        "Find pages by words. Gives titles, addresses and the passage that fits best; use it to find the page of a "
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
    "or a crop is small; gives no new picture, and a warning, where the network is not at hand.",
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
    "Read the text in a picture: blocks in reading order, each with its kind, its box (0 to 1000, as crop takes it) "
    "and the reader's confidence. Use it on signs, captions and documents.",
    LayoutArguments,
)


def list_specs(opencv: bool = False, layout: bool = False) -> tuple[ToolSpec, ...]:
    """Return the tools that can be offered.

    Args:
        opencv: whether OpenCV is installed, which straightens and enlarges.
        layout: whether there is an engine that reads text.
    """
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
