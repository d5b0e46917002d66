"""Questions and descriptors in English with no model: word tables, and rules for putting their phrases together.

An entity is described by what leads to it: the phrase of the entity before it, its type, its facts. A question is built
from the anchor on, all phrases nested into one sentence, or a step at a time (``phrases_chains``). A bridge that is
still named is followed by its descriptor between commas, a hidden one is its descriptor alone. Wording is drawn by the
path's ``variety``, so the same path always reads the same.

Quoting a sentence: the blanked clause that alone supports a hop, cut and made fit to stand in a question.

Descriptors: phrases that point at an entity by its place in the chain, its type and its facts.

Questions in steps: one entity a clause, each named by what the clause before called it.

``Find the architect of the bridge in the image, then the town where that architect was born. How long is the river that
flows through that town?``

What an entity that was introduced is called later, so that the phrase can mean no other one of the question.

Question frames: how the attribute of the last entity is asked for.

A whole question from the phrases of its entities: nested into one sentence, or told in steps.

Summaries with no model: the sentences of a page that fit a goal, as they stand there.

First steps of the injection recipe by rule: which fact to ask for, which entity to hide and behind which fact.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from pydantic import BaseModel

from pipelines.agent.observations import GAP, choose_sentences, cut_text
from pipelines.errors import ConfigError
from pipelines.graph.answers import type_answer
from pipelines.ids import canonical_json, draw_unit
from pipelines.names import fold_name
from pipelines.services.protocols import ChatReply, ChatRequest
from pipelines.toy.phrases import (
    AGENTS,
    EXACT,
    MENTIONS,
    SLOT,
    WEAK,
    AttributeWording,
    RelationWording,
    add_clauses,
    choose_pronoun,
    classify_noun,
    clean_noun,
    find_attribute,
    find_head,
    find_relation,
    grade_fact,
    is_known_unit,
    list_usable_facts,
    name_kind,
    name_unit,
    pick,
    qualify_fact,
    split_key,
    word_relation,
)
from schemas.proofs import Answer
from schemas.tasks import (
    SUBJECT,
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
    SelectedEntityReply,
    SelectEntityInputs,
    SummariseInputs,
    WriteQuestionInputs,
)

BLANK = "____"

_SPACED_MARK = re.compile(r" +([,.;:!)])")


def cut_clause(clause: str, words: int) -> str:
    """Shorten a blanked clause to at most ``words`` words around its blank, marking cuts with an ellipsis.

    Quotation marks become single ones and question marks end the clause, so that it can stand inside a question.
    """
    clean = re.sub(r"[\[\]{}<>|\ue000-\uf8ff]", "", clause).replace("“", "‘").replace("”", "’").replace('"', "’")
    tokens = clean.split()
    middle = next((i for i, token in enumerate(tokens) if BLANK in token), None)
    if middle is None:
        return BLANK
    start = max((i + 1 for i in range(middle) if "?" in tokens[i]), default=0)
    stop = min((i for i in range(middle + 1, len(tokens)) if "?" in tokens[i]), default=len(tokens))
    start, stop = _narrow(start, middle, stop, words)
    kept = [token.replace("?", "") for token in tokens[start:stop]]
    text = _SPACED_MARK.sub(r"\1", " ".join(kept)).strip(" ,;:.…")
    return f"{'… ' if start > 0 else ''}{text}{' …' if stop < len(tokens) else ''}"


def elide_names(clause: str, names: Sequence[str]) -> str:
    """Replace names in a clause by an ellipsis, whatever their case; the blank stays."""
    for name in sorted((name for name in names if name.strip(" _")), key=len, reverse=True):
        clause = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", "…", clause, flags=re.IGNORECASE)
    return clause


def _narrow(start: int, middle: int, stop: int, words: int) -> tuple[int, int]:
    before = min(middle - start, (words - 1) // 2)
    after = min(stop - middle - 1, words - 1 - before)
    before = min(middle - start, words - 1 - after)
    return middle - before, middle + 1 + after


MENTION_WORDS = (10, 16, 25)
"""Words of the clause that are quoted, weakest descriptor first."""

_MANY = 12
"""Facts of a sort that are combined with others: what a page offers beyond is not looked at."""
_CLAUSE = re.compile(r"^(?:\{who\}|who|that|where|whose|\w+ (?:which|whom)) ")
_OPENS_CLAUSE = re.compile(r"^(?:who|that|whose) ")


@dataclass(frozen=True, slots=True)
class Link:
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


def propose_candidates(link: Link, facts: Sequence[FactView], count: int) -> list[Descriptor]:
    """Return at most ``count`` descriptors of the object of a hop, weakest first.

    Forward: relation alone, then with the type, then with one fact. Backward, where several entities fit: relation and
    type, then one or more facts that many share, years, and exact facts last. When there are more than asked for, some
    of each sort are returned, for what one check refuses another may pass.
    """
    usable = list_usable_facts(link.hop, facts, link.variety)
    if link.hop.relation == "mentions":
        plain = [[_describe_mention(link, words, "")] for words in MENTION_WORDS]
    elif link.hop.backward:
        plain = [[_choose_text(_list_inverse(link), link)]]
    else:
        wording = _word(link)
        plain = [
            [_choose_text(list_plain(wording, link.hop), link)],
            [_choose_text(list_typed(wording, link.hop), link)],
        ]
    groups = [[Descriptor(text=text) for text in texts] for texts in plain]
    groups += [[_describe_facts(link, said) for said in sets] for sets in _list_fact_sets(link, usable)]
    return _spread(groups, count)


def describe_hop(link: Link) -> str:
    """Return one descriptor without facts, as the canonical question uses it."""
    options = propose_candidates(link, (), len(MENTION_WORDS))
    return pick(options, "describe", link.variety, link.hop.relation, link.hop.object_name).text


def list_plain(wording: RelationWording, hop: HopView) -> list[str]:
    """Return the wordings that do not tell the object's type: ``the architect of [subject]``."""
    one = name_kind(hop.object_type, wording.noun)
    phrases = [*wording.plains, *(f"the {one} {tail}" for tail in wording.tails)]
    return [_finish(phrase, wording, hop) for phrase in phrases]


