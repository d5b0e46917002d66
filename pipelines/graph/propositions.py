"""Propositions: what the sentences of a page state of its own subject, read by a model and held to its spans.

A model sees the numbered sentences of a page and what each links to. It writes down relations from the page's subject
to a linked article, a date, a number or a name, each with the words that state it. What does not stand in its sentence
as written is dropped here, without a model: an object that is not linked there, words that are not its own, a gloss
that names somebody. A proposition is a hop or an answer only if its subject has one such object, for good.
"""

import itertools
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pipelines.corpus.dump import strip_qualifier
from pipelines.corpus.store import Corpus, Fact
from pipelines.corpus.wikitext import WikiLink, plain_text
from pipelines.graph.answers import is_date_key, make_answer, type_answer
from pipelines.graph.facts import Attribute, fold_names, holds_phrase, name_answer
from pipelines.graph.prose import (
    BLANK,
    MAX_WORDS,
    Clause,
    Sentence,
    blank_link,
    list_blanked,
    list_edge_links,
    list_prose,
    quotes,
)
from pipelines.graph.relations import find_relation
from pipelines.graph.values import Date, Number, Spot, find_dates, find_measures
from pipelines.names import fold_name
from schemas.proofs import Answer
from schemas.tasks import LinkedObject, PassageLine, StatedRelation

LONGEST_GLOSS = 7
"""Words of a gloss, at most: a longer one repeats its sentence."""
LEAST_WORDS = 4
"""Words of a quotation, its blank among them; of a shorter one the whole sentence is quoted."""
VALUE = "value"
_NAMED = r"(?:(?:[^\W\d_a-z]\.)+ ?)?[^\W\d_a-z][\w-]*(?:['’](?!s\b)\w+)*"
_NAME = re.compile(rf"(?<![\w.]){_NAMED}(?:(?: (?:of the|of|the|de|da|di|la|le|von|van|der|den))? {_NAMED})*(?!\w)")
"""Capitalised words with their initials, and particles between them; "and" joins two names."""
_GLOSS = re.compile(r"[a-z][a-z' -]*")
_PRONOUNS = frozenset("he she it they his her its their hers theirs him them who which whose".split())


@dataclass(frozen=True, slots=True)
class Line:
    """A sentence of a page with the articles that it links to, each with its id and link."""

    sentence: Sentence
    links: tuple[tuple[str, int, WikiLink], ...]


@dataclass(frozen=True, slots=True)
class Proposition:
    """One relation that a sentence of a page states of the page's subject."""

    node: int
    gloss: str
    """The relation in plain words, from the subject to the object."""
    target: int
    """Node of the linked object; -1 for a date, a number or a name without a link."""
    link: WikiLink | None
    clause: Clause
    """The words that state it with the object blanked, and the span of their sentence; a path masks its names later."""
    answer: Answer
    """The object as a typed answer."""
    only: bool
    """Whether the subject has one such object."""
    lasting: bool
    """Whether it stays true."""

    @property
    def field(self) -> str:
        """Infobox key that means the same, or empty."""
        return find_field(self.gloss, self.answer)

    @property
    def relation(self) -> str:
        """The key of the relation: of the infobox field, else the words of the gloss."""
        return name_gloss(self.gloss, self.answer)

    @property
    def single(self) -> bool:
        """Whether it leads to one object for good, so that a question may go by it."""
        return self.only and self.lasting


def find_field(gloss: str, answer: Answer) -> str:
    """Return the infobox key that means the same as a gloss: "died on" is no date where it leads to an island."""
    field = find_relation(gloss)
    return field if is_date_key(field) == (answer.type == "date") else ""


def name_gloss(gloss: str, answer: Answer) -> str:
    """Return the key of a relation that a sentence states: of the infobox field, else the words of the gloss."""
    return find_field(gloss, answer) or "_".join(gloss.split())


def list_lines(corpus: Corpus, node: int, count: int) -> tuple[Line, ...]:
    """Return the first ``count`` sentences of an article's prose with the articles that they link to."""
    links = [(target, link) for target, link in list_edge_links(corpus, node) if target != node]
    lines, number = [], itertools.count(1)
    for sentence in list_prose(corpus, node)[:count]:
        inside = (each for each in links if sentence.start <= each[1].start and each[1].end <= sentence.end)
        lines.append(Line(sentence, tuple((f"l{next(number)}", target, link) for target, link in inside)))
    return tuple(lines)


def view_lines(corpus: Corpus, lines: Sequence[Line]) -> tuple[PassageLine, ...]:
    """Return lines as a model is shown them."""
    return tuple(
        PassageLine(
            text=line.sentence.text,
            objects=tuple(
                LinkedObject(id=each, name=corpus.page(target).title, type=corpus.page(target).type)
                for each, target, _ in line.links
            ),
        )
        for line in lines
    )


def place_relations(
    corpus: Corpus, node: int, lines: Sequence[Line], stated: Sequence[StatedRelation]
) -> tuple[Proposition, ...]:
    """Return the relations that stand in their sentences; of one relation with several objects none is single."""
    found = [each for one in stated if (each := _place(corpus, node, lines, one)) is not None]
    objects: dict[str, set[str]] = defaultdict(set)
    for each in found:
        objects[each.relation].add(each.answer.key)
    kept = dict.fromkeys(replace(each, only=each.only and len(objects[each.relation]) == 1) for each in found)
    return tuple(kept)


def _place(corpus: Corpus, node: int, lines: Sequence[Line], stated: StatedRelation) -> Proposition | None:
    line = lines[stated.sentence - 1] if 0 < stated.sentence <= len(lines) else None
    gloss = " ".join(stated.relation.split()).strip(" .,;:")
    if line is None or not _holds(line.sentence.text, stated.words) or not _is_gloss(gloss):
        return None
    if not _speaks_of(corpus, node, line.sentence):
        return None
    found = _find_object(corpus, node, line, stated)
    if found is None:
        return None
    target, link, clause, answer = found
    return Proposition(node, gloss, target, link, clause, answer, stated.only, stated.lasting)


