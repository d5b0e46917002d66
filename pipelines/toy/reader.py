"""A grammar that reads a toy question back as a query: the evaluator of runs without a model.

It was written against the sentences that come out of the toy writer and shares none of its tables, so that a writer
that says something else is not understood. Whatever no pattern accounts for makes the reading unsure; nothing is
skipped. ``reading.toml`` holds the patterns. A question is a row of sentences that lead from one entity to the next and
a last one that asks; each noun phrase is the picture's thing, a name, a word that points back, or a relation of a
shorter phrase.
"""

import asyncio
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

from pipelines.errors import ConfigError
from pipelines.ids import canonical_json, digest_value
from pipelines.services.protocols import ChatReply, ChatRequest
from pipelines.toy.reporter import judge_chain
from schemas.tasks import (
    ClassifiedReply,
    ClassifyQuestionInputs,
    FittingEntity,
    FoundEntity,
    JudgeChainInputs,
    Leak,
    ReadCondition,
    ReadingReply,
    ReadPageInputs,
    ReadPageReply,
    ReadQuestionInputs,
    ReadStep,
    ScreeningReply,
    ScreenQuestionInputs,
    StatedValue,
)

VERSION: Final = 2
_TABLES = Path(__file__).with_name("reading.toml")
_WORD = r"(?!(?:the|who|that|where|which|of|in|on|at|to|by|from|or|and)\b)[a-z][a-z'-]*"
_SLOTS = {
    "noun": rf"(?P<noun>body of water|work of art|husband or wife|son or daughter|{_WORD}(?: {_WORD}){{0,3}}?)",
    "from": r"(?P<from>.+)",
    "event": r"(?P<event>[a-z][a-z ]*?)",
    "unit": r"(?P<unit>[a-z][a-z ]*?)",
}


_QUOTE = re.compile(r"“([^“”]+)”")
_NUMBER = re.compile(r"“(\d+)”")
_END = re.compile(r"(?<=[^.]\.)(?<!\b[A-Z]\.)(?<!\b[DS]r\.)(?<!\bSt\.)(?<!\bSgt\.) (?=[A-Z])")
"""Where a sentence ends; not behind an initial or a title."""
_ASKS_NAME = (
    (re.compile(r"(?:What is the name of|Wh(?:o|at) is given as|Who (?:is|was)) (the .+)\?"), r"\1"),
    (re.compile(r"Who (?!(?:is|was|is given as) the )(.+)\?"), r"the person who \1"),
    (re.compile(r"Which ([a-z-]+) (.+)\?"), r"the \1 that \2"),
    (re.compile(r"Which ([a-z-]+ [a-z-]+) (.+)\?"), r"the \1 that \2"),
)
"""Questions for a name, and the noun phrase of whose entity they want it."""
_ASKS_PLACE = re.compile(r"(?:Where|In which (?P<noun>[a-z-]+(?: [a-z-]+)?)) (?P<verb>was|is|were|are) (?P<rest>.+)\?")
_LONGEST_END = 5
"""Words at the end of a question for a place that say what was there: "was Ilda Marsh born"."""
_CLAUSE = frozenset(
    "as at before after by born died during has had if in is that this was were when where which who with".split()
)


_CLUE = re.compile(r"Clue (?P<clue>[a-z]): (?P<from>.+)\.")
_OF_CLUE = re.compile(rf"(?:the )?(?P<noun>{_WORD}(?: {_WORD}){{0,3}}) of clue (?P<clue>[a-z])")
_PRONOUN = re.compile(r" (?:who|that)$")
_OPENS = re.compile(r"(?:who|whom|that|whose|(?:in|on|through) which|where) ")


class _Unread(Exception):
    """Words that no pattern accounts for, or that may mean two things."""


@dataclass(frozen=True, slots=True)
class _Pattern:
    words: re.Pattern[str]
    entry: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Tables:
    relations: tuple[_Pattern, ...]
    conditions: tuple[_Pattern, ...]
    frames: tuple[_Pattern, ...]
    sentences: tuple[_Pattern, ...]
    between: re.Pattern[str]
    anchor: re.Pattern[str]
    back: tuple[re.Pattern[str], ...]
    attributes: dict[str, Any]
    knowledge: dict[str, list[str]]
    classes: dict[str, list[str]]
    symmetric: frozenset[str]
    """Relations that go both ways."""
    digest: str


