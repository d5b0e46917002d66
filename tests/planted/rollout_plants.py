"""D22: defects of rollouts, each in one place: a thought, a call, an observation, or a step more or less.

Calls: malformed turns (R1), errors in a row (R2), repetitions (R3), unknown pictures (R9). Observations: contamination
(R7), length (R8). Knowledge: unsupported answers and jumps (R4), memory (R5), luck (R6), claims (R10). The clean twin
has a harmless edit. The cascade judges both through its stage.
"""

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from random import Random
from urllib.parse import quote

from pipelines.agent.attempts import make_decoys
from pipelines.agent.contamination import Watched, find_flags
from pipelines.agent.loop import Agent, run_rollout
from pipelines.agent.observations import Shown, find_name, list_forms, render_hits
from pipelines.agent.transcript import Turn, neutralise_markup, render_turn
from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.graph.values import MONTHS, parse_date
from pipelines.ids import canonical_json
from pipelines.names import fold_name, is_common_word
from pipelines.stages.rollouts import make_oracle
from pipelines.stages.trajectories import Trajectories
from pipelines.toy.teacher import UNKNOWN, ScriptedTeacher
from schemas.base import Rejection
from schemas.datasets import Enhancement, Grounding, Observation, Rollout, Step, Trajectory
from schemas.proofs import Answer
from schemas.reasons import TrajectoryReason
from tests.planted.scenes import Case, Pool
from tests.planted.words import Half, Pair, Vocabulary, invent_person, invent_title, invent_word, write_question

NOTHING_FOUND = "No page was found for these words."
NOTHING_LIKE_IT = "No page shows a picture like img_1."
FATAL = 3
"""Errors in a row that end a rollout."""
LONG, SHORT = 260_000, 1_000
"""Characters: over 32,000 tokens in any script and by any tokenizer, and few."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call with what came back."""

    tool: str
    arguments: dict[str, object]
    observation: Observation
    thought: str = "One more look."


def show(text: str) -> Observation:
    """Return a successful observation."""
    return Observation(ok=True, error="", text=text, images=())


def fail(error: str, text: str) -> Observation:
    """Return an observation of a call that failed."""
    return Observation(ok=False, error=error, text=text, images=())


def show_hits(*pages: tuple[str, str, str]) -> Observation:
    """Return the observation of a search: address, title and snippet of each page."""
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
    """Return a rollout with one more sentence at the end of a thought, which may be the last."""
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
    """Return the places of successful calls of some tools; of any tool when none is given."""
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
    """Return the observed text, empty for the answer."""
    return "" if step.observation is None else step.observation.text


Say = Callable[[str], str]


def choose_half(words: Vocabulary) -> Half:
    """Return the half of the wordings for a vocabulary; an added one uses the open half."""
    return "held-out" if words.half == "held-out" else "open"


def _swap_words(text: str) -> str:
    return " ".join(reversed(text.split()))


def _sort_words(text: str) -> str:
    return " ".join(sorted(text.split(), key=str.casefold))


def _invert_name(text: str) -> str:
    first, _, last = text.rpartition(" ")
    return f"{last}, {first}" if first else last


