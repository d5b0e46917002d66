"""Ways to answer with fewer hops: the answer on an earlier page, or a shorter link path."""

import re
from collections.abc import Sequence
from functools import lru_cache

from pipelines.checks.verdicts import CheckResult
from pipelines.corpus.store import Corpus
from pipelines.corpus.wikitext import plain_text
from pipelines.graph.query import find_shortcut
from pipelines.names import fold_name
from schemas.proofs import Answer

KEPT_PAGES = 1024
LONGEST_SEARCH = 4
"""Longest path of the published recipes that walk."""
SEPARATOR = re.compile(r"(?<=\d)[.,](?=\d)")
SPELLED = {".": "p", ",": "c"}


def check_path_length(corpus: Corpus, nodes: Sequence[int], hub_in_degree: int) -> CheckResult:
    """FAIL when links lead from anchor to answer node in fewer than h - 1 steps, hubs left out.

    One step fewer is let pass: the answer check on earlier pages covers it (research: S2 with S3). Longer paths are
    held to ``LONGEST_SEARCH`` hops: any two articles are a few links apart, which nobody could follow without the path.
    """
    hops = min(len(nodes) - 1, LONGEST_SEARCH)
    length = find_shortcut(corpus, (*[nodes[0]] * hops, nodes[-1]), hub_in_degree)
    if length < hops - 1:
        return CheckResult("FAIL", "shorter-path", f"{length} links instead of {hops}")
    return CheckResult("PASS", "shorter-path", "")


def check_earlier_pages(corpus: Corpus, nodes: Sequence[int], answer: Answer) -> CheckResult:
    """FAIL when a form of the answer stands on a page before the answer node's, infobox included."""
    forms = sorted({_fold(form) for form in (answer.surface, answer.value, *answer.aliases)} - {""})
    pattern = re.compile(r"(?<!\w)(?:" + "|".join(re.escape(form) for form in forms) + r")(?!\w)")
    for node in nodes[:-1]:
        found = pattern.search(_fold_page(corpus, node))
        if found is not None:
            return CheckResult("FAIL", "answer-on-earlier-page", f"{found[0]!r} on {corpus.page(node).title}")
    return CheckResult("PASS", "answer-on-earlier-page", "")


@lru_cache(maxsize=KEPT_PAGES)
def _fold_page(corpus: Corpus, node: int) -> str:
    """Return a page's prose and infobox values, folded; the same page lies on many paths."""
    shown = " ; ".join(fact.text for fact in corpus.facts(node))
    return _fold(plain_text(corpus.text(node)) + " ; " + shown)


def _fold(text: str) -> str:
    """Fold a text and keep its numbers whole: folding alone would read 1204.50 as 1204 and 50."""
    return fold_name(SEPARATOR.sub(lambda found: SPELLED[found[0]], text))
