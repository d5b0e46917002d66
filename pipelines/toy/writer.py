"""Questions and descriptors in English with no model: the writer and rewriter of the toy world.

An entity is described by what leads to it: the phrase of the entity before it, its type, its facts. A question is built
from the anchor on, all phrases nested into one sentence, or a step at a time: ``Find the architect of the bridge in the
image, then the town where that architect was born. How long is the river that flows through that town?`` A bridge that
is still named is followed by its descriptor between commas, a hidden one is its descriptor alone. Wording is drawn by
the path's ``variety``, so the same path always reads the same.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from string import ascii_lowercase
from typing import ClassVar

from pydantic import BaseModel

from pipelines.agent.observations import GAP, choose_sentences, cut_text
from pipelines.errors import ConfigError
from pipelines.graph.answers import type_answer
from pipelines.ids import canonical_json, draw_unit
from pipelines.names import compile_phrase, fold_name
from pipelines.services.protocols import ChatReply, ChatRequest
from pipelines.toy.phrases import (
    AGENTS,
    EXACT,
    SLOT,
    WEAK,
    AttributeWording,
    RelationWording,
    add_clauses,
    choose_pronoun,
    classify_noun,
    clean_noun,
    digest_tables,
    find_attribute,
    find_head,
    find_relation,
    grade_fact,
    invert_table,
    list_usable_facts,
    name_kind,
    name_unit,
    pick,
    qualify_fact,
    read_tables,
    split_key,
    word_relation,
)
from schemas.proofs import Answer
from schemas.tasks import (
    SUBJECT,
    AskConceptInputs,
    AskedFactReply,
    AskFactInputs,
    Descriptor,
    DescriptorsReply,
    ExtractedFactReply,
    ExtractFactInputs,
    FactView,
    HopView,
    OfferedFact,
    ProposeDescriptorsInputs,
    QuestionReply,
    ReferToAnchorInputs,
    RewriteQuestionInputs,
    SummariseInputs,
    WriteQuestionInputs,
)

VERSION = 4
"""Raised when the writer answers otherwise to the same request; the tables count by their digest."""

_BLANK = "____"
_MENTION_WORDS = (10, 16, 25)
"""Words of the clause that are quoted, weakest descriptor first."""
_MANY = 12
"""Facts of a sort that are combined with others: what a page offers beyond is not looked at."""
_CLAUSE = re.compile(r"^(?:\{who\}|who|that|where|whose|\w+ (?:which|whom)) ")
_OPENS_CLAUSE = re.compile(r"^(?:who|that|whose) ")
_BRACKET = re.compile(r"\[[^\[\]]*\]")
_SPACED_MARK = re.compile(r" +([,.;:!)])")

_SOFT = "\ue000"
"""A comma that disappears before other punctuation; no page text can hold it."""
_SOFT_BEFORE_MARK = re.compile(f"{_SOFT}+(?=[,.;:?!)”])")
_SOFT_RUN = re.compile(f"{_SOFT}+")
_THAT_SLOT = f" that {SUBJECT}"
_NOUN = re.compile(
    r"the (?P<noun>[\w'’ -]+?)(?=,| (?:who|whom|that|whose|where|which|of|at|in|on|to|for|from|by|with|behind|near"
    r"|around|after|under|over|beneath|across|about|within|between|given|listed|born|built|made|held|kept|known|set|led|run"
    r"|cut|shot|found|written|taught|fought|broadcast|\w+ed|\w+ing|\w+ (?:which|whom)|first|native|nearest|won)\b)",
    re.IGNORECASE,
)
_LONG_NOUN = 3
_ORDINALS = ("", "first", "second", "third", "fourth")
_STEPPED = 0.35
"""Share of questions in steps in which the last entity is a step of its own: ``How long is that river?``"""
_SHORT_PATH = 2
_LONGEST_NESTED = 4
_NESTED = {0: 1.0, 1: 1.0, 2: 1 / 3}
"""Share of paths of each length in one sentence; longer paths get one sentence as often as any style of steps."""
_SHORT_PHRASE = 9
_LONG_PHRASE = 12
"""Words of a subject after which several words, or one, may still follow."""
_LONGEST_PHRASE = 28
"""Words of a subject that holds others."""

_WHEN = {
    "day": ("On what date", "On which date", "On what day, month and year"),
    "month": ("In what month and year", "In which month of which year"),
    "year": ("In what year", "In which year"),
}
_EVENT = {
    "day": ("What is the exact date of {e}", "What is the full date of {e}", "Which date saw {e}"),
    "month": ("What were the month and year of {e}", "Which month of which year saw {e}"),
    "year": ("Which year saw {e}", "What was the year of {e}", "What year is given for {e}"),
}
_BEING = re.compile(r"where \{s\} (?P<verb>was|is) (?P<rest>.+)")
_LISTED = {"day": "exact date ", "month": "month and year ", "year": "year "}
_FRAMES = 4
"""Least number of ways to ask for an attribute."""

_SPECIES_OF = re.compile(r"^(?:species|genus|breed|kind|type) of ", re.IGNORECASE)
_CLUE = re.compile(r"Clue [a-z]: ")
_SUMMARY_SENTENCES = 5
_SUMMARY_LONGEST = 280
"""Characters of a sentence of a summary."""
_SHORT_WORD = 4


@dataclass(frozen=True, slots=True)
class TemplatesModel:
    """A writer and rewriter that needs no model. It answers from ``ChatRequest.inputs``."""

    reads_inputs: ClassVar[bool] = True
    name: ClassVar[str] = "templates"

    @property
    def identity(self) -> str:
        """``templates``, the version of the rules and a digest of the tables of words."""
        return f"templates:{VERSION}:{digest_tables()}"

    async def chat(self, request: ChatRequest) -> ChatReply:
        """Return the task's reply as JSON, a summary as text. It counts no tokens."""
        if isinstance(request.inputs, SummariseInputs):
            return ChatReply(summarise_page(request.inputs), 0, 0)
        if isinstance(request.inputs, AskConceptInputs):
            return ChatReply(canonical_json(QuestionReply(question=ask_name(request.inputs))), 0, 0)
        # Imported here: the reporter words its questions as they are worded in this module.
        from pipelines.toy.reporter import report

        return ChatReply(canonical_json(report(request.inputs) or _reply(request)), 0, 0)