def _compile(words: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"(?<!P)<(\w+)>", lambda slot: _SLOTS[slot[1]], words))


@cache
def _load() -> _Tables:
    raw = _TABLES.read_text("utf-8")
    doc = tomllib.loads(raw)

    def list_patterns(name: str) -> tuple[_Pattern, ...]:
        return tuple(_Pattern(_compile(words), entry) for entry in doc[name] for words in entry["words"])

    return _Tables(
        relations=list_patterns("relations"),
        conditions=list_patterns("conditions"),
        frames=list_patterns("frames"),
        sentences=tuple(_Pattern(_compile(words), {}) for words in doc["sentences"]),
        between=re.compile("|".join(doc["between"])),
        anchor=_compile(doc["anchor"]),
        back=tuple(map(_compile, doc["back"])),
        attributes=doc["attributes"],
        knowledge=doc["knowledge"],
        classes=doc["classes"],
        symmetric=frozenset(doc["symmetric"]),
        digest=digest_value(raw),
    )


@dataclass
class _Chain:
    offered: dict[tuple[str, str], str]
    """Id by kind and statement."""
    nouns: list[str] = field(default_factory=list)
    """What each entity was called; empty for a bare name."""
    names: dict[str, int] = field(default_factory=dict)
    steps: list[ReadStep] = field(default_factory=list)
    conditions: list[ReadCondition] = field(default_factory=list)
    quotes: tuple[str, ...] = ()
    """Lines that the text quotes. While it is read a number stands for each: what they say is no part of a sentence."""

    def quote(self, text: str) -> str:
        return _NUMBER.sub(lambda number: f"“{self.quotes[int(number[1])]}”", text)

    def copy(self) -> "_Chain":
        return replace(
            self,
            nouns=[*self.nouns],
            names=dict(self.names),
            steps=[*self.steps],
            conditions=[*self.conditions],
        )

    def add(self, noun: str) -> int:
        self.nouns.append(noun)
        return len(self.nouns) - 1

    @property
    def last(self) -> int:
        return len(self.nouns) - 1


def read_question(inputs: ReadQuestionInputs) -> ReadingReply:
    """Return what a toy question asks; unsure where a word is left over."""
    chain = _Chain({(offer.kind, offer.statement): offer.id for offer in inputs.relations})
    empty = {"steps": (), "asked": "none", "questions": 1}
    try:
        return _read_text(" ".join(inputs.text.split()), chain)
    except _Unread as left:
        return ReadingReply.model_validate({**empty, "unsure": chain.quote(str(left))})


def _read_text(text: str, chain: _Chain) -> ReadingReply:
    tables = _load()
    if text.count("?") != 1 or not text.endswith("?"):
        raise _Unread(f"not one question: {text!r}")
    chain.quotes = tuple(_QUOTE.findall(text))
    numbers = iter(range(len(chain.quotes)))
    *steps, last = _END.split(_QUOTE.sub(lambda _: f"“{next(numbers)}”", text))
    clues = {}
    for sentence in steps:
        if match := _CLUE.fullmatch(sentence):
            clues[match["clue"]] = _read_clue(match["from"], chain)
        else:
            _read_step(sentence, chain)
    for phrase in _list_wanted(last):
        asked = _ask_name(phrase, chain)
        if asked is not None:
            return _join_clues(asked, clues, chain) if clues else asked
    for pattern in tables.frames:
        match = pattern.words.fullmatch(last)
        if match is None:
            continue
        entity = _read_phrase(match["from"], chain)
        if entity != chain.last:
            raise _Unread(f"it asks for what it passed before: {match['from']!r}")
        return _join_clues(_ask(match, pattern.entry, chain), clues, chain)
    raise _Unread(f"no question that is known: {last!r}")


def _list_wanted(last: str) -> Iterator[str]:
    for words, phrase in _ASKS_NAME:
        if match := words.fullmatch(last):
            yield match.expand(phrase)
    if match := _ASKS_PLACE.fullmatch(last):
        told = match["rest"].split()
        for place in range(max(1, len(told) - _LONGEST_END), len(told)):
            subject, end = " ".join(told[:place]), " ".join(told[place:])
            yield f"the {match['noun'] or 'place'} where {subject} {match['verb']} {end}"


