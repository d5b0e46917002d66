"""Ways to answer with fewer hops: an earlier page, a shorter link path, one search, or a guess (research: S4, S7)."""

import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from functools import lru_cache

from pipelines.checks.endings import Probe
from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.corpus.store import Corpus
from pipelines.graph.facts import fold_names
from pipelines.graph.prose import list_prose
from pipelines.graph.query import Indexes, find_shortcut
from pipelines.graph.salience import is_generic
from pipelines.graph.statements import fold_page, fold_text, show_page
from pipelines.graph.values import (
    KNOWN_UNITS,
    Date,
    Number,
    Spot,
    compare_measures,
    find_dates,
    find_measures,
    find_spelled_numbers,
    parse_date,
)
from pipelines.names import fold_name
from schemas.proofs import Answer

KEPT_PAGES = 1024
LONGEST_SEARCH = 4
"""Links that a shorter path is looked for along: longer paths are held to no more than this. It is the longest path of
the published recipes that walk, and the frontier of one more link would be most of a large wiki."""

LEAST_COMMON = 40
COMMON_SHARE = 100
"""Words are common if more than one of so many articles holds them."""
PASSAGES_A_PAGE = 10
_LONG_NUMBER = re.compile(r"\d{3}")
_CAPITALISED = re.compile(r"\b[^\W\d_a-z][^\W\d_]+")
LARGEST_COUNT = 12
"""Larger numbers that a page spells are the answer, whatever they count."""
_WORD = re.compile(r"[a-z]+")
LEAST_BACK = 2
"""Hops from which a link back from the answer node to the anchor is a shorter path; one hop may be stated there."""


def check_path_length(corpus: Corpus, nodes: Sequence[int], hub_in_degree: int) -> CheckResult:
    """FAIL when links lead from anchor to answer node in fewer than h - 1 steps, hubs left out, or straight back.

    One step fewer is let pass: the answer check on earlier pages covers it (research: S2 with S3). Of two hops that
    lets a direct link pass, too. Of longer paths only the first ``LONGEST_SEARCH`` - 1 steps are searched: with more
    hops the path must not be shorter than that. A page that links back to the anchor is found by what links there.
    """
    hops = min(len(nodes) - 1, LONGEST_SEARCH)
    length = find_shortcut(corpus, (*[nodes[0]] * hops, nodes[-1]), hub_in_degree)
    if length < hops - 1:
        return CheckResult("FAIL", "shorter-path", f"{length} links instead of {hops}")
    if hops >= LEAST_BACK and corpus.graph.find_link(nodes[-1], nodes[0]) >= 0:
        return CheckResult("FAIL", "shorter-path", f"{corpus.page(nodes[-1]).title} links back to the anchor")
    return PASSED


def check_earlier_pages(corpus: Corpus, nodes: Sequence[int], answer: Answer, article: int = -1) -> CheckResult:
    """FAIL when a page before the answer node's says the answer: prose, infobox, tables, and templates as they show.

    So it does when it links to the article that the answer is the name of, or is that article itself.

    Looked for are the answer's forms as whole words; of a date also other writings of it and days within it; of a
    number also words, and measures in other units that are the same as written (``compare_measures``). Words that very
    many articles hold ("Greek") say the answer only in a sentence that names the answer node; the name of an article of
    its own says it anywhere, as a link to that article does.
    """
    forms = {fold_text(form) for form in (answer.surface, answer.value, *answer.aliases)} - {""}
    pattern = _compile_words(forms)
    worded = answer.type in ("name", "string") and not _has_article(corpus, answer)
    common = worded and _is_common(corpus, answer.surface)
    names = _compile_words(name for name in fold_names(corpus, nodes[-1]) if not pattern.search(name))
    for node in nodes[:-1]:
        if article >= 0 and (node == article or corpus.graph.find_link(node, article) >= 0):
            detail = f"{corpus.page(node).title} leads to {corpus.page(article).title}"
            return CheckResult("FAIL", "answer-on-earlier-page", detail)
        texts = (
            (text for text in _fold_sentences(corpus, node) if names.search(text))
            if common
            else (fold_page(corpus, node),)
        )
        found = next(filter(None, map(pattern.search, texts)), None)
        said = found[0] if found is not None else next(_find_values(corpus, node, answer), "")
        if said:
            return CheckResult("FAIL", "answer-on-earlier-page", f"{said!r} on {corpus.page(node).title}")
    return PASSED