def _reply(request: ChatRequest) -> BaseModel:
    match request.inputs:
        case WriteQuestionInputs() as path:
            return QuestionReply(question=write_question(path))
        case ProposeDescriptorsInputs() as bridge:
            return propose_descriptors(bridge)
        case RewriteQuestionInputs() as step:
            return QuestionReply(question=rewrite_question(step))
        case ReferToAnchorInputs() as step:
            return QuestionReply(question=refer_to_anchor(step))
        case AskFactInputs() as entity:
            return ask_fact(entity)
        case ExtractFactInputs() as choice:
            return extract_fact(choice)
    raise ConfigError(
        f"model templates: task {request.task} with {type(request.inputs).__name__}; it can do write_question, "
        "propose_descriptors, rewrite_question, refer_to_anchor, ask_fact, ask_concept, extract_fact, name_anchors, "
        "find_bridge, ask_bridge and summarise"
    )


def write_question(path: WriteQuestionInputs) -> str:
    """Return the canonical question: anchor and bridges named, the answer node only described."""
    return _compose_question(path, (), path.anchor_name)


def rewrite_question(step: RewriteQuestionInputs) -> str:
    """Return the question with one more entity hidden behind its descriptor."""
    if step.node > len(step.path.hops):
        return _add_clue(step)
    hidden = list(_pad(step.descriptors, len(step.path.hops)))
    anchor = step.path.anchor_name
    if step.node == 0:
        anchor = step.descriptor
    else:
        hidden[step.node - 1] = step.descriptor
    return _compose_question(step.path, hidden, anchor)


def _add_clue(step: RewriteQuestionInputs) -> str:
    letter = ascii_lowercase[len(_CLUE.findall(step.question))]
    (hop,) = step.path.hops
    noun = clean_noun(hop.object_type) or "subject"
    asked = compile_phrase(step.name).sub(f"the {noun} of clue {letter}", step.question)
    return f"Clue {letter}: {step.descriptor.replace(SUBJECT, step.path.anchor_name)}. {asked}"


def refer_to_anchor(step: ReferToAnchorInputs) -> str:
    """Return the question with a reference to the picture in place of the anchor's name."""
    noun = _name_shown(step.anchor_type)
    reference: str = pick(read_tables()["references"], "refer", step.path.variety, step.path.anchor_name)
    if _CLUE.match(step.question):
        return compile_phrase(step.name).sub(reference.replace("{noun}", noun), step.question)
    return _compose_question(step.path, step.descriptors, reference.replace("{noun}", noun))


