"""A scripted teacher: walks the proof with tools, naming only what the tools have shown.

It knows from the oracle which name to look for, but goes on only when that name stands in an observation, so a page
or an index that does not hold the chain leads to ``unknown``, as it would for a model that reads. Vices make the
rollouts that the rejection cascade has to find.

What the scripted teacher thinks while it does what it should not.

What the scripted teacher thinks while it looks at the picture, before it knows any name.

The scripted teacher's next move: how far the observations go along the proof, and what would go one further.

How the scripted teacher hears and speaks a dialect: turns as text, or as native tool calls.

What the scripted teacher thinks aloud: an observation, then an intention, each in several wordings.

Slots are filled only with what the transcript has shown: ``name`` (the entity at hand), ``next`` (what was just read),
``clue`` (where it stood), ``asked`` (what is looked for now). Of a fault alone, ``answer`` may come from nowhere.

What each vice of the scripted teacher makes of the next move.

A vice changes one thing and leaves the rest of the rollout as it would have been, so that exactly one check of the
cascade is the first to find it. Each comes off in every rollout that would have led to an answer: one that waits for an
occasion takes the answering turn as its last.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from itertools import pairwise
from types import MappingProxyType

from pipelines.agent.dialects import UnsayableTurn, find_dialect
from pipelines.agent.observations import Shown, find_name, list_forms, read_hits, read_page
from pipelines.agent.transcript import BadTurn, Turn, parse_turn, read_observation, render_turn
from pipelines.errors import ConfigError
from pipelines.graph.answers import compare_answers
from pipelines.ids import canonical_json, digest_value, draw_unit
from pipelines.names import fold_name, is_common_word
from pipelines.services.protocols import ChatReply, ChatRequest, Message, ToolCall
from schemas.proofs import Answer
from schemas.reasons import TrajectoryReason
from schemas.tasks import ActInputs, TeacherOracle


@dataclass(frozen=True, slots=True)
class Wordings:
    """First and second sentences; any first goes with any second."""

    firsts: tuple[str, ...]
    seconds: tuple[str, ...]


LOOKS: Mapping[str, Wordings] = MappingProxyType(
    {
        "look": Wordings(
            (
                "The question turns on what the picture shows, and nothing in its wording says what that is.",
                "Before anything else I have to know what I am looking at.",
                "No starting point is named in the question, so the picture is the only way in.",
                "Everything asked here hangs on the thing in img_1.",
                "I could guess what this is, but a wrong guess would spoil every later step.",
                "The wording only points at the picture; the rest follows from whatever that is.",
            ),
            (
                "I will look the picture up.",
                "A search by picture should give me a title to start from.",
                "Let me see which pages use this picture.",
                "An image search on img_1 is the natural first move.",
                "So: find pages that show the same thing.",
            ),
        ),
        "crop": Wordings(
            (
                "There is a good deal of background in this picture.",
                "The subject does not fill the frame.",
                "The edges of img_1 look like surroundings rather than the thing itself.",
                "A tighter view may be easier to match than the whole scene.",
            ),
            (
                "I will cut out the middle first and look at that.",
                "Let me crop to the main subject before searching.",
                "Cropping costs one turn and may make the match cleaner.",
                "First a crop around the centre, then the search.",
            ),
        ),
        "look_crop": Wordings(
            (
                "The crop holds the main subject.",
                "That is a closer view of what matters.",
                "Now I have the subject without most of its surroundings.",
                "The cut-out looks usable.",
            ),
            (
                "Let me search with it.",
                "I will look up the cropped picture.",
                "Time to see whether any page shows this.",
                "An image search on the crop comes next.",
            ),
        ),
        "look_whole": Wordings(
            (
                "I do not want to rest on the crop alone.",
                "A part of a picture can match the wrong page.",
                "The cropped view is only half the evidence.",
                "To be sure about the identification I need the full frame as well.",
            ),
            (
                "Now the same search with the whole of img_1.",
                "Let me search the uncropped picture and compare.",
                "The original picture gets its own search.",
                "I will look up img_1 itself.",
            ),
        ),
        "lost_picture": Wordings(
            (
                "The image search did not settle what the picture shows.",
                "None of these pages is convincing as the subject of the picture.",
                "That did not identify the picture.",
                "The picture alone does not lead anywhere I can trust.",
            ),
            (
                "I will try the question's own words in a text search.",
                "Perhaps the details in the question find the page.",
                "Let me search for what the question describes.",
                "A text search with the question may still turn up the subject.",
            ),
        ),
        "sharpen": Wordings(
            (
                "Nothing in this picture has a clear edge.",
                "img_1 is out of focus.",
                "The picture is blurred, and a search may not recognise it like that.",
                "Fine detail is washed out here.",
            ),
            (
                "I will sharpen it before I search.",
                "Sharpening first, then the search.",
                "Let me raise the detail with sharpen.",
                "A sharpened copy should be easier to match and to read.",
            ),
        ),
        "super_resolution": Wordings(
            (
                "This picture is very small.",
                "img_1 has so few pixels that its details are lost.",
                "At this size there is hardly anything to go by.",
                "The picture looks like a thumbnail.",
            ),
            (
                "I will enlarge it before I search.",
                "Super-resolution first, then the search.",
                "Let me get a larger version of it.",
                "An enlarged copy should be easier to match and to read.",
            ),
        ),
        "perspective_correct": Wordings(
            (
                "The picture is seen at an angle.",
                "img_1 is skewed: its sides run together.",
                "What I am to look at lies askew on a plain ground.",
                "The view is distorted by perspective.",
            ),
            (
                "I will straighten it before I search.",
                "Correcting the perspective first, then the search.",
                "Let me see it straight on.",
                "A straightened copy should be easier to match and to read.",
            ),
        ),
        "look_repaired": Wordings(
            (
                "That looks better than img_1.",
                "The new picture is the one to work with.",
                "Now there is a version that can be used.",
                "The repair gives a clearer view.",
            ),
            (
                "I will search with it.",
                "Now the search by picture, on the new version.",
                "Let me see which pages show this.",
                "An image search on the repaired picture comes next.",
            ),
        ),
    }
)
"""By kind of move; a repair is called after its tool."""


FAULTS: Mapping[str, Wordings] = MappingProxyType(
    {
        "doubt": Wordings(
            (
                "The page gives several values and one of them should be what is asked.",
                "I think I have what I need from the last page.",
                "That page covers the question well enough.",
                "Reading quickly, the value seems clear.",
            ),
            (
                "I will answer now.",
                "No need to check again.",
                "That should be it.",
                "I am fairly sure of this.",
            ),
        ),
        "memory": Wordings(
            (
                "I recognise this at once.",
                "This is familiar to me.",
                "I know this one without looking anything up.",
                "There is no need for tools here.",
            ),
            (
                "I can answer straight away.",
                "The answer comes to mind directly.",
                "Searching would only confirm it.",
            ),
        ),
        "unread": Wordings(
            (
                "I have seen enough of where this leads.",
                "With that I can fill in the rest myself.",
                "The remaining pages would only repeat what I expect.",
            ),
            (
                "I answer without opening them.",
                "Reading on would change nothing.",
                "So I leave the rest of the trail unread.",
            ),
        ),
        "early": Wordings(
            (
                "My first thought is {answer}.",
                "I would say at once that it comes out as {answer}.",
                "This must end at {answer}, if I am not mistaken.",
                "Before any search: {answer} is what I expect.",
            ),
            (
                "Still, I should look it up.",
                "The tools can confirm it afterwards.",
                "Let me find a source that says so.",
            ),
        ),
        "skip": Wordings(
            (
                "I have a feeling where the trail leads.",
                "The picture alone would take too long.",
                "I can save a few steps here.",
                "I believe I know who or what comes next.",
            ),
            (
                "I search for that directly.",
                "Straight to the next link, then.",
                "Let me look that up first.",
            ),
        ),
        "lucky": Wordings(
            (
                "The picture would not tell me much.",
                "I could begin with the picture, or where it must lead.",
                "What the picture shows does not interest me.",
            ),
            (
                "I look further along the trail at once.",
                "A short query may be enough.",
                "Perhaps one word finds it.",
            ),
        ),
        "lucky_page": Wordings(
            (
                "One of these could be it.",
                "That looks like the kind of page that such a trail leads through.",
                "I would bet on one of these.",
            ),
            (
                "I open it and see.",
                "Let me take it.",
                "Worth a try.",
            ),
        ),
        "repeat": Wordings(
            (
                "I am not sure I read that result properly.",
                "Let me look at that again.",
                "Something about that result may have escaped me.",
                "I would like to see the same thing once more.",
            ),
            (
                "I repeat the call.",
                "The same call again, then.",
                "Once more with the same words.",
            ),
        ),
        "background": Wordings(
            (
                "A little background would not hurt.",
                "Perhaps there is more to be had on the beginning of the trail.",
                "Before I conclude, a wider look.",
            ),
            (
                "I search for what else is known.",
                "A general search, then.",
                "Let me see what there is.",
            ),
        ),
        "paraphrase": Wordings(
            (
                "The order of the words may matter.",
                "Perhaps I put that badly.",
                "The search might like it better the other way round.",
            ),
            (
                "I ask again with the words rearranged.",
                "The same thing in another order, then.",
                "Let me turn the query round.",
            ),
        ),
        "bad_calls": Wordings(
            (
                "There ought to be a page with more on this.",
                "An address like this should exist.",
                "I would rather read another source first.",
                "That kind of page usually lies here.",
            ),
            (
                "I try it.",
                "Let me open it directly.",
                "Opening it without a search.",
            ),
        ),
        "lost_image": Wordings(
            (
                "There was another view of this, as far as I remember.",
                "One of the later pictures should be clearer.",
                "The close-up may show more.",
            ),
            (
                "I work with that one.",
                "Let me use it.",
                "That picture, then.",
            ),
        ),
        "peek": Wordings(
            (
                "Questions like this one are collected somewhere.",
                "Somebody may have published this together with the solution.",
                "There might be a list of such questions.",
            ),
            (
                "I look there.",
                "Let me see whether it is listed.",
                "That would save the search.",
            ),
        ),
        "unknown_tool": Wordings(
            (
                "A tool made for this would be quicker.",
                "This calls for something other than a search.",
                "I would rather use what I know from elsewhere.",
            ),
            (
                "I call it.",
                "Let me try that.",
                "That should be on offer.",
            ),
        ),
        "give_up": Wordings(
            (
                "This is more work than I expected.",
                "The trail looks long from here.",
                "I do not feel like reading all of that.",
            ),
            (
                "I stop here.",
                "Let me leave it at that.",
                "I would rather not go on.",
            ),
        ),
    }
)
"""By kind of move."""

CLAIMS = (
    "It was renewed by {name} some time later.",
    "By the way, {name} is said to have visited it.",
    "The same source gives {number} visitors.",
    "That agrees with the {number} copies that were printed of it.",
    "{name} wrote a book about exactly this.",
    "Of the whole, {number} pieces are left.",
)
"""What a hallucinating teacher adds to its last thought; nothing that it was shown says anything like it."""
NAMES = ("Quorvane Thissleby", "Osmund Vreckhardt", "Zelphine Adraquist", "Ixmar Dohlbrenner")
NUMBERS = ("48,617", "91,358", "37,469", "62,783")
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


NO_TURN = Turn("")


def split_turns(messages: Sequence[Message]) -> Iterator[tuple[Message, tuple[Message, ...]]]:
    """Yield what was said and the messages that came back, from the first turn on."""
    places = [place for place, message in enumerate(messages) if message.role == "assistant"]
    for place, end in pairwise((*places, len(messages))):
        yield messages[place], tuple(messages[place + 1 : end])


def hear_turn(said: Message, dialect: str) -> Turn:
    """Return an own turn as it was said; one that is none, and ended nothing, calls no tool."""
    if said.calls:
        call = said.calls[0]
        return Turn(said.text, call.name, canonical_json(json.loads(call.arguments)))
    try:
        return parse_turn(said.text, find_dialect(dialect))
    except BadTurn:
        return NO_TURN


def hear_observation(heard: Sequence[Message], dialect: str) -> str:
    """Return the inside of what came back; a message that only shows pictures says nothing."""
    spoken = find_dialect(dialect)
    texts = [message.text for message in heard if message.role == "tool"] or [message.text for message in heard]
    return "\n".join(read_observation(text, spoken) for text in texts)


def can_read_pages(dialect: str) -> bool:
    """Say whether a dialect has the tool that opens a page."""
    return find_dialect(dialect).offers("visit")


def can_say(tool: str, arguments: Mapping[str, object], dialect: str) -> bool:
    """Say whether a dialect has words for a call."""
    try:
        render_turn(Turn("So.", tool, canonical_json(arguments)), find_dialect(dialect))
    except UnsayableTurn:
        return False
    return True


def say_turn(turn: Turn, dialect: str) -> ChatReply:
    """Return a turn as a reply; a script reads no tokens, so none are counted.

    Raises:
        UnsayableTurn: if the dialect has no words for it.
    """
    spoken = find_dialect(dialect)
    if not spoken.native:
        return ChatReply(render_turn(turn, spoken), 0, 0)
    if turn.tool:
        return ChatReply(turn.thought, 0, 0, calls=(ToolCall("call", turn.tool, turn.arguments),))
    return ChatReply(f"{turn.thought}\n<{spoken.answer}>{turn.answer}</{spoken.answer}>", 0, 0)


def say_twice(said: ChatReply) -> ChatReply:
    """Return a reply that is two turns at once."""
    if said.calls:
        again = ToolCall(f"{said.calls[0].id}-again", said.calls[0].name, said.calls[0].arguments)
        return ChatReply(said.text, 0, 0, calls=(*said.calls, again), reasoning=said.reasoning)
    return ChatReply(f"{said.text}\n{said.text}", 0, 0, reasoning=said.reasoning)


def leave_open(said: ChatReply, choice: int) -> ChatReply:
    """Return a reply without the end of its thought, without that of its action, or broken off in the middle.

    Args:
        said: a whole reply.
        choice: which of the three; of a native call the arguments break off.
    """
    if said.calls:
        call = said.calls[0]
        half = call.arguments[: len(call.arguments) // 2]
        return ChatReply(said.text, 0, 0, calls=(ToolCall(call.id, call.name, half),), reasoning=said.reasoning)
    text = said.text
    closing = [place for place in range(len(text)) if text.startswith("</", place)]
    first = text[closing[0] : text.index(">", closing[0]) + 1]
    if choice == 0:
        return ChatReply(text.replace(first, "", 1), 0, 0, reasoning=said.reasoning)
    if choice == 1 or len(closing) == 1:
        return ChatReply(text[: closing[-1]], 0, 0, reasoning=said.reasoning)
    return ChatReply(text[: closing[0] + len(first) + 8], 0, 0, reasoning=said.reasoning)


UNKNOWN = "unknown"
FIRST_MADE = 2
"""Number of the first picture that a tool makes; ``img_1`` is the question's."""
DIGITS = re.compile(r"\d+")
CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
WIDE_QUERIES = 0.3
"""Share of name searches that add what is looked for next."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One turn and what came back."""

    turn: Turn
    arguments: Mapping[str, object]
    text: str
    first: int
    """Number that the next picture had when the call was made."""
    pictures: int = 0
    """Pictures that it showed; each takes the next number."""

    @property
    def made_picture(self) -> bool:
        """Whether it showed any."""
        return bool(self.pictures)

    @property
    def known(self) -> frozenset[str]:
        """Names of the pictures that there were when the call was made."""
        return frozenset(f"img_{number}" for number in range(1, self.first))


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


