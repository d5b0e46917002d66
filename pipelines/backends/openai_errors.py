"""What a refusal by a server of ``/chat/completions`` means: wait, ask again, stop the run, or fail one record."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from pipelines.backends.image_metadata import read_wait
from pipelines.errors import ConfigError, RateLimited, RecordFailed, SynthError, Unavailable

SEARCHED = 1 << 18
"""Characters of a refusal that are looked through: servers put its code behind the request that they quote."""
_QUOTED = 300
_THEIR_FAULT = (408, 409, 425)
_NO_MONEY = ("insufficient_quota", "exceeded your current quota")
_RECORDS_FAULT = {
    "context length": "prompt-too-long",
    "context_length": "prompt-too-long",
    "maximum model length": "prompt-too-long",
    "max model length": "prompt-too-long",
    "max_tokens must be at least 1": "prompt-too-long",
    "string_above_max_length": "prompt-too-long",
    "content_filter": "prompt-refused",
    "content_policy": "prompt-refused",
    "content management policy": "prompt-refused",
    "invalid_image": "picture-refused",
    "image_parse_error": "picture-refused",
    "cannot identify image": "picture-refused",
    "aspect ratio": "picture-refused",
    "must be larger than factor": "picture-refused",
}
"""What a refusal says when another record would have been answered, and the failed row's error."""
_TOO_MANY_TOKENS = re.compile(r"max_(?:completion_)?tokens\b[^{}]{0,200}?\btoo large\b")
"""No shorter prompt helps; the same message goes on to speak of the context length."""
_SECONDS = re.compile(r"[0-9]{1,9}(?:\.[0-9]{0,9})?")
_OTHER_NAME = "max_completion_tokens"


_FORMAT = re.compile(r"response_format|guided|json_schema|json schema|json_object|structured.?output|grammar")
"""What a refusal names when it is the format of the reply that a server does not take."""
_TOOLS = re.compile(
    r"parallel_tool_calls|tool[ _-]?(?:choice|use)\b|function.call"
    r"|\btools?\b[^{}]{0,80}\b(?:support|param)|support\w* tools?\b"
)
_STOP = re.compile(
    r"\b(?:not|un)[ -]?(?:support|permit|allow|known|recogni)[^{}]{0,80}\bstop\b"
    r"|\bstop\b[^{}]{0,80}\b(?:not|un)[ -]?(?:support|permit|allow|known|recogni)"
)
_EXTRAS = (
    (
        _TOOLS,
        "the server takes no native tool calls: give rollouts another dialect than native, or start vLLM with "
        "--enable-auto-tool-choice and --tool-call-parser",
    ),
    (
        _STOP,
        'the server takes no stop, which rollouts send in every dialect but native: set dialect = "native" for them',
    ),
)
"""What a refusal names when it is what only rollouts send, and what to do."""
_ADVICE = {
    "schema": 'the server takes no JSON schema: set replies = "json" or "text" for this model',
    "json": 'the server forces no JSON: set replies = "text" for this model',
}


class NoReply(Exception):
    """No whole reply; asking again may help."""


class Silence(NoReply):
    """None in the time that it may take."""


class NobodyThere(NoReply):
    """No connection: the request was never sent."""


def read_pause(headers: Mapping[str, str]) -> float:
    """Return the seconds that a server asks to wait, 0.0 where it names none.

    Args:
        headers: of a reply, found in any case of letters. ``Retry-After`` may be a date, and hosted services write
            fractions into it; ``Retry-After-Ms`` is Azure's.
    """
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        if _SECONDS.fullmatch(value := headers.get(name, "").strip()):
            return float(value) * unit
    return read_wait(headers)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A reply that is no success.

    Attributes:
        place: address and model, as messages name them.
        status: of the reply.
        wait: seconds that the server asks for, 0 if it names none.
        text: its body on one line, without the key.
        variable: name of the environment variable that holds the key, empty for none.
        forced: how the reply's shape was asked for, ``schema`` or ``json``; empty for not at all.
    """

    place: str
    status: int
    wait: float
    text: str
    variable: str
    forced: str = ""

    @property
    def said(self) -> str:
        """The status and the beginning of the body, to be quoted."""
        return f"HTTP {self.status}: {self.text[:_QUOTED]}"

    def explain(self) -> SynthError | NoReply:
        """Return what it means."""
        folded = self.text.lower()
        if self.status == 402 or (self.status == 429 and any(words in folded for words in _NO_MONEY)):
            return Unavailable(f"{self.place}: nothing left on the account ({self.said})")
        if self.status == 429 or (self.status == 503 and self.wait):
            return RateLimited(f"{self.place}: HTTP {self.status}", self.wait)
        if self.status >= 500 or self.status in _THEIR_FAULT:
            return NoReply(self.said)
        if self.status in (401, 403):
            variable = self.variable or "no variable; name one as api_key_env"
            return ConfigError(f"{self.place}: does not take the key of {variable} ({self.said})")
        return self._blame(folded)

    def _blame(self, folded: str) -> SynthError:
        """Return whose fault a refused request is: this record's alone, or the configuration's."""
        advice = "see name, base_url and sampling"
        if self.status == 413:
            return RecordFailed("prompt-too-long", f"{self.place}: {self.said}")
        if self.status in (400, 422):
            blamed = [fault for words, fault in _RECORDS_FAULT.items() if words in folded]
            if _TOO_MANY_TOKENS.search(folded):
                advice = "lower max_tokens in sampling"
            elif blamed:
                return RecordFailed(blamed[0], f"{self.place}: {self.said}")
            elif self.forced in _ADVICE and _FORMAT.search(folded):
                advice = _ADVICE[self.forced]
            elif _OTHER_NAME in folded and "max_tokens" in folded:
                advice = f"the model wants {_OTHER_NAME}, which is never sent: name one, or a gateway, for max_tokens"
        advice = next((told for words, told in _EXTRAS if words.search(folded)), advice)
        return ConfigError(f"{self.place}: does not take the request ({self.said}); {advice}")


def redact(body: bytes, key: str) -> str:
    """Return the beginning of a body on one line, without the key, plain or as JSON writes it.

    Args:
        body: what a server sent.
        key: empty for none.
    """
    text = body.decode("utf-8", "replace")
    for form in _list_forms(key):
        text = text.replace(form, "...")
    # Cut last, so that no part of a key is left at the end.
    return " ".join("".join(char if char.isprintable() else " " for char in text[:SEARCHED]).split())


def _list_forms(key: str) -> list[str]:
    escaped = json.dumps(key)[1:-1]
    return sorted({key, escaped, escaped.replace("/", "\\/")} - {""}, key=len, reverse=True)
