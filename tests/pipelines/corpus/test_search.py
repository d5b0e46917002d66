import asyncio

import pytest

from pipelines.corpus.addresses import make_page_url
from pipelines.corpus.search import LocalPages, LocalTextSearch
from pipelines.services.protocols import PageNotFound

BASE = "https://en.wikipedia.org/wiki/"
BOX = "{{Infobox bridge|designer=[[Ana Kovač]]|other_name=Old Bridge<br>Kelmbrig|map={{odd}}|image=Kelm Bridge.jpg}}"


@pytest.fixture
def corpus(make_corpus):
    return make_corpus(
        ("Kelm Bridge", f"{BOX}\n'''Kelm Bridge''' is a bridge in [[Velm]].\n\n" + "It is old. " * 50),
        ("Old Bridge", "#REDIRECT [[Kelm Bridge]]", 0, "Kelm Bridge"),
        ("Velm", "Velm is a town. " + "A bridge stands in Velm. " * 400),
        ("Bridge", "'''Bridge''' is a game. " + "Other words. " * 90),
    )


def read(corpus, url, **settings):
    return asyncio.run(LocalPages(corpus, **settings).read_page(url))


def test_a_page_is_its_facts_as_lines_and_then_its_prose(corpus):
    page = read(corpus, BASE + "Kelm_Bridge")
    assert page.title == "Kelm Bridge"
    assert page.text.startswith(
        "Designer: Ana Kovač\nOther name: Old Bridge; Kelmbrig\n\nKelm Bridge is a bridge in Velm."
    )
    for url in (BASE + "Old_Bridge", "http://en.wikipedia.org/wiki/Kelm_Bridge#History"):
        assert read(corpus, url) == page
    cut = read(corpus, BASE + "Kelm_Bridge", limit=120)
    assert len(cut.text) <= 122
    assert cut.text.endswith(" …")


def test_what_is_no_page_of_this_wiki_is_not_found(corpus):
    others = ["https://en.wikipedia.org/w/index.php?title=Kelm_Bridge", "https://evil.example/wiki/Kelm_Bridge",
              "file:///wiki/Kelm_Bridge", "http://[", "Kelm Bridge"]  # fmt: skip
    for url in (BASE, BASE + "Nowhere", BASE + "Kelm_Bridge?action=raw", *others):
        with pytest.raises(PageNotFound):
            read(corpus, url)


def test_addresses_look_like_those_of_the_wiki():
    assert make_page_url(BASE, "Kovač (painter), Ana/B?") == BASE + "Kova%C4%8D_(painter),_Ana/B%3F"


def test_a_page_is_one_hit_and_the_page_whose_name_is_the_query_comes_first(corpus):
    def search(query, count):
        return asyncio.run(LocalTextSearch(corpus).search_text(query, count))

    hits = search("bridge in velm", 9)
    assert sorted(hit.title for hit in hits) == ["Bridge", "Kelm Bridge", "Velm"]
    assert hits[0].url == make_page_url(BASE, hits[0].title)
    assert all(0 < len(search("bridge in velm", count)) <= count for count in (1, 2, 3))
    for name in ("Bridge", "Velm"):
        assert search(name, 2)[0].title == name
    assert search("Old Bridge", 1)[0].title == "Kelm Bridge"
    assert search("nothing", 5) == ()
