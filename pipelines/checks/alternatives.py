"""Does a wrong answer answer the question too? Held against everything that may fit the chain, not the proof alone.

Several attempts that agree on a wrong answer are a sign of a second right one: another value of the field, another
entity that fits, another name or precision of the answer itself. What the corpus confirms speaks against the question;
what it refutes speaks against the attempts. Of all else it cannot tell.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from pipelines.checks.agreement import MAX_SENTENCES, OPENING, find_corroboration, is_about_subject
from pipelines.checks.fitting import Ends, list_fitting_ends
from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.corpus.store import Corpus, Fact
from pipelines.graph.ground import Ground
from pipelines.graph.matching import Field, read_field
from pipelines.graph.proofs import make_query
from pipelines.graph.prose import Sentence, list_prose
from pipelines.graph.query import locate_nodes
from pipelines.graph.relations import type_value
from pipelines.graph.statements import fold_forms, read_sentence
from pipelines.graph.stems import WORD, fold_word, list_stems, stem_word
from pipelines.graph.values import fold_names, holds_phrase
from pipelines.names import fold_name
from pipelines.scoring.answers import derive_answer, make_answer
from pipelines.scoring.compare import LONGEST_ANSWER, compare_answers, is_hedged
from pipelines.scoring.dates import parse_date
from pipelines.scoring.numbers import Number, parse_number
from schemas.proofs import Answer, Derivation, Proof

CODE = "alternative-answer"


@dataclass(frozen=True, slots=True)
class Support:
    """What the corpus says for another answer."""

    level: Literal["stated", "unclear"]
    detail: str


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is asked of an entity, and the other answer."""

    relation: str
    derivation: Derivation
    answer: Answer
    given: str
    value: Answer
    """The other answer as a typed value of the relation."""


def check_alternative(ground: Ground, proof: Proof, answer: Answer, given: str) -> CheckResult:
    """Say whether an answer that is not the reference answers the question as well.

    FAIL (``alternative-answer``) when the corpus says so: it is another value of the field, the value of another entity
    that fits the chain, stated in prose, given by the other dump, or the answer itself by another name or more exactly.
    PASS when infobox and prose state the reference and nothing else, and nothing supports the other for any entity that
    may fit. UNKNOWN in all other cases.

    Args:
        ground: the corpus that the proof is about.
        proof: of the question.
        answer: the reference.
        given: a model's short answer; one of more than ``LONGEST_ANSWER`` characters is not looked at.
    """
    given = given.strip()
    verdict = compare_answers(given, answer)
    if verdict == "correct":
        return PASSED
    value = type_given(given, answer, proof.answer_relation, ground.shares.values(proof.answer_relation))
    if value is None:
        return CheckResult("UNKNOWN", CODE, f"{given[:80]!r} is not one value of the kind that is asked for")
    if _is_coarser(value, answer):
        # What the corpus says for the answer, it says for a coarser date too.
        return CheckResult("UNKNOWN", CODE, f"{given!r} is {answer.surface!r} at a coarser precision")
    asked = _Asked(proof.answer_relation, proof.derivation, answer, given, value)
    try:
        node = locate_nodes(ground.corpus, proof.nodes)[-1]
        ends = list_fitting_ends(ground, make_query(ground.corpus, proof))
    except LookupError as error:
        return CheckResult("UNKNOWN", CODE, str(error.args[0]))
    found = _list_support(ground, node, ends, asked)
    stated = next((support for support in found if support.level == "stated"), None)
    if stated is not None:
        return CheckResult("FAIL", CODE, stated.detail)
    if found or ends.capped:
        return CheckResult("UNKNOWN", CODE, found[0].detail if found else "too many entities may fit the chain")
    return _check_refuted(ground, node, asked)


def type_given(given: str, answer: Answer, relation: str, known: frozenset[str] = frozenset()) -> Answer | None:
    """Return a model's answer as a typed value of the reference's type; None for anything but one such value.

    Args:
        given: what a model said.
        answer: the reference.
        relation: infobox key that is asked for.
        known: folded, values of the relation that articles show: a motto with "and" in it is one, and no list.
    """
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


def _list_support(ground: Ground, node: int, ends: Ends, asked: _Asked) -> list[Support]:
    """Return what speaks for the other answer: of the answer node, and of every other entity that may fit."""
    found = [*_find_same(ground, node, asked), *_find_support(ground, node, asked)]
    for end in sorted((ends.certain | ends.possible) - {node}):
        for support in _find_support(ground, end, asked):
            sure = end in ends.certain and support.level == "stated"
            found.append(Support("stated" if sure else "unclear", support.detail))
    return found


def _find_same(ground: Ground, node: int, asked: _Asked) -> Iterator[Support]:
    """Yield why another answer may be the answer itself, which the answer's own forms are too narrow for."""
    answer, title = asked.answer, ground.corpus.page(node).title
    if answer.type in ("name", "string"):
        if _share_article(ground.corpus, answer, asked.value):
            yield Support("stated", f"{asked.given!r} is another name of {answer.surface!r}: its forms are too narrow")
        elif not _differ(ground, asked):
            yield Support("unclear", f"{asked.given!r} may be another wording of {answer.surface!r}")
        return
    for fact in read_field(ground.corpus, node, asked.relation).facts if asked.derivation else ():
        whole = type_value(fact.text, fact.iso, fact.key)
        if whole is not None and compare_answers(asked.given, whole) == "correct":
            detail = f"{asked.given!r} is what {title} shows, of which less is asked: the answer's forms are too narrow"
            yield Support("stated", detail)
    if compare_answers(asked.given, answer) == "unscored":
        yield Support("unclear", f"{asked.given!r} may be {answer.surface!r} by another measure or precision")