def list_typed(wording: RelationWording, hop: HopView) -> list[str]:
    """Return the wordings that tell the object's type: ``the town where [subject] was born``."""
    noun = clean_noun(hop.object_type) or wording.noun
    return [_finish(f"the {noun} {tail}", wording, hop) for tail in wording.tails]


def _list_inverse(link: Link) -> list[str]:
    return [f"the {_name(link)} {tail}" for tail in _list_tails(link)]


def _list_fact_sets(link: Link, facts: Sequence[FactView]) -> list[list[tuple[FactView, ...]]]:
    """Return sets of facts to be said together, in groups of growing strength."""
    weak = [fact for fact in facts if grade_fact(fact, link.hop.object_type) <= WEAK][:_MANY]
    years = [fact for fact in facts if WEAK < grade_fact(fact, link.hop.object_type) < EXACT][:_MANY]
    exact = [fact for fact in facts if grade_fact(fact, link.hop.object_type) >= EXACT]
    if not link.hop.backward:
        return [[(fact,) for fact in sort] for sort in (weak, years, exact)]
    groups: list[list[tuple[FactView, ...]]] = [
        [(fact,) for fact in weak],
        _combine(weak, 2),
        _combine(weak, 3),
        [(fact,) for fact in years],
        [(one, other) for other in years for one in weak if one.relation != other.relation],
        [(fact,) for fact in exact],
    ]
    return [sorted(group, key=lambda said: draw_unit("facts", link.variety, *said)) for group in groups]


def _combine(facts: Sequence[FactView], size: int) -> list[tuple[FactView, ...]]:
    return [said for said in combinations(facts, size) if len({fact.relation for fact in said}) == size]


def _describe_facts(link: Link, facts: tuple[FactView, ...]) -> Descriptor:
    qualifiers = [qualify_fact(fact, link.hop.object_type) for fact in facts]
    if link.hop.relation == "mentions":
        return Descriptor(text=_describe_mention(link, MENTION_WORDS[-1], qualifiers[0]), facts=facts)
    # A clause that ends with its subject, or else a stray "who" would seem to belong to the subject.
    tails = [tail for tail in _list_tails(link) if tail.endswith(SUBJECT)]
    return Descriptor(text=_choose_text(add_clauses(f"the {_name(link)}", qualifiers, tails), link), facts=facts)


def _spread(groups: Sequence[Sequence[Descriptor]], count: int) -> list[Descriptor]:
    """Return at most ``count`` descriptors, as evenly from the groups as they allow, in the groups' order."""
    taken = [0] * len(groups)
    left = max(count, 0)
    while left and any(number < len(group) for number, group in zip(taken, groups, strict=True)):
        for index, group in enumerate(groups):
            if left and taken[index] < len(group):
                taken[index] += 1
                left -= 1
    kept: dict[str, Descriptor] = {}
    for number, group in zip(taken, groups, strict=True):
        for descriptor in group[:number]:
            kept.setdefault(descriptor.text, descriptor)
    return list(kept.values())


