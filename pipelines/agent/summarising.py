"""Summing up a page for a goal (OpenSearch-VL, appendix F; VSearcher, A.2; SenseNova-MARS, 8.3).

The published pipelines show whatever the model says, its train of thought and its inventions included. Here a summary
is shown if it is one: whole, short, no refusal, and without a number or a name that the page does not have. Else the
passages of the page that fit the goal are shown, and the observation says so.
"""

import re
from dataclasses import dataclass

from pipelines.agent import passages
from pipelines.agent.passages import choose_passages, list_words
from pipelines.agent.results import clean_text
from pipelines.backends.protocols import ChatReply, ChatRequest
from pipelines.errors import RecordFailed
from pipelines.ids import digest_value
from pipelines.prompting import Asking, render_messages
from schemas.tasks import SummariseInputs

VERSION = 2
"""Of what is shown to the model and what is believed of it."""
TASK = "summarise"
MOST_READ = 24_000
"""Characters of a page that the model is shown."""
LONGEST = 1500
"""Characters of a summary: about five sentences. A shorter page is shown as it is."""
LEAST = 10
_STEM = 4
"""Letters that two forms of a name have in common: France, French."""
_THOUGHT_END = "</think>"
_REFUSAL = re.compile(
    r"\W*(?:(?:i am |i'm )?(?:very |so |truly )?sorry\b|unfortunately,? i\b|i apologi[sz]e\b"
    r"|i (?:can't|cannot|can not|won't|will not|am (?:un|not )able)\b|as an ai\b)",
    re.IGNORECASE,
)
_TAG = re.compile(r"</?[a-z_]{3,20}>|<[|｜]|^\s*[{\[]|```", re.IGNORECASE)
_NUMBER = re.compile(r"\d+")
_NAME = re.compile(r"(?<![.!?:]\s)(?<!^)(?<![\w'’\"“(*#-])[^\W\d_a-z][^\W\d_]{3,}")
"""A word with a capital that begins no sentence."""
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_DENIAL = re.compile(
    r"\b(?:not?|nor|neither|none|nothing|nobody|never|nowhere|without|unclear|unknown|cannot)\b|n['’]t\b"
)
"""What a sentence has that says what a page does not tell."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What is shown of a page."""

    text: str
    whole: bool = True
    """Whether it is a summary; else it is passages of the page."""
    problem: str = ""
    """Why it is none, for a reader."""


@dataclass(frozen=True, slots=True)
class Summariser:
    """A model that sums up pages, and what stands in for it where it does not."""

    asking: Asking

    @property
    def identity(self) -> str:
        """Digest of everything that decides a summary beside the page and the goal."""
        return digest_value([VERSION, passages.VERSION, MOST_READ, LONGEST, self.asking.identity])

    async def summarise(self, goal: str, title: str, text: str, limit: int = LONGEST) -> Summary:
        """Return a page summed up for a goal, or the passages that fit it best where there is no usable summary.

        Args:
            goal: what is looked for.
            title: of the page.
            text: the page; of a longer one the passages that fit the goal are read.
            limit: characters of the passages.

        Raises:
            ServiceError: if the model is away.
        """
        if len(text) <= LONGEST:
            return Summary(text)
        source = choose_passages(text, goal, MOST_READ)
        inputs = SummariseInputs(goal=goal, title=clean_text(title), text=clean_text(source))
        asking = self.asking
        messages = render_messages(asking.prompt, inputs)
        try:
            said = await asking.model.chat(ChatRequest(TASK, asking.prompt.label, messages, inputs, asking.sampling))
        except RecordFailed as error:
            problem = str(error)
        else:
            summary, problem = read_summary(said, f"{title}\n{source}", goal)
            if not problem:
                return Summary(summary)
        return Summary(choose_passages(text, goal, limit), whole=False, problem=problem)


def read_summary(said: ChatReply, source: str, goal: str = "") -> tuple[str, str]:
    """Return the summary in a reply, and why there is none.

    Args:
        said: the reply.
        source: all that the summary may say.
        goal: what else a sentence may name that says what the page does not tell. Elsewhere it may not: who looks for
            what is not so would have it confirmed.
    """
    if said.ended != "whole":
        return "", f"{said.ended} reply"
    text = said.text.rpartition(_THOUGHT_END)[2].strip()
    problem = _find_fault(text) or _find_invention(text, source, goal)
    return ("", problem) if problem else (text, "")


def _find_fault(text: str) -> str:
    if not LEAST <= len(text) <= LONGEST:
        return f"{len(text):,} characters, expected are {LEAST} to {LONGEST:,}"
    if _REFUSAL.match(text.replace("’", "'")):
        return "a refusal"
    if _TAG.search(text) or clean_text(text) != text or not text.replace("\n", " ").isprintable():
        return "tags, code or control characters"
    return ""


def _find_invention(text: str, source: str, goal: str) -> str:
    """Return the first number or name of a summary that its source does not have, told to a reader."""
    told, asked = _list_marks(source), _list_marks(f"{source}\n{goal}")
    start = 0
    for sentence in _SENTENCE.split(text):
        known = asked if _DENIAL.search(sentence) else told
        place = text.index(sentence, start)
        start = place + len(sentence)
        for mark in (*_NUMBER.finditer(text, place, start), *_NAME.finditer(text, place, start)):
            word, counts = mark[0], mark[0].isdecimal()
            if (counts or word[0].isupper()) and _shorten(word) not in known:
                return f"the {'number' if counts else 'name'} {word[:40]} is not on the page"
    return ""


def _list_marks(source: str) -> frozenset[str]:
    """Return the numbers and the beginnings of the words of a text."""
    return frozenset((*_NUMBER.findall(source), *map(_shorten, list_words(source))))


def _shorten(word: str) -> str:
    return word if word.isdecimal() else word.casefold()[:_STEM]
