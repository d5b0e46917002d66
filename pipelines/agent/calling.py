"""Calls in a dialect: which tools are offered in it, and what is wrong with a call in its own names."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.agent.contamination import Watched
from pipelines.agent.dialects import Dialect, translate_tools
from pipelines.agent.observing import Outcome, refuse_call
from pipelines.agent.tools import ToolBox
from pipelines.agent.transcript import Turn
from schemas.rollouts import RolloutImage


@dataclass(frozen=True, slots=True)
class Bench:
    """The tools as a dialect has them."""

    tools: ToolBox
    dialect: Dialect

    @property
    def offered(self) -> str:
        """Function schemas, a JSON array."""
        return translate_tools(self.tools.describe(), self.dialect)


async def call_tool(bench: Bench, turn: Turn, images: Sequence[RolloutImage], about: Watched) -> Outcome:
    """Make the call of a turn.

    Args:
        bench: tools and dialect.
        turn: has our names.
        images: the rollout's pictures so far.
        about: what an observation may not hold.

    Raises:
        ServiceError: if a backend is away.
    """
    if bench.dialect.forms is None:
        return await bench.tools.call(turn.tool, turn.arguments, images, about)
    functions = [each["function"] for each in json.loads(bench.offered)]
    parameters = {function["name"]: function["parameters"] for function in functions}
    name = bench.dialect.name_tool(turn.tool)
    if name not in parameters:
        return refuse_call("unknown-tool", f"There is no tool {name!r}; there are: {', '.join(parameters)}.")
    outcome = await bench.tools.call(turn.tool, turn.arguments, images, about)
    if outcome.observation.error != "bad-arguments":
        return outcome
    return refuse_call("bad-arguments", f"{name} takes {json.dumps(parameters[name], ensure_ascii=False)}.")
