"""Content that must not reach a teacher: dataset hosts, the question's text, row ids, leaked protocol tags.

Some 3% of searches return the pages that publish a benchmark's questions, and agents do better on just those
(research/quality.md, C2). A trajectory whose observations contain such content is rejected (R7).
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote, urlsplit

from pipelines.ids import digest_value
from pipelines.names import compile_phrase
from schemas.datasets import ObservationFlag

VERSION = 2
"""Version of these rules; part of an observation's identity."""
_QUOTED = re.compile(r"“([^”]*)”")
GRAM = 8
"""Successive words that a text must have in common with a question to hold it; of a shorter question, all of them.

Of 8 to 13, as decontamination counts, the fewest, for who quotes a question may change a word here and there. It is no
chance for all that: 1,500 articles of an encyclopedia (27 million characters) have at most 6 in common with any of the
434 questions of demo worlds."""
LEAST_GRAM = 5
"""Words of the shortest question that is searched for: shorter texts occur on unrelated pages."""
LEAST_ID = 8
"""Characters of the shortest id that is searched for: ``42`` occurs on any page."""
_ROUNDS = 8
"""Most times that an address is decoded; one that still changes then is treated as hostile."""
_WORD = re.compile(r"[^\W_]+")
_UNSEEN = re.compile("[\u00ad\u034f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]")
_DOTS = str.maketrans({"\u3002": ".", "\uff0e": ".", "\uff61": "."})
"""What stands for a dot in names of hosts (RFC 3490, 3.1)."""
_EMBEDDED = re.compile(r"(?:https?:/{1,2}|(?<![\w:/])//)(?P<host>[^/?#&\s]+)", re.IGNORECASE)
_SCHEME = re.compile(r"https?:/*|(?:[a-z][a-z0-9+.-]*:)?/{2,}", re.IGNORECASE)
"""What stands before a host; browsers do not count the slashes."""
_TRANSLATED = ".translate.goog"
_PROTOCOL = re.compile(
    r"<\s{0,3}/?\s{0,3}(?:think|thinking|tool_calls?|tool_responses?|tool_results?|function_calls?|function_response"
    r"|text_search)\s{0,3}/?\s{0,3}>"
    r"|<[|｜][\w▁]+[|｜]>|\[/?INST\]|<</?SYS>>",
    re.IGNORECASE,
)
"""Tags of agents' protocols and control tokens of chat templates. No page has them, but for one about models: tags with
a plainer name, such as ``answer`` or ``search``, are HTML or any program's XML."""


@dataclass(frozen=True, slots=True)
class Watched:
    """Content that an observation must not contain."""

    question: str
    """Text of the question."""
    ids: tuple[str, ...] = ()
    """Ids of its row and of the rows that it was made from."""


def is_blocked(url: str, hosts: Sequence[str]) -> bool:
    """Say whether an address leads to one of the hosts or a subdomain, or passes such an address to another host.

    Case, port, user, a trailing dot, percent-encoding, full-width letters and Punycode make no difference. An address
    within the address counts, as that of a reader, cache, archive, redirect or translation. One that cannot be
    parsed is blocked.
    """
    if not hosts:
        return False
    blocked = _normalise_hosts(tuple(hosts))
    try:
        return any(_is_within(host, blocked) for host in _list_hosts(url))
    except ValueError:  # raised by urlsplit for an invalid address, such as an unclosed [
        return True


def find_flags(text: str, about: Watched | None) -> tuple[ObservationFlag, ...]:
    """Return what contaminates a tool's raw output, sorted; the question and ids only where they are known."""
    flags: list[ObservationFlag] = []
    if _PROTOCOL.search(text):
        flags.append("protocol-tags")
    if about is not None and holds_question(text, about.question):
        flags.append("question-text")
    if about is not None and any(_holds_id(text, name) for name in about.ids):
        flags.append("row-id")
    return tuple(flags)


