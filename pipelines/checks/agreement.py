"""Does the article's prose say the answer too? A second extractor beside the infobox (research/quality.md U5)."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.corpus.store import Corpus
from pipelines.graph.ground import Ground
from pipelines.graph.prose import Sentence, list_prose
from pipelines.graph.relations import read_attributes
from pipelines.graph.statements import Reading, read_sentence
from pipelines.graph.stems import WORD, fold_word, list_stems, stem_word
from pipelines.graph.values import fold_names
from pipelines.names import fold_name
from pipelines.scoring.numbers import KNOWN_UNITS
from schemas.proofs import Agreement, Answer, Evidence

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
"""Words of such a piece that are looked at."""
_PRONOUNS = frozenset(["he", "she", "it", "they"])
_POSSESSIVES = frozenset(["his", "her", "its", "their"])


@dataclass(frozen=True, slots=True)
class Corroboration:
    """What the prose of a page says of an answer."""

    outcome: Literal["agrees", "mixed", "disputes", "silent"]
    """``mixed``: one sentence states the answer, and another one about the same subject states another value."""
    evidence: Evidence | None
    """The sentence that says the answer, or the one that says another; of both, that one."""
    detail: str


@lru_cache(maxsize=KEPT_ANSWERS)
def find_corroboration(ground: Ground, node: int, relation: str, answer: Answer) -> Corroboration:
    """Return what the sentences of a page say of its relation's value.

    The infobox is not looked at. A sentence agrees when a cue of the relation states the answer in it; it disputes
    when a cue states another value of the same type. Beside one that agrees, a sentence disputes only where its words
    say that it is about the page's subject (:func:`is_about_subject`).

    Args:
        ground: corpus, and the cues of the relation.
        node: number of the answer node.
        relation: infobox key that is asked for.
        answer: what its value is said to be, or a coarser date derived from it.
    """
    page = ground.corpus.page(node)
    # "The painting" is what the page is about, not that it was painted.
    cues = ground.cues.words(relation) - set(list_stems(f"{page.type} {page.lead_type}"))
    others = ground.shares.values(relation) if answer.type in ("name", "string") else frozenset[str]()
    repeated = _is_repeated(ground.corpus, node, relation, answer)
    agreeing: tuple[int, Sentence, Reading] | None = None
    disputing: tuple[Sentence, Reading] | None = None
    opposing: tuple[Sentence, Reading] | None = None
    for sentence in list_prose(ground.corpus, node)[:MAX_SENTENCES]:
        for reading in read_sentence(sentence, answer, cues, others):
            rank = _rank_agreement(reading, sentence, answer, repeated)
            if rank and (agreeing is None or rank > agreeing[0]):
                agreeing = rank, sentence, reading
            if reading.likeness == "other" and reading.strength == "stated":
                disputing = disputing or (sentence, reading)
                if opposing is None and is_about_subject(ground.corpus, node, sentence, cues):
                    opposing = sentence, reading
    return _conclude(ground.corpus, node, agreeing, disputing, opposing)


def check_agreement(corroboration: Corroboration, mode: Agreement) -> CheckResult:
    """FAIL (``answer-disputed``) when the prose says another value; UNKNOWN (``answer-unconfirmed``) when it is silent.

    UNKNOWN (``answer-disputed``) when it says both the answer and another value.

    Silence passes where the mode asks for no more than that nothing contradicts.
    """
    if mode == "off" or corroboration.outcome == "agrees":
        return PASSED
    if corroboration.outcome == "disputes":
        return CheckResult("FAIL", "answer-disputed", corroboration.detail)
    if corroboration.outcome == "mixed":
        return CheckResult("UNKNOWN", "answer-disputed", corroboration.detail)
    if mode == "uncontradicted":
        return PASSED
    return CheckResult("UNKNOWN", "answer-unconfirmed", corroboration.detail)


def is_about_subject(corpus: Corpus, node: int, sentence: Sentence, cues: frozenset[str]) -> bool:
    """Say whether a sentence's first words say that it is about the page's subject.

    They do when they are a pronoun, one of its names, "the" with the noun of its type, a cue, or a possessive with a
    cue: "Her movement was", unlike "Her son was". Looked at are the sentence and what follows its first comma, which
    may end an introduction: "Later, in Paris, her movement was".
    """
    page = corpus.page(node)
    nouns = frozenset(list_stems(f"{page.type} {page.lead_type}"))
    names = _list_first_names(corpus, node)
    for part in sentence.text.split(",")[:INTRODUCTIONS]:
        words = [fold_word(word) for word in WORD.findall(part)[:OPENING]]
        if not words:
            continue
        if words[0] in _PRONOUNS or words[0] in names or stem_word(words[0]) in cues:
            return True
        if words[0] in _POSSESSIVES and not cues.isdisjoint(map(stem_word, words[1:OPENING])):
            return True
        if words[0] in ("the", "this") and not nouns.isdisjoint(map(stem_word, words[1:2])):
            return True
    return False


@lru_cache(maxsize=KEPT_ANSWERS)
def _list_first_names(corpus: Corpus, node: int) -> frozenset[str]:
    """Return the first words of a page's names, and the last of its title, which a person may be called by."""
    page = corpus.page(node)
    words = [name.split() for name in fold_names(corpus, node)]
    return frozenset({name[0] for name in words if name} | {fold_name(page.title.partition(" (")[0]).split(" ")[-1]})


