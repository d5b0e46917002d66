"""How search hits, pages and text in pictures are laid out in an observation, and how to read the former back."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.backends.protocols import TextBlock

HIT = re.compile(r"^\[\d+\] (?P<title>.*)\nURL: (?P<url>\S+)\n(?P<snippet>.*)$", re.MULTILINE)
PAGE = re.compile(r"\ATitle: (?P<title>[^\n]*)\nURL: (?P<url>\S+)\n\n(?P<text>.*)\Z", re.DOTALL)

LONGEST_TITLE = 300


@dataclass(frozen=True, slots=True)
class Shown:
    """A hit or a page as an observation shows it."""

    url: str
    title: str
    text: str
    image: str = ""
    """Name of the picture that is shown with a hit, if one is."""


def render_hits(hits: Sequence[Shown], snippet_limit: int) -> str:
    """Return numbered hits of three lines each: title, address, snippet; a fourth names the picture of a hit.

    Args:
        hits: best first.
        snippet_limit: characters kept of each snippet, cut at a space.
    """
    blocks = []
    for number, hit in enumerate(hits, start=1):
        snippet = cut_text(_flatten(hit.text), snippet_limit) or "(no text)"
        picture = f"\nPicture: {hit.image}" if hit.image else ""
        blocks.append(f"[{number}] {_name(hit.title)}\nURL: {_flatten(hit.url)}\n{snippet}{picture}")
    return "\n\n".join(blocks)


def read_hits(text: str) -> tuple[Shown, ...]:
    """Return the hits that an observation shows, in order; none when it shows none."""
    return tuple(Shown(found["url"], found["title"], found["snippet"]) for found in HIT.finditer(text))


def render_page(page: Shown, limit: int) -> str:
    """Return a page: title, address, an empty line, and at most ``limit`` characters of text."""
    return f"Title: {_name(page.title)}\nURL: {_flatten(page.url)}\n\n{cut_text(page.text, limit)}"


def read_page(text: str) -> Shown | None:
    """Return the page that an observation shows, or None when it shows something else."""
    found = PAGE.match(text)
    return None if found is None else Shown(found["url"], found["title"], found["text"])


def render_blocks(blocks: Sequence[TextBlock], size: tuple[int, int], limit: int) -> str:
    """Return the text read in a picture, a line a block, at most ``limit`` characters of it; empty without a block.

    Args:
        blocks: in reading order.
        size: width and height of the picture in pixels; boxes are shown in thousandths of it, as crop takes them.
        limit: characters.
    """
    lines = []
    for block in blocks:
        sides = (size[0], size[1], size[0], size[1])
        box = [min(1000, max(0, round(1000 * edge / side))) for edge, side in zip(block.box, sides, strict=True)]
        lines.append(f"{_flatten(block.label)} {box} ({block.confidence:.2f}): {_flatten(block.text)}")
    return cut_text("\n".join(lines), limit)


def cut_text(text: str, limit: int) -> str:
    """Return text of at most ``limit`` characters; longer text is cut at white space and ends in an ellipsis."""
    if len(text) <= limit:
        return text
    kept = text[: limit - 1]
    space = max(kept.rfind(" "), kept.rfind("\n"))
    return (kept[:space] if space > limit // 2 else kept).rstrip() + "…"


def _name(title: str) -> str:
    return cut_text(_flatten(title), LONGEST_TITLE)


def _flatten(text: str) -> str:
    return " ".join(text.split())