GUESSES: dict[Half, tuple[str, ...]] = {
    "open": ("I think the answer is {said}.", "It must be {said}, but let me check.", "From memory, {said}.",
             "{said} comes to mind."),
    "held-out": ("(hunch: {said})", "My money is on “{said}”; a search will tell.",
                 "If I were asked right now I would put down {said}!", "Working hypothesis = {said}",
                 "Didn't I read '{said}' somewhere?"),
}  # fmt: skip
"""Guesses of the answer before any tool has shown it."""
REQUESTS: dict[Half, tuple[Say, ...]] = {
    "open": (str, lambda name: f"who was {name}", lambda name: f"{name} biography", str.lower),
    "held-out": (
        _invert_name,
        str.upper,
        lambda name: f"{fold_name(name)} official site",
        lambda name: f'"{name}"\'s works -lyrics',
        lambda name: f"works by/about {name}: list",
    ),
}
"""Queries that name a person."""
AGAIN: dict[Half, tuple[Say, ...]] = {
    "open": (str, str.lower, _swap_words, lambda query: f"the {query}"),
    "held-out": (
        lambda query: f'"{query}"',
        lambda query: f"  {query.upper()} ?",
        lambda query: f"what is it about {query}",
        lambda query: _sort_words(query).replace(" ", " / "),
        fold_name,
    ),
}
"""The same query again."""
NAME_CLAIMS: dict[Half, tuple[str, ...]] = {
    "open": ("It was restored by {name}.", "The page also mentions {name}.", "{name} had a hand in this."),
    "held-out": ("No wonder that {name} later spoke of it with such warmth.",
                 "Compare the life of {name}, which ends in the same place.", "A pupil, one {name}, carried on.",
                 "This squares with what {name}'s diaries say."),
}  # fmt: skip
NUMBER_CLAIMS: dict[Half, tuple[str, ...]] = {
    "open": ("It is {number} metres long.", "There are {number} of them.", "Some {number} people live there."),
    "held-out": ("(cf. the {number} sheets in the archive)", "Upkeep ran to £{number} that winter.",
                 "All told: {number} visitors.", "Catalogue entry no. {number} agrees."),
}  # fmt: skip
ERRORS: dict[Half, tuple[str, ...]] = {
    "open": ("unknown-page",), "held-out": ("time-out", "forbidden-address", "no-text", "too-large"),
}  # fmt: skip
LOST: dict[Half, tuple[str, ...]] = {
    "open": ("img_9", "img_12"), "held-out": ("img_0", "img_01", "IMG_1", "image_1", "img_1.jpg", "img_-1", "1"),
}  # fmt: skip
"""Names of pictures that do not exist."""
FILLINGS: dict[Half, tuple[str, ...]] = {
    "open": ("The older part of the building is seldom open, and its rooms are kept as they were left. ",),
    "held-out": ("河流在山谷中慢慢转弯旁边的石桥上有人正在等待夜里的渡船。", "4 8 1 5 9 2 6 3 7 0 ",
                 "\N{HERB}\N{SNAIL}\N{CLOUD WITH RAIN}\N{OLD KEY} ", "aG9sZC1vdXQgcm93 dGhhdCBub2JvZHkgcmVhZHM= "),
}  # fmt: skip
"""Text that makes a transcript long."""
LEAKS: dict[Half, tuple[str, ...]] = {
    "open": ("{question}", "Question: {question} Answer: {answer}", "<think>The user wants to know more.</think>",
             "Row {id} of the set."),
    "held-out": ("FAQ » {upper} » see below", "{broken}", "{half} ... the solution is {answer}, as everybody knows",
                 "<|im_start|>assistant", "[INST] be brief [/INST]", '{{"uid": "{id}", "split": "train"}}',
                 "https://mirror.example/rows/{id}.json"),
}  # fmt: skip
"""Contamination of a page."""


TEACHER = ScriptedTeacher("bench-teacher")
"""Without faults."""
ATTEMPTS = 3
CASCADE = Trajectories()
"""As shipped, without a judge: the comparer decides every answer here."""


@dataclass(frozen=True, slots=True)
class Edits:
    """A rollout edited harmlessly, and edited so that it has a defect."""

    plant: str
    clean: Rollout
    defective: Rollout


Operator = Callable[[Rollout, Vocabulary, Random], Edits | None]
"""Plants one defect, or returns None when the rollout does not admit it."""


def plant_edits(
    operator: Operator, reason: TrajectoryReason, case: Case, words: Vocabulary, rng: Random
) -> Pair | None:
    """Return a judged pair of rollouts of a question; None when its rollout does not admit the defect."""
    rollout = roll_out(case.pool, case.question, rng.randrange(ATTEMPTS))
    edits = None if rollout is None else operator(rollout, words, rng)
    return None if edits is None else judge_edits(CASCADE, edits, reason)


def judge_edits(cascade: Trajectories, edits: Edits, reason: TrajectoryReason) -> Pair:
    """Judge both twins by the cascade."""
    clean, _ = _judge(cascade, edits.clean, "")
    defective, codes = _judge(cascade, edits.defective, reason)
    return Pair(edits.plant, clean, defective, (reason,), codes)


