"""A scripted teacher: walks the proof with tools, naming only what the tools have shown.

It knows from the oracle which name to look for, but goes on only when that name stands in an observation, so a page
or an index that does not hold the chain leads to ``unknown``, as it would for a model that reads. Vices make the
rollouts that the rejection cascade has to find.
"""

import inspect
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import lru_cache, partial
from types import MappingProxyType

from pipelines.agent import dialects, layout, spans, toolforms, transcript
from pipelines.agent.transcript import Turn
from pipelines.backends import (
    teacher_faults,
    teacher_looks,
    teacher_plan,
    teacher_speech,
    teacher_thoughts,
    teacher_vices,
)
from pipelines.backends.protocols import ChatReply, ChatRequest
from pipelines.backends.teacher_plan import Exchange, Move, find_subject, give_up, name_picture, plan_move, read_history
from pipelines.backends.teacher_speech import NO_TURN, can_say, leave_open, say_turn, say_twice
from pipelines.backends.teacher_thoughts import choose_thought
from pipelines.backends.teacher_vices import Moment, admits, make_crop, misbehave
from pipelines.errors import ConfigError
from pipelines.ids import canonical_json, digest_value, draw_unit
from schemas.reasons import TrajectoryReason
from schemas.tasks import ActInputs, TeacherOracle

SKIM_SHARE = 0.35
"""Share of attempts that go on from a snippet when it already holds the next name."""
_SOURCES = (
    teacher_plan,
    teacher_thoughts,
    teacher_looks,
    teacher_faults,
    teacher_vices,
    teacher_speech,
    dialects,
    layout,
    spans,
    toolforms,
    transcript,
)
"""What decides its replies beside this module."""
BOXES = ([100, 80, 900, 920], [150, 100, 850, 900], [200, 150, 800, 850], [120, 60, 880, 860])
EXPECTED: Mapping[str, TrajectoryReason] = MappingProxyType(
    {
        "break_format": "format",
        "two_calls": "format",
        "unknown_tool": "format",
        "bad_calls": "tool-errors",
        "give_up": "no-answer",
        "wrong": "wrong-answer",
        "from_memory": "from-memory",
        "early": "from-memory",
        "unread": "unsupported",
        "skip": "memory-jump",
        "lucky": "path-not-covered",
        "repeat": "repetition",
        "paraphrase": "repetition",
        "peek": "contaminated",
        "lost_image": "unknown-image",
        "hallucinate": "unseen-claim",
        "overlong": "too-long",
    }
)
"""By vice, the reason for which the cascade refuses the rollout; of several drawn at once the first here acts alone."""


@dataclass(frozen=True, slots=True)
class Vices:
    """Probabilities from 0 to 1, drawn once for each attempt at each question; see :data:`EXPECTED`.

    Attributes:
        break_format: leaves a tag unclosed.
        two_calls: says two turns at once.
        unknown_tool: calls a tool that there is not.
        bad_calls: visits three pages in a row that are not there.
        give_up: stops without an answer although the trail goes on.
        wrong: ends with the oracle's wrong answer.
        from_memory: answers at once, without a tool.
        early: says the answer before anything was seen, and only then looks it up.
        unread: answers after one look at the picture.
        skip: searches for the first bridge before anything has named it.
        lucky: never looks at the picture and finds the first bridge by half of its name.
        repeat: makes one call twice.
        paraphrase: makes one query twice, the second time with its words turned round.
        peek: visits a host that publishes datasets.
        lost_image: calls a tool on a picture that nobody made.
        hallucinate: adds to its last thought what it was never shown.
        overlong: thinks so long before the answer that a student would be cut off there.
        crop_first: crops the picture and searches the crop before the whole; a habit, not a fault.
    """

    break_format: float = 0.0
    two_calls: float = 0.0
    unknown_tool: float = 0.0
    bad_calls: float = 0.0
    give_up: float = 0.0
    wrong: float = 0.0
    from_memory: float = 0.0
    early: float = 0.0
    unread: float = 0.0
    skip: float = 0.0
    lucky: float = 0.0
    repeat: float = 0.0
    paraphrase: float = 0.0
    peek: float = 0.0
    lost_image: float = 0.0
    hallucinate: float = 0.0
    overlong: float = 0.0
    crop_first: float = 0.0


def make_vices(settings: Mapping[str, float]) -> Vices:
    """Return the vices that a configuration names.

    Raises:
        ConfigError: if a name is unknown or a probability is not from 0 to 1.
    """
    known = [field.name for field in fields(Vices)]
    for name, value in settings.items():
        if name not in known:
            raise ConfigError(f"scripted teacher: unknown setting {name!r}; there are: {', '.join(known)}")
        if not 0.0 <= value <= 1.0:
            raise ConfigError(f"scripted teacher: {name} is {value}, allowed is 0.0 to 1.0")
    return Vices(**settings)


