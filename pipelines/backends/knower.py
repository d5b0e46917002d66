"""A scripted solver that knows what is popular: difficulty without a model.

It plays the shortcuts the difficulty filter looks for. With text alone it answers when the last entity stands out by
itself, which makes the picture unneeded; with the picture it must recognise the anchor and know every fact of the
chain. One image search lets it read the anchor's name off the first hit instead of recognising it. One text search
that finds anything makes up for one fact it does not know, the one of the least popular node: a chain with two of them
stays closed. In a swapped picture it recognises what is shown, and from there the chain leads elsewhere.
"""

import inspect
import sys
from dataclasses import dataclass, fields
from functools import lru_cache

from pipelines.agent.conditions import BY_PICTURE, BY_WORDS, NOTHING_FOUND
from pipelines.backends.protocols import ChatReply, ChatRequest
from pipelines.errors import ConfigError
from pipelines.ids import canonical_json, digest_value, draw_unit
from schemas.tasks import AnswerQuestionInputs, AnswerReply, SolverOracle

UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ScriptedKnower:
    """A solver with set abilities. Popularity is in-degree in the corpus' link graph.

    Attributes:
        fact_popularity: it knows the facts whose subject has at least this in-degree.
        sight_popularity: it recognises in a picture the entities that have at least this in-degree.
        guess_rate: how often it guesses where it does not know, instead of saying ``unknown``.
        slip_rate: how often it gives a wrong answer although it knows.
        right_without_tools: where given, it answers right this often when no search was made, and else says
            ``unknown``, whatever it knows; so that a test can plant a probability.
        right_with_search: the same when a search was made. An attempt that is right stays right at a higher rate.
        name: name in manifests and rows; two Knowers with different names draw different luck.

    Raises:
        ConfigError: if a rate is not in [0, 1] or a popularity is negative.
    """

    fact_popularity: float = 40
    sight_popularity: float = 80
    guess_rate: float = 0.05
    slip_rate: float = 0.02
    right_without_tools: float | None = None
    right_with_search: float | None = None
    name: str = "knower"

    def __post_init__(self) -> None:
        for rate in ("guess_rate", "slip_rate", "right_without_tools", "right_with_search"):
            if getattr(self, rate) is not None and not 0.0 <= getattr(self, rate) <= 1.0:
                raise ConfigError(f"scripted knower {self.name}: {rate} is {getattr(self, rate)}; allowed: 0.0 to 1.0")
        for least in ("fact_popularity", "sight_popularity"):
            if getattr(self, least) < 0:
                raise ConfigError(f"scripted knower {self.name}: {least} is {getattr(self, least)}; allowed: 0 or more")

    @property
    def identity(self) -> str:
        """Digest of the settings and of this module's source: any change of the rules is another Knower."""
        settings = {field.name: getattr(self, field.name) for field in fields(self)}
        return f"knower:{digest_value([_digest_source(), settings])[:16]}"

    @property
    def reads_inputs(self) -> bool:
        """Always: the messages are not looked at."""
        return True

    async def chat(self, request: ChatRequest) -> ChatReply:
        """Return ``{"answer": ...}``. No tokens are counted, for none are paid.

        Raises:
            ConfigError: if the task is not answer_question.
        """
        if not isinstance(request.inputs, AnswerQuestionInputs):
            raise ConfigError(
                f"scripted knower {self.name}: task {request.task} with {type(request.inputs).__name__}; "
                "it can do answer_question"
            )
        answer = self._answer(request.inputs, request.sample)
        return ChatReply(canonical_json(AnswerReply(answer=answer)), 0, 0)

    def _answer(self, inputs: AnswerQuestionInputs, sample: int) -> str:
        oracle = inputs.oracle
        draw = [oracle.question_id, inputs.condition, sample, self.name]
        seen, _, tools = inputs.condition.partition("+")
        planted = self.right_with_search if tools else self.right_without_tools
        if planted is not None and seen != "swapped":
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
        if seen == "text":
            return oracle.alone_count == 1 and (looked_up or oracle.popularity[-1] >= self.fact_popularity)
        if seen == "swapped":
            return False
        unknown = sum(links < self.fact_popularity for links in oracle.popularity)
        named = _found_anchor(oracle) if tools in BY_PICTURE else oracle.popularity[0] >= self.sight_popularity
        return named and unknown <= looked_up


@lru_cache(maxsize=1)
def _digest_source() -> str:
    return digest_value(inspect.getsource(sys.modules[__name__]))


def _found_anchor(oracle: SolverOracle) -> bool:
    return bool(oracle.seen_titles) and oracle.seen_titles[0] == oracle.anchor_title


def _choose(options: tuple[str, ...], luck: float) -> str:
    return options[int(luck * len(options))] if options else UNKNOWN
