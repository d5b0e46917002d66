"""Propositions: what the sentences of a page state of its own subject, read by a model and held to its spans.

A model sees the numbered sentences of a page and what each links to. It writes down relations from the page's subject
to a linked article, a date, a number or a name, each with the words that state it, and only where the subject has one
such object, for good. What does not stand in its sentence as written is dropped here, without a model: an object that
is not linked there, words that are not its own, a gloss that names somebody, a relation with two objects. Of whom the
sentence speaks, the model decides: of 29 sentences without the subject's name in 281 real ones 27 were about it.
"""

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipelines.corpus.store import Corpus, Fact
from pipelines.corpus.wikitext import WikiLink
from pipelines.graph.answers import is_date_key, make_answer, type_answer
from pipelines.graph.facts import Attribute, holds_phrase, name_answer
from pipelines.graph.prose import (
    BLANK,
    CAPITAL,
    DEMONYM,
    MASK,
    MAX_WORDS,
    NAME,
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

Span = tuple[int, int]
LEAST_WORDS = 4
"""Words of a quotation, its blank among them; fewer stand in many places."""
VALUE = "value"
_PIECE = re.compile(r".+?(?:[,;)—–](?= |$)| (?=_{5})|$)")
_CAPITALS = re.compile(rf"(?<!\w){CAPITAL}(?!\w)")
_GLOSS = re.compile(rf"[a-z][a-z'-]*(?: (?:[a-z][a-z'-]*|{DEMONYM}(?= ))){{0,6}}")
"""A gloss has at most seven words, as its prompt says, and names nobody; "first European" limits it."""


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

    @property
    def field(self) -> str:
        """Infobox key that means the same, or empty."""
        return find_field(self.gloss, self.answer)

    @property
    def relation(self) -> str:
        """The key of the relation: of the infobox field, else the words of the gloss."""
        return name_gloss(self.gloss, self.answer)


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
    """Return the relations that stand in their sentences, without those of several objects."""
    placed = [each for one in stated if (each := _place(corpus, node, lines, one)) is not None]
    found = {(each.relation, each.answer.key): each for each in placed}
    objects = Counter(relation for relation, _ in found)
    return tuple(each for each in found.values() if objects[each.relation] == 1)


def _place(corpus: Corpus, node: int, lines: Sequence[Line], stated: StatedRelation) -> Proposition | None:
    line = lines[stated.sentence - 1] if 0 < stated.sentence <= len(lines) else None
    gloss = " ".join(stated.relation.split()).strip(" .,;:")
    words = " ".join(stated.words.split()).rstrip(" .,;:")
    start = line.sentence.text.find(words) if line and words else -1
    if line is None or start < 0 or not _GLOSS.fullmatch(gloss):
        return None
    text, end = line.sentence.text, start + len(words)
    for each, target, link in line.links:
        before, _, after = blank_link(corpus.text(node), line.sentence, link).partition(BLANK)
        spot = len(before), len(text) - len(after)
        if each == stated.object and start < spot[1] and spot[0] < end:
            clause = _quote(line.sentence, spot, (start, end), spot)
            return Proposition(node, gloss, target, link, clause, name_answer(corpus, target))
    value = _find_value(text, stated.value, start, end) if stated.object == VALUE else None
    if value is None:
        return None
    clause = _quote(line.sentence, (value.start, value.end), (start, end), value.run)
    return Proposition(node, gloss, -1, None, clause, value.answer)


def _find_value(text: str, value: str, start: int, end: int) -> "ShownValue | None":
    wanted = fold_name(value)
    held = (
        spot
        for spot in list_values(text)
        if start <= spot.start and spot.end <= end and holds_phrase(wanted, fold_name(spot.shown))
    )
    # A whole name goes before a part: "the Reading Ladies boarding school in Reading".
    best = max(held, key=lambda spot: (len(spot.shown), (spot.start, spot.end) == spot.run), default=None)
    # A number without its noun counts nothing.
    return best if best and (best.answer.type == "date" or fold_name(best.shown) == wanted) else None


def _quote(sentence: Sentence, spot: Span, told: Span, run: Span) -> Clause:
    """Return the words told with a spot blanked; few words are widened and many are cut to the clause around it.

    The rest of a run stays: "by ____" would be filled by the whole.
    """
    text = f"{sentence.text[: spot[0]]}{BLANK}{sentence.text[spot[1] :]}"
    start, end = min(told[0], run[0]), max(told[1], run[1]) + len(text) - len(sentence.text)
    if len(text[start:end].split()) > MAX_WORDS:
        start, end = spot[0], spot[0] + len(BLANK)
    while len(text[start:end].split()) < LEAST_WORDS and end - start < len(text):
        near = [piece for piece in _PIECE.finditer(text) if piece.start() <= end and start <= piece.end()]
        start, end = near[0].start(), near[-1].end()
    kept = text[start:end].split()
    while len(kept) > MAX_WORDS:
        kept.pop(-1 if BLANK in " ".join(kept[: MAX_WORDS // 2]) else 0)
    return Clause(" ".join(kept).strip(" .,;:"), sentence.start, sentence.end)


@dataclass(frozen=True, slots=True)
class ShownValue:
    """A date, number or name in a text."""

    start: int
    end: int
    shown: str
    answer: Answer
    run: Span
    """The capitalised words that a name is a part of: "Diogo Cão" of "the Portuguese Diogo Cão"."""

    def blank(self, text: str) -> str:
        """Return the text with the value blanked."""
        return f"{text[: self.start]}{BLANK}{text[self.end :]}"


def list_values(text: str) -> Iterator[ShownValue]:
    """Yield the dates and numbers of a text, and outside of them runs of capitalised words and their parts."""
    dates = find_dates(text)
    spots: list[Spot[Date] | Spot[Number]] = [*dates, *find_measures(text)]
    for spot in spots:
        shown = text[spot.start : spot.end]
        answer = make_answer(shown, spot.value)
        if answer.type == "date" or not _overlaps(dates, spot.start, spot.end):
            yield ShownValue(spot.start, spot.end, shown, answer, (spot.start, spot.end))
    for run in NAME.finditer(text):
        words = [match.span() for match in _CAPITALS.finditer(text, *run.span())] if run["name"] else []
        for (start, _), (_, end) in itertools.combinations_with_replacement(words, 2):
            named = type_answer(text[start:end], "", "")
            if named is not None and not _overlaps(dates, start, end):
                yield ShownValue(start, end, text[start:end], named, run.span())


def _overlaps(dates: Sequence[Spot[Date]], start: int, end: int) -> bool:
    return any(date.start < end and start < date.end for date in dates)


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
    pieces = clause.replace(BLANK, MASK).split(MASK)
    for sentence in list_prose(corpus, node) if not found else ():
        if not all(piece in sentence.text for piece in pieces):
            continue
        held = [value for value in list_values(sentence.text) if quotes(clause, value.blank(sentence.text), names)]
        # Where a quotation ends in its blank, each part of the name fits: the whole one is meant.
        for value in held:
            if not any(each.start <= value.start and value.end <= each.end for each in held if each != value):
                place = Clause(value.blank(sentence.text), sentence.start, sentence.end)
                found.append(Attribute(_make_fact(node, key, place, value.answer, -1, -1), value.answer, "", clause))
    return tuple(found)