def _describe_mention(link: Link, words: int, qualifier: str) -> str:
    noun = clean_noun(link.hop.object_type) or "subject"
    if words == MENTION_WORDS[0]:
        noun = name_kind(link.hop.object_type, "subject")
    tail = pick(MENTIONS, "mention", link.variety, link.hop.clause, link.subject_type).replace(SLOT, SUBJECT)
    joined = f"{qualifier} {'and ' if _OPENS_CLAUSE.match(qualifier) else ''}" if qualifier else ""
    phrase = f"the {noun} {joined}{tail}".replace("{who}", choose_pronoun(link.hop.object_type))
    return phrase.replace("{clause}", cut_clause(link.hop.clause, words))


def _choose_text(phrases: Sequence[str], link: Link) -> str:
    # "the town where the architect of ... was born" piles up verbs when its subject is long; a phrase that ends with
    # its subject nests well. Half of them may pile up: a question in steps has short subjects.
    flat = [phrase for phrase in phrases if phrase.endswith(SUBJECT)]
    strict = draw_unit("flat", link.variety, link.hop.object_name) < 0.5
    options = flat if link.nested and flat and strict else phrases
    return pick(options, "word", link.variety, link.hop.relation, link.hop.object_name)


def _list_tails(link: Link) -> Iterator[str]:
    wording = _word(link)
    tails = wording.inverses if link.hop.backward else tuple(filter(_CLAUSE.match, wording.tails))
    return (_finish(tail, wording, link.hop) for tail in tails)


def _name(link: Link) -> str:
    return clean_noun(link.hop.object_type) or ("subject" if link.hop.backward else _word(link).noun)


def _word(link: Link) -> RelationWording:
    ends = (link.subject_type, link.hop.object_type)
    return word_relation(link.hop.relation, *(ends[::-1] if link.hop.backward else ends))


def _finish(phrase: str, wording: RelationWording, hop: HopView) -> str:
    return phrase.replace("{who}", choose_pronoun(hop.object_type or wording.noun)).replace(SLOT, SUBJECT)


_ORDINALS = ("", "first", "second", "third", "fourth")
_ROLES = {
    "married|was married to|married to|whom [subject] married": "spouse",
    "is listed as a child of|is the son or daughter of|was the son or daughter of|was a child of|born to": "child",
    "was a parent of|was the father or mother of|fathered|was the father of|gave birth to|was the mother of": "parent",
    "is a sibling of|was a sibling of|was the brother or sister of|brother or sister of": "sibling",
    "supervised the doctorate of|advised the doctoral work of": "doctoral advisor",
    "wrote a doctoral thesis under": "doctoral student",
    "taught|instructed": "teacher",
    "studied under|was a student of": "student",
    "designed|drew the plans for|drew up the design of": "designer",
    "founded|set up|started": "founder",
    "discovered|is credited with the discovery of": "discoverer",
    "leads|is listed as the leader of": "leader",
}
"""Ends of a phrase for a person, before its slot, and what they make of the person."""
_BACK = {words: role for many, role in _ROLES.items() for words in many.split("|")}
_END = re.compile(rf"\b({'|'.join(sorted(map(re.escape, _BACK), key=len, reverse=True))})(?: {re.escape(SUBJECT)})?$")
_COVERED = {
    "person": "person",
    "place": "settlement region",
    "settlement": "settlement",
    "building": "building",
    "structure": "building",
    "organisation": "organisation museum gallery library theatre hospital school",
    "institution": "organisation museum gallery library theatre hospital school",
    "work": "work",
}
"""Kinds and heads of what a general noun may also mean."""


def name_role(text: str) -> str:
    """Return what a descriptor makes of a person, such as ``spouse``, empty when that is not known."""
    found = _END.search(text)
    return _BACK[found[1]] if found else ""


def choose_nouns(nouns: Sequence[str], roles: Sequence[str]) -> list[str]:
    """Return the noun of each entity, or its role where the noun may mean another one that was introduced before.

    Args:
        nouns: of the anchor and each further entity, in the order in which they are introduced.
        roles: of the same, empty where there is none.
    """
    chosen: list[str] = []
    for noun, role in zip(nouns, roles, strict=True):
        clear = not role or not _find_rivals(noun, chosen) or bool(_find_rivals(role, chosen))
        chosen.append(noun if clear else role)
    return chosen