def summarise_page(page: SummariseInputs) -> str:
    """Return the title and at most five sentences or lines that fit the goal, as they stand there, in their order."""
    chosen = choose_sentences(page.text.replace(GAP, ""), page.goal, _SUMMARY_SENTENCES)
    return "\n".join((f"About {page.title}:", *(cut_text(sentence, _SUMMARY_LONGEST) for sentence in chosen)))


def ask_fact(entity: AskFactInputs) -> AskedFactReply:
    """Return a question for the fact that is hardest to guess; ties are broken by ``variety``.

    Only facts with a single typed value are asked for. A fact whose value occurs in the entity's name comes last, since
    the name will be hidden. Without a fact the reply is empty, and the caller refuses it.
    """
    choices = []
    for fact in entity.facts:
        answer = type_answer(fact.text, "", fact.relation)
        if answer is not None:
            draw = draw_unit("ask", entity.variety, entity.name, fact.relation, fact.text)
            rank = _share_words(fact.text, entity.name), _grade_question(entity.type, fact, answer), draw
            choices.append((rank, fact.relation, answer, fact.type))
    if not choices:
        return AskedFactReply(relation="", question="")
    _, relation, answer, kind = min(choices, key=lambda choice: choice[0])
    asked = WriteQuestionInputs(
        anchor_name=entity.name,
        anchor_type=entity.type,
        hops=(),
        answer_relation=relation,
        answer=answer,
        variety=entity.variety,
        answer_type=kind,
    )
    return AskedFactReply(relation=relation, question=write_question(asked))


def ask_name(concept: AskConceptInputs) -> str:
    """Return a question for the name of what a picture shows, in a new wording after each refusal."""
    tables, noun = read_tables(), _name_shown(concept.type)
    frames: Sequence[str] = tables["names"]["person" if noun == "person" else "thing"]
    draw = concept.variety, len(concept.tried)
    reference: str = pick(tables["references"], "refer", *draw)
    return pick(frames, "name", *draw).replace("{a}", reference.replace("{noun}", noun))


def _name_shown(kind: str) -> str:
    noun = _SPECIES_OF.sub("", clean_noun(kind)) or "subject"
    return "person" if classify_noun(noun) == "person" else noun


def _grade_question(kind: str, fact: FactView, answer: Answer) -> int:
    if answer.type == "date":
        grade = ("day", "month", "year").index(answer.precision or "year")
    elif answer.type == "number":
        grade = 0 if answer.unit else 1
    else:
        grade = 0 if len(answer.surface.split()) > 1 else 2
    return grade if find_attribute(fact.relation, kind) is not None else grade + 3


def _share_words(text: str, name: str) -> bool:
    words = {word for word in fold_name(name).split() if len(word) >= _SHORT_WORD}
    return not words.isdisjoint(fold_name(text).split())


def extract_fact(step: ExtractFactInputs) -> ExtractedFactReply:
    """Return the fact whose object has the fewest incoming links, or an empty reply without facts.

    Facts whose object shares a word with the entity's name come last: a question would reveal the name.
    """

    def rank(fact: OfferedFact) -> tuple[bool, int, bool, float]:
        known = find_relation(fact.relation, step.type, fact.object_type) is not None
        draw = draw_unit("extract", step.variety, step.name, fact.relation, fact.object_name)
        return _share_words(fact.object_name, step.name), fact.in_degree, not known, draw

    best = min(step.facts, key=rank, default=None)
    if best is None:
        return ExtractedFactReply(relation="", object_name="")
    return ExtractedFactReply(relation=best.relation, object_name=best.object_name)


# Descriptors: phrases that point at an entity by its place in the chain, its type and its facts.


