"""Edits of a rollout in one place: a thought, a call, an observation, or a step more or less."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.agent.layout import Shown, render_hits
from pipelines.agent.transcript import Turn, render_turn
from pipelines.ids import canonical_json
from schemas.rollouts import Observation, Rollout, Step

NOTHING_FOUND = "No page was found for these words."


@dataclass(frozen=True, slots=True)
class Call:
    """A call with what came back."""

    tool: str
    arguments: dict[str, object]
    observation: Observation
    thought: str = "One more look."


def show(text: str) -> Observation:
    """Return an observation that went well."""
    return Observation(ok=True, error="", text=text, images=())


def fail(error: str, text: str) -> Observation:
    """Return an observation of a call that failed."""
    return Observation(ok=False, error=error, text=text, images=())


def show_hits(*pages: tuple[str, str, str]) -> Observation:
    """Return what a search shows of pages: address, title and snippet of each; without one, that nothing was found."""
    return show(render_hits([Shown(*page) for page in pages], 600) or NOTHING_FOUND)


def make_step(call: Call) -> Step:
    """Return a call as a step."""
    arguments = canonical_json(call.arguments)
    reply = render_turn(Turn(call.thought, call.tool, arguments))
    return Step(thought=call.thought, tool=call.tool, arguments=arguments, reply=reply, observation=call.observation)


def insert(rollout: Rollout, place: int, *calls: Call) -> Rollout:
    """Return a rollout with calls before the step at ``place``."""
    steps = (*rollout.steps[:place], *map(make_step, calls), *rollout.steps[place:])
    return rollout.model_copy(update={"steps": steps})


def replace_step(rollout: Rollout, place: int, step: Step) -> Rollout:
    """Return a rollout with another step at ``place``."""
    steps = (*rollout.steps[:place], step, *rollout.steps[place + 1 :])
    return rollout.model_copy(update={"steps": steps})


def say_more(rollout: Rollout, place: int, sentence: str) -> Rollout:
    """Return a rollout with a sentence more at the end of a thought, which may be the last."""
    step = rollout.steps[place]
    turn = Turn(f"{step.thought} {sentence}", step.tool, step.arguments, "" if step.tool else rollout.answer)
    said = step.model_copy(update={"thought": turn.thought, "reply": render_turn(turn)})
    return replace_step(rollout, place, said)


def show_other(rollout: Rollout, place: int, text: str, **changes: object) -> Rollout:
    """Return a rollout with another text in an observation, and other fields of it."""
    step = rollout.steps[place]
    if step.observation is None:
        raise AssertionError(f"step {place} observed nothing")
    seen = step.observation.model_copy(update={"text": text, **changes})
    return replace_step(rollout, place, step.model_copy(update={"observation": seen}))


def drop(rollout: Rollout, places: Sequence[int]) -> Rollout:
    """Return a rollout without some steps."""
    steps = tuple(step for place, step in enumerate(rollout.steps) if place not in places)
    return rollout.model_copy(update={"steps": steps})


def list_calls(rollout: Rollout, *tools: str) -> list[int]:
    """Return the places of calls of some tools that went well, of any tool when none is named."""
    return [
        place
        for place, step in enumerate(rollout.steps)
        if step.tool and (not tools or step.tool in tools) and step.observation is not None and step.observation.ok
    ]


def read_arguments(step: Step) -> dict[str, object]:
    """Return the arguments of a call."""
    arguments: dict[str, object] = json.loads(step.arguments)
    return arguments


def get_text(step: Step) -> str:
    """Return what a step observed; nothing of an answer."""
    return "" if step.observation is None else step.observation.text