def list_references(nouns: Sequence[str], found: str, variety: str) -> list[str]:
    """Return what each entity is called later, empty where no short phrase is clear.

    ``that town`` is for the only town so far. Others are told apart by the order in which they were introduced, or by
    being the last: a reference is always to the entity that was introduced last.

    Args:
        nouns: of the anchor and each further entity, in the order in which they are introduced.
        found: what was done to the last entity, such as ``reached``.
        variety: decides between phrases that are equally clear.
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
    """Return which of the entities introduced before a noun may mean."""
    covered = set(_COVERED.get(find_head(noun), "").split())
    return [
        index
        for index, other in enumerate(before)
        if noun and other and (find_head(other) == find_head(noun) or covered & _list_kinds(other))
    ]


def _list_kinds(noun: str) -> set[str]:
    if noun in _BACK.values():
        return {"person"}
    head = find_head(noun)
    return {"person", "organisation"} if head in AGENTS else {classify_noun(noun), head}


SOFT = "\ue000"
"""A comma that disappears before other punctuation; no page text can hold it."""

ENDS = (".", "?", "!")
_STEPPED = 0.35
"""Share of questions in which the last entity is a step of its own: ``How long is that river?``"""
_LONG_NOUN = 3
_THAT_SLOT = f" that {SUBJECT}"
_NOUN = re.compile(
    r"the (?P<noun>[\w'’ -]+?)(?=,| (?:who|whom|that|whose|where|which|of|at|in|on|to|for|from|by|with|behind|near"
    r"|around|after|under|over|beneath|across|about|within|between|given|listed|born|built|made|held|kept|known|set|led|run"
    r"|cut|shot|found|written|taught|fought|broadcast|\w+ed|\w+ing|\w+ (?:which|whom)|first|native|nearest|won)\b)",
    re.IGNORECASE,
)
_CALLED = {
    **dict.fromkeys(("birthplace", "home", "scene", "site", "seat", "setting", "location", "finding place"), "place"),
    **dict.fromkeys(("one", "star", "chief influence", "key figure", "relative"), "person"),
    "husband or wife": "spouse",
    "son or daughter": "child",
    "brother or sister": "sibling",
    "alma mater": "institution",
    **dict.fromkeys(("native land", "launch site"), "place"),
    "body": "body of water",
    "twin town": "town",
    "home country": "country",
    "home port": "port",
    "home ground": "ground",
    "chief inflow": "water",
    "main stream": "river",
    "first belligerent": "belligerent",
    "second belligerent": "belligerent",
    "national anthem": "anthem",
    "political party": "party",
    "capital city": "city",
    "notable work": "work",
    "principal settlement": "settlement",
    "parent organisation": "organisation",
    **dict.fromkeys(("source", "chief claim", "larger whole", "mouth"), ""),
}
"""What to call an entity later where the noun of its phrase is odd without the rest; nothing if no noun will do."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One entity in words: its descriptor with the slot, what it is called later, and its name while it has one."""

    text: str
    noun: str
    name: str


@dataclass(frozen=True, slots=True)
class Style:
    """How steps become sentences.

    Attributes:
        openings: start of each sentence with its first step ``{a}``; the last but one and the last take turns.
        links: how the second step ``{b}`` joins the first, in turns.
        found: what was done to an entity once it has been introduced.
        size: steps a sentence, 1 or 2.
    """

    openings: tuple[str, ...]
    links: tuple[str, ...]
    found: str
    size: int = 2


# fmt: off
STYLES: tuple[Style, ...] = (
    Style(("Find {a}", "Next, find {a}", "From there, find {a}"), (", then {b}", ", and then {b}"), "found"),
    Style(("Start from {a}", "Continue to {a}", "Move on to {a}"),
          (" and go on to {b}", ", and from there to {b}"), "reached"),
    Style(("Consider {a}", "Next, consider {a}", "Then consider {a}"),
          (", and then {b}", ", and after that {b}"), "considered"),
    Style(("Take {a}", "After that, take {a}", "Next, take {a}"),
          ("; from there, turn to {b}", ", and turn to {b}"), "reached"),
    Style(("Identify {a}", "Then identify {a}", "After that, identify {a}", "Next, identify {a}"),
          (), "identified", 1),
    Style(("Begin with {a}", "Carry on with {a}", "Go on with {a}"),
          (" and proceed to {b}", ", and then with {b}"), "reached"),
    Style(("Look up {a}", "Then look up {a}", "Next, look up {a}"),
          (", and after that {b}", "; then look up {b}"), "found"),
    Style(("Think of {a}", "Then think of {a}", "Next, think of {a}"),
          (", and next of {b}", ", and then of {b}"), "considered"),
)
# fmt: on


