"""What a descriptor says of its node, read from its words: no part of it can be left out of a count.

A writer declares the facts that it put into a descriptor. A declared fact must stand there, and every value of the node
that stands there counts as said, declared or not.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.corpus.store import Corpus
from pipelines.graph.matching import TYPE
from pipelines.graph.relations import Attribute, read_attributes
from pipelines.graph.values import list_periods
from pipelines.scoring.dates import Date, parse_date, render_date
from schemas.proofs import Constraint, Proof
from schemas.tasks import SUBJECT, Descriptor, FactView

_BLANK = "\x00"
"""Put where a value was found, so that no shorter value is found inside it."""
_PERSON = "person"
"""What a question may call the anchor whatever its type: a picture does not show a profession."""
_HYPHENED = re.compile(r"(?<=\d(?:st|nd|rd|th))-(?=centur)")
"""``a 19th-century painter`` says the 19th century."""


def fold_spaces(text: str) -> str:
    """Return a text with white space made single and case dropped; descriptors and questions are compared so."""
    return _HYPHENED.sub(" ", " ".join(text.casefold().split()))


def stands_in(phrase: str, text: str) -> bool:
    """Say whether a phrase stands in a text as whole words, case and white space aside; an empty one does not."""
    return _find_phrase(fold_spaces(phrase), fold_spaces(text)) is not None


def _find_phrase(phrase: str, text: str) -> re.Match[str] | None:
    return re.search(rf"(?<!\w){re.escape(phrase)}(?!\w)", text) if phrase else None


def offer_facts(corpus: Corpus, number: int, max_tokens: int) -> tuple[FactView, ...]:
    """Return the facts that a descriptor of an entity may add to the chain, in page order, each text of a field once.

    They are its literal values, and after each date its decade and century: facts too weak to stand alone.

    Args:
        corpus: where the facts are read.
        number: the entity's number.
        max_tokens: longest value in words, 0 for any.
    """
    facts: list[FactView] = []
    for attribute in read_attributes(corpus, number, max_tokens):
        date, key = _read_date(attribute), attribute.fact.key
        facts.append(FactView(relation=key, text=attribute.fact.text))
        facts += [FactView(relation=key, text=period) for period in (list_periods(date) if date else ())]
    return tuple(dict.fromkeys(fact for fact in facts if fact.text))


def _read_date(attribute: Attribute) -> Date | None:
    return parse_date(attribute.answer.value) if attribute.answer.type == "date" else None


def _list_sayable(corpus: Corpus, number: int) -> Iterator[FactView]:
    """Yield a node's literal facts as pages show them, then its dates in every other form and coarser."""
    attributes = read_attributes(corpus, number)
    for attribute in attributes:
        yield FactView(relation=attribute.fact.key, text=attribute.fact.text)
    for attribute in attributes:
        date = _read_date(attribute)
        if date is not None:
            coarser = [Date(date.year, date.month), Date(date.year)]
            forms = [form for each in (date, *coarser) for form in render_date(each)]
            for text in (*forms, *list_periods(date)):
                yield FactView(relation=attribute.fact.key, text=text)


def list_spoken_facts(corpus: Corpus, number: int, text: str) -> tuple[FactView, ...]:
    """Return a node's literal facts whose values stand in a text, longest first, each value once.

    A date is also said by another form of it, by its month or year, and by its decade or century. A value inside a
    longer one that stands there (``3`` in ``3 May 1911``) is not said.
    """
    facts: dict[str, FactView] = {}
    for fact in _list_sayable(corpus, number):
        facts.setdefault(fold_spaces(fact.text), fact)
    left, spoken = fold_spaces(text), []
    for value in sorted(facts, key=lambda value: (-len(value), value)):
        if _find_phrase(value, left):
            spoken.append(facts[value])
            left = _blank_phrase(value, left)
    return tuple(spoken)


def list_constraints(corpus: Corpus, number: int, node: int, descriptor: Descriptor) -> tuple[Constraint, ...]:
    """Return what a descriptor says beyond its place in the chain: type, declared facts, then undeclared ones.

    Args:
        corpus: where the node's facts are read.
        number: the node's number in the corpus.
        node: the node's index in the path.
        descriptor: the phrase with the facts that its writer declared.
    """
    kind = corpus.page(number).type
    constraints = [Constraint(node=node, relation=TYPE, value=kind)] if stands_in(kind, descriptor.text) else []
    constraints += [Constraint(node=node, relation=fact.relation, value=fact.text) for fact in descriptor.facts]
    said = {fold_spaces(constraint.value) for constraint in constraints}
    for fact in list_spoken_facts(corpus, number, descriptor.text):
        if fold_spaces(fact.text) not in said:
            constraints.append(Constraint(node=node, relation=fact.relation, value=fact.text))
    return tuple(dict.fromkeys(constraints))


