"""Does one search with the question's own words find the answer's page? (research/quality.md S4)."""

import re
from collections.abc import Sequence

from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.corpus.store import Corpus

ARTICLES_A_RANK = 100
"""Articles that a corpus must have for each rank looked at: the tenth of fifty pages says nothing."""
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
    """Return at which place one search for a text finds a page: 1 is first, 0 is not among the first ``count`` pages.

    References to the picture are left out of the query: whoever searches for text has none.
    """
    query = _PICTURE.sub(" ", text)
    wanted = count * _PASSAGES
    while True:
        passages = corpus.search(query, wanted)
        pages = list(dict.fromkeys(passage.node for passage in passages))[:count]
        if number in pages:
            return pages.index(number) + 1
        if len(pages) == count or len(passages) < wanted:
            return 0
        wanted *= _PASSAGES


def check_retrieval(corpus: Corpus, text: str, number: int, rank: int, clauses: Sequence[str] = ()) -> CheckResult:
    """FAIL (``one-retrieval``) when one search finds the answer's page; UNKNOWN without a text.

    Args:
        corpus: what is searched; with fewer than 100 articles a rank, fewer results are looked at, at least one.
        text: the question.
        number: the answer node's number.
        rank: results of a search for the whole question that may not hold the page; 0 switches the check off.
        clauses: pieces of the question; none of four words or more may put the page first by itself.
    """
    if not rank:
        return PASSED
    if not text.strip():
        return CheckResult("UNKNOWN", "one-retrieval", "the text is empty")
    limit = max(1, min(rank, len(corpus.article_nodes()) // ARTICLES_A_RANK))
    found = rank_page(corpus, text, number, limit)
    if found:
        return CheckResult("FAIL", "one-retrieval", f"the question finds {corpus.page(number).title!r} at rank {found}")
    for clause in clauses:
        if len(clause.split()) >= MIN_CLAUSE_WORDS and rank_page(corpus, clause, number, 1):
            return CheckResult("FAIL", "one-retrieval", f"{clause!r} alone finds {corpus.page(number).title!r}")
    return PASSED