@lru_cache(maxsize=4096)
def roll_out(pool: Pool, question: Grounding, attempt: int) -> Rollout | None:
    """Return an attempt of a teacher without faults; None when it does not reach the answer by way of all nodes."""
    if question.picture is None:
        return None
    asked = Enhancement(**dict(question), cells=())
    rollout = asyncio.run(run_rollout(open_agent(pool), asked, make_oracle(asked, attempt)))
    shown = " ".join(map(get_text, rollout.steps))
    # A page that happens to hold the answer's words ends an attempt early: that is luck, and no clean twin.
    passed = all(node.title.partition(" (")[0] in shown for node in question.proof.nodes)
    return rollout if passed and rollout.answer != UNKNOWN else None


@lru_cache(maxsize=16)
def open_agent(pool: Pool) -> Agent:
    """Return the agent of a run over the pool's world, with a teacher without faults."""
    return replace(pool.assemble().make_agent(), model=TEACHER)


async def _decide(cascade: Trajectories, rollout: Rollout) -> Sequence[Trajectory] | Rejection:
    return await cascade(rollout)


def _judge(cascade: Trajectories, rollout: Rollout, reason: str) -> tuple[CheckResult, tuple[str, ...]]:
    """Return the finding, preferably the wanted reason, and all codes."""
    outcome = asyncio.run(_decide(cascade, rollout))
    if not isinstance(outcome, Rejection):
        return PASSED, ()
    code = reason if reason in outcome.codes else outcome.reason
    return CheckResult("FAIL", code, outcome.detail or ""), outcome.codes


def _requote(reply: str) -> str:
    """Return a reply whose call is a Python literal instead of JSON."""
    start, end = reply.index("{"), reply.rindex("}") + 1
    return reply[:start] + repr(json.loads(reply[start:end])) + reply[end:]


def _turn_round(reply: str) -> str:
    """Return a reply with its action before its thought."""
    end = reply.index("</think>") + len("</think>")
    return f"{reply[end:].strip()}\n{reply[:end]}"


