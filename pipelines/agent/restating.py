"""A call's box in the unit that a dialect has words for: the same part of the same picture."""

import json
from collections.abc import Mapping

from pipelines.agent.dialects import Dialect
from pipelines.agent.toolforms import list_arguments
from pipelines.agent.toolspecs import BOX_EDGES, FULL_BOX
from pipelines.agent.transcript import Turn
from pipelines.ids import canonical_json


def restate_turn(turn: Turn, dialect: Dialect, sizes: Mapping[str, tuple[int, int]]) -> Turn:
    """Return a turn with its box in pixels or in thousandths, as the dialect wants it; other turns come back unchanged.

    Both cut the very same pixels. A box that is none, or lies in a picture that is none, is left as it is.

    Args:
        turn: has our names.
        dialect: that it is to be said in.
        sizes: width and height of the rollout's pictures, by name, as they are displayed.
    """
    form = dialect.find_form(turn.tool)
    if form is None:
        return turn
    values = {"unit": "normalised", **json.loads(turn.arguments)}
    wanted = "pixels" if form.boxes == "corner" else values["unit"] if "unit" in form.fields.values() else "normalised"
    size = sizes.get(str(values.get("image", list_arguments(turn.tool).get("image"))))
    box = _read_box(values.get("box"))
    if wanted == values["unit"] or size is None or box is None:
        return turn
    sides = (size[0], size[1], size[0], size[1])
    # Cropping rounds to whole pixels, and so does what is to cut the same.
    if wanted == "pixels":
        restated: list[float] = [round(edge * (side / FULL_BOX)) for edge, side in zip(box, sides, strict=True)]
    else:
        restated = [
            min(round(FULL_BOX * round(edge) / side, 3), FULL_BOX) for edge, side in zip(box, sides, strict=True)
        ]
    return Turn(turn.thought, turn.tool, canonical_json({**values, "box": restated, "unit": wanted}))


def _read_box(value: object) -> list[float] | None:
    if not isinstance(value, list) or len(value) != BOX_EDGES:
        return None
    edges = [edge for edge in value if isinstance(edge, int | float) and not isinstance(edge, bool)]
    return edges if len(edges) == BOX_EDGES else None
