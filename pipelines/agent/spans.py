"""Finding a name in what a tool showed, and pointing at it."""

import re
from collections.abc import Iterable, Sequence

from schemas.rollouts import Rollout, Step
from schemas.trajectories import Support

ANSWER = "answer"
"""What a support of the answer is called; supports of bridges carry the bridge's title."""
QUALIFIER = re.compile(r"\s*\([^()]*\)$")


def find_name(text: str, name: str) -> tuple[int, int] | None:
    """Return the span of the first whole-word occurrence of a name, whatever its case and spacing, or None.

    ``Ur`` is not found in ``during``, ``5`` not in ``1,5`` or ``5.2``.
    """
    words = name.split()
    if not words:
        return None
    body = r"\s+".join(re.escape(word) for word in words)
    found = re.search(rf"(?<!\w)(?<!\d[.,]){body}(?!\w)(?![.,]\d)", text, re.IGNORECASE)
    return None if found is None else found.span()


def list_forms(title: str) -> tuple[str, ...]:
    """Return how a page's title may read in text: in full, and without a closing qualifier in parentheses."""
    bare = QUALIFIER.sub("", title)
    return (title, bare) if bare and bare != title else (title,)


def find_supports(rollout: Rollout) -> tuple[Support, ...]:
    """Return where each bridge's name and the answer were first seen; what was never seen has no support.

    ``step`` counts from 0 in ``rollout.steps``; the span is in that step's observation text. Bridges come in path
    order, the answer last, under the name ``answer``.
    """
    reference = rollout.reference
    wanted = [(title, list_forms(title)) for title in rollout.bridges]
    wanted.append((ANSWER, (rollout.answer, reference.surface, reference.value, *reference.aliases)))
    supports = (find_support(rollout.steps, what, forms) for what, forms in wanted)
    return tuple(support for support in supports if support is not None)


def find_support(steps: Sequence[Step], what: str, forms: Iterable[str]) -> Support | None:
    """Return the earliest span that holds one of the forms, earlier forms first within a step."""
    forms = tuple(forms)
    for number, step in enumerate(steps):
        if step.observation is None or not step.observation.ok:
            continue
        for form in forms:
            span = find_name(step.observation.text, form)
            if span is not None:
                return Support(what=what, step=number, start=span[0], end=span[1])
    return None
