"""Questions and descriptors in English with no model: word tables, and rules for nesting them.

A question is built from the outside in: a frame for the attribute with a slot for the last entity, whose phrase holds
the phrase of the entity before it, down to the anchor. A bridge that is still named is followed by its descriptor
between commas, a hidden one is its descriptor alone. Wording is drawn by the path's ``variety``, so the same path
always reads the same.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

from pydantic import BaseModel

from pipelines.backends.phrases import pick
from pipelines.backends.phrases_descriptors import Link, describe_hop, elide_names, propose_candidates
from pipelines.backends.phrases_frames import list_frames
from pipelines.backends.phrases_nouns import classify_noun, clean_noun, find_head
from pipelines.backends.phrases_shapes import SLOT
from pipelines.backends.protocols import ChatReply, ChatRequest
from pipelines.errors import ConfigError
from pipelines.ids import canonical_json
from schemas.tasks import (
    SUBJECT,
    DescriptorsReply,
    ProposeDescriptorsInputs,
    QuestionReply,
    ReferToAnchorInputs,
    RewriteQuestionInputs,
    WriteQuestionInputs,
)

_SOFT = "\ue000"
"""A comma that disappears before other punctuation; no page text can hold it."""
_SOFT_BEFORE_MARK = re.compile(f"{_SOFT}+(?=[,.;:?!)”])")
_SOFT_RUN = re.compile(f"{_SOFT}+")
_REFERENCES = (
    "the {noun} in the image",
    "the {noun} shown in the image",
    "the {noun} pictured in the image",
    "the {noun} seen in the image",
    "the {noun} in this image",
)
_SHORT_PATH = 2
_WORDS_AFTER = 1
"""How many words a frame may put after the phrase of a short path that has no verbs at its end."""
_NOT_HUMAN = frozenset(["character", "deity", "god", "goddess"])
_SPECIES_OF = re.compile(r"^(?:species|genus|breed|kind|type) of ", re.IGNORECASE)
_SOURCES = (
    "phrases",
    "phrases_dates",
    "phrases_descriptors",
    "phrases_frames",
    "phrases_nouns",
    "phrases_numbers",
    "phrases_people",
    "phrases_places",
    "phrases_shapes",
    "phrases_things",
    "phrases_words",
    "templates",
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
        """Return the task's reply as JSON. No tokens are counted, for none are paid.

        Raises:
            ConfigError: if the task is not one of the four that templates can do.
        """
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
    raise ConfigError(
        f"model templates: task {request.task} with {type(request.inputs).__name__}; it can do write_question, "
        "propose_descriptors, rewrite_question and refer_to_anchor"
    )


def write_question(path: WriteQuestionInputs) -> str:
    """Return the canonical question: anchor and bridges named, the answer node only described."""
    return _compose(path, (), path.anchor_name)


def propose_descriptors(bridge: ProposeDescriptorsInputs) -> DescriptorsReply:
    """Return at most ``count`` descriptors, weakest first."""
    nested = bridge.subject_type != bridge.anchor_type
    candidates = propose_candidates(Link(bridge.hop, bridge.subject_type, nested, bridge.variety), bridge.facts)
    return DescriptorsReply(descriptors=tuple(candidates[: max(bridge.count, 0)]))


def rewrite_question(step: RewriteQuestionInputs) -> str:
    """Return the question with one more entity hidden behind its descriptor."""
    hidden = list(_pad(step.descriptors, len(step.path.hops)))
    anchor = step.path.anchor_name
    if step.node == 0:
        anchor = step.descriptor
    else:
        hidden[step.node - 1] = step.descriptor
    return _compose(step.path, hidden, anchor)


def refer_to_anchor(step: ReferToAnchorInputs) -> str:
    """Return the question with a reference to the picture in place of the anchor's name."""
    noun = _SPECIES_OF.sub("", clean_noun(step.anchor_type)) or "subject"
    if classify_noun(noun) == "person" and find_head(noun) not in _NOT_HUMAN:
        # A picture shows a person; that it is a painter is knowledge about them.
        noun = "person"
    reference = pick(_REFERENCES, "refer", step.path.variety, step.path.anchor_name).replace("{noun}", noun)
    return _compose(step.path, _pad(step.descriptors, len(step.path.hops)), reference)


def _compose(path: WriteQuestionInputs, hidden: Sequence[str], anchor: str) -> str:
    hidden = _pad(hidden, len(path.hops))
    types = [path.anchor_type, *(hop.object_type for hop in path.hops)]
    names = [path.anchor_name, *(hop.object_name for hop in path.hops)]
    texts = []
    for index, (hop, given) in enumerate(zip(path.hops, hidden, strict=True)):
        safe = hop.model_copy(update={"clause": elide_names(hop.clause, names)})
        texts.append(given or describe_hop(Link(safe, types[index], types[index] != path.anchor_type, path.variety)))
    phrase = anchor
    for index, text in enumerate(texts):
        phrase = text.replace(SUBJECT, phrase)
        if not hidden[index] and index + 1 < len(texts):
            phrase = f"{path.hops[index].object_name}, {phrase}{_SOFT}"
    frame = _choose_frame(path, types[-1], texts)
    return _punctuate(frame.replace(SLOT, phrase))


def _choose_frame(path: WriteQuestionInputs, subject_type: str, texts: Sequence[str]) -> str:
    frames = list_frames(path.answer_relation, path.answer, subject_type)
    # A nested phrase reads better at the end: "was the town where the architect was born founded" piles up verbs.
    flat = all(text.endswith(SUBJECT) for text in texts)
    words = _WORDS_AFTER if flat and len(texts) <= _SHORT_PATH else 0
    frames = tuple(frame for frame in frames if len(frame.partition(SLOT)[2].strip("?").split()) <= words) or frames
    return pick(frames, "frame", path.variety, path.answer_relation)


def _punctuate(text: str) -> str:
    text = _SOFT_RUN.sub(",", _SOFT_BEFORE_MARK.sub("", text))
    return text.replace("??", "?").replace("!?", "?") if text.endswith(("??", "!?")) else text


def _pad(descriptors: Sequence[str], length: int) -> tuple[str, ...]:
    return (*descriptors, *([""] * length))[:length]


@lru_cache(maxsize=1)
def _digest_sources() -> str:
    folder = resources.files("pipelines.backends")
    digest = hashlib.sha256()
    for name in _SOURCES:
        digest.update((folder / f"{name}.py").read_bytes())
    return digest.hexdigest()[:16]
