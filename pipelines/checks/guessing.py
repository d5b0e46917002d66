"""Can the answer be guessed from the form of the question alone? (research/quality.md S7)."""

from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.graph.ground import Ground
from pipelines.names import fold_name
from pipelines.scoring.numbers import KNOWN_UNITS
from schemas.proofs import Answer

MAX_SMALL = 12
"""Counts up to a dozen are guessed."""
_GUESSED_TEXT = """
yes;no;true;false;both;neither;male;female;man;woman;left;right;north;south;east;west;northern;southern;eastern;western
africa;antarctica;asia;europe;north america;south america;oceania;australia;eurasia;the americas;america;latin america
"""
_GUESSED = frozenset(_GUESSED_TEXT.replace("\n", ";").split(";")) - {""}


def check_guessable(ground: Ground, relation: str, answer: Answer, max_share: float) -> CheckResult:
    """FAIL (``guessable-answer``) when somebody who knows nothing would often guess the answer.

    Guessed are yes and no, continents and directions, and whole numbers up to twelve without a unit; and what more
    than ``max_share`` of the relation's other subjects show, the question's own left out. However few these are, their
    share is taken as it is. Of a relation without other subjects nothing is known: UNKNOWN, unless the answer is a
    number or a full date, of which there are too many to guess.

    Args:
        ground: whose corpus the answers are counted in.
        relation: infobox key that is asked for.
        answer: as it is asked for.
        max_share: 1.0 switches the check off.
    """
    if max_share >= 1.0:
        return PASSED
    if _is_guessed(answer):
        return CheckResult("FAIL", "guessable-answer", f"{answer.surface!r} is one of few")
    share, observed = ground.shares.share(relation, answer.key)
    others, trials = max(round(share * observed) - 1, 0), max(observed - 1, 0)
    if not trials and not _has_many(answer):
        return CheckResult("UNKNOWN", "guessable-answer", f"nobody else shows {relation}")
    if trials and others / trials > max_share:
        detail = f"{answer.surface!r} is {others} of {trials} other answers of {relation}"
        return CheckResult("FAIL", "guessable-answer", detail)
    return PASSED


def _has_many(answer: Answer) -> bool:
    """Say whether an answer is one of very many whatever is asked for: a number, a day."""
    return answer.type == "number" or (answer.type == "date" and answer.precision == "day")


def _is_guessed(answer: Answer) -> bool:
    if answer.type == "number":
        whole = answer.value.isdigit() and answer.unit not in KNOWN_UNITS
        return whole and int(answer.value) <= MAX_SMALL
    return answer.type != "date" and fold_name(answer.surface) in _GUESSED
