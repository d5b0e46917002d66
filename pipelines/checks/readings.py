"""Read a text back as a query, and compare the reading with the proof (OpenSearch-VL, section 3.1: evaluator).

A proof proves its query; only a reader can say whether the words ask that query. The reader sees the text and a list of
relations, the proof's among others of the corpus, in an order drawn by hash. It sees no name, no answer and no other
text of the row. A difference fails; a reading that is unsure, or that no rule can compare, is UNKNOWN, which refuses.
"""

import asyncio
import hashlib
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path

from pipelines.checks.descriptors import compile_decade
from pipelines.checks.leakage import find_numbers, find_value
from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.corpus.dump import normalise_spaces
from pipelines.corpus.store import Corpus
from pipelines.errors import RecordFailed
from pipelines.graph.cues import name_cues
from pipelines.graph.facts import (
    draw_nodes,
    fold_names,
    holds_phrase,
    is_layout,
    read_askable,
    read_relations,
    split_key,
    stem_key,
    type_value,
)
from pipelines.graph.proofs import flatten_names, list_names
from pipelines.graph.prose import BLANK, list_prose, list_sentences, mask_names
from pipelines.graph.query import TYPE, Indexes, locate_nodes
from pipelines.graph.relations import find_relation, list_phrases
from pipelines.graph.titles import STATEMENT, asks_name
from pipelines.graph.values import parse_unit
from pipelines.ids import digest_value, draw_unit
from pipelines.names import fold_name
from pipelines.services.prompting import Prompted, RoleClient, ask_model
from schemas.manifest import ModelEntry
from schemas.proofs import Answer, Branch, Constraint, Hop, OtherEntity, Proof, ReadFact, ReadHop, Reading, Screening
from schemas.tasks import (
    FoundEntity,
    HiddenThing,
    OfferedRelation,
    ReadingReply,
    ReadQuestionInputs,
    ScreeningReply,
    ScreenQuestionInputs,
    SearchedStep,
)

VERSION = 3
"""Version of the offers and of the comparison; part of a reader's identity."""
OTHERS = 8
"""Relations offered of each kind beside those of the proof, at most."""
CLAUSES = 3
"""Other sentences of a page offered beside one that is a hop, at most."""
SAMPLED = 40
"""Pages of a type whose fields are offered."""
SEARCHED = 20
"""Passages of a search for a step's words in which other entities are looked for."""
SHOWN = 3
"""Other entities shown for a step, at most."""
NAMING = 2
"""Sentences shown of each, at most."""
MAX_PROSE = 400
"""Sentences of a page that are looked through."""
SYMMETRIC = frozenset(
    {"spouse", "spouses", "partner", "partners", "twin", "twins", "twin towns", "sister cities", "sibling", "siblings"}
)
"""Relations that say the same in both directions."""
DIFFERS, UNREAD = "reading-differs", "unread"
_GLOSSES = Path(__file__).with_name("data") / "glosses.toml"
_NONE = "none"
"""What a reply says in place of nothing: blank texts are taken for bad replies."""


def state_relation(key: str) -> str:
    """Return an infobox key in words."""
    return " ".join(split_key(key))


@cache
def _load_glosses() -> dict[str, str]:
    tables = tomllib.loads(_GLOSSES.read_text("utf-8"))
    return {statement: gloss for table in tables.values() for statement, gloss in table.items()}


@cache
def digest_glosses() -> str:
    """Return the digest of the glosses: part of a reader's identity."""
    return digest_value(_load_glosses())


def find_gloss(statement: str) -> str:
    """Return what the value of a field, given by the words of its key, is to its page; empty if none is known."""
    return _load_glosses().get(statement, "")


def state_asked(proof: Proof) -> str:
    """Return what a proof says is asked for: the words of its key, or that it is the anchor's own name."""
    return STATEMENT if asks_name(proof) else state_relation(proof.answer_relation)


def state_hop(hop: Hop) -> str:
    """Return what a hop states: the words of its gloss or its key, or its sentence with a blank."""
    return hop.gloss or hop.clause or state_relation(hop.relation)


