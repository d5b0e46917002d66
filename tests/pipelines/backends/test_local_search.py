import asyncio
from types import SimpleNamespace

import pytest

from pipelines.corpus.search import LocalTextSearch

BASE = "https://en.wikipedia.org/wiki/"


class FakeCorpus:
    """Ten passages of page A, then one of B and one of C."""

    digest = "corpus-digest"
    manifest = SimpleNamespace(base_url=BASE)

    def find(self, title):
        return {"C": 2, "Unlisted": 3}.get(title)

    def page(self, node):
        return SimpleNamespace(title={2: "C", 3: "Unlisted"}[node])

    def text(self, node):
        return "'''Unlisted''' is a place."

    def search(self, query, k):
        rows = [(0, "A one", f"passage {n}") for n in range(10)] + [(1, "B", "b"), (2, "C", "c")]
        if query == "nothing":
            return []
        return [SimpleNamespace(node=node, title=title, text=text, score=-1.0) for node, title, text in rows][:k]


def search(query, count):
    return asyncio.run(LocalTextSearch(FakeCorpus()).search_text(query, count))


def test_a_page_is_one_hit_shown_by_its_best_passage():
    hits = search("x", 2)
    assert [(hit.title, hit.snippet) for hit in hits] == [("A one", "passage 0"), ("B", "b")]
    assert hits[0].url == BASE + "A_one"


def test_a_page_whose_name_is_the_query_comes_first():
    assert [(hit.title, hit.snippet) for hit in search("C", 2)] == [("C", "c"), ("A one", "passage 0")]
    assert search("Unlisted", 1)[0].snippet == "Unlisted is a place."


@pytest.mark.parametrize("count", [1, 2, 3, 10])
def test_there_are_never_more_hits_than_asked_for(count):
    assert len(search("x", count)) <= count


def test_nothing_found_is_no_hit():
    assert search("nothing", 5) == ()


def test_identity_is_the_corpus_digest_not_a_path():
    assert LocalTextSearch(FakeCorpus()).identity == "local-text-search@1:corpus-digest"