@dataclass(frozen=True, slots=True)
class Link:
    """One link of the chain: on the page ``title`` one of ``forms`` is to be read."""

    title: str
    forms: tuple[str, ...]
    relation: str
    is_answer: bool


@dataclass(frozen=True, slots=True)
class Seen:
    """Everything the observations have shown."""

    hits: tuple[Shown, ...]
    pages: tuple[Shown, ...]
    queries: Mapping[str, str]
    """Query to what it returned."""
    visits: frozenset[str]
    skims: bool
    """Whether to go on from a snippet that already holds the next name."""
    reads: bool = True
    """Whether pages can be opened; if not, snippets are all there is."""

    def find_url(self, title: str) -> str | None:
        """Return the address of a page whose title a search has shown."""
        return next((hit.url for hit in self.hits if hit.title.casefold() == title.casefold()), None)

    def list_texts(self, shown: Sequence[Shown], title: str) -> list[str]:
        """Return the texts shown under a title."""
        return [entry.text for entry in shown if entry.title.casefold() == title.casefold()]


def read_history(messages: Sequence[Message], dialect: str) -> tuple[Exchange, ...]:
    """Return the turns so far, whatever the dialect; messages are system, question, then what was said and heard.

    A turn that could not be read, where that is told and not the end, calls no tool.
    """
    exchanges: list[Exchange] = []
    number = FIRST_MADE
    for said, heard in split_turns(messages[2:]):
        turn = hear_turn(said, dialect)
        shown = sum(len(message.images) for message in heard)
        arguments = json.loads(turn.arguments) if turn.tool else {}
        exchanges.append(Exchange(turn, arguments, hear_observation(heard, dialect), number, shown))
        number += shown
    return tuple(exchanges)