@dataclass(frozen=True, slots=True)
class DescribedHop:
    """The hop that ends at the entity to be described, and what else its wording depends on.

    Attributes:
        subject_type: type of the entity the hop leaves.
        nested: the subject is surely not the anchor, so that a long phrase may stand in its slot.
        variety: decides between wordings that fit equally well.
    """

    hop: HopView
    subject_type: str
    nested: bool
    variety: str

    @property
    def wording(self) -> RelationWording:
        """How the hop's relation is put into words."""
        ends = (self.subject_type, self.hop.object_type)
        return word_relation(self.hop.relation, *(ends[::-1] if self.hop.backward else ends))

    @property
    def quoted(self) -> bool:
        """Whether nothing but a line of the page says what the relation is."""
        return self.hop.relation == "mentions"

    @property
    def noun(self) -> str:
        """The object's type, or what to call it without one."""
        return clean_noun(self.hop.object_type) or ("subject" if self.hop.backward else self.wording.noun)

    def list_tails(self) -> list[str]:
        """Return what may follow the noun as a clause."""
        wording = self.wording
        return self.finish(wording.inverses if self.hop.backward else filter(_CLAUSE.match, wording.tails))

    def finish(self, phrases: Iterator[str] | Sequence[str]) -> list[str]:
        """Return phrases with their pronoun and the slot of a descriptor."""
        pronoun = choose_pronoun(self.hop.object_type or self.wording.noun)
        return [phrase.replace("{who}", pronoun).replace(SLOT, SUBJECT) for phrase in phrases]

    def choose(self, phrases: Sequence[str]) -> str:
        """Return one of the phrases; half of those after a long subject end with their slot.

        ``the town where the architect of ... was born`` piles up verbs when its subject is long; a question in steps
        has short subjects.
        """
        flat = [phrase for phrase in phrases if phrase.endswith(SUBJECT)]
        strict = draw_unit("flat", self.variety, self.hop.object_name) < 0.5
        options = flat if self.nested and flat and strict else phrases
        return pick(options, "word", self.variety, self.hop.relation, self.hop.object_name)


def propose_descriptors(bridge: ProposeDescriptorsInputs) -> DescriptorsReply:
    """Return at most ``count`` descriptors of the object of a hop, weakest first.

    Forward: relation alone, then with the type, then with one fact. Backward, where several entities fit: relation and
    type, then one or more facts that many share, years, and exact facts last. When there are more than ``count``, some
    of each sort are returned, for what one check refuses another may pass. What was tried before is left out.
    """
    link = DescribedHop(bridge.hop, bridge.subject_type, bridge.subject_type != bridge.anchor_type, bridge.variety)
    refused = frozenset(one.text for one in bridge.tried)
    return DescriptorsReply(descriptors=tuple(_propose(link, bridge, refused)))


def _propose(link: DescribedHop, bridge: ProposeDescriptorsInputs, refused: frozenset[str]) -> list[Descriptor]:
    usable, count = list_usable_facts(link.hop, bridge.facts, link.variety), bridge.count
    groups = [[Descriptor(text=text)] for text in _list_plain(link)]
    if link.quoted:
        groups = [[descriptor for group in groups for descriptor in group]]
    if bridge.entities:
        groups = [[_describe_facts(link, (), bridge.entities)]]
    groups += [
        [_describe_facts(link, said, bridge.entities) for said in sets] for sets in _list_fact_sets(link, usable)
    ]
    return _spread([[each for each in group if each.text not in refused] for group in groups], count)


def _list_plain(link: DescribedHop) -> list[str]:
    if link.quoted:
        return [_describe_mention(link, words, "") for words in _MENTION_WORDS]
    if link.hop.backward:
        return [link.choose([f"the {link.noun} {tail}" for tail in link.list_tails()])]
    wording = link.wording
    weak = name_kind(link.hop.object_type, wording.noun)
    plain = link.finish([*wording.plains, *(f"the {weak} {tail}" for tail in wording.tails)])
    typed = link.finish([f"the {link.noun} {tail}" for tail in wording.tails])
    return [link.choose(plain), link.choose(typed)]


def _describe_mention(link: DescribedHop, words: int, qualifier: str) -> str:
    noun = clean_noun(link.hop.object_type) or "subject"
    if words == _MENTION_WORDS[0]:
        noun = name_kind(link.hop.object_type, "subject")
    tail: str = pick(read_tables()["mentions"], "mention", link.variety, link.hop.clause, link.subject_type)
    joined = f"{qualifier} {'and ' if _OPENS_CLAUSE.match(qualifier) else ''}" if qualifier else ""
    phrase = f"the {noun} {joined}{tail.replace(SLOT, SUBJECT)}"
    phrase = phrase.replace("{who}", choose_pronoun(link.hop.object_type))
    return phrase.replace("{clause}", cut_clause(link.hop.clause, words))


