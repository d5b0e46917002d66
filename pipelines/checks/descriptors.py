"""What a descriptor says of its node, and how a final question refers to its picture.

Every value of the node that stands in a descriptor counts as said, declared or not. A value of several fields is said
of the one that the descriptor names; what no count can follow refuses the descriptor. The reference to the picture
names the anchor's type or a broader word: N_img was counted over all entities of that type, so an adjective, a number
or a clause that narrows the reference would tell what only the picture may tell.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, reduce

from pipelines.checks.leakage import find_numbers, find_value
from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.corpus.store import Corpus, Fact
from pipelines.graph.cues import GENERIC, list_stems, name_cues, stem_word
from pipelines.graph.facts import (
    Attribute,
    Match,
    fold_names,
    holds_phrase,
    is_layout,
    is_number,
    list_periods,
    read_attributes,
    split_key,
    stem_key,
    type_value,
)
from pipelines.graph.prose import generalise_clause
from pipelines.graph.query import TYPE, match_literal, read_fields
from pipelines.graph.values import Date, parse_date, render_date
from pipelines.names import compile_phrase, fold_name, is_common_word
from schemas.proofs import Answer, Constraint, Proof
from schemas.tasks import SUBJECT, Descriptor, FactView

BLANK = "\x00"
"""Put where a value was found, so that no shorter value is found inside it."""
_POINTING = re.compile(r"(?<![\w-])(?<!ty )(?:ones?|first|second|third|fourth)(?![\w-]| hundred| thousand| million)")
"""``The first one`` and ``that second town`` count nothing, other than ``seventy one``."""
_TENS = ("", "ten", "twent", "thirt", "fort", "fift", "sixt", "sevent", "eight", "ninet")
_HYPHENED = re.compile(r"(?<=\d(?:st|nd|rd|th))-(?=centur)")


def fold_spaces(text: str) -> str:
    """Return a text with white space made single and case dropped; descriptors and questions are compared so."""
    return _HYPHENED.sub(" ", " ".join(text.casefold().split()))


def find_phrases(phrase: str, text: str) -> list[str]:
    """Return each place of a folded phrase in a folded text as whole words; an empty one has none."""
    return compile_phrase(phrase).findall(text) if phrase and phrase in text else []


def blank_phrase(phrase: str, text: str) -> str:
    """Return a folded text without a folded phrase, wherever it occurs as whole words."""
    return compile_phrase(phrase).sub(BLANK, text) if phrase and phrase in text else text


def list_told_relations(corpus: Corpus, number: int, value: str, text: str) -> tuple[str, ...]:
    """Return the fields of a page that a text may mean by a value, by the stem of their keys."""
    shown = [stem for stem in read_fields(corpus, number) if match_literal(corpus, number, stem, value) is Match.YES]
    if len(shown) < 2:
        return tuple(shown)
    spoken = set(list_stems(blank_phrase(fold_spaces(value), fold_spaces(text))))
    named = [stem for stem in shown if not spoken.isdisjoint(_list_own_stems(stem))]
    hinted = [stem for stem in shown if not spoken.isdisjoint(name_cues(stem))]
    return tuple(named or hinted or shown)


def _list_own_stems(relation: str) -> frozenset[str]:
    words = split_key(relation)
    return frozenset(map(stem_word, [word for word in words if word not in GENERIC] or words))


def find_relation_problem(corpus: Corpus, number: int, told: tuple[str, str], given: Iterable[str], text: str) -> str:
    """Return why a value is not stated of the fields for which it is counted, or ""."""
    value, relation = told
    meant, counted = set(list_told_relations(corpus, number, value, text)), set(map(stem_key, given))
    if not meant or meant == {stem_key(relation)}:
        return ""
    if meant == counted and len(find_phrases(fold_spaces(value), fold_spaces(text))) >= len(meant):
        return ""
    return f"{value!r} is counted as {relation} and may be told of {sorted(meant)}"


def find_uncounted(corpus: Corpus, number: int, text: str, counted: Iterable[str]) -> Iterator[str]:
    """Yield what a text tells of an entity in a way that no constraint covers.

    That is a name of an article that any field links to, and a literal in another writing than the page's: a number in
    words or another unit, a date in other forms, a decade or century in words, a string in other letters.
    """
    left = fold_spaces(text)
    for value in sorted(map(fold_spaces, counted), key=lambda value: (-len(value), value)):
        left = blank_phrase(value, left)
    pieces = [folded for piece in left.split(BLANK) if (folded := fold_name(piece))]
    figures = _POINTING.sub(BLANK, left)
    numbers = find_numbers(figures)
    for fact in corpus.facts(number):
        if is_layout(fact.key):
            continue
        names = _list_names(corpus, fact)
        yield from (name for name in names if any(holds_phrase(piece, name) for piece in pieces))
        answer = type_value(fact.text, fact.iso, fact.key) if fact.target < 0 else None
        told = _find_figure(figures, numbers, answer) if answer is not None else ""
        if told:
            yield told


def _list_names(corpus: Corpus, fact: Fact) -> list[str]:
    if fact.target >= 0:
        names = fold_names(corpus, fact.target) | {fold_name(fact.text)}
        return sorted(name for name in names if name and not all(map(is_common_word, name.split())))
    answer = type_value(fact.text, fact.iso, fact.key)
    return [fold_name(fact.text)] if answer is not None and answer.type in ("name", "string") else []


@cache
def compile_decade(decade: int) -> re.Pattern[str]:
    """Return the pattern of a decade's names, such as 1870s, '70s and seventies."""
    tens = _TENS[decade % 10]
    return re.compile(rf"(?<!\d){decade}0['’ ]?s(?!\w)|['’‘]{decade % 10}0s" + (rf"|{tens}ies" if tens else ""))


def _find_figure(text: str, numbers: set[Decimal], answer: Answer) -> str:
    date = parse_date(answer.value) if answer.type == "date" else None
    if date is not None:
        decade, century = date.year // 10, (date.year - 1) // 100 + 1
        if "centur" in text and Decimal(century) in numbers:
            return f"century {century}"
        if compile_decade(decade).search(text):
            return f"{decade}0s"
    return find_value(text, answer) if numbers and (date is not None or is_number(answer)) else ""


NEUTRAL = ("person", "place")
"""What a question may call the anchor whatever its type, which may be wrong: a picture does not show a profession."""


def stands_in(phrase: str, text: str) -> bool:
    """Say whether a phrase stands in a text as whole words, case and white space aside; an empty one does not."""
    return bool(find_phrases(fold_spaces(phrase), fold_spaces(text)))


def offer_facts(corpus: Corpus, number: int, max_tokens: int) -> tuple[FactView, ...]:
    """Return the facts that a descriptor of an entity may add to the chain, in page order, each text of a field once.

    They are its literal values, and after each date its decade and century: facts too weak to stand alone.
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
        if find_phrases(value, left):
            spoken.append(facts[value])
            left = blank_phrase(value, left)
    return tuple(spoken)