def find_noun(text: str, object_type: str) -> str:
    """Return what a descriptor calls its entity: a noun that stands in it, empty when none can be told."""
    whole = clean_noun(object_type)
    folded = text.casefold()
    if whole and re.match(rf"the {re.escape(whole.casefold())}(?!\w)", folded):
        return whole if " of " not in whole and len(whole.split()) <= _LONG_NOUN else find_head(whole)
    found = _NOUN.match(text)
    noun = found["noun"].strip().casefold() if found else ""
    if noun in AGENTS:
        # Nobody edits or founds an owner.
        return name_kind(whole, noun)
    return _CALLED.get(noun, noun if len(noun.split()) <= _LONG_NOUN else "")


def name_anchor(anchor_type: str) -> str:
    """Return the noun by which a question may call the anchor."""
    noun = clean_noun(anchor_type)
    return name_kind(noun, noun) if classify_noun(noun) == "person" else find_head(noun)


def write_chain(pieces: Sequence[Piece], anchor: str, nouns: Sequence[str], variety: str) -> tuple[str, str]:
    """Return the sentences that lead to the last entity, and the phrase for it.

    Args:
        pieces: the entities after the anchor; at least two.
        anchor: the anchor's name or reference.
        nouns: of the anchor and of every piece.
        variety: decides the style.
    """
    style = pick(STYLES, "style", variety)
    roles = ["", *(name_role(piece.text) for piece in pieces)]
    called = choose_nouns(nouns, roles)
    references = list_references(called, style.found, variety)
    steps: list[str] = []
    for index, piece in enumerate(pieces):
        subject = references[index] if index else anchor
        if subject.startswith("that ") and _THAT_SLOT in piece.text:
            # Not "the opera that that composer wrote".
            subject = f"the {called[index]} just {style.found}"
        phrase = piece.text.replace(SUBJECT, subject or steps.pop())
        steps.append(f"{piece.name}, {phrase}{SOFT}" if piece.name else phrase)
    last = references[-1] if draw_unit("stepped", variety) < _STEPPED else ""
    last = last or steps.pop()
    return _write_steps(steps, style), last


def _write_steps(steps: Sequence[str], style: Style) -> str:
    sentences = []
    for number, start in enumerate(range(0, len(steps), style.size)):
        opening = style.openings[number if number < len(style.openings) else -1 - number % 2]
        sentence = opening.replace("{a}", steps[start])
        for step in steps[start + 1 : start + style.size]:
            sentence += style.links[number % len(style.links)].replace("{b}", step)
        sentence = sentence.rstrip(SOFT)
        sentences.append(sentence if sentence.endswith(ENDS) else f"{sentence}.")
    return " ".join(sentences)


_WHEN: dict[str, tuple[str, ...]] = {
    "day": ("On what date", "On which date", "On what day, month and year"),
    "month": ("In what month and year", "In which month of which year"),
    "year": ("In what year", "In which year"),
}
_EVENT: dict[str, tuple[str, ...]] = {
    "day": ("What is the exact date of {e}", "What is the full date of {e}", "Which date saw {e}"),
    "month": ("What were the month and year of {e}", "Which month of which year saw {e}"),
    "year": ("Which year saw {e}", "What was the year of {e}", "What year is given for {e}"),
}
_FRAMES = 4
_LISTED: dict[str, str] = {"day": "exact date", "month": "month and year", "year": "year"}


def list_frames(key: str, answer: Answer, subject_type: str) -> tuple[str, ...]:
    """Return the questions that ask for an attribute at the answer's precision and in its unit.

    Args:
        key: infobox key of the attribute.
        answer: typed answer; only its type, precision and unit are used.
        subject_type: noun of the entity that has the attribute.

    Returns:
        At least four questions ending with ``?``, each with one ``{s}``.
    """
    row = find_attribute(key, subject_type)
    noun = split_key(key) if row is None else row.noun
    if answer.type == "date":
        frames = _ask_date(row, noun, answer.precision or "year")
    elif answer.type == "number":
        frames = _ask_number(row, noun, answer.unit)
    elif row is not None:
        frames = _ask_word(row)
    else:
        relation = find_relation(key, subject_type, "")
        frames = _ask_listed(noun) if relation is None else _ask_relation(relation)
    return tuple(f"{frame}?" for frame in frames)


