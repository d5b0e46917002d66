"""The judge card: how a judge of answers does on near misses and on true paraphrases, by type of answer.

The default judge is the typed comparer. Any callable of the same shape can be measured, so that a model's card and the
comparer's can be laid side by side (research/quality.md 1G, J2).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from rich.table import Table

from pipelines.bench.plants import type_text
from pipelines.bench.shares import Share, make_share, show_interval
from pipelines.bench.vocabulary import BY_HALF, HALVES, Vocabulary, invent_person, invent_word
from pipelines.errors import ConfigError
from pipelines.scoring.agreement import cohen_kappa
from pipelines.scoring.answers import make_answer
from pipelines.scoring.compare import compare_answers
from pipelines.scoring.dates import MONTHS, Date, render_date
from pipelines.scoring.numbers import Number, group_thousands, render_number
from schemas.proofs import Answer, AnswerType
from schemas.trajectories import Verdict

Judge = Callable[[str, Answer], Verdict]
TYPES: tuple[AnswerType, ...] = ("date", "number", "name", "string")


@dataclass(frozen=True, slots=True)
class Trial:
    """One answer to be judged, with the truth about it."""

    kind: str
    """``reworded`` and ``sentence`` are true answers; everything else is a near miss."""
    given: str
    truth: Verdict


@dataclass(frozen=True, slots=True)
class JudgeRow:
    """How a judge did on one type of answer."""

    type: AnswerType
    false_positive: Share
    """Near misses called correct."""
    false_negative: Share
    """True answers called incorrect."""
    unscored: Share
    """Answers left undecided, of all."""
    kappa: float
    """Cohen's kappa with the truth over the decided answers; 0.0 when none was decided."""


@dataclass(frozen=True, slots=True)
class KindRow:
    """Verdicts on one kind of trial."""

    type: AnswerType
    kind: str
    truth: Verdict
    correct: int
    incorrect: int
    unscored: int


@dataclass(frozen=True, slots=True)
class JudgeReport:
    """The card."""

    pairs: int
    seed: int
    rows: tuple[JudgeRow, ...]
    kinds: tuple[KindRow, ...]