def _compile_words(forms: Iterable[str]) -> re.Pattern[str]:
    return re.compile(r"(?<!\w)(?:" + ("|".join(re.escape(form) for form in sorted(forms)) or "(?!)") + r")(?!\w)")


@lru_cache(maxsize=KEPT_PAGES)
def _fold_sentences(corpus: Corpus, node: int) -> tuple[str, ...]:
    return tuple(fold_text(sentence.text) for sentence in list_prose(corpus, node))


@lru_cache(maxsize=KEPT_PAGES)
def _is_common(corpus: Corpus, words: str) -> bool:
    """Say whether so many articles hold some words that their mention says nothing."""
    least = max(LEAST_COMMON, len(corpus.article_nodes()) // COMMON_SHARE)
    found = corpus.find_phrases([words], least * PASSAGES_A_PAGE)
    return found is None or len(found) > least


def _find_values(corpus: Corpus, node: int, answer: Answer) -> Iterator[str]:
    """Yield how a page writes the date or number of an answer."""
    text = show_page(corpus, node)
    expected = parse_date(answer.value) if answer.type == "date" else None
    if expected is not None:
        yield from (text[spot.start : spot.end] for spot in _read_dates(corpus, node) if expected.covers(spot.value))
    if answer.type == "number":
        number = Number(answer.value, answer.unit)
        yield from (text[spot.start : spot.end] for spot in _read_numbers(corpus, node) if _is_same(number, spot.value))
        if Decimal(answer.value) > LARGEST_COUNT and Decimal(answer.value) in _read_spelled(corpus, node):
            yield f"{answer.value} in words"


def _is_same(expected: Number, found: Number) -> bool:
    if expected.unit in KNOWN_UNITS:
        return compare_measures(expected, found) == "same"
    return Decimal(expected.value) == Decimal(found.value)


@lru_cache(maxsize=KEPT_PAGES)
def _read_dates(corpus: Corpus, node: int) -> tuple[Spot[Date], ...]:
    """Return the dates of a page; the same page lies on many paths."""
    return tuple(find_dates(show_page(corpus, node)))


@lru_cache(maxsize=KEPT_PAGES)
def _read_numbers(corpus: Corpus, node: int) -> tuple[Spot[Number], ...]:
    return tuple(find_measures(show_page(corpus, node)))


@lru_cache(maxsize=KEPT_PAGES)
def _read_spelled(corpus: Corpus, node: int) -> frozenset[int]:
    """Return the numbers that a page spells in words."""
    return frozenset(find_spelled_numbers(_WORD.findall(show_page(corpus, node).lower())))


ARTICLES_A_RANK = 100
"""Articles that a corpus must have for each rank that counts: the tenth of fifty pages says nothing."""
MIN_CLAUSE_WORDS = 4
"""A shorter piece of a question finds by chance."""
_PASSAGES = 4
"""Passages fetched for each page wanted: one page has several."""
_PICTURE = re.compile(
    r"\b(?:(?:that is |who is |which is )?(?:shown|seen|depicted|pictured|featured|visible|displayed) )?(?:in|on)"
    r" (?:the|this) (?:given |attached |provided )?(?:image|picture|photo|photograph|illustration|painting shown)\b",
    re.IGNORECASE,
)


def rank_page(corpus: Corpus, text: str, number: int, count: int) -> int:
    """Return the rank of a page in one search for a text: 1 is first, 0 is not among the first ``count`` pages.

    References to the picture are removed from the query: a text search has no picture.
    """
    query = _PICTURE.sub(" ", text)
    wanted = count * _PASSAGES
    while True:
        nodes = corpus.rank_nodes(query, wanted)
        pages = list(dict.fromkeys(nodes))[:count]
        if number in pages:
            return pages.index(number) + 1
        if len(pages) == count or len(nodes) < wanted:
            return 0
        wanted *= _PASSAGES


def check_retrieval(corpus: Corpus, text: str, number: int, rank: int, probes: Iterable[Probe] = ()) -> CheckResult:
    """FAIL (``one-retrieval``) when one search makes hops unnecessary; UNKNOWN without a text.

    Args:
        corpus: searched; with fewer than 100 articles per rank, fewer results count, at least one.
        text: the question.
        number: the answer node's number.
        rank: the page may not be among so many results of a search for the whole question; 0 switches the check
            off.
        probes: pieces of the question; none of four words or more may put one of its pages first by itself.
    """
    if not rank:
        return PASSED
    if not text.strip():
        return CheckResult("UNKNOWN", "one-retrieval", "the text is empty")
    limit = max(1, min(rank, len(corpus.article_nodes()) // ARTICLES_A_RANK))
    found = rank_page(corpus, text, number, limit)
    if found:
        return CheckResult("FAIL", "one-retrieval", f"the question finds {corpus.page(number).title!r} at rank {found}")
    for probe in probes:
        if len(probe.words.split()) < MIN_CLAUSE_WORDS:
            continue
        for page in probe.pages:
            if rank_page(corpus, probe.words, page, 1):
                return CheckResult("FAIL", "one-retrieval", f"{probe.words!r} alone finds {corpus.page(page).title!r}")
    return PASSED


MAX_SMALL = 12
"""Counts up to a dozen are guessed."""
_GUESSED_TEXT = """
yes;no;true;false;both;neither;male;female;man;woman;left;right;north;south;east;west;northern;southern;eastern;western
africa;antarctica;asia;europe;north america;south america;oceania;australia;eurasia;the americas;america;latin america
"""
_GUESSED = frozenset(_GUESSED_TEXT.replace("\n", ";").split(";")) - {""}


def check_guessable(ground: Indexes, relation: str, answer: Answer, max_share: float) -> CheckResult:
    """FAIL (``guessable-answer``) when a guesser without knowledge would often be right.

    Guessable are yes and no, continents and directions, and whole numbers up to twelve without a unit; and a value that
    more than ``max_share`` of the relation's other subjects have, however few they are. For a relation without other
    subjects the result is UNKNOWN, unless the answer is a number, a date, a name of several words or that of an
    article, of which there are too many to guess; such a value says nothing by standing once more.

    Args:
        ground: whose corpus the answers are counted in.
        relation: infobox key asked for.
        answer: in the form asked for.
        max_share: 1.0 switches the check off.
    """
    if max_share >= 1.0:
        return PASSED
    if _is_guessed(answer):
        return CheckResult("FAIL", "guessable-answer", f"{answer.surface!r} is one of few")
    share, observed = ground.shares.share(relation, answer.key)
    others, trials = max(round(share * observed) - 1, 0), max(observed - 1, 0)
    if not trials and not _has_many(answer) and not _has_article(ground.corpus, answer):
        return CheckResult("UNKNOWN", "guessable-answer", f"nobody else shows {relation}")
    if others == 1 and _has_many(answer):
        return PASSED
    if trials and others / trials > max_share:
        detail = f"{answer.surface!r} is {others} of {trials} other answers of {relation}"
        return CheckResult("FAIL", "guessable-answer", detail)
    return PASSED


def _has_article(corpus: Corpus, answer: Answer) -> bool:
    """Say whether an answer is the name of an article, one of very many unless it is about a country or the like."""
    node = corpus.find(answer.value) if answer.type == "name" else None
    return node is not None and not is_generic(corpus, node)


def _has_many(answer: Answer) -> bool:
    """Say whether an answer is one of very many for any relation: a number, a date, a name of several words."""
    if answer.type == "name":
        several = len(_CAPITALISED.findall(answer.surface)) > 1 and not any(map(str.isdigit, answer.surface))
        return several or _LONG_NUMBER.search(answer.surface) is not None
    return answer.type in ("number", "date")


def _is_guessed(answer: Answer) -> bool:
    if answer.type == "number":
        whole = answer.value.isdigit() and answer.unit not in KNOWN_UNITS
        return whole and int(answer.value) <= MAX_SMALL
    return answer.type != "date" and fold_name(answer.surface) in _GUESSED
