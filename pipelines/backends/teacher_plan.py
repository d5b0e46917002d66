"""The scripted teacher's next move: how far the observations go along the proof, and what would go one further."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pipelines.agent.layout import Shown, read_hits, read_page
from pipelines.agent.spans import find_name, list_forms
from pipelines.agent.transcript import Turn
from pipelines.backends.protocols import Message
from pipelines.backends.teacher_speech import can_read_pages, can_say, hear_observation, hear_turn, split_turns
from pipelines.ids import draw_unit
from schemas.tasks import ActInputs, TeacherOracle

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
