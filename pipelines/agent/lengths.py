"""How long a rollout is to a student: its messages as they are trained on, and its pictures."""

from functools import lru_cache

from pipelines.agent.dialects import DIALECTS, SYNTH
from pipelines.agent.transcript import render_observation
from pipelines.scoring.lengths import TURN_TOKENS, TokenCounter, count_picture
from schemas.rollouts import Rollout


def measure_rollout(rollout: Rollout, counter: TokenCounter, image_pixels: int) -> int:
    """Return a rollout's length in tokens, from above where the counter counts so.

    Everything counts that a release has of it: system message, question, every reply and every observation. A release
    may strip markup, which makes it shorter.

    Args:
        rollout: with its pictures.
        counter: of texts.
        image_pixels: of a picture as a student sees it.
    """
    dialect = DIALECTS.get(rollout.dialect, SYNTH)
    texts = [rollout.question]
    for step in rollout.steps:
        texts.append(step.reply)
        if step.observation is not None:
            texts.append(render_observation(step.observation, dialect))
    words = _count_system(counter, rollout.system) + sum(map(counter.count, texts))
    sizes = ((image.picture.width, image.picture.height) for image in rollout.images)
    pictures = sum(count_picture(width, height, image_pixels) for width, height in sizes)
    return words + pictures + TURN_TOKENS * (len(texts) + 1)


@lru_cache(maxsize=16)
def _count_system(counter: TokenCounter, system: str) -> int:
    """Return the tokens of a system message; it is the same for every rollout of a stage."""
    return counter.count(system)
