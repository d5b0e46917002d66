"""What a model is asked in a round of injection, in order: an entity, a fact, descriptors, the reworded question.

What it picks is held against what it was offered, so that nothing it makes up goes on.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.checks.descriptors import offer_facts
from pipelines.checks.injections import Round
from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.checks.wording import check_named
from pipelines.corpus.store import Corpus, Fact
from pipelines.graph.ground import Ground
from pipelines.graph.injections import InjectionRules, offer_relation, read_opening
from pipelines.ids import digest_value
from pipelines.prompting import Asking, ask_model
from schemas.proofs import PathNode
from schemas.tasks import (
    Descriptor,
    DescriptorsReply,
    ExtractedFactReply,
    ExtractFactInputs,
    ProposeDescriptorsInputs,
    QuestionReply,
    RewriteQuestionInputs,
    SelectedEntityReply,
    SelectEntityInputs,
)

REPLIES = (SelectedEntityReply, ExtractedFactReply, DescriptorsReply, QuestionReply)


@dataclass(frozen=True, slots=True)
class Askings:
    """The requests of a round, in their order."""

    selecting: Asking
    extracting: Asking
    proposing: Asking
    rewriting: Asking

    def list_all(self) -> tuple[Asking, ...]:
        """Return them in the order of a round."""
        return (self.selecting, self.extracting, self.proposing, self.rewriting)


async def select_entity(asking: Asking, question: str, entity: str, sample: int) -> CheckResult:
    """Have an entity of the question selected; FAIL (``entity-not-in-question``) when it is not the one to be hidden.

    Args:
        asking: the model and its prompt.
        question: names the entity.
        entity: the one at which the chain ends: hiding any other would not lengthen it.
        sample: number of the reply; another asks anew.
    """
    inputs = SelectEntityInputs(question=question, entities=(entity,), variety=digest_value(["select", question])[:16])
    said = (await ask_model(asking, inputs, SelectedEntityReply, sample=sample)).entity
    if said == entity and check_named(question, said).passed:
        return PASSED
    return CheckResult("FAIL", "entity-not-in-question", f"{said!r} instead of {entity!r} in {question!r}")


async def extract_fact(
    asking: Asking, ground: Ground, node: PathNode, facts: Sequence[Fact], page_words: int, sample: int
) -> Fact | CheckResult:
    """Have a fact of an entity's page extracted; FAIL (``no-injection``) when it is none of those offered.

    Args:
        asking: the model and its prompt.
        ground: the corpus.
        node: the entity.
        facts: relations of its page, one or more.
        page_words: words of the page that are shown.
        sample: number of the reply; another asks anew.
    """
    offered = {fact: offer_relation(ground, fact) for fact in facts}
    inputs = ExtractFactInputs(
        name=node.title,
        type=node.type,
        page=read_opening(ground.corpus, facts[0].node, page_words),
        facts=tuple(offered.values()),
        variety=digest_value(["extract", node.page_id])[:16],
    )
    said = await ask_model(asking, inputs, ExtractedFactReply, sample=sample)
    for fact, view in offered.items():
        if (view.relation, view.object_name) == (said.relation, said.object_name):
            return fact
    return CheckResult("FAIL", "no-injection", f"{said.relation!r} {said.object_name!r} was not offered")


async def propose_descriptors(
    asking: Asking, corpus: Corpus, this: Round, rules: InjectionRules
) -> tuple[Descriptor, ...]:
    """Return descriptors of the entity that a round hides; they are offered all its facts but the one asked for."""
    view = this.view
    facts = offer_facts(corpus, this.numbers[1], rules.max_answer_tokens)
    if len(view.hops) == 1:
        facts = tuple(fact for fact in facts if fact.relation != this.proof.answer_relation)
    inputs = ProposeDescriptorsInputs(
        anchor_type=view.anchor_type,
        subject_type=view.anchor_type,
        hop=view.hops[0],
        facts=facts,
        count=rules.candidates,
        variety=view.variety,
    )
    return (await ask_model(asking, inputs, DescriptorsReply)).descriptors[: rules.candidates]


async def reword_question(asking: Asking, question: str, this: Round, descriptor: Descriptor) -> str:
    """Return the question with the entity that a round hides behind its descriptor."""
    inputs = RewriteQuestionInputs(
        question=question,
        name=this.proof.nodes[1].title,
        node=1,
        descriptor=descriptor.text,
        path=this.view,
        descriptors=this.proof.descriptors,
    )
    return (await ask_model(asking, inputs, QuestionReply)).question
