"""Sentences that state a relation, taken from the wiki's own prose: what an infobox leaves out is said so."""

import re
import tomllib
from collections import Counter, defaultdict
from functools import lru_cache
from importlib import resources
from random import Random

from pipelines.bench.vocabulary import Vocabulary
from pipelines.corpus.store import Corpus

KEPT = 16
"""Corpora whose sentences are kept."""
OWN = 0.5
"""Share of its greatest frequency that a sentence must have among the values of a relation to be of it."""
_REFERENCE = re.compile(r"<ref[^>/]*/>|<ref.*?</ref>", re.DOTALL)
_SENTENCE = re.compile(r"[^\n.!?]*\[\[[^\n]*?[.!?](?=\s|$)")


def link(corpus: Corpus, node: int) -> str:
    """Return a link to an article, as prose has it."""
    title = corpus.page(node).title
    shown = title.partition(" (")[0]
    return f"[[{title}]]" if shown == title else f"[[{title}|{shown}]]"


def draw_sentence(kind: str, words: Vocabulary, rng: Random) -> str:
    """Return a sentence with blanks of a kind of ``data/wiki.toml``; added vocabularies take the held-out ones."""
    return rng.choice(_read_sentences()["open" if words.half == "open" else "held-out"][kind])


@lru_cache(maxsize=1)
def _read_sentences() -> dict[str, dict[str, list[str]]]:
    return tomllib.loads(resources.files("pipelines.bench").joinpath("data/wiki.toml").read_text("utf-8"))


def state_fact(corpus: Corpus, relation: str, subject: str, target: int, rng: Random) -> str | None:
    """Return a sentence that says a relation of a new subject, worded like one of the wiki; None when it has none."""
    frames = find_statements(corpus, relation)
    if not frames:
        return None
    said = rng.choice(frames).format(subject=subject, object=link(corpus, target))
    return said[:1].upper() + said[1:]


def find_statements(corpus: Corpus, relation: str) -> tuple[str, ...]:
    """Return sentences that hold a link to the value of a field and no other link, subject and object blanked.

    Who studied and worked at one place is said to have worked there on a page whose infobox shows the studies alone:
    a sentence is of the relations among whose values it is most frequent.
    """
    frames, pages = _count_frames(corpus)
    shares = {frame: count / pages[relation] for frame, count in frames.get(relation, {}).items()}
    return tuple(
        frame
        for frame, share in shares.items()
        if all(share >= OWN * other[frame] / pages[key] for key, other in frames.items() if frame in other)
    )


@lru_cache(maxsize=KEPT)
def _count_frames(corpus: Corpus) -> tuple[dict[str, Counter[str]], Counter[str]]:
    """Return how often each sentence stands on pages with a relation, and the number of these pages."""
    frames: dict[str, Counter[str]] = defaultdict(Counter)
    pages: Counter[str] = Counter()
    for node in corpus.article_nodes():
        for fact in corpus.facts(node):
            if fact.target >= 0 and fact.value_count == 1:
                pages[fact.key] += 1
                frame = _find_frame(corpus, node, fact.target)
                if frame is not None:
                    frames[fact.key][frame] += 1
    return frames, pages


def _find_frame(corpus: Corpus, node: int, target: int) -> str | None:
    """Return the sentence of a page that links to a node; the lead is left out, which says what the subject is."""
    text, page = corpus.text(node), corpus.page(node)
    body = _REFERENCE.sub("", text[text.find("\n== ") :] if "\n== " in text else "")
    shown, name = link(corpus, target), page.title.partition(" (")[0]
    nouns = "|".join(re.escape(noun) for noun in {page.type, page.lead_type, page.lead_type.rpartition(" ")[2]} if noun)
    subject = re.compile(rf"\b[Tt]he (?:{nouns or name})\b|\b{re.escape(name)}\b|\b{re.escape(name.split()[-1])}\b")
    for match in _SENTENCE.finditer(body):
        sentence = match.group().strip()
        if sentence.count("[[") != 1 or shown not in sentence or "{" in sentence or "}" in sentence:
            continue
        frame, count = subject.subn("{subject}", sentence.replace(shown, "{object}"), count=1)
        if count and not _is_passing(sentence):
            return frame
    return None


def _is_passing(sentence: str) -> bool:
    """Say whether a sentence names things side by side instead of saying one of the other."""
    marks = (
        "compare",
        "together with",
        "next to",
        "beside",
        "as well as",
        "against",
        "in one chapter",
        "joins",
        "diary",
    )
    return any(mark in sentence for mark in (*marks, "correspondence", "admired", "almanac"))
