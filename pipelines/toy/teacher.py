"""A scripted teacher: walks the proof with tools, naming only what the tools have shown.

It knows from the oracle which name to look for, but goes on only when an observation holds that name. A page or an
index that lacks the chain leads to ``unknown``, as for a model that reads. What it thinks is in ``thoughts.toml``.

A vice changes one thing and leaves the rest of the rollout as it would have been, so that exactly one check of the
rejection cascade is the first to find it. Each vice acts in every rollout that would have led to an answer: one that
waits for an occasion takes the answering turn as its last.
"""

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache, partial
from importlib import resources
from itertools import pairwise
from typing import ClassVar

from pipelines.agent.dialects import UnsayableTurn, find_dialect
from pipelines.agent.observations import Shown, find_name, list_forms, read_hits, read_page
from pipelines.agent.transcript import BadTurn, Turn, parse_turn, read_observation, render_turn
from pipelines.errors import ConfigError
from pipelines.graph.answers import compare_answers
from pipelines.graph.titles import TITLE
from pipelines.ids import canonical_json, digest_value, draw_unit
from pipelines.names import fold_name, is_common_word
from pipelines.services.protocols import ChatReply, ChatRequest, Message, ToolCall
from schemas.proofs import Answer
from schemas.reasons import TrajectoryReason
from schemas.tasks import ActInputs, TeacherOracle

VERSION = 1
"""Raise it with any change of the plan, the wordings or the vices: it is part of every teacher's identity."""
UNKNOWN = "unknown"
SKIM_SHARE = 0.35
"""Share of attempts that go on from a snippet when it already holds the next name."""
WIDE_QUERIES = 0.3
"""Share of name searches that add the next relation."""

EXPECTED: Mapping[str, TrajectoryReason] = {
    "break_format": "format",
    "two_calls": "format",
    "unknown_tool": "format",
    "bad_calls": "tool-errors",
    "give_up": "no-answer",
    "wrong": "wrong-answer",
    "from_memory": "from-memory",
    "early": "from-memory",
    "unread": "unsupported",
    "skip": "memory-jump",
    "lucky": "path-not-covered",
    "repeat": "repetition",
    "paraphrase": "repetition",
    "peek": "contaminated",
    "lost_image": "unknown-image",
    "hallucinate": "unseen-claim",
    "overlong": "too-long",
}
"""By vice, the reason for which the cascade refuses the rollout; of several drawn at once the first here acts alone."""
VERIFIED: Mapping[str, TrajectoryReason] = {"shuffled": "incoherent", "aimless": "implausible"}
"""The same of vices that only a judge of the way can see; they come after the others."""


@dataclass(frozen=True, slots=True)
class Vices:
    """Probabilities from 0 to 1, drawn once for each attempt at each question; see :data:`EXPECTED`.

    Attributes:
        break_format: leaves a tag unclosed.
        two_calls: says two turns at once.
        unknown_tool: calls a tool that does not exist.
        bad_calls: visits three missing pages in a row.
        give_up: stops without an answer although the trail goes on.
        wrong: ends with the oracle's wrong answer.
        from_memory: answers at once, without a tool.
        early: says the answer before it saw anything, and only then looks it up.
        unread: answers after one look at the picture.
        skip: searches for the first bridge before anything has named it.
        lucky: never looks at the picture and finds the first bridge by half of its name.
        repeat: makes one call twice.
        paraphrase: makes one query twice, the second time with its words turned round.
        peek: visits a host that publishes datasets.
        lost_image: calls a tool on a picture that does not exist.
        hallucinate: adds a claim to its last thought that no observation supports.
        overlong: thinks so long before the answer that a student would be cut off there.
        shuffled: thinks in one step what belongs to another.
        aimless: calls a tool for nothing that the question needs.
        crop_first: crops the picture and searches the crop before the whole; a habit, not a fault.
    """

    break_format: float = 0.0
    two_calls: float = 0.0
    unknown_tool: float = 0.0
    bad_calls: float = 0.0
    give_up: float = 0.0
    wrong: float = 0.0
    from_memory: float = 0.0
    early: float = 0.0
    unread: float = 0.0
    skip: float = 0.0
    lucky: float = 0.0
    repeat: float = 0.0
    paraphrase: float = 0.0
    peek: float = 0.0
    lost_image: float = 0.0
    hallucinate: float = 0.0
    overlong: float = 0.0
    shuffled: float = 0.0
    aimless: float = 0.0
    crop_first: float = 0.0