def list_constraints(corpus: Corpus, number: int, node: int, descriptor: Descriptor) -> tuple[Constraint, ...]:
    """Return what a descriptor says beyond its place in the chain: type, declared facts, then undeclared ones."""
    kind = corpus.page(number).type
    constraints = [Constraint(node=node, relation=TYPE, value=kind)] if stands_in(kind, descriptor.text) else []
    constraints += [Constraint(node=node, relation=fact.relation, value=fact.text) for fact in descriptor.facts]
    said = {fold_spaces(constraint.value) for constraint in constraints}
    for fact in list_spoken_facts(corpus, number, descriptor.text):
        if fold_spaces(fact.text) not in said:
            relation = _choose_relation(corpus, number, fact, descriptor.text)
            constraints.append(Constraint(node=node, relation=relation, value=fact.text))
    return tuple(dict.fromkeys(constraints))


def _choose_relation(corpus: Corpus, number: int, fact: FactView, text: str) -> str:
    meant = list_told_relations(corpus, number, fact.text, text)
    if len(meant) != 1 or meant[0] == stem_key(fact.relation):
        return fact.relation
    keys = (attribute.fact.key for attribute in read_attributes(corpus, number))
    return next((key for key in keys if stem_key(key) == meant[0]), fact.relation)


def find_constraint_problems(
    corpus: Corpus,
    number: int,
    constraints: Sequence[Constraint],
    descriptor: str,
    clause: str = "",
    titles: Sequence[str] = (),
) -> list[str]:
    """Return where the constraints of one node are not what its descriptor says, no more and no less."""
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
    problems += _find_relation_problems(corpus, number, constraints, descriptor)
    known = (kind, SUBJECT, *said, *(fact.text for fact in spoken), *titles)
    uncounted = find_uncounted(corpus, number, descriptor, known)
    return problems + [f"it tells {told!r}, which nothing counts" for told in uncounted if not stands_in(told, clause)]


