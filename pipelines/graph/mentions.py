"""What an article says of a value that its infobox leaves open: nothing, that it is so, or something unclear.

Looked at are prose, tables and infobox, folded; a link counts as a name of its target. Not found is what the article
says in words that hold no form of the value: a quantity in another unit, a place by a town inside it, a paraphrase.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from pipelines.corpus.rendering import render_value
from pipelines.corpus.store import Corpus
from pipelines.corpus.wikitext import find_sentence, plain_text
from pipelines.graph.ground import Ground
from pipelines.graph.prose import list_prose, show_sentence
from pipelines.graph.values import Wanted, fold_names, holds_phrase, list_periods, read_wanted
from pipelines.names import fold_name
from pipelines.scoring.dates import Date, render_date
from schemas.proofs import Resolution

KEPT_PAGES = 1024
KEPT_FORMS = 1 << 14
LEAST_STEM = 4
"""Characters of a word that must be there: what follows may differ, so that ``granite`` finds ``granitic``."""
ENDING = 2
"""Characters at the end of a word that may differ."""
MAX_TEMPLATES = 1000
"""Small templates of a page that are rendered."""
_SMALL = re.compile(r"\{\{\s*(?!cit|sfn|harv|main|see|short|use |coord)[^{}\[\]]{1,200}\}\}", re.IGNORECASE)
"""Templates without another or a link inside, references and notes left out: dates and measures."""
_SEPARATOR = re.compile(r"(?<=\d)[.,](?=\d)")
_SPELLED = {".": "p", ",": "c"}
_ORDINALS = {
    11: "eleventh", 12: "twelfth", 13: "thirteenth", 14: "fourteenth", 15: "fifteenth", 16: "sixteenth",
    17: "seventeenth", 18: "eighteenth", 19: "nineteenth", 20: "twentieth", 21: "twenty first",
}  # fmt: skip
_NEVER = r"(?!)"


@dataclass(frozen=True, slots=True)
class Forms:
    """How a text may write a value, as patterns over folded text."""

    exact: re.Pattern[str]
    """Forms that mention the value wherever they stand."""
    coarse: re.Pattern[str]
    """Forms that may mean it where the sentence is about the relation: the century of a date."""


def find_object(ground: Ground, node: int, relation: str, object: int) -> Resolution:
    """Return what an article says of a relation to an entity, by a link or by any name."""
    linked = ground.corpus.graph.find_link(node, object)
    if linked >= 0 and ground.cues.states(relation, _show_around(ground.corpus, node, linked)):
        return "stated"
    found = _find_forms(ground, node, relation, _compile_names(fold_names(ground.corpus, object)))
    return "unclear" if linked >= 0 and found == "absent" else found


def find_literal(ground: Ground, node: int, relation: str, value: str) -> Resolution:
    """Return what an article says of a literal value, in any of its forms; of a date also by its year."""
    return _find_forms(ground, node, relation, _compile_value(relation, value))


def says_in_lead(corpus: Corpus, node: int, word: str) -> bool:
    """Say whether an article's first sentence holds a word: whoever "was a painter and sculptor" is both."""
    return any(holds_phrase(fold_name(sentence.text), fold_name(word)) for sentence in list_prose(corpus, node)[:1])


@lru_cache(maxsize=KEPT_PAGES)
def show_page(corpus: Corpus, node: int) -> str:
    """Return all that an article shows: sentences with their measures and dates, the rest, other templates, infobox."""
    sentences = " ; ".join(sentence.text for sentence in list_prose(corpus, node))
    text = corpus.text(node)
    shown = " ; ".join(f"{fact.text} ; {fact.iso}" for fact in corpus.facts(node))
    return f"{sentences} ; {plain_text(text)} ; {' ; '.join(_render_small(text))} ; {shown}"


def _render_small(text: str) -> Iterator[str]:
    """Yield what the small templates of a page show, also those in lists and tables; unknown ones show nothing."""
    for found in islice(_SMALL.finditer(text), MAX_TEMPLATES) if "{{" in text else ():
        rendered = render_value(found.group())
        if rendered is not None and rendered.text:
            yield rendered.text


@lru_cache(maxsize=KEPT_PAGES)
def fold_page(corpus: Corpus, node: int) -> str:
    """Return all that an article shows (:func:`show_page`), folded."""
    return fold_text(show_page(corpus, node))


def fold_text(text: str) -> str:
    """Fold a text and keep its numbers whole: folding alone would read 1204.50 as 1204 and 50."""
    return fold_name(_SEPARATOR.sub(lambda found: _SPELLED[found[0]], text))


def _find_forms(ground: Ground, node: int, relation: str, forms: Forms) -> Resolution:
    page = fold_page(ground.corpus, node)
    mentioned = forms.exact.search(page) is not None
    if not mentioned and forms.coarse.search(page) is None:
        return "absent"
    for sentence in list_prose(ground.corpus, node):
        folded = fold_text(sentence.text)
        if (forms.exact.search(folded) or forms.coarse.search(folded)) and ground.cues.states(relation, sentence.text):
            return "stated"
    return "unclear" if mentioned else "absent"


def _show_around(corpus: Corpus, node: int, position: int) -> str:
    text = corpus.text(node)
    start, end = find_sentence(text, position)
    return show_sentence(text[start:end])


@lru_cache(maxsize=KEPT_FORMS)
def _compile_names(names: frozenset[str]) -> Forms:
    return Forms(_compile(map(re.escape, sorted(names))), re.compile(_NEVER))


@lru_cache(maxsize=KEPT_FORMS)
def _compile_value(relation: str, value: str) -> Forms:
    wanted = read_wanted(relation, value)
    if wanted.years is not None:
        exact, coarse = _list_date_forms(wanted, value)
        return Forms(_compile(exact), _compile(coarse))
    answer = wanted.answer
    forms = {value} if answer is None else {value, answer.surface, answer.value, *answer.aliases}
    if answer is not None and answer.type == "number":
        return Forms(_compile(re.escape(fold_text(form)) for form in sorted(forms)), re.compile(_NEVER))
    return Forms(_compile(_loosen(fold_text(form)) for form in sorted(forms)), re.compile(_NEVER))


def _list_date_forms(wanted: Wanted, value: str) -> tuple[list[str], list[str]]:
    """Return patterns of the forms of a date or period: those that mention it, and coarser ones."""
    first, last = wanted.years or (0, 0)
    exact = [re.escape(fold_text(value)), *(rf"{year}s?" for year in range(first, last + 1))]
    periods = list_periods(Date(last))
    if wanted.date is not None:
        exact += [re.escape(fold_text(form)) for form in render_date(wanted.date)]
        exact += [re.escape(fold_text(render_date(Date(wanted.date.year))[0]))]
    century = (last - 1) // 100 + 1
    coarse = [re.escape(fold_text(period)) for period in periods]
    coarse += [rf"{century - 1}00s", *([f"{_ORDINALS[century]} century"] if century in _ORDINALS else [])]
    return exact, coarse


def _loosen(folded: str) -> str:
    """Return a pattern of a folded phrase whose words may end otherwise."""
    return " ".join(_loosen_word(word) for word in folded.split())


def _loosen_word(word: str) -> str:
    if not word.isalpha() or len(word) <= LEAST_STEM:
        return re.escape(word)
    return rf"{re.escape(word[: max(LEAST_STEM, len(word) - ENDING)])}\w*"


def _compile(forms: Iterable[str]) -> re.Pattern[str]:
    kept = [form for form in dict.fromkeys(forms) if form]
    return re.compile(rf"(?<!\w)(?:{'|'.join(kept)})(?!\w)" if kept else _NEVER)