def _is_coarser(value: Answer, answer: Answer) -> bool:
    given, expected = parse_date(value.value), parse_date(answer.value)
    return answer.type == "date" and given is not None and expected is not None and given.covers(expected)


def _share_article(corpus: Corpus, answer: Answer, value: Answer) -> bool:
    """Say whether an article bears both names."""
    for one, other in ((answer, value), (value, answer)):
        for form in dict.fromkeys((one.surface, one.value)):
            number = corpus.find(form)
            if number is not None and not fold_names(corpus, number).isdisjoint(fold_forms(other)):
                return True
    return False


def _differ(ground: Ground, asked: _Asked) -> bool:
    """Say whether two names or words are beyond doubt two values.

    The comparer leaves most words open. Two that articles show for the relation are two, unless one holds the other:
    "Gothic" for "Gothic Revival" may be meant. A name that no article bears may be another one of the same: "Wien" for
    "Vienna".
    """
    given, known = fold_name(asked.given), ground.shares.values(asked.relation)
    if compare_answers(asked.given, asked.answer) == "incorrect":
        return asked.value.type != "name" or given in known or ground.corpus.find(asked.given) is not None
    words = set(given.split())
    apart = all(words.isdisjoint(form.split()) for form in fold_forms(asked.answer))
    return asked.answer.type == "string" and given in known and apart


def _find_support(ground: Ground, node: int, asked: _Asked) -> Iterator[Support]:
    """Yield what an entity's infobox, its prose and the other dump say for the other answer."""
    title = ground.corpus.page(node).title
    yield from _read_box(ground.corpus, node, asked)
    yield from _read_prose(ground, node, asked)
    later = ground.later
    number = None if later is None else later.find(title)
    if later is not None and number is not None:
        for support in _read_box(later, number, asked):
            yield Support(support.level, f"in another dump, {support.detail}")


def _read_box(corpus: Corpus, node: int, asked: _Asked) -> Iterator[Support]:
    title, field = corpus.page(node).title, read_field(corpus, node, asked.relation)
    for fact in field.facts:
        if _is_value(corpus, fact, asked):
            yield Support("stated", f"{title} has {fact.text[:80]!r} for {fact.key}")
        elif asked.value.type in ("name", "string") and holds_phrase(fold_name(fact.text), fold_name(asked.given)):
            yield Support("unclear", f"{title} has {fact.text[:80]!r} for {fact.key}")
    if field.facts and not field.complete:
        yield Support("unclear", f"{title} has more for {asked.relation} than could be read")


def _is_value(corpus: Corpus, fact: Fact, asked: _Asked) -> bool:
    """Say whether a value of a field is the other answer; the reference itself is none."""
    if fact.target >= 0 and fold_name(asked.given) in fold_names(corpus, fact.target):
        return True
    typed = type_value(fact.text, fact.iso, fact.key)
    shown = None if typed is None else derive_answer(typed, asked.derivation)
    if shown is None or shown.key == asked.answer.key:
        return False
    return compare_answers(asked.given, shown) == "correct"


def _read_prose(ground: Ground, node: int, asked: _Asked) -> Iterator[Support]:
    """Yield sentences in which a cue of the relation states the other answer, or has it near."""
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
            yield Support("stated" if sure else "unclear", f"{page.title}: {sentence.text[:200]!r}")


def _is_about(corpus: Corpus, node: int, sentence: Sentence, cues: frozenset[str]) -> bool:
    """Say whether a sentence is about the page's subject: also "The colour of the university is", on its page."""
    if sentence.lead or is_about_subject(corpus, node, sentence, cues):
        return True
    words = [fold_word(word) for word in WORD.findall(sentence.text)[:OPENING]]
    if len(words) < OPENING or words[0] != "the" or words[2] != "of" or stem_word(words[1]) not in cues:
        return False
    page = corpus.page(node)
    nouns = (f"the {fold_name(noun)}" for noun in (page.type, page.lead_type) if noun)
    rest = fold_name(sentence.text).partition(" of ")[2]
    return any(f"{rest} ".startswith(f"{name} ") for name in (*nouns, *fold_names(corpus, node)))


def _check_refuted(ground: Ground, node: int, asked: _Asked) -> CheckResult:
    """PASS when infobox and prose both state the reference alone."""
    title, field = ground.corpus.page(node).title, read_field(ground.corpus, node, asked.relation)
    if not _is_single(field):
        return CheckResult("UNKNOWN", CODE, f"{title} does not have one value of {asked.relation}")
    said = find_corroboration(ground, node, asked.relation, asked.answer)
    if said.outcome != "agrees":
        return CheckResult("UNKNOWN", CODE, f"the prose does not confirm {asked.answer.surface!r}: {said.detail}")
    return PASSED


def _is_single(field: Field) -> bool:
    return field.complete and len(field.facts) == 1
