"""What the pages of the documentation hold between fences: commands, queries, configurations, programs, in order."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "data_cards" / "docs"
FENCE = re.compile(r'^```(?P<language>\w+)(?: title="(?P<title>[^"]+)")?[^\n]*\n(?P<text>.*?)^```$', re.M | re.S)
ANY_FENCE = re.compile(r"^ *```", re.M)
ENDS = re.compile(r"<!-- exit (\d) -->\n$")
RUN = ("console", "bash", "sql", "toml", "python")
PACKAGE = "pyproject.toml"
"""Name of a block that is no configuration: a package's own file."""
SHOWN = ("text", "json")
"""Outputs and excerpts: nobody runs them."""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page; ``code`` is the exit code that its last command ends with."""

    page: str
    language: str
    title: str
    text: str
    line: int
    code: int = 0

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Command:
    """A line to type: its words, without comments; ``code`` is what it ends with."""

    words: tuple[str, ...]
    place: str
    code: int = 0

    @property
    def text(self) -> str:
        return shlex.join(self.words)


def list_pages() -> list[Path]:
    """Return README and the written pages."""
    return [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]


def read_blocks(path: Path) -> list[Block]:
    """Return a page's blocks in order; an indented fence or one without a language is refused: nobody would run it."""
    text = path.read_text("utf-8")
    blocks = []
    for found in FENCE.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        before = ENDS.search(text[: found.start()])
        code = int(before[1]) if before else 0
        blocks.append(Block(path.name, found["language"], found["title"] or "", found["text"], line, code))
    assert len(ANY_FENCE.findall(text)) == 2 * len(blocks), f"{path.name}: a fence without a language, or indented"
    strange = {block.language for block in blocks} - {*RUN, *SHOWN}
    assert not strange, f"{path.name}: blocks of {strange}"
    return blocks


def read_commands(block: Block) -> Iterator[Command]:
    """Yield a block's commands; of a variable that is set the value is no command."""
    lines = re.sub(r"\\\n\s*", "", block.text).splitlines()
    words = [tuple(shlex.split(line, comments=True)) for line in lines]
    commands = [Command(each, block.place) for each in words if each]
    yield from (*commands[:-1], *(replace(last, code=block.code) for last in commands[-1:]))


def list_commands(path: Path) -> list[Command]:
    """Return all commands of a page."""
    return [
        command
        for block in read_blocks(path)
        if block.language in ("console", "bash")
        for command in read_commands(block)
    ]
