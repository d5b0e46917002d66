"""What guessers score on a release: by the commonest answer, without the picture, and by the words alone.

A guesser without the question knows the answers of the release and says the commonest one of what is asked for (Chen
and Durrett 2019 found multi-hop sets whose answers such a guesser has often). Each answer is left out of the count that
it is guessed by, so that an answer given once is never a guess. A guesser without the picture knows the corpus: the
gold share says what he gets (:mod:`pipelines.graph.odds`). One with the words alone has learnt from other questions of
the release (:mod:`pipelines.release.wording`).
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from pipelines.agent.agreement import Interval, bound_mean
from pipelines.checks.limits import COMMONEST, ONE_ANSWER, bound_gold
from pipelines.checks.sets import (
    Pictured,
    group_guessed,
    name_anchor,
    name_answer_node,
    name_kind,
    read_relation,
)
from pipelines.config.settings import ReleasesConfig
from pipelines.errors import GateNotMet
from pipelines.graph.facts import stem_key
from pipelines.graph.odds import read_gold_share
from pipelines.release.wording import QuestionWords, score_wording
from schemas.proofs import Answer

WORDING = 0.1
"""Gate: largest share that a classifier of the words alone gets right, by its interval's lower end."""
LEAST_ROWS, LEAST_ASKING = 30, 4
"""Questions from which a share is judged, and those of a relation; fewer are too few."""
DIGITS = 4
TEST, TRAIN = "test", "train"
Verdict = Literal["met", "met where measured", "not met", "too few to judge", "not measured"]
Row = Mapping[str, str | int | float]
NOT_MET: Final[Verdict] = "not met"


class Described(Pictured, Protocol):
    """A question of a run or of a release's proofs."""

    @property
    def text(self) -> str:
        """As asked."""

    @property
    def answer(self) -> Answer:
        """The right one."""

    @property
    def domain(self) -> str:
        """Of what the picture shows."""

    @property
    def split(self) -> str:
        """Of its entities, or of a release's rows."""


@dataclass(frozen=True, slots=True)
class Guessed:
    """What guessers are measured by: one question of a release."""

    split: str
    """``train`` or ``test``."""
    relation: str
    """Key asked for, without numbers; empty where it is not known."""
    answer: str
    """Its key."""
    kind: str
    """Domain and answer type."""
    words: QuestionWords
    gold_share: float | None


def read_asked(row: Described) -> Guessed:
    """Return what guessers are measured by, from a question or from its row of a release's proofs."""
    key = read_relation(row)
    relation = stem_key(key) or key
    words = QuestionWords(row.text, row.answer.key, (name_anchor(row), name_answer_node(row)))
    split = TEST if row.split in ("eval", TEST) else TRAIN
    return Guessed(
        split, relation, row.answer.key, name_kind(row.domain, row.answer), words, read_gold_share(row.proof)
    )


def count_right(answers: Counter[str]) -> float:
    """Return how many of a group's answers are expected right when each is guessed as the commonest of the others.

    A tie counts by the share of the tied answers; the only answer of a group is never guessed.
    """
    ranked = sorted(answers.values(), reverse=True)
    first, second = ranked[0], ranked[1] if len(ranked) > 1 else 0
    if first - 1 > second:
        return float(first)
    tied = ranked.count(second) + 1 if second and first - 1 == second else 0
    return first / tied if tied else 0.0


def _describe(interval: Interval) -> dict[str, float]:
    parts = {"share": interval.middle, "low": interval.low, "high": interval.high}
    return {name: round(value, DIGITS) for name, value in parts.items()}


def measure_guessability(rows: Sequence[Guessed], settings: ReleasesConfig) -> dict[str, Row]:
    """Return what each guesser scores, over all questions and in each split, with its gate and the verdict.

    A share is judged from :data:`LEAST_ROWS` questions on. The gold share is judged row by row, whatever the number.
    """
    right = score_wording([row.words for row in rows])
    table: dict[str, Row] = {}
    for scope in ("", *sorted({row.split for row in rows})):
        own = [place for place, row in enumerate(rows) if scope in ("", row.split)]
        chosen, ending = [rows[place] for place in own], f", {scope}" if scope else ""
        table[f"commonest answer{ending}"] = _judge_commonest(chosen)
        if scope:
            table[f"without the picture{ending}"] = _judge_gold(chosen, settings)
        table[f"words alone{ending}"] = _judge_wording(right, own)
    table["one answer of an attribute"] = _judge_variety(rows, ONE_ANSWER, LEAST_ASKING)
    return table


