"""What of a page fits a goal, by words alone: the same for the same page and goal, in time linear in the page."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from math import log

from pipelines.agent.layout import cut_text

VERSION = 1
"""Of the choice: part of what decides an observation."""
PASSAGE = 800
"""Characters of a passage at most; a longer paragraph is cut."""
GAP = "[…]"
"""Line between what fits the goal and the page from its beginning."""
_WORD = re.compile(r"[^\W_]+")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[^\Wa-z_])|\n+")
_LEAST_WORD = 3
"""Letters of a word that counts; digits always do."""


def choose_passages(text: str, goal: str, limit: int) -> str:
    """Return at most ``limit`` characters of a page: what fits the goal first, then the page from its beginning.

    A page within the limit comes back as it is, and so does the beginning of one that nothing on fits the goal.
    """
    if len(text) <= limit:
        return text
    passages = _cut_passages(text)
    ranked = _rank(passages, goal)
    chosen, left = [], limit // 2
    for place in ranked:
        if len(passages[place]) + 2 > left:
            break
        chosen.append(place)
        left -= len(passages[place]) + 2
    if not chosen:
        return cut_text(text, limit)
    taken = frozenset(chosen)
    fitting = "\n\n".join(passages[place] for place in chosen)
    rest = "\n\n".join(passage for place, passage in enumerate(passages) if place not in taken)
    return cut_text(f"{fitting}\n\n{GAP}\n\n{rest}", limit)


def choose_sentences(text: str, goal: str, count: int) -> tuple[str, ...]:
    """Return at most ``count`` sentences or lines of a page that fit a goal, in their order.

    Where none does, they are the first.
    """
    sentences = [" ".join(part.split()) for part in _SENTENCE.split(text) if part.strip()]
    ranked = _rank(sentences, goal)[:count] or range(min(count, len(sentences)))
    return tuple(sentences[place] for place in sorted(ranked))


def _cut_passages(text: str) -> list[str]:
    """Return the paragraphs, long ones in pieces that end with a sentence, a line or at least a word."""
    passages = []
    for paragraph in text.split("\n\n"):
        start = 0
        while start < len(paragraph):
            end = start + PASSAGE
            if end < len(paragraph):
                least = start + PASSAGE // 4
                edges = (paragraph.rfind(mark, least, end) for mark in ("\n", ". ", " "))
                end = next((edge + 1 for edge in edges if edge > 0), end)
            passages.append(paragraph[start:end].strip())
            start = end
    return [passage for passage in passages if passage]


def _rank(parts: Sequence[str], goal: str) -> list[int]:
    """Return the places of parts that share a word with the goal, best first, equals in their order.

    A word counts the more the fewer parts have it, and not at all where all have it.
    """
    wanted = frozenset(list_words(goal))
    shared = [wanted.intersection(list_words(part)) for part in parts]
    frequency = Counter(word for words in shared for word in words)
    weights = {word: log((len(parts) + 0.5) / (count + 0.5)) for word, count in frequency.items()}
    scores = [sum(weights[word] for word in sorted(words)) for words in shared]
    return sorted((place for place, score in enumerate(scores) if score > 0.0), key=lambda place: -scores[place])


def list_words(text: str) -> Iterable[str]:
    """Return the words of a text that say something, in lower case: of three letters at least, or numbers."""
    return (word for word in _WORD.findall(text.casefold()) if len(word) >= _LEAST_WORD or word.isdigit())
