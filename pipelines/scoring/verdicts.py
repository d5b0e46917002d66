"""Reading a judge's reply. Whatever is not clearly one verdict is unscored: never right, never wrong, never lost."""

import json
import re

from schemas.trajectories import Verdict

_WORDS: dict[str, Verdict] = {
    "correct": "correct",
    "yes": "correct",
    "true": "correct",
    "incorrect": "incorrect",
    "wrong": "incorrect",
    "no": "incorrect",
    "false": "incorrect",
}
_KEYS = ("verdict", "judgement", "judgment", "correct")
_THOUGHT, _THOUGHT_END = "<think>", "</think>"
_LONGEST = 1 << 16
"""Characters of a reply that are read; a longer one gives no verdict."""
_FENCE = re.compile(r"```(?:json)?\s*(?P<body>.*?)\s*```", re.DOTALL)
_LABELLED = re.compile(r"[\s*_#>-]*(?:final )?(?:verdict|judgement|judgment)[\s*_]*:(?P<value>.*)", re.IGNORECASE)


def parse_verdict(reply: str) -> Verdict:
    """Return the one verdict that a reply gives, else ``unscored``.

    Read are: a JSON object with one of ``verdict``, ``judgement``, ``correct`` (fenced or not); the bare word
    (``correct``, ``incorrect``, ``yes``, ``no``); or reasoning whose last line is ``Verdict: <word>``, the only such.
    A train of thought before it, which servers without a reasoning parser leave in, is skipped; one without an end
    leaves nothing to read.
    """
    if len(reply) > _LONGEST:
        return "unscored"
    _, ended, rest = reply.rpartition(_THOUGHT_END)
    text = rest.strip()
    if not ended and text.startswith(_THOUGHT):
        return "unscored"
    fenced = _FENCE.fullmatch(text)
    if fenced:
        text = fenced["body"]
    if text.startswith("{"):
        return _read_object(text)
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return "unscored"
    labelled = [match for line in lines if (match := _LABELLED.fullmatch(line))]
    if labelled:
        last = _LABELLED.fullmatch(lines[-1])
        return _read_word(last["value"]) if last and len(labelled) == 1 else "unscored"
    return _read_word(lines[0]) if len(lines) == 1 else "unscored"


def _read_word(text: str) -> Verdict:
    return _WORDS.get(text.strip(" \t*_`\"'.!").lower(), "unscored")


def _read_object(text: str) -> Verdict:
    try:
        pairs = json.loads(text, object_pairs_hook=list)
    except (ValueError, RecursionError):
        return "unscored"
    found = [value for key, value in pairs if isinstance(key, str) and key.strip().lower() in _KEYS]
    if len(found) != 1:
        return "unscored"
    value = found[0]
    if isinstance(value, bool):
        return "correct" if value else "incorrect"
    return _read_word(value) if isinstance(value, str) else "unscored"
