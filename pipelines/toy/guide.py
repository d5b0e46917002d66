"""The path judge of runs without a model: a small grammar that reads relations, and plain rules that rank and mark."""

import re
from collections.abc import Iterator

from schemas.tasks import (
    ChooseStepInputs,
    ChosenStepsReply,
    ExtractRelationsInputs,
    JudgePathInputs,
    PassageLine,
    PathMarksReply,
    RelationsReply,
    StatedRelation,
)

_STATED = re.compile(
    r"\b(?P<gloss>(?:(?:was|were|is|are) )?(?:[a-z]+ly )?"
    r"(?:born|built|buried|written|drawn|found|held|led|made|[a-z]{3,}ed) (?:by|in|at|after|on|from|to))"
    r" (?:the )?(?:[a-z]+ )?$"
)
"""A participle and its preposition right before the object."""
_OTHERS = re.compile(r"\b(?:whose|his|her|their|its|which|who|and|but|while)\b", re.IGNORECASE)
"""Words after which a sentence may speak of something else."""
MOST = 5
LEAST_WORDS, MOST_WORDS = 1, 6


def read_relations(inputs: ExtractRelationsInputs) -> RelationsReply:
    """Return the relations to linked objects that a participle states right before the link, each object once."""
    found = [each for number, line in enumerate(inputs.lines, 1) for each in _read_line(number, line)]
    return RelationsReply(relations=tuple({each.object: each for each in reversed(found)}.values()))


def _read_line(number: int, line: PassageLine) -> Iterator[StatedRelation]:
    for each in line.objects:
        place = line.text.find(each.name)
        before = line.text[:place] if place > 0 else ""
        stated = _STATED.search(before)
        if stated is None or _OTHERS.search(before[: stated.start()]):
            continue
        gloss = stated["gloss"]
        only = gloss.split()[-1] in ("by", "in", "at", "after", "on")
        words = line.text[: place + len(each.name)]
        yield StatedRelation(sentence=number, object=each.id, relation=gloss, words=words, only=only, lasting=only)


def choose_steps(inputs: ChooseStepInputs) -> ChosenStepsReply:
    """Return the first steps whose relation is said in a few words."""
    said = [step.id for step in inputs.steps if LEAST_WORDS <= len(step.relation.split()) <= MOST_WORDS]
    return ChosenStepsReply(steps=tuple(said[:MOST]))


def mark_path(inputs: JudgePathInputs) -> PathMarksReply:
    """Return good marks for a path whose entities are of several kinds, middling ones for another."""
    kinds = {inputs.anchor_type, *(step.type for step in inputs.path)}
    mark = 4 if len(kinds) > 1 else 3
    return PathMarksReply(others="none", interest=mark, naturalness=mark, determinacy=4, need=mark)
