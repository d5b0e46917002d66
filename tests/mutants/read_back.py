"""A reading, a screening or a page's statement changed in one point: each comparison has a pair that needs it."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from typing import Any

from pipelines.checks import propositions, readings
from pipelines.checks.propositions import list_claims
from pipelines.checks.verdicts import CheckResult
from pipelines.graph.facts import read_attributes, read_relations
from schemas.proofs import Answer, Constraint, PageReading, ReadFact, Reading, ReadProposition
from tests.mutants.corpora import SCENES, Corpora, Judge
from tests.planted.scenes import Case
from tests.planted.words import Pair

Edit = Callable[[Case, Reading], Reading | None]
"""Changes the reading of an accepted question; None where it does not admit the change."""
NOWHERE = "of a word that stands nowhere"


def _change_hop(reading: Reading, **changes: Any) -> Reading:
    return reading.model_copy(update={"hops": (reading.hops[0].model_copy(update=changes), *reading.hops[1:])})


def _turn(case: Case, reading: Reading) -> Reading | None:
    hop = reading.hops[0]
    return None if hop.statement in readings.SYMMETRIC else _change_hop(reading, backward=not hop.backward)


def _name_other(case: Case, reading: Reading) -> Reading | None:
    """Another field of the page that the first hop leaves from, with another object."""
    if case.question.proof.hops[0].backward:
        return None
    facts = read_relations(case.corpus, case.numbers[0])
    others = [readings.state_relation(fact.key) for fact in facts if fact.target != case.numbers[1]]
    return _change_hop(reading, statement=others[0]) if others else None


def _find_date(case: Case, reading: Reading) -> Reading | None:
    return reading.model_copy(update={"form": "month"}) if reading.form in ("day", "year") else None


def _add_fact(case: Case, reading: Reading, statement: str, value: str) -> Reading:
    words = reading.hops[0].words
    return reading.model_copy(
        update={"facts": (*reading.facts, ReadFact(node=1, statement=statement, value=value, words=words))}
    )


def _set(**changes: Any) -> Edit:
    return lambda case, reading: reading.model_copy(update=changes)


EDITS: dict[str, Edit] = {
    "two questions read": _set(questions=2),
    "no question read": _set(questions=0),
    "an instruction read": _set(instruction="Reply in French"),
    "doubts of a reader": _set(unsure="whose birth is meant"),
    "another text read": _set(text=readings.digest_text("another")),
    "words that stand nowhere": lambda case, reading: _change_hop(reading, words=NOWHERE),
    "a hop fewer read": lambda case, reading: reading.model_copy(update={"hops": reading.hops[:-1]}),
    "a hop read the other way": _turn,
    "no relation read": lambda case, reading: _change_hop(reading, statement=""),
    "another relation read": _name_other,
    "another attribute read": _set(asked="shoe size"),
    "another precision read": _find_date,
    "another unit read": _set(unit="furlongs"),
    "another condition read": lambda case, reading: _add_fact(
        case, reading, "colour", case.question.proof.nodes[1].type
    ),
    "a condition of no field read": lambda case, reading: _add_fact(case, reading, "", "in the north"),
}


def list_reading_sets(corpora: Corpora) -> dict[str, Judge]:
    screenings = {
        "a leak screened": {"leaks": ("a name: words",)},
        "another entity screened": {"fitting": ("a name: words",)},
        "several answers screened": {"several": "either town"},
        "doubts of a screening": {"unsure": "which town"},
        "another text screened": {"text": readings.digest_text("another")},
        "other names screened": {"hidden": ("nobody",)},
        "other entities screened": {"others": ()},
    }
    statements = {
        "another value on a page": (Answer, "other", ""),
        "another value of another time": (Answer, "other", "in 1900"),
        "a value that may be another": (Answer, "unclear", ""),
        "another entity on a page": (int, "other", ""),
        "an entity that may be another": (int, "unclear", ""),
    }
    return {
        **{name: partial(_judge_reading, corpora, edit) for name, edit in EDITS.items()},
        "a condition not read": partial(_judge_condition, corpora, None),
        "a condition of another value": partial(_judge_condition, corpora, "7 furlongs"),
        **{name: partial(_judge_screening, corpora, changes) for name, changes in screenings.items()},
        **{name: partial(_judge_page, corpora, *case) for name, case in statements.items()},
    }


def _take(pairs: Any) -> Sequence[Pair]:
    return list(islice((pair for pair in pairs if pair is not None), SCENES))


def _judge_reading(corpora: Corpora, edit: Edit) -> Sequence[Pair]:
    def judge(case: Case) -> Pair | None:
        row = case.question
        assert row.reading is not None
        edited = edit(case, row.reading)
        if edited is None:
            return None
        clean, bad = (
            readings.compare_reading(case.corpus, row.text, each, row.proof, row.answer)
            for each in (row.reading, edited)
        )
        return Pair(row.text, clean, bad, (readings.DIFFERS, readings.UNREAD))

    return _take(map(judge, corpora.cases))


def _judge_condition(corpora: Corpora, value: str | None) -> Sequence[Pair]:
    """A condition of the proof that was read, and one that was not, or with another value."""

    def judge(case: Case) -> Pair | None:
        row, told = case.question, read_attributes(case.corpus, case.numbers[1])
        assert row.reading is not None
        if not told:
            return None
        fact = told[0].fact
        condition = Constraint(node=1, relation=fact.key, value=fact.text)
        proof = row.proof.model_copy(update={"constraints": (*row.proof.constraints, condition)})
        said = readings.state_relation(fact.key)
        bad = row.reading if value is None else _add_fact(case, row.reading, said, value)
        results = [
            readings.compare_reading(case.corpus, row.text, each, proof, row.answer)
            for each in (_add_fact(case, row.reading, said, fact.text), bad)
        ]
        return Pair(fact.text, *results, (readings.DIFFERS,))

    return _take(map(judge, corpora.cases))


def _judge_screening(corpora: Corpora, changes: dict[str, Any]) -> Sequence[Pair]:
    def judge(case: Case) -> Pair | None:
        row = case.question
        assert row.reading is not None
        assert row.screening is not None
        if all(getattr(row.screening, name) == value for name, value in changes.items()):
            return None
        edited = row.screening.model_copy(update=changes)
        clean, bad = (
            readings.judge_screening(case.pool.ground, row.text, row.reading, each, row.proof, row.answer)
            for each in (row.screening, edited)
        )
        return Pair(row.text, clean, bad, ("given-away", "second-entity", "several-answers", readings.UNREAD))

    return _take(map(judge, corpora.cases))


def _judge_page(corpora: Corpora, kind: type, likeness: Any, when: str) -> Sequence[Pair]:
    def judge(case: Case) -> Pair | None:
        proof = case.question.proof
        for claim in list_claims(case.corpus, proof, case.question.answer):
            page_id = case.corpus.page(claim.node).page_id
            own = [each for each in proof.page_readings if (each.page_id, each.relation) == (page_id, claim.relation)]
            if isinstance(claim.value, kind) and own:
                said = ReadProposition(
                    start=0, end=4, words="said", value="said", when=when, only=False, likeness=likeness
                )
                edited = own[0].model_copy(update={"propositions": (*own[0].propositions, said)})
                clean, bad = (_judge_statement(case, claim, each) for each in (own[0], edited))
                return Pair(likeness, clean, bad, ("answer-disputed", "multi-valued"))
        return None

    return _take(map(judge, corpora.cases))


def _judge_statement(case: Case, claim: propositions.Claim, reading: PageReading) -> CheckResult:
    return propositions.judge_reading(case.pool.ground, claim, reading, case.question.proof.thresholds.agreement)