def find_constraint_problems(
    corpus: Corpus, number: int, constraints: Sequence[Constraint], descriptor: str
) -> list[str]:
    """Return where the constraints of one node are not what its descriptor says."""
    kind = corpus.page(number).type
    types = [constraint.value for constraint in constraints if constraint.relation == TYPE]
    problems = [] if any(map(str.isalnum, descriptor.replace(SUBJECT, ""))) else [f"{descriptor!r} says nothing"]
    if types != ([kind] if stands_in(kind, descriptor) else []):
        problems.append(f"the type constraints are {types}, the descriptor is {descriptor!r}")
    if len(set(constraints)) != len(constraints):
        problems.append("a constraint occurs twice")
    problems += [f"{c.value!r} does not stand in it" for c in constraints if not stands_in(c.value, descriptor)]
    said = {fold_spaces(constraint.value) for constraint in constraints}
    spoken = list_spoken_facts(corpus, number, descriptor)
    problems += [
        f"it says {fact.text!r}, which is no constraint" for fact in spoken if fold_spaces(fact.text) not in said
    ]
    return problems


def check_facts(descriptor: Descriptor) -> CheckResult:
    """FAIL (``no-descriptor``) when a declared fact does not stand in the descriptor."""
    missing = [fact.text for fact in descriptor.facts if not stands_in(fact.text, descriptor.text)]
    if missing:
        return CheckResult("FAIL", "no-descriptor", f"{missing} do not stand in {descriptor.text!r}")
    return PASSED


def check_slot(descriptor: Descriptor) -> CheckResult:
    """FAIL (``no-descriptor``) unless a descriptor has exactly one place for the entity that it leads from."""
    slots = descriptor.text.count(SUBJECT)
    if slots == 1:
        return PASSED
    return CheckResult("FAIL", "no-descriptor", f"{descriptor.text!r} has {slots} places for its subject, not one")


def check_spoken(text: str, descriptors: Iterable[str]) -> CheckResult:
    """FAIL (``descriptor-lost``) when a piece of a descriptor does not stand in the question; case aside."""
    folded = fold_spaces(text)
    for descriptor in descriptors:
        for piece in map(fold_spaces, descriptor.split(SUBJECT)):
            if piece not in folded:
                return CheckResult("FAIL", "descriptor-lost", f"{piece!r} of {descriptor!r} is not in the question")
    return PASSED


def check_told(corpus: Corpus, numbers: Sequence[int], text: str, proof: Proof) -> CheckResult:
    """FAIL (``fact-unproved``) when a question tells a fact, or a bridge's type, that is no constraint of its proof.

    Without this a descriptor could be shortened in the proof and not in the question, and would be counted as weaker
    than it is. Told rightly is what any constraint, a quoted sentence or the attribute asked for says, and the types of
    anchor and answer node.

    Args:
        corpus: where the facts are read.
        numbers: the nodes of the path in the corpus, the anchor first.
        text: the final question.
        proof: with its constraints and sentences.
    """
    types = [corpus.page(number).type for number in numbers]
    told = {fold_spaces(word) for word in (_PERSON, types[0], types[-1], *(c.value for c in proof.constraints))}
    left = fold_spaces(text)
    for value in sorted(told - {""}, key=lambda value: (-len(value), value)):
        left = _blank_phrase(value, left)
    sources = [*(hop.clause for hop in proof.hops), proof.answer_relation.replace("_", " ")]
    for index, number in enumerate(numbers):
        values = [*(fact.text for fact in list_spoken_facts(corpus, number, left)), types[index]]
        for value in values:
            if stands_in(value, left) and not any(stands_in(value, source) for source in sources):
                return CheckResult("FAIL", "fact-unproved", f"{value!r} is of node {index} and no constraint")
    return PASSED


def _blank_phrase(phrase: str, text: str) -> str:
    return re.sub(rf"(?<!\w){re.escape(phrase)}(?!\w)", _BLANK, text)
