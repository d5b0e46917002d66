"""Was a right answer found, or known and then dressed up (R4, R5)?"""

import re
from collections.abc import Iterable

from pipelines.checks.rollouts.locating import Span, list_answer_forms, locate_form, locate_value
from pipelines.checks.rollouts.trails import NameWords, Trail, names, read_title
from pipelines.checks.verdicts import PASSED, CheckResult
from schemas.proofs import Answer

NEVER = 1 << 30
"""Step of what does not happen."""
_SMALL = 100
"""Numbers below, without a unit, are said of so much that saying one is no sign of knowing the answer."""
_BARE = re.compile(r"[\d\W]+")


def find_support(trail: Trail, before: int | None = None) -> tuple[int, Span] | None:
    """Return the first step whose observation holds the answer, and where; None when none does.

    The first that has it in one of its writings is preferred to an earlier one that has it in another.

    Args:
        trail: the rollout.
        before: step at which to stop.
    """
    forms, reference = list_answer_forms(trail.rollout), trail.rollout.reference
    shown = [(number, leg) for number, leg in enumerate(trail.legs[:before]) if leg.told]
    for number, leg in shown:
        span = locate_form(leg.told, leg.seen, forms)
        if span is not None:
            return number, span
    for number, leg in shown:
        span = locate_value(leg.told, reference)
        if span is not None:
            return number, span
    return None


def check_support(trail: Trail) -> CheckResult:
    """FAIL (``unsupported``) when the answer stands in no observation of a call that went well."""
    if find_support(trail) is not None:
        return PASSED
    return CheckResult("FAIL", "unsupported", f"{trail.rollout.answer!r} is right but stands in no observation")


def check_sought(trail: Trail) -> CheckResult:
    """FAIL (``from-memory``) when no tool was called, or the answer was said before an observation held it.

    Said is what the thought or the call of a step before the last one holds. What the question says itself counts for
    nothing, nor do small numbers and ordinary words.
    """
    if not trail.calls:
        return CheckResult("FAIL", "from-memory", "answered without a tool")
    said = _find_said(trail)
    if said is None:
        return PASSED
    if find_support(trail, said) is None:
        return CheckResult("FAIL", "from-memory", f"step {said} says the answer before a tool has shown it")
    return PASSED


def _find_said(trail: Trail) -> int | None:
    """Return the first step before the answer that says it."""
    rollout = trail.rollout
    telling = tuple(form for form in list_answer_forms(rollout) if _is_telling(form, rollout.reference))
    if not telling:
        return None
    if _says(rollout.question, trail.question, telling, rollout.reference):
        return None
    for number, leg in enumerate(trail.legs):
        if not leg.step.tool:
            continue
        texts = [(leg.step.thought, leg.thought)]
        texts += [(str(value), leg.used) for name, value in leg.arguments.items() if name in ("query", "goal", "url")]
        if any(_says(text, words, telling, rollout.reference) for text, words in texts):
            return number
    return None


def _says(text: str, words: str, telling: tuple[str, ...], reference: Answer) -> bool:
    return locate_form(text, words, telling) is not None or locate_value(text, reference, bare=False) is not None


def _is_telling(form: str, reference: Answer) -> bool:
    """Say whether it takes knowledge to write an answer so: small numbers and one ordinary word are said by chance.

    A small number with a unit is told by both, for ``2`` alone may count anything.
    """
    if reference.type == "number":
        whole = reference.value.lstrip("-").partition(".")[0]
        small = whole.isdigit() and len(whole) <= 9 and int(whole) < _SMALL
        return not small or (bool(reference.unit) and _BARE.fullmatch(form) is None)
    acronym = form.isupper() and len(form) > 1
    return reference.type == "date" or acronym or len(form.split()) > 1 or bool(read_title(form).telling)


def check_jumps(trail: Trail) -> CheckResult:
    """FAIL (``memory-jump``) when a name of the chain is used before an observation has shown it.

    Used is a name in a query, a goal or an address, or in the thought of the answer. Looked at are all titles of the
    path and of the bridges; the question may say a name itself. A title of ordinary words is said by chance and
    therefore not looked at. What is in the picture may be told by sight: a call that names the anchor, and shows it,
    has put that to the test.
    """
    rollout = trail.rollout
    anchor = next((title for title in rollout.path[:1] if title not in rollout.bridges), None)
    for title in dict.fromkeys((*rollout.path, *rollout.bridges)):
        read = read_title(title)
        if not read.telling or names(trail.question, title):
            continue
        used = _find_use(trail, title, by_sight=title == anchor)
        if used is not None and _find_seen(read, trail.question, (leg.seen for leg in trail.legs[:used])) == NEVER:
            return CheckResult("FAIL", "memory-jump", f"step {used} uses {title!r}, which nothing had shown")
    return PASSED


def _find_use(trail: Trail, title: str, *, by_sight: bool) -> int | None:
    for number, leg in enumerate(trail.legs):
        if names(leg.used if leg.step.tool else leg.thought, title) and not (by_sight and names(leg.seen, title)):
            return number
    return None


def _find_seen(read: NameWords, question: str, texts: Iterable[str]) -> int:
    """Return the first of some texts by which a name was seen, whole or word by word."""
    missing = {word for word in read.telling if word not in question}
    for number, words in enumerate(texts):
        missing = {word for word in missing if word not in words}
        if not missing or read.whole in words:
            return number
    return NEVER