def _ask_name(phrase: str, chain: _Chain) -> ReadingReply | None:
    for inner, noun, entries in _match_relations(phrase, chain):
        tried = chain.copy()
        try:
            source = _read_phrase(inner, tried)
        except _Unread:
            continue
        says = [each for entry in entries if not entry.get("backward") for each in entry["says"]]
        asked = _choose("value", says, tried, tried.nouns[source], noun) if source == tried.last else "none"
        if asked != "none":
            return _reply(tried, asked)
    return None


def _read_clue(phrase: str, chain: _Chain) -> _Chain:
    clue = _Chain(chain.offered, quotes=chain.quotes)
    entity = _read_phrase(phrase, clue)
    if len(clue.steps) != 1 or entity != clue.last:
        raise _Unread(f"no clue that is known: {phrase!r}")
    (step,) = clue.steps
    said = {number: statement for (_, statement), number in chain.offered.items()}
    if not step.backward and said.get(step.relation) not in _load().symmetric:
        raise _Unread(f"a clue that leads on: {phrase!r}")
    return clue


def _join_clues(reply: ReadingReply, clues: dict[str, _Chain], chain: _Chain) -> ReadingReply:
    first = len(reply.steps) + 1
    numbers = {clue: first + place for place, clue in enumerate(clues)}
    conditions = [*reply.conditions]
    for clue, own in clues.items():
        (source,) = (name for name, entity in own.names.items() if entity == 0)
        (step,) = own.steps
        told = ReadCondition(step=1, words=step.words, relation=step.relation, value=source)
        for each in (told, *own.conditions):
            words = chain.quote(each.words)
            conditions.append(each.model_copy(update={"step": numbers[clue] + each.step - 1, "words": words}))
    places = [place for place, each in enumerate(conditions) if _OF_CLUE.fullmatch(each.value)]
    if len(places) != len(clues):
        raise _Unread("each clue is for one entity")
    for place in places:
        match = _OF_CLUE.fullmatch(conditions[place].value)
        if match is None or match["clue"] not in clues or match["noun"] != clues[match["clue"]].nouns[1]:
            raise _Unread(f"no clue that is told: {conditions[place].value!r}")
        update = {"value": "none", "entity": numbers[match["clue"]]}
        conditions[place] = conditions[place].model_copy(update=update)
    return reply.model_copy(update={"conditions": tuple(conditions)})


def _ask(match: re.Match[str], entry: dict[str, Any], chain: _Chain) -> ReadingReply:
    tables, said = _load(), match.groupdict()
    about = (
        entry.get("about")
        or said.get("event")
        or said.get("field")
        or chain.quote(said.get("quoted") or "").strip("“”")
    )
    # The words of a field name it, where nothing else is known of them.
    statements = tables.attributes.get(about) or [about for _ in [about] if ("value", about) in chain.offered]
    if not statements:
        raise _Unread(f"no attribute that is known: {about!r}")
    asked = _choose("value", statements, chain, chain.nouns[chain.last])
    return _reply(chain, asked, entry.get("form", "none"), said.get("unit") or entry.get("unit", "none"))


def _reply(
    chain: _Chain, asked: str, form: Literal["none", "day", "month", "year"] = "none", unit: str = "none"
) -> ReadingReply:
    steps = tuple(step.model_copy(update={"words": chain.quote(step.words)}) for step in chain.steps)
    conditions = (each.model_copy(update={"words": chain.quote(each.words)}) for each in chain.conditions)
    return ReadingReply(
        steps=steps,
        asked=asked,
        form=form,
        unit=unit,
        conditions=tuple(conditions),
        questions=1,
    )


def _choose(kind: str, statements: Sequence[str], chain: _Chain, noun: str, reached: str = "") -> str:
    classes, ranks = _load().classes, dict[int, set[str]]()
    for statement in statements:
        name, _, wanted = statement.partition("@")
        called = reached if wanted.startswith(">") else noun
        if (kind, name) in chain.offered:
            rank = 1 if not wanted else 0 if called in classes[wanted.lstrip(">")] else 2
            ranks.setdefault(rank, set()).add(chain.offered[kind, name])
    best = ranks[min(ranks)] if ranks else set[str]()
    return best.pop() if len(best) == 1 else "none"


