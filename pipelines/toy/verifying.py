"""How the scripted judge reads the way of a rollout: by the wordings of the scripted teacher.

A thought that is worded as ``thoughts.toml`` words a kind of move leads to that kind's tool; with another call it
stands in the wrong place. A query of words that neither question nor thought nor anything shown before has serves no
purpose. Other teachers' thoughts are never called incoherent.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from pipelines.names import fold_name
from pipelines.toy.teacher import read_thoughts
from schemas.tasks import VerificationReply, VerifyTrajectoryInputs

TOOLS: Mapping[str, frozenset[str]] = {
    "look": frozenset(["image_search"]),
    "look_crop": frozenset(["image_search"]),
    "look_whole": frozenset(["image_search"]),
    "look_repaired": frozenset(["image_search"]),
    "crop": frozenset(["crop"]),
    "zoom": frozenset(["crop"]),
    "find": frozenset(["text_search"]),
    "find_again": frozenset(["text_search"]),
    "lost_picture": frozenset(["text_search"]),
    "not_on_page": frozenset(["text_search"]),
    "open_anchor": frozenset(["visit"]),
    "open": frozenset(["visit"]),
    "open_next": frozenset(["visit"]),
    "answer": frozenset([""]),
    "unknown": frozenset([""]),
}
"""By kind of thought, what may be called after it; empty: the answer."""
_STEP = re.compile(
    r"^Step \d+\n  thought: (?P<thought>.*)(?:\n  call: (?P<tool>\S+) (?P<arguments>.*))?(?P<back>\n.*)?$"
)


@dataclass(frozen=True, slots=True)
class ReadStep:
    """One step as a judge is shown it."""

    thought: str
    tool: str
    query: str
    """Of a search by words; empty for other calls."""
    back: str
    """What came back."""


def verify_way(inputs: VerifyTrajectoryInputs) -> VerificationReply:
    """Return what can be said of a way; the first step that fails decides."""
    known = set(fold_name(inputs.question).split())
    for number, step in enumerate(read_steps(inputs.steps), 1):
        kinds = [kind for kind in TOOLS if any(form.match(step.thought) for form in _read_forms()[kind])]
        if kinds and all(step.tool not in TOOLS[kind] for kind in kinds):
            return VerificationReply(coherent=False, plausible=True, step=number)
        known |= set(fold_name(step.thought).split())
        words = set(fold_name(step.query).split())
        if words and not words & known:
            return VerificationReply(coherent=True, plausible=False, step=number)
        known |= set(fold_name(step.back).split())
    return VerificationReply(coherent=True, plausible=True, step=0)


def read_steps(steps: str) -> Iterator[ReadStep]:
    """Yield the steps of a transcript as judges are shown it."""
    for text in steps.split("\n\n"):
        found = _STEP.match(text)
        if found is not None:
            yield ReadStep(found["thought"], found["tool"] or "", _read_query(found["arguments"]), found["back"] or "")


def _read_query(arguments: str | None) -> str:
    try:
        query = json.loads(arguments or "{}").get("query", "")
    except (ValueError, AttributeError):
        # Long arguments are cut to a length.
        return ""
    return query if isinstance(query, str) else ""


@cache
def _read_forms() -> Mapping[str, tuple[re.Pattern[str], ...]]:
    """Return what a thought of each kind begins with, its slots filled with anything."""
    return {kind: tuple(map(_make_form, read_thoughts()[kind]["firsts"])) for kind in TOOLS}


def _make_form(first: str) -> re.Pattern[str]:
    return re.compile(".+".join(map(re.escape, re.split(r"\{\w+\}", first))))
