"""Descriptors: phrases that point at an entity by its place in the chain, its type and its facts."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.backends.phrases import find_attribute, pick, split_key, word_relation
from pipelines.backends.phrases_nouns import classify_noun, clean_noun, name_kind
from pipelines.backends.phrases_shapes import SLOT, RelationWording
from pipelines.backends.phrases_things import MENTIONS
from pipelines.ids import draw_unit
from schemas.tasks import SUBJECT, Descriptor, FactView, HopView

BLANK = "____"
MENTION_WORDS = (10, 16, 25)
"""Words of the clause that are quoted, weakest descriptor first."""

_MAX_FACT_WORDS = 6
_RELATIVE = re.compile(r"^(?:\{who\}|that|where|\w+ (?:which|whom)) ")
_OPENS_CLAUSE = re.compile(r"^(?:\{who\}|who|that|whose) ")
_UNSAFE = re.compile(r"[\[\]{}<>|?;“”\"\n\ue000-\uf8ff]|\.\.|http|_")
_SPACED_MARK = re.compile(r" +([,.;:!)])")
_DAY = re.compile(r"\b\d{1,2}(?:st|nd|rd|th)?,? +(?:of +)?[A-Z][a-z]+|\b[A-Z][a-z]+ +\d{1,2}\b(?!\d)|^\d{4}-\d\d-\d\d$")
_NAMING = (
    "name names fullname nickname nicknames title caption image logo alt map flag coat signature website url "
    "homepage coordinates coord footnotes footnote ref isbn oclc issn code abbreviation acronym demonym alias "
    "aliases module embed pseudonym taxon binomial synonyms"
)
_STRENGTH = {"word": 0, "date": 1, "number": 2}


@dataclass(frozen=True, slots=True)
class Link:
    """The hop that ends at the entity to be described, and what else its wording depends on.

    Attributes:
        subject_type: type of the entity the hop leaves.
        nested: the subject is surely not the anchor, so that a long phrase stands in its slot.
        variety: decides between wordings that fit equally well.
    """

    hop: HopView
    subject_type: str
    nested: bool
    variety: str


def propose_candidates(link: Link, facts: Sequence[FactView]) -> list[Descriptor]:
    """Return descriptors of the object of a hop, weakest first: relation, then type, then one fact each.

    A fact is left out when its text is long, holds markup, may hold the object's name, or its key names things.
    Facts that many entities share (words, then dates, then numbers) come first.
    """
    hop = link.hop
    if hop.relation == "mentions":
        texts = [_describe_mention(link, words, "") for words in MENTION_WORDS]
    else:
        wording = word_relation(hop.relation, link.subject_type, hop.object_type)
        texts = [_choose_text(list_plain(wording, hop), link), _choose_text(list_typed(wording, hop), link)]
    descriptors = [Descriptor(text=text) for text in dict.fromkeys(texts)]
    for fact in _order_facts(link, facts):
        text = _describe_qualified(link, qualify_fact(fact, hop.object_type))
        descriptors.append(Descriptor(text=text, facts=(fact,)))
    return descriptors


def describe_hop(link: Link) -> str:
    """Return one descriptor without facts, as the canonical question uses it."""
    return pick(propose_candidates(link, ()), "describe", link.variety, link.hop.relation, link.hop.object_name).text


def list_plain(wording: RelationWording, hop: HopView) -> list[str]:
    """Return the wordings that do not tell the object's type: ``the architect of [subject]``."""
    one = name_kind(hop.object_type, wording.noun)
    phrases = [*wording.plains, *(f"the {one} {tail}" for tail in wording.tails)]
    return [_finish(phrase, wording, hop) for phrase in phrases]


def list_typed(wording: RelationWording, hop: HopView) -> list[str]:
    """Return the wordings that tell the object's type: ``the town where [subject] was born``."""
    noun = clean_noun(hop.object_type) or wording.noun
    return [_finish(f"the {noun} {tail}", wording, hop) for tail in wording.tails]


def qualify_fact(fact: FactView, object_type: str) -> str:
    """Return a fact as a phrase that follows a noun: ``born in 1931``, ``built of granite``."""
    value = " ".join(fact.text.split())
    row = find_attribute(fact.relation, object_type)
    if row is None or not row.qualifier:
        return f"whose {split_key(fact.relation)} is {value}"
    if row.form != "date":
        return row.qualifier.replace("{v}", value)
    return f"{row.qualifier} {'on' if _DAY.search(value) else 'in'} {value}"


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


def _describe_mention(link: Link, words: int, qualifier: str) -> str:
    noun = clean_noun(link.hop.object_type) or "subject"
    if words == MENTION_WORDS[0]:
        noun = name_kind(link.hop.object_type, "subject")
    tail = pick(MENTIONS, "mention", link.variety, link.hop.clause, link.subject_type).replace(SLOT, SUBJECT)
    who = _choose_pronoun(link.hop.object_type)
    phrase = f"the {noun} {_join(qualifier)}{tail}".replace("{who}", who)
    return phrase.replace("{clause}", cut_clause(link.hop.clause, words))


def _describe_qualified(link: Link, qualifier: str) -> str:
    hop = link.hop
    if hop.relation == "mentions":
        return _describe_mention(link, MENTION_WORDS[-1], qualifier)
    wording = word_relation(hop.relation, link.subject_type, hop.object_type)
    noun = clean_noun(hop.object_type) or wording.noun
    tails = [tail for tail in wording.tails if _RELATIVE.match(tail)]
    return _choose_text([_finish(f"the {noun} {_join(qualifier)}{tail}", wording, hop) for tail in tails], link)


def _join(qualifier: str) -> str:
    # Two relative clauses in a row need a conjunction: "who died in 1931 and who designed".
    return f"{qualifier} {'and ' if _OPENS_CLAUSE.match(qualifier) else ''}" if qualifier else ""


def _choose_text(phrases: Sequence[str], link: Link) -> str:
    # "the town where the architect of ... was born" piles up verbs when its subject is long; a phrase that ends with
    # its subject nests well.
    flat = [phrase for phrase in phrases if phrase.endswith(SUBJECT)]
    options = flat if link.nested and flat else phrases
    return pick(options, "word", link.variety, link.hop.relation, link.hop.object_name)


def _finish(phrase: str, wording: RelationWording, hop: HopView) -> str:
    return phrase.replace("{who}", _choose_pronoun(hop.object_type or wording.noun)).replace(SLOT, SUBJECT)


def _choose_pronoun(noun: str) -> str:
    return "who" if classify_noun(noun) == "person" else "that"


def _order_facts(link: Link, facts: Sequence[FactView]) -> list[FactView]:
    def rank(fact: FactView) -> tuple[int, float]:
        grade = _grade_fact(fact, link.hop.object_type)
        return grade, draw_unit("fact", link.variety, fact.relation, fact.text)

    return sorted((fact for fact in facts if _is_usable(link.hop, fact)), key=rank)


def _grade_fact(fact: FactView, object_type: str) -> int:
    row = find_attribute(fact.relation, object_type)
    if row is None:
        return 4
    return 3 if row.form == "date" and _DAY.search(fact.text) else _STRENGTH[row.form]


def _is_usable(hop: HopView, fact: FactView) -> bool:
    words = fact.text.split()
    if not 1 <= len(words) <= _MAX_FACT_WORDS or _UNSAFE.search(fact.text):
        return False
    if set(_NAMING.split()) & set(split_key(fact.relation).split()):
        return False
    spoken = {word.strip(".,()'’").casefold() for word in words}
    return not any(part.casefold() in spoken for part in re.findall(r"\w{4,}", hop.object_name))
