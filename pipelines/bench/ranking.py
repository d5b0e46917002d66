"""A small BM25 of the bench's own: what one text search finds, without the index that the check asks."""

import math
import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

from pipelines.corpus.infobox import read_infobox
from pipelines.corpus.passages import split_passages
from pipelines.corpus.readable import render_article
from pipelines.corpus.store import Corpus
from pipelines.names import fold_name

K1, B = 1.2, 0.75
TITLE_WEIGHT = 2
ARTICLES_A_RANK = 100
"""Articles of a corpus for each place of a search that is looked at: a small corpus is searched less deep."""
CLEARLY = 3
"""How many times further down than the limit the page of a clean twin's answer must stand."""
_WORD = re.compile(r"\w+")
_COMMON = frozenset(
    """
    a an and are as at be but by did do does for from had has have he her his how in is it its of on or she that the
    their they this to was were what when where which who whom whose why will with
    """.split()
)


@dataclass(frozen=True, slots=True)
class _Bag:
    """A passage as counted words; those of the title count double."""

    node: int
    words: Counter[str]
    length: int


def rank_by_words(corpus: Corpus, query: str, node: int, text: str) -> int:
    """Return the place of an article among those found by the words of a query, 1 for the first.

    Args:
        corpus: all other articles.
        query: any words.
        node: the article that is looked for.
        text: its wikitext, in place of the corpus's.
    """
    bags = [*(bag for bag in _list_bags(corpus) if bag.node != node), *_cut(node, corpus.page(node).title, text)]
    wanted = set(_split(query)) - _COMMON
    frequency = {word: sum(word in bag.words for bag in bags) for word in wanted}
    mean = sum(bag.length for bag in bags) / len(bags)
    best: dict[int, float] = {}
    for bag in bags:
        score = _score(bag, frequency, len(bags), mean)
        best[bag.node] = max(score, best.get(bag.node, 0.0))
    own = best[node]
    return 1 + sum(score > own for score in best.values()) if own > 0 else len(best)


def is_far(corpus: Corpus, query: str, node: int, text: str, rank: int) -> bool:
    """Say whether an article is nowhere near those that a search for some words finds.

    Args:
        corpus: all other articles.
        query: any words.
        node: the article that must not be found.
        text: its wikitext, in place of the corpus's.
        rank: how many results may not hold it; 0 looks for nothing.
    """
    limit = max(1, min(rank, len(corpus.article_nodes()) // ARTICLES_A_RANK))
    return not rank or rank_by_words(corpus, query, node, text) > limit * CLEARLY


def _score(bag: _Bag, frequency: dict[str, int], count: int, mean: float) -> float:
    score = 0.0
    for word, pages in frequency.items():
        found = bag.words[word]
        if found:
            weight = math.log(1 + (count - pages + 0.5) / (pages + 0.5))
            score += weight * found * (K1 + 1) / (found + K1 * (1 - B + B * bag.length / mean))
    return score


@lru_cache(maxsize=16)
def _list_bags(corpus: Corpus) -> tuple[_Bag, ...]:
    return tuple(
        bag for node in corpus.article_nodes() for bag in _cut(node, corpus.page(node).title, corpus.text(node))
    )


def _cut(node: int, title: str, text: str) -> list[_Bag]:
    head = _split(title) * TITLE_WEIGHT
    bags = []
    for passage in split_passages(render_article(text, read_infobox(text))):
        words = _split(passage)
        bags.append(_Bag(node, Counter((*head, *words)), len(head) + len(words)))
    return bags


def _split(text: str) -> list[str]:
    return [fold_name(word) for word in _WORD.findall(text.lower())]
