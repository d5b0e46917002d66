"""What the prose of a page says of one field, read by the evaluator and compared by value.

Infoboxes are incomplete, and prose says a thing in more words than a list of cues can hold. A reader that does not see
the infobox writes down every value that a sentence gives for a field. Another value than the proof's fails; one that no
rule can compare is UNKNOWN, which refuses. A relation has several values unless something says otherwise: a property of
Wikidata that has one (``data/single_valued.toml``), a sentence that says "only", or a page that was read and gives no
second one. What was read is stored in the proof and can be compared again without a model.
"""

import hashlib
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal

from pipelines.checks.leakage import find_demonyms
from pipelines.checks.readings import digest_glosses, find_gloss, state_relation
from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.corpus.kinds import BUILDING, LOCATION
from pipelines.corpus.store import Corpus
from pipelines.errors import RecordFailed
from pipelines.graph.answers import compare_answers
from pipelines.graph.cues import EVERYWHERE
from pipelines.graph.facts import Match, compare_value, fold_names, holds_phrase, read_shown, read_wanted, split_key
from pipelines.graph.prose import Sentence, list_prose
from pipelines.graph.query import MENTIONS, Indexes, find_article, locate_nodes
from pipelines.graph.statements import fold_forms, read_sentence, show_page
from pipelines.graph.titles import asks_name
from pipelines.graph.values import KNOWN_UNITS, Number, find_measures, find_spelled_numbers
from pipelines.ids import digest_value
from pipelines.names import fold_name
from pipelines.services.prompting import Prompted, RoleClient, ask_model
from schemas.manifest import ModelEntry
from schemas.proofs import Agreement, Answer, Likeness, PageReading, Proof, ReadProposition
from schemas.tasks import ReadPageInputs, ReadPageReply, StatedValue

VERSION = 4
"""Version of the choice of sentences and of the comparison; part of a reader's identity."""
MAX_PROSE = 400
"""Sentences of a page among which those to be read are chosen."""
MAX_READ = 40
"""Sentences of a page that are read for one field, those with a cue word first."""
_LIST = Path(__file__).with_name("data") / "single_valued.toml"
_CAPITAL = re.compile(r"(?<=[\w,;:)] )[^\W\d_a-z]\w")
_WORD = re.compile(r"[^\W\d_]+")
_PARTS = re.compile(r"\s*(?:,|;|\(|\)|\band\b|\bor\b)\s*")
_NOT = re.compile(r"\s*not\s+", re.IGNORECASE)
_SEA_LEVEL = re.compile(r"(?<![^ ])(?<!above )(?<!below )sea level", re.IGNORECASE)
_PERCENT = frozenset(["percent", "percentage", "pct"])
_NEXT = r", (?:the )?[^\W\d_a-z][\w'’-]*(?: [^\W\d_a-z][\w'’-]*){0,3}"
"""A comma and a capitalised name; "and" or "or" after the last of them makes a list of equals."""
_RANGE = re.compile(r"\b(?:to|between)\b|[\u2012-\u2015-]")
_JOINS = re.compile(r"\b(?:and|or|then|later)\b")
_UNCLEAR = "unclear"
_WITHIN = frozenset(
    "country subdivision state province region county district location municipality city department island".split()
)
"""Words of keys that say what a place lies in."""
_PLACES = _WITHIN | frozenset("place in at".split())
"""Words of keys and glosses that lead to a place."""
_LEADS_IN = re.compile(r"(?:\bin|,)(?: the)? $")
"""What stands before the link to a place around: "is a town in [[Denbighshire]], [[Wales]]"."""
_TOWARDS = re.compile(r"(?:north|south|east|west)[a-z-]* of ")
"""How a value begins that is no place, but a part of the world: "west of the Mississippi River"."""
LEVELS = 3
"""Places around a place that are followed: town, county, state, country."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One value that a proof takes from an infobox: the answer's, or the entity that a hop leads to."""

    node: int
    """Node number of the page."""
    relation: str
    value: Answer | int
    """The answer, or the node number of the hop's object."""
    article: int = -1
    """The article that the answer is the name of; -1 for none."""
    single: bool = False
    """Whether a reader of the hop's sentence said that it leads to one thing."""

    @property
    def kind(self) -> Literal["date", "number", "words", "entity"]:
        """What the field holds."""
        if isinstance(self.value, int) or self.article >= 0:
            return "entity"
        return self.value.type if self.value.type in ("date", "number") else "words"


