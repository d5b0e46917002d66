"""A grammar that reads toy pages for one field: the evaluator of runs without a model.

``page_reading.toml`` holds the patterns, written against the sentences that come out of the toy writer. A sentence that
no pattern accounts for may say anything, so its value is ``unclear``, which refuses.
"""

import re
import tomllib
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from pipelines.ids import digest_value
from schemas.tasks import ReadPageInputs, ReadPageReply, StatedValue

_TABLES = Path(__file__).with_name("page_reading.toml")
_PARTS = {
    "{v}": r"(?P<value>.+?)",
    "{d}": r"(?P<value>(?:\d{1,2} [A-Z][a-z]+ )?\d{1,4}|[A-Z][a-z]+ \d{1,2}, \d{1,4})",
    "{n}": r"(?P<value>\d[\d,.]*(?: [^\s\d]{1,12})?)",
    "{a}": r"(?:[A-Z][a-z]+ )?[a-z-]+(?: (?:of )?[a-z-]+){0,3}",
}


@dataclass(frozen=True, slots=True)
class _Tables:
    nouns: dict[str, list[str]]
    facts: tuple[tuple[frozenset[str], tuple[str, ...]], ...]
    """Fields, and the sentences that say what they hold."""
    digest: str


@cache
def _load() -> _Tables:
    raw = _TABLES.read_text("utf-8")
    doc = tomllib.loads(raw)
    return _Tables(
        nouns=doc["nouns"],
        facts=tuple((frozenset(entry["fields"]), tuple(entry["says"])) for entry in doc["facts"]),
        digest=digest_value(raw),
    )


def digest_patterns() -> str:
    """Return the digest of the patterns: part of a reader's identity."""
    return _load().digest


@lru_cache(maxsize=64)
def _compile(subject: str) -> tuple[tuple[frozenset[str], re.Pattern[str]], ...]:
    """Return the patterns of all sentences about a subject, given as a pattern of its own."""
    compiled = []
    for fields, says in _load().facts:
        for words in says:
            for mark, pattern in {"{s}": f"(?:{subject})", **_PARTS}.items():
                words = words.replace(mark, pattern)
            compiled.append((fields, re.compile(words)))
    return tuple(compiled)


def _describe_subject(name: str, kind: str) -> str:
    """Return a pattern of what a page calls its subject: its name, the last word of it, the noun of its type."""
    bare = name.partition(" (")[0]
    nouns = _load().nouns.get(kind, [kind] if kind else [])
    called = [re.escape(bare), re.escape(bare.split()[-1])]
    return "|".join(
        [f"(?:[Tt]he )?{each}" for each in called] + [f"[Tt]he {noun}" for noun in map(re.escape, nouns)] + ["It"]
    )


def read_page(inputs: ReadPageInputs) -> ReadPageReply:
    """Return every value that the sentences of a toy page give for a field."""
    patterns, found = _compile(_describe_subject(inputs.name, inputs.type)), []
    for number, sentence in enumerate(inputs.sentences, 1):
        bare = sentence.removesuffix(".")
        matches = [(fields, match) for fields, words in patterns if (match := words.fullmatch(bare))]
        values = {match["value"] for fields, match in matches if inputs.field in fields}
        if not matches:
            values = {"unclear"}
        found += [StatedValue(sentence=number, words=sentence, value=value) for value in sorted(values)]
    return ReadPageReply(propositions=tuple(found))