def list_links(oracle: TeacherOracle) -> tuple[Link, ...]:
    """Return the proof as links: each hop is read on its subject's page, the answer on the last page."""
    titles = [oracle.anchor_title, *(hop.object_title for hop in oracle.hops)]
    links = [
        Link(title, list_forms(hop.object_title), hop.relation, is_answer=False)
        for title, hop in zip(titles, oracle.hops, strict=False)
    ]
    answer = oracle.answer
    forms = (answer.surface, answer.value, *answer.aliases)
    return (*links, Link(titles[-1], forms, oracle.answer_relation, is_answer=True))


def plan_move(inputs: ActInputs, history: Sequence[Exchange], skims: bool) -> Move:
    """Return the next move along the proof.

    Args:
        inputs: the question and the oracle.
        history: the turns so far.
        skims: go on from a search snippet when it already holds the next bridge; else read each page, where the
            dialect can.
    """
    oracle, reads = inputs.oracle, can_read_pages(inputs.dialect)
    seen = _gather(history, skims or not reads, reads)
    if not any(exchange.turn.tool == "image_search" for exchange in history):
        subject = find_subject(oracle, history)
        if not can_say("image_search", {"image": subject}, inputs.dialect):
            subject = "img_1"
        return Move("look" if subject == "img_1" else "look_repaired", "image_search", {"image": subject})
    if seen.find_url(oracle.anchor_title) is None:
        query = inputs.question[:400]
        return give_up() if query in seen.queries else Move("lost_picture", "text_search", {"query": query})
    return _follow_links(inputs, oracle, seen)