@dataclass(frozen=True)
class Evaluator(Prompted):
    """The evaluator: reads texts back, and compares what it read with their proofs."""

    ground: Indexes
    asking: RoleClient
    screening: RoleClient

    @property
    def identity(self) -> str:
        limits = [OTHERS, CLAUSES, SAMPLED, SEARCHED, SHOWN, NAMING, MAX_PROSE]
        return digest_value([VERSION, *limits, digest_glosses(), self.asking.identity, self.screening.identity])

    def describe(self) -> ModelEntry:
        """Return the evaluator's entry in a manifest."""
        return self.asking.describe("evaluator")

    async def check(self, text: str, proof: Proof, answer: Answer) -> tuple[Reading | None, CheckResult]:
        """Return what a text was read to ask, and whether this is its proof's query."""
        reading = await self.read(text, proof)
        if isinstance(reading, CheckResult):
            return None, reading
        return reading, compare_reading(self.ground.corpus, text, reading, proof, answer)

    async def read(self, text: str, proof: Proof) -> Reading | CheckResult:
        """Return what a text asks, or UNKNOWN (``unread``) when two replies cannot be used."""
        offers = await asyncio.to_thread(list_offers, self.ground.corpus, text, proof)
        try:
            reply = await ask_model(self.asking, ReadQuestionInputs(text=text, relations=offers), ReadingReply)
        except RecordFailed as error:
            return CheckResult("UNKNOWN", UNREAD, str(error))
        return make_reading(text, offers, reply, self._sign())

    def _sign(self) -> str:
        return f"{self.asking.model.name}:{self.identity[:16]}"

    async def screen(
        self, text: str, reading: Reading, proof: Proof, answer: Answer
    ) -> tuple[Screening | None, CheckResult]:
        """Return what a finished text gives away and which other entities its steps lead to, and whether it passes."""
        hidden = list_hidden(proof, answer)
        found = await asyncio.to_thread(lambda: list(find_others(self.ground, reading, proof)))
        things = tuple(
            HiddenThing(id=f"h{number}", kind="answer" if number == len(hidden) else "name", text=thing)
            for number, thing in enumerate(hidden, 1)
        )
        inputs = ScreenQuestionInputs(text=text, hidden=things, steps=_show_others(reading, proof, found))
        try:
            reply = await ask_model(self.screening, inputs, ScreeningReply)
        except RecordFailed as error:
            return None, CheckResult("UNKNOWN", UNREAD, str(error))
        said = {thing.id: thing.text for thing in things}
        shown = {entity.id: entity.name for step in inputs.steps for entity in step.entities}
        screening = Screening(
            reader=self._sign(),
            text=digest_text(text),
            hidden=hidden,
            leaks=tuple(f"{said.get(leak.hidden, leak.hidden)}: {leak.words}" for leak in reply.leaks),
            others=tuple(each.entity for each in found),
            fitting=tuple(f"{shown.get(fit.entity, fit.entity)}: {fit.words}" for fit in reply.fits),
            several=_fill(reply.several),
            unsure=_fill(reply.unsure),
        )
        judged = (self.ground, text, reading, screening, proof, answer)
        return screening, await asyncio.to_thread(judge_screening, *judged)


def digest_text(text: str) -> str:
    """Return the sha256 by which a reading, or a judgement of a trace, names its text."""
    return hashlib.sha256(text.encode()).hexdigest()


def list_hidden(proof: Proof, answer: Answer) -> tuple[str, ...]:
    """Return what a finished question must not give away: the names of its nodes, then its answer."""
    return (*(node.title for node in proof.hidden), answer.surface)


