"""How search hits and pages are laid out in an observation, and how to read them back."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

HIT = re.compile(r"^\[\d+\] (?P<title>.*)\nURL: (?P<url>\S+)\n(?P<snippet>.*)$", re.MULTILINE)
PAGE = re.compile(r"\ATitle: (?P<title>[^\n]*)\nURL: (?P<url>\S+)\n\n(?P<text>.*)\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Shown:
    """A hit or a page as an observation shows it."""

    url: str
    title: str
    text: str


def render_hits(hits: Sequence[Shown], snippet_limit: int) -> str:
    """Return numbered hits of three lines each: title, address, snippet.

    Args:
        hits: best first.
        snippet_limit: characters kept of each snippet, cut at a space.
    """
    blocks = []
    for number, hit in enumerate(hits, start=1):
        snippet = cut_text(_flatten(hit.text), snippet_limit) or "(no text)"
        blocks.append(f"[{number}] {_flatten(hit.title)}\nURL: {_flatten(hit.url)}\n{snippet}")
    return "\n\n".join(blocks)


def read_hits(text: str) -> tuple[Shown, ...]:
    """Return the hits that an observation shows, in order; none when it shows none."""
    return tuple(Shown(found["url"], found["title"], found["snippet"]) for found in HIT.finditer(text))


def render_page(page: Shown, limit: int) -> str:
    """Return a page: title, address, an empty line, and at most ``limit`` characters of text."""
    return f"Title: {_flatten(page.title)}\nURL: {_flatten(page.url)}\n\n{cut_text(page.text, limit)}"


def read_page(text: str) -> Shown | None:
    """Return the page that an observation shows, or None when it shows something else."""
    found = PAGE.match(text)
    return None if found is None else Shown(found["url"], found["title"], found["text"])


def cut_text(text: str, limit: int) -> str:
    """Return text of at most ``limit`` characters; longer text is cut at white space and ends in an ellipsis."""
    if len(text) <= limit:
        return text
    kept = text[: limit - 1]
    space = max(kept.rfind(" "), kept.rfind("\n"))
    return (kept[:space] if space > limit // 2 else kept).rstrip() + "…"


def _flatten(text: str) -> str:
    return " ".join(text.split())
