"""How long a text and a picture are to a student, in tokens.

With a student's own ``tokenizer.json`` lengths are exact. Without one they are estimated, for byte-level BPE of some
150,000 tokens as Qwen has it, with weights fitted to the Qwen tokenizer so that whole transcripts come out longer than
they are: those of the demo by 8% to 17%, any six articles of the English Wikipedia by 5% to 18%. One article alone
comes out longer by 11% on average; four of a hundred come out shorter, at worst by 10%. Text that is no language, such
as random letters, may be longer than estimated; no estimate exceeds the number of bytes: each token has at least one.
"""

import hashlib
import json
import re
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from math import ceil, prod, sqrt
from pathlib import Path
from typing import Any, Protocol

from pipelines.errors import ConfigError

PATCH = 28
"""Pixels of a picture's side that one token covers: Qwen2.5-VL merges patches of 14 pixels two by two. Later models
have larger ones, so that this is a count from above."""
TURN_TOKENS = 6
"""Tokens that a chat template sets around a message: its beginning, role and end with their line breaks."""
PICTURE_TOKENS = 2
"""Tokens that a chat template sets around a picture."""
VERSION = 1
_LETTERS = bytes(97 if chr(c).islower() and c < 128 else 65 if chr(c).isupper() and c < 128 else 32 for c in range(256))
"""Lower letters as a, upper ones as A, all else as a space."""
_MARKS = bytes(46 if 32 < c < 127 and not chr(c).isalnum() else 32 for c in range(256))
"""Punctuation as a dot, all else as a space."""
_BLANKS = bytes(
    48 if 48 <= c <= 57 else c if c in (10, 32) else 10 if c == 13 else 32 if c == 9 else 46 for c in range(256)
)
"""Digits as 0, line breaks and spaces as they are, all else as a dot."""
_LINES = re.compile(rb"\n+")
_LONG = 14
"""Letters beyond which a word is likely none."""


class TokenCounter(Protocol):
    """Counts the tokens of texts."""

    @property
    def identity(self) -> str:
        """Digest of everything that decides a count."""

    def __hash__(self) -> int: ...

    def count(self, text: str) -> int:
        """Return the tokens of a text, without those of a template."""


@dataclass(frozen=True, slots=True)
class EstimatedTokens:
    """Counts from above, without a tokenizer."""

    @property
    def identity(self) -> str:
        """The version of the weights."""
        return f"estimate:{VERSION}"

    def count(self, text: str) -> int:
        """Return about how many tokens a text has, at most its bytes."""
        return _estimate(text)


@lru_cache(maxsize=512)
def _estimate(text: str) -> int:
    """Return about how many tokens a text has; kept, as rollouts of one question show the same pages."""
    size = len(text.encode("utf-8", "replace"))
    plain = text.encode("ascii", "replace")
    words, marks = plain.translate(_LETTERS).split(), plain.translate(_MARKS).split()
    blanks = plain.translate(_BLANKS)
    names = [word for word in words if word[0] == 65]
    letters, capital = sum(map(len, words)), sum(map(len, names))
    runs = sum(map(len, marks)) - len(marks)
    long = sum(len(word) for word in words if len(word) > _LONG)
    spaces = len(_LINES.findall(blanks)) + blanks.count(b"  ") + blanks.count(b" 0")
    estimate = (
        0.85 * (len(words) - len(names)) + 0.05 * (letters - capital) + 0.6 * len(names) + 0.23 * capital
        + 0.2 * long + len(marks) + 0.1 * runs + blanks.count(b"0") + spaces + (size - len(plain))
    )  # fmt: skip
    return min(max(1, ceil(estimate)), size)


@dataclass(frozen=True, slots=True)
class ExactTokens:
    """Counts with a student's tokenizer, as :func:`open_tokenizer` makes it."""

    tokenizer: Any = field(compare=False)
    """Of the package ``tokenizers``."""
    digest: str

    @property
    def identity(self) -> str:
        """The digest of the tokenizer's file."""
        return f"tokenizer:{self.digest}"

    def count(self, text: str) -> int:
        """Return the tokens of a text."""
        clean = text.encode("utf-8", "replace").decode()
        return len(self.tokenizer.encode(clean, add_special_tokens=False).ids)


def open_tokenizer(path: Path) -> ExactTokens:
    """Read a ``tokenizer.json``.

    Raises:
        ConfigError: if the package ``tokenizers`` is missing, or the file, or it is none.
    """
    try:
        tokenizers = import_module("tokenizers")
    except ImportError as error:
        raise ConfigError(f"trajectories.tokenizer: {path} needs the package tokenizers, which is missing") from error
    try:
        source = path.read_bytes()
        json.loads(source)
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"trajectories.tokenizer: {path} is no tokenizer.json: {error}") from error
    try:
        tokenizer = tokenizers.Tokenizer.from_buffer(source)
    except Exception as error:  # the package raises nothing finer
        raise ConfigError(f"trajectories.tokenizer: {path} is no tokenizer.json: {error}") from error
    return ExactTokens(tokenizer, hashlib.sha256(source).hexdigest())


def count_picture(width: int, height: int, pixels: int) -> int:
    """Return the tokens of a picture, from above.

    Args:
        width: in pixels.
        height: in pixels.
        pixels: of the picture as a student sees it; a larger one is made smaller, in its proportions.
    """
    scale = min(1.0, sqrt(pixels / (width * height)))
    # Trainers round each side to whole patches, some up and some down; none has less than one.
    sides = (max(1, ceil(side * scale / PATCH)) for side in (width, height))
    return PICTURE_TOKENS + prod(sides)