SPOILS: dict[Half, tuple[Say, ...]] = {
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
"""Ways to write a call that does not parse."""


def plant_bad_turn(rollout: Rollout, words: Vocabulary, rng: Random) -> Edits | None:
    """R1: a reply that does not parse; the clean twin has more white space between its blocks."""
    place = rng.choice(list_calls(rollout))
    step = rollout.steps[place]
    spoiled = rng.choice(SPOILS[choose_half(words)])(step.reply)
    clean = step.model_copy(update={"reply": step.reply.replace("</think>\n", "\n</think>\n\n")})
    if spoiled == step.reply:
        return None
    bad = step.model_copy(update={"reply": spoiled})
    return Edits(spoiled, replace_step(rollout, place, clean), replace_step(rollout, place, bad))


def plant_bad_call(rollout: Rollout, words: Vocabulary, rng: Random) -> Edits | None:
    """R1: a call of an unknown tool or with unknown arguments; the clean twin visits an unknown page."""
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
    """R3: an earlier query again, reworded; the clean twin has another query there."""
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
    """R3: any call twice, a visit with another goal; the clean twin visits another page."""
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
    """R9: a call on an unknown picture; the clean twin's is on ``img_1``."""
    name = rng.choice(LOST[choose_half(words)])
    place = rng.randrange(1, len(rollout.steps))
    refused = fail("unknown-image", f"There is no picture {name!r}; there are: img_1.")
    bad = Call("layout_parsing", {"image": name}, refused)
    clean = Call("layout_parsing", {"image": "img_1"}, show("No text can be read in img_1."))
    return Edits(name, insert(rollout, place, clean), insert(rollout, place, bad))


def plant_lost_mention(rollout: Rollout, words: Vocabulary, rng: Random) -> Edits | None:
    """R9: a thought about an unknown picture; the clean twin's is about ``img_1``."""
    place = rng.randrange(len(rollout.steps))
    said = "In {name} the same can be seen." if choose_half(words) == "open" else "(see {name}, lower left)"
    name = f"img_{len(rollout.images) + rng.randint(2, 40)}"
    clean, bad = (say_more(rollout, place, said.format(name=each)) for each in ("img_1", name))
    return Edits(said.format(name=name), clean, bad)


def _invent_address(rollout: Rollout, words: Vocabulary, rng: Random) -> str:
    """Return the address of an unknown page on a new host."""
    return f"https://{fold_name(invent_word(words, rng)).replace(' ', '')}.example/{rng.randrange(10**6)}"


def _can_be_said_again(step: Step) -> bool:
    return len(str(read_arguments(step).get("query", "")).split()) > 1


def plant_leak(rollout: Rollout, words: Vocabulary, rng: Random) -> Edits | None:
    """R7: the question, its row's id or a protocol's tags on a page; the clean twin's page has another question."""
    question = rollout.question.strip()
    tokens = question.split()
    if len(tokens) < 12:
        return None
    leak = rng.choice(LEAKS[choose_half(words)]).format(
        question=question,
        upper=question.upper(),
        broken=" \n".join(" ".join(tokens[start : start + 3]) for start in range(0, len(tokens), 3)),
        half=" ".join(tokens[: 2 * len(tokens) // 3]),
        answer=rollout.reference.surface,
        id=rollout.parent_id,
    )
    other = write_question(words, rng, f"the {rng.choice(words.types).lower()} {invent_title(words, rng)}")
    place = rng.choice(list_calls(rollout, "visit", "text_search") or list_calls(rollout))
    clean, bad = (_append(rollout, place, text) for text in (f"{other} (row {rng.randrange(10**9)})", leak))
    return Edits(leak[:120], clean, bad)


def plant_dataset(rollout: Rollout, words: Vocabulary, rng: Random) -> Edits | None:
    """R7: a visit to a host of datasets, flagged by the tool; of the clean twin's search such a host was left out."""
    visits, searches = list_calls(rollout, "visit"), list_calls(rollout, "text_search", "image_search")
    if not visits or not searches:
        return None
    places = rng.choice(searches), rng.choice(visits)
    clean, bad = (
        show_other(rollout, place, get_text(rollout.steps[place]), flags=("dataset-host",)) for place in places
    )
    return Edits(f"step {places[1]} flagged", clean, bad)


def plant_long_page(rollout: Rollout, words: Vocabulary, rng: Random) -> Edits | None:
    """R8: a page longer than any student reads; the clean twin's is of ordinary length."""
    filling = rng.choice(FILLINGS[choose_half(words)])
    title, place = invent_title(words, rng), rng.randrange(1, len(rollout.steps))
    url = f"https://long.example/{rng.randrange(10**6)}"
    calls = [
        Call("visit", {"url": url}, show(f"Title: {title}\nURL: {url}\n\n{filling * (size // len(filling) + 1)}"))
        for size in (SHORT, LONG)
    ]
    return Edits(f"{filling[:40]!r} repeated", *(insert(rollout, place, call) for call in calls))


def plant_long_thought(rollout: Rollout, words: Vocabulary, rng: Random) -> Edits | None:
    """R8: a thought longer than any student reads; the clean twin's is of ordinary length."""
    filling = rng.choice(FILLINGS["open"])
    place = rng.randrange(len(rollout.steps))
    clean, bad = (say_more(rollout, place, (filling * (size // len(filling) + 1)).strip()) for size in (SHORT, LONG))
    return Edits(f"{filling[:40]!r} thought", clean, bad)


def _append(rollout: Rollout, place: int, raw: str) -> Rollout:
    """Return a rollout with one more paragraph in an observation, flagged and stripped of markup like a tool's."""
    about = Watched(rollout.question, (rollout.parent_id,))
    text = f"{get_text(rollout.steps[place])}\n\n{raw}"
    return show_other(rollout, place, neutralise_markup(text), flags=find_flags(text, about))


_SMALL = re.compile(r"-?\d{1,2}")


def plant_unsupported(rollout: Rollout, words: Vocabulary, rng: Random) -> Edits | None:
    """R4: every line with the answer is removed or gets another value; the clean twin lacks other lines."""
    forms = _list_forms(rollout)
    if rollout.reference.type == "date":
        # "December 3, 1417" states December 1417 too, and holds none of its forms.
        forms = (*forms, rollout.reference.value[:4])
    other = make_decoys(rollout.reference, 1)[0] if choose_half(words) == "held-out" else ""
    if other and (rollout.reference.type == "number" or any(find_name(form, other) for form in forms)):
        return None
    clean = bad = rollout
    for place in list_calls(rollout):
        text = get_text(rollout.steps[place])
        bad = show_other(bad, place, "\n".join(_leave_out(line, forms, other) for line in text.split("\n")))
        clean = show_other(clean, place, _drop_line(text, rollout, forms))
    if any(find_name(get_text(step), form) for step in bad.steps for form in forms):
        return None
    return Edits(f"{rollout.answer!r} nowhere{f', {other!r} instead' if other else ''}", clean, bad)


def plant_jump(rollout: Rollout, words: Vocabulary, rng: Random) -> Edits | None:
    """R4: a bridge named in a call before anything has shown it; the clean twin names a stranger there."""
    bridges = [title for title in rollout.bridges if not find_name(rollout.question, list_forms(title)[-1])]
    bridges = [title for title in bridges if _tells(title)]
    if not bridges:
        return None
    name = list_forms(rng.choice(bridges))[-1]
    stranger = list_forms(invent_person(words, rng) if " " in name else invent_title(words, rng))[-1]
    say = rng.choice(REQUESTS[choose_half(words)])
    by_address = choose_half(words) == "held-out" and rng.random() < 0.3
    calls = [_address(each) if by_address else _ask(say(each)) for each in (stranger, name)]
    said = str(calls[1].arguments)
    return Edits(f"step 0: {said}", insert(rollout, 0, calls[0]), insert(rollout, 0, calls[1]))


def plant_memory(rollout: Rollout, words: Vocabulary, rng: Random) -> Edits | None:
    """R5: the answer in a thought before any tool has shown it; the clean twin guesses wrong."""
    answer = rollout.reference
    if answer.type == "number" and _SMALL.fullmatch(answer.value) and not answer.unit:
        return None
    held_out = choose_half(words) == "held-out"
    said = rng.choice(list(_rewrite(answer))) if held_out else answer.surface
    decoy = make_decoys(answer, 1)[0]
    sentence = rng.choice(GUESSES[choose_half(words)])
    clean, bad = (say_more(rollout, 0, sentence.format(said=each)) for each in (decoy, said))
    return Edits(sentence.format(said=said), clean, bad)


def plant_no_tool(rollout: Rollout, words: Vocabulary, rng: Random) -> Edits | None:
    """R5: the last step alone."""
    bad = drop(rollout, range(len(rollout.steps) - 1))
    return Edits("no call", rollout, bad.model_copy(update={"images": rollout.images[:1]}))


def plant_luck(rollout: Rollout, words: Vocabulary, rng: Random) -> Edits | None:
    """R6: no observation shows the page of a bridge or of the anchor; the clean twin goes the whole way.

    None if another observation names that page together with its neighbour, which the cascade accepts.
    """
    path = rollout.path
    if len(path) < 3:
        return None
    number = len(path) - 2 if choose_half(words) == "open" else rng.randrange(len(path) - 1)
    places = [place for place, step in enumerate(rollout.steps) if _shows_page(get_text(step), path[number])]
    looks = [place for place in places if rollout.steps[place].tool == "image_search"]
    bad = rollout
    for place in looks:
        bad = show_other(bad, place, NOTHING_LIKE_IT, results=())
    bad = drop(bad, [place for place in places if place not in looks])
    around = [(path[at], path[at + 1]) for at in (number - 1, number) if at >= 0]
    texts = [get_text(step) for step in bad.steps]
    if all(any(_names(text, one) and _names(text, other) for text in texts) for one, other in around):
        return None
    if not any(find_name(text, form) for text in texts for form in _list_forms(rollout)):
        return None
    return Edits(f"without {path[number]!r}", say_more(rollout, 0, "One step after the other."), bad)


def plant_name_claim(rollout: Rollout, words: Vocabulary, rng: Random) -> Edits | None:
    """R10: a name in the last thought that no observation has; the clean twin's was read."""
    sentence = rng.choice(NAME_CLAIMS[choose_half(words)])
    seen = [title for title in rollout.path if _tells(title) and any(_names(get_text(s), title) for s in rollout.steps)]
    if not seen:
        return None
    names = list_forms(rng.choice(seen))[-1], invent_person(words, rng)
    clean, bad = (say_more(rollout, len(rollout.steps) - 1, sentence.format(name=name)) for name in names)
    return Edits(sentence.format(name=names[1]), clean, bad)


def plant_number_claim(rollout: Rollout, words: Vocabulary, rng: Random) -> Edits | None:
    """R10: a number in the last thought that no observation has; the clean twin claims none."""
    sentence = rng.choice(NUMBER_CLAIMS[choose_half(words)])
    number = str(rng.randint(10_001, 99_999))
    if choose_half(words) == "held-out":
        number = f"{int(number):,}"
    last = len(rollout.steps) - 1
    clean = say_more(rollout, last, sentence.format(number="many").replace("£", ""))
    return Edits(sentence.format(number=number), clean, say_more(rollout, last, sentence.format(number=number)))


def _list_forms(rollout: Rollout) -> tuple[str, ...]:
    answer = rollout.reference
    return tuple(dict.fromkeys((rollout.answer, answer.surface, answer.value, *answer.aliases)))


def _leave_out(line: str, forms: tuple[str, ...], other: str) -> str:
    """Return a line without the answer, or with another value in its place."""
    if not any(find_name(line, form) for form in forms):
        return line
    if not other:
        return "(no text)" if line else line
    for form in forms:
        while (span := find_name(line, form)) is not None:
            line = f"{line[: span[0]]}{other}{line[span[1] :]}"
    return line


def _drop_line(text: str, rollout: Rollout, forms: tuple[str, ...]) -> str:
    """Return a page without its last line that names neither a node of the path nor the answer."""
    lines = text.split("\n")
    for place in range(len(lines) - 1, 2, -1):
        line = lines[place]
        kept = any(_names(line, title) for title in rollout.path) or any(find_name(line, form) for form in forms)
        if line and not kept and not line.startswith(("[", "URL:")):
            return "\n".join((*lines[:place], "(no text)", *lines[place + 1 :]))
    return text


def _rewrite(answer: Answer) -> Iterator[str]:
    """Yield other writings of an answer."""
    yield from (form for form in (*answer.aliases, answer.surface.upper()) if form)
    date = parse_date(answer.value) if answer.type == "date" else None
    if date is not None and date.day and date.month:
        yield f"the {date.day}. of {MONTHS[date.month - 1]} {date.year}"
        yield f"{MONTHS[date.month - 1][:3]}. {date.day}, {date.year}"
    if answer.type in ("name", "string"):
        yield fold_name(answer.surface)


def _ask(query: str) -> Call:
    return Call("text_search", {"query": query[:400]}, show_hits())


def _address(name: str) -> Call:
    url = f"https://elsewhere.example/wiki/{quote(name.replace(' ', '_'))}"
    return Call("visit", {"url": url}, show_hits())


def _tells(title: str) -> bool:
    """Say whether a title has a distinctive word."""
    return any(len(word) > 2 and not is_common_word(word) for word in fold_name(list_forms(title)[-1]).split())


def _shows_page(text: str, title: str) -> bool:
    return any(
        line in (f"Title: {title}", title) for line in (re.sub(r"^\[\d+\] ", "", each) for each in text.split("\n"))
    )


def _names(text: str, title: str) -> bool:
    folded = f" {fold_name(text)} "
    words = fold_name(list_forms(title)[-1]).split()
    telling = [word for word in words if len(word) > 2 and not is_common_word(word)]
    return all(f" {word} " in folded for word in telling or words)
