"""Do the pages that a rollout saw lead from the anchor to the answer (R6)?"""

from collections.abc import Sequence
from itertools import pairwise

from pipelines.checks.rollouts.locating import list_answer_forms, locate_answer
from pipelines.checks.rollouts.trails import Sight, Trail, fold_words, names
from pipelines.checks.verdicts import PASSED, CheckResult


def check_path(trail: Trail) -> CheckResult:
    """FAIL (``path-not-covered``) when a link of the proof was not seen: the answer came by luck, or by knowing.

    Two nodes that follow one another are linked where one page, opened or shown in a search with a snippet, names both,
    or where the pages of both were opened. The answer is covered where a page that names the answer node holds it.
    Which page that is does not matter, so that another way to the same facts counts as well.

    Returns:
        UNKNOWN when the rollout does not say what its path is.
    """
    path = trail.rollout.path
    if not path:
        return CheckResult("UNKNOWN", "path-not-covered", "the rollout has no path to hold it against")
    sights = [sight for leg in trail.legs for sight in leg.sights]
    opened = {fold_words(sight.title) for sight in sights if sight.opened}
    for title, after in pairwise(path):
        both = fold_words(title) in opened and fold_words(after) in opened
        if not both and not any(names(sight.words, title) and names(sight.words, after) for sight in sights):
            return CheckResult("FAIL", "path-not-covered", f"no page links {title!r} and {after!r}")
    if not _covers_answer(trail, sights):
        return CheckResult("FAIL", "path-not-covered", f"no page gives the answer for {path[-1]!r}")
    return PASSED


def _covers_answer(trail: Trail, sights: Sequence[Sight]) -> bool:
    rollout = trail.rollout
    forms = list_answer_forms(rollout)
    return any(
        locate_answer(sight.text, sight.words, forms, rollout.reference) is not None
        for sight in sights
        if names(sight.words, rollout.path[-1])
    )
