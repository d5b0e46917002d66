"""Attempts of solvers at a question under one condition, and how presets turn them into decisions.

An attempt sees the question with its picture or without, and the results of at most two searches, or an end of the
question alone (``checks.endings``). A preset is a list of conditions in order of cost, each with a bound that refuses a
question with too many successes (OpenSearch-VL, section 3.2; VSearcher, section 2.1; SenseNova-MARS, cold start).
MMSearch-R1's labels come of another kind of attempt, in which the solver searches as it likes. Decoys are plausible
wrong answers of the right type, for scripted players.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import lru_cache
from random import Random
from typing import Literal

from pipelines.agent.agreement import wilson_interval
from pipelines.agent.judging import Jury
from pipelines.agent.observations import cut_match
from pipelines.checks.verdicts import CheckResult
from pipelines.errors import RecordFailed
from pipelines.graph.answers import compare_answers, find_repeats, is_no_answer
from pipelines.graph.values import Date, Number, format_decimal, parse_date, parse_number, render_date, render_number
from pipelines.ids import digest_value
from pipelines.pictures import PictureStore
from pipelines.services.prompting import RoleClient, ask_answer
from pipelines.services.protocols import ImageHit, ImageSearch, PictureFile, TextHit, TextSearch
from schemas.base import Rejection
from schemas.datasets import Alternative, Cell, Grounding, Picture, RefusedAttempt, Verdict
from schemas.proofs import Answer, Proof
from schemas.reasons import DifficultyReason
from schemas.tasks import AnswerQuestionInputs, Condition, SolverOracle

_NAMES = (
    "Alder", "Brandt", "Corvin", "Dalby", "Ekman", "Fenwick", "Garrow", "Holt", "Ivers", "Jessop", "Kessler", "Lorne",
    "Merrow", "Norwood", "Osgood", "Pryce", "Quill", "Redfern", "Salter", "Thorne", "Ullman", "Vickers", "Wexley",
    "Yarrow",
)  # fmt: skip
_NOUNS = (
    "limestone", "oak", "brick", "slate", "bronze", "clay", "copper", "marble", "steel", "glass", "timber", "plaster",
    "sandstone", "tin", "leather", "cotton", "silk", "amber", "ivory", "wool", "cedar", "basalt", "chalk", "linen",
)  # fmt: skip
_ADJECTIVES = ("grey", "polished", "carved", "rough", "painted", "old", "dark", "woven", "plain", "white")
_MAX_WORDS = 3
_PROPOSED = 96


@lru_cache(maxsize=1024)
def make_decoys(answer: Answer, count: int) -> tuple[str, ...]:
    """Return ``count`` different wrong answers, the same ones every time.

    Dates keep their precision and move by years, numbers keep their unit, names and strings are drawn from a fixed
    list by the answer's key. By :func:`~pipelines.graph.answers.compare_answers` none is correct. All are incorrect
    where the comparer can tell at all; it leaves most pairs of strings, and names that are not Latin, unscored.
    """
    found: dict[Verdict, list[str]] = {"incorrect": [], "unscored": [], "correct": []}
    for text in dict.fromkeys(_propose(answer)):
        found[compare_answers(text, answer)].append(text)
        if len(found["incorrect"]) >= count:
            break
    return (*found["incorrect"], *found["unscored"])[:count]


def _propose(answer: Answer) -> Iterator[str]:
    rng, words = Random(answer.key), min(len(answer.surface.split()) or 1, _MAX_WORDS)
    date, number = parse_date(answer.value) or Date(1900), parse_number(answer.value)
    size = Decimal(number.value) if number else Decimal(1)
    for step in range(1, _PROPOSED + 1):
        if answer.type == "date":
            moved = (Date(date.year + years, date.month, date.day) for years in (step, -step))
            # 29 February has no namesake in most years.
            yield from (text for each in moved if parse_date(text := render_date(each)[0]) == each)
        elif answer.type == "number":
            values = (size * (step + 1), size + step, size - step)
            # Few things that are counted or measured from zero up turn negative.
            kept = (Number(format_decimal(value), answer.unit) for value in values if value >= 0 or size < 0)
            yield from (render_number(each)[0] for each in kept)
        elif answer.type == "name":
            yield " ".join(rng.sample(_NAMES, words))
        else:
            yield " ".join([*rng.sample(_ADJECTIVES, words - 1), rng.choice(_NOUNS)])


VERSION = 2
"""Version of queries and layout; part of an attempt's identity."""
BY_PICTURE = ("image-search", "both")
BY_WORDS = ("text-search", "both")
"""Tools of a condition, after its plus, that search by picture and by words."""
SEARCH_HITS = 3
"""Results of one search that an attempt is shown."""
MAX_SEARCHES = 2
"""Searches an attempt may make as it likes (MMSearch-R1, 4.1: three rounds, the answer in the third)."""
SNIPPET = 1000
"""Characters kept of each result after its title, twice as many where the question's words are spread."""
GUESSES = 3
"""Wrong answers that a guessing scripted solver chooses from, beside the right one."""
NOTHING_FOUND = "(nothing found)"
"""Shown when a search finds nothing, so that the attempt differs from the one without a search."""


