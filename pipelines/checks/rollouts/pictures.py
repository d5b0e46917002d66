"""Are the pictures that a rollout speaks of there, and made before they were used (R9)?"""

import re
from collections.abc import Iterator

from pipelines.checks.rollouts.trails import Leg, Trail
from pipelines.checks.verdicts import PASSED, CheckResult

FIRST = "img_1"
_ID = re.compile(r"(?<![\w/-])img_\d+(?!\w|\.(?:jpe?g|png|gif|webp|svg|tiff?)\b)")
"""A picture's id, and no file of that name somewhere in the web."""


def check_images(trail: Trail) -> CheckResult:
    """FAIL (``unknown-image``) when a call, a thought or an observation names a picture that is not there yet.

    The question's picture is ``img_1``; each one that an observation shows takes the next number, exactly once, and the
    rollout has no others. A thought may name what its own call is about to make.
    """
    problem = next(_find_problems(trail), "")
    return CheckResult("FAIL", "unknown-image", problem) if problem else PASSED


def _find_problems(trail: Trail) -> Iterator[str]:
    ids = [image.id for image in trail.rollout.images]
    if ids[:1] != [FIRST]:
        yield f"the pictures are {ids}; the first is {FIRST}"
    known = [FIRST]
    for number, leg in enumerate(trail.legs):
        made = () if leg.step.observation is None else leg.step.observation.images
        yield from (f"step {number}: {problem}" for problem in _find_leg_problems(leg, known, made))
        known += made
    if ids != known:
        yield f"the pictures are {ids}; the steps show {known}"


def _find_leg_problems(leg: Leg, known: list[str], made: tuple[str, ...]) -> Iterator[str]:
    missing = [name for name in _list_named(leg) if name not in known]
    if missing:
        yield f"the call names {missing[0]}; there are {known}"
    thought = [name for name in _ID.findall(leg.step.thought) if name not in known and name not in made]
    if thought:
        yield f"the thought names {thought[0]}; there are {known}"
    expected = [f"img_{len(known) + place}" for place in range(1, len(made) + 1)]
    if list(made) != expected:
        yield f"the observation shows {list(made)}; next are {expected}"
    results = () if leg.step.observation is None else leg.step.observation.results
    shown = [result.image for result in results if result.image and result.image not in made]
    if shown:
        yield f"a result is shown as {shown[0]}, which the observation does not have"


def _list_named(leg: Leg) -> list[str]:
    """Return the pictures that a call names, in an argument of that kind or in words."""
    image = leg.arguments.get("image")
    named = [image] if isinstance(image, str) else []
    return named + [name for value in leg.arguments.values() if isinstance(value, str) for name in _ID.findall(value)]
