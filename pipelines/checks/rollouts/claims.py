"""Does the end of a rollout claim what no tool has shown (R10)?

Looked at are the thought of the last step and the answer. A claim is a number, a date or a proper name; the question,
every observation and the accepted forms of the answer back one. Numbers count by value and dates by day, so that 1,234
is 1234 and ``April 5th`` the 5th of April.
"""

from pipelines.checks.readings import POSSESSIVE
from pipelines.checks.rollouts.claimed_names import find_unbacked_names
from pipelines.checks.rollouts.claimed_numbers import find_unbacked_numbers
from pipelines.checks.rollouts.locating import list_answer_forms
from pipelines.checks.rollouts.trails import Trail, fold_words
from pipelines.checks.verdicts import PASSED, CheckResult

LONGEST_END = 20_000
"""Characters of a last thought and answer; a longer one is no end to look through."""
SHOWN = 3


def check_claims(trail: Trail, right: bool = False) -> CheckResult:
    """FAIL (``unseen-claim``) when the last thought or the answer claims what nothing backs.

    Args:
        trail: the rollout.
        right: whether the answer was found correct; then it backs itself, as it may be another name of what was seen.

    Returns:
        UNKNOWN when the end is too long to be looked through.
    """
    if not trail.answered:
        return PASSED
    said = POSSESSIVE.sub(" ,", f"{trail.legs[-1].step.thought}\n{trail.rollout.answer}")
    if len(said) > LONGEST_END:
        return CheckResult("UNKNOWN", "unseen-claim", f"the end has {len(said):,} characters, read are {LONGEST_END:,}")
    forms = [form for form in list_answer_forms(trail.rollout) if right or form != trail.rollout.answer.strip()]
    texts = (trail.rollout.question, *(leg.shown for leg in trail.legs if leg.shown), *forms)
    words = (trail.question, *(leg.seen for leg in trail.legs), *map(fold_words, forms))
    unseen = [*find_unbacked_names(said, words), *find_unbacked_numbers(said, texts)]
    if not unseen:
        return PASSED
    shown = ", ".join(map(repr, dict.fromkeys(unseen[:SHOWN])))
    return CheckResult("FAIL", "unseen-claim", f"nothing shows {shown}")