def run_judge_bench(pairs: int, seed: int, judge: Judge = compare_answers) -> JudgeReport:
    """Judge the near misses and paraphrases of ``pairs`` answers of each type, half of them from held-out words.

    Raises:
        ConfigError: if ``pairs`` is less than two.
    """
    if pairs < 2:
        raise ConfigError(f"bench judge: pairs is {pairs}, allowed are 2 and more (one for each half)")
    rows: list[JudgeRow] = []
    kinds: list[KindRow] = []
    for type_ in TYPES:
        judged = [
            (trial, judge(trial.given, reference))
            for half, count in zip(HALVES, (pairs - pairs // 2, pairs // 2), strict=True)
            for reference, trials in _draw_cases(type_, BY_HALF[half], count, seed)
            for trial in trials
        ]
        rows.append(_measure(type_, judged))
        kinds.extend(_count_kinds(type_, judged))
    return JudgeReport(pairs, seed, tuple(rows), tuple(kinds))


def render_judge(report: JudgeReport) -> Table:
    """Return the card as a table for the terminal."""
    table = Table(title=f"Judge card: {report.pairs} answers of each type, seed {report.seed}")
    for heading in ("type", "near misses taken", "95%", "true ones refused", "95%", "unscored", "kappa"):
        table.add_column(heading, justify="left" if heading == "type" else "right")
    for row in report.rows:
        table.add_row(
            row.type,
            f"{row.false_positive.count}/{row.false_positive.trials}",
            show_interval(row.false_positive),
            f"{row.false_negative.count}/{row.false_negative.trials}",
            show_interval(row.false_negative),
            f"{row.unscored.share:.1%}",
            f"{row.kappa:.3f}",
        )
    return table


def _draw_cases(type_: AnswerType, words: Vocabulary, count: int, seed: int) -> list[tuple[Answer, tuple[Trial, ...]]]:
    rng = Random(f"{seed}:judge:{type_}:{words.half}")
    draw = {"date": _draw_date, "number": _draw_number, "name": _draw_name, "string": _draw_string}[type_]
    return [draw(words, rng) for _ in range(count)]


def _miss(kind: str, given: str) -> Trial:
    return Trial(kind, given, "incorrect")


def _hit(kind: str, given: str) -> Trial:
    return Trial(kind, given, "correct")


def _draw_date(words: Vocabulary, rng: Random) -> tuple[Answer, tuple[Trial, ...]]:
    date = Date(rng.randint(1100, 2020), rng.randint(1, 12), rng.randint(1, 27))
    swapped = Date(date.year, date.day, date.month) if date.day <= 12 and date.day != date.month else None
    shown = render_date(date)
    other = render_date(Date(date.year + rng.choice((-1, 1)), date.month, date.day))[0]
    swaps = (_miss("day and month swapped", render_date(swapped)[0]),) if swapped else ()
    return make_answer(shown[0], date), (
        _miss("year off by one", other),
        _miss("next day", rng.choice(render_date(Date(date.year, date.month, date.day + 1)))),
        *swaps,
        _miss("coarser", str(date.year)),
        _miss("coarser", f"{MONTHS[date.month - 1]} {date.year}"),
        _miss("two candidates", f"{shown[0]} or {other}"),
        _hit("reworded", rng.choice(shown[1:])),
        _hit("sentence", f"It was on {shown[0]}"),
    )


def _draw_number(words: Vocabulary, rng: Random) -> tuple[Answer, tuple[Trial, ...]]:
    unit, slip = rng.choice((("m", "ft"), ("kg", "lb"), ("km2", "ha"), ("km", "mi")))
    number = Number(
        f"{rng.randint(21, 9_999)}.{rng.randint(1, 9)}" if rng.random() < 0.5 else str(rng.randint(21, 99_999)), unit
    )
    value, shown = number.value, render_number(number)
    return make_answer(shown[0], number), (
        _miss("point lost", f"{value.replace('.', '')}{'' if '.' in value else '0'} {unit}"),
        _miss("sign", f"-{value} {unit}"),
        _miss("off by one", f"{int(value.partition('.')[0]) + 1} {unit}"),
        _miss("unit slip", f"{value} {slip}"),
        _miss("range", f"{value}\u2013{value}5 {unit}"),
        _miss("two candidates", f"{value} or {value}1 {unit}"),
        _hit("reworded", rng.choice(shown[1:])),
        _hit("reworded", group_thousands(value)),
        _hit("sentence", f"It measures {shown[0]}"),
    )


def _draw_name(words: Vocabulary, rng: Random) -> tuple[Answer, tuple[Trial, ...]]:
    given, surname = invent_person(words, rng).split()
    name, other = f"{given} {surname}", invent_word(words, rng)
    while other == surname:
        other = invent_word(words, rng)
    relative = next(each for each in words.given if each != given)
    return type_text(name), (
        _miss("same surname", f"{relative} {surname}"),
        _miss("same given name", f"{given} {other}"),
        _miss("junior", f"{name} Jr."),
        _miss("another", f"{relative} {other}"),
        _miss("superset", f"{name} and {relative} {other}"),
        _miss("two candidates", f"{name} or {relative} {other}"),
        _hit("reworded", rng.choice((name.upper(), name.lower(), f"{name}."))),
        _hit("reworded", type_text(name).aliases[0] if type_text(name).aliases else name),
        _hit("sentence", f"The person is {name}"),
    )


def _draw_string(words: Vocabulary, rng: Random) -> tuple[Answer, tuple[Trial, ...]]:
    text, other = rng.sample(words.words, 2)
    return type_text(text), (
        _miss("another", other),
        _miss("superset", f"{text} and {other}"),
        _miss("two candidates", f"either {text} or {other}"),
        _miss("negated", f"not {text}"),
        _hit("reworded", rng.choice((text.upper(), text.replace(" ", "-"), f"{text}."))),
        _hit("sentence", f"It is described as {text}"),
    )


def _measure(type_: AnswerType, judged: Sequence[tuple[Trial, Verdict]]) -> JudgeRow:
    misses = [verdict for trial, verdict in judged if trial.truth == "incorrect"]
    hits = [verdict for trial, verdict in judged if trial.truth == "correct"]
    decided = [(trial.truth, verdict) for trial, verdict in judged if verdict != "unscored"]
    return JudgeRow(
        type_,
        make_share(misses.count("correct"), len(misses)),
        make_share(hits.count("incorrect"), len(hits)),
        make_share(len(judged) - len(decided), len(judged)),
        cohen_kappa([truth for truth, _ in decided], [verdict for _, verdict in decided]) if decided else 0.0,
    )


def _count_kinds(type_: AnswerType, judged: Sequence[tuple[Trial, Verdict]]) -> list[KindRow]:
    rows = []
    for kind, truth in dict.fromkeys((trial.kind, trial.truth) for trial, _ in judged):
        verdicts = [verdict for trial, verdict in judged if trial.kind == kind]
        counts = (verdicts.count("correct"), verdicts.count("incorrect"), verdicts.count("unscored"))
        rows.append(KindRow(type_, kind, truth, *counts))
    return rows
