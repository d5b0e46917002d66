"""What is known of a picture without looking at it: where it stands, what its file is called, what Commons says.

============================  =======  ===========================================================
what                          points   why
============================  =======  ===========================================================
in the infobox                +0.45    editors chose it to show the subject
elsewhere in the article      +0.20    shows something that the article speaks of
found by a search             +0.10    its page holds the words
file named for the anchor     +0.30    the whole of one of its names, word by word
file has a word of its name   +0.10    a word of the title that is not ordinary
no other article leads        +0.05    a picture of one thing is not shown for another
``depicts`` the anchor        +0.35    somebody said so (P180)
``depicts`` others only       -0.50    somebody said something else
file named for another        -0.30    it begins with the title of another article, and no word of the anchor's follows
drawn or a part               -0.50    map, logo, flag, arms, signature, grave and the like in its name
============================  =======  ===========================================================

The sum is kept within 0..1. From 0.5 on a picture passes: an infobox picture with nothing against it, an article's
picture that is named for the anchor, a search result that Commons says depicts it.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from pipelines.corpus.records import CorpusImage
from pipelines.corpus.store import Corpus
from pipelines.corpus.titles import strip_qualifier
from pipelines.names import fold_name, is_common_word
from schemas.groundings import CandidateSource

VERSION = 1
"""Of the table."""
Named = Literal["anchor", "partly", "not", "another"]
"""What a file is named for."""
_SOURCES: dict[CandidateSource, float] = {"infobox": 0.45, "page": 0.20, "search": 0.10}
_NAMED: dict[Named, float] = {"anchor": 0.30, "partly": 0.10, "not": 0.0, "another": -0.30}
_DEPICTS = {True: 0.35, None: 0.0, False: -0.50}
_ONE_ARTICLE = 0.05
_NOT_IT = -0.50
_NOT_IT_WORDS = frozenset(
    "map maps karte carte mapa locator location logo logotype wordmark flag flagge drapeau bandera banner coat arms coa"
    " wappen blason blazon escudo crest emblem seal insignia badge icon signature autograph diagram chart graph plan"
    " scheme schema stamp coin banknote grave gravestone tombstone birthplace plaque".split()
)
_LONGEST_TITLE = 8
"""Words of a file name that are looked up as a title."""
_EXTENSION = re.compile(r"\.[A-Za-z0-9]{1,5}$")
_SHORTEST_WORD = 3
_PARTICLES = frozenset("a an and at by for from in of on or the to with".split())


@dataclass(frozen=True, slots=True)
class FileEvidence:
    """What speaks for and against a picture."""

    source: CandidateSource
    named: Named
    single: bool
    """Whether no article but the anchor's leads with it."""
    depicts: bool | None
    """None where Commons says nothing."""
    contrary: tuple[str, ...]
    """Words of the file name that speak of something other than a view of the anchor."""


def weigh_evidence(evidence: FileEvidence) -> float:
    """Return the points, 0..1, by the table of this module."""
    points = _SOURCES[evidence.source] + _NAMED[evidence.named] + _DEPICTS[evidence.depicts]
    points += _ONE_ARTICLE * evidence.single + (_NOT_IT if evidence.contrary else 0.0)
    return round(min(max(points, 0.0), 1.0), 2)


def explain_evidence(evidence: FileEvidence) -> str:
    """Return the same in words, for a reader."""
    parts = [f"source {evidence.source}", f"file named for {_describe_named(evidence.named)}"]
    parts += [] if evidence.single else ["leads other articles"]
    if evidence.depicts is not None:
        parts.append("depicts it" if evidence.depicts else "depicts others")
    parts += [f"file name says {', '.join(evidence.contrary)}"] if evidence.contrary else []
    return ", ".join(parts)


def gather_evidence(corpus: Corpus, node: int, image: CorpusImage, source: CandidateSource) -> FileEvidence:
    """Collect what is known of a candidate for an anchor's picture.

    Args:
        corpus: the open corpus.
        node: the anchor.
        image: the candidate's row.
        source: where the candidate comes from.
    """
    page = corpus.page(node)
    stem = _EXTENSION.sub("", image.file)
    names = fold_own_names(corpus, node)
    owned = {word for name in (*names, fold_name(page.title), fold_name(page.type)) for word in name.split()}
    contrary = [word for word in fold_name(stem).split() if word in _NOT_IT_WORDS and word not in owned]
    return FileEvidence(
        source=source,
        named=_find_named(corpus, node, stem, names),
        single=not set(image.title) - {page.title},
        depicts=page.qid in image.depicts if image.depicts and page.qid else None,
        contrary=tuple(dict.fromkeys(contrary)),
    )


@lru_cache(maxsize=1 << 14)
def fold_own_names(corpus: Corpus, node: int) -> frozenset[str]:
    """Return an entity's names, folded, its title without qualifier among them; not those that could be anything's."""
    given = (*corpus.aliases(node), strip_qualifier(corpus.page(node).title))
    names = {fold_name(name) for name in given}
    return frozenset(name for name in names if _is_told(name))


def _find_named(corpus: Corpus, node: int, stem: str, names: frozenset[str]) -> Named:
    folded = f" {fold_name(stem)} "
    held = max((name for name in names if f" {name} " in folded), key=len, default="")
    title = fold_name(strip_qualifier(corpus.page(node).title))
    own = {word for word in title.split() if _is_telling(word)}
    other, rest = _split_other_title(corpus, node, stem)
    # "Greenland Albedo Change" says where the albedo is; what comes first in a name is not always what is shown.
    if len(other) > len(held) and not own & set(rest.split()):
        return "another"
    if held:
        return "anchor"
    return "partly" if own & set(folded.split()) else "not"


def _split_other_title(corpus: Corpus, node: int, stem: str) -> tuple[str, str]:
    """Return the longest beginning of a file name that names another article, and the rest, folded.

    The first is empty where it names none, or the anchor.
    """
    words = stem.replace("_", " ").split()
    for count in range(min(len(words), _LONGEST_TITLE), 0, -1):
        name = " ".join(words[:count]).rstrip(",;")
        found = corpus.find(name)
        if found == node:
            break
        if found is not None and not corpus.page(found).is_disambiguation and _is_told(fold_name(name)):
            return fold_name(strip_qualifier(name)), fold_name(" ".join(words[count:]))
    return "", ""


def _is_told(name: str) -> bool:
    """Say whether a folded name tells its bearer: it has a word of its own, or two ordinary ones ("black sea")."""
    words = name.split()
    return any(map(_is_telling, words)) or sum(word not in _PARTICLES for word in words) > 1


def _is_telling(word: str) -> bool:
    """Say whether a folded word is a name's own: neither ordinary nor a number nor a letter or two."""
    return len(word) >= _SHORTEST_WORD and not word.isdigit() and not is_common_word(word)


def _describe_named(named: Named) -> str:
    return {"anchor": "it", "partly": "part of its name", "not": "nothing known", "another": "another article"}[named]