@dataclass(frozen=True, slots=True)
class Searches:
    """The searches that an attempt may be given the results of."""

    text: TextSearch
    images: ImageSearch
    pictures: PictureStore
    hits: int = 3
    """Results of one search."""

    @property
    def identity(self) -> str:
        return digest_value([VERSION, SNIPPET, self.hits, self.text.identity, self.images.identity])

    @property
    def tools(self) -> tuple[str, ...]:
        """Both searches, each with its version."""
        return tuple(search.identity.partition(":")[0] for search in (self.text, self.images))


@dataclass(frozen=True, slots=True)
class Exhibit:
    """What an attempt under one condition sees beside the question."""

    condition: Condition
    picture: Picture | None = None
    image_hits: tuple[ImageHit, ...] = ()
    text_hits: tuple[TextHit, ...] = ()
    ending: str = ""
    """The end of the question that is asked alone; empty: the whole question."""

    @property
    def images(self) -> tuple[str, ...]:
        """The sha256 of what is shown."""
        return (self.picture.sha256,) if self.picture else ()


@dataclass
class Exhibits:
    """Makes the exhibits of one question; a search is made once for all conditions and solvers that need it."""

    record: Grounding
    searches: Searches
    _texts: dict[str, tuple[TextHit, ...]] = field(default_factory=dict)
    _images: dict[str, tuple[ImageHit, ...]] = field(default_factory=dict)

    async def show(self, condition: Condition) -> Exhibit:
        """Return the exhibit of a condition.

        The text query is the question. With both searches, the image search runs first, and the title of its best hit
        is put before the text query.
        """
        seen, _, tools = condition.partition("+")
        picture = self.record.picture if seen == "image" else None
        images: tuple[ImageHit, ...] = ()
        texts: tuple[TextHit, ...] = ()
        if tools in BY_PICTURE:
            images = await self._search_image(picture)
        if tools in BY_WORDS:
            query = f"{images[0].title} {self.record.text}" if images else self.record.text
            texts = await self._search_text(query)
        return Exhibit(condition, picture, images, texts)

    async def _search_text(self, query: str) -> tuple[TextHit, ...]:
        if query not in self._texts:
            self._texts[query] = await self.searches.text.search_text(query, self.searches.hits)
        return self._texts[query]

    async def _search_image(self, picture: Picture | None) -> tuple[ImageHit, ...]:
        if picture is None:
            return ()
        if picture.sha256 not in self._images:
            path = self.searches.pictures.path(picture.sha256, picture.extension)
            file = PictureFile(picture.sha256, path)
            self._images[picture.sha256] = await self.searches.images.search_image(file, self.searches.hits)
        return self._images[picture.sha256]


def make_answer_inputs(record: Grounding, exhibit: Exhibit) -> AnswerQuestionInputs:
    """Return an attempt's inputs."""
    tools = exhibit.condition.partition("+")[2]
    return AnswerQuestionInputs(
        question=exhibit.ending or record.text,
        condition=exhibit.condition,
        pictured=exhibit.picture is not None,
        image_results=_number_hits(exhibit.image_hits, record.text) if tools in BY_PICTURE else "",
        search_results=_number_hits(exhibit.text_hits, record.text) if tools in BY_WORDS else "",
        oracle=make_oracle(record, exhibit.image_hits),
    )


def _number_hits(hits: Sequence[ImageHit | TextHit], query: str) -> str:
    lines = (" ".join(f"{hit.title}: {cut_match(hit.snippet, query, SNIPPET)}".split()) for hit in hits)
    return "\n".join(f"{rank}. {line}" for rank, line in enumerate(lines, start=1)) or NOTHING_FOUND


