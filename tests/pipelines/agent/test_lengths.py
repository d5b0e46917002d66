from pipelines.agent.cascade import PICTURE_TOKENS, TURN_TOKENS, estimate_tokens, measure_rollout
from schemas.datasets import RolloutImage
from tests.pipelines.checks.walking import answer, fail, make_picture, make_rollout, visit


def test_everything_that_a_student_reads_counts():
    steps = (visit("A"), fail(url="x"), answer())
    rollout = make_rollout(*steps)
    texts = [rollout.system, rollout.question, *(step.reply for step in steps)]
    texts += [f"<tool_response>\n{steps[0].observation.text}\n</tool_response>"]
    texts += [f"<tool_response>\nerror: unknown-page\n{steps[1].observation.text}\n</tool_response>"]
    picture = PICTURE_TOKENS + 22 * 16
    assert measure_rollout(rollout) == sum(map(estimate_tokens, texts)) + len(texts) * TURN_TOKENS + picture


def test_every_picture_counts_at_the_size_that_a_student_sees():
    one = make_rollout(answer())
    images = (*one.images, RolloutImage(id="img_2", picture=make_picture(5600, 5600)))
    two = one.model_copy(update={"images": images})
    assert measure_rollout(two) - measure_rollout(one) == 19 * 19 + PICTURE_TOKENS