def list_claims(corpus: Corpus, proof: Proof, answer: Answer) -> tuple[Claim, ...]:
    """Return what the prose is read for: the answer, unless agreement is off, and every hop that names a field.

    A backward hop counts all entities with any value, and a quoted sentence whose relation nobody read has one blank.
    """
    numbers = locate_nodes(corpus, proof.nodes)
    article = find_article(corpus, numbers[-1], proof.answer_relation, answer)
    asked = [Claim(numbers[-1], proof.answer_relation, answer, article)] if find_mode(proof) != "off" else []
    hops = [
        Claim(numbers[hop.index - 1], hop.gloss or hop.relation, numbers[hop.index], single=bool(hop.gloss))
        for hop in proof.hops
        if not hop.backward and (hop.gloss or hop.relation != MENTIONS)
    ]
    return (*asked, *hops)


def find_mode(proof: Proof) -> Agreement:
    """Return what the prose must say of the answer: nothing of the page's own name, which it says in any case.

    An answer that a sentence gives must be read there by another reader.
    """
    if asks_name(proof):
        return "off"
    return "required" if proof.answer_clause else proof.thresholds.agreement


@dataclass(frozen=True)
class ProseReader(Prompted):
    """The evaluator as a reader of pages."""

    ground: Indexes
    asking: RoleClient

    @property
    def identity(self) -> str:
        return digest_value([VERSION, MAX_PROSE, MAX_READ, digest_glosses(), self.asking.identity])

    def describe(self) -> ModelEntry:
        """Return the evaluator's entry in a manifest."""
        return self.asking.describe("evaluator")

    async def check(self, proof: Proof, answer: Answer) -> tuple[tuple[PageReading, ...], CheckResult]:
        """Read the pages that a proof takes its values from, up to the first that speaks against it."""
        readings: list[PageReading] = []
        for claim in list_claims(self.ground.corpus, proof, answer):
            reading, result = await self.check_claim(claim, find_mode(proof))
            readings += [reading] if reading else []
            if not result.passed:
                return tuple(readings), result
        return tuple(readings), PASSED

    async def check_claim(self, claim: Claim, agreement: Agreement) -> tuple[PageReading | None, CheckResult]:
        """Read a page for one claim, and say what this proves of it."""
        reading = await self.read(claim)
        if isinstance(reading, CheckResult):
            return None, reading
        return reading, judge_reading(self.ground, claim, reading, agreement)

    async def read(self, claim: Claim) -> PageReading | CheckResult:
        """Return what the prose says of a claim's field, or UNKNOWN when two replies cannot be used."""
        corpus = self.ground.corpus
        page, chosen = corpus.page(claim.node), choose_sentences(self.ground, claim.node, claim.relation, claim.kind)
        inputs = ReadPageInputs(
            name=page.title,
            type=page.type,
            field=state_relation(claim.relation),
            gloss=find_gloss(state_relation(claim.relation)),
            kind=claim.kind,
            sentences=tuple(sentence.text for sentence in chosen.sentences),
        )
        reply, reader = ReadPageReply(propositions=()), ""
        try:
            if chosen.sentences:
                reply = await ask_model(self.asking, inputs, ReadPageReply)
                reader = f"{self.asking.model.name}:{self.identity[:16]}"
            propositions = [_place(self.ground, claim, chosen.sentences, stated) for stated in reply.propositions]
        except RecordFailed as error:
            return CheckResult(
                "UNKNOWN",
                "multi-valued" if isinstance(claim.value, int) else "answer-unconfirmed",
                f"{page.title} was not read: {error.detail}",
            )
        return PageReading(
            page_id=page.page_id,
            relation=claim.relation,
            reader=reader,
            sentences=chosen.digest,
            propositions=tuple(propositions),
        )


