"""Labels of questions by what the right rollouts searched: all patterns of eight outcomes."""

from itertools import chain, combinations, combinations_with_replacement

import pytest

from pipelines.agent.attempts import Attempt
from pipelines.stages.choices import NEEDS, find_label, name_searches
from schemas.datasets import Observation, Rollout, Step
from schemas.proofs import Answer

VERDICTS = ("correct", "incorrect", "unscored")
KINDS = [(need, verdict) for need in NEEDS for verdict in VERDICTS]
ATTEMPTS = {verdict: Attempt(verdict) for verdict in VERDICTS}
ANSWER = Answer(type="name", value="Kelm", precision="", unit="", surface="Kelm", aliases=(), key="text:kelm")


def label(*outcomes):
    return find_label([(need, ATTEMPTS[verdict]) for need, verdict in outcomes])


def label_as_published(right):
    """The paper's rule, read literally: right without a search, else what those that are right searched."""
    return min(right, key=NEEDS.index) if right else "never-solved"


def test_all_patterns_of_eight_outcomes_have_the_label_that_every_verdict_of_the_unscored_would_give():
    for outcomes in combinations_with_replacement(KINDS, 8):
        right = {need for need, verdict in outcomes if verdict == "correct"}
        open_ = {need for need, verdict in outcomes if verdict == "unscored"}
        worlds = chain.from_iterable(combinations(open_, size) for size in range(len(open_) + 1))
        labels = {label_as_published(right | set(more)) for more in worlds}
        assert label(*outcomes) == (labels.pop() if len(labels) == 1 else "unscored"), outcomes


@pytest.mark.parametrize(
    ("right", "found"),
    [
        (("search-free",), "search-free"), (("image",), "image"), (("text",), "text"), (("mixed",), "mixed"),
        (("mixed", "search-free"), "search-free"), (("mixed", "image"), "image"), (("mixed", "text"), "text"),
        (("text", "image"), "image"), ((), "never-solved"),
    ],
)  # fmt: skip
def test_a_question_takes_the_cheapest_search_of_its_right_rollouts(right, found):
    wrong = [(need, "incorrect") for need in NEEDS]
    assert label(*wrong, *((need, "correct") for need in right)) == found


def make_step(tool, ok=True):
    seen = Observation(ok=ok, error="" if ok else "bad-arguments", text="", images=())
    return Step(thought="", tool=tool, arguments="{}", reply="", observation=seen if tool else None)


@pytest.mark.parametrize(
    ("steps", "need"),
    [
        ([], "search-free"),
        ([make_step("image_search")], "image"),
        ([make_step("text_search"), make_step("text_search")], "text"),
        ([make_step("image_search"), make_step("text_search")], "mixed"),
        ([make_step("image_search", ok=False), make_step("text_search")], "text"),
        ([make_step("crop")], "search-free"),
        ([Step(thought="", tool="image_search", arguments="{}", reply="", observation=None)], "search-free"),
    ],
)
def test_a_rollout_searched_what_a_search_answered(steps, need):
    rollout = Rollout(
        record_id="rollout-1", parent_id="q-1", split="rl", attempt=0, teacher="t", prompt="p", system="", question="?",
        images=(), steps=(*steps, make_step("")), answer="Kelm", stop_reason="answered", reference=ANSWER, bridges=(),
    )  # fmt: skip
    assert name_searches(rollout) == need