def _find_relation_problems(
    corpus: Corpus, number: int, constraints: Sequence[Constraint], descriptor: str
) -> Iterator[str]:
    facts = [constraint for constraint in constraints if constraint.relation != TYPE]
    for fact in facts:
        same = [other.relation for other in facts if fold_spaces(other.value) == fold_spaces(fact.value)]
        problem = find_relation_problem(corpus, number, (fact.value, fact.relation), same, descriptor)
        if problem:
            yield problem


def check_counted(
    corpus: Corpus,
    number: int,
    constraints: Sequence[Constraint],
    descriptor: str,
    clause: str = "",
    titles: Sequence[str] = (),
) -> CheckResult:
    """FAIL (``no-descriptor``) when a descriptor says other than its constraints (:func:`find_constraint_problems`)."""
    problems = find_constraint_problems(corpus, number, constraints, descriptor, clause, titles)
    return CheckResult("FAIL", "no-descriptor", f"{descriptor!r}: {'; '.join(problems)}") if problems else PASSED


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


def list_descriptors(proof: Proof) -> tuple[str, ...]:
    """Return the descriptors of a proof, with slots for the entities that they named and that were hidden later."""
    hidden = [branch.node.title for branch in proof.branches if not branch.named]
    found = [*proof.descriptors, *(branch.descriptor for branch in proof.branches)]
    return tuple(reduce(lambda text, title: text.replace(title, SUBJECT), hidden, text) for text in found)


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
    """
    types = [corpus.page(number).type for number in numbers]
    titles = [branch.node.title for branch in proof.branches if branch.named]
    known = (*NEUTRAL, types[0], types[len(proof.nodes) - 1], *(c.value for c in proof.constraints), *titles)
    told = {fold_spaces(word) for word in known}
    left = fold_spaces(text)
    for value in sorted(told - {""}, key=lambda value: (-len(value), value)):
        left = blank_phrase(value, left)
    quoted = (clause for hop in proof.hops for clause in (hop.clause, generalise_clause(corpus, hop)))
    sources = [*quoted, proof.answer_clause, proof.answer_relation.replace("_", " ")]
    for index, number in enumerate(numbers):
        spoken = [*(fact.text for fact in list_spoken_facts(corpus, number, left)), types[index]]
        values = [value for value in spoken if stands_in(value, left)]
        for value in (*values, *find_uncounted(corpus, number, left, (*values, *types))):
            if not any(stands_in(value, source) for source in sources):
                return CheckResult("FAIL", "fact-unproved", f"{value!r} is of node {index} and no constraint")
    return PASSED


_SHOWN = (
    r"(?:shown|pictured|depicted|seen|visible|displayed|portrayed|presented|featured|represented|photographed"
    r"|illustrated|captured|appearing)"
)
_PICTURE = r"(?:image|picture|photo|photograph|snapshot|illustration)(?!\w)"
_THE_PICTURE = rf"(?:the|this|that) (?:(?:given|attached|accompanying|provided|above|input) )?{_PICTURE}"
_RELATIVE = r"(?:,? (?:that|which|who|whom|what) (?:(?:is|was|can be|appears|we see|you see|you can see) )?|,? as | )"
_POINTERS = re.compile(
    rf"{_RELATIVE}(?:{_SHOWN} (?:in|on|by|from)|in|from|(?<=subject )of) {_THE_PICTURE}"
    rf"|{_RELATIVE}{_SHOWN} (?:here|above|below)(?!\w)"
    rf"| (?:pictured|shown|depicted|photographed)(?=[?.,;:])"
    rf"|(?: that| which| whom| what)? {_THE_PICTURE} (?:shows|depicts|portrays)(?!\w)",
    re.IGNORECASE,
)
_BEFORE = re.compile(r"\b(?:the|this|that) (?:pictured|depicted|photographed|shown) (?=\w)", re.IGNORECASE)
"""``The pictured bridge``: what points stands before the noun."""
_DETERMINERS = frozenset("the this that a an its his her their".split())
_NEUTRAL = frozenset("same very particular specific given entire whole".split())
_WINDOW = 96
"""Characters before a pointer that are searched for its noun."""
_WORDS = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*|[^\w\s]")
_ADDED = re.compile(
    r"[,(]? ?(which|who|whose|that|where|with|wearing|holding|carrying)(?= )"
    r"(?! (?:is|was|are) (?:shown|pictured|depicted))"
    r"|[,(] ?(?:located|situated|built|founded|constructed|erected|born|known) (?:in|on|at|by|near|over|as) "
)
"""What is said of the subject. Participles need their comma, and those that may be the question's verb do not count:
``which museum, which stands near the bridge in the image, opened in``."""
_NAMED_KIND = re.compile(r"[,(] ?(?:an?|one of the) ([\w'’ -]{1,60}?)(?=[,?.)])")
_APPOSITION = re.compile(r"[,(] ?(?:a|an|the|one of the) ((?:[\w'’-]+ ?){1,6})")
_HEAD_END = re.compile(r" (?:of|in|for|from|at|on|by|and|or|with|near) |,")
_QUOTED = re.compile(r"“[^“”]*”")
_SLOT = re.compile(r"\[[a-z_ ]+\]|\{\w*\}|<\w+>|__+")
_SPECIES_OF = re.compile(r"^(?:species|genus|breed|kind|type) of ")

_ANY = frozenset((*NEUTRAL, *"thing subject entity object sight individual human figure".split(), "human being"))
_BROADER_TEXT = """
place, location, site, spot: town city village settlement municipality commune suburb district country region state
 province county island lake river mountain hill valley volcano waterfall bay beach cape forest park garden square
 street bridge tower museum theatre theater stadium lighthouse castle church cathedral temple palace abbey monastery
 mosque fort
 university school library hospital station airport harbour port cemetery zoo house building monument ruin