def make_vices(settings: Mapping[str, float]) -> Vices:
    """Return the vices that a configuration names."""
    known = [field.name for field in fields(Vices)]
    for name, value in settings.items():
        if name not in known:
            raise ConfigError(f"scripted teacher: unknown setting {name!r}; there are: {', '.join(known)}")
        if not 0.0 <= value <= 1.0:
            raise ConfigError(f"scripted teacher: {name} is {value}, allowed is 0.0 to 1.0")
    return Vices(**settings)


# How it hears and speaks a dialect.


@dataclass(frozen=True, slots=True)
class HeardTurn:
    """One turn and what came back.

    Attributes:
        turn: what was said; without tool and answer where the turn could not be read.
        arguments: of its call.
        text: inside of the observation.
        first: number of the next picture when the call was made.
        pictures: how many pictures the observation showed; each takes the next number.
    """

    turn: Turn
    arguments: Mapping[str, object]
    text: str
    first: int
    pictures: int = 0


def read_history(messages: Sequence[Message], dialect: str) -> tuple[HeardTurn, ...]:
    """Return the turns so far; ``messages`` are system, question, then what was said and heard."""
    spoken, later = find_dialect(dialect), messages[2:]
    places = [place for place, message in enumerate(later) if message.role == "assistant"]
    exchanges: list[HeardTurn] = []
    number = 2  # img_1 is the question's picture
    for place, end in pairwise((*places, len(later))):
        turn, heard = _hear_turn(later[place], dialect), later[place + 1 : end]
        texts = [message.text for message in heard if message.role == "tool"] or [message.text for message in heard]
        shown = sum(len(message.images) for message in heard)
        arguments = json.loads(turn.arguments) if turn.tool else {}
        text = "\n".join(read_observation(text, spoken) for text in texts)
        exchanges.append(HeardTurn(turn, arguments, text, number, shown))
        number += shown
    return tuple(exchanges)


def _hear_turn(said: Message, dialect: str) -> Turn:
    if said.calls:
        call = said.calls[0]
        return Turn(said.text, call.name, canonical_json(json.loads(call.arguments)))
    try:
        return parse_turn(said.text, find_dialect(dialect))
    except BadTurn:
        return Turn("")


def can_say(tool: str, arguments: Mapping[str, object], dialect: str) -> bool:
    """Say whether a dialect has words for a call."""
    try:
        render_turn(Turn("So.", tool, canonical_json(arguments)), find_dialect(dialect))
    except UnsayableTurn:
        return False
    return True


def say_turn(turn: Turn, dialect: str) -> ChatReply:
    """Return a turn as a dialect says it."""
    spoken = find_dialect(dialect)
    if not spoken.native:
        return ChatReply(render_turn(turn, spoken), 0, 0)
    if turn.tool:
        return ChatReply(turn.thought, 0, 0, calls=(ToolCall("call", turn.tool, turn.arguments),))
    return ChatReply(f"{turn.thought}\n<{spoken.answer}>{turn.answer}</{spoken.answer}>", 0, 0)


def _say_twice(said: ChatReply) -> ChatReply:
    if said.calls:
        return replace(said, calls=(*said.calls, replace(said.calls[0], id=f"{said.calls[0].id}-again")))
    return replace(said, text=f"{said.text}\n{said.text}")