def _is_repeated(corpus: Corpus, node: int, relation: str, answer: Answer) -> bool:
    """Say whether the page gives the same value for another relation too: then its mere mention says nothing."""
    attributes = read_attributes(corpus, node)
    return any(other.answer.key == answer.key and other.fact.key != relation for other in attributes)


def _rank_agreement(reading: Reading, sentence: Sentence, answer: Answer, repeated: bool) -> int:
    """Return how much a reading confirms: 3 for a cue's own value, 2 for a telling one near a cue, 1 for less, or 0."""
    if reading.likeness != "same":
        return 0
    if reading.strength == "stated":
        return 3
    telling = _is_telling(sentence, answer)
    if reading.strength == "near":
        return 2 if telling else int(answer.type != "number")
    return int(telling and not repeated and not reading.elsewhere)


def _is_telling(sentence: Sentence, answer: Answer) -> bool:
    """Say whether an answer is so particular that its mere mention confirms it: a day, a measure, a title."""
    if answer.type == "date":
        return answer.precision == "day"
    if answer.type == "number":
        digits = len(answer.value.strip("-").replace(".", "").strip("0"))
        return digits >= (MEASURED_DIGITS if answer.unit in KNOWN_UNITS else BARE_DIGITS)
    return sentence.lead or len(answer.surface.split()) > 1


def _conclude(
    corpus: Corpus,
    node: int,
    agreeing: tuple[int, Sentence, Reading] | None,
    disputing: tuple[Sentence, Reading] | None,
    opposing: tuple[Sentence, Reading] | None,
) -> Corroboration:
    if disputing is not None and (agreeing is None or agreeing[0] < 2):
        sentence, reading = disputing
        return Corroboration("disputes", _cite(corpus, node, sentence), f"{reading.text!r} in {sentence.text[:200]!r}")
    if agreeing is None:
        return Corroboration("silent", None, f"no sentence of {corpus.page(node).title!r} says it")
    if opposing is not None:
        sentence, reading = opposing
        return Corroboration("mixed", _cite(corpus, node, sentence), f"{reading.text!r} in {sentence.text[:200]!r}")
    _, sentence, reading = agreeing
    return Corroboration("agrees", _cite(corpus, node, sentence), f"{reading.text!r} in {sentence.text[:200]!r}")


def _cite(corpus: Corpus, node: int, sentence: Sentence) -> Evidence:
    page = corpus.page(node)
    return Evidence(
        page_id=page.page_id,
        title=page.title,
        revision=page.revision,
        kind="sentence",
        key="",
        start=sentence.start,
        end=sentence.end,
        text=corpus.text(node)[sentence.start : sentence.end],
        link_start=-1,
    )