def _place(ground: Indexes, claim: Claim, sentences: Sequence[Sentence], stated: StatedValue) -> ReadProposition:
    sentence = sentences[stated.sentence - 1] if 0 < stated.sentence <= len(sentences) else None
    if sentence is None or not _holds(sentence, stated.words):
        raise RecordFailed("unread", f"sentence {stated.sentence} does not say {stated.words!r}")
    return ReadProposition(
        start=sentence.start,
        end=sentence.end,
        words=stated.words,
        value=stated.value.strip(),
        when="" if stated.when.strip().casefold() == "none" else stated.when.strip(),
        only=stated.only,
        likeness=compare_stated(ground, claim, sentence, stated.value.strip()),
    )


def _holds(sentence: Sentence, words: str) -> bool:
    return holds_phrase(fold_name(sentence.text), fold_name(words))


@dataclass(frozen=True, slots=True)
class Chosen:
    """The sentences of a page that are read for a field, in the page's order."""

    sentences: tuple[Sentence, ...]
    complete: bool
    """Whether every sentence with a cue word of the field is among them."""

    @property
    def digest(self) -> str:
        """The sha256 of the sentences, in order, with their spans."""
        told = "\n".join(f"{sentence.start}-{sentence.end} {sentence.text}" for sentence in self.sentences)
        return hashlib.sha256(told.encode()).hexdigest()


@lru_cache(maxsize=4096)
def choose_sentences(ground: Indexes, node: int, relation: str, kind: str) -> Chosen:
    """Return the sentences to be read: for a date or number those with a figure or cue word, else all of them.

    At most ``MAX_READ``: the lead and those with a cue word first, then, for an entity, those that link or have a name.
    The value of the field decides nothing, so that the choice does not reveal it.
    """
    prose = list_prose(ground.corpus, node)[:MAX_PROSE]
    links = [link.start for link in ground.corpus.links(node)] if kind == "entity" else []
    ranked: list[tuple[int, Sentence]] = []
    for sentence in prose:
        if sentence.lead or ground.cues.states(relation, sentence.text):
            ranked.append((0, sentence))
        elif kind not in ("date", "number"):
            named = bool(_CAPITAL.search(sentence.text)) or any(sentence.start <= at < sentence.end for at in links)
            ranked.append((1 if kind != "entity" or named else 2, sentence))
        elif any(map(str.isdigit, sentence.text)) or find_spelled_numbers(_WORD.findall(sentence.text.lower())):
            ranked.append((1, sentence))
    kept = sorted(ranked, key=lambda pair: (pair[0], pair[1].start))[:MAX_READ]
    complete = sum(rank == 0 for rank, _ in ranked) <= MAX_READ
    return Chosen(tuple(sorted((sentence for _, sentence in kept), key=lambda each: each.start)), complete)


def compare_stated(ground: Indexes, claim: Claim, sentence: Sentence, value: str) -> Likeness:
    """Compare a value that a sentence gives with the claim's; a denial of the claim's value is another value."""
    denied = _NOT.match(value)
    bare = value[denied.end() :] if denied else value
    if not bare or bare.casefold() == _UNCLEAR:
        return "unclear"
    corpus, folded = ground.corpus, fold_name(bare).removeprefix("the ")
    found = _find_linked(corpus, claim.node, sentence, folded)
    found = corpus.find(bare) if found is None else found
    object: int | None
    if isinstance(claim.value, int) or claim.article >= 0:
        object = claim.value if isinstance(claim.value, int) else claim.article
        likeness, forms = _compare_object(corpus, object, found, bare), corpus.aliases(object)
    else:
        likeness, object = _compare_literal(claim.relation, claim.value, bare), corpus.find(claim.value.surface)
        forms = (claim.value.surface, *claim.value.aliases)
    if likeness in ("other", "unclear") and claim.kind in ("entity", "words"):
        within = object is not None and found is not None and _is_within(corpus, object, found)
        if within or (not _PLACES.isdisjoint(split_key(claim.relation)) and _adjoins(corpus, claim.node, forms, bare)):
            likeness = "close"
    if not denied:
        return likeness
    return "other" if likeness == "same" else "close" if likeness == "other" else "unclear"