def _leave_open(said: ChatReply, choice: int) -> ChatReply:
    if said.calls:
        half = said.calls[0].arguments[: len(said.calls[0].arguments) // 2]
        return replace(said, calls=(replace(said.calls[0], arguments=half),))
    closing = list(re.finditer("</[^>]*>?", said.text))
    first = closing[0].group()
    if choice == 0:
        return replace(said, text=said.text.replace(first, "", 1))
    if choice == 1 or len(closing) == 1:
        return replace(said, text=said.text[: closing[-1].start()])
    return replace(said, text=said.text[: closing[0].end() + 8])


# The next move along the proof: how far the observations go, and what would go one further.


@dataclass(frozen=True, slots=True)
class Move:
    """What to do next: a kind of thought with its slots, then a call or an answer."""

    kind: str
    tool: str = ""
    arguments: Mapping[str, object] = field(default_factory=dict)
    answer: str = ""
    slots: Mapping[str, str] = field(default_factory=dict)
    after: str = ""
    """Said after the thought."""


LOST = Move("unknown", answer=UNKNOWN)
"""The move of one who has lost the trail."""


@dataclass(frozen=True, slots=True)
class ChainStep:
    """One link of the chain: the page ``title`` names one of ``forms``; ``asked`` is its relation as words."""

    title: str
    forms: tuple[str, ...]
    asked: str
    is_answer: bool = False

    def make_slots(self, name: str) -> dict[str, str]:
        """Return the slots of a thought about this link, whose page was named ``name``."""
        asked = f"the {self.asked}" if self.asked else "the next name"
        return {"name": name, "asked": asked, "asked_capital": asked[0].upper() + asked[1:]}

    def make_query(self, name: str) -> str:
        """Return the query for this link's page together with what is asked of it."""
        return f"{name} {self.asked}".strip()


class Seen:
    """Everything the observations have shown.

    Attributes:
        queries: what each query returned.
        visits: addresses that were opened.
        reads: whether the dialect can open pages; if not, snippets are all there is.
        skims: whether to go on from a snippet that already holds the next name.
    """

    def __init__(self, history: Sequence[HeardTurn], dialect: str, *, skims: bool = False) -> None:
        searches = [each for each in history if each.turn.tool in ("text_search", "image_search")]
        self.hits = [hit for each in searches for hit in read_hits(each.text)]
        self.pages = [page for each in history if (page := read_page(each.text)) is not None]
        self.queries = {str(each.arguments["query"]): each.text for each in history if "query" in each.arguments}
        self.visits = {str(each.arguments["url"]) for each in history if "url" in each.arguments}
        self.reads = find_dialect(dialect).offers("visit")
        self.skims = skims or not self.reads

    def find_url(self, title: str) -> str | None:
        """Return the address of a page whose title a search has shown."""
        return next((hit.url for hit in self.hits if hit.title.casefold() == title.casefold()), None)

    def read_link(self, link: ChainStep, name: str) -> dict[str, str] | None:
        """Return the slots ``next`` and ``clue``: what was read and where it stood; None if nothing was read."""
        for place, text in self._list_sources(link, name):
            for form in link.forms:
                span = find_name(text, form)
                if span is not None:
                    return {"next": " ".join(text[span[0] : span[1]].split()), "clue": place}
        return None

    def _list_sources(self, link: ChainStep, name: str) -> Iterator[tuple[str, str]]:
        for page in _list_texts(self.pages, link.title):
            lines = [line.partition(":") for line in page.splitlines()]
            facts = [value for label, _, value in lines if link.asked and _say_relation(label) == link.asked]
            yield f"the “{link.asked}” line", "\n".join(facts)
            yield "the running text", page
        if self.skims and not (link.is_answer and self.reads):
            for snippet in _list_texts(self.hits, link.title):
                yield "the search result", snippet
        last_resort = link.make_query(name)
        if (not self.reads or self.find_url(link.title) in self.visits) and last_resort in self.queries:
            yield "the search result", self.queries[last_resort]


def _list_texts(shown: Sequence[Shown], title: str) -> list[str]:
    return [entry.text for entry in shown if entry.title.casefold() == title.casefold()]


def _say_relation(relation: str) -> str:
    if relation == "mentions":
        return ""
    spaced = re.sub(r"\d+", " ", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", relation))
    return " ".join(spaced.replace("_", " ").lower().split())


def _list_links(oracle: TeacherOracle, first: int) -> Iterator[ChainStep]:
    titles = [oracle.anchor_title, *(hop.page or hop.object_title for hop in oracle.hops)]
    for title, hop in list(zip(titles, oracle.hops, strict=False))[first:]:
        yield ChainStep(title, list_forms(hop.object_title), _say_relation(hop.relation))
    answer = oracle.answer
    forms = (answer.surface, answer.value, *answer.aliases)
    yield ChainStep(titles[-1], forms, _say_relation(oracle.answer_relation), is_answer=True)


def plan_move(inputs: ActInputs, history: Sequence[HeardTurn], *, skims: bool) -> Move:
    """Return the next move along the proof: the picture, its page, then link after link."""
    seen = Seen(history, inputs.dialect, skims=skims)
    if not any(exchange.turn.tool == "image_search" for exchange in history):
        subject = _find_subject(inputs.oracle, history)
        if not can_say("image_search", {"image": subject}, inputs.dialect):
            subject = "img_1"
        return Move("look" if subject == "img_1" else "look_repaired", "image_search", {"image": subject})
    if seen.find_url(inputs.oracle.anchor_title) is None:
        query = inputs.question[:400]
        return LOST if query in seen.queries else Move("lost_picture", "text_search", {"query": query})
    if inputs.oracle.answer_relation == TITLE:
        name = inputs.oracle.answer.surface
        slots = {"name": name, "asked": "its name", "asked_capital": "Its name", "next": name, "clue": "the result"}
        return Move("answer", answer=name, slots=slots)
    return _follow_links(inputs.oracle, seen, 0)


def plan_search(inputs: ActInputs, history: Sequence[HeardTurn], *, recognises: bool, knows: bool) -> Move:
    """Return the next move of a solver that searches only for what it does not know; its kind is its whole thought."""
    oracle, seen = inputs.oracle, Seen(history, inputs.dialect)
    looked = any(exchange.turn.tool == "image_search" for exchange in history)
    if not recognises and not looked and inputs.turns_left > 1:
        return Move("I do not recognise what the picture shows.", "image_search", {"image": "img_1"})
    named = recognises or seen.find_url(oracle.anchor_title) is not None
    if named and knows:
        return Move("I know this one.", answer=oracle.answer.surface)
    if not named:
        return Move("I cannot tell what the picture shows.", answer=UNKNOWN)
    move = _follow_links(oracle, seen, 0)
    if move.tool == "visit" or (move.tool and inputs.turns_left <= 1):
        return LOST
    return replace(move, kind=f"What the picture shows is {oracle.anchor_title}.", slots={}, after="")


def _follow_links(oracle: TeacherOracle, seen: Seen, first: int) -> Move:
    name = oracle.hops[first - 1].object_title if first else oracle.anchor_title
    before: dict[str, str] = {}
    slots: dict[str, str] = {}
    for link in _list_links(oracle, first):
        found = seen.read_link(link, name)
        if found is None:
            return _reach_link(oracle, link, name, seen, before)
        slots = link.make_slots(name) | found
        name, before = found["next"], slots
    return Move("answer", answer=name, slots=slots)


def _reach_link(oracle: TeacherOracle, link: ChainStep, name: str, seen: Seen, before: Mapping[str, str]) -> Move:
    slots, url, query = link.make_slots(name), seen.find_url(link.title), link.make_query(name)
    asked = slots["asked"]
    if url is None:
        wide = draw_unit(oracle.question_id, oracle.attempt, name, "wide") < WIDE_QUERIES
        query = query if wide else name
        if query not in seen.queries:
            return Move("find", "text_search", {"query": query}, slots={**before, "asked": asked})
        if name not in seen.queries:
            return Move("find_again", "text_search", {"query": name}, slots={"name": name, "asked": asked})
        return LOST
    if seen.reads and url not in seen.visits:
        visit = partial(Move, tool="visit", arguments={"url": url, "goal": f"find {asked}"})
        if not before:
            return visit("open_anchor", slots=slots)
        if any(find_name(query, name) for query in seen.queries):
            return visit("open", slots=slots)
        return visit("open_next", slots={**before, "asked": asked})
    return LOST if query in seen.queries else Move("not_on_page", "text_search", {"query": query}, slots=slots)


def _find_subject(oracle: TeacherOracle, history: Sequence[HeardTurn]) -> str:
    made = [each.first for each in history if each.turn.tool == oracle.repair and each.pictures]
    return f"img_{made[0]}" if made else "img_1"


def _repair_first(inputs: ActInputs, history: Sequence[HeardTurn]) -> Move | None:
    repair, box = inputs.oracle.repair, inputs.oracle.box
    if not repair or any(exchange.turn.tool == repair for exchange in history):
        return None
    arguments = {"image": "img_1"} | ({"box": list(box)} if box else {})
    return Move("zoom" if box else repair, repair, arguments) if can_say(repair, arguments, inputs.dialect) else None


# What a vice makes of the next move.

BOXES = ([100, 80, 900, 920], [150, 100, 850, 900], [200, 150, 800, 850], [120, 60, 880, 860])
WHOLE_BOX = [40, 40, 960, 960]
FAILING_CALLS = 3
"""K of OpenSearch-VL: so many errors in a row are fatal."""
MISSING_PAGES = ("Index_of_further_details", "Reading_room_of_the_archive", "Unsorted_particulars")
UNKNOWN_TOOLS = ("knowledge_graph", "translate", "python")
DATASET = "https://huggingface.co/datasets/open-questions/collected"
NOWHERE = "https://nowhere.invalid/wiki/"
CLAIMS = (
    "It was renewed by {name} some time later.",
    "By the way, {name} is said to have visited it.",
    "The same source gives {number} visitors.",
    "That agrees with the {number} copies that were printed of it.",
    "{name} wrote a book about exactly this.",
    "Of the whole, {number} pieces are left.",
)
"""What a hallucinating teacher adds to its last thought; no observation says anything like it."""
NAMES = ("Quorvane Thissleby", "Osmund Vreckhardt", "Zelphine Adraquist", "Ixmar Dohlbrenner")
NUMBERS = ("48,617", "91,358", "37,469", "62,783")
ASIDES = ("weather tomorrow", "recipe pancakes", "cheap umbrellas", "chess openings beginners")
"""What an aimless teacher searches for."""
MUSINGS = (
    "Let me weigh that once more before I commit to it. ",
    "On the one hand the trail looks complete, on the other hand nothing forbids a second look at every link of it. ",
    "If one of the steps were wrong, the rest would fall with it, so each of them deserves to be turned over again. ",
    "The wording leaves some room, and I would rather go round in a circle than miss what was meant. ",
    "Suppose the opposite for a moment; then the pages would have to read otherwise, and they do not. ",
    "Still, a doubt remains, and a doubt that is not followed up tends to come back later. ",
)
"""What an overlong thought is made of."""
MUSING_LETTERS = 172_000
"""Letters of an overlong thought: more than 32,000 tokens for words so short, and still within a context of 200,000."""
_SAYS: Mapping[str, tuple[tuple[str, Mapping[str, object]], ...]] = {
    "unknown_tool": ((UNKNOWN_TOOLS[0], {"input": "img_1"}),),
    "bad_calls": (("visit", {"url": NOWHERE}),),
    "lucky": (("text_search", {"query": "word", "top_k": 1}),),
    "peek": (("visit", {"url": DATASET}),),
    "lost_image": (("image_search", {"image": "img_9"}), ("crop", {"image": "img_9", "box": BOXES[0]})),
}
"""By vice, calls of which a dialect must have words for one."""


@dataclass(frozen=True, slots=True)
class Moment:
    """The point at which a vice may act; ``planned`` is what a virtuous teacher would do."""

    inputs: ActInputs
    history: Sequence[HeardTurn]
    planned: Move
    pick: Callable[[str, int], int]
    """Draws a number below a count, by what it is for."""

    @property
    def oracle(self) -> TeacherOracle:
        """The truth about the question."""
        return self.inputs.oracle

    @property
    def answers(self) -> bool:
        """Whether the planned move gives the answer."""
        return self.planned.kind == "answer"

    def is_due(self, what: str, first: int = 1) -> bool:
        """Say whether it is time: from a drawn turn on, and at the latest when the answer comes."""
        return self.answers or len(self.history) >= first + self.pick(what, 3)


def list_vices(oracle: TeacherOracle, name: str, vices: Vices, dialect: str = "synth") -> frozenset[str]:
    """Return what a teacher does wrong in one attempt, and its habits, without running it."""

    def is_drawn(vice: str) -> bool:
        probability: float = getattr(vices, vice)
        return draw_unit(oracle.question_id, oracle.attempt, name, vice) < probability

    drawn = [vice for vice in (*EXPECTED, *VERIFIED) if is_drawn(vice) and _admits(vice, oracle, dialect)]
    return frozenset((*drawn[:1], *(["crop_first"] if is_drawn("crop_first") else [])))


def _admits(vice: str, oracle: TeacherOracle, dialect: str) -> bool:
    if vice in _SAYS and not any(can_say(tool, arguments, dialect) for tool, arguments in _SAYS[vice]):
        return False
    if vice == "wrong":
        return compare_answers(oracle.wrong_answer, oracle.answer) == "incorrect"
    if vice in ("early", "unread"):
        return _is_telling(oracle.answer)
    if vice == "skip":
        return any(_list_telling(hop.object_title) for hop in oracle.hops[:-1])
    if vice == "lucky":
        return len(oracle.hops) > 1 and len(_list_telling(oracle.hops[0].object_title)) > 1
    return True


def _is_telling(answer: Answer) -> bool:
    if answer.type == "number":
        return bool(answer.unit) or not re.fullmatch(r"-?\d{1,2}(?:\.\d*)?", answer.value)
    return answer.type == "date" or bool(_list_telling(answer.surface))


def _list_telling(title: str) -> list[str]:
    words = dict.fromkeys(list_forms(title)[-1].split())
    return [word for word in words if any(map(_tells, fold_name(word).split()))]


def _tells(word: str) -> bool:
    return len(word) >= 3 and not is_common_word(word)


def make_crop(image: str, box: Sequence[int], dialect: str) -> Move | None:
    """Return a crop, in pixels where a dialect knows no other boxes, or None where it has none."""
    pixels = [edge // 2 for edge in box]
    for arguments in ({"image": image, "box": list(box)}, {"image": image, "box": pixels, "unit": "pixels"}):
        if can_say("crop", arguments, dialect):
            return Move("crop", "crop", arguments)
    return None


def _unknown_tool(moment: Moment) -> Move | None:
    if any(exchange.turn.tool in UNKNOWN_TOOLS for exchange in moment.history):
        return None
    tool = UNKNOWN_TOOLS[moment.pick("tool", len(UNKNOWN_TOOLS))]
    return Move("unknown_tool", tool, {"input": "img_1"}) if moment.is_due("unknown_tool", first=0) else None


def _bad_calls(moment: Moment) -> Move | None:
    tried = sum(str(exchange.arguments.get("url", "")).endswith(MISSING_PAGES) for exchange in moment.history)
    if tried == FAILING_CALLS or not (tried or (moment.history and moment.is_due("bad_calls"))):
        return None
    known = Seen(moment.history, moment.inputs.dialect).find_url(moment.oracle.anchor_title)
    base = known[: known.rindex("/") + 1] if known else NOWHERE
    return Move("bad_calls", "visit", {"url": base + MISSING_PAGES[tried]})


def _give_up(moment: Moment) -> Move | None:
    return Move("give_up", answer=UNKNOWN) if moment.is_due("give_up") else None


def _wrong(moment: Moment) -> Move | None:
    return Move("doubt", answer=moment.oracle.wrong_answer) if moment.answers else None


def _from_memory(moment: Moment) -> Move | None:
    return Move("memory", answer=moment.oracle.answer.surface)


def _early(moment: Moment) -> Move | None:
    if moment.history:
        return None
    return replace(moment.planned, kind="early", slots={"answer": moment.oracle.answer.surface})


def _unread(moment: Moment) -> Move | None:
    if moment.history:
        return Move("unread", answer=moment.oracle.answer.surface)
    return make_crop("img_1", BOXES[0], moment.inputs.dialect)


def _skip(moment: Moment) -> Move | None:
    if moment.history:
        return None
    title = next(hop.object_title for hop in moment.oracle.hops if _list_telling(hop.object_title))
    return Move("skip", "text_search", {"query": f"{list_forms(title)[-1]} overview"})


def _lucky(moment: Moment) -> Move | None:
    anchor, bridge = moment.oracle.anchor_title, moment.oracle.hops[0].object_title
    seen = Seen(moment.history, moment.inputs.dialect)
    if seen.find_url(bridge) is None:
        left = [word for word in _list_telling(bridge) if word not in seen.queries]
        return Move("lucky", "text_search", {"query": left[0], "top_k": 1}) if left else LOST
    move = _follow_links(moment.oracle, seen, 1)
    texts = [fold_name(exchange.text) for exchange in moment.history]
    if move.kind == "answer" and any(_is_named(text, anchor) and _is_named(text, bridge) for text in texts):
        return LOST
    return replace(move, kind="lucky_page", slots={}) if move.kind == "open_anchor" else move


def _is_named(text: str, title: str) -> bool:
    shown, words = text.split(), fold_name(list_forms(title)[-1]).split()
    return all(word in shown for word in [word for word in words if _tells(word)] or words)


def _repeat(moment: Moment) -> Move | None:
    calls = [(exchange.turn.tool, exchange.turn.arguments) for exchange in moment.history]
    if not calls or len(set(calls)) < len(calls) or not moment.is_due("repeat"):
        return None
    return Move("repeat", moment.history[-1].turn.tool, moment.history[-1].arguments)


def _paraphrase(moment: Moment) -> Move | None:
    queries = [str(exchange.arguments["query"]) for exchange in moment.history if exchange.turn.tool == "text_search"]
    queries = [query for query in queries if 1 < len(query.split()) < 12]
    if len({tuple(sorted(query.split())) for query in queries}) < len(queries):
        return None
    if queries:
        return Move("paraphrase", "text_search", {"query": " ".join(reversed(queries[-1].split()))})
    if not moment.answers:
        return None
    return Move("background", "text_search", {"query": f"{list_forms(moment.oracle.anchor_title)[-1]} general survey"})


def _peek(moment: Moment) -> Move | None:
    if any(exchange.arguments.get("url") == DATASET for exchange in moment.history):
        return None
    return Move("peek", "visit", {"url": DATASET}) if moment.is_due("peek") else None


def _lost_image(moment: Moment) -> Move | None:
    history = moment.history
    images = [(str(exchange.arguments.get("image", "img_1")), exchange.first) for exchange in history]
    lost = any(image not in {f"img_{number}" for number in range(1, first)} for image, first in images)
    searched = any(exchange.turn.tool == "image_search" for exchange in history)
    if lost or not searched or not moment.is_due("lost_image"):
        return None
    image = f"img_{history[-1].first + history[-1].pictures + 5 + moment.pick('lost', 5)}"
    if can_say("image_search", {"image": image}, moment.inputs.dialect):
        return Move("lost_image", "image_search", {"image": image})
    crop = make_crop(image, BOXES[0], moment.inputs.dialect)
    return crop and replace(crop, kind="lost_image")


def _hallucinate(moment: Moment) -> Move | None:
    if not moment.answers:
        return None
    name, number = NAMES[moment.pick("name", len(NAMES))], NUMBERS[moment.pick("number", len(NUMBERS))]
    return replace(moment.planned, after=CLAIMS[moment.pick("claim", len(CLAIMS))].format(name=name, number=number))


def _overlong(moment: Moment) -> Move | None:
    looked = any(each.turn.tool == "crop" and len(each.turn.thought) > MUSING_LETTERS for each in moment.history)
    if looked or not moment.answers:
        return None
    start = moment.pick("musing", len(MUSINGS))
    turn = "".join((*MUSINGS[start:], *MUSINGS[:start]))
    after = (turn * (MUSING_LETTERS // len(turn) + 1)).rstrip()
    return replace(make_crop("img_1", WHOLE_BOX, moment.inputs.dialect) or moment.planned, after=after)


def _shuffled(moment: Moment) -> Move | None:
    return None if moment.history else replace(moment.planned, kind="unknown")


def _aimless(moment: Moment) -> Move | None:
    queries = {str(exchange.arguments.get("query")) for exchange in moment.history}
    if not moment.answers or queries & set(ASIDES):
        return None
    return Move("aside", "text_search", {"query": ASIDES[moment.pick("aside", len(ASIDES))]})


_CHANGES: Mapping[str, Callable[[Moment], Move | None]] = {
    "unknown_tool": _unknown_tool,
    "bad_calls": _bad_calls,
    "give_up": _give_up,
    "wrong": _wrong,
    "from_memory": _from_memory,
    "early": _early,
    "unread": _unread,
    "skip": _skip,
    "lucky": _lucky,
    "repeat": _repeat,
    "paraphrase": _paraphrase,
    "peek": _peek,
    "lost_image": _lost_image,
    "hallucinate": _hallucinate,
    "overlong": _overlong,
    "shuffled": _shuffled,
    "aimless": _aimless,
}
"""By vice, its change of the planned move, None where it does nothing; the other vices spoil the reply instead."""


@dataclass(frozen=True, slots=True)
class ScriptedTeacher:
    """A chat model for the task ``act`` in any dialect; the same settings and request always make the same reply."""

    name: str = "scripted-teacher"
    vices: Vices = Vices()
    reads_inputs: ClassVar[bool] = True

    @property
    def identity(self) -> str:
        """Name, and digest of the vices and of :data:`VERSION`."""
        return f"{self.name}:{digest_value([asdict(self.vices), VERSION])[:16]}"

    async def chat(self, request: ChatRequest) -> ChatReply:
        """Return the next turn of a rollout; a script reads no tokens, so it counts none."""
        if request.task != "act" or not isinstance(request.inputs, ActInputs):
            raise ConfigError(f"scripted teacher {self.name}: task {request.task!r} given, it plays only 'act'")
        inputs = request.inputs
        history = read_history(request.messages, inputs.dialect)
        drawn = list_vices(inputs.oracle, self.name, self.vices, inputs.dialect)
        vice = next(iter(drawn - {"crop_first"}), "")
        move = self._choose_move(inputs, history, vice, crops="crop_first" in drawn)
        thought = f"{self._think(inputs.oracle, move, len(history))} {move.after}".strip()
        arguments = canonical_json(move.arguments) if move.tool else ""
        said = say_turn(Turn(thought, move.tool, arguments, move.answer), inputs.dialect)
        return self._spoil(inputs.oracle, vice, said, history, is_last=not move.tool)

    def _choose_move(self, inputs: ActInputs, history: Sequence[HeardTurn], vice: str, *, crops: bool) -> Move:
        oracle = inputs.oracle
        skims = draw_unit(oracle.question_id, oracle.attempt, self.name, "skims") < SKIM_SHARE
        move = (
            _repair_first(inputs, history)
            or (self._crop_first(inputs, history) if crops else None)
            or plan_move(inputs, history, skims=skims)
        )
        if vice in _CHANGES:
            move = _CHANGES[vice](Moment(inputs, history, move, partial(self._pick, oracle))) or move
        return LOST if move.tool and inputs.turns_left <= 1 else move

    def _crop_first(self, inputs: ActInputs, history: Sequence[HeardTurn]) -> Move | None:
        oracle, dialect = inputs.oracle, inputs.dialect
        subject = _find_subject(oracle, history)
        crop = next((exchange for exchange in history if exchange.turn.tool == "crop"), None)
        if crop is None:
            searched = can_say("image_search", {"image": "img_2"}, dialect)
            return make_crop(subject, BOXES[self._pick(oracle, "box", len(BOXES))], dialect) if searched else None
        looks = [exchange.arguments.get("image") for exchange in history if exchange.turn.tool == "image_search"]
        if crop.pictures and not looks:
            return Move("look_crop", "image_search", {"image": f"img_{crop.first}"})
        return None if subject in looks else Move("look_whole", "image_search", {"image": subject})

    def _think(self, oracle: TeacherOracle, move: Move, number: int) -> str:
        def choose(part: str, sentences: Sequence[str]) -> str:
            luck = draw_unit(oracle.question_id, oracle.attempt, self.name, number, move.kind, part)
            return sentences[int(luck * len(sentences))]

        wordings = read_thoughts()[move.kind]
        thought = f"{choose('first', wordings['firsts'])} {choose('second', wordings['seconds'])}"
        return thought.format_map(move.slots)

    def _spoil(
        self, oracle: TeacherOracle, vice: str, said: ChatReply, history: Sequence[HeardTurn], *, is_last: bool
    ) -> ChatReply:
        if vice not in ("break_format", "two_calls") or any(each.turn == Turn("") for each in history):
            return said
        if not is_last and len(history) != self._pick(oracle, vice, 3):
            return said
        return _leave_open(said, self._pick(oracle, "open_tag", 3)) if vice == "break_format" else _say_twice(said)

    def _pick(self, oracle: TeacherOracle, what: str, count: int) -> int:
        return int(draw_unit(oracle.question_id, oracle.attempt, self.name, "pick", what) * count)


@cache
def read_thoughts() -> Mapping[str, Mapping[str, Sequence[str]]]:
    """Return the wordings of each kind of move, by part of the thought."""
    return tomllib.loads(resources.files("pipelines.toy").joinpath("thoughts.toml").read_text("utf-8"))
