"""Cue words of relations, learnt from the corpus (distant supervision, Mintz et al. 2009).

A sentence with an infobox value of its page is taken to state the value's relation. A word near the value is a cue when
it is frequent there and rare elsewhere. Words of the key and related words (``data/kin.toml``) are always cues.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from importlib import resources

from pipelines.corpus.store import Corpus, Fact
from pipelines.graph.facts import FactIndex, draw_nodes, sample_nodes, split_key, stem_key, type_value
from pipelines.graph.prose import Sentence, list_prose
from pipelines.names import fold_name

_EVERYWHERE_TEXT = """
a about after all also an and another any are as at be became become been before being between both but by can could did
do does during each for from had has have he her here him his how i if in into is it its later many may more most much
new no nor not now of often on once one only or other others our out over own said same several she since so some such
than that the their them then there these they this those three through to two under until up upon us usually very was
we well were what when where which while who whom whose why will with within would
"""
EVERYWHERE = frozenset(_EVERYWHERE_TEXT.split())
"""Words that mark no relation."""

WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_ENDINGS = ("ations", "ation", "ments", "ment", "ings", "ing", "ions", "ion", "ers", "er", "ors", "or", "ed", "es", "s",
            "ly", "at", "e")  # fmt: skip
_MIN_STEM = 4


@lru_cache(maxsize=65536)
def fold_word(word: str) -> str:
    """Return a word folded (:func:`pipelines.names.fold_name`), cached because words recur."""
    return fold_name(word)


@lru_cache(maxsize=65536)
def stem_word(word: str) -> str:
    """Return a folded word without its common endings: ``designed`` and ``designer`` give ``design``."""
    while True:
        ending = next((end for end in _ENDINGS if word.endswith(end) and len(word) - len(end) >= _MIN_STEM), "")
        if not ending:
            return word
        word = word[: -len(ending)]


def list_stems(text: str) -> list[str]:
    """Return the stems of a text's words in order, digits and stop words left out."""
    return [stem_word(word) for word in map(fold_word, WORD.findall(text)) if word and word not in EVERYWHERE]


_GENERIC_TEXT = """
date dates year years place places name names number num no type total main country region title note notes first last
current time location loc est estimate estimated m km cm mm ft mi kg lb ha sq metric imperial max min info text blank
data id code list other by of in on at to the and a ship
"""
GENERIC = frozenset(_GENERIC_TEXT.split())
"""Words of keys that do not name the relation."""


def find_kin(stem: str) -> tuple[str, ...]:
    """Return words that state what the word with this stem names."""
    return _read_kin().get(stem, ())


@lru_cache(maxsize=1)
def _read_kin() -> dict[str, tuple[str, ...]]:
    index: dict[str, tuple[str, ...]] = {}
    table = tomllib.loads(resources.files("pipelines.graph").joinpath("data/kin.toml").read_text("utf-8"))
    for head, kin in table.items():
        index[stem_word(head)] = (*index.get(stem_word(head), ()), *kin.split())
    return index


MAX_SUBJECTS = 300
"""Subjects of a relation that are read, a sample."""
MAX_BACKGROUND = 400
"""Pages that give the background frequency of words."""
MAX_SENTENCES = 60
"""Sentences read per page."""
REACH = 8
"""Words before and after a value that may be cues."""
LEAD_REACH = 2
"""The same in the first sentence, which says what the subject is."""
MIN_PAGES = 4
"""Pages with the word near the value, at least."""
MIN_SHARE = 0.06
"""Their share of the pages that mention the value, at least."""
MIN_LIFT = 4.0
"""Ratio of the frequencies near the value and elsewhere, at least."""


@dataclass(slots=True)
class CueTally:
    """Number of texts with each word."""

    words: Counter[str] = field(default_factory=Counter)
    texts: int = 0

    def add(self, words: Iterable[str]) -> None:
        """Count a text."""
        self.words.update(set(words))
        self.texts += 1

    def rate(self, word: str, doubt: int = 0) -> float:
        """Return the share of texts with a word, smoothed by ``doubt`` more texts with it."""
        return (self.words[word] + doubt) / (self.texts + doubt) if self.texts + doubt else 0.0


