"""Wordings of planted trajectory defects, in two halves; see :mod:`pipelines.bench.vocabulary`."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from pipelines.bench.vocabulary import Half, Vocabulary
from pipelines.names import fold_name

Say = Callable[[str], str]


def choose_half(words: Vocabulary) -> Half:
    """Return the half whose wordings go with a vocabulary; somebody else's file goes with the open ones."""
    return "held-out" if words.half == "held-out" else "open"


def _swap_words(text: str) -> str:
    return " ".join(reversed(text.split()))


def _sort_words(text: str) -> str:
    return " ".join(sorted(text.split(), key=str.casefold))


def _invert_name(text: str) -> str:
    first, _, last = text.rpartition(" ")
    return f"{last}, {first}" if first else last


GUESSES: Mapping[Half, tuple[str, ...]] = MappingProxyType(
    {
        "open": (
            "I think the answer is {said}.",
            "It must be {said}, but let me check.",
            "From memory, {said}.",
            "{said} comes to mind.",
        ),
        "held-out": (
            "(hunch: {said})",
            "My money is on “{said}”; a search will tell.",
            "If I were asked right now I would put down {said}!",
            "Working hypothesis = {said}",
            "Didn't I read '{said}' somewhere?",
        ),
    }
)
"""What one says who knows the answer, or believes so, before any tool has shown it."""
REQUESTS: Mapping[Half, tuple[Say, ...]] = MappingProxyType(
    {
        "open": (
            str,
            lambda name: f"who was {name}",
            lambda name: f"{name} biography",
            str.lower,
        ),
        "held-out": (
            _invert_name,
            str.upper,
            lambda name: f"{fold_name(name)} official site",
            lambda name: f'"{name}"\'s works -lyrics',
            lambda name: f"works by/about {name}: list",
        ),
    }
)
"""Queries that name somebody."""
AGAIN: Mapping[Half, tuple[Say, ...]] = MappingProxyType(
    {
        "open": (
            str,
            str.lower,
            _swap_words,
            lambda query: f"the {query}",
        ),
        "held-out": (
            lambda query: f'"{query}"',
            lambda query: f"  {query.upper()} ?",
            lambda query: f"what is it about {query}",
            lambda query: _sort_words(query).replace(" ", " / "),
            lambda query: fold_name(query),
        ),
    }
)
"""The same query again."""
NAME_CLAIMS: Mapping[Half, tuple[str, ...]] = MappingProxyType(
    {
        "open": (
            "It was restored by {name}.",
            "The page also mentions {name}.",
            "{name} had a hand in this.",
        ),
        "held-out": (
            "No wonder that {name} later spoke of it with such warmth.",
            "Compare the life of {name}, which ends in the same place.",
            "A pupil, one {name}, carried on.",
            "This squares with what {name}'s diaries say.",
        ),
    }
)
NUMBER_CLAIMS: Mapping[Half, tuple[str, ...]] = MappingProxyType(
    {
        "open": (
            "It is {number} metres long.",
            "There are {number} of them.",
            "Some {number} people live there.",
        ),
        "held-out": (
            "(cf. the {number} sheets in the archive)",
            "Upkeep ran to £{number} that winter.",
            "All told: {number} visitors.",
            "Catalogue entry no. {number} agrees.",
        ),
    }
)
"""What a last thought adds."""
ERRORS: Mapping[Half, tuple[str, ...]] = MappingProxyType(
    {"open": ("unknown-page",), "held-out": ("time-out", "forbidden-address", "no-text", "too-large")}
)
"""Classes of errors; a check must not know them by name."""
LOST: Mapping[Half, tuple[str, ...]] = MappingProxyType(
    {"open": ("img_9", "img_12"), "held-out": ("img_0", "img_01", "IMG_1", "image_1", "img_1.jpg", "img_-1", "1")}
)
"""Names of pictures that there are not."""
FILLINGS: Mapping[Half, tuple[str, ...]] = MappingProxyType(
    {
        "open": ("The older part of the building is seldom open, and its rooms are kept as they were left. ",),
        "held-out": (
            "河流在山谷中慢慢转弯旁边的石桥上有人正在等待夜里的渡船。",
            "4 8 1 5 9 2 6 3 7 0 ",
            "\N{HERB}\N{SNAIL}\N{CLOUD WITH RAIN}\N{OLD KEY} ",
            "aG9sZC1vdXQgcm93 dGhhdCBub2JvZHkgcmVhZHM= ",
        ),
    }
)
"""Text that makes a transcript long."""
