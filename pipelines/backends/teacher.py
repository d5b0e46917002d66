"""A scripted teacher: walks the proof with tools, naming only what the tools have shown.

It knows from the oracle which name to look for, but goes on only when that name stands in an observation, so a page
or an index that does not hold the chain leads to ``unknown``, as it would for a model that reads. Vices make the
rollouts that the rejection cascade has to find.
"""

import inspect
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import lru_cache

from pipelines.agent import layout, spans, transcript
from pipelines.agent.transcript import Turn, render_turn
from pipelines.backends import teacher_looks, teacher_plan, teacher_thoughts
from pipelines.backends.protocols import ChatReply, ChatRequest
from pipelines.backends.teacher_plan import Exchange, Move, find_subject, give_up, name_picture, plan_move, read_history
from pipelines.backends.teacher_thoughts import choose_thought
from pipelines.errors import ConfigError
from pipelines.ids import canonical_json, digest_value, draw_unit
from schemas.tasks import ActInputs, TeacherOracle

SKIM_SHARE = 0.35
"""Share of attempts that go on from a snippet when it already holds the next name."""
_SOURCES = (teacher_plan, teacher_thoughts, teacher_looks, layout, spans, transcript)
"""What decides its replies beside this module."""
BOXES = ([100, 80, 900, 920], [150, 100, 850, 900], [200, 150, 800, 850], [120, 60, 880, 860])


@dataclass(frozen=True, slots=True)
class Vices:
    """Probabilities from 0 to 1, drawn once for each attempt at each question.

    Attributes:
        wrong: ends with the oracle's wrong answer.
        break_format: leaves a tag unclosed.
        from_memory: answers at once, without a tool.
        repeat: makes one call twice.
        crop_first: crops the picture and searches the crop before the whole; a habit, not a fault.
    """

    wrong: float = 0.0
    break_format: float = 0.0
    from_memory: float = 0.0
    repeat: float = 0.0
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


@dataclass(frozen=True, slots=True)
class ScriptedTeacher:
    """A chat model for the task ``act``; the same settings and request always make the same reply."""

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
        history = read_history(request.messages)
        return ChatReply(self._reply(request.inputs, history), 0, 0)

    def _reply(self, inputs: ActInputs, history: Sequence[Exchange]) -> str:
        oracle, number = inputs.oracle, len(history)
        move = self._choose_move(inputs, history)
        seed = (oracle.question_id, oracle.attempt, self.name, number)
        thought = choose_thought(move.kind, move.slots, *seed)
        arguments = canonical_json(move.arguments) if move.tool else ""
        text = render_turn(Turn(thought, move.tool, arguments, move.answer))
        if self._has(oracle, "break_format") and (not move.tool or number == self._pick(oracle, "break_format", 3)):
            return _leave_open(text, self._pick(oracle, "open_tag", 3))
        return text

    def _choose_move(self, inputs: ActInputs, history: Sequence[Exchange]) -> Move:
        oracle, number = inputs.oracle, len(history)
        wrong = self._has(oracle, "wrong")
        if self._has(oracle, "from_memory"):
            return Move("memory", answer=oracle.wrong_answer if wrong else oracle.answer.surface)
        move = (
            _repair_first(oracle, history)
            or self._crop_first(oracle, history)
            or plan_move(inputs, history, self._skims(oracle))
        )
        if move.tool and inputs.turns_left <= 1:
            return give_up()
        if self._has(oracle, "repeat") and number == 1 + self._pick(oracle, "repeat", 3) and inputs.turns_left > 2:
            last = history[-1].turn
            return Move("repeat", last.tool, history[-1].arguments)
        if wrong and move.kind == "answer":
            return Move("doubt", answer=oracle.wrong_answer)
        return move

    def _crop_first(self, oracle: TeacherOracle, history: Sequence[Exchange]) -> Move | None:
        if not self._has(oracle, "crop_first"):
            return None
        subject = find_subject(oracle, history)
        crops = [place for place, exchange in enumerate(history) if exchange.turn.tool == "crop"]
        if not crops:
            box = BOXES[self._pick(oracle, "box", len(BOXES))]
            return Move("crop", "crop", {"image": subject, "box": box})
        looks = [exchange.arguments.get("image") for exchange in history if exchange.turn.tool == "image_search"]
        if history[crops[0]].made_picture and not looks:
            return Move("look_crop", "image_search", {"image": name_picture(history, crops[0])})
        if subject not in looks:
            return Move("look_whole", "image_search", {"image": subject})
        return None

    def _has(self, oracle: TeacherOracle, vice: str) -> bool:
        probability: float = getattr(self.vices, vice)
        return draw_unit(oracle.question_id, oracle.attempt, self.name, vice) < probability

    def _pick(self, oracle: TeacherOracle, what: str, count: int) -> int:
        return int(draw_unit(oracle.question_id, oracle.attempt, self.name, "pick", what) * count)

    def _skims(self, oracle: TeacherOracle) -> bool:
        return draw_unit(oracle.question_id, oracle.attempt, self.name, "skims") < SKIM_SHARE


def _repair_first(oracle: TeacherOracle, history: Sequence[Exchange]) -> Move | None:
    """Call the tool that repairs a degraded picture, once; what it makes of it, or does not, is seen later."""
    if not oracle.repair or any(exchange.turn.tool == oracle.repair for exchange in history):
        return None
    return Move(oracle.repair, oracle.repair, {"image": "img_1"})


@lru_cache(maxsize=1)
def _digest_sources() -> str:
    return digest_value([inspect.getsource(module) for module in (sys.modules[__name__], *_SOURCES)])


def _leave_open(text: str, choice: int) -> str:
    """Leave out the closing tag of the thought or of the action, or break off in the middle."""
    if choice == 0:
        return text.replace("</think>", "")
    if choice == 1:
        return text[: text.rindex("</")]
    return text[: text.index("</think>") + len("</think>") + 8]