def make_oracle(record: Grounding, hits: Sequence[ImageHit] = ()) -> SolverOracle:
    """Return what the scripted solver may know of a question; real models never see it."""
    # A capped count is a lower bound: it never says that an entity stands out by itself.
    alone = [count.value + count.capped for count in record.proof.counts if count.name == "alone"]
    if record.trace is not None:
        alone = [2]  # the trace counts nothing; that A is needed is in its question
    nodes = record.proof.nodes
    return SolverOracle(
        question_id=record.record_id,
        answer=record.answer,
        # Nobody has heard of what a question from outside is about: a Knower may find it, and does not know it.
        popularity=tuple(node.in_degree for node in nodes) or (0,) * (record.trace.hops if record.trace else 1),
        alone_count=min(alone, default=1),
        guesses=make_decoys(record.answer, GUESSES),
        seen_titles=tuple(hit.title for hit in hits),
        anchor_title=record.shown_title,
    )


Preset = Literal["opensearch-vl", "vsearcher", "mars"]


@dataclass(frozen=True, slots=True)
class Filter:
    """A step: attempts under one condition, and what they decide."""

    condition: Condition
    reason: DifficultyReason
    """Of the questions that it refuses."""
    max_correct: int = 0
    """Most correct attempts of a question that is kept."""


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts of the attempts of one step so far."""

    done: int = 0
    correct: int = 0
    unscored: int = 0

    def add(self, verdict: Verdict) -> "Tally":
        """Return the tally with one more attempt."""
        return Tally(self.done + 1, self.correct + (verdict == "correct"), self.unscored + (verdict == "unscored"))


@dataclass(frozen=True, slots=True)
class Plan:
    """All tests of a question in order of cost: those without attempts, then the filters."""

    filters: tuple[Filter, ...]
    seeks_answer: bool = False
    """Whether a question that holds its own answer is refused (VSearcher's fourth filter)."""
    judges_picture: bool = False
    """Whether a picture that is too simple refuses its question (VSearcher's third filter)."""


_ENDING = Filter("clause", "clause-answers", 0)
_TEXT, _IMAGE = Filter("text", "solved-without-tools"), Filter("image", "solved-without-tools")
_PRESETS: Mapping[Preset, Plan] = {
    "opensearch-vl": Plan((_TEXT, _IMAGE, Filter("image+image-search", "solved-by-one-image-search"))),
    # Section 2.1 lists these as 2 and 1; text alone costs less.
    "vsearcher": Plan((_TEXT, _IMAGE), seeks_answer=True, judges_picture=True),
    # "marking a sample as hard if the model answers it correctly one time or fewer"
    "mars": Plan((Filter("image", "not-rare", 1),)),
}


def make_plan(preset: Preset, probes: bool = False) -> Plan:
    """Return a preset's filters, the cheapest first."""
    plan = _PRESETS[preset]
    return replace(plan, filters=(_ENDING, *plan.filters)) if probes else plan


def fit_filters(filters: Sequence[Filter], pictured: bool) -> tuple[tuple[Filter, ...], list[Condition]]:
    """Return the steps that fit a question, and the conditions that do not: without a picture its text is attempted."""
    fitted: dict[Condition, Filter] = {}
    for step in filters:
        condition: Condition = "text" if step.condition == "image" and not pictured else step.condition
        if pictured or not condition.startswith("image"):
            fitted.setdefault(condition, replace(step, condition=condition))
    left_out = [] if pictured else [step.condition for step in filters if step.condition.startswith("image")]
    return tuple(fitted.values()), left_out


def refuse_cell(step: Filter, tally: Tally) -> DifficultyReason | None:
    """Return the reason if the attempts of a bound refuse the question, else None.

    An unscored attempt might have been right: if enough are unscored to break the bound, the result is unknown and the
    question does not pass.
    """
    if tally.correct > step.max_correct:
        return step.reason
    return "unscored" if tally.correct + tally.unscored > step.max_correct else None


def is_settled(tally: Tally, planned: int, max_correct: int) -> bool:
    """Say whether the remaining attempts can change neither a bound's decision nor its reason."""
    left = planned - tally.done
    refused = tally.correct > max_correct
    never_refused = tally.correct + tally.unscored + left <= max_correct
    always_unscored = tally.correct + left <= max_correct < tally.correct + tally.unscored
    return left <= 0 or refused or never_refused or always_unscored


def is_enough(step: Filter, tally: Tally, planned: int, watched: bool) -> bool:
    """Say whether further attempts of a step can no longer change the decision about its question.

    A bound that can no longer be broken continues to its first success, which shows that the question can be solved.
    """
    if tally.done >= planned or not is_settled(tally, planned, step.max_correct):
        return tally.done >= planned
    return refuse_cell(step, tally) is not None or (not watched and tally.correct > 0)


DIGITS = 6
SOLVER = "solver"
"""Role of who attempts a question."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try of one model at one question."""

    verdict: Verdict
    given: str = ""
    """The answer; empty for none."""
    day: str = ""
    """Day of the model's reply; empty for scripted players."""
    problem: str = ""
    """Why it is unscored; empty otherwise."""

    def record(self, condition: Condition, solver: str, sample: int) -> RefusedAttempt:
        """Return the attempt as a refused row has it."""
        return RefusedAttempt(
            condition=condition,
            role=SOLVER,
            solver=solver,
            sample=sample,
            reply=self.given,
            verdict=self.verdict,
            problem=self.problem if self.verdict == "unscored" else "",
        )


@dataclass(frozen=True, slots=True)
class Solver:
    """A model that attempts questions, and the jury that judges its answers."""

    asking: RoleClient
    jury: Jury

    async def attempt(self, record: Grounding, exhibit: Exhibit, sample: int) -> Attempt:
        """Return one attempt. An answer of ``unknown`` is wrong; a reply that does not parse twice is unscored."""
        inputs = make_answer_inputs(record, exhibit)
        try:
            reply, day = await ask_answer(self.asking, inputs, exhibit.images, sample)
        except RecordFailed as error:
            return Attempt("unscored", problem=str(error))
        # "Na" is no answer, unless sodium's symbol is asked for.
        if is_no_answer(reply.answer) and compare_answers(reply.answer, record.answer) != "correct":
            return Attempt("incorrect", day=day)
        trial = f"{record.record_id}:{exhibit.condition}:{SOLVER}:{sample}"
        judgement = await self.jury.judge(record.text, reply.answer, record.answer, trial)
        return Attempt(judgement.verdict, reply.answer, day, judgement.detail)


@dataclass
class Series:
    """The attempts of one step."""

    step: Filter
    planned: int
    tally: Tally = field(default_factory=Tally)
    attempts: list[Attempt] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    """Wrong answers that the corpus may confirm, one an attempt, in order."""
    day: str = ""

    def add(self, attempt: Attempt, watched: bool) -> None:
        """Count an attempt, and keep its wrong answer if it is watched for."""
        self.tally = self.tally.add(attempt.verdict)
        self.attempts.append(attempt)
        self.day = max(self.day, attempt.day)
        if watched and attempt.verdict == "incorrect" and attempt.given:
            self.wrong.append(attempt.given)

    def list_attempts(self, asking: RoleClient) -> Iterator[RefusedAttempt]:
        """Yield the attempts as a refused row has them."""
        for sample, attempt in enumerate(self.attempts):
            yield attempt.record(self.step.condition, asking.model.name, sample)

    def sum_up(self, asking: RoleClient) -> Cell:
        """Return the attempts as a row that is kept has them."""
        tally = self.tally
        low, high = wilson_interval(tally.correct, tally.done - tally.unscored)
        return Cell(
            condition=self.step.condition,
            role=SOLVER,
            solver=asking.model.name,
            prompt=asking.prompt.label,
            day=self.day,
            planned=self.planned,
            attempts=tally.done,
            correct=tally.correct,
            unscored=tally.unscored,
            low=round(low, DIGITS),
            high=round(high, DIGITS),
        )


AlternativeCheck = Callable[[Proof, Answer, str], CheckResult]
"""Checks another answer in the corpus: PASS if it is refuted, FAIL if it is confirmed, else UNKNOWN."""


def hold_against_corpus(
    contest: AlternativeCheck | None, record: Grounding, wrong: Sequence[str]
) -> tuple[Alternative, ...] | Rejection:
    """Return the wrong answers given twice if the corpus refutes all of them, else the rejection by the first."""
    # Without a path there is nothing in the corpus to hold an answer against.
    if contest is None or not record.proof.nodes:
        return ()
    refuted = []
    for repeat in find_repeats(wrong, record.answer.type):
        result = contest(record.proof, record.answer, repeat.text)
        if not result.passed:
            found = "answers it too" if result.outcome == "FAIL" else "cannot be refuted"
            detail = f"{repeat.text!r}, given {repeat.times} times, {found}: {result.detail}"
            return Rejection(record_id=record.record_id, reason="alternative-answer", detail=detail)
        refuted.append(Alternative(text=repeat.text, times=repeat.times))
    return tuple(refuted)
