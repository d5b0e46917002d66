"""Scripted solver and judge: difficulty and judging without a model.

The solver plays the shortcuts that the difficulty filter looks for. With text alone it answers when the last entity
stands out by itself, which makes the picture unneeded, and with an end of the question alone likewise; with the picture
it must recognise the anchor and know every fact of the chain. An image search lets it read the anchor's name off the
first hit. A text search that finds anything makes up for one unknown fact, so a chain with two of them stays closed. In
a rollout it chooses for itself: what it does not recognise it looks up by picture,
and what it does not know then by words; it answers as soon as it knows.

The judge knows from the oracle whether an answer is right, and errs at set rates.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from typing import ClassVar

from pipelines.agent.attempts import BY_PICTURE, BY_WORDS, NOTHING_FOUND
from pipelines.agent.transcript import Turn
from pipelines.errors import ConfigError, RecordFailed
from pipelines.graph.titles import TITLE
from pipelines.ids import canonical_json, digest_value, draw_unit
from pipelines.names import fold_name
from pipelines.services.protocols import ChatReply, ChatRequest
from pipelines.toy.teacher import plan_search, read_history, read_thoughts, say_turn
from schemas.tasks import (
    ActInputs,
    AnswerQuestionInputs,
    AnswerReply,
    BoxReply,
    JudgeAnswerInputs,
    JudgePictureInputs,
    JudgeProcessInputs,
    LocateObjectInputs,
    PictureReply,
    ProcessReply,
    SolverOracle,
    VerificationReply,
    VerifyTrajectoryInputs,
)

VERSION = 3
"""Raise it with any change of the rules of either player: it is part of their identities."""
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ScriptedSolver:
    """A solver with set abilities. Popularity is in-degree in the corpus' link graph.

    Attributes:
        fact_popularity: it knows the facts whose subject has at least this in-degree.
        sight_popularity: it recognises in a picture the entities that have at least this in-degree.
        guess_rate: how often it guesses where it does not know, instead of saying ``unknown``.
        slip_rate: how often it gives a wrong answer although it knows.
        seen_before: share of the entities that it recognises however rare they are.
        read_before: share of the questions whose fact it knows however rare its subject is.
        right_without_tools: where given, it answers right this often when no search was made, and else says
            ``unknown``, whatever it knows; so that a test can plant a probability.
        right_with_search: the same when a search was made. An attempt that is right stays right at a higher rate.
        name: name in manifests and rows; two solvers with different names draw different luck.
    """

    fact_popularity: float = 40
    sight_popularity: float = 80
    guess_rate: float = 0.05
    slip_rate: float = 0.02
    seen_before: float = 0.0
    read_before: float = 0.0
    right_without_tools: float | None = None
    right_with_search: float | None = None
    name: str = "knower"
    reads_inputs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_rates(self, "fact_popularity", "sight_popularity")

    @property
    def identity(self) -> str:
        """Digest of the settings and of :data:`VERSION`."""
        return f"knower:{digest_value([VERSION, asdict(self)])[:16]}"

    async def chat(self, request: ChatRequest) -> ChatReply:
        """Return ``{"answer": ...}``, or a turn of a rollout. It counts no tokens."""
        if isinstance(request.inputs, ActInputs):
            return self._act(request, request.inputs)
        if not isinstance(request.inputs, AnswerQuestionInputs):
            raise ConfigError(
                f"scripted solver {self.name}: task {request.task} with {type(request.inputs).__name__}; "
                "it can do answer_question and act"
            )
        answer = self._answer(request.inputs, request.sample)
        return ChatReply(canonical_json(AnswerReply(answer=answer)), 0, 0)

    def _act(self, request: ChatRequest, inputs: ActInputs) -> ChatReply:
        oracle, history = inputs.oracle, read_history(request.messages, inputs.dialect)
        draw = [oracle.question_id, self.name]
        hurried = [*draw, oracle.attempt]
        recognises = oracle.popularity[:1] >= (self.sight_popularity,) or draw_unit(*draw, "seen") < self.seen_before
        knows = oracle.answer_relation == TITLE or (
            oracle.popularity[-1:] >= (self.fact_popularity,) or draw_unit(*draw, "read") < self.read_before
        )
        if not history and draw_unit(*hurried, "guess") < self.guess_rate:
            guess = _choose((oracle.wrong_answer, oracle.answer.surface), draw_unit(*hurried, "lucky"))
            return say_turn(Turn("I may as well guess.", answer=guess), inputs.dialect)
        move = plan_search(inputs, history, recognises=recognises, knows=knows)
        if not move.tool and draw_unit(*hurried, "slip") < self.slip_rate:
            return say_turn(Turn(move.kind, answer=oracle.wrong_answer), inputs.dialect)
        arguments = canonical_json(move.arguments) if move.tool else ""
        return say_turn(Turn(move.kind, move.tool, arguments, move.answer), inputs.dialect)

    def _answer(self, inputs: AnswerQuestionInputs, sample: int) -> str:
        oracle = inputs.oracle
        draw = [oracle.question_id, inputs.condition, sample, self.name]
        tools = inputs.condition.partition("+")[2]
        planted = self.right_with_search if tools else self.right_without_tools
        if planted is not None:
            return oracle.answer.surface if draw_unit(*draw, "planted") < planted else UNKNOWN
        if self._knows(inputs):
            if draw_unit(*draw, "slip") >= self.slip_rate:
                return oracle.answer.surface
            return _choose(oracle.guesses, draw_unit(*draw, "wrong"))
        if draw_unit(*draw, "guess") >= self.guess_rate:
            return UNKNOWN
        return _choose((*oracle.guesses, oracle.answer.surface), draw_unit(*draw, "lucky"))

    def _knows(self, inputs: AnswerQuestionInputs) -> bool:
        oracle = inputs.oracle
        if not oracle.popularity:
            raise ConfigError(f"question {oracle.question_id}: oracle.popularity is empty; it needs one number a node")
        seen, _, tools = inputs.condition.partition("+")
        looked_up = tools in BY_WORDS and inputs.search_results not in ("", NOTHING_FOUND)
        if seen in ("clause", "text"):
            return oracle.alone_count == 1 and (looked_up or oracle.popularity[-1] >= self.fact_popularity)
        unknown = sum(links < self.fact_popularity for links in oracle.popularity)
        named = _found_anchor(oracle) if tools in BY_PICTURE else oracle.popularity[0] >= self.sight_popularity
        return named and unknown <= looked_up


def _check_rates(player: "ScriptedSolver | ScriptedJudge", *counts: str) -> None:
    for name, value in asdict(player).items():
        most = float("inf") if name in counts else 1.0
        if name != "name" and value is not None and not 0.0 <= value <= most:
            raise ConfigError(f"scripted player {player.name}: {name} is {value}; allowed: 0.0 to {most}")


def _found_anchor(oracle: SolverOracle) -> bool:
    return bool(oracle.seen_titles) and oracle.seen_titles[0] == oracle.anchor_title


def _choose(options: tuple[str, ...], luck: float) -> str:
    return options[int(luck * len(options))] if options else UNKNOWN


ALIKE = 0.8
"""Share of letters in common from which it takes an answer for right where the oracle does not know."""
FAULTS = ("empty", "hedge", "malformed", "timeout")
_REPLIES = {
    "empty": "",
    "hedge": "Yes and no: it depends on what is meant.",
    "malformed": '{"verdict": "corr',
}


@dataclass(frozen=True, slots=True)
class ScriptedJudge:
    """A judge of answers, of pictures and of the ways to answers. All settings are probabilities from 0 to 1.

    Attributes:
        fpr: how often it takes a wrong answer for right.
        fnr: how often it takes a right answer for wrong.
        empty: how often its reply is empty.
        hedge: how often it says yes and no.
        malformed: how often its reply is a piece of JSON.
        timeout: how often no reply comes at all. Faults are drawn in this order, anew for each turn.
        simple: share of the pictures that it finds too simple.
        poor: share of the ways that it marks with 1 and 2; it gives 4 and 5 to the others.
        lax: share of the defective ways that it verifies all the same.
        harsh: share of the sound ways that it calls incoherent.
        name: name in manifests and rows; judges with different names draw different luck.
    """

    fpr: float = 0.02
    fnr: float = 0.05
    empty: float = 0.0
    hedge: float = 0.0
    malformed: float = 0.0
    timeout: float = 0.0
    simple: float = 0.0
    poor: float = 0.0
    lax: float = 0.0
    harsh: float = 0.0
    name: str = "scripted-judge"
    reads_inputs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_rates(self)

    @property
    def identity(self) -> str:
        """Digest of the settings and of :data:`VERSION`."""
        return f"judge:{digest_value([VERSION, asdict(self)])[:16]}"

    async def chat(self, request: ChatRequest) -> ChatReply:
        """Return a line of reasoning with a verdict, marks or statements, or ``{"simple": ...}``.

        It counts no tokens.
        """
        trial, turn = _name_trial(request), len(request.messages)
        fault = self._draw_fault(trial, turn)
        if fault == "timeout":
            raise RecordFailed("no-reply", f"scripted judge {self.name}: no complete reply in time")
        if fault:
            return ChatReply(_REPLIES[fault], 0, 0)
        if isinstance(request.inputs, JudgeAnswerInputs):
            return ChatReply(f"Held against the reference.\nVerdict: {self._judge(request.inputs)}", 0, 0)
        if isinstance(request.inputs, JudgePictureInputs):
            simple = draw_unit(trial, self.name, "simple") < self.simple
            return ChatReply(canonical_json(PictureReply(simple=simple)), 0, 0)
        if isinstance(request.inputs, LocateObjectInputs):
            return ChatReply(canonical_json(BoxReply(found=False, box=())), 0, 0)
        if isinstance(request.inputs, VerifyTrajectoryInputs):
            return ChatReply(f"Step by step.\n{canonical_json(self._verify(request.inputs))}", 0, 0)
        if isinstance(request.inputs, JudgeProcessInputs):
            return ChatReply(f"Step by step.\n{canonical_json(self._mark(trial))}", 0, 0)
        raise ConfigError(
            f"scripted judge {self.name}: task {request.task} with {type(request.inputs).__name__}; "
            "it can do judge_answer, judge_picture, judge_process and verify_trajectory"
        )

    def _verify(self, inputs: VerifyTrajectoryInputs) -> VerificationReply:
        found, sound = verify_way(inputs), VerificationReply(coherent=True, plausible=True, step=0)
        if found == sound:
            harsh = draw_unit(inputs.trial, self.name, "harsh") < self.harsh
            return VerificationReply(coherent=False, plausible=True, step=1) if harsh else sound
        return sound if draw_unit(inputs.trial, self.name, "lax") < self.lax else found

    def _mark(self, trial: str) -> ProcessReply:
        low = 1 if draw_unit(trial, self.name, "poor") < self.poor else 4
        marks = {name: low + int(draw_unit(trial, self.name, name) * 2) for name in ProcessReply.model_fields}
        return ProcessReply(**marks)

    def _draw_fault(self, trial: str, turn: int) -> str:
        luck = draw_unit(trial, turn, self.name, "fault")
        for fault in FAULTS:
            luck -= getattr(self, fault)
            if luck < 0:
                return fault
        return ""

    def _judge(self, inputs: JudgeAnswerInputs) -> str:
        oracle = inputs.oracle
        truth = oracle.truth if oracle.truth != "unknown" else _guess_truth(inputs)
        luck = draw_unit(oracle.trial, self.name, "error")
        if truth == "correct":
            return "incorrect" if luck < self.fnr else "correct"
        return "correct" if luck < self.fpr else "incorrect"


def _name_trial(request: ChatRequest) -> str:
    if isinstance(request.inputs, JudgeAnswerInputs):
        return request.inputs.oracle.trial
    if isinstance(request.inputs, JudgeProcessInputs):
        return f"way {request.inputs.trial}"
    return digest_value([image for message in request.messages for image in message.images])


def _guess_truth(inputs: JudgeAnswerInputs) -> str:
    given = Counter(fold_name(inputs.given).replace(" ", ""))
    for form in (inputs.reference, *inputs.aliases):
        letters = Counter(fold_name(form).replace(" ", ""))
        total = given.total() + letters.total()
        if total and 2 * (given & letters).total() >= ALIKE * total:
            return "correct"
    return "incorrect"


_KINDS = {
    "image_search": "look look_crop look_whole look_repaired",
    "crop": "crop zoom",
    "text_search": "find find_again lost_picture not_on_page",
    "visit": "open_anchor open open_next",
    "": "answer unknown",
}
TOOLS: Mapping[str, str] = {kind: tool for tool, kinds in _KINDS.items() for kind in kinds.split()}
"""The tool that is called after each kind of thought; empty: the answer."""
_STEP = re.compile(
    r"^Step \d+\n  thought: (?P<thought>.*)(?:\n  call: (?P<tool>\S+) (?P<arguments>.*))?(?P<back>\n.*)?$"
)


@dataclass(frozen=True, slots=True)
class ReadStep:
    """One step as a judge is shown it."""

    thought: str
    tool: str
    query: str
    """Of a search by words; empty for other calls."""
    back: str
    """What came back."""


def verify_way(inputs: VerifyTrajectoryInputs) -> VerificationReply:
    """Return what can be said of a way; the first step that fails decides.

    A thought that is worded as ``thoughts.toml`` words a kind of move leads to that kind's tool; with another call it
    stands in the wrong place. A query of words that neither question nor thought nor anything shown before has serves
    no purpose. Thoughts of other teachers are never called incoherent.
    """
    known = set(fold_name(inputs.question).split())
    for number, step in enumerate(read_steps(inputs.steps), 1):
        kinds = [kind for kind in TOOLS if any(form.match(step.thought) for form in _read_forms()[kind])]
        if kinds and all(step.tool != TOOLS[kind] for kind in kinds):
            return VerificationReply(coherent=False, plausible=True, step=number)
        known |= set(fold_name(step.thought).split())
        words = set(fold_name(step.query).split())
        if words and not words & known:
            return VerificationReply(coherent=True, plausible=False, step=number)
        known |= set(fold_name(step.back).split())
    return VerificationReply(coherent=True, plausible=True, step=0)


def read_steps(steps: str) -> Iterator[ReadStep]:
    """Yield the steps of a transcript as judges are shown it."""
    for text in steps.split("\n\n"):
        found = _STEP.match(text)
        if found is not None:
            yield ReadStep(found["thought"], found["tool"] or "", _read_query(found["arguments"]), found["back"] or "")


def _read_query(arguments: str | None) -> str:
    try:
        query = json.loads(arguments or "{}").get("query", "")
    except (ValueError, AttributeError):
        # Long arguments are cut to a length.
        return ""
    return query if isinstance(query, str) else ""


@cache
def _read_forms() -> Mapping[str, tuple[re.Pattern[str], ...]]:
    return {kind: tuple(map(_make_form, read_thoughts()[kind]["firsts"])) for kind in TOOLS}


def _make_form(first: str) -> re.Pattern[str]:
    return re.compile(".+".join(map(re.escape, re.split(r"\{\w+\}", first))))