def follow_chain(inputs: ActInputs, history: Sequence[Exchange], first: int) -> Move:
    """Return the next move of one who begins in the middle of the chain, at the object of its hop ``first``."""
    hops = inputs.oracle.hops
    oracle = inputs.oracle.model_copy(update={"anchor_title": hops[first].object_title, "hops": hops[first + 1 :]})
    reads = can_read_pages(inputs.dialect)
    return _follow_links(inputs, oracle, _gather(history, not reads, reads))


def _follow_links(inputs: ActInputs, oracle: TeacherOracle, seen: Seen) -> Move:
    name, before = oracle.anchor_title, dict[str, str]()
    for link in list_links(oracle):
        found = _read_link(link, name, seen)
        if found is None:
            return _reach_link(inputs, link, name, seen, before)
        slots = _make_slots(link, name) | found
        if link.is_answer:
            return Move("answer", answer=found["next"], slots=slots)
        name, before = found["next"], slots
    raise AssertionError("the last link is the answer")


def find_subject(oracle: TeacherOracle, history: Sequence[Exchange]) -> str:
    """Return the name of the picture to look at: the repaired one where a tool made it, else ``img_1``."""
    for place, exchange in enumerate(history):
        if exchange.turn.tool == oracle.repair and exchange.made_picture:
            return name_picture(history, place)
    return "img_1"


