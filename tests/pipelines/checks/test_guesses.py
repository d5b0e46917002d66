"""Questions that are guessed without their picture are refused before anybody is paid for them."""

import pytest

from pipelines.checks.limits import Limits, refuse_elsewhere, refuse_gold
from pipelines.checks.sets import make_signature
from pipelines.config.settings import ReleasesConfig
from schemas.proofs import Count
from tests.pipelines.release.builders import make_question


def sign(number, split, gold, anchors=8):
    question = make_question(number, None, split)
    counts = [Count(name="anchors", node=0, value=anchors, capped=False)]
    counts += [] if gold is None else [Count(name="gold", node=0, value=gold, capped=False)]
    return make_signature(question.model_copy(update={"proof": question.proof.model_copy(update={"counts": counts})}))


@pytest.mark.parametrize(
    ("split", "gold", "refused"),
    [
        ("eval", 2, False),
        ("eval", 3, True),
        ("sft", 4, False),
        ("sft", 5, True),
        ("rl", 5, True),
        ("eval", None, False),
    ],
)
def test_evaluation_bears_a_quarter_and_training_a_half_and_what_is_not_counted_passes(split, gold, refused):
    (signature,) = [sign(1, split, gold)]
    found = refuse_gold([signature], ReleasesConfig())
    assert [each.reason for each in found.values()] == ["guessed-without-picture"] * refused
    assert refuse_elsewhere((), [signature], Limits(), None) == found