def holds_question(text: str, question: str) -> bool:
    """Say whether a text has :data:`GRAM` successive words of a question, or all of a shorter one.

    Case, punctuation, line breaks, invisible characters and Unicode forms make no difference.
    """
    plain = _fold_text(text)
    # Few texts have every word of a run, and only those are split into words, which costs ten times as much.
    likely = [gram for gram in _list_grams(question) if all(word in plain for word in gram.split())]
    if not likely:
        return False
    spread = f" {' '.join(_WORD.findall(plain))} "
    return any(gram in spread for gram in likely)


def identify_rules(hosts: Sequence[str]) -> str:
    """Return the digest of these rules with some hosts."""
    return digest_value([VERSION, GRAM, LEAST_GRAM, LEAST_ID, sorted(hosts)])


def _holds_id(text: str, name: str) -> bool:
    if len(name) < LEAST_ID or name.casefold() not in text.casefold():
        return False
    return compile_phrase(name, re.IGNORECASE).search(text) is not None


@lru_cache(maxsize=256)
def _list_grams(question: str) -> tuple[str, ...]:
    marked = [
        (word, place % 2 == 1) for place, piece in enumerate(_QUOTED.split(question)) for word in _list_words(piece)
    ]
    if len(marked) < LEAST_GRAM:
        return ()
    size = min(GRAM, len(marked))
    runs = (marked[start : start + size] for start in range(len(marked) - size + 1))
    own = (run for run in runs if not all(quoted for _, quoted in run))
    return tuple(dict.fromkeys(f" {' '.join(word for word, _ in run)} " for run in own))


def _list_words(text: str) -> list[str]:
    return _WORD.findall(_fold_text(text))


def _fold_text(text: str) -> str:
    if not text.isascii():
        text = _UNSEEN.sub("", unicodedata.normalize("NFKC", text))
    return text.casefold()


def _list_hosts(url: str) -> set[str]:
    hosts: set[str] = set()
    address = url.strip()
    for _ in range(_ROUNDS):
        hosts |= _split_hosts(address.replace("\\", "/"))
        decoded = unquote(address)
        if decoded == address:
            return hosts
        address = decoded
    raise ValueError("percent-encoded too often")


def _split_hosts(address: str) -> set[str]:
    scheme = _SCHEME.match(address)
    parts = urlsplit(f"//{address[scheme.end() if scheme else 0 :]}")
    host = _normalise(parts.netloc)
    handed = "?".join((parts.path, parts.query, parts.fragment))
    hosts = {host, *(_normalise(found["host"]) for found in _EMBEDDED.finditer(handed))}
    # A reader takes an address without its scheme. A name at the very end is one that a page is about.
    hosts.update(_normalise(segment) for segment in parts.path.split("/")[:-1] if "." in segment)
    hosts.update(_normalise(value.partition("/")[0]) for value in re.split("[=&]", parts.query) if "." in value)
    if host.endswith(_TRANSLATED):
        hosts.add(_undo_translation(host))
    return hosts


@lru_cache(maxsize=16)
def _normalise_hosts(hosts: tuple[str, ...]) -> frozenset[str]:
    return frozenset(_normalise(host) for host in hosts)


def _normalise(netloc: str) -> str:
    host = netloc.rpartition("@")[2]
    if not host.startswith("["):
        host = host.partition(":")[0]
    host = _UNSEEN.sub("", unicodedata.normalize("NFKC", host.translate(_DOTS))).casefold().strip(" .")
    return ".".join(map(_encode_label, host.split(".")))


def _encode_label(label: str) -> str:
    if label.isascii():
        return label
    try:
        return label.encode("idna").decode()
    except UnicodeError:
        return label


def _undo_translation(host: str) -> str:
    label = host.removesuffix(_TRANSLATED)
    return label.replace("--", "\0").replace("-", ".").replace("\0", "-")


def _is_within(host: str, blocked: frozenset[str]) -> bool:
    return any(host == name or host.endswith(f".{name}") for name in blocked)