def list_vices(oracle: TeacherOracle, name: str, vices: Vices, dialect: str = "synth") -> frozenset[str]:
    """Return what a teacher does wrong in one attempt, and its habits, without running it.

    Args:
        oracle: question and attempt, from which everything is drawn.
        name: the teacher's; teachers with different names draw different luck.
        vices: its settings.
        dialect: that it is spoken to in; some have no words for some vices.

    Returns:
        One key of :data:`EXPECTED` at most, the first that is drawn and that the question leaves room for, and
        ``crop_first`` where that is drawn.
    """
    drawn = [vice for vice in EXPECTED if _is_drawn(oracle, name, vices, vice) and admits(vice, oracle, dialect)]
    habits = ["crop_first"] if _is_drawn(oracle, name, vices, "crop_first") else []
    return frozenset((*drawn[:1], *habits))


def _is_drawn(oracle: TeacherOracle, name: str, vices: Vices, vice: str) -> bool:
    probability: float = getattr(vices, vice)
    return draw_unit(oracle.question_id, oracle.attempt, name, vice) < probability


@dataclass(frozen=True, slots=True)
class ScriptedTeacher:
    """A chat model for the task ``act`` in any dialect; the same settings and request always make the same reply."""

    name: str = "scripted-teacher"
    vices: Vices = Vices()

    @property
    def identity(self) -> str:
        """Name, and digest of the vices and of the source of its plan and wordings: any change is another teacher."""
        return f"{self.name}:{digest_value([asdict(self.vices), _digest_sources()])[:16]}"

    @property
    def reads_inputs(self) -> bool:
        """True: the plan comes from the inputs' oracle."""
        return True

    async def chat(self, request: ChatRequest) -> ChatReply:
        """Return the next turn of a rollout; a script reads no tokens, so none are counted.

        Raises:
            ConfigError: if it is asked for another task than ``act``.
        """
        if request.task != "act" or not isinstance(request.inputs, ActInputs):
            raise ConfigError(f"scripted teacher {self.name}: task {request.task!r} given, it plays only 'act'")
        return self._reply(request.inputs, read_history(request.messages, request.inputs.dialect))

    def _reply(self, inputs: ActInputs, history: Sequence[Exchange]) -> ChatReply:
        oracle, number = inputs.oracle, len(history)
        drawn = list_vices(oracle, self.name, self.vices, inputs.dialect)
        vice = next(iter(drawn & EXPECTED.keys()), "")
        move = self._choose_move(inputs, history, vice, crops="crop_first" in drawn)
        thought = choose_thought(move.kind, move.slots, oracle.question_id, oracle.attempt, self.name, number)
        arguments = canonical_json(move.arguments) if move.tool else ""
        turn = Turn(f"{thought} {move.after}".strip(), move.tool, arguments, move.answer)
        said = say_turn(turn, inputs.dialect)
        spoils = vice in ("break_format", "two_calls") and not any(each.turn == NO_TURN for each in history)
        if not spoils or (move.tool and number != self._pick(oracle, vice, 3)):
            return said
        return leave_open(said, self._pick(oracle, "open_tag", 3)) if vice == "break_format" else say_twice(said)

    def _choose_move(self, inputs: ActInputs, history: Sequence[Exchange], vice: str, *, crops: bool) -> Move:
        oracle = inputs.oracle
        planned = (
            _repair_first(inputs, history)
            or (self._crop_first(inputs, history) if crops else None)
            or plan_move(inputs, history, self._skims(oracle))
        )
        move = misbehave(vice, Moment(inputs, history, planned, partial(self._pick, oracle)))
        return give_up() if move.tool and inputs.turns_left <= 1 else move

    def _crop_first(self, inputs: ActInputs, history: Sequence[Exchange]) -> Move | None:
        oracle, dialect = inputs.oracle, inputs.dialect
        subject = find_subject(oracle, history)
        crops = [place for place, exchange in enumerate(history) if exchange.turn.tool == "crop"]
        if not crops:
            searched = can_say("image_search", {"image": "img_2"}, dialect)
            return make_crop(subject, BOXES[self._pick(oracle, "box", len(BOXES))], dialect) if searched else None
        looks = [exchange.arguments.get("image") for exchange in history if exchange.turn.tool == "image_search"]
        if history[crops[0]].made_picture and not looks:
            return Move("look_crop", "image_search", {"image": name_picture(history, crops[0])})
        if subject not in looks:
            return Move("look_whole", "image_search", {"image": subject})
        return None

    def _pick(self, oracle: TeacherOracle, what: str, count: int) -> int:
        return int(draw_unit(oracle.question_id, oracle.attempt, self.name, "pick", what) * count)

    def _skims(self, oracle: TeacherOracle) -> bool:
        return draw_unit(oracle.question_id, oracle.attempt, self.name, "skims") < SKIM_SHARE


def _repair_first(inputs: ActInputs, history: Sequence[Exchange]) -> Move | None:
    """Call the tool that repairs a degraded picture, once; what it makes of it, or does not, is seen later."""
    repair, arguments = inputs.oracle.repair, {"image": "img_1"}
    if not repair or any(exchange.turn.tool == repair for exchange in history):
        return None
    return Move(repair, repair, arguments) if can_say(repair, arguments, inputs.dialect) else None


@lru_cache(maxsize=1)
def _digest_sources() -> str:
    return digest_value([inspect.getsource(module) for module in (sys.modules[__name__], *_SOURCES)])