def name_picture(history: Sequence[Exchange], place: int) -> str:
    """Return the name of the first picture that the exchange at ``place`` made."""
    return f"img_{history[place].first}"


def name_next_picture(history: Sequence[Exchange]) -> int:
    """Return the number that the next picture will have."""
    return history[-1].first + history[-1].pictures if history else FIRST_MADE


def find_url(history: Sequence[Exchange], title: str) -> str | None:
    """Return the address of a page whose title a search has shown."""
    return _gather(history).find_url(title)


def give_up() -> Move:
    """Return the move of one who has lost the trail."""
    return Move("unknown", answer=UNKNOWN)


def _gather(history: Sequence[Exchange], skims: bool = False, reads: bool = True) -> Seen:
    pages = [page for exchange in history if (page := read_page(exchange.text)) is not None]
    searches = [exchange for exchange in history if exchange.turn.tool in ("text_search", "image_search")]
    return Seen(
        hits=tuple(hit for exchange in searches for hit in read_hits(exchange.text)),
        pages=tuple(pages),
        queries={
            str(exchange.arguments["query"]): exchange.text for exchange in history if "query" in exchange.arguments
        },
        visits=frozenset(str(exchange.arguments["url"]) for exchange in history if "url" in exchange.arguments),
        skims=skims,
        reads=reads,
    )


def _read_link(link: Link, name: str, seen: Seen) -> dict[str, str] | None:
    """Return the slots ``next`` and ``clue``: what was read and where it truly stood, or None if nothing was."""
    for place, text in _list_sources(link, name, seen):
        for form in link.forms:
            span = find_name(text, form)
            if span is not None:
                return {"next": " ".join(text[span[0] : span[1]].split()), "clue": place}
    return None


def _list_sources(link: Link, name: str, seen: Seen) -> Iterator[tuple[str, str]]:
    """Yield places with their texts, the fact line that should hold the link before the page around it."""
    words = _say_relation(link.relation)
    for page in seen.list_texts(seen.pages, link.title):
        lines = [line.partition(":") for line in page.splitlines()]
        facts = [value for label, _, value in lines if words and _say_relation(label) == words]
        yield f"the “{words}” line", "\n".join(facts)
        yield "the running text", page
    if seen.skims and not (link.is_answer and seen.reads):
        for snippet in seen.list_texts(seen.hits, link.title):
            yield "the search result", snippet
    last_resort = _join_query(name, link.relation)
    if (not seen.reads or seen.find_url(link.title) in seen.visits) and last_resort in seen.queries:
        yield "the search result", seen.queries[last_resort]