building: museum theatre theater stadium lighthouse castle church cathedral temple palace abbey monastery mosque fort
 tower library hospital station house hotel school university
structure, landmark, construction: bridge tower lighthouse dam tunnel viaduct aqueduct pier monument castle museum
 theatre theater stadium church cathedral temple palace fort building mill
settlement, community: town city village municipality commune suburb hamlet
region, area, territory: country state province county district island
geographical feature, landform, natural feature: island lake river mountain hill valley volcano waterfall bay cape
water, body of water: lake river bay sea waterfall
waterway: river canal
organisation, organization, institution: company university school college museum newspaper band orchestra club theatre
 theater library gallery hospital government agency
business, firm, enterprise: company manufacturer publisher brewery airline newspaper
publication: newspaper magazine journal book novel
work, creative work, creation: film book novel painting opera album song play sculpture poem artwork
artwork, work of art, art work: painting sculpture drawing fresco
event, occasion: battle festival war competition ceremony tournament election
conflict: battle war siege
animal: beetle bird fish insect mammal butterfly moth
insect: beetle butterfly moth
plant: orchid
organism, living thing, creature, taxon: species animal plant beetle bird orchid fish insect mammal
vehicle: ship car locomotive aircraft train tram bus vessel
vessel: ship boat
device, instrument, artefact, artifact, item: telescope clock helmet sword camera artifact watch machine ship
"""


def _index_broader() -> dict[str, frozenset[str]]:
    index: dict[str, frozenset[str]] = {}
    for line in _BROADER_TEXT.replace("\n ", " ").strip().splitlines():
        broad, _, heads = line.partition(":")
        for word in broad.split(","):
            index[word.strip()] = frozenset(heads.split())
    return index


_BROADER = _index_broader()
"""Broader words, and the heads of the types for which each may stand."""
_THINGS = frozenset(head for heads in _BROADER.values() for head in heads)


@dataclass(frozen=True, slots=True)
class Reference:
    """One place where a question points to its picture."""

    noun: str
    """What it calls what is to be seen, with all that stands before the head, in lower case; empty if nothing."""
    after: str
    """How the text goes on, in lower case."""


def check_reference(text: str, anchor_type: str, known_types: Collection[str]) -> CheckResult:
    """Check how a final question points to its picture."""
    incoherent = find_incoherence(text)
    if incoherent:
        return CheckResult("FAIL", "reference-missing", f"{incoherent} in {text!r}")
    references = list(find_references(text))
    if not any(reference.noun for reference in references):
        return CheckResult("FAIL", "reference-missing", f"{text!r} does not say what to look at in the image")
    for reference in references:
        if reference.noun and not is_no_narrower(reference.noun, anchor_type):
            return _refuse_narrower(f"{reference.noun!r} is not {anchor_type!r} or a broader word")
        added = _find_added(reference, anchor_type, known_types)
        if added:
            return _refuse_narrower(f"{added!r} is said of the {reference.noun} in the image")
    return PASSED


def find_references(text: str) -> Iterator[Reference]:
    """Yield the places where a text points to a picture, in order."""
    flat = " ".join(text.split())
    for found in _POINTERS.finditer(flat):
        # "What the image shows" is any thing.
        free = found[0].casefold().startswith(" what ")
        noun = "thing" if free else _read_noun(flat[max(0, found.start() - _WINDOW) : found.start()])
        yield Reference(noun, flat[found.end() :][:_WINDOW].casefold())
    for found in _BEFORE.finditer(flat):
        words = _WORDS.findall(flat[found.end() :][:_WINDOW].casefold())
        yield Reference(words[0] if words else "", "")


def is_no_narrower(noun: str, anchor_type: str) -> bool:
    """Say whether a noun phrase means any entity of a type, or more than those: the type, its head, a broader word."""
    words = [word for word in noun.split() if word not in _NEUTRAL]
    said, kind = " ".join(words), " ".join(anchor_type.casefold().split())
    whole = _SPECIES_OF.sub("", kind)
    phrase = _HEAD_END.split(whole, maxsplit=1)[0]
    parts = phrase.split()
    if said in {kind, whole, *(" ".join(parts[start:]) for start in range(len(parts)))} or said in _ANY:
        return True
    return bool(parts) and parts[-1] in _BROADER.get(said, frozenset())


def find_incoherence(text: str) -> str:
    """Return why a text is no question that holds together, empty if nothing is found."""
    if not text.rstrip().rstrip("\"'”’)").endswith("?"):
        return "no question mark at the end"
    # A quoted sentence is a page's, with a gap in it or not.
    own = _QUOTED.sub("“”", text)
    slot = find_slot(own)
    if slot:
        return f"the place {slot!r} was not filled"
    if not _is_balanced(own):
        return "a bracket without its pair"
    # Names such as Bora Bora repeat a word, and so does "the place that that river"; articles never do.
    doubled = re.search(r"(?<![\w'’-])(?!that |had )([a-z]+) \1(?![\w'’-])|\b(?:the|an?) (?:the|this|an?)\b", own)
    if doubled:
        return f"{doubled[0]!r}"
    stray = re.search(r" [,;?]|,,|\(\s*\)|\? *\?", own)
    return f"{stray[0]!r}" if stray else ""


def find_slot(text: str) -> str:
    """Return a place of a template that was not filled, empty if there is none."""
    slot = _SLOT.search(text)
    return slot[0] if slot else ""


def _is_balanced(text: str) -> bool:
    expected: list[str] = []
    for letter in text:
        if letter in "([{":
            expected.append({"(": ")", "[": "]", "{": "}"}[letter])
        elif letter in ")]}" and (not expected or expected.pop() != letter):
            return False
    return not expected


def _read_noun(before: str) -> str:
    words = _WORDS.findall(before.casefold())
    for place in range(len(words) - 1, -1, -1):
        if words[place] in _DETERMINERS:
            return " ".join(words[place + 1 :])
        if not words[place][0].isalnum():
            break
    return ""


def _find_added(reference: Reference, anchor_type: str, known_types: Collection[str]) -> str:
    clause = _ADDED.match(reference.after)
    if clause and (clause[1] != "who" or _may_be_person(anchor_type)):
        return reference.after.strip()
    head = (anchor_type.casefold().split() or [""])[-1]
    named = _NAMED_KIND.match(reference.after)
    if named and named[1].endswith(f" {head}"):
        return named[1]
    apposed = _APPOSITION.match(reference.after)
    if apposed:
        starts = apposed[1].split()
        phrases = {" ".join(starts[:count]) for count in range(1, len(starts) + 1)}
        narrower = (kind for kind in map(str.casefold, known_types) if kind.endswith(f" {head}") and kind in phrases)
        return next(narrower, "")
    return ""


def _may_be_person(anchor_type: str) -> bool:
    head = _HEAD_END.split(anchor_type.casefold(), maxsplit=1)[0].split()[-1:]
    return not head or head[0] not in _THINGS


def _refuse_narrower(detail: str) -> CheckResult:
    return CheckResult("FAIL", "reference-narrower", detail)