def _ask_date(row: AttributeWording | None, noun: str, precision: str) -> list[str]:
    if row is None or row.form != "date":
        listed = _LISTED[precision]
        return [
            f"What {listed} is given as the {noun} of {SLOT}",
            f"What {listed} is listed as the {noun} of {SLOT}",
            f"What {listed} does the article give as the {noun} of {SLOT}",
            f"Under the heading “{noun}”, what {listed} is given for {SLOT}",
        ]
    event = f"the {noun} of {SLOT}" if noun else SLOT
    inverted = [f"{when} {ask}" for when in _WHEN[precision] for ask in row.asks]
    return [*inverted, *(frame.replace("{e}", event) for frame in _EVENT[precision])]


def _ask_number(row: AttributeWording | None, noun: str, unit: str) -> list[str]:
    asks = row.asks if row is not None and row.form == "number" else ()
    noun = noun or "number"
    plain = [ask for ask in asks if "{unit}" not in ask]
    if not is_known_unit(unit):
        # "4,210 inhabitants" counts things; asking for the population "in inhabitants" would be odd.
        counted = [f"How many {unit} are given as the {noun} of {SLOT}"] if unit and not plain else []
        spare = (f"What figure is given as the {noun} of {SLOT}", f"What is recorded as the {noun} of {SLOT}")
        return _fill([*plain, *counted, f"What is the {noun} of {SLOT}"], (*spare, f"Which {noun} is given for {SLOT}"))
    name = name_unit(unit)
    natural = [
        *(ask.replace("{unit}", name) for ask in asks if "{unit}" in ask),
        f"In {name}, what is the {noun} of {SLOT}",
        f"What is the {noun} of {SLOT}, in {name}",
    ]
    return _fill(natural, (f"What is the {noun}, in {name}, of {SLOT}", f"What {noun}, in {name}, is given for {SLOT}"))


def _ask_word(row: AttributeWording) -> list[str]:
    asks = list(row.asks) if row.form == "word" else []
    noun = row.noun or "date"
    spare = (f"What is given as the {noun} of {SLOT}", f"What {noun} is given for {SLOT}")
    return _fill([*asks, f"What is the {noun} of {SLOT}"], (*spare, f"What is listed as the {noun} of {SLOT}"))


def _fill(frames: Sequence[str], spare: Sequence[str]) -> list[str]:
    """Return the frames, with as many clumsier ones as make four of them."""
    distinct = list(dict.fromkeys(frames))
    return [*distinct, *(frame for frame in spare if frame not in distinct)][: max(len(distinct), _FRAMES)]


def _ask_listed(noun: str) -> list[str]:
    return [
        f"What is given as the {noun} of {SLOT}",
        f"What is listed as the {noun} of {SLOT}",
        f"What does the article give as the {noun} of {SLOT}",
        f"Under the heading “{noun}”, what is given for {SLOT}",
    ]


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


_SOFT_BEFORE_MARK = re.compile(f"{SOFT}+(?=[,.;:?!)”])")
_SOFT_RUN = re.compile(f"{SOFT}+")
_SHORT_PATH = 2
_LONGEST_NESTED = 4
_NESTED = {0: 1.0, 1: 1.0, 2: 1 / 3}
"""Share of paths by length that are told in one sentence; of longer ones as many as take any one style of steps."""
_SHORT_PHRASE = 9
_LONG_PHRASE = 12
"""Words of a subject after which several words, or one, may still follow."""
_LONGEST_PHRASE = 28
"""Words of a subject that holds others."""


def compose_question(path: WriteQuestionInputs, hidden: Sequence[str], anchor: str) -> str:
    """Return the question.

    Args:
        path: with names, relations and the attribute asked for.
        hidden: descriptor of each node after the anchor, empty while it is named; shorter means none for the rest.
        anchor: the anchor's name or what stands for it.
    """
    hidden = pad_descriptors(hidden, len(path.hops))
    pieces = [_make_piece(path, index, given) for index, given in enumerate(hidden)]
    types = [path.anchor_type, *(hop.object_type for hop in path.hops)]
    if _is_nested(path.variety, pieces):
        intro, phrase = "", _nest(pieces, anchor)
        flat = len(pieces) <= _SHORT_PATH and all(piece.text.endswith(SUBJECT) for piece in pieces)
        flat = flat and len(phrase.split()) <= _LONG_PHRASE
    else:
        nouns = [name_anchor(path.anchor_type), *(find_noun(p.text, t) for p, t in zip(pieces, types[1:], strict=True))]
        intro, phrase = write_chain(pieces, anchor, nouns, path.variety)
        flat = (
            len(phrase.split()) <= _SHORT_PHRASE and not phrase.endswith(anchor) and pieces[-1].text.endswith(SUBJECT)
        )
    frame = _choose_frame(path, types[-1], 1 if flat else 0)
    if intro and len(phrase.split()) <= _LONGEST_NESTED:
        frame = _choose_frame(path, types[-1], _SHORT_PHRASE)
    return _punctuate(f"{intro} {frame.replace(SLOT, phrase)}".lstrip())


