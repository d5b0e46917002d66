"""A rollout as its checks read it: each step's words once, and which pages it showed.

Texts are kept folded, as words between single spaces with one before and after, so that a name is found in them as
whole words by plain containment, whatever its case, accents and punctuation.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from pipelines.corpus.titles import strip_qualifier
from pipelines.names import fold_name, is_common_word
from schemas.rollouts import Rollout, Step

_PAGE, _PAGES = 300, 512
"""Characters from which a text is kept folded, and how many are: rollouts of one question show the same pages."""
BARE_LETTERS = 3
"""Letters of the shortest word that stands for a name by itself."""


@dataclass(frozen=True, slots=True)
class Sight:
    """A page as a step showed it: opened, or a search result with its snippet."""

    url: str
    title: str
    text: str
    """As shown."""
    words: str
    """Title and text, folded."""
    opened: bool


@dataclass(frozen=True, slots=True)
class Leg:
    """One step of a rollout."""

    step: Step
    problem: str
    """Why its reply is not the turn that the step says; empty if it is."""
    answer: str
    """What its reply answers; empty for a call."""
    arguments: Mapping[str, object] = field(default_factory=dict)
    thought: str = " "
    """Folded."""
    used: str = " "
    """What its call says: query, goal, address without its percent-encoding; folded."""
    seen: str = " "
    """What came back, folded; blank unless the call went well."""
    told: str = ""
    """What came back, of the same length, but for what says nothing of the world: the numbers of search results,
    addresses, places in a picture, and all that is said of a picture that was made. Empty unless the call went well."""
    sights: tuple[Sight, ...] = ()
    flags: tuple[str, ...] = ()
    """What contaminates it, read anew."""

    @property
    def shown(self) -> str:
        """The observation's text as it came; empty unless the call went well."""
        seen = self.step.observation
        return seen.text if seen is not None and seen.ok else ""

    @property
    def failed(self) -> bool:
        """Whether it was answered with an error; a turn that is none counts."""
        return self.step.observation is not None and not self.step.observation.ok


@dataclass(frozen=True, slots=True)
class Trail:
    """A rollout and its steps."""

    rollout: Rollout
    question: str
    """Folded."""
    legs: tuple[Leg, ...]

    @property
    def answered(self) -> bool:
        """Whether it ends with an answer."""
        return self.rollout.stop_reason == "answered" and bool(self.legs)

    @property
    def calls(self) -> tuple[Leg, ...]:
        """The steps that called a tool."""
        return tuple(leg for leg in self.legs if leg.step.tool)


@dataclass(frozen=True, slots=True)
class NameWords:
    """What a title is found by."""

    whole: str
    """Folded, without a closing qualifier."""
    telling: tuple[str, ...]
    """Its words that are more than words of the language; empty where there is none."""


def fold_words(text: str) -> str:
    """Return a text folded, with a space before and after; of blank text a space."""
    return _fold_page(text) if len(text) >= _PAGE else _fold_text(text)


@lru_cache(maxsize=_PAGES)
def _fold_page(text: str) -> str:
    return _fold_text(text)


def _fold_text(text: str) -> str:
    if not text.isascii():
        # Of a page few words have letters beyond ASCII, and these again and again.
        text = " ".join(word if word.isascii() else _fold_word(word) for word in text.split())
    folded = fold_name(text) if text.strip() else ""
    return f" {folded} " if folded else " "


@lru_cache(maxsize=65536)
def _fold_word(word: str) -> str:
    folded = fold_name(word)
    # Marks alone keep what they are, and a lone one such as an ellipsis would make the whole text slow to fold.
    return folded if any(map(str.isalnum, folded)) else ""


@lru_cache(maxsize=8192)
def read_title(title: str) -> NameWords:
    """Return what a page's title is found by."""
    whole = fold_words(strip_qualifier(title))
    words = whole.split()
    telling = (f" {word} " for word in words if len(word) >= BARE_LETTERS and not is_common_word(word))
    return NameWords(whole, tuple(dict.fromkeys(telling)))


def names(words: str, title: str) -> bool:
    """Say whether folded words name a page: by its whole title, or by all words that tell it from others.

    ``Tolland's birthplace`` names no ``Mira Tolland``; ``the Kelm architect`` names the ``Kelm Bridge``.
    """
    read = read_title(title)
    return (bool(read.whole.strip()) and read.whole in words) or (
        bool(read.telling) and all(word in words for word in read.telling)
    )
