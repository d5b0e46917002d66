"""Checks of questions about the news: picture -> A -R-> B -> C, each fact quoted from an article (BridgeVQA, 3.3).

One list serves the stage that makes such questions and the verification of a release, which needs no model: quotes are
held byte for byte against the corpus of articles, names against quotes, the question against all names.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import date
from functools import partial

from pipelines.checks.answers import check_not_bridge, check_precision
from pipelines.checks.descriptors import find_incoherence, find_references
from pipelines.checks.leakage import check_answer, check_demonyms, check_names
from pipelines.checks.readings import digest_text
from pipelines.checks.verdicts import PASSED, Check, CheckResult
from pipelines.corpus.articles import find_quote, show_text
from pipelines.corpus.store import Corpus
from pipelines.graph.answers import type_answer
from pipelines.names import compile_phrase, fold_name
from schemas.proofs import AnchorKind, Answer, Evidence, Trace, TraceLink

LINKS = 2
"""Links of a trace: with the step from the picture to A they are the three hops that the paper demands."""
STEM = 4
"""Letters by which two forms of a word are known as one: ``designed`` and ``designer``."""
EMPTY_WORDS = frozenset(
    "a an and as at be became been being but by did do does for from had has have her his in into is it its of on or "
    "since than that the their them they to under until was were which who whom whose will with".split()
)
"""Words of a relation that say nothing of it."""
_WORD = re.compile(r"\w+")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_NAMED = {"person": "the person", "event": "the event", "object": "the thing"}


def quote_span(corpus: Corpus, node: int, quote: str) -> Evidence | None:
    """Return a quote, plain text, as evidence of an article; None if it does not stand there."""
    text, page = corpus.text(node), corpus.page(node)
    span = find_quote(text, quote)
    if span is None:
        return None
    return Evidence(
        page_id=page.page_id, title=page.title, revision=page.revision, kind="sentence", key="",
        start=span[0], end=span[1], text=text[slice(*span)], link_start=-1,
    )  # fmt: skip


def make_link(corpus: Corpus, node: int, words: tuple[str, str, str], quote: str) -> TraceLink | None:
    """Return a fact with its quote; None if the quote does not stand in the article."""
    evidence, origin = quote_span(corpus, node, quote), corpus.origin(node)
    if evidence is None or origin is None:
        return None
    subject, relation, target = words
    return TraceLink(subject=subject, relation=relation, object=target, evidence=evidence, url=origin.url,
                     source=origin.source, published=origin.published)  # fmt: skip


def write_steps(kind: AnchorKind, shown: Evidence, links: Sequence[TraceLink]) -> tuple[str, ...]:
    """Return the reasoning in numbered steps, as the paper's example has it: picture, a search a link, conclusion."""
    anchor = links[0].subject
    steps = [f"[Visual step] Find out what the image shows: {_NAMED[kind]} is {anchor}. The article that shows it, "
             f"“{shown.title}”, says: “{show_text(shown.text)}”"]  # fmt: skip
    for number, link in enumerate(links, start=1):
        steps.append(
            f"[Search step {number}] Search for “{link.subject}” and “{link.relation}”. {link.source}, "
            f"{link.published}, “{link.evidence.title}” <{link.url}>: “{show_text(link.evidence.text)}” "
            f"So {link.subject} {link.relation} {link.object}."
        )
    steps.append(f"[Conclusion] The answer is {links[-1].object}.")
    return tuple(f"{number}. {step}" for number, step in enumerate(steps, start=1))


def list_trace_checks(corpus: Corpus, text: str, answer: Answer, trace: Trace) -> Iterator[Check]:
    """Yield the checks of a question about the news, cheapest first."""
    yield partial(check_shape, trace, answer)
    yield partial(check_typed, trace, answer)
    yield partial(check_quote, corpus, trace.anchor_evidence, (trace.anchor,))
    for link in trace.links:
        yield partial(check_link, corpus, link)
    yield partial(check_apart, trace, answer)
    yield partial(check_wording, text)
    yield partial(check_names, text, ((trace.anchor,), (trace.bridge,)))
    yield partial(check_demonyms, text, ((trace.anchor,), (trace.bridge,)))
    yield partial(check_answer, text, answer)
    yield partial(check_precision, text, answer)


def check_shape(trace: Trace, answer: Answer) -> CheckResult:
    """FAIL (``link-unsupported``) unless the links lead from the anchor over the bridge to the answer."""
    if len(trace.links) != LINKS:
        return _fail("link-unsupported", f"{trace.hops} hops with the picture's, wanted are {LINKS + 1}")
    first, second = trace.links
    if (first.subject, second.subject, second.object) != (trace.anchor, first.object, answer.surface):
        return _fail("link-unsupported", "the links do not lead from the anchor over the bridge to the answer")
    if first.evidence.page_id != trace.anchor_evidence.page_id:
        return _fail("link-unsupported", "the first link is not of the article that shows the picture")
    if trace.steps != write_steps(trace.anchor_kind, trace.anchor_evidence, trace.links):
        return _fail("link-unsupported", "the steps are not those of the links")
    return PASSED