def pad_descriptors(descriptors: Sequence[str], length: int) -> tuple[str, ...]:
    """Return exactly so many descriptors, empty ones for those that are not given."""
    return (*descriptors, *([""] * length))[:length]


def _make_piece(path: WriteQuestionInputs, index: int, given: str) -> Piece:
    hop = path.hops[index]
    before = path.hops[index - 1].object_type if index else path.anchor_type
    names = [path.anchor_name, *(hop.object_name for hop in path.hops)]
    safe = hop.model_copy(update={"clause": elide_names(hop.clause, names)})
    text = given or describe_hop(Link(safe, before, before != path.anchor_type, path.variety))
    named = not given and index + 1 < len(path.hops)
    return Piece(text, find_noun(text, hop.object_type), hop.object_name if named else "")


def _is_nested(variety: str, pieces: Sequence[Piece]) -> bool:
    share = _NESTED.get(len(pieces), 1 / (len(STYLES) + 1) if len(pieces) <= _LONGEST_NESTED else 0.0)
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
            phrase = f"{piece.name}, {phrase}{SOFT}"
    return phrase


def _choose_frame(path: WriteQuestionInputs, subject_type: str, words_after: int) -> str:
    frames = list_frames(path.answer_relation, path.answer, subject_type)
    # A long phrase reads better at the end: "was the town where the architect was born founded" piles up verbs.
    short = [frame for frame in frames if len(frame.partition(SLOT)[2].strip("?").split()) <= words_after]
    return pick(short or frames, "frame", path.variety, path.answer_relation)


def _punctuate(text: str) -> str:
    text = _SOFT_RUN.sub(",", _SOFT_BEFORE_MARK.sub("", text))
    return text.replace("??", "?").replace("!?", "?") if text.endswith(("??", "!?")) else text


SENTENCES = 5
LONGEST = 280
"""Characters of a sentence; five fit into a summary."""


def summarise_page(page: SummariseInputs) -> str:
    """Return the title and at most five sentences or lines that fit the goal, in their order."""
    chosen = choose_sentences(page.text.replace(GAP, ""), page.goal, SENTENCES)
    return "\n".join((f"About {page.title}:", *(cut_text(sentence, LONGEST) for sentence in chosen)))


_SHORT_WORD = 4


def ask_fact(entity: AskFactInputs) -> AskedFactReply:
    """Return a question for the fact that is hardest to guess; several as hard are told apart by ``variety``.

    A fact that is no single typed value is not asked for, and one whose value stands in the entity's name only for want
    of others: the name will be hidden. With none left the reply is empty, and whoever asked refuses it.
    """
    choices = []
    for fact in entity.facts:
        answer = type_answer(fact.text, "", fact.relation)
        if answer is not None:
            draw = draw_unit("ask", entity.variety, entity.name, fact.relation, fact.text)
            told = _share_words([fact.text], entity.name)
            choices.append(((told, _grade_question(entity.type, fact, answer), draw), fact, answer))
    if not choices:
        return AskedFactReply(relation="", question="")
    _, fact, answer = min(choices, key=lambda choice: choice[0])
    asked = WriteQuestionInputs(
        anchor_name=entity.name,
        anchor_type=entity.type,
        hops=(),
        answer_relation=fact.relation,
        answer=answer,
        variety=entity.variety,
    )
    return AskedFactReply(relation=fact.relation, question=compose_question(asked, (), entity.name))


def select_entity(step: SelectEntityInputs) -> SelectedEntityReply:
    """Return one of the entities that stand in the question, empty when none does."""
    named = [name for name in step.entities if name and name in step.question]
    # A name inside a longer one that stands there too, such as Kelm in Kelm Bridge, may not be said at all.
    whole = [name for name in named if not any(name != other and name in other for other in named)]
    ranked = sorted(whole, key=lambda name: draw_unit("select", step.variety, name))
    return SelectedEntityReply(entity=ranked[0] if ranked else "")


def extract_fact(step: ExtractFactInputs) -> ExtractedFactReply:
    """Return the fact whose object the fewest articles link to, empty when there is none.

    Facts whose object shares a word with the entity's name come last: a question would give the name away.
    """

    def rank(fact: OfferedFact) -> tuple[bool, int, bool, float]:
        known = find_relation(fact.relation, step.type, fact.object_type) is not None
        draw = draw_unit("extract", step.variety, step.name, fact.relation, fact.object_name)
        return _share_words([fact.object_name], step.name), fact.in_degree, not known, draw

    if not step.facts:
        return ExtractedFactReply(relation="", object_name="")
    best = min(step.facts, key=rank)
    return ExtractedFactReply(relation=best.relation, object_name=best.object_name)