def _compare_literal(relation: str, answer: Answer, value: str) -> Likeness:
    if answer.type == "number":
        value = _write_plainly(relation, answer, value)
    if compare_answers(value, answer) == "correct":
        return "same"
    if answer.type not in ("date", "number"):
        return _compare_words(answer, value)
    if answer.type == "number" and _spans(value, Number(answer.value, answer.unit)):
        return "close"
    found = {r.likeness for r in read_sentence(Sentence(value, 0, len(value), False), answer, frozenset(), frozenset())}
    if found:
        # "1871 to 1873" holds the answer and another value: neither.
        return next(iter(found)) if len(found) == 1 else "close"
    wanted = read_wanted(relation, value)
    if answer.type != "date" or wanted.years is None:
        return "unclear"
    match = compare_value(wanted, read_shown(answer.value, answer.value, relation))
    return "other" if match is Match.NO else "close"


def _write_plainly(relation: str, answer: Answer, value: str) -> str:
    if not answer.unit and not _PERCENT.isdisjoint(split_key(relation)):
        return value.replace("%", "").strip()
    return _SEA_LEVEL.sub(f"0 {answer.unit}", value) if answer.unit in KNOWN_UNITS else value


def _spans(value: str, number: Number) -> bool:
    ends = [spot.value for spot in find_measures(value)]
    if len(ends) != 2 or not _RANGE.search(value):
        return False
    # The unit of "75 to 209 m" stands once.
    low, high = (Number(end.value, end.unit or ends[1].unit) for end in ends)
    if len({low.unit, high.unit, number.unit}) != 1:
        return False
    return Decimal(low.value) <= Decimal(number.value) <= Decimal(high.value)


def _compare_words(answer: Answer, value: str) -> Likeness:
    folded, forms = fold_name(value), fold_forms(answer)
    if folded in forms or folded.removeprefix("the ") in forms:
        return "same"
    first, _, rest = value.partition(",")
    if fold_name(first) in forms and rest and not _JOINS.search(rest):
        # "Staunton, Virginia" is Staunton, and says what it lies in.
        return "same"
    if any(holds_phrase(folded, form) or holds_phrase(form, folded) for form in forms):
        return "close"
    words = set(folded.split()) - EVERYWHERE
    if any(form and words >= set(form.split()) for form in forms):
        # "The United States Apollo space programme" says what "Apollo programme" says, and more.
        return "close"
    return "other" if words and all(words.isdisjoint(form.split()) for form in forms) else "unclear"


def _compare_object(corpus: Corpus, object: int, found: int | None, value: str) -> Likeness:
    names = fold_names(corpus, object)
    folded = fold_name(value).removeprefix("the ")
    if folded in names or f"the {folded}" in names:
        return "same"
    if found is not None:
        return "same" if found == object else "other"
    parts = [fold_name(part) for part in _PARTS.split(value) if any(map(str.isupper, part))]
    if len(parts) == 1 and any(_abbreviates(parts[0], name) or holds_phrase(parts[0], name) for name in names):
        return "same"
    return "close" if any(part in names for part in parts) else "unclear"


def _find_linked(corpus: Corpus, subject: int, sentence: Sentence, folded: str) -> int | None:
    for link in corpus.links(subject):
        if sentence.start <= link.start < sentence.end and fold_name(link.anchor_text).removeprefix("the ") == folded:
            return corpus.find(link.target.partition("#")[0].strip())
    return None