class CueIndex:
    """The cue words of every relation, learnt on first use of the relation."""

    def __init__(self, corpus: Corpus, facts: FactIndex) -> None:
        self._corpus = corpus
        self._facts = facts
        self._words: dict[str, frozenset[str]] = {}

    def words(self, relation: str) -> frozenset[str]:
        """Return the stems (:func:`stem_word`) of a relation's cue words."""
        stem = stem_key(relation)
        if stem not in self._words:
            self._words[stem] = name_cues(relation) | self._learn(stem)
        return self._words[stem]

    def states(self, relation: str, sentence: str) -> bool:
        """Say whether a plain sentence has a cue of a relation.

        A stop word counts where it is one of the key's kin: "is about" states a subject.
        """
        return not self.words(relation).isdisjoint(stem_word(fold_word(word)) for word in WORD.findall(sentence))

    def _learn(self, stem: str) -> frozenset[str]:
        near, beside = CueTally(), CueTally()
        for node in draw_nodes(self._facts.having(stem), MAX_SUBJECTS, "cues", stem):
            self._read_page(node, stem, near, beside)
        frequent = [word for word, count in near.words.items() if count >= max(MIN_PAGES, MIN_SHARE * near.texts)]
        others = (self._background, beside) if frequent else ()
        return frozenset(
            word for word in frequent if all(near.rate(word) >= MIN_LIFT * other.rate(word, 1) for other in others)
        )

    def _read_page(self, node: int, stem: str, near: "CueTally", beside: "CueTally") -> None:
        forms = {
            form for fact in self._corpus.facts(node) if stem_key(fact.key) == stem for form in self._list_forms(fact)
        }
        found: set[str] = set()
        for sentence in list_prose(self._corpus, node)[:MAX_SENTENCES]:
            window = _cut_window(sentence, forms)
            if window:
                found |= window
            else:
                beside.add(list_stems(sentence.text))
        if found:
            page = self._corpus.page(node)
            # Name and type of the subject stand near every value.
            own = set(list_stems(f"{page.title} {page.type} {page.lead_type}"))
            near.add({stem_word(word) for word in found if word not in EVERYWHERE and len(word) > 2} - own)

    def _list_forms(self, fact: Fact) -> Iterator[str]:
        yield fact.text
        if fact.target >= 0:
            yield from self._corpus.aliases(fact.target)
            return
        answer = type_value(fact.text, fact.iso, fact.key)
        if answer is not None:
            yield from (answer.surface, answer.value, *answer.aliases)

    @cached_property
    def _background(self) -> CueTally:
        tally = CueTally()
        for node in draw_nodes(sample_nodes(self._corpus, MAX_BACKGROUND * 50), MAX_BACKGROUND, "background"):
            for sentence in list_prose(self._corpus, node)[:MAX_SENTENCES]:
                tally.add(list_stems(sentence.text))
        return tally


def name_cues(relation: str) -> frozenset[str]:
    """Return the stems of a key's words and their kin; generic words count only if there are no others."""
    words = split_key(relation)
    telling = [word for word in words if word not in GENERIC and word not in EVERYWHERE] or list(words)
    return frozenset(stem for word in telling for stem in (stem_word(word), *map(stem_word, find_kin(stem_word(word)))))


def _cut_window(sentence: Sentence, forms: Iterable[str]) -> set[str]:
    words: set[str] = set()
    reach = LEAD_REACH if sentence.lead else REACH
    for form in forms:
        place = _find_whole(form, sentence.text)
        if place >= 0:
            before = WORD.findall(sentence.text[:place])[-reach:]
            after = WORD.findall(sentence.text[place + len(form) :])[:reach]
            words |= {fold_name(word) for word in (*before, *after) if word[0].islower()} or {""}
    return words


def _find_whole(form: str, text: str) -> int:
    place = text.find(form) if len(form) > 1 else -1
    while place >= 0:
        before, after = text[:place][-1:], text[place + len(form) :][:1]
        if not (before.isalnum() or after.isalnum()):
            return place
        place = text.find(form, place + 1)
    return -1
