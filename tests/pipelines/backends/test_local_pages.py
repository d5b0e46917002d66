import asyncio
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.corpus.search import LocalPages, make_page_url, parse_page_url
from pipelines.services.protocols import PageNotFound

BASE = "https://en.wikipedia.org/wiki/"
TEXT = "{{Infobox bridge|designer=[[Ana Kovač]]}}\n'''Kelm Bridge''' is a bridge in [[Velm]].\n\n" + "It is old. " * 50


class FakeCorpus:
    """One page with its facts, and a redirect to it."""

    digest = "corpus-digest"
    manifest = SimpleNamespace(base_url=BASE)

    def find(self, title):
        return {"Kelm Bridge": 0, "Old Bridge": 0}.get(title)

    def page(self, node):
        return SimpleNamespace(title="Kelm Bridge")

    def facts(self, node):
        pairs = [
            ("designer", "Ana Kovač"),
            ("other_name", "Old Bridge"),
            ("other_name", "Kelmbrig"),
            ("map", ""),
            ("image", "Kelm Bridge.jpg"),
        ]
        return tuple(SimpleNamespace(key=key, text=text) for key, text in pairs)

    def text(self, node):
        return TEXT


def read(url, **settings):
    return asyncio.run(LocalPages(FakeCorpus(), **settings).read_page(url))


def test_a_page_is_its_facts_as_lines_and_then_its_prose():
    page = read(BASE + "Kelm_Bridge")
    assert page.title == "Kelm Bridge"
    assert page.text.startswith(
        "Designer: Ana Kovač\nOther name: Old Bridge; Kelmbrig\n\nKelm Bridge is a bridge in Velm."
    )
    assert "Infobox" not in page.text


def test_a_redirect_is_read_under_its_targets_title():
    page = read(BASE + "Old_Bridge")
    assert (page.title, page.url) == ("Kelm Bridge", BASE + "Kelm_Bridge")


@pytest.mark.parametrize(
    "url",
    [
        BASE + "Nowhere",
        BASE,
        "https://en.wikipedia.org/w/index.php?title=Kelm_Bridge",
        BASE + "Kelm_Bridge?action=raw",
        "https://evil.example/wiki/Kelm_Bridge",
        "file:///wiki/Kelm_Bridge",
        "http://[",
        "Kelm Bridge",
    ],
)
def test_what_is_no_page_of_this_wiki_is_not_found(url):
    with pytest.raises(PageNotFound):
        read(url)


def test_a_fragment_and_plain_http_lead_to_the_same_page():
    assert read("http://en.wikipedia.org/wiki/Kelm_Bridge#History").title == "Kelm Bridge"


def test_a_long_page_is_cut_at_white_space():
    page = read(BASE + "Kelm_Bridge", limit=120)
    assert len(page.text) <= 122
    assert page.text.endswith(" …")


def test_addresses_look_like_those_of_the_wiki():
    assert make_page_url(BASE, "Kovač (painter), Ana/B?") == BASE + "Kova%C4%8D_(painter),_Ana/B%3F"


@given(st.text(st.characters(exclude_categories=["Cs", "Cc", "Z"], exclude_characters="_"), min_size=1))
def test_every_title_survives_its_address(title):
    assert parse_page_url(BASE, make_page_url(BASE, title)) == title


def test_identity_covers_corpus_and_limit():
    assert "corpus-digest" in LocalPages(FakeCorpus()).identity
    assert LocalPages(FakeCorpus(), 1).identity != LocalPages(FakeCorpus(), 2).identity
