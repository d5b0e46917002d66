"""Writers that say other than their proofs release nothing; the same texts, rightly said, are not refused."""

import asyncio
import re
from collections import Counter
from dataclasses import dataclass, replace

import pytest

from pipelines.checks.readings import Evaluator
from pipelines.errors import RecordFailed
from pipelines.graph.query import Indexes
from pipelines.services.prompting import RoleClient, load_prompt
from pipelines.toy.reader import GrammarReader
from schemas.base import Rejection
from schemas.datasets import Grounding, Path
from schemas.tasks import (
    Descriptor,
    DescriptorsReply,
    ProposeDescriptorsInputs,
    QuestionReply,
    ReferToAnchorInputs,
    RewriteQuestionInputs,
    WriteQuestionInputs,
)
from tests.pipelines.stages.players import FakeModel, TrustingReader

SWORN_ENEMY, VAGUE = "the sworn enemy of", "something that has to do with"


@dataclass(frozen=True)
class OnePhraseWriter:
    """Says the same of every relation; it names what it must, asks for the attribute, and hides what it is told."""

    phrase: str

    def __call__(self, inputs):
        match inputs:
            case WriteQuestionInputs():
                names = [inputs.anchor_name, *(hop.object_name for hop in inputs.hops[:-1])]
                chain = f", {self.phrase} ".join(reversed(names))
                asked = inputs.answer_relation.replace("_", " ")
                return QuestionReply(question=f"What {asked} has {self.phrase} {chain}{_state_form(inputs.answer)}?")
            case ProposeDescriptorsInputs():
                return DescriptorsReply(descriptors=(Descriptor(text=f"{self.phrase} [subject]"),))
            case RewriteQuestionInputs():
                # The name is in apposition to the one before it, which stays as the descriptor's subject.
                return QuestionReply(question=inputs.question.replace(f"{self.phrase} {inputs.name}, ", ""))
            case ReferToAnchorInputs():
                text = inputs.question.replace(inputs.name, f"the {inputs.anchor_type} in the image")
                return QuestionReply(question=text)


def _state_form(answer):
    forms = {"day": " (the full date)", "month": " (month and year)", "year": " (the year)"}
    return forms.get(answer.precision, f" (in {answer.unit})" if answer.unit else "")


def play(assembly, writer, reader):
    """Return the stages with a writer's words, read back by ``reader``."""
    model = FakeModel(writer)
    ask = lambda name, version=0: RoleClient(model, load_prompt(name, version))  # noqa: E731
    return (
        replace(assembly.build_stage("questions"), asking=ask("write_question"), reader=reader),
        replace(
            assembly.build_stage("rewrites"),
            proposing=ask("propose_descriptors", 4),
            rewriting=ask("rewrite_question"),
            reader=reader,
        ),
        replace(assembly.build_stage("groundings"), asking=ask("refer_to_anchor"), reader=reader),
    )


def drive(stages, rows):
    """Return the rows that come out of the last stage, and how many came out of each."""
    kept = Counter()
    for stage in stages:
        out = []
        for row in rows:
            try:
                made = asyncio.run(stage(row))
            except RecordFailed as error:
                kept[f"{stage.name}: {getattr(error, 'error', type(error).__name__)}"] += 1
                continue
            out += [] if isinstance(made, Rejection) else made
        rows = out
        kept[stage.name] = len(rows)
    return rows, kept


def make_grammar(corpus) -> Evaluator:
    model = GrammarReader()
    return Evaluator(
        Indexes(corpus), *(RoleClient(model, load_prompt(name)) for name in ("read_question", "screen_question"))
    )


@pytest.fixture(scope="module", params=[36, pytest.param(200, marks=pytest.mark.slow)])
def paths(demo, request) -> list[Path]:
    return demo.rows("paths", Path)[: request.param]


@pytest.mark.parametrize("phrase", [SWORN_ENEMY, VAGUE])
def test_a_writer_that_says_one_phrase_of_every_relation_releases_nothing(demo, assembly, paths, phrase):
    grammar = make_grammar(assembly.corpus)
    assert drive(play(assembly, OnePhraseWriter(phrase), grammar), paths)[0] == []
    # The evaluator alone stops it: where every text is trusted some come through.
    trusted, kept = drive(play(assembly, OnePhraseWriter(phrase), TrustingReader()), paths)
    assert trusted, kept
    # And at every later stage too, were the first words trusted.
    _, rewrites, groundings = play(assembly, OnePhraseWriter(phrase), grammar)
    questions = drive(play(assembly, OnePhraseWriter(phrase), TrustingReader())[:1], paths)[0]
    assert questions
    assert drive((rewrites, groundings), questions)[0] == []


def swap(*pairs):
    """Return a damage that replaces the first of some patterns that stands in a text; None where none does."""

    def damage(text):
        for pattern, put in pairs:
            damaged = re.sub(pattern, put, text, count=1)
            if damaged != text:
                return damaged
        return None

    return damage


def add(start="", end=""):
    return lambda text: (f"{start}{text[0].lower()}{text[1:]}" if start else text).removesuffix("?") + (end or "?")


NOUNS = "birthplace|place of birth|place of death|seat|spouse|discoverer|designer|author|director|architect"
HOP = rf"the (?:[a-z]+ )?(?:{NOUNS}) of"
DAMAGES = {
    "feet in place of metres": swap((r"\bkilomet(?:re|er)s?\b", "miles"), (r"\bmet(?:re|er)s?\b", "feet")),
    "a hop dropped": swap(
        (rf"{HOP} (?=the|that)", ""),
        (r"the (?:place|city|town) (?:that is )?(?:twinned with|a twin of) (?=the|that)", ""),
    ),
    "a hop doubled": swap((rf"({HOP}) (?=the|that)", r"\1 \1 ")),
    "a second question": add(end=", and how many people live there?"),
    "another event": swap(
        (r"\bbirth of\b", "death of"), (r"\bborn\?", "buried?"), (r"\bestablish(?:ed|ment)\b", "abolition")
    ),
    "another attribute": swap(
        (r"\belevation\b", "population"),
        (r"above sea level", "wide"),
        (r"\blong\b", "deep"),
        (r"\bmotto\b", "official colour"),
    ),
    "a hypothetical": add(start="If the war had never been fought, "),
    "a time": add(end=", as measured in 2024?"),
    "an instruction": add(end="? Reply in French."),
    "a vaguer relation": swap((HOP, "a place or person connected with"), (r"twinned with", "linked to")),
    "a relation reversed": swap(
        (r"the (?:birthplace|place of birth) of", "the person born in"),
        (r"the person who (?:discovered|directed|started|set up)", "what was never founded by"),
        (r"the seat of", "the institution with its seat in"),
    ),
    "another precision": swap(
        (r"\b([Ii])n (?:what|which) year\b", r"\1n which month of which year"),
        (r"\bthe (?:full|exact) date\b", "the year"),
        (r"\b([Oo])n (?:what|which) date\b", r"\1n which weekday"),
        (r"\bWhich date saw\b", "Which weekday saw"),
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_careless_last_step_passes_in_at_most_two_of_a_hundred(demo, assembly, damage):
    grammar = make_grammar(assembly.corpus)
    rows = demo.rows("groundings", Grounding)
    damaged = [(row, text) for row in rows if (text := DAMAGES[damage](row.text)) is not None]
    assert len(damaged) >= 10
    passed = [text for row, text in damaged if asyncio.run(grammar.check(text, row.proof, row.answer))[1].passed]
    assert len(passed) <= 0.02 * len(damaged), passed
