"""D22, of calls: malformed turns (R1), errors in a row (R2), repetitions (R3), pictures that nobody made (R9)."""

import json
from collections.abc import Callable, Mapping
from random import Random
from types import MappingProxyType

from pipelines.bench.rollout_edits import (
    Call,
    fail,
    get_text,
    insert,
    list_calls,
    read_arguments,
    replace_step,
    say_more,
    show,
    show_hits,
)
from pipelines.bench.rollout_wordings import AGAIN, ERRORS, LOST, choose_half
from pipelines.bench.trajectory_cases import Edits
from pipelines.bench.vocabulary import Half, Vocabulary, invent_title, invent_word
from pipelines.names import fold_name
from schemas.rollouts import Rollout, Step

FATAL = 3
Spoil = Callable[[str], str]


def _requote(reply: str) -> str:
    """Return a reply whose call is a Python literal instead of JSON."""
    start, end = reply.index("{"), reply.rindex("}") + 1
    return reply[:start] + repr(json.loads(reply[start:end])) + reply[end:]


def _turn_round(reply: str) -> str:
    """Return a reply with its action before its thought."""
    end = reply.index("</think>") + len("</think>")
    return f"{reply[end:].strip()}\n{reply[:end]}"


SPOILS: Mapping[Half, tuple[Spoil, ...]] = MappingProxyType(
    {
        "open": (
            lambda reply: reply.replace("</think>", ""),
            lambda reply: reply.replace("</tool_call>", ""),
            lambda reply: f"{reply}\n{reply}",
            lambda reply: f"{reply} Done.",
            lambda reply: reply.replace("}}", "},}"),
            lambda reply: reply[reply.index("<tool_call>") :],
        ),
        "held-out": (
            lambda reply: reply.replace("<think>", "< think >"),
            lambda reply: reply.replace("<tool_call>\n", "<tool_call>\n```json\n").replace("\n</tool", "\n```\n</tool"),
            _requote,
            _turn_round,
            lambda reply: reply.replace("<", "\N{FULLWIDTH LESS-THAN SIGN}", 1),
            lambda reply: reply.replace('{"name"', '{"name": "crop", "name"', 1),
            lambda reply: reply.replace('"arguments"', '"args"'),
            lambda reply: reply.replace("<tool_call>", "<TOOL_CALL>").replace("</tool_call>", "</TOOL_CALL>"),
            lambda reply: reply.replace("</tool_call>", "</answer>"),
            lambda reply: reply.replace("</think>", "<|im_end|></think>"),
            lambda reply: reply.replace("</tool_call>", "</tool_call><answer></answer>"),
        ),
    }
)
"""Ways to write a call so that it is none."""


def plant_bad_turn(rollout: Rollout, words: Vocabulary, rng: Random) -> Edits | None:
    """R1: a reply that is no turn; the clean twin's has more white space between its blocks."""
    place = rng.choice(list_calls(rollout))
    step = rollout.steps[place]
    spoiled = rng.choice(SPOILS[choose_half(words)])(step.reply)
    clean = step.model_copy(update={"reply": step.reply.replace("</think>\n", "\n</think>\n\n")})
    if spoiled == step.reply:
        return None
    bad = step.model_copy(update={"reply": spoiled})
    return Edits(spoiled, replace_step(rollout, place, clean), replace_step(rollout, place, bad))


def plant_bad_call(rollout: Rollout, words: Vocabulary, rng: Random) -> Edits | None:
    """R1: a call of no tool, or with arguments that it does not take; the clean twin's meets no page."""
    tool, error = rng.choice((("browse", "unknown-tool"), ("Text_Search", "unknown-tool"), ("visit", "bad-arguments")))
    url = _invent_address(rollout, words, rng)
    arguments: dict[str, object] = {"url": url, "depth": 2} if tool == "visit" else {"url": url}
    place = rng.randrange(1, len(rollout.steps))
    bad = Call(tool, arguments, fail(error, f"There is no way to call {tool} like that."))
    clean = Call("visit", {"url": url}, fail("unknown-page", f"There is no page at {url}."))
    return Edits(f"{tool}: {error}", insert(rollout, place, clean), insert(rollout, place, bad))