def _read_step(sentence: str, chain: _Chain) -> None:
    tables = _load()
    body = next((match["from"] for pattern in tables.sentences if (match := pattern.words.fullmatch(sentence))), None)
    if body is None:
        raise _Unread(f"no step that is known: {sentence!r}")
    for phrase in tables.between.split(body):
        before = chain.last
        entity = _read_phrase(phrase, chain)
        if entity != chain.last or chain.last == before:
            raise _Unread(f"it does not lead on: {phrase!r}")


def _read_phrase(phrase: str, chain: _Chain) -> int:
    tables, phrase = _load(), phrase.strip().removesuffix(",")
    if match := tables.anchor.fullmatch(phrase):
        if chain.nouns:
            raise _Unread(f"the picture again: {phrase!r}")
        return chain.add(match["noun"])
    if _OF_CLUE.fullmatch(phrase) and not chain.nouns:
        chain.names[phrase] = chain.add("")
        return chain.last
    for back in tables.back:
        if (match := back.fullmatch(phrase)) and chain.nouns:
            return _point_back(match.groupdict().get("noun") or "", chain)
    if phrase in chain.names:
        return chain.names[phrase]
    found = _read_relation(phrase, chain)
    if found is not None:
        return found
    name, comma, rest = phrase.partition(", the ")
    if comma and _is_name(name):
        entity = _read_phrase(f"the {rest}", chain)
        chain.names[name] = entity
        return entity
    if _is_name(phrase) and not chain.nouns:
        entity = chain.add("")
        chain.names[phrase] = entity
        return entity
    raise _Unread(f"no words that are known: {phrase!r}")


def _point_back(noun: str, chain: _Chain) -> int:
    classes, last = _load().classes, chain.nouns[-1]
    alike = any(noun in members and last in members for members in classes.values())
    if noun and last and noun != last and not alike:
        raise _Unread(f"{noun!r} is not the last, {last!r}")
    return chain.last


def _is_name(text: str) -> bool:
    clause = "“" in text or text.startswith("the ") or any(word in _CLAUSE for word in text.split())
    return any(map(str.isupper, text)) and not clause


def _read_relation(phrase: str, chain: _Chain) -> int | None:
    for inner, noun, entries in _match_relations(phrase, chain):
        tried = chain.copy()
        try:
            source = _read_phrase(inner, tried)
        except _Unread:
            continue
        if source != tried.last:
            raise _Unread(f"it goes back: {phrase!r}")
        _lead_on(phrase, noun, entries, tried)
        chain.nouns, chain.names, chain.steps, chain.conditions = (
            tried.nouns,
            tried.names,
            tried.steps,
            tried.conditions,
        )
        return chain.last
    return _read_condition(phrase, chain)


def _match_relations(phrase: str, chain: _Chain) -> list[tuple[str, str, list[dict[str, Any]]]]:
    readings: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for pattern in _load().relations:
        if match := pattern.words.fullmatch(phrase):
            noun = match.groupdict().get("noun") or pattern.entry.get("noun", "")
            entry = pattern.entry
            if clause := match.groupdict().get("clause"):
                entry = {**entry, "says": _find_clause(clause, chain)}
            readings.setdefault((match["from"], noun), []).append(entry)
    ordered = sorted(readings.items(), key=lambda found: len(found[0][0]))
    return [(inner, noun, entries) for (inner, noun), entries in ordered]


def classify_question(inputs: ClassifyQuestionInputs) -> ClassifiedReply:
    """Return the category of a question's noun; curious people do not ask for what stands under a heading."""
    words = inputs.type.split()
    found = (
        name for name, nouns in _load().knowledge.items() if inputs.type in nouns or (words[-1:] and words[-1] in nouns)
    )
    return ClassifiedReply.model_validate(
        {"knowledge": next(found, "Entities"), "curious": 2 if "“" in inputs.question else 4}
    )


