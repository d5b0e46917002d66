"""The rules of a question whose answer is the concept that its picture shows (MMSearch-R1, table 2).

1. The answer must contain the concept. 2. The question begins with Who, What or Where. 3. It holds neither the concept
nor background that belongs to it. 4. It is what a curious person without prior knowledge would ask. The first three are
decided here, by the checks on any final text where those are as strict; the fourth is a mark that the evaluator gives.
"""

import re
from collections.abc import Iterator, Sequence
from functools import partial

from pipelines.checks.descriptors import check_reference
from pipelines.checks.examination import list_text_checks
from pipelines.checks.verdicts import PASSED, Check, CheckResult
from pipelines.corpus.dump import strip_qualifier
from pipelines.graph.facts import holds_phrase
from pipelines.graph.query import Indexes
from pipelines.names import fold_name
from schemas.proofs import Answer, Proof

OPENING = re.compile(r"(?:who|what|where)\b", re.IGNORECASE)


def check_concept(answer: Answer, concept: str) -> CheckResult:
    """FAIL (``concept-not-in-answer``) unless an accepted form of the answer holds the concept, its bracket aside."""
    wanted = fold_name(strip_qualifier(concept))
    if wanted and any(holds_phrase(fold_name(form), wanted) for form in (answer.surface, *answer.aliases)):
        return PASSED
    return CheckResult("FAIL", "concept-not-in-answer", f"{concept!r} is in no form of {answer.surface!r}")


def check_opening(text: str) -> CheckResult:
    """FAIL (``other-opening``) unless a question begins with Who, What or Where."""
    if OPENING.match(text.strip()):
        return PASSED
    return CheckResult("FAIL", "other-opening", f"{text!r} begins with none of Who, What and Where")


def list_naming_checks(
    ground: Indexes, numbers: Sequence[int], text: str, answer: Answer, proof: Proof
) -> Iterator[Check]:
    """Yield the checks on the text of a question for the name of what its picture shows: rules 2 and 3.

    Background is what the page says of the concept beside its type, and a word for it that is narrower than the type.
    """
    yield partial(check_opening, text)
    yield from list_text_checks(ground, numbers, text, answer, proof)
    yield partial(check_reference, text, proof.nodes[0].type, ground.corpus.types)
