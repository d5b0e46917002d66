"""What a solver searched when the choice was its own, and the label that follows (MMSearch-R1, 3.1: search balancing).

A rollout searched by picture, by words, by both or not at all. A question is search-free if any rollout without a
search is right; it takes the search of those that are right if all of them searched; and is dropped if none is right.
The paper leaves open what a question takes whose right rollouts searched in different ways: here it is the cheapest,
since the others show no need. An attempt that nobody could score might have been right: where it searched less than
the label says, the label is unknown.
"""

from collections.abc import Iterable, Mapping
from typing import Literal

from pipelines.agent.attempts import Attempt
from schemas.datasets import Rollout, SearchNeed
from schemas.tasks import Condition

NEEDS: tuple[SearchNeed, ...] = ("search-free", "image", "text", "mixed")
"""By cost."""
CONDITIONS: Mapping[SearchNeed, Condition] = {
    "search-free": "image",
    "image": "image+image-search",
    "text": "image+text-search",
    "mixed": "image+both",
}
"""The condition under which an attempt with the same searches would be given their results."""
_SEARCHES: Mapping[frozenset[str], SearchNeed] = {
    frozenset(): "search-free",
    frozenset({"image_search"}): "image",
    frozenset({"text_search"}): "text",
    frozenset({"image_search", "text_search"}): "mixed",
}
Label = SearchNeed | Literal["unscored", "never-solved"]


def name_searches(rollout: Rollout) -> SearchNeed:
    """Return which searches a rollout made; a call that failed brought nothing and does not count."""
    answered = (step for step in rollout.steps if step.observation is not None and step.observation.ok)
    return _SEARCHES[frozenset(step.tool for step in answered) & {"image_search", "text_search"}]


def find_label(attempts: Iterable[tuple[SearchNeed, Attempt]]) -> Label:
    """Return what a question needs, by all its attempts: in any order they give one label."""
    right: set[SearchNeed] = set()
    doubtful: set[SearchNeed] = set()
    for need, attempt in attempts:
        if attempt.verdict == "correct":
            right.add(need)
        elif attempt.verdict == "unscored":
            doubtful.add(need)
    label = next((need for need in NEEDS if need in right), None)
    before = NEEDS if label is None else NEEDS[: NEEDS.index(label)]
    if doubtful.intersection(before):
        return "unscored"
    return label or "never-solved"