def _abbreviates(short: str, name: str) -> bool:
    words, left = short.split(), name.split()
    for word in reversed(words):
        while left and not (left[-1] == word or (len(word) == 1 and left[-1].startswith(word))):
            left.pop()
        if not left:
            return False
        left.pop()
    # The last word of a name is the one that tells: "Hans" may be any Hans.
    return bool(words) and words[-1] == name.split()[-1]


def _is_within(corpus: Corpus, one: int, other: int) -> bool:
    return other in _list_around(corpus, one) or one in _list_around(corpus, other)


def _list_around(corpus: Corpus, place: int) -> set[int]:
    around, last = set[int](), {place}
    for _ in range(LEVELS):
        last = {outer for inner in last for outer in _step_out(corpus, inner)} - around
        around |= last
    return around


def _step_out(corpus: Corpus, place: int) -> Iterator[int]:
    """Yield what a page says its place lies in: by its box and statements, and by links of its first sentence."""
    if corpus.page(place).domain not in (LOCATION, BUILDING):
        return
    for fact in corpus.facts(place):
        outer = fact.target if fact.target >= 0 else corpus.find(fact.text)
        if outer is not None and not _WITHIN.isdisjoint(split_key(fact.key)):
            yield outer
    leads = [each for each in list_prose(corpus, place) if each.lead]
    for link in corpus.links(place):
        before = (corpus.text(place)[each.start : link.start] for each in leads if each.start <= link.start < each.end)
        target = corpus.find(link.target.partition("#")[0].strip()) if any(map(_LEADS_IN.search, before)) else None
        if target is not None and corpus.page(target).domain == LOCATION:
            yield target


def _adjoins(corpus: Corpus, node: int, forms: Sequence[str], value: str) -> bool:
    """Say whether a page writes one place as lying in the other: "Denbigh, Wales", and "Welsh"; or a value is vague."""
    shown, told = show_page(corpus, node), value.partition(",")[0]
    return _TOWARDS.match(value) is not None or any(
        _writes_around(shown, form, told) or _writes_around(shown, told, form) for form in forms
    )


def _writes_around(shown: str, inner: str, outer: str) -> bool:
    for rows in re.findall(rf"(?<!\w){re.escape(inner)}((?:{_NEXT})+)(?!\w|{_NEXT}|,? (?:and|or) [^\W\d_a-z])", shown):
        around = [row.removeprefix("the ") for row in rows.split(", ")[1:]]
        if any(f"{fold_name(row)} ".startswith(f"{fold_name(outer).removeprefix('the ')} ") for row in around):
            return True
        if find_demonyms(outer, [(row,) for row in around]):
            return True
    return False


def judge_reading(ground: Indexes, claim: Claim, reading: PageReading, agreement: Agreement) -> CheckResult:
    """Say what a reading proves of a claim; the likeness in the reading is taken as it stands."""
    if isinstance(claim.value, int):
        return judge_second_value(ground, claim, reading)
    return judge_agreement(ground, claim, reading, agreement)


def judge_agreement(ground: Indexes, claim: Claim, reading: PageReading, mode: Agreement) -> CheckResult:
    """FAIL (``answer-disputed``) when the prose gives another value; UNKNOWN when it gives one that may be another.

    UNKNOWN (``answer-disputed``) for another value of another time as well, and (``answer-unconfirmed``) when no
    sentence gives the value and the mode requires one.
    """
    title = ground.corpus.page(claim.node).title
    for said in _list_against(reading):
        detail = f"{title} says {said.words!r} of {state_relation(claim.relation)}"
        return CheckResult("UNKNOWN" if said.when or said.likeness != "other" else "FAIL", "answer-disputed", detail)
    # A year confirms a day: prose seldom says all of a date again.
    vague = ("same", "close") if claim.kind == "date" else ("same",)
    if mode == "required" and all(said.likeness not in vague for said in reading.propositions):
        return CheckResult("UNKNOWN", "answer-unconfirmed", f"no sentence of {title} was read to say it")
    return PASSED


