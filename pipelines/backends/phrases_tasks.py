"""First steps of the injection recipe by rule: which fact to ask for, which entity to hide and behind which fact."""

from collections.abc import Iterable

from pipelines.backends.phrases import find_attribute, find_relation
from pipelines.backends.phrases_questions import compose_question
from pipelines.ids import draw_unit
from pipelines.names import fold_name
from pipelines.scoring.answers import type_answer
from schemas.proofs import Answer
from schemas.tasks import (
    AskedFactReply,
    AskFactInputs,
    ExtractedFactReply,
    ExtractFactInputs,
    FactView,
    OfferedFact,
    SelectedEntityReply,
    SelectEntityInputs,
    WriteQuestionInputs,
)

_SHORT_WORD = 4


def ask_fact(entity: AskFactInputs) -> AskedFactReply:
    """Return a question for the fact that is hardest to guess; several as hard are told apart by ``variety``.

    A fact that is no single typed value is not asked for, and one whose value stands in the entity's name only for want
    of others: the name will be hidden. With none left the reply is empty, and whoever asked refuses it.
    """
    choices = []
    for fact in entity.facts:
        answer = type_answer(fact.text, "", fact.relation)
        if answer is not None:
            draw = draw_unit("ask", entity.variety, entity.name, fact.relation, fact.text)
            told = _share_words([fact.text], entity.name)
            choices.append(((told, _grade_question(entity.type, fact, answer), draw), fact, answer))
    if not choices:
        return AskedFactReply(relation="", question="")
    _, fact, answer = min(choices, key=lambda choice: choice[0])
    asked = WriteQuestionInputs(
        anchor_name=entity.name,
        anchor_type=entity.type,
        hops=(),
        answer_relation=fact.relation,
        answer=answer,
        variety=entity.variety,
    )
    return AskedFactReply(relation=fact.relation, question=compose_question(asked, (), entity.name))


def select_entity(step: SelectEntityInputs) -> SelectedEntityReply:
    """Return one of the entities that stand in the question, empty when none does."""
    named = [name for name in step.entities if name and name in step.question]
    # A name inside a longer one that stands there too, such as Kelm in Kelm Bridge, may not be said at all.
    whole = [name for name in named if not any(name != other and name in other for other in named)]
    ranked = sorted(whole, key=lambda name: draw_unit("select", step.variety, name))
    return SelectedEntityReply(entity=ranked[0] if ranked else "")


def extract_fact(step: ExtractFactInputs) -> ExtractedFactReply:
    """Return the fact whose object the fewest articles link to, empty when there is none.

    Facts whose object shares a word with the entity's name come last: a question would give the name away.
    """

    def rank(fact: OfferedFact) -> tuple[bool, int, bool, float]:
        known = find_relation(fact.relation, step.type, fact.object_type) is not None
        draw = draw_unit("extract", step.variety, step.name, fact.relation, fact.object_name)
        return _share_words([fact.object_name], step.name), fact.in_degree, not known, draw

    if not step.facts:
        return ExtractedFactReply(relation="", object_name="")
    best = min(step.facts, key=rank)
    return ExtractedFactReply(relation=best.relation, object_name=best.object_name)


def _grade_question(kind: str, fact: FactView, answer: Answer) -> int:
    """Return 0 for exact dates, measures and distinctive words, 1 for months and counts, 2 for what is easily guessed.

    A key without words of its own comes after all others.
    """
    if answer.type == "date":
        grade = ("day", "month", "year").index(answer.precision or "year")
    elif answer.type == "number":
        grade = 0 if answer.unit else 1
    else:
        grade = 0 if len(answer.surface.split()) > 1 else 2
    row = find_attribute(fact.relation, kind)
    return grade if row is not None else grade + 3


def _share_words(texts: Iterable[str], name: str) -> bool:
    words = {word for word in fold_name(name).split() if len(word) >= _SHORT_WORD}
    return any(words & set(fold_name(text).split()) for text in texts)