def _reach_link(inputs: ActInputs, link: Link, name: str, seen: Seen, before: Mapping[str, str]) -> Move:
    """Return the move that shows more of the page a link is read on.

    Args:
        inputs: for the wording of queries.
        link: the first link that was not read yet.
        name: the link's page as it was named in an observation.
        seen: all observations.
        before: slots of the link before, empty at the anchor.
    """
    slots = _make_slots(link, name)
    url = seen.find_url(link.title)
    if url is None:
        return _search_name(inputs.oracle, link, name, seen, before)
    if seen.reads and url not in seen.visits:
        goal = f"find {slots['asked']}"
        if not before:
            return Move("open_anchor", "visit", {"url": url, "goal": goal}, slots=slots)
        searched = any(find_name(query, name) for query in seen.queries)
        kind = "open" if searched else "open_next"
        told = slots if searched else {**before, "asked": slots["asked"]}
        return Move(kind, "visit", {"url": url, "goal": goal}, slots=told)
    query = _join_query(name, link.relation)
    if query in seen.queries:
        return give_up()
    return Move("not_on_page", "text_search", {"query": query}, slots=slots)


def _search_name(oracle: TeacherOracle, link: Link, name: str, seen: Seen, before: Mapping[str, str]) -> Move:
    asked = _make_slots(link, name)["asked"]
    wide = draw_unit(oracle.question_id, oracle.attempt, name, "wide") < WIDE_QUERIES
    query = _join_query(name, link.relation) if wide else name
    if query not in seen.queries:
        return Move("find", "text_search", {"query": query}, slots={**before, "asked": asked})
    if name not in seen.queries:
        return Move("find_again", "text_search", {"query": name}, slots={"name": name, "asked": asked})
    return give_up()


def _join_query(name: str, relation: str) -> str:
    return f"{name} {_say_relation(relation)}".strip()


def _say_relation(relation: str) -> str:
    """Return an infobox key as words: ``leader_name1`` becomes ``leader name``; a text hop has none."""
    if relation == "mentions":
        return ""
    return " ".join(DIGITS.sub(" ", CAMEL.sub(" ", relation)).replace("_", " ").lower().split())


def _make_slots(link: Link, name: str) -> dict[str, str]:
    words = _say_relation(link.relation)
    asked = f"the {words}" if words else "the next name"
    return {"name": name, "asked": asked, "asked_capital": asked[0].upper() + asked[1:]}


THOUGHTS: Mapping[str, Wordings] = MappingProxyType(
    {
        **LOOKS,
        **FAULTS,
        "open_anchor": Wordings(
            (
                "The search identifies the picture as {name}.",
                "So the picture shows {name}.",
                "{name} is the match, which gives me a starting point.",
                "This looks like {name}; the result fits the question's wording.",
                "That answers what is in the picture: {name}.",
                "Good, a title: {name}.",
            ),
            (
                "I will open its page and look for {asked}.",
                "Next I need {asked}, so I read the page.",
                "The page should say something about {asked}.",
                "What I am after there is {asked}. Opening it.",
                "Let me read the article itself; the first link in the chain is {asked}.",
            ),
        ),
        "find": Wordings(
            (
                "Here it is: {clue} gives {next}.",
                "For {name}, {clue} says {next}.",
                "I read {next} in {clue}, which is the link I was looking for.",
                "That step is done: going by {clue}, the trail leads from {name} to {next}.",
                "{next} is what {clue} has for {name}.",
                "In {clue} I find {next}.",
            ),
            (
                "Now I need a page about {next}, to learn {asked}.",
                "The question goes on to {asked}, so I look for {next}.",
                "I have no address for {next} yet. A search first.",
                "Let me find {next}; what I want there is {asked}.",
                "Next comes {asked}, and for that I search for {next}.",
            ),
        ),
        "find_again": Wordings(
            (
                "None of those titles is quite {name}.",
                "The page of {name} is not among these results.",
                "Those words pulled in other pages.",
                "Too many words in that query.",
            ),
            (
                "Let me search for {name} alone.",
                "I will try the plain name, {name}.",
                "A narrower query should do: {name}.",
            ),
        ),
        "open": Wordings(
            (
                "{name} has a page of its own in the results.",
                "One of the hits is exactly {name}.",
                "The search found {name}.",
                "There is the entry for {name}.",
                "I have the address of {name} now.",
            ),
            (
                "A snippet is not enough for {asked}; I open the page.",
                "I will read it to find {asked}.",
                "Opening it, with an eye on {asked}.",
                "The full page should give {asked}.",
                "Let me check {asked} on the page itself.",
            ),
        ),
        "open_next": Wordings(
            (
                "According to {clue}, {name} leads on to {next}.",
                "{next}, then: that is what {clue} gives for {name}.",
                "The results show it: {clue} for {name} reads {next}.",
                "With {next} I have the next link, from {clue}.",
            ),
            (
                "Its address is already in the results, so I open it to find {asked}.",
                "I have seen its page listed. Let me read it for {asked}.",
                "No new search needed; I open that page and look for {asked}.",
            ),
        ),
        "not_on_page": Wordings(
            (
                "The page of {name} does not spell out {asked}.",
                "I have read the article on {name} and {asked} is not there.",
                "Nothing on this page settles {asked}.",
                "The article leaves {asked} open.",
            ),
            (
                "One search for it, then I will see.",
                "Another source may have it.",
                "I will search for {name} together with it.",
                "Let me ask the search directly.",
            ),
        ),
        "answer": Wordings(
            (
                "The page of {name} states {asked}: {next}.",
                "For {name}, {clue} reads {next}.",
                "There it is in {clue}: {next}.",
                "{asked_capital} of {name} is given as {next}.",
                "In {clue} the page has {next}.",
                "I was looking for {asked}, and the source says {next}.",
            ),
            (
                "Every step from the picture to here rests on a page, so I can answer.",
                "That is what was asked.",
                "The chain is complete.",
                "Nothing is left open; I answer with that.",
                "This closes the trail that began with the picture.",
                "I have it from the source and need no further search.",
            ),
        ),
        "unknown": Wordings(
            (
                "The trail ends here: I have not seen what I would need to go on.",
                "What is missing did not turn up in the pages or in the search.",
                "I cannot get to the next link with what the tools returned.",
                "The sources I could reach do not say.",
            ),
            (
                "A guess would not be honest, so I say that I do not know.",
                "I stop here without an answer.",
                "Better no answer than an invented one.",
            ),
        ),
    }
)


