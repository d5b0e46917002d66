"""Descriptors: phrases that point at an entity by its place in the chain, its type and its facts."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from pipelines.backends.phrases import pick, word_relation
from pipelines.backends.phrases_clauses import cut_clause
from pipelines.backends.phrases_facts import EXACT, WEAK, add_clauses, grade_fact, list_usable_facts, qualify_fact
from pipelines.backends.phrases_nouns import choose_pronoun, clean_noun, name_kind
from pipelines.backends.phrases_shapes import SLOT, RelationWording
from pipelines.backends.phrases_things import MENTIONS
from pipelines.ids import draw_unit
from schemas.tasks import SUBJECT, Descriptor, FactView, HopView

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