def _list_fact_sets(link: DescribedHop, facts: Sequence[FactView]) -> list[list[tuple[FactView, ...]]]:
    graded = [(grade_fact(fact, link.hop.object_type), fact) for fact in facts]
    weak = [fact for grade, fact in graded if grade <= WEAK][:_MANY]
    years = [fact for grade, fact in graded if WEAK < grade < EXACT][:_MANY]
    exact = [(fact,) for grade, fact in graded if grade >= EXACT]
    if not link.hop.backward:
        return [[(fact,) for fact in weak], [(fact,) for fact in years], [*exact]]
    groups: list[list[tuple[FactView, ...]]] = [
        *([said for said in combinations(weak, size) if _differ(said)] for size in (1, 2, 3)),
        [(fact,) for fact in years],
        [(one, other) for other in years for one in weak if _differ((one, other))],
        [*exact],
    ]
    return [sorted(group, key=lambda said: draw_unit("facts", link.variety, *said)) for group in groups]


def _differ(facts: Sequence[FactView]) -> bool:
    return len({fact.relation for fact in facts}) == len(facts)


def _describe_facts(link: DescribedHop, facts: tuple[FactView, ...], entities: tuple[FactView, ...] = ()) -> Descriptor:
    qualifiers = [qualify_fact(fact, link.hop.object_type) for fact in facts]
    if link.quoted:
        return Descriptor(text=_describe_mention(link, _MENTION_WORDS[-1], qualifiers[0]), facts=facts)
    qualifiers += [f"whose {split_key(fact.relation)} is {fact.text}" for fact in entities]
    facts = (*facts, *entities)
    # A clause that ends with its subject, or else a stray "who" would seem to belong to the subject.
    tails = [tail for tail in link.list_tails() if tail.endswith(SUBJECT)] or link.list_tails()
    return Descriptor(text=link.choose(add_clauses(f"the {link.noun}", qualifiers, tails)), facts=facts)


def _spread(groups: Sequence[Sequence[Descriptor]], count: int) -> list[Descriptor]:
    turns = sorted((turn, place) for place, group in enumerate(groups) for turn in range(len(group)))
    kept = sorted((place, turn) for turn, place in turns[: max(count, 0)])
    descriptors: dict[str, Descriptor] = {}
    for place, turn in kept:
        descriptors.setdefault(groups[place][turn].text, groups[place][turn])
    return list(descriptors.values())


