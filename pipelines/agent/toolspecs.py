"""What the tools are called and what they take: one argument model a tool, its JSON schema derived."""

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

FULL_BOX = 1000
"""Boxes are normalised: 0 is the left or upper edge of the picture, 1000 the right or lower one."""

Edge = Annotated[float, Field(ge=0, le=FULL_BOX)]


class Arguments(BaseModel):
    """Arguments of one call: strict types, nothing undeclared."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class TextSearchArguments(Arguments):
    """A full-text query."""

    query: str = Field(min_length=1, max_length=400, description="words to look for")
    top_k: int = Field(5, ge=1, le=10, description="most pages to return")


class ImageSearchArguments(Arguments):
    """A picture to look up."""

    image: str = Field("img_1", description="name of the picture, such as img_1")


class VisitArguments(Arguments):
    """A page to read."""

    url: str = Field(min_length=1, max_length=2000, description="address as a search returned it")
    goal: str = Field("", max_length=400, description="what to find on the page")


class CropArguments(Arguments):
    """A part of a picture."""

    image: str = Field("img_1", description="name of the picture, such as img_1")
    box: list[Edge] = Field(
        min_length=4,
        max_length=4,
        description="left, top, right, bottom, each from 0 to 1000 whatever the picture's size",
    )

    @model_validator(mode="after")
    def check_order(self) -> "CropArguments":
        """Refuse a box whose right or lower edge does not lie beyond the other."""
        left, top, right, bottom = self.box
        if not (left < right and top < bottom):
            raise ValueError("the box must have left < right and top < bottom")
        return self


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


TOOL_SPECS: tuple[ToolSpec, ...] = (
    ToolSpec(
        "image_search",
        "Find pages that show the same or a like picture. The first thing to try when the question hangs on what a "
        "picture shows; gives titles, addresses and a line of text.",
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
        "Read one page by its address: its table of facts as lines, then its text. Use it to confirm what a snippet "
        "only hints at.",
        VisitArguments,
    ),
    ToolSpec(
        "crop",
        "Cut a part out of a picture and get it as a new picture. Use it when the subject fills little of the frame "
        "or several things are in view.",
        CropArguments,
    ),
)


@lru_cache(maxsize=16)
def render_tools(specs: tuple[ToolSpec, ...] = TOOL_SPECS) -> str:
    """Return the tools as a JSON array of function schemas, as chat templates and trainers take them."""
    functions = [
        {
            "type": "function",
            "function": {"name": spec.name, "description": spec.description, "parameters": spec.parameters},
        }
        for spec in specs
    ]
    return json.dumps(functions, ensure_ascii=False)