def _find_clause(number: str, chain: _Chain) -> list[str]:
    parts = [_list_words(part).strip() for part in chain.quotes[int(number)].split("…")]
    words = re.compile(" {} ".format(" (?:.* )?".join(re.escape(part) for part in parts if part)))
    offered = {statement: _list_words(statement) for kind, statement in chain.offered if kind == "entity"}
    found = [statement for statement, said in offered.items() if words.search(said)]
    return [statement for statement in found if words.fullmatch(offered[statement])] or found


def _list_words(line: str) -> str:
    return " ".join(["", *re.findall(r"[^_\W]+|_+", line.casefold()), ""])


def _lead_on(phrase: str, noun: str, entries: Sequence[dict[str, Any]], chain: _Chain) -> None:
    source, words = chain.nouns[-1], phrase.strip()
    backward = {bool(entry.get("backward")) for entry in entries}
    forward = [each for entry in entries if not entry.get("backward") for each in entry["says"]]
    inverse = [each for entry in entries if entry.get("backward") for each in entry["says"]]
    chosen = _choose("entity", forward, chain, source, noun), _choose("entity", inverse, chain, noun)
    if len(backward) > 1 and "none" not in chosen:
        raise _Unread(f"it may lead both ways: {phrase!r}")
    relation = chosen[0] if chosen[0] != "none" else chosen[1]
    chain.steps.append(ReadStep(relation=relation, backward=relation == chosen[1] != "none", words=words))
    chain.add(noun)


def _read_condition(phrase: str, chain: _Chain) -> int | None:
    for pattern in _load().conditions:
        match = pattern.words.fullmatch(phrase)
        if match is None:
            continue
        parts = match.groupdict()
        # "the town that has 300 inhabitants and whose river is": without the first clause its pronoun goes, too.
        head = _PRONOUN.sub("", parts["head"]) if _OPENS.match(parts["tail"]) else parts["head"]
        rest = f"{head} {parts['tail']}"
        entity = _read_phrase(rest, chain)
        chain.steps = [
            step.model_copy(update={"words": phrase}) if step.words == rest else step for step in chain.steps
        ]
        statements = [parts["what"]] if parts.get("what") else pattern.entry["says"]
        statements = _load().attributes.get(parts.get("event") or parts.get("what") or "", statements)
        relation = _choose("value", statements, chain, chain.nouns[entity])
        if relation == "none":
            relation = _choose("entity", statements, chain, chain.nouns[entity])
        chain.conditions.append(
            ReadCondition(step=entity, words=parts["said"], relation=relation, value=parts["value"])
        )
        return entity
    return None


def screen_question(inputs: ScreenQuestionInputs) -> ScreeningReply:
    """Return which hidden things stand in a text word for word, and which other entities a page's sentence makes fit.

    Invented names have no other form. Only a step that goes against a relation, or by one that goes both ways, can lead
    to an entity whose own page says so.
    """
    text = _fold(inputs.text)
    told = [thing for thing in inputs.hidden if _fold(thing.text).strip() and _fold(thing.text) in text]
    fits = [
        FittingEntity(entity=entity.id, words=said.words)
        for step in inputs.steps
        if step.backward or step.statement in _load().symmetric
        for entity in step.entities
        if _may_be(entity.type, step.words)
        for said in _read_entity(entity, step.statement)
        if _fold(said.value) == _fold(step.source)
    ]
    return ScreeningReply(leaks=tuple(Leak(hidden=thing.id, words=thing.text) for thing in told), fits=tuple(fits))


def _may_be(kind: str, words: str) -> bool:
    said = _fold(words)
    alike = {noun for members in _load().classes.values() if kind in members for noun in members}
    return not kind or any(_fold(noun) in said for noun in (kind, *alike))


def _read_entity(entity: FoundEntity, field: str) -> tuple[StatedValue, ...]:
    page = ReadPageInputs(name=entity.name, type=entity.type, field=field, kind="entity", sentences=entity.sentences)
    return read_page(page).propositions


def _fold(text: str) -> str:
    return " ".join(["", *re.findall(r"[^_\W]+", text.casefold()), ""])