def cut_clause(clause: str, words: int) -> str:
    """Shorten a blanked clause to at most ``words`` words around its blank, marking cuts with an ellipsis.

    Quotation marks become single ones and question marks end the clause, so that it can stand inside a question. A
    bracket stands for words that are not shown.
    """
    clean = _BRACKET.sub("…", clause)
    clean = re.sub(r"[\[\]{}<>|\ue000-\uf8ff]", "", clean).replace("“", "‘").replace("”", "’").replace('"', "’")
    tokens = clean.split()
    middle = next((i for i, token in enumerate(tokens) if _BLANK in token), None)
    if middle is None:
        return _BLANK
    start = max((i + 1 for i in range(middle) if "?" in tokens[i]), default=0)
    stop = min((i for i in range(middle + 1, len(tokens)) if "?" in tokens[i]), default=len(tokens))
    before = min(middle - start, (words - 1) // 2)
    after = min(stop - middle - 1, words - 1 - before)
    start, stop = middle - min(middle - start, words - 1 - after), middle + 1 + after
    kept = [token.replace("?", "") for token in tokens[start:stop]]
    text = _SPACED_MARK.sub(r"\1", " ".join(kept)).strip(" ,;:.…")
    return f"{'… ' if start > 0 else ''}{text}{' …' if stop < len(tokens) else ''}"


def elide_names(clause: str, names: Sequence[str]) -> str:
    """Replace names in a clause by an ellipsis, ignoring case; the blank stays."""
    for name in sorted((name for name in names if name.strip(" _")), key=len, reverse=True):
        clause = compile_phrase(name, re.IGNORECASE).sub("…", clause)
    return clause


# Questions: the phrases of all entities in one sentence or in steps, and a frame that asks for the attribute.


@dataclass(frozen=True, slots=True)
class Piece:
    """One entity in words: its descriptor with the slot, what it is called later, and its name while it has one."""

    text: str
    noun: str
    name: str


def _compose_question(path: WriteQuestionInputs, descriptors: Sequence[str], anchor: str) -> str:
    given = _pad(descriptors, len(path.hops))
    pieces = [_make_piece(path, index, text) for index, text in enumerate(given)]
    intro, words_after = "", 0
    if _is_nested(path.variety, pieces):
        phrase = _nest(pieces, anchor)
        flat = len(pieces) <= _SHORT_PATH and all(piece.text.endswith(SUBJECT) for piece in pieces)
        words_after = int(flat and len(phrase.split()) <= _LONG_PHRASE)
    else:
        intro, phrase = _write_steps(path, pieces, anchor)
        size = len(phrase.split())
        flat = not phrase.endswith(anchor) and pieces[-1].text.endswith(SUBJECT)
        words_after = _SHORT_PHRASE if size <= _LONGEST_NESTED else int(flat and size <= _SHORT_PHRASE)
    subject_type = [path.anchor_type, *_list_types(path)][-1]
    frames = list_frames(path.answer_relation, path.answer, subject_type, path.answer_type)
    # A long phrase reads better at the end: "was the town where the architect was born founded" piles up verbs.
    short = [frame for frame in frames if len(frame.partition(SLOT)[2].strip("?").split()) <= words_after]
    frame = pick(short or frames, "frame", path.variety, path.answer_relation)
    text = f"{intro} {frame.replace(SLOT, phrase)}".lstrip()
    text = _SOFT_RUN.sub(",", _SOFT_BEFORE_MARK.sub("", text))
    return text.replace("??", "?").replace("!?", "?") if text.endswith(("??", "!?")) else text


def _list_types(path: WriteQuestionInputs) -> list[str]:
    return [hop.object_type for hop in path.hops]


def _pad(descriptors: Sequence[str], length: int) -> tuple[str, ...]:
    return (*descriptors, *([""] * length))[:length]


def _make_piece(path: WriteQuestionInputs, index: int, given: str) -> Piece:
    hop = path.hops[index]
    text = given
    if not given:
        before = [path.anchor_type, *_list_types(path)][index]
        names = [path.anchor_name, *(hop.object_name for hop in path.hops)]
        safe = hop.model_copy(update={"clause": elide_names(hop.clause, names)})
        options = _list_plain(DescribedHop(safe, before, before != path.anchor_type, path.variety))
        text = pick(list(dict.fromkeys(options)), "describe", path.variety, hop.relation, hop.object_name)
    named = not given and index + 1 < len(path.hops)
    return Piece(text, find_noun(text, hop.object_type), hop.object_name if named else "")


def find_noun(text: str, object_type: str) -> str:
    """Return the noun by which a descriptor calls its entity, or "" if it is unclear."""
    whole = clean_noun(object_type)
    if whole and re.match(rf"the {re.escape(whole.casefold())}(?!\w)", text.casefold()):
        return whole if " of " not in whole and len(whole.split()) <= _LONG_NOUN else find_head(whole)
    found = _NOUN.match(text)
    noun = found["noun"].strip().casefold() if found else ""
    if noun in AGENTS:
        # Nobody edits or founds an owner.
        return name_kind(whole, noun)
    return invert_table("called", "|").get(noun, noun if len(noun.split()) <= _LONG_NOUN else "")


def _is_nested(variety: str, pieces: Sequence[Piece]) -> bool:
    styles = len(read_tables()["styles"])
    share = _NESTED.get(len(pieces), 1 / (styles + 1) if len(pieces) <= _LONGEST_NESTED else 0.0)
    if draw_unit("nested", variety) >= share:
        return False
    phrase = ""
    for index, piece in enumerate(pieces):
        # "the town where the architect who designed the bridge was born" is as far as verbs may pile up.
        if index and not piece.text.endswith(SUBJECT) and len(phrase.split()) > _SHORT_PHRASE:
            return False
        phrase = piece.text.replace(SUBJECT, phrase)
    return len(pieces) == 1 or len(phrase.split()) <= _LONGEST_PHRASE


def _nest(pieces: Sequence[Piece], anchor: str) -> str:
    phrase = anchor
    for piece in pieces:
        phrase = piece.text.replace(SUBJECT, phrase)
        if piece.name:
            phrase = f"{piece.name}, {phrase}{_SOFT}"
    return phrase


def _write_steps(path: WriteQuestionInputs, pieces: Sequence[Piece], anchor: str) -> tuple[str, str]:
    openings, links, found = pick(read_tables()["styles"], "style", path.variety)
    kind = clean_noun(path.anchor_type)
    first = name_kind(kind, kind) if classify_noun(kind) == "person" else find_head(kind)
    roles = ["", *(name_role(piece.text) for piece in pieces)]
    called = choose_nouns([first, *(piece.noun for piece in pieces)], roles)
    references = list_references(called, found, path.variety)
    steps: list[str] = []
    for index, piece in enumerate(pieces):
        subject = references[index] if index else anchor
        if subject.startswith("that ") and _THAT_SLOT in piece.text:
            # Not "the opera that that composer wrote".
            subject = f"the {called[index]} just {found}"
        phrase = piece.text.replace(SUBJECT, subject or steps.pop())
        steps.append(f"{piece.name}, {phrase}{_SOFT}" if piece.name else phrase)
    last = references[-1] if draw_unit("stepped", path.variety) < _STEPPED else ""
    last = last or steps.pop()
    return _join_steps(steps, openings, links), last


def _join_steps(steps: Sequence[str], openings: Sequence[str], links: Sequence[str]) -> str:
    sentences = []
    size = 2 if links else 1
    for number, start in enumerate(range(0, len(steps), size)):
        opening = openings[number if number < len(openings) else -1 - number % 2]
        sentence = opening.replace("{a}", steps[start])
        for step in steps[start + 1 : start + size]:
            sentence += links[number % len(links)].replace("{b}", step)
        sentence = sentence.rstrip(_SOFT)
        sentences.append(sentence if sentence.endswith((".", "?", "!")) else f"{sentence}.")
    return " ".join(sentences)


# Later references to an entity, unambiguous within the question.


@cache
def _compile_roles() -> re.Pattern[str]:
    ends = sorted(map(re.escape, invert_table("roles", "|")), key=len, reverse=True)
    return re.compile(rf"\b({'|'.join(ends)})(?: {re.escape(SUBJECT)})?$")


def name_role(text: str) -> str:
    """Return what a descriptor makes of a person, such as ``spouse``, empty when that is not known."""
    found = _compile_roles().search(text)
    return invert_table("roles", "|")[found[1]] if found else ""


def choose_nouns(nouns: Sequence[str], roles: Sequence[str]) -> list[str]:
    """Return the noun of each entity, or its role where the noun may mean another one that was introduced before."""
    chosen: list[str] = []
    for noun, role in zip(nouns, roles, strict=True):
        clear = not role or not _find_rivals(noun, chosen) or bool(_find_rivals(role, chosen))
        chosen.append(noun if clear else role)
    return chosen


def list_references(nouns: Sequence[str], found: str, variety: str) -> list[str]:
    """Return what each entity is called later, empty where no short phrase is clear.

    ``that town`` means the only town so far. The order of introduction distinguishes several towns: a reference always
    means the last entity introduced.
    """
    references: list[str] = []
    for index, noun in enumerate(nouns):
        rivals = _find_rivals(noun, nouns[:index])
        options = [f"that {noun}"]
        if rivals:
            options = [f"the {noun} just {found}", f"the {noun} {found} last"]
            # Of what the picture shows, or what has another noun, no reader is sure whether it counts.
            if 0 not in rivals and all(find_head(nouns[rival]) == find_head(noun) for rival in rivals):
                options += [f"that {ordinal} {noun}" for ordinal in _ORDINALS[len(rivals) + 1 :][:1]]
                options += [f"the latter {noun}"] if len(rivals) == 1 else []
        # Two steps of one sentence may each refer to the step before.
        fresh = [option for option in options if option not in references[-1:]]
        references.append(pick(fresh, "refer", variety, index) if noun else "")
    return references


def _find_rivals(noun: str, before: Sequence[str]) -> list[int]:
    covered = set(read_tables()["covered"].get(find_head(noun), "").split())
    return [
        index
        for index, other in enumerate(before)
        if noun and other and (find_head(other) == find_head(noun) or covered & _list_kinds(other))
    ]


def _list_kinds(noun: str) -> set[str]:
    if noun in read_tables()["roles"]:
        return {"person"}
    head = find_head(noun)
    return {"person", "organisation"} if head in AGENTS else {classify_noun(noun), head}


# Frames: how the attribute of the last entity is asked for.


def list_frames(key: str, answer: Answer, subject_type: str, answer_type: str = "") -> tuple[str, ...]:
    """Return the questions that ask for an attribute at the answer's precision and in its unit."""
    row = find_attribute(key, subject_type)
    noun = split_key(key) if row is None else row.noun
    named = find_relation(key, subject_type, answer_type) if answer_type else None
    if named is not None:
        return tuple(f"{frame}?" for frame in _ask_name(named, answer_type))
    if answer.type == "date":
        frames = _ask_date(row, noun, answer.precision or "year")
    elif answer.type == "number":
        asks = row.asks if row is not None and row.form == "number" else ()
        frames = _ask_number(asks, noun or "number", answer.unit)
    elif row is not None:
        noun = noun or "date"
        asks = row.asks if row.form == "word" else ()
        spare = [f"What is given as the {noun} of {SLOT}", f"What {noun} is given for {SLOT}"]
        frames = _fill([*asks, f"What is the {noun} of {SLOT}"], [*spare, f"What is listed as the {noun} of {SLOT}"])
    else:
        relation = find_relation(key, subject_type, "")
        frames = _ask_listed("", noun) if relation is None else _ask_relation(relation)
    return tuple(f"{frame}?" for frame in frames)


def _ask_date(row: AttributeWording | None, noun: str, precision: str) -> list[str]:
    if row is None or row.form != "date":
        return _ask_listed(_LISTED[precision], noun)
    event = f"the {noun} of {SLOT}" if noun else SLOT
    inverted = [f"{when} {ask}" for when in _WHEN[precision] for ask in row.asks]
    return [*inverted, *(frame.replace("{e}", event) for frame in _EVENT[precision])]


def _ask_listed(sought: str, noun: str) -> list[str]:
    return [
        f"What {sought}is given as the {noun} of {SLOT}",
        f"What {sought}is listed as the {noun} of {SLOT}",
        f"What {sought}does the article give as the {noun} of {SLOT}",
        f"Under the heading “{noun}”, what {sought}is given for {SLOT}",
    ]


def _ask_number(asks: Sequence[str], noun: str, unit: str) -> list[str]:
    name = name_unit(unit)
    if name:
        natural = [ask.replace("{unit}", name) for ask in asks if "{unit}" in ask]
        natural += [f"In {name}, what is the {noun} of {SLOT}", f"What is the {noun} of {SLOT}, in {name}"]
        spare = [f"What is the {noun}, in {name}, of {SLOT}", f"What {noun}, in {name}, is given for {SLOT}"]
        return _fill(natural, spare)
    # "4,210 inhabitants" counts things; asking for the population "in inhabitants" would be odd.
    plain = [ask for ask in asks if "{unit}" not in ask]
    counted = [f"How many {unit.strip()} are given as the {noun} of {SLOT}"] if unit and not plain else []
    spare = [f"What figure is given as the {noun} of {SLOT}", f"What is recorded as the {noun} of {SLOT}"]
    return _fill([*plain, *counted, f"What is the {noun} of {SLOT}"], [*spare, f"Which {noun} is given for {SLOT}"])


def _fill(frames: Sequence[str], spare: Sequence[str]) -> list[str]:
    distinct = list(dict.fromkeys(frames))
    return [*distinct, *(frame for frame in spare if frame not in distinct)][: max(len(distinct), _FRAMES)]


def _ask_name(relation: RelationWording, answer_type: str) -> list[str]:
    noun = find_head(answer_type) or relation.noun
    person = classify_noun(noun) == "person"
    frames = []
    for tail in relation.tails:
        opening, _, rest = tail.partition(" ")
        if born := _BEING.fullmatch(tail):
            frames += [
                f"In which {noun} {born['verb']} {SLOT} {born['rest']}",
                f"Where {born['verb']} {SLOT} {born['rest']}",
            ]
        elif opening in ("{who}", "that") and not rest.startswith(SLOT):
            frames.append(f"Who {rest}" if person else f"Which {noun} {rest}")
        else:
            frames.append(f"What is the name of the {noun} {tail}")
    plain = "Who was" if person else "What is the name of"
    spare = [f"{plain} {each}" for each in relation.plains]
    spare += [
        f"What is the name of the {noun} {tail}".replace("{who}", choose_pronoun(noun)) for tail in relation.tails
    ]
    return _fill(frames, spare)


def _ask_relation(relation: RelationWording) -> list[str]:
    person = name_kind("", relation.noun) == "person"
    frames = [f"What is the name of {plain}" for plain in relation.plains]
    frames += [f"{'Who' if person else 'What'} is given as {plain}" for plain in relation.plains]
    for tail in relation.tails:
        _, _, rest = tail.partition(" ")
        # "that {s} belongs to" has no question form without moving its verb.
        if tail.startswith(("{who} ", "that ")) and not rest.startswith(SLOT):
            frames.append(f"{'Who' if person else f'Which {relation.noun}'} {rest}")
    return frames
