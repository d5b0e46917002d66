"""Words by which sentences state a relation, learnt from the corpus (distant supervision, Mintz et al. 2009).

Sentences that hold an infobox value of their page are taken to state its relation, all others not. A word near the
value is a cue when it is frequent there and rare elsewhere. Words of the key and their kin count in any corpus.
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
    """Return a word folded (:func:`pipelines.names.fold_name`); words come back, names do not."""
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
"""Words of keys that say what kind of value it is, not which."""


def find_kin(stem: str) -> tuple[str, ...]:
    """Return words that state what the word with this stem names."""
    return _index_kin().get(stem, ())


@lru_cache(maxsize=1)
def _index_kin() -> dict[str, tuple[str, ...]]:
    index: dict[str, tuple[str, ...]] = {}
    table = tomllib.loads(resources.files("pipelines.graph").joinpath("data/kin.toml").read_text("utf-8"))
    for head, kin in table.items():
        index[stem_word(head)] = (*index.get(stem_word(head), ()), *kin.split())
    return index


MAX_SUBJECTS = 300
"""Subjects of a relation that are read, drawn from all that show it."""
MAX_BACKGROUND = 400
"""Pages whose sentences say how frequent a word is anywhere."""
MAX_SENTENCES = 60
"""Sentences read of one page."""
REACH = 8
"""Words before and after a value that may be cues."""
LEAD_REACH = 2
"""The same in the first sentence of an article."""
MIN_PAGES = 4
"""Pages on which a word must stand near the value."""
MIN_SHARE = 0.06
"""Share of the pages that say the value at all."""
MIN_LIFT = 4.0
"""How much more frequent near the value than in sentences anywhere."""


@dataclass(slots=True)
class CueTally:
    """In how many texts each word stands."""

    words: Counter[str] = field(default_factory=Counter)
    texts: int = 0

    def add(self, words: Iterable[str]) -> None:
        """Count a text."""
        self.words.update(set(words))
        self.texts += 1

    def rate(self, word: str, doubt: int = 0) -> float:
        """Return the share of texts with a word, as if it had been seen ``doubt`` times more."""
        return (self.words[word] + doubt) / (self.texts + doubt) if self.texts + doubt else 0.0


class CueIndex:
    """The cue words of every relation, learnt when a relation is first asked for."""

    def __init__(self, corpus: Corpus, facts: FactIndex) -> None:
        self._corpus = corpus
        self._facts = facts
        self._words: dict[str, frozenset[str]] = {}

    def words(self, relation: str) -> frozenset[str]:
        """Return the stems (:func:`stem_word`) of a relation's cue words."""
        stem = stem_key(relation)
        if stem not in self._words:
            own = name_cues(relation)
            self._words[stem] = own | self._learn(stem)
        return self._words[stem]

    def states(self, relation: str, sentence: str) -> bool:
        """Say whether a plain sentence holds a cue of a relation."""
        return not self.words(relation).isdisjoint(list_stems(sentence))

    def _learn(self, stem: str) -> frozenset[str]:
        """Return the words frequent near the relation's values, and rare elsewhere on these pages and on others."""
        near, beside = CueTally(), CueTally()
        for node in draw_nodes(self._facts.having(stem), MAX_SUBJECTS, "cues", stem):
            self._read_page(node, stem, near, beside)
        frequent = [word for word, count in near.words.items() if count >= max(MIN_PAGES, MIN_SHARE * near.texts)]
        if not frequent:
            return frozenset()
        anywhere = self._background
        return frozenset(
            word
            for word in frequent
            if near.rate(word) >= MIN_LIFT * anywhere.rate(word, 1)
            and near.rate(word) >= MIN_LIFT * beside.rate(word, 1)
        )

    def _read_page(self, node: int, stem: str, near: "CueTally", beside: "CueTally") -> None:
        """Count a page's words near the relation's values once, and those of its other sentences by sentence."""
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
            # What the subject is called and what it is are said near every value.
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
        """Words by sentence over a sample of the corpus."""
        tally = CueTally()
        for node in draw_nodes(sample_nodes(self._corpus, MAX_BACKGROUND * 50), MAX_BACKGROUND, "background"):
            for sentence in list_prose(self._corpus, node)[:MAX_SENTENCES]:
                tally.add(list_stems(sentence.text))
        return tally


def name_cues(relation: str) -> frozenset[str]:
    """Return the stems of a key's own words and their kin; of generic words only where there are no others."""
    words = split_key(relation)
    telling = [word for word in words if word not in GENERIC and word not in EVERYWHERE] or list(words)
    return frozenset(stem for word in telling for stem in (stem_word(word), *map(stem_word, find_kin(stem_word(word)))))


def _cut_window(sentence: Sentence, forms: Iterable[str]) -> set[str]:
    """Return the lower-case words around each form in a sentence, folded; empty where none stands in it."""
    words: set[str] = set()
    # A lead sentence says what its subject is: of that only the nearest words may be about the value.
    reach = LEAD_REACH if sentence.lead else REACH
    for form in forms:
        place = _find_whole(form, sentence.text)
        if place >= 0:
            before = WORD.findall(sentence.text[:place])[-reach:]
            after = WORD.findall(sentence.text[place + len(form) :])[:reach]
            words |= {fold_name(word) for word in (*before, *after) if word[0].islower()} or {""}
    return words


def _find_whole(form: str, text: str) -> int:
    """Return where a form stands in a text as whole words, -1 where it does not."""
    place = text.find(form) if len(form) > 1 else -1
    while place >= 0:
        before, after = text[:place][-1:], text[place + len(form) :][:1]
        if not (before.isalnum() or after.isalnum()):
            return place
        place = text.find(form, place + 1)
    return -1