def judge_screening(
    ground: Indexes, text: str, reading: Reading, screening: Screening, proof: Proof, answer: Answer
) -> CheckResult:
    """FAIL when a reader found a leak, another entity at a step, or no single answer; UNKNOWN if unsure.

    The codes are ``given-away``, ``second-entity``, ``several-answers`` and ``unread``. Needs no model.
    """
    if screening.text != digest_text(text) or screening.hidden != list_hidden(proof, answer):
        return CheckResult("FAIL", "given-away", "another text or other names were screened")
    if screening.others != tuple(each.entity for each in find_others(ground, reading, proof)):
        return CheckResult("FAIL", "second-entity", "other entities were shown than a search finds")
    if screening.leaks:
        return CheckResult("FAIL", "given-away", "; ".join(screening.leaks))
    if screening.fitting:
        return CheckResult("FAIL", "second-entity", "; ".join(screening.fitting))
    if screening.several:
        return CheckResult("FAIL", "several-answers", screening.several)
    if screening.unsure:
        return CheckResult("UNKNOWN", UNREAD, f"{screening.reader} is unsure: {screening.unsure}")
    return PASSED


@dataclass(frozen=True, slots=True)
class Found:
    """An entity that a step may lead to as well, with the sentences that name the entity it begins at."""

    entity: OtherEntity
    type: str
    sentences: tuple[str, ...]


def find_others(ground: Indexes, reading: Reading, proof: Proof) -> Iterator[Found]:
    """Yield, for each step as it was read, the best entities of one search whose pages name where it begins.

    The search is for the words of the step and the name of that entity, which is what an agent would look up.
    """
    corpus = ground.corpus
    numbers = locate_nodes(corpus, proof.nodes)
    for index, (read, source, reached) in enumerate(zip(reading.hops, numbers, numbers[1:], strict=False), 1):
        ranked = corpus.rank_nodes(f"{read.words} {corpus.page(source).title}", SEARCHED)
        nodes = [node for node in dict.fromkeys(ranked) if node not in (source, reached)]
        named = ((node, _list_naming(corpus, node, source)) for node in nodes)
        for node, sentences in islice(((node, said) for node, said in named if said), SHOWN):
            page, digest = corpus.page(node), digest_text("\n".join(sentences))
            entity = OtherEntity(node=index, page_id=page.page_id, title=page.title, sentences=digest)
            yield Found(entity, page.type, sentences)


@lru_cache(maxsize=1 << 14)
def _list_naming(corpus: Corpus, node: int, other: int) -> tuple[str, ...]:
    page, names = corpus.page(node), fold_names(corpus, other)
    if page.is_list or page.is_disambiguation:
        return ()
    titles = set(corpus.aliases(other))
    links = [link.start for link in corpus.links(node) if normalise_spaces(link.target.partition("#")[0]) in titles]
    naming = (
        sentence.text
        for sentence in list_prose(corpus, node)[:MAX_PROSE]
        if any(sentence.start <= at < sentence.end for at in links)
        or any(holds_phrase(fold_name(sentence.text), name) for name in names)
    )
    return tuple(islice(naming, NAMING))


def _show_others(reading: Reading, proof: Proof, found: Sequence[Found]) -> tuple[SearchedStep, ...]:
    ids = {id(each): f"e{number}" for number, each in enumerate(found, 1)}
    return tuple(
        SearchedStep(
            words=read.words,
            statement=read.statement,
            backward=read.backward,
            source=proof.nodes[index - 1].title,
            entities=tuple(
                FoundEntity(id=ids[id(each)], name=each.entity.title, type=each.type, sentences=each.sentences)
                for each in found
                if each.entity.node == index
            ),
        )
        for index, read in enumerate(reading.hops, 1)
        if any(each.entity.node == index for each in found)
    )


def _fill(words: str) -> str:
    return "" if words.strip().casefold() == _NONE else words.strip()


