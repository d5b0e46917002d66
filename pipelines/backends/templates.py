"""Questions and descriptors in English with no model: word tables, and rules for putting their phrases together.

An entity is described by what leads to it: the phrase of the entity before it, its type, its facts. A question is built
from the anchor on, all phrases nested into one sentence, or a step at a time (``phrases_chains``). A bridge that is
still named is followed by its descriptor between commas, a hidden one is its descriptor alone. Wording is drawn by the
path's ``variety``, so the same path always reads the same.
"""

import hashlib
import re
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

from pydantic import BaseModel

from pipelines.agent.passages import VERSION as PASSAGES
from pipelines.backends.phrases import pick
from pipelines.backends.phrases_descriptors import Link, propose_candidates
from pipelines.backends.phrases_nouns import classify_noun, clean_noun, find_head
from pipelines.backends.phrases_questions import compose_question, pad_descriptors
from pipelines.backends.phrases_summaries import summarise_page
from pipelines.backends.phrases_tasks import ask_fact, extract_fact, select_entity
from pipelines.backends.protocols import ChatReply, ChatRequest
from pipelines.errors import ConfigError
from pipelines.ids import canonical_json
from schemas.tasks import (
    AskFactInputs,
    DescriptorsReply,
    ExtractFactInputs,
    ProposeDescriptorsInputs,
    QuestionReply,
    ReferToAnchorInputs,
    RewriteQuestionInputs,
    SelectEntityInputs,
    SummariseInputs,
    WriteQuestionInputs,
)

_REFERENCES = (
    "the {noun} in the image",
    "the {noun} shown in the image",
    "the {noun} pictured in the image",
    "the {noun} seen in the image",
    "the {noun} in this image",
)
_NOT_HUMAN = frozenset(["character", "deity", "god", "goddess"])
_SPECIES_OF = re.compile(r"^(?:species|genus|breed|kind|type) of ", re.IGNORECASE)
_CAN_DO = (
    "write_question, propose_descriptors, rewrite_question, refer_to_anchor, ask_fact, select_entity, extract_fact and "
    "summarise"
)


@dataclass(frozen=True, slots=True)
class TemplatesModel:
    """A writer and rewriter that needs no model. It answers from ``ChatRequest.inputs``."""

    @property
    def name(self) -> str:
        """``templates``."""
        return "templates"

    @property
    def identity(self) -> str:
        """``templates`` and a digest of the source of its words and rules: any change of wording is a new backend."""
        return f"templates:{_digest_sources()}"

    @property
    def reads_inputs(self) -> bool:
        """Always: the messages are not looked at."""
        return True

    async def chat(self, request: ChatRequest) -> ChatReply:
        """Return the task's reply as JSON, a summary as text. No tokens are counted, for none are paid.

        Raises:
            ConfigError: if the task is not one of those that templates can do.
        """
        if isinstance(request.inputs, SummariseInputs):
            return ChatReply(summarise_page(request.inputs), 0, 0)
        return ChatReply(canonical_json(_reply(request)), 0, 0)


def _reply(request: ChatRequest) -> BaseModel:
    match request.inputs:
        case WriteQuestionInputs() as path:
            return QuestionReply(question=write_question(path))
        case ProposeDescriptorsInputs() as bridge:
            return propose_descriptors(bridge)
        case RewriteQuestionInputs() as step:
            return QuestionReply(question=rewrite_question(step))
        case ReferToAnchorInputs() as step:
            return QuestionReply(question=refer_to_anchor(step))
        case AskFactInputs() as entity:
            return ask_fact(entity)
        case SelectEntityInputs() as choice:
            return select_entity(choice)
        case ExtractFactInputs() as choice:
            return extract_fact(choice)
    name = type(request.inputs).__name__
    raise ConfigError(f"model templates: task {request.task} with {name}; it can do {_CAN_DO}")


def write_question(path: WriteQuestionInputs) -> str:
    """Return the canonical question: anchor and bridges named, the answer node only described."""
    return compose_question(path, (), path.anchor_name)


def propose_descriptors(bridge: ProposeDescriptorsInputs) -> DescriptorsReply:
    """Return at most ``count`` descriptors, weakest first."""
    link = Link(bridge.hop, bridge.subject_type, bridge.subject_type != bridge.anchor_type, bridge.variety)
    return DescriptorsReply(descriptors=tuple(propose_candidates(link, bridge.facts, bridge.count)))


def rewrite_question(step: RewriteQuestionInputs) -> str:
    """Return the question with one more entity hidden behind its descriptor."""
    hidden = list(pad_descriptors(step.descriptors, len(step.path.hops)))
    anchor = step.path.anchor_name
    if step.node == 0:
        anchor = step.descriptor
    else:
        hidden[step.node - 1] = step.descriptor
    return compose_question(step.path, hidden, anchor)


def refer_to_anchor(step: ReferToAnchorInputs) -> str:
    """Return the question with a reference to the picture in place of the anchor's name."""
    noun = _SPECIES_OF.sub("", clean_noun(step.anchor_type)) or "subject"
    if classify_noun(noun) == "person" and find_head(noun) not in _NOT_HUMAN:
        # A picture shows a person; that it is a painter is knowledge about them.
        noun = "person"
    reference = pick(_REFERENCES, "refer", step.path.variety, step.path.anchor_name).replace("{noun}", noun)
    return compose_question(step.path, step.descriptors, reference)


def list_sources() -> tuple[str, ...]:
    """Return the names of the files that hold words and rules, sorted: every ``phrases*.py`` beside this one."""
    names = (entry.name for entry in resources.files("pipelines.backends").iterdir())
    return tuple(sorted(n for n in names if n == "templates.py" or (n.startswith("phrases") and n.endswith(".py"))))


@lru_cache(maxsize=1)
def _digest_sources() -> str:
    folder = resources.files("pipelines.backends")
    digest = hashlib.sha256()
    for name in list_sources():
        digest.update((folder / name).read_bytes())
    digest.update(str(PASSAGES).encode())
    return digest.hexdigest()[:16]
