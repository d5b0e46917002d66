"""Models that say what a test tells them, and what they were asked."""

from collections.abc import Callable
from dataclasses import dataclass, field

from pydantic import BaseModel

from pipelines.checks.readings import digest_text, list_hidden, state_hop, state_relation
from pipelines.checks.verdicts import PASSED
from pipelines.services.prompting import RoleClient, load_prompt
from pipelines.services.protocols import ChatReply, ChatRequest
from schemas.manifest import ModelEntry
from schemas.proofs import Answer, OtherEntity, Proof, ReadFact, ReadHop, Reading, Screening


def read_rightly(text: str, proof: Proof, answer: Answer, **changes) -> Reading:
    """Return the reading of a text that is its proof's query."""
    reading = Reading(
        reader="trusting:1",
        text=digest_text(text),
        offered=(),
        hops=tuple(ReadHop(statement=state_hop(hop), backward=hop.backward, words=text) for hop in proof.hops),
        asked=state_relation(proof.answer_relation),
        form=answer.precision,
        unit=answer.unit,
        facts=tuple(
            ReadFact(
                node=fact.node,
                statement="" if fact.relation == "type" else state_relation(fact.relation),
                value=fact.value,
                words=text,
            )
            for fact in proof.constraints
        ),
        questions=1,
        instruction="",
        unsure="",
    )
    return reading.model_copy(update=changes)


def screen_rightly(text: str, proof: Proof, answer: Answer, others: tuple[OtherEntity, ...] = ()) -> Screening:
    """Return the screening of a text that gives nothing away."""
    return Screening(
        reader="trusting:1",
        text=digest_text(text),
        hidden=list_hidden(proof, answer),
        leaks=(),
        others=others,
        fitting=(),
        several="",
        unsure="",
    )


class TrustingReader:
    """Reads every text as its proof: for tests of everything but the words."""

    identity = "trusting:1"

    def prompts(self) -> dict[str, str]:
        return {}

    def describe(self) -> ModelEntry:
        return ModelEntry(role="evaluator", name="trusting", revision="1", sampling={})

    async def check(self, text, proof, answer):
        return read_rightly(text, proof, answer), PASSED

    async def screen(self, text, reading, proof, answer):
        return screen_rightly(text, proof, answer), PASSED


@dataclass
class FakeModel:
    """Answers each request with ``reply(inputs)``: a model's JSON, or text as it is."""

    reply: Callable[[BaseModel], BaseModel | str]
    name: str = "fake"
    identity: str = "fake:1"
    reads_inputs: bool = True
    asked: list[ChatRequest] = field(default_factory=list)

    async def chat(self, request: ChatRequest) -> ChatReply:
        self.asked.append(request)
        said = self.reply(request.inputs)
        return ChatReply(said if isinstance(said, str) else said.model_dump_json(), 1, 1)


def make_asking(prompt: str, reply: Callable[[BaseModel], BaseModel | str], version: int = 0, **changes) -> RoleClient:
    return RoleClient(FakeModel(reply, **changes), load_prompt(prompt, version))


def read_request(model: FakeModel, number: int = -1) -> str:
    """Return what a request to a model says."""
    return "\n".join(message.text for message in model.asked[number].messages)