def list_offers(corpus: Corpus, text: str, proof: Proof) -> tuple[OfferedRelation, ...]:
    """Return the relations a reader may choose from: those of the proof and others of pages of the same types."""
    true = {
        "entity": [*(state_hop(hop) for hop in proof.hops),
                   *(state_relation(branch.relation) for branch in proof.branches)],
        "value": [state_asked(proof),
                  *(state_relation(fact.relation) for fact in proof.constraints if fact.relation != TYPE)],
    }  # fmt: skip
    found = _list_others(corpus, proof)
    # Among sentences and labels a reader would know a true gloss by its form.
    glossed = proof.hops and all(hop.gloss for hop in proof.hops)
    found["entity"] = _list_glosses(proof) if glossed else found["entity"].union(_draw_clauses(corpus, text, proof))
    if proof.answer_gloss:
        found["value"] |= _list_glosses(proof)
    offered = []
    for kind, statements in true.items():
        # Of two fields that say the same a reader could not tell which is meant.
        cues = frozenset().union(*(name_cues(statement) for statement in statements if BLANK not in statement))
        strange = {other for other in found[kind] if BLANK in other or cues.isdisjoint(name_cues(other))}
        others = sorted(strange, key=lambda other: draw_unit(text, "offer", other))
        offered += [(kind, statement) for statement in dict.fromkeys([*statements, *others[:OTHERS]])]
    offered.sort(key=lambda offer: draw_unit(text, "order", *offer))
    return tuple(
        OfferedRelation.model_validate(
            {"id": f"r{number}", "kind": kind, "statement": statement, "gloss": find_gloss(statement)}
        )
        for number, (kind, statement) in enumerate(offered, 1)
    )


def _list_others(corpus: Corpus, proof: Proof) -> dict[str, set[str]]:
    fields = {node.type: list_fields(corpus, node.type) for node in proof.entities}
    ends = [
        (fields[proof.nodes[source].type].entities, proof.nodes[target].type)
        for hop in proof.hops
        for source, target in [(hop.index, hop.index - 1) if hop.backward else (hop.index - 1, hop.index)]
    ]
    entities = {
        statement
        for each in fields.values()
        for statement, targets in each.entities.items()
        if all(statement in own or end not in targets for own, end in ends)
    }
    return {"entity": entities, "value": {statement for each in fields.values() for statement in each.values}}


def _draw_clauses(corpus: Corpus, text: str, proof: Proof) -> Iterator[str]:
    names = flatten_names(list_names(corpus, proof.nodes))
    told = {hop.clause for hop in proof.hops}
    for hop, node in zip(proof.hops, locate_nodes(corpus, proof.nodes), strict=False):
        if hop.clause and not hop.gloss:
            others = {mask_names(clause.text, names) for _, clause in list_sentences(corpus, node)} - told
            yield from sorted(others, key=lambda other: draw_unit(text, "clause", other))[:CLAUSES]


