"""Nodes and spans of a proof, as the corpus's pages have them."""

from pipelines.corpus.store import Corpus, Fact
from schemas.proofs import Evidence, PathNode, Role


def make_node(corpus: Corpus, node: int, role: Role) -> PathNode:
    """Return a node of a path as its page has it."""
    page = corpus.page(node)
    return PathNode(page_id=page.page_id, title=page.title, role=role, type=page.type, in_degree=page.in_degree)


def cite_fact(corpus: Corpus, fact: Fact) -> Evidence:
    """Return an infobox value as evidence."""
    page = corpus.page(fact.node)
    return Evidence(
        page_id=page.page_id,
        title=page.title,
        revision=page.revision,
        kind="infobox",
        key=fact.key,
        start=fact.start,
        end=fact.end,
        text=corpus.text(fact.node)[fact.start : fact.end],
        link_start=fact.link_start if fact.target >= 0 else -1,
    )


def cite(corpus: Corpus, node: int, kind: str, start: int, end: int, link_start: int) -> Evidence:
    """Return a span of a page as evidence."""
    page = corpus.page(node)
    return Evidence.model_validate(
        {
            "page_id": page.page_id,
            "title": page.title,
            "revision": page.revision,
            "kind": kind,
            "key": "",
            "start": start,
            "end": end,
            "text": corpus.text(node)[start:end],
            "link_start": link_start,
        }
    )