def judge_second_value(ground: Indexes, claim: Claim, reading: PageReading) -> CheckResult:
    """FAIL (``multi-valued``) when the prose gives another entity for a hop; UNKNOWN when it may, or is no evidence.

    A relation that often has several values needs more than silence: a sentence that gives this one, or says "only".
    """
    title, said_of = ground.corpus.page(claim.node).title, state_relation(claim.relation)
    same = [said for said in reading.propositions if said.likeness == "same"]
    # Beside a value for all time "the capital from 1901 to 1927" is no second one.
    for said in _list_against(reading, any(not said.when for said in same)):
        detail = f"{title} says {said.words!r} of {said_of}"
        return CheckResult("FAIL" if said.likeness == "other" else "UNKNOWN", "multi-valued", detail)
    if claim.single or is_single_valued(claim.relation) or any(said.only for said in same):
        return PASSED
    chosen = choose_sentences(ground, claim.node, claim.relation, claim.kind)
    if chosen.complete and (same or not ground.facts.is_multiple(claim.relation)):
        return PASSED
    return CheckResult("UNKNOWN", "multi-valued", f"nothing says that {title} has one {said_of}")


def _list_against(reading: PageReading, lasts: bool = False) -> list[ReadProposition]:
    against = (s for s in reading.propositions if s.likeness in ("other", "unclear") and not (lasts and s.when))
    return sorted(against, key=lambda said: (said.likeness != "other", bool(said.when)))


def is_single_valued(relation: str) -> bool:
    """Say whether an entity has one value of a relation, by the words of its key."""
    words = frozenset(split_key(relation))
    return any(line <= words for line in _read_list())


@cache
def _read_list() -> tuple[frozenset[str], ...]:
    table = tomllib.loads(_LIST.read_text(encoding="utf-8"))
    return tuple(frozenset(line.split()) for lines in table.values() for line in lines.strip().splitlines())


def list_reading_problems(ground: Indexes, proof: Proof, answer: Answer) -> Iterator[str]:
    """Yield what is wrong with a proof's readings of pages, compared again without a model."""
    if not proof.thresholds.read_pages:
        if proof.page_readings:
            yield "pages: read, though the thresholds do not ask for it"
        return
    claims = list_claims(ground.corpus, proof, answer)
    if len(claims) != len(proof.page_readings):
        yield f"pages: {len(proof.page_readings)} readings for {len(claims)} claims"
        return
    for claim, reading in zip(claims, proof.page_readings, strict=True):
        problem = next(_compare_again(ground, claim, reading, find_mode(proof)), None)
        if problem:
            yield f"pages: {ground.corpus.page(claim.node).title}: {claim.relation}: {problem}"


def _compare_again(ground: Indexes, claim: Claim, reading: PageReading, agreement: Agreement) -> Iterator[str]:
    page, chosen = ground.corpus.page(claim.node), choose_sentences(ground, claim.node, claim.relation, claim.kind)
    if (reading.page_id, reading.relation) != (page.page_id, claim.relation):
        yield f"the reading is of {reading.relation} of page {reading.page_id}"
    if reading.sentences != chosen.digest or bool(reading.reader) != bool(chosen.sentences):
        yield "other sentences were read"
    spans = {(sentence.start, sentence.end): sentence for sentence in chosen.sentences}
    for said in reading.propositions:
        sentence = spans.get((said.start, said.end))
        if sentence is None or not _holds(sentence, said.words):
            yield f"{said.words!r} does not stand at {said.start}-{said.end}"
        elif compare_stated(ground, claim, sentence, said.value) != said.likeness:
            yield f"{said.value!r} is not {said.likeness}"
    result = judge_reading(ground, claim, reading, agreement)
    if not result.passed:
        yield f"{result.code}: {result.detail}"