def _is_gloss(gloss: str) -> bool:
    return 0 < len(gloss.split()) <= LONGEST_GLOSS and _GLOSS.fullmatch(gloss) is not None


def _holds(text: str, words: str) -> bool:
    folded = fold_name(words)
    return bool(folded) and holds_phrase(fold_name(text), folded)


def _speaks_of(corpus: Corpus, node: int, sentence: Sentence) -> bool:
    if sentence.lead:
        return True
    folded = fold_name(sentence.text)
    page = corpus.page(node)
    if any(holds_phrase(folded, name) for name in fold_names(corpus, node)):
        return True
    told = folded.split()
    nouns = {word for noun in (page.type, page.lead_type) for word in fold_name(noun).split()[-1:]}
    short = {word for word in fold_name(strip_qualifier(page.title)).split() if len(word) > 3}
    return not _PRONOUNS.isdisjoint(told) or not nouns.isdisjoint(told) or not short.isdisjoint(told)


def _find_object(
    corpus: Corpus, node: int, line: Line, stated: StatedRelation
) -> tuple[int, WikiLink | None, Clause, Answer] | None:
    if stated.object == VALUE:
        return _find_value(line.sentence, stated)
    page = corpus.text(node)
    for each, target, link in line.links:
        if each == stated.object:
            shown = plain_text(page[link.start : link.end])
            clause = _quote(line.sentence, blank_link(page, line.sentence, link), stated.words, shown)
            return None if clause is None else (target, link, clause, name_answer(corpus, target))
    return None


def _find_value(sentence: Sentence, stated: StatedRelation) -> tuple[int, None, Clause, Answer] | None:
    wanted = fold_name(stated.value)
    held = [spot for spot in list_values(sentence.text) if holds_phrase(wanted, fold_name(spot.shown))]
    longest = max((len(spot.shown) for spot in held), default=0)
    spots = [spot for spot in held if len(spot.shown) == longest]
    # A part of a name is another name, and a number without its noun counts nothing.
    if len(spots) != 1 or (spots[0].answer.type != "date" and fold_name(spots[0].shown) != wanted):
        return None
    clause = _quote(sentence, spots[0].blank(sentence.text), stated.words, spots[0].shown)
    return None if clause is None else (-1, None, clause, spots[0].answer)


def _quote(sentence: Sentence, blanked: str, words: str, shown: str) -> Clause | None:
    told = " ".join(words.split()).rstrip(" .,;:")
    for match in re.finditer(re.escape(shown), told):
        text = f"{told[: match.start()]}{BLANK}{told[match.end() :]}"
        if text not in blanked:
            continue
        # Few words stand in many places.
        text = text if len(text.split()) >= LEAST_WORDS else blanked
        if len(text.split()) <= MAX_WORDS:
            return Clause(text, sentence.start, sentence.end)
    return None


@dataclass(frozen=True, slots=True)
class ShownValue:
    """A date, number or name in a text."""

    start: int
    end: int
    shown: str
    answer: Answer

    def blank(self, text: str) -> str:
        """Return the text with the value blanked."""
        return f"{text[: self.start]}{BLANK}{text[self.end :]}"


def list_values(text: str) -> Iterator[ShownValue]:
    """Yield the dates of a text, the numbers outside of them, and the runs of capitalised words outside of both."""
    spots: list[Spot[Date] | Spot[Number]] = [*find_dates(text), *find_measures(text)]
    found: list[tuple[int, int, Answer | None]] = [
        (spot.start, spot.end, make_answer(text[spot.start : spot.end], spot.value)) for spot in spots
    ]
    found += [(*match.span(), type_answer(match[0], "", "")) for match in _NAME.finditer(text)]
    taken: list[tuple[int, int]] = []
    for start, end, answer in found:
        if answer is not None and not any(begun < end and start < ended for begun, ended in taken):
            taken.append((start, end))
            yield ShownValue(start, end, text[start:end], answer)


def state_answer(corpus: Corpus, proposition: Proposition) -> Attribute:
    """Return a proposition as an attribute that may be asked for."""
    link_start = proposition.link.start if proposition.link else -1
    fact = _make_fact(proposition.node, proposition.relation, proposition.clause, proposition.answer, link_start,
                      proposition.target)  # fmt: skip
    return Attribute(fact, proposition.answer, proposition.gloss, proposition.clause.text)


def _make_fact(node: int, key: str, clause: Clause, answer: Answer, link_start: int, target: int) -> Fact:
    span = clause.start, clause.end
    return Fact(node, key, *span, 0, 1, answer.surface, "", *span, link_start, target)


def read_clause(corpus: Corpus, node: int, clause: str, key: str, names: Sequence[str]) -> tuple[Attribute, ...]:
    """Return what fills the blank of a quotation on a page: linked articles, else dates, numbers, names; or nothing."""
    found = []
    for target, link, blanked in list_blanked(corpus, node):
        if quotes(clause, blanked.text, names):
            answer = name_answer(corpus, target)
            found.append(Attribute(_make_fact(node, key, blanked, answer, link.start, target), answer, "", clause))
    for sentence in list_prose(corpus, node) if not found else ():
        for value in list_values(sentence.text):
            text = value.blank(sentence.text)
            if quotes(clause, text, names):
                place = Clause(text, sentence.start, sentence.end)
                found.append(Attribute(_make_fact(node, key, place, value.answer, -1, -1), value.answer, "", clause))
    return tuple(found)
