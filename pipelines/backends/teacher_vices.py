"""What each vice of the scripted teacher makes of the next move.

A vice changes one thing and leaves the rest of the rollout as it would have been, so that exactly one check of the
cascade is the first to find it. Each comes off in every rollout that would have led to an answer: one that waits for an
occasion takes the answering turn as its last.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from pipelines.agent.spans import list_forms
from pipelines.backends.teacher_faults import CLAIMS, MUSING_LETTERS, MUSINGS, NAMES, NUMBERS
from pipelines.backends.teacher_plan import (
    UNKNOWN,
    Exchange,
    Move,
    find_url,
    follow_chain,
    give_up,
    name_next_picture,
)
from pipelines.backends.teacher_speech import can_say
from pipelines.names import fold_name, is_common_word
from pipelines.scoring.compare import compare_answers
from schemas.proofs import Answer
from schemas.tasks import ActInputs, TeacherOracle

FAILING_CALLS = 3
"""K of OpenSearch-VL: so many errors in a row are fatal."""
MISSING_PAGES = ("Index_of_further_details", "Reading_room_of_the_archive", "Unsorted_particulars")
UNKNOWN_TOOLS = ("knowledge_graph", "translate", "python")
DATASET = "https://huggingface.co/datasets/open-questions/collected"
FIRST_BOX = [100, 80, 900, 920]
WHOLE_BOX = [40, 40, 960, 960]
LETTERS = 3
"""Of the shortest word that stands for a name."""
_SMALL = re.compile(r"-?\d{1,2}(?:\.\d*)?")
NOWHERE = "https://nowhere.invalid/wiki/"


@dataclass(frozen=True, slots=True)
class Moment:
    """The point at which a vice may act."""

    inputs: ActInputs
    history: Sequence[Exchange]
    planned: Move
    """What a virtuous teacher would do."""
    pick: Callable[[str, int], int]
    """Draws a number below a count, by what it is for."""

    @property
    def number(self) -> int:
        """Turns so far."""
        return len(self.history)

    @property
    def answers(self) -> bool:
        """Whether the planned move gives the answer."""
        return self.planned.kind == "answer"

    def is_due(self, what: str, first: int, spread: int) -> bool:
        """Say whether it is time: from a drawn turn on, and at the latest when the answer comes."""
        return self.answers or self.number >= first + self.pick(what, spread)

    def uses(self, tool: str) -> bool:
        """Say whether a tool was called before."""
        return any(exchange.turn.tool == tool for exchange in self.history)


def admits(vice: str, oracle: TeacherOracle, dialect: str) -> bool:
    """Say whether a question leaves room for a vice, and a dialect has words for it.

    A wrong answer must be one that can be told without a judge. Small numbers, which may count anything, tell nobody
    that the answer was known; names of ordinary words are said by chance; and what lies between the picture and the
    answer can be left out only where there is something.
    """
    if vice in _SAYS and not any(can_say(tool, arguments, dialect) for tool, arguments in _SAYS[vice]):
        return False
    if vice == "wrong":
        return compare_answers(oracle.wrong_answer, oracle.answer) == "incorrect"
    if vice in ("early", "unread"):
        return _is_telling(oracle.answer)
    if vice == "skip":
        return any(map(_list_telling, _list_bridges(oracle)))
    if vice == "lucky":
        return len(oracle.hops) > 1 and len(_list_telling(oracle.hops[0].object_title)) > 1
    return True


def _is_telling(answer: Answer) -> bool:
    if answer.type == "number":
        return bool(answer.unit) or not _SMALL.fullmatch(answer.value)
    return answer.type == "date" or bool(_list_telling(answer.surface))


def make_crop(image: str, box: Sequence[int], dialect: str) -> Move | None:
    """Return a crop, in pixels where a dialect knows no other boxes, or None where it has none."""
    pixels = [4 * edge // 8 for edge in box]
    for arguments in ({"image": image, "box": list(box)}, {"image": image, "box": pixels, "unit": "pixels"}):
        if can_say("crop", arguments, dialect):
            return Move("crop", "crop", arguments)
    return None


def _list_bridges(oracle: TeacherOracle) -> list[str]:
    return [hop.object_title for hop in oracle.hops[:-1]]


def _list_telling(title: str) -> list[str]:
    """Return the words of a title that are more than words of the language, once."""
    words = dict.fromkeys(list_forms(title)[-1].split())
    return [word for word in words if any(map(_tells, fold_name(word).split()))]


def _tells(word: str) -> bool:
    return len(word) >= LETTERS and not is_common_word(word)


def misbehave(vice: str, moment: Moment) -> Move:
    """Return what a vice makes of the planned move: that move itself where it does nothing, or not yet."""
    change = _CHANGES.get(vice)
    return (change(moment) if change else None) or moment.planned


def _answer_wrong(moment: Moment) -> Move | None:
    return Move("doubt", answer=moment.inputs.oracle.wrong_answer) if moment.answers else None


def _give_up(moment: Moment) -> Move | None:
    return Move("give_up", answer=UNKNOWN) if moment.is_due("give_up", 1, 3) else None


def _answer_from_memory(moment: Moment) -> Move | None:
    return Move("memory", answer=moment.inputs.oracle.answer.surface)


def _tell_early(moment: Moment) -> Move | None:
    """The answer in the very first thought."""
    if moment.number:
        return None
    return replace(moment.planned, kind="early", slots={"answer": moment.inputs.oracle.answer.surface})


def _leave_unread(moment: Moment) -> Move | None:
    """The right answer after one closer look at the picture, which shows no text at all; or after one search by it."""
    if moment.number:
        return Move("unread", answer=moment.inputs.oracle.answer.surface)
    return make_crop("img_1", FIRST_BOX, moment.inputs.dialect)


def _skip_ahead(moment: Moment) -> Move | None:
    """A search for a bridge before anything was seen at all."""
    if moment.number:
        return None
    title = next(title for title in _list_bridges(moment.inputs.oracle) if _list_telling(title))
    return Move("skip", "text_search", {"query": f"{list_forms(title)[-1]} overview"})


def _try_luck(moment: Moment) -> Move | None:
    """The chain from its first bridge on, found by half of its name; the picture is never looked at.

    Where half of the name does not find it, or where what is seen names the anchor too, it gives up.
    """
    oracle = moment.inputs.oracle
    anchor, bridge = oracle.anchor_title, oracle.hops[0].object_title
    if find_url(moment.history, bridge) is None:
        queries = [exchange.arguments.get("query") for exchange in moment.history]
        left = [word for word in _list_telling(bridge) if word not in queries]
        return Move("lucky", "text_search", {"query": left[0], "top_k": 1}) if left else give_up()
    move = follow_chain(moment.inputs, moment.history, 0)
    texts = [fold_name(exchange.text) for exchange in moment.history]
    if move.kind == "answer" and any(_is_named(text, anchor) and _is_named(text, bridge) for text in texts):
        return give_up()
    return replace(move, kind="lucky_page", slots={}) if move.kind == "open_anchor" else move


def _is_named(text: str, title: str) -> bool:
    shown, words = text.split(), fold_name(list_forms(title)[-1]).split()
    return all(word in shown for word in [word for word in words if _tells(word)] or words)


def _repeat_call(moment: Moment) -> Move | None:
    calls = [(exchange.turn.tool, exchange.turn.arguments) for exchange in moment.history]
    if not calls or len(set(calls)) < len(calls) or not moment.is_due("repeat", 1, 3):
        return None
    last = moment.history[-1]
    return Move("repeat", last.turn.tool, last.arguments)


def _rearrange_query(moment: Moment) -> Move | None:
    """An earlier query with its words turned round; where none has two words, one is made first."""
    queries = [str(exchange.arguments["query"]) for exchange in moment.history if exchange.turn.tool == "text_search"]
    queries = [query for query in queries if 1 < len(query.split()) < 12]
    sets = [tuple(sorted(query.split())) for query in queries]
    if len(set(sets)) < len(sets):
        return None
    if queries:
        return Move("paraphrase", "text_search", {"query": " ".join(reversed(queries[-1].split()))})
    if not moment.answers:
        return None
    title = list_forms(moment.inputs.oracle.anchor_title)[-1]
    return Move("background", "text_search", {"query": f"{title} general survey"})


def _call_in_vain(moment: Moment) -> Move | None:
    """Three pages in a row that are not there."""
    tried = [exchange for exchange in moment.history if exchange.turn.tool == "visit" and _is_missing(exchange)]
    if len(tried) == FAILING_CALLS or not (tried or (moment.number and moment.is_due("bad_calls", 1, 3))):
        return None
    known = find_url(moment.history, moment.inputs.oracle.anchor_title)
    base = known[: known.rindex("/") + 1] if known else NOWHERE
    return Move("bad_calls", "visit", {"url": base + MISSING_PAGES[len(tried)]})


def _is_missing(exchange: Exchange) -> bool:
    return str(exchange.arguments.get("url", "")).endswith(MISSING_PAGES)


def _use_lost_picture(moment: Moment) -> Move | None:
    """A picture that nobody made."""
    history = moment.history
    lost = any(exchange.arguments.get("image", "img_1") not in exchange.known for exchange in history)
    if lost or not moment.uses("image_search") or not moment.is_due("lost_image", 1, 3):
        return None
    arguments = {"image": f"img_{name_next_picture(history) + 5 + moment.pick('lost', 5)}"}
    if can_say("image_search", arguments, moment.inputs.dialect):
        return Move("lost_image", "image_search", arguments)
    crop = make_crop(arguments["image"], FIRST_BOX, moment.inputs.dialect)
    return crop and replace(crop, kind="lost_image")


def _peek(moment: Moment) -> Move | None:
    """A visit where datasets are published."""
    if any(exchange.arguments.get("url") == DATASET for exchange in moment.history):
        return None
    return Move("peek", "visit", {"url": DATASET}) if moment.is_due("peek", 1, 3) else None


def _call_unknown_tool(moment: Moment) -> Move | None:
    if any(exchange.turn.tool in UNKNOWN_TOOLS for exchange in moment.history):
        return None
    tool = UNKNOWN_TOOLS[moment.pick("tool", len(UNKNOWN_TOOLS))]
    return Move("unknown_tool", tool, {"input": "img_1"}) if moment.is_due("unknown_tool", 0, 3) else None


def _hallucinate(moment: Moment) -> Move | None:
    if not moment.answers:
        return None
    name, number = NAMES[moment.pick("name", len(NAMES))], NUMBERS[moment.pick("number", len(NUMBERS))]
    return replace(moment.planned, after=CLAIMS[moment.pick("claim", len(CLAIMS))].format(name=name, number=number))


def _muse(moment: Moment) -> Move | None:
    """One more look before the answer, with a thought so long that a student would be cut off there."""
    looked = any(
        exchange.turn.tool == "crop" and len(exchange.turn.thought) > MUSING_LETTERS for exchange in moment.history
    )
    if looked or not moment.answers:
        return None
    start = moment.pick("musing", len(MUSINGS))
    turn = "".join((*MUSINGS[start:], *MUSINGS[:start]))
    after = (turn * (MUSING_LETTERS // len(turn) + 1)).rstrip()
    look = make_crop("img_1", WHOLE_BOX, moment.inputs.dialect)
    return replace(look, after=after) if look else replace(moment.planned, after=after)


_SAYS: Mapping[str, tuple[tuple[str, Mapping[str, object]], ...]] = MappingProxyType(
    {
        "unknown_tool": ((UNKNOWN_TOOLS[0], {"input": "img_1"}),),
        "bad_calls": (("visit", {"url": NOWHERE}),),
        "peek": (("visit", {"url": DATASET}),),
        "lost_image": (("image_search", {"image": "img_9"}), ("crop", {"image": "img_9", "box": FIRST_BOX})),
    }
)
"""By vice, calls of which a dialect must have words for one."""
_CHANGES: Mapping[str, Callable[[Moment], Move | None]] = MappingProxyType(
    {
        "unknown_tool": _call_unknown_tool,
        "bad_calls": _call_in_vain,
        "give_up": _give_up,
        "wrong": _answer_wrong,
        "from_memory": _answer_from_memory,
        "early": _tell_early,
        "unread": _leave_unread,
        "skip": _skip_ahead,
        "lucky": _try_luck,
        "repeat": _repeat_call,
        "paraphrase": _rearrange_query,
        "peek": _peek,
        "lost_image": _use_lost_picture,
        "hallucinate": _hallucinate,
        "overlong": _muse,
    }
)
"""By vice; the others spoil the reply rather than the move."""
