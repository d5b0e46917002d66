"""Calls in a dialect: which tools are offered in it, and what is wrong with a call in its own names."""

import json
from collections.abc import Sequence

from pipelines.agent.contamination import Watched
from pipelines.agent.dialects import Dialect, translate_tools
from pipelines.agent.observing import Outcome, refuse_call
from pipelines.agent.tools import ToolBox
from pipelines.agent.transcript import Turn
from schemas.rollouts import RolloutImage


async def call_tool(
    tools: ToolBox, dialect: Dialect, turn: Turn, images: Sequence[RolloutImage], about: Watched
) -> Outcome:
    """Make the call of a turn.

    Args:
        tools: ours.
        dialect: in which the call was made.
        turn: has our names.
        images: the rollout's pictures so far.
        about: what an observation may not hold.

    Raises:
        ServiceError: if a backend is away.
    """
    if dialect.forms is None:
        return await tools.call(turn.tool, turn.arguments, images, about)
    functions = [each["function"] for each in json.loads(translate_tools(tools.describe(), dialect))]
    parameters = {function["name"]: function["parameters"] for function in functions}
    name = dialect.name_tool(turn.tool)
    if name not in parameters:
        return refuse_call("unknown-tool", f"There is no tool {name!r}; there are: {', '.join(parameters)}.")
    outcome = await tools.call(turn.tool, turn.arguments, images, about)
    if outcome.observation.error != "bad-arguments":
        return outcome
    return refuse_call("bad-arguments", f"{name} takes {json.dumps(parameters[name], ensure_ascii=False)}.")
