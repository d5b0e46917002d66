"""Does prose state the answer, is another answer right too, and do the facts last?

A second extractor beside the infobox (research/quality.md U5). Attempts that agree on a wrong answer hint at a second
right one: another value of the field, another entity that fits, another name or precision of the answer. What the
corpus confirms speaks against the question, what it refutes against the attempts. Volatile properties (T1) stand in
``data/volatile.toml``.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Literal

from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.corpus.dump import normalise_spaces
from pipelines.corpus.store import Corpus, Fact
from pipelines.corpus.wikitext import plain_text
from pipelines.graph.answers import LONGEST_ANSWER, compare_answers, covers_date, derive_answer, is_hedged, make_answer
from pipelines.graph.cues import WORD, fold_word, list_stems, stem_word
from pipelines.graph.facts import (
    fold_names,
    holds_phrase,
    read_askable,
    split_key,
    type_value,
)
from pipelines.graph.proofs import cite_sentence
from pipelines.graph.prose import Sentence, list_prose
from pipelines.graph.query import Indexes, find_article, locate_nodes, read_field
from pipelines.graph.statements import Statement, fold_forms, read_sentence
from pipelines.graph.titles import asks_name
from pipelines.graph.values import (
    KNOWN_UNITS,
    Number,
    parse_date,
    parse_number,
)
from pipelines.names import fold_name
from schemas.proofs import Agreement, Answer, Derivation, Evidence, Proof

MEASURED_DIGITS = 3
"""Digits, zeros at the end left out, that make a number with its unit particular."""
BARE_DIGITS = 5
"""The same of a number without a unit."""
MAX_SENTENCES = 400
"""Sentences of a page that are read."""
KEPT_ANSWERS = 1 << 13
"""Answers whose pages are not read again: a path, its question and its proof ask the same."""
INTRODUCTIONS = 3
"""Pieces of a sentence, cut at commas, of which one may begin with its subject."""
OPENING = 3
"""Words of such a piece that are read."""
_PRONOUNS = frozenset(["he", "she", "it", "they"])
_POSSESSIVES = frozenset(["his", "her", "its", "their"])
_OWNS = re.compile(r"[^\W\d_ ]*['’]s?\b|['’]")


Outcome = Literal["agrees", "disputes", "silent"]
"""``disputes``: a sentence with a cue has another value, and no rule can say whose or of what it is; none states the
answer."""


@dataclass(frozen=True, slots=True)
class Corroboration:
    """Whether the prose of a page states an answer, another one, or neither."""

    outcome: Outcome
    evidence: Evidence | None
    """The sentence that says the answer, or else the one that says another."""
    detail: str


@lru_cache(maxsize=KEPT_ANSWERS)
def find_corroboration(ground: Indexes, node: int, relation: str, answer: Answer) -> Corroboration:
    """Return whether sentences of a page agree with its relation's value or dispute it; the infobox is not read.

    A sentence agrees when a cue of the relation states the answer in it, and disputes when a cue states another value
    of the same type. An article that is the answer is stated by what links to it too, whatever the link says. Its mere
    mention counts only in the first sentence: an article names many for many reasons.
    """
    page = ground.corpus.page(node)
    # "The painting" is what the page is about, not that it was painted.
    cues = ground.cues.words(relation) - set(list_stems(f"{page.type} {page.lead_type}"))
    others = ground.shares.values(relation) if answer.type in ("name", "string") else frozenset[str]()
    repeated = _is_repeated(ground.corpus, node, relation, answer)
    article = find_article(ground.corpus, node, relation, answer)
    links = _list_links(ground.corpus, node, article)
    agreeing: tuple[int, Sentence, Statement] | None = None
    disputing: tuple[Sentence, Statement] | None = None
    for sentence in list_prose(ground.corpus, node)[:MAX_SENTENCES]:
        for reading in read_sentence(sentence, _add_links(sentence, answer, links), cues, others):
            rank = _rank_agreement(reading, sentence, answer, repeated or (article >= 0 and not sentence.lead))
            if rank and (agreeing is None or rank > agreeing[0]):
                agreeing = rank, sentence, reading
            if reading.likeness == "other" and reading.strength == "stated":
                disputing = disputing or (sentence, reading)
    if disputing is not None and (agreeing is None or agreeing[0] < 2):
        return _cite_reading(ground.corpus, node, "disputes", *disputing)
    if agreeing is None:
        return Corroboration("silent", None, f"no sentence of {page.title!r} says it")
    return _cite_reading(ground.corpus, node, "agrees", *agreeing[1:])


def _list_links(corpus: Corpus, node: int, article: int) -> list[tuple[int, str]]:
    titles = set(corpus.aliases(article)) if article >= 0 else ()
    return [
        (link.start, plain_text(corpus.text(node)[link.start : link.end]))
        for link in (corpus.links(node) if titles else ())
        if normalise_spaces(link.target.partition("#")[0]) in titles
    ]


def _add_links(sentence: Sentence, answer: Answer, links: Iterable[tuple[int, str]]) -> Answer:
    shown = [text for place, text in links if sentence.start <= place < sentence.end]
    return answer.model_copy(update={"aliases": (*answer.aliases, *shown)}) if shown else answer


def check_agreement(corroboration: Corroboration, mode: Agreement, read: bool = False) -> CheckResult:
    """UNKNOWN when the prose may say another value (``answer-disputed``), or is silent (``answer-unconfirmed``).

    Where an evaluator reads the page (``read``), it says whether another value is meant. Silence passes where the mode
    asks for no more than that nothing contradicts.
    """
    # Of thirteen fields that a careful reader read on real pages cue words confirmed eleven and were silent on none;
    # both disputes were false.
    if mode == "off" or corroboration.outcome == "agrees" or (read and corroboration.outcome == "disputes"):
        return PASSED
    if corroboration.outcome == "disputes":
        return CheckResult("UNKNOWN", "answer-disputed", corroboration.detail)
    if mode == "uncontradicted":
        return PASSED
    return CheckResult("UNKNOWN", "answer-unconfirmed", corroboration.detail)


def is_about_subject(corpus: Corpus, node: int, sentence: Sentence, cues: frozenset[str]) -> bool:
    """Say whether a sentence's first words show that it is about the page's subject.

    They do when they are a pronoun, one of its names, "the" with the noun of its type, a cue, or a possessive with a
    cue: "Her movement was", unlike "Her son was". The words after the first comma count as well, since an introduction
    may end there: "Later, in Paris, her movement was".
    """
    page = corpus.page(node)
    nouns = frozenset(list_stems(f"{page.type} {page.lead_type}"))
    names = _list_first_names(corpus, node)
    for number, part in enumerate(sentence.text.split(",")[:INTRODUCTIONS]):
        spots = list(islice(WORD.finditer(part), OPENING))
        words = [fold_word(spot.group()) for spot in spots]
        # A cue that opens a later part says something of what stands before it: "Her son, born in 1846".
        opens = words and number and stem_word(words[0]) in cues
        if opens or (words and _opens_with_subject(words, part[spots[0].end() :], names, nouns, cues)):
            return True
    return False


def _opens_with_subject(
    words: list[str], rest: str, names: frozenset[str], nouns: frozenset[str], cues: frozenset[str]
) -> bool:
    owned = [word for word in words[1:] if word != "s"]
    if words[0] in _POSSESSIVES or (words[0] in names and _OWNS.match(rest)):
        return not cues.isdisjoint(map(stem_word, owned))
    if words[0] in _PRONOUNS or words[0] in names:
        return True
    return words[0] in ("the", "this") and not nouns.isdisjoint(map(stem_word, owned[:1]))


@lru_cache(maxsize=KEPT_ANSWERS)
def _list_first_names(corpus: Corpus, node: int) -> frozenset[str]:
    page = corpus.page(node)
    words = [name.split() for name in fold_names(corpus, node)]
    return frozenset({name[0] for name in words if name} | {fold_name(page.title.partition(" (")[0]).split(" ")[-1]})


def _is_repeated(corpus: Corpus, node: int, relation: str, answer: Answer) -> bool:
    attributes = read_askable(corpus, node)
    return any(other.answer.key == answer.key and other.fact.key != relation for other in attributes)


def _rank_agreement(reading: Statement, sentence: Sentence, answer: Answer, repeated: bool) -> int:
    if reading.likeness != "same":
        return 0
    if reading.strength == "stated":
        return 3
    telling = _is_telling(sentence, answer)
    if reading.strength == "near":
        return 2 if telling else int(answer.type != "number")
    return int(telling and not repeated and not reading.elsewhere)


def _is_telling(sentence: Sentence, answer: Answer) -> bool:
    if answer.type == "date":
        return answer.precision == "day"
    if answer.type == "number":
        digits = len(answer.value.strip("-").replace(".", "").strip("0"))
        return digits >= (MEASURED_DIGITS if answer.unit in KNOWN_UNITS else BARE_DIGITS)
    return sentence.lead or len(answer.surface.split()) > 1


def _cite_reading(corpus: Corpus, node: int, outcome: Outcome, sentence: Sentence, reading: Statement) -> Corroboration:
    evidence = cite_sentence(corpus, node, sentence.start, sentence.end)
    return Corroboration(outcome, evidence, f"{reading.text!r} in {sentence.text[:200]!r}")


CODE = "alternative-answer"


@dataclass(frozen=True, slots=True)
class AnswerSupport:
    """What the corpus says for another answer."""

    level: Literal["stated", "unclear"]
    detail: str


@dataclass(frozen=True, slots=True)
class _Asked:
    relation: str
    derivation: Derivation
    answer: Answer
    given: str
    value: Answer
    """The other answer as a typed value of the relation."""


def check_alternative(ground: Indexes, proof: Proof, answer: Answer, given: str) -> CheckResult:
    """Say whether an answer that is not the reference answers the question as well.

    FAIL (``alternative-answer``) when the corpus says so: it is another value of the field, stated in prose, or the
    answer itself by another name or more exactly. PASS when infobox and prose state the reference and nothing else.
    UNKNOWN in all other cases. That one entity alone fits the chain is for the proof.
    """
    given = given.strip()
    verdict = compare_answers(given, answer)
    if verdict == "correct":
        return PASSED
    if asks_name(proof):
        return _check_other_name(ground, proof, given)
    value = type_given(given, answer, proof.answer_relation, ground.shares.values(proof.answer_relation))
    if value is None:
        return CheckResult("UNKNOWN", CODE, f"{given[:80]!r} is not one value of the kind that is asked for")
    if covers_date(value, answer):
        # What the corpus says for the answer, it says for a coarser date too.
        return CheckResult("UNKNOWN", CODE, f"{given!r} is {answer.surface!r} at a coarser precision")
    asked = _Asked(proof.answer_relation, proof.derivation, answer, given, value)
    try:
        node = locate_nodes(ground.corpus, proof.nodes)[-1]
    except LookupError as error:
        return CheckResult("UNKNOWN", CODE, str(error.args[0]))
    found = [
        *_find_same(ground, node, asked),
        *_read_box(ground.corpus, node, asked),
        *_read_prose(ground, node, asked),
    ]
    stated = next((support for support in found if support.level == "stated"), None)
    if stated is not None:
        return CheckResult("FAIL", CODE, stated.detail)
    if found:
        return CheckResult("UNKNOWN", CODE, found[0].detail)
    return _check_refuted(ground, node, asked)


def _check_other_name(ground: Indexes, proof: Proof, given: str) -> CheckResult:
    number = ground.corpus.find(given)
    if number is not None and ground.corpus.page(number).page_id != proof.nodes[0].page_id:
        return PASSED
    return CheckResult("UNKNOWN", CODE, f"no other article is called {given[:80]!r}")


def type_given(given: str, answer: Answer, relation: str, known: frozenset[str] = frozenset()) -> Answer | None:
    """Return a model's answer as a typed value of the reference's type; None for anything but one such value."""
    if not given or len(given) > LONGEST_ANSWER or (is_hedged(given, answer) and fold_name(given) not in known):
        return None
    if answer.type == "date":
        date = parse_date(given)
        return None if date is None else make_answer(given, date)
    if answer.type == "number":
        number = parse_number(given)
        return None if number is None else make_answer(given, Number(number.value, number.unit or answer.unit))
    value = type_value(given, "", relation)
    return value if value is not None and value.type in ("name", "string") else None


def _find_same(ground: Indexes, node: int, asked: _Asked) -> Iterator[AnswerSupport]:
    answer, title = asked.answer, ground.corpus.page(node).title
    if answer.type in ("name", "string"):
        if _share_article(ground.corpus, answer, asked.value):
            detail = f"{asked.given!r} is another name of {answer.surface!r}: its forms are too narrow"
            yield AnswerSupport("stated", detail)
        elif not _differ(ground, asked):
            yield AnswerSupport("unclear", f"{asked.given!r} may be another wording of {answer.surface!r}")
        return
    for fact in read_field(ground.corpus, node, asked.relation).facts if asked.derivation else ():
        whole = type_value(fact.text, fact.iso, fact.key)
        if whole is not None and compare_answers(asked.given, whole) == "correct":
            detail = f"{asked.given!r} is what {title} shows, of which less is asked: the answer's forms are too narrow"
            yield AnswerSupport("stated", detail)
    if compare_answers(asked.given, answer) == "unscored":
        yield AnswerSupport("unclear", f"{asked.given!r} may be {answer.surface!r} by another measure or precision")


def _share_article(corpus: Corpus, answer: Answer, value: Answer) -> bool:
    for one, other in ((answer, value), (value, answer)):
        for form in dict.fromkeys((one.surface, one.value)):
            number = corpus.find(form)
            if number is not None and not fold_names(corpus, number).isdisjoint(fold_forms(other)):
                return True
    return False


def _differ(ground: Indexes, asked: _Asked) -> bool:
    given, known = fold_name(asked.given), ground.shares.values(asked.relation)
    if compare_answers(asked.given, asked.answer) == "incorrect":
        return asked.value.type != "name" or given in known or ground.corpus.find(asked.given) is not None
    words = set(given.split())
    apart = all(words.isdisjoint(form.split()) for form in fold_forms(asked.answer))
    return asked.answer.type == "string" and given in known and apart


def _read_box(corpus: Corpus, node: int, asked: _Asked) -> Iterator[AnswerSupport]:
    title, field = corpus.page(node).title, read_field(corpus, node, asked.relation)
    for fact in field.facts:
        if _is_value(corpus, fact, asked):
            yield AnswerSupport("stated", f"{title} has {fact.text[:80]!r} for {fact.key}")
        elif asked.value.type in ("name", "string") and holds_phrase(fold_name(fact.text), fold_name(asked.given)):
            yield AnswerSupport("unclear", f"{title} has {fact.text[:80]!r} for {fact.key}")
    if field.facts and not field.complete:
        yield AnswerSupport("unclear", f"{title} has more for {asked.relation} than could be read")


def _is_value(corpus: Corpus, fact: Fact, asked: _Asked) -> bool:
    if fact.target >= 0 and fold_name(asked.given) in fold_names(corpus, fact.target):
        return True
    typed = type_value(fact.text, fact.iso, fact.key)
    shown = None if typed is None else derive_answer(typed, asked.derivation)
    if shown is None or shown.key == asked.answer.key:
        return False
    return compare_answers(asked.given, shown) == "correct"


def _read_prose(ground: Indexes, node: int, asked: _Asked) -> Iterator[AnswerSupport]:
    page = ground.corpus.page(node)
    cues = ground.cues.words(asked.relation) - set(list_stems(f"{page.type} {page.lead_type}"))
    # The answer is a candidate, too: else its own cue would state the nearest other value.
    known = ground.shares.values(asked.relation)
    others = known | fold_forms(asked.answer)
    # A date or a measure is of one kind; a name near a cue may be: "he took an office in the Illinois state capitol".
    kind_known = asked.value.type in ("date", "number") or not known.isdisjoint(fold_forms(asked.value))
    for sentence in list_prose(ground.corpus, node)[:MAX_SENTENCES]:
        for reading in read_sentence(sentence, asked.value, cues, others):
            if reading.likeness != "same" or reading.strength == "held":
                continue
            sure = reading.strength == "stated" and kind_known and _is_about(ground.corpus, node, sentence, cues)
            yield AnswerSupport("stated" if sure else "unclear", f"{page.title}: {sentence.text[:200]!r}")


def _is_about(corpus: Corpus, node: int, sentence: Sentence, cues: frozenset[str]) -> bool:
    if sentence.lead or is_about_subject(corpus, node, sentence, cues):
        return True
    words = [fold_word(word) for word in WORD.findall(sentence.text)[:OPENING]]
    if len(words) < OPENING or words[0] != "the" or words[2] != "of" or stem_word(words[1]) not in cues:
        return False
    page = corpus.page(node)
    nouns = (f"the {fold_name(noun)}" for noun in (page.type, page.lead_type) if noun)
    rest = fold_name(sentence.text).partition(" of ")[2]
    return any(f"{rest} ".startswith(f"{name} ") for name in (*nouns, *fold_names(corpus, node)))


def _check_refuted(ground: Indexes, node: int, asked: _Asked) -> CheckResult:
    title, field = ground.corpus.page(node).title, read_field(ground.corpus, node, asked.relation)
    if not (field.complete and len(field.facts) == 1):
        return CheckResult("UNKNOWN", CODE, f"{title} does not have one value of {asked.relation}")
    said = find_corroboration(ground, node, asked.relation, asked.answer)
    if said.outcome != "agrees":
        return CheckResult("UNKNOWN", CODE, f"the prose does not confirm {asked.answer.surface!r}: {said.detail}")
    return PASSED


_LIST = Path(__file__).with_name("data") / "volatile.toml"
_YEAR = re.compile(r"(?<!\d)(?:1[5-9]|20)\d\d(?!\d)")
_QUOTED = re.compile(r"[“\"«][^”\"»]{0,200}[”\"»]")
_DATED = re.compile(
    r"\b(?:current(?:ly)?|latest|newest|most recent(?:ly)?|recent(?:ly)?|as of|so far|to date(?! (?:from|back))"
    r"|today(?:['’]s)?|now(?:adays)?(?!-)|at present|present[ -]day|presently|at the moment|still(?! lifes?\b)"
    r"|upcoming|ongoing|incumbent"
    r"|until now|up to now|up[ -]to[ -]date|(?:as|not) yet|th(?:is|ese) (?:year|month|week|season|decade|days)"
    r"|in recent years"
    r"|(?:last|next) (?:year|month|week|season)|largest|biggest|busiest|most populous|most visited|richest|reigning)\b",
    re.IGNORECASE,
)


def is_volatile(relation: str) -> bool:
    """Say whether an infobox key names something that changes with time, by the class of its words.

    A head, a year, or a word that tells of a moment that is over makes it last: ``record_label``, ``first_mayor``,
    ``2010Pop``.
    """
    table, words = _read_classes(), split_key(relation)
    if _YEAR.search(relation):
        return False
    if any(phrase <= frozenset(words) for phrase in table.phrases) or not table.moments.isdisjoint(words):
        return True
    return not table.volatile.isdisjoint(words) and words[-1] not in table.heads and table.fixed.isdisjoint(words)


def check_volatility(relation: str, allowed: bool) -> CheckResult:
    """FAIL (``volatile``) when an infobox key names what changes with time.

    It is for keys that nobody read: of 281 relations in words that a careful reader called lasting on real pages the
    word list flags 19, all of them falsely ("was preceded as president by"). A sentence's hop has the key "mentions".
    """
    if not allowed and is_volatile(relation):
        return CheckResult("FAIL", "volatile", f"{relation} changes with time")
    return PASSED


def check_timeless(text: str) -> CheckResult:
    """FAIL (``volatile``) when a question says ``current``, ``latest``, ``as of``, ``largest`` and the like.

    What stands in quotation marks is a value, such as a motto, and says nothing of time.
    """
    if not text.strip():
        return CheckResult("UNKNOWN", "volatile", "the text is empty")
    found = _DATED.search(_QUOTED.sub(" ", text))
    return CheckResult("FAIL", "volatile", f"the question says {found.group()!r}") if found else PASSED


@dataclass(frozen=True, slots=True)
class _Classes:
    volatile: frozenset[str]
    moments: frozenset[str]
    phrases: tuple[frozenset[str], ...]
    heads: frozenset[str]
    fixed: frozenset[str]


@lru_cache(maxsize=1)
def _read_classes() -> _Classes:
    table = tomllib.loads(_LIST.read_text(encoding="utf-8"))
    classes = {name: frozenset(words.split()) for name, words in table["classes"].items()}
    return _Classes(
        volatile=frozenset().union(*classes.values()),
        moments=classes["moments"],
        phrases=tuple(frozenset(line.split()) for line in table["phrases"]["volatile"].strip().splitlines()),
        heads=frozenset(table["lasting"]["heads"].split()),
        fixed=frozenset(table["lasting"]["fixed"].split()),
    )