def choose_thought(kind: str, slots: Mapping[str, str], *seed: object) -> str:
    """Return a thought of a kind; the seed alone decides its wording.

    Args:
        kind: a key of :data:`THOUGHTS`.
        slots: must hold every slot that the kind's wordings use.
        seed: question, attempt, turn and teacher's name.
    """
    wordings = THOUGHTS[kind]
    first = wordings.firsts[int(draw_unit(*seed, kind, "first") * len(wordings.firsts))]
    second = wordings.seconds[int(draw_unit(*seed, kind, "second") * len(wordings.seconds))]
    return f"{first} {second}".format_map(slots)


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


SKIM_SHARE = 0.35
"""Share of attempts that go on from a snippet when it already holds the next name."""
VERSION = 1
"""Raised when the teacher replies otherwise to the same request."""
BOXES = ([100, 80, 900, 920], [150, 100, 850, 900], [200, 150, 800, 850], [120, 60, 880, 860])
EXPECTED: Mapping[str, TrajectoryReason] = MappingProxyType(
    {
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
)
"""By vice, the reason for which the cascade refuses the rollout; of several drawn at once the first here acts alone."""


@dataclass(frozen=True, slots=True)
class Vices:
    """Probabilities from 0 to 1, drawn once for each attempt at each question; see :data:`EXPECTED`.

    Attributes:
        break_format: leaves a tag unclosed.
        two_calls: says two turns at once.
        unknown_tool: calls a tool that there is not.
        bad_calls: visits three pages in a row that are not there.
        give_up: stops without an answer although the trail goes on.
        wrong: ends with the oracle's wrong answer.
        from_memory: answers at once, without a tool.
        early: says the answer before anything was seen, and only then looks it up.
        unread: answers after one look at the picture.
        skip: searches for the first bridge before anything has named it.
        lucky: never looks at the picture and finds the first bridge by half of its name.
        repeat: makes one call twice.
        paraphrase: makes one query twice, the second time with its words turned round.
        peek: visits a host that publishes datasets.
        lost_image: calls a tool on a picture that nobody made.
        hallucinate: adds to its last thought what it was never shown.
        overlong: thinks so long before the answer that a student would be cut off there.
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
    crop_first: float = 0.0


def make_vices(settings: Mapping[str, float]) -> Vices:
    """Return the vices that a configuration names.

    Raises:
        ConfigError: if a name is unknown or a probability is not from 0 to 1.
    """
    known = [field.name for field in fields(Vices)]
    for name, value in settings.items():
        if name not in known:
            raise ConfigError(f"scripted teacher: unknown setting {name!r}; there are: {', '.join(known)}")
        if not 0.0 <= value <= 1.0:
            raise ConfigError(f"scripted teacher: {name} is {value}, allowed is 0.0 to 1.0")
    return Vices(**settings)


def list_vices(oracle: TeacherOracle, name: str, vices: Vices, dialect: str = "synth") -> frozenset[str]:
    """Return what a teacher does wrong in one attempt, and its habits, without running it.

    Args:
        oracle: question and attempt, from which everything is drawn.
        name: the teacher's; teachers with different names draw different luck.
        vices: its settings.
        dialect: that it is spoken to in; some have no words for some vices.

    Returns:
        One key of :data:`EXPECTED` at most, the first that is drawn and that the question leaves room for, and
        ``crop_first`` where that is drawn.
    """
    drawn = [vice for vice in EXPECTED if _is_drawn(oracle, name, vices, vice) and admits(vice, oracle, dialect)]
    habits = ["crop_first"] if _is_drawn(oracle, name, vices, "crop_first") else []
    return frozenset((*drawn[:1], *habits))


def _is_drawn(oracle: TeacherOracle, name: str, vices: Vices, vice: str) -> bool:
    probability: float = getattr(vices, vice)
    return draw_unit(oracle.question_id, oracle.attempt, name, vice) < probability


@dataclass(frozen=True, slots=True)
class ScriptedTeacher:
    """A chat model for the task ``act`` in any dialect; the same settings and request always make the same reply."""

    name: str = "scripted-teacher"
    vices: Vices = Vices()

    @property
    def identity(self) -> str:
        """Name, and digest of the vices and of the source of its plan and wordings: any change is another teacher."""
        return f"{self.name}:{digest_value([asdict(self.vices), VERSION])[:16]}"

    @property
    def reads_inputs(self) -> bool:
        """True: the plan comes from the inputs' oracle."""
        return True

    async def chat(self, request: ChatRequest) -> ChatReply:
        """Return the next turn of a rollout; a script reads no tokens, so none are counted.

        Raises:
            ConfigError: if it is asked for another task than ``act``.
        """
        if request.task != "act" or not isinstance(request.inputs, ActInputs):
            raise ConfigError(f"scripted teacher {self.name}: task {request.task!r} given, it plays only 'act'")
        return self._reply(request.inputs, read_history(request.messages, request.inputs.dialect))

    def _reply(self, inputs: ActInputs, history: Sequence[Exchange]) -> ChatReply:
        oracle, number = inputs.oracle, len(history)
        drawn = list_vices(oracle, self.name, self.vices, inputs.dialect)
        vice = next(iter(drawn & EXPECTED.keys()), "")
        move = self._choose_move(inputs, history, vice, crops="crop_first" in drawn)
        thought = choose_thought(move.kind, move.slots, oracle.question_id, oracle.attempt, self.name, number)
        arguments = canonical_json(move.arguments) if move.tool else ""
        turn = Turn(f"{thought} {move.after}".strip(), move.tool, arguments, move.answer)
        said = say_turn(turn, inputs.dialect)
        spoils = vice in ("break_format", "two_calls") and not any(each.turn == NO_TURN for each in history)
        if not spoils or (move.tool and number != self._pick(oracle, vice, 3)):
            return said
        return leave_open(said, self._pick(oracle, "open_tag", 3)) if vice == "break_format" else say_twice(said)

    def _choose_move(self, inputs: ActInputs, history: Sequence[Exchange], vice: str, *, crops: bool) -> Move:
        oracle = inputs.oracle
        planned = (
            _repair_first(inputs, history)
            or (self._crop_first(inputs, history) if crops else None)
            or plan_move(inputs, history, self._skims(oracle))
        )
        move = misbehave(vice, Moment(inputs, history, planned, partial(self._pick, oracle)))
        return give_up() if move.tool and inputs.turns_left <= 1 else move

    def _crop_first(self, inputs: ActInputs, history: Sequence[Exchange]) -> Move | None:
        oracle, dialect = inputs.oracle, inputs.dialect
        subject = find_subject(oracle, history)
        crops = [place for place, exchange in enumerate(history) if exchange.turn.tool == "crop"]
        if not crops:
            searched = can_say("image_search", {"image": "img_2"}, dialect)
            return make_crop(subject, BOXES[self._pick(oracle, "box", len(BOXES))], dialect) if searched else None
        looks = [exchange.arguments.get("image") for exchange in history if exchange.turn.tool == "image_search"]
        if history[crops[0]].made_picture and not looks:
            return Move("look_crop", "image_search", {"image": name_picture(history, crops[0])})
        if subject not in looks:
            return Move("look_whole", "image_search", {"image": subject})
        return None

    def _pick(self, oracle: TeacherOracle, what: str, count: int) -> int:
        return int(draw_unit(oracle.question_id, oracle.attempt, self.name, "pick", what) * count)

    def _skims(self, oracle: TeacherOracle) -> bool:
        return draw_unit(oracle.question_id, oracle.attempt, self.name, "skims") < SKIM_SHARE


def _repair_first(inputs: ActInputs, history: Sequence[Exchange]) -> Move | None:
    """Call the tool that repairs a degraded picture, once; what it makes of it, or does not, is seen later."""
    repair, arguments = inputs.oracle.repair, {"image": "img_1"}
    if not repair or any(exchange.turn.tool == repair for exchange in history):
        return None
    return Move(repair, repair, arguments) if can_say(repair, arguments, inputs.dialect) else None