def _judge(value: float, questions: int, most: float, least: int) -> Verdict:
    if questions < least:
        return "too few to judge"
    return "met" if value <= most else NOT_MET


def _judge_commonest(rows: Sequence[Guessed]) -> Row:
    # Of few questions of an attribute: the commonest of domain and type.
    groups: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for row, group in zip(rows, group_guessed([(row.relation, row.kind) for row in rows]), strict=True):
        groups[group][row.answer] += 1
    right, most = sum(map(count_right, groups.values()), 0.0), COMMONEST
    interval = bound_mean(right, len(rows), 1.0)
    verdict = _judge(interval.middle, len(rows), most, LEAST_ROWS)
    return {"questions": len(rows), **_describe(interval), "most": most, "verdict": verdict}


def _judge_gold(rows: Sequence[Guessed], settings: ReleasesConfig) -> Row:
    most = bound_gold(settings, "eval" if rows[0].split == TEST else "sft")
    shares = [row.gold_share for row in rows if row.gold_share is not None]
    over, missing = sum(share > most for share in shares), len(rows) - len(shares)
    verdict: Verdict = NOT_MET if over else "met where measured" if missing else "met"
    counted = {"questions": len(shares), **_describe(bound_mean(sum(shares), len(shares), 1.0))}
    largest = {"largest": round(max(shares, default=0.0), DIGITS), "over": over, "not measured": missing}
    return counted | {"most": most, "verdict": verdict if shares else "not measured"} | largest


def _judge_wording(right: Mapping[int, bool], own: Sequence[int]) -> Row:
    told = [right[place] for place in own if place in right]
    interval = bound_mean(sum(told), len(told), 1.0)
    verdict = _judge(interval.low, len(told), WORDING, LEAST_ROWS)
    if not right and len(own) >= LEAST_ROWS:
        verdict = "not measured"
    return {"questions": len(told), **_describe(interval), "most": WORDING, "verdict": verdict}


def _judge_variety(rows: Sequence[Guessed], most: float, least: int) -> Row:
    """Judge the largest share of one answer among the questions of an attribute that is asked for often enough.

    What is answered once is never guessed, whatever its share.
    """
    groups: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        if row.relation:
            groups[row.relation][row.answer] += 1
    judged = {relation: answers for relation, answers in groups.items() if answers.total() >= least}
    if not judged:
        return {"questions": 0, "share": 0.0, "most": most, "verdict": "too few to judge"}
    worst = min(judged, key=lambda each: (-max(judged[each].values()) / judged[each].total(), each))
    answers = judged[worst]
    answer, times = min(answers.items(), key=lambda pair: (-pair[1], pair[0]))
    share = times / answers.total()
    verdict = _judge(share if times > 1 else 0.0, answers.total(), most, least)
    detail = f"{times} of {answers.total()} {worst} are {answer}"
    return {"questions": answers.total(), "share": round(share, DIGITS), "most": most, "verdict": verdict, "of": detail}


REMEDIES = {
    "commonest answer": "lower releases.max_answer_share",
    "without the picture": "publish questions that this version's selections let pass",
    "words alone": "ask in more ways, or lower releases.max_answer_share",
    "one answer of an attribute": "lower releases.max_answer_share",
}


def check_guessability(table: Mapping[str, Row]) -> None:
    """Refuse a release that is guessed too often."""
    failed = [f"{name}: {row['share']} of {row['questions']} questions, at most {row['most']} may be; "
              f"{REMEDIES[name.partition(',')[0]]}"
              for name, row in table.items() if row["verdict"] == NOT_MET]  # fmt: skip
    if failed:
        raise GateNotMet(f"guessing: {' | '.join(failed)}")
