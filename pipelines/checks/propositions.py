"""What a page's prose states of a fact, read by a model: another value of the answer, or a second one of a hop.

Infoboxes are incomplete (research/quality.md, U2 and U5), and prose says a thing in more words than any list of cues.
The reader sees sentences and the name of a field, never the value in the infobox; comparing is ours. One request reads
one field of one page, whatever row asks for it, so that its recorded reply serves all of them.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from typing import Final, Literal

from pipelines.checks.descriptors import fold_spaces
from pipelines.checks.leakage import find_numbers
from pipelines.checks.readings import state_relation
from pipelines.checks.uniqueness import list_alike
from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.errors import RecordFailed
from pipelines.graph.answers import compare_answers
from pipelines.graph.facts import fold_names
from pipelines.graph.prose import Sentence, list_prose, show_sentence
from pipelines.graph.query import MENTIONS, Indexes, locate_nodes
from pipelines.graph.values import Number, compare_measures, find_dates, find_measures, parse_date
from pipelines.ids import digest_value
from pipelines.names import fold_name
from pipelines.services.prompting import RoleClient, ask_model
from schemas.manifest import ModelEntry
from schemas.proofs import Answer, Hop, Proof, Stated
from schemas.tasks import Proposition, ReadPageInputs, ReadPageReply

VERSION = 1
"""Version of the choice of sentences and of the comparison."""
MOST = 40
"""Sentences of a page that are shown."""
ROUNDED = Decimal("0.1")
"""Largest difference between a value and one that a sentence rounds, as a share."""
DISPUTED, SEVERAL = "answer-disputed", "multi-valued"
Sameness = Literal["same", "other", "open"]
_SAME: Final = "same"
_OTHER: Final = "other"
_OPEN: Final = "open"
_TIME = re.compile(r"\d|january|february|march|april|may|june|july|august|september|october|november|december|centur")


@dataclass(frozen=True)
class ProseReader:
    """Reads pages for one fact each, and compares what they state with infobox and proof."""

    ground: Indexes
    asking: RoleClient

    @property
    def identity(self) -> str:
        """Digest of everything that decides what is read and how it is compared."""
        return digest_value([VERSION, MOST, self.asking.identity])

    def prompts(self) -> dict[str, str]:
        """The reading prompt."""
        return {self.asking.prompt.label: self.asking.prompt.digest}

    def describe(self) -> ModelEntry:
        """Return the evaluator's entry in a manifest."""
        return self.asking.describe("evaluator")

    async def check_answer(self, node: int, relation: str, answer: Answer) -> tuple[tuple[Stated, ...], CheckResult]:
        """Read a page for the fact asked for: FAIL (``answer-disputed``) when a sentence states another value.

        Returns:
            What the page states, and UNKNOWN where a statement cannot be compared.

        Raises:
            ServiceError: if the model is unavailable.
        """
        sentences = _choose(self.ground, node, relation, _shows_value(answer))
        return await self._read(node, relation, sentences, DISPUTED, lambda said: compare_value(said, answer))

    async def check_hop(self, node: int, value: int, hop: Hop) -> tuple[tuple[Stated, ...], CheckResult]:
        """Read a page for a second value of a forward hop: FAIL (``multi-valued``) when a sentence states one.

        A backward hop counts every entity with any value, and a quoted sentence has one blank, so they pass.
        """
        if hop.backward or hop.relation == MENTIONS:
            return (), PASSED
        corpus = self.ground.corpus
        places = sorted(list_alike(corpus, node, value).values())
        sentences = _choose(self.ground, node, hop.relation, lambda each: _links_in(each, places))
        names = fold_names(corpus, value)
        return await self._read(node, hop.relation, sentences, SEVERAL, lambda said: compare_name(said, names))

    async def _read(
        self,
        node: int,
        relation: str,
        sentences: Sequence[Sentence],
        code: str,
        judge: Callable[[Proposition], Sameness],
    ) -> tuple[tuple[Stated, ...], CheckResult]:
        if not sentences:
            return (), PASSED
        page = self.ground.corpus.page(node)
        inputs = ReadPageInputs(
            name=page.title,
            type=page.type,
            field=state_relation(relation),
            sentences=tuple(sentence.text for sentence in sentences),
        )
        try:
            reply = await ask_model(self.asking, inputs, ReadPageReply)
        except RecordFailed as error:
            return (), CheckResult("UNKNOWN", code, str(error))
        stated: list[Stated] = []
        worst = PASSED
        for said in reply.propositions:
            number = said.sentence - 1
            if not 0 <= number < len(sentences) or fold_spaces(said.words) not in fold_spaces(sentences[number].text):
                return tuple(stated), CheckResult("UNKNOWN", code, f"words that do not stand there: {said.words!r}")
            sentence, verdict = sentences[number], judge(said)
            stated.append(
                Stated(
                    page_id=page.page_id,
                    relation=relation,
                    start=sentence.start,
                    end=sentence.end,
                    value=said.value,
                    about=said.about,
                )
            )
            if verdict != _SAME and worst.outcome != "FAIL":
                detail = f"{page.title} states {said.value!r}: {sentence.text[:200]!r}"
                worst = CheckResult("FAIL" if verdict == _OTHER else "UNKNOWN", code, detail)
        return tuple(stated), worst