def _list_glosses(proof: Proof) -> set[str]:
    known = {proof.answer_relation, *(hop.field for hop in proof.hops)}
    # "Was designed by" reads as a gloss does, unlike "designed by" and "designer".
    return {phrase for phrase, key in list_phrases() if key not in known and phrase.startswith(("was ", "is "))}


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of pages of one type: those that lead to entities, with their types, and all that may be asked for."""

    entities: Mapping[str, frozenset[str]]
    values: tuple[str, ...]


@lru_cache(maxsize=4096)
def list_fields(corpus: Corpus, kind: str) -> Fields:
    """Return the statements of the fields of a sample of pages of a type."""
    entities: dict[str, set[str]] = {}
    values: dict[str, None] = {}
    for node in draw_nodes(corpus.nodes_of_type(kind), SAMPLED, "fields", kind):
        for fact in read_relations(corpus, node):
            entities.setdefault(state_relation(fact.key), set()).add(corpus.page(fact.target).type)
        values.update((state_relation(each.fact.key), None) for each in read_askable(corpus, node))
    return Fields({statement: frozenset(types) for statement, types in entities.items()}, tuple(values))


def make_reading(text: str, offers: Sequence[OfferedRelation], reply: ReadingReply, reader: str) -> Reading:
    """Return a reply with the offered statements in place of their ids; an unknown id becomes none."""
    said = {offer.id: offer.statement for offer in offers}
    return Reading(
        reader=reader,
        text=digest_text(text),
        offered=tuple(offer.statement for offer in offers),
        hops=tuple(
            ReadHop(statement=said.get(step.relation, ""), backward=step.backward, words=step.words)
            for step in reply.steps
        ),
        asked=said.get(reply.asked, ""),
        form="" if reply.form == "none" else reply.form,
        unit=_fill(reply.unit),
        facts=tuple(
            ReadFact(
                node=fact.step,
                statement=said.get(fact.relation, ""),
                value=_fill(fact.value),
                words=fact.words,
                entity=fact.entity,
            )
            for fact in reply.conditions
        ),
        questions=reply.questions,
        instruction=_fill(reply.instruction),
        unsure=_fill(reply.unsure),
    )


def compare_reading(corpus: Corpus, text: str, reading: Reading, proof: Proof, answer: Answer) -> CheckResult:
    """FAIL (``reading-differs``) when a text was read as another query than its proof; UNKNOWN (``unread``) if unsure.

    Same hops in the same order and direction, same attribute, precision and unit, the proof's conditions and no others,
    one question, no instruction. Needs no model, so it can be made again from a released row.
    """
    if digest_text(text) != reading.text:
        return CheckResult("FAIL", DIFFERS, "another text was read")
    if reading.unsure:
        return CheckResult("UNKNOWN", UNREAD, f"{reading.reader} is unsure: {reading.unsure}")
    for difference in _list_differences(corpus, text, reading, proof, answer):
        return CheckResult("FAIL", DIFFERS, difference)
    return PASSED


def _list_differences(corpus: Corpus, text: str, reading: Reading, proof: Proof, answer: Answer) -> Iterator[str]:
    if reading.questions != 1:
        yield f"asks {reading.questions} questions"
    if reading.instruction:
        yield f"holds an instruction: {reading.instruction!r}"
    folded = frozenset(fold_name(text).split())
    # "The man under whom he served" stands in "Where was the man born under whom he served?" too, in two pieces. A
    # condition may be read without its words; it is held to the proof all the same.
    for words in (*(hop.words for hop in reading.hops), *(fact.words for fact in reading.facts if fact.words)):
        if not words.strip() or not folded.issuperset(fold_name(words).split()):
            yield f"words that do not stand in the text were read: {words!r}"
    yield from _compare_hops(corpus, reading.hops, proof)
    if not _is_asked(corpus, proof, reading.asked):
        asked = reading.asked or "none of the attributes offered"
        yield f"asks for {asked}, not {state_asked(proof)}"
    if answer.type == "date" and reading.form != answer.precision:
        yield f"asks for a {reading.form or 'date of no precision'}, the answer is a {answer.precision}"
    if reading.unit and parse_unit(reading.unit) != answer.unit:
        yield f"asks for {reading.unit}, the answer is in {answer.unit or 'no unit'}"
    yield from _compare_facts(corpus, reading.facts, proof)


def _compare_hops(corpus: Corpus, hops: Sequence[ReadHop], proof: Proof) -> Iterator[str]:
    if len(hops) != len(proof.hops):
        yield f"takes {len(hops)} steps, the proof {len(proof.hops)}"
    for number, (read, hop) in enumerate(zip(hops, proof.hops, strict=False), 1):
        if not _is_same_hop(corpus, proof, number, read.statement):
            said = read.statement or "none of the relations offered"
            yield f"step {number} ({read.words!r}) says {said}, not {state_hop(hop)}"
        elif read.backward != hop.backward and read.statement not in SYMMETRIC:
            yield f"step {number} ({read.words!r}) goes {'backward' if read.backward else 'forward'}"


def _is_same_hop(corpus: Corpus, proof: Proof, number: int, statement: str) -> bool:
    hop = proof.hops[number - 1]
    if statement == state_hop(hop) or (hop.field and find_relation(statement) == hop.field):
        return True
    source, target = (number, number - 1) if hop.backward else (number - 1, number)
    nodes = locate_nodes(corpus, proof.nodes)
    return any(
        fact.target == nodes[target] and state_relation(fact.key) == statement
        for fact in read_relations(corpus, nodes[source])
    )


def _is_asked(corpus: Corpus, proof: Proof, statement: str) -> bool:
    if asks_name(proof):
        return statement == STATEMENT
    return is_same_field(corpus, proof, len(proof.hops), proof.answer_relation, statement)


def is_same_field(corpus: Corpus, proof: Proof, number: int, relation: str, statement: str) -> bool:
    """Say whether a statement names a field of a node, or another field of its page with the same value."""
    if statement == state_relation(relation) or (proof.answer_clause and find_relation(statement) == relation):
        return True
    values = {
        stem_key(a.fact.key): a.answer.key for a in read_askable(corpus, locate_nodes(corpus, proof.entities)[number])
    }
    own = values.get(stem_key(relation))
    return own is not None and any(
        value == own and state_relation(stem) == statement and not is_layout(stem) for stem, value in values.items()
    )


def _compare_facts(corpus: Corpus, facts: Iterable[ReadFact], proof: Proof) -> Iterator[str]:
    left = [fact for fact in proof.constraints if fact.relation != TYPE]
    found, told = _match_branches(corpus, list(facts), proof)
    if lost := [branch.node.title for place, branch in enumerate(proof.branches) if place not in found]:
        yield f"lost the branches to {', '.join(lost)}"
    numbers = {each.entity: len(proof.nodes) + place for place, each in found.items() if each.entity}
    for read in (fact for fact in facts if fact not in told):
        read = read.model_copy(update={"node": numbers.get(read.node, read.node)})
        met = next((fact for fact in left if _is_same_fact(corpus, proof, read, fact)), None)
        if met is not None:
            left.remove(met)
        elif read.statement or not _is_noun(read, proof):
            yield f"adds a condition on node {read.node}: {read.words or read.value!r}"
    for fact in left:
        yield f"lost the condition on node {fact.node}: {state_relation(fact.relation)} {fact.value}"


def _match_branches(
    corpus: Corpus, facts: Sequence[ReadFact], proof: Proof
) -> tuple[dict[int, ReadFact], tuple[ReadFact, ...]]:
    found: dict[int, ReadFact] = {}
    numbers = {number: number for number in range(len(proof.nodes))}
    left = [fact for fact in facts if fact.statement]
    for place, branch in enumerate(proof.branches):
        own = [fact for fact in left if fact.node == numbers.get(branch.host, -1)]
        met = next((fact for fact in own if _is_same_branch(corpus, proof, branch, fact)), None)
        if met is not None:
            left.remove(met)
            found[place] = met
            numbers[len(proof.nodes) + place] = met.entity or -1
    return found, tuple(found.values())


def _is_same_branch(corpus: Corpus, proof: Proof, branch: Branch, read: ReadFact) -> bool:
    entity, host = locate_nodes(corpus, [branch.node, proof.entities[branch.host]])
    if branch.named and fold_name(read.value) not in {fold_name(name) for name in corpus.aliases(entity)}:
        return False
    if not branch.named and not read.entity:
        return False
    same = (fact.key for fact in read_relations(corpus, host) if fact.target == entity)
    return read.statement in map(state_relation, (branch.relation, *same))


def _is_same_fact(corpus: Corpus, proof: Proof, read: ReadFact, fact: Constraint) -> bool:
    return (
        read.node == fact.node
        and is_same_value(read.value, fact)
        and is_same_field(corpus, proof, fact.node, fact.relation, read.statement)
    )


def is_same_value(read: str, fact: Constraint) -> bool:
    """Say whether a value as read is that of a constraint: the same text, number, date, decade or century."""
    wanted, given = fold_name(fact.value), fold_name(read).removeprefix("the ")
    if wanted == given:
        return True
    if wanted.endswith("century"):
        return "centur" in given and find_numbers(given) == find_numbers(wanted)
    if re.fullmatch(r"\d+s", wanted):
        return compile_decade(int(wanted[:-2])).search(given) is not None
    answer = type_value(fact.value, "", fact.relation)
    return answer is not None and answer.type in ("date", "number") and bool(find_value(read, answer))


def _is_noun(read: ReadFact, proof: Proof) -> bool:
    nouns = {fold_name(fact.value) for fact in proof.constraints if fact.relation == TYPE and fact.node == read.node}
    nouns |= {fold_name(node.type) for place, node in enumerate(proof.entities) if place == read.node}
    return fold_name(read.value) in nouns