def _grade_question(kind: str, fact: FactView, answer: Answer) -> int:
    """Return 0 for exact dates, measures and distinctive words, 1 for months and counts, 2 for what is easily guessed.

    A key without words of its own comes after all others.
    """
    if answer.type == "date":
        grade = ("day", "month", "year").index(answer.precision or "year")
    elif answer.type == "number":
        grade = 0 if answer.unit else 1
    else:
        grade = 0 if len(answer.surface.split()) > 1 else 2
    row = find_attribute(fact.relation, kind)
    return grade if row is not None else grade + 3


def _share_words(texts: Iterable[str], name: str) -> bool:
    words = {word for word in fold_name(name).split() if len(word) >= _SHORT_WORD}
    return any(words & set(fold_name(text).split()) for text in texts)


_REFERENCES = (
    "the {noun} in the image",
    "the {noun} shown in the image",
    "the {noun} pictured in the image",
    "the {noun} seen in the image",
    "the {noun} in this image",
)
_NOT_HUMAN = frozenset(["character", "deity", "god", "goddess"])
_SPECIES_OF = re.compile(r"^(?:species|genus|breed|kind|type) of ", re.IGNORECASE)
_CAN_DO = (
    "write_question, propose_descriptors, rewrite_question, refer_to_anchor, ask_fact, select_entity, extract_fact and "
    "summarise"
)

VERSION = 1
"""Raised when the writer answers otherwise to the same request."""


@dataclass(frozen=True, slots=True)
class TemplatesModel:
    """A writer and rewriter that needs no model. It answers from ``ChatRequest.inputs``."""

    @property
    def name(self) -> str:
        """``templates``."""
        return "templates"

    @property
    def identity(self) -> str:
        """``templates`` and a digest of the source of its words and rules: any change of wording is a new backend."""
        return f"templates:{VERSION}"

    @property
    def reads_inputs(self) -> bool:
        """Always: the messages are not looked at."""
        return True

    async def chat(self, request: ChatRequest) -> ChatReply:
        """Return the task's reply as JSON, a summary as text. No tokens are counted, for none are paid.

        Raises:
            ConfigError: if the task is not one of those that templates can do.
        """
        if isinstance(request.inputs, SummariseInputs):
            return ChatReply(summarise_page(request.inputs), 0, 0)
        return ChatReply(canonical_json(_reply(request)), 0, 0)


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
        case SelectEntityInputs() as choice:
            return select_entity(choice)
        case ExtractFactInputs() as choice:
            return extract_fact(choice)
    name = type(request.inputs).__name__
    raise ConfigError(f"model templates: task {request.task} with {name}; it can do {_CAN_DO}")


def write_question(path: WriteQuestionInputs) -> str:
    """Return the canonical question: anchor and bridges named, the answer node only described."""
    return compose_question(path, (), path.anchor_name)


def propose_descriptors(bridge: ProposeDescriptorsInputs) -> DescriptorsReply:
    """Return at most ``count`` descriptors, weakest first."""
    link = Link(bridge.hop, bridge.subject_type, bridge.subject_type != bridge.anchor_type, bridge.variety)
    return DescriptorsReply(descriptors=tuple(propose_candidates(link, bridge.facts, bridge.count)))


def rewrite_question(step: RewriteQuestionInputs) -> str:
    """Return the question with one more entity hidden behind its descriptor."""
    hidden = list(pad_descriptors(step.descriptors, len(step.path.hops)))
    anchor = step.path.anchor_name
    if step.node == 0:
        anchor = step.descriptor
    else:
        hidden[step.node - 1] = step.descriptor
    return compose_question(step.path, hidden, anchor)


def refer_to_anchor(step: ReferToAnchorInputs) -> str:
    """Return the question with a reference to the picture in place of the anchor's name."""
    noun = _SPECIES_OF.sub("", clean_noun(step.anchor_type)) or "subject"
    if classify_noun(noun) == "person" and find_head(noun) not in _NOT_HUMAN:
        # A picture shows a person; that it is a painter is knowledge about them.
        noun = "person"
    reference = pick(_REFERENCES, "refer", step.path.variety, step.path.anchor_name).replace("{noun}", noun)
    return compose_question(step.path, step.descriptors, reference)