def check_decision(text: str, trace: Trace) -> CheckResult:
    """FAIL (``chain-refused``) unless this very text was judged: by a model that said yes, or by a person on a day."""
    if not trace.decided_by.strip():
        return _fail("chain-refused", "nobody found the reasoning sound")
    if trace.judged != digest_text(text):
        return _fail("chain-refused", f"{trace.decided_by} judged another text than {text!r}")
    if trace.verdict == "no" or (trace.verdict == "unsure" and not trace.decided_on):
        return _fail("chain-refused", f"the model said {trace.verdict!r}, and no person decided")
    if trace.decided_on and not _is_day(trace.decided_on):
        return _fail("chain-refused", f"decided on {trace.decided_on!r}, which is no day")
    return PASSED


def _is_day(text: str) -> bool:
    try:
        return _DAY.fullmatch(text) is not None and bool(date.fromisoformat(text))
    except ValueError:
        return False


def check_typed(trace: Trace, answer: Answer) -> CheckResult:
    """FAIL (``answer-untyped``) unless type, value, aliases and key follow from the answer's words and its relation."""
    if trace.links and type_answer(answer.surface, "", trace.links[-1].relation) == answer:
        return PASSED
    return _fail("answer-untyped", f"{answer.surface!r} is typed otherwise")


def check_quote(corpus: Corpus, evidence: Evidence, names: Sequence[str]) -> CheckResult:
    """FAIL when a span is not the article's (``quote-not-found``) or lacks a name (``link-unsupported``)."""
    node = corpus.find(evidence.title)
    page = None if node is None else corpus.page(node)
    if node is None or page is None or (page.page_id, page.revision) != (evidence.page_id, evidence.revision):
        return _fail("quote-not-found", f"the corpus has no such article {evidence.title!r}")
    if corpus.text(node)[evidence.start : evidence.end] != evidence.text or not evidence.text:
        return _fail("quote-not-found", f"{show_text(evidence.text)!r} does not stand there in {evidence.title!r}")
    shown = show_text(evidence.text)
    for name in names:
        if not compile_phrase(name).search(shown):
            return _fail("link-unsupported", f"{name!r} does not stand in {shown!r}")
    return PASSED


def check_link(corpus: Corpus, link: TraceLink) -> CheckResult:
    """FAIL as :func:`check_quote`, and where address, source or day are not the article's (``quote-not-found``).

    Words of the relation that the quote has in no form are ``link-unsupported``.
    """
    quoted = check_quote(corpus, link.evidence, (link.subject, link.object))
    quoted = check_relation(link) if quoted.passed else quoted
    node = corpus.find(link.evidence.title)
    origin = None if node is None else corpus.origin(node)
    if not quoted.passed or origin is None:
        return quoted if not quoted.passed else _fail("quote-not-found", "the corpus has no articles of the news")
    for name in ("url", "source", "published"):
        if getattr(link, name) != getattr(origin, name):
            detail = f"{name} of {link.evidence.title!r} is {getattr(origin, name)!r}, not {getattr(link, name)!r}"
            return _fail("quote-not-found", detail)
    return PASSED


def check_relation(link: TraceLink) -> CheckResult:
    """FAIL (``link-unsupported``) unless the quote, both names aside, has each word of the relation in some form.

    Of a relation without a telling word (``is in``) each word is held against the quote.
    """
    shown = show_text(link.evidence.text)
    for name in (link.subject, link.object):
        shown = compile_phrase(name).sub(" ", shown)
    words = _list_words(link.relation)
    told = [word for word in words if word not in EMPTY_WORDS] or words
    found = {word[:STEM] for word in _list_words(shown)}
    missing = [word for word in told if word[:STEM] not in found]
    if not told or missing:
        return _fail("link-unsupported", f"{' '.join(missing) or link.relation!r} of the relation is not in {shown!r}")
    return PASSED


def _list_words(text: str) -> list[str]:
    return _WORD.findall(fold_name(text))


def check_apart(trace: Trace, answer: Answer) -> CheckResult:
    """FAIL where anchor, bridge and answer are one thing, or the first quote gives the answer away already."""
    different = check_different(trace.anchor, trace.bridge)
    if not different.passed:
        return different
    named = check_not_bridge(answer, (trace.anchor, trace.bridge))
    if not named.passed:
        return named
    told = check_answer(show_text(trace.links[0].evidence.text), answer)
    return PASSED if told.passed else CheckResult(told.outcome, "answer-in-first-link", told.detail)


def check_different(anchor: str, bridge: str) -> CheckResult:
    """FAIL (``bridge-is-anchor``) where one name is the other or a part of it."""
    one, other = fold_name(anchor), fold_name(bridge)
    if compile_phrase(other).search(one) or compile_phrase(one).search(other):
        return _fail("bridge-is-anchor", f"{bridge!r} is {anchor!r}, or a part of its name")
    return PASSED


def check_wording(text: str) -> CheckResult:
    """FAIL (``reference-missing``) unless a text is one whole question that says what to look at in the picture."""
    incoherent = find_incoherence(text)
    if incoherent:
        return _fail("reference-missing", f"{incoherent} in {text!r}")
    if not any(reference.noun for reference in find_references(text)):
        return _fail("reference-missing", f"{text!r} does not say what to look at in the image")
    return PASSED


def _fail(code: str, detail: str) -> CheckResult:
    return CheckResult("FAIL", code, detail)