def find_stated_problems(ground: Indexes, proof: Proof, answer: Answer) -> Iterator[str]:
    """Yield what a proof's recorded statements of prose contradict, compared again, and those that stand nowhere."""
    numbers = locate_nodes(ground.corpus, proof.nodes)
    pages = {node.page_id: number for node, number in zip(proof.nodes, numbers, strict=True)}
    values = {(proof.nodes[hop.index - 1].page_id, hop.relation): numbers[hop.index] for hop in proof.hops}
    for said in proof.stated:
        number = pages.get(said.page_id)
        text = "" if number is None else show_sentence(ground.corpus.text(number)[said.start : said.end])
        hop = values.get((said.page_id, said.relation))
        if fold_spaces(said.value) not in fold_spaces(text):
            yield f"prose: no sentence there says {said.value!r} of {said.relation}"
        elif number == numbers[-1] and said.relation == proof.answer_relation:
            if compare_value(said, answer) != _SAME:
                yield f"prose: it says {said.value!r}, the answer is {answer.surface!r}"
        elif hop is None or compare_name(said, fold_names(ground.corpus, hop)) != _SAME:
            yield f"prose: {said.value!r} is another {said.relation}"


def _choose(ground: Indexes, node: int, relation: str, tells: Callable[[Sentence], bool]) -> tuple[Sentence, ...]:
    """Return the sentences of a page that may state a fact: those with a cue of it or with something like a value."""
    prose = list_prose(ground.corpus, node)
    chosen = (each for each in prose if tells(each) or ground.cues.states(relation, each.text))
    return tuple(islice(chosen, MOST))


def _shows_value(answer: Answer) -> Callable[[Sentence], bool]:
    if answer.type == "date":
        return lambda each: bool(_TIME.search(each.text.casefold())) or bool(find_numbers(each.text))
    if answer.type == "number":
        return lambda each: bool(find_numbers(each.text))
    return lambda each: each.lead


def _links_in(sentence: Sentence, places: Sequence[int]) -> bool:
    return any(sentence.start <= place < sentence.end for place in places)


def compare_value(said: Proposition | Stated, answer: Answer) -> Sameness:
    """Return ``same``, ``other`` or ``open`` for a value that a sentence states, beside the answer.

    A date that is coarser or finer is the same, a number that is rounded if it is near. What holds of another time or
    of a part contradicts nothing.
    """
    if said.about in ("other time", "part") or compare_answers(said.value, answer) == "correct":
        return _SAME
    if answer.type == "date":
        wanted, dates = parse_date(answer.value), [spot.value for spot in find_dates(said.value)]
        if wanted is None or not dates:
            return _OPEN
        return _SAME if any(date.covers(wanted) or wanted.covers(date) for date in dates) else _OTHER
    if answer.type == "number":
        numbers = [spot.value for spot in find_measures(said.value)]
        verdicts = {_compare_number(number, answer, said.about == "about") for number in numbers}
        return _SAME if _SAME in verdicts else _OTHER if verdicts == {_OTHER} else _OPEN
    return _OTHER if compare_answers(said.value, answer) == "incorrect" else _OPEN


def _compare_number(number: Number, answer: Answer, rounded: bool) -> Sameness:
    wanted = Number(answer.value, answer.unit)
    likeness = compare_measures(number if number.unit else Number(number.value, wanted.unit), wanted)
    if likeness == "same" or (likeness == "close" and rounded):
        return _SAME
    if rounded and number.unit in ("", wanted.unit):
        size = abs(Decimal(wanted.value))
        return _SAME if abs(Decimal(number.value) - Decimal(wanted.value)) <= ROUNDED * size else _OTHER
    return _OTHER if likeness == "other" else _OPEN


def compare_name(said: Proposition | Stated, names: frozenset[str]) -> Sameness:
    """Return ``same`` when a sentence gives one of an entity's folded names, ``other`` when it gives another."""
    value = fold_name(said.value)
    words = set(value.split())
    if value in names or any(words and words <= set(name.split()) for name in names):
        return _SAME
    return _OPEN if any(name and name in value for name in names) else _OTHER