@dataclass(frozen=True, slots=True)
class GrammarReader:
    """The evaluator of toy texts. It answers from ``ChatRequest.inputs``."""

    name: str = "grammar"
    reads_inputs: ClassVar[bool] = True

    @property
    def identity(self) -> str:
        """The version of the rules and digests of the patterns."""
        return f"grammar:{VERSION}:{_load().digest[:16]}:{digest_patterns()[:16]}"

    async def chat(self, request: ChatRequest) -> ChatReply:
        """Return the task's reply as JSON. It counts no tokens."""
        # In a thread: the patterns of a page's subject take a tenth of a second to compile.
        match request.inputs:
            case ReadQuestionInputs() as inputs:
                return ChatReply(canonical_json(await asyncio.to_thread(read_question, inputs)), 0, 0)
            case ScreenQuestionInputs() as inputs:
                return ChatReply(canonical_json(await asyncio.to_thread(screen_question, inputs)), 0, 0)
            case ClassifyQuestionInputs() as inputs:
                return ChatReply(canonical_json(classify_question(inputs)), 0, 0)
            case ReadPageInputs() as inputs:
                return ChatReply(canonical_json(await asyncio.to_thread(read_page, inputs)), 0, 0)
            case JudgeChainInputs() as inputs:
                return ChatReply(canonical_json(judge_chain(inputs)), 0, 0)
        raise ConfigError(f"the grammar cannot do {request.task}; name another model for this role")


_PAGE_TABLES = Path(__file__).with_name("page_reading.toml")
_PARTS = {
    "{v}": r"(?P<value>.+?)",
    "{d}": r"(?P<value>(?:\d{1,2} [A-Z][a-z]+ )?\d{1,4}|[A-Z][a-z]+ \d{1,2}, \d{1,4})",
    "{n}": r"(?P<value>\d[\d,.]*(?: [^\s\d]{1,12})?)",
    "{a}": r"(?:[A-Z][a-z]+ )?[a-z-]+(?: (?:of )?[a-z-]+){0,3}",
}


@dataclass(frozen=True, slots=True)
class _PageTables:
    nouns: dict[str, list[str]]
    facts: tuple[tuple[frozenset[str], tuple[str, ...]], ...]
    """Fields, and the sentences that say what they hold."""
    digest: str


@cache
def _load_page_tables() -> _PageTables:
    raw = _PAGE_TABLES.read_text("utf-8")
    doc = tomllib.loads(raw)
    return _PageTables(
        nouns=doc["nouns"],
        facts=tuple((frozenset(entry["fields"]), tuple(entry["says"])) for entry in doc["facts"]),
        digest=digest_value(raw),
    )


def digest_patterns() -> str:
    """Return the digest of the patterns: part of a reader's identity."""
    return _load_page_tables().digest


@lru_cache(maxsize=64)
def _compile_sentences(subject: str) -> tuple[tuple[frozenset[str], re.Pattern[str]], ...]:
    compiled = []
    for fields, says in _load_page_tables().facts:
        for words in says:
            for mark, pattern in {"{s}": f"(?:{subject})", **_PARTS}.items():
                words = words.replace(mark, pattern)
            compiled.append((fields, re.compile(words)))
    return tuple(compiled)


def _describe_subject(name: str, kind: str) -> str:
    bare = name.partition(" (")[0]
    nouns = _load_page_tables().nouns.get(kind, [kind] if kind else [])
    called = [re.escape(bare), re.escape(bare.split()[-1])]
    return "|".join(
        [f"(?:[Tt]he )?{each}" for each in called] + [f"[Tt]he {noun}" for noun in map(re.escape, nouns)] + ["It"]
    )


def read_page(inputs: ReadPageInputs) -> ReadPageReply:
    """Return every value that the sentences of a toy page give for a field.

    ``page_reading.toml`` holds the patterns, written against the sentences of the toy writer. A sentence that no
    pattern accounts for may say anything, so its value is ``unclear``, which refuses.
    """
    patterns, found = _compile_sentences(_describe_subject(inputs.name, inputs.type)), []
    for number, sentence in enumerate(inputs.sentences, 1):
        bare = sentence.removesuffix(".")
        matches = [(fields, match) for fields, words in patterns if (match := words.fullmatch(bare))]
        values = {match["value"] for fields, match in matches if inputs.field in fields}
        if not matches:
            values = {"unclear"}
        found += [StatedValue(sentence=number, words=sentence, value=value) for value in sorted(values)]
    return ReadPageReply(propositions=tuple(found))