def plant_errors(rollout: Rollout, words: Vocabulary, rng: Random) -> Edits | None:
    """R2: three errors in a row; the clean twin goes on after two."""
    classes = ERRORS[choose_half(words)]
    place = rng.randrange(1, len(rollout.steps))
    calls = []
    for _ in range(FATAL):
        url, error = _invent_address(rollout, words, rng), rng.choice(classes)
        calls.append(Call("visit", {"url": url}, fail(error, f"There is nothing to be had at {url}.")))
    clean, bad = insert(rollout, place, *calls[:-1]), insert(rollout, place, *calls)
    fatal: dict[str, object] = {"fatal_begins": place, "fatal_reached": place + FATAL - 1}
    if rng.random() < 0.5:
        fatal |= {"steps": bad.steps[: place + FATAL], "stop_reason": "tool-errors", "answer": ""}
    said = ", ".join(call.observation.error for call in calls)
    return Edits(f"step {place}: {said}", clean, bad.model_copy(update=fatal))


def plant_repetition(rollout: Rollout, words: Vocabulary, rng: Random) -> Edits | None:
    """R3: a query that was made before, or the like of it; the clean twin asks something else there."""
    searches = [place for place in list_calls(rollout, "text_search") if _can_be_said_again(rollout.steps[place])]
    if not searches:
        return None
    earlier = rng.choice(searches)
    step = rollout.steps[earlier]
    query = str(read_arguments(step)["query"])
    again = rng.choice(AGAIN[choose_half(words)])(query)
    place = rng.randrange(earlier + 1, len(rollout.steps))
    bad = Call("text_search", {"query": again}, show(get_text(step)))
    clean = Call("text_search", {"query": f"{invent_title(words, rng)} {invent_word(words, rng)}"}, show_hits())
    return Edits(f"{query!r} again as {again!r}", insert(rollout, place, clean), insert(rollout, place, bad))


def plant_repeated_call(rollout: Rollout, words: Vocabulary, rng: Random) -> Edits | None:
    """R3: any call made twice; of a visit in other words of what it is for. The clean twin visits another page."""
    earlier = rng.choice(list_calls(rollout))
    step = rollout.steps[earlier]
    if step.observation is None or step.observation.images:
        return None
    arguments = read_arguments(step)
    if step.tool == "visit" and choose_half(words) == "held-out":
        arguments["goal"] = f"see what else there is on {invent_word(words, rng)}"
    bad = Call(step.tool, arguments, step.observation)
    title, place = invent_title(words, rng), rng.randrange(earlier + 1, len(rollout.steps))
    url = _invent_address(rollout, words, rng)
    clean = Call("visit", {"url": url}, show(f"Title: {title}\nURL: {url}\n\n{title} is a hamlet."))
    said = f"{step.tool} {arguments} again"
    return Edits(said, insert(rollout, place, clean), insert(rollout, place, bad))


def plant_lost_picture(rollout: Rollout, words: Vocabulary, rng: Random) -> Edits | None:
    """R9: a call on a picture that there is not; the clean twin's is on ``img_1``."""
    name = rng.choice(LOST[choose_half(words)])
    place = rng.randrange(1, len(rollout.steps))
    refused = fail("unknown-image", f"There is no picture {name!r}; there are: img_1.")
    bad = Call("layout_parsing", {"image": name}, refused)
    clean = Call("layout_parsing", {"image": "img_1"}, show("No text can be read in img_1."))
    return Edits(name, insert(rollout, place, clean), insert(rollout, place, bad))


def plant_lost_mention(rollout: Rollout, words: Vocabulary, rng: Random) -> Edits | None:
    """R9: a thought of a picture that nobody made; the clean twin's is of ``img_1``."""
    place = rng.randrange(len(rollout.steps))
    said = "In {name} the same can be seen." if choose_half(words) == "open" else "(see {name}, lower left)"
    name = f"img_{len(rollout.images) + rng.randint(2, 40)}"
    clean, bad = (say_more(rollout, place, said.format(name=each)) for each in ("img_1", name))
    return Edits(said.format(name=name), clean, bad)


def _invent_address(rollout: Rollout, words: Vocabulary, rng: Random) -> str:
    """Return the address of a page that there is not, on a host of its own."""
    return f"https://{fold_name(invent_word(words, rng)).replace(' ', '')}.example/{rng.randrange(10**6)}"


def _can_be_said_again(step: Step) -> bool:
    return len(str(read_arguments(step).get("query", "")).split()) > 1
