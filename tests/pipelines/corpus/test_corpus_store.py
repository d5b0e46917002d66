from concurrent.futures import ThreadPoolExecutor

import pytest

from pipelines.corpus.store import Corpus
from pipelines.corpus.texts import split_passages
from pipelines.errors import ConfigError

LONG = " ".join(f"word{number}" for number in range(400))


@pytest.fixture
def corpus(make_corpus):
    return make_corpus(
        ("Kelm Bridge", "{{Infobox bridge|crosses=[[Ost]]|spans=3}}\n'''Kelm Bridge''' is a bridge.\n\n" + LONG),
        ("Ost", "The '''Ost''' is a river in Varn. It is crossed by one bridge."),
        ("Varn", "#REDIRECT [[Ost]]", 0, "Ost"),
        ("List of bridges", "* [[Kelm Bridge]]"),
    )


def test_pages_are_found_by_title_and_redirect(corpus):
    assert (corpus.find("Kelm_Bridge"), corpus.find("Varn"), corpus.find("varn"), corpus.find("X")) == (
        0,
        1,
        None,
        None,
    )
    assert list(corpus.article_nodes()) == [0, 1, 2]
    assert corpus.page(2).is_list


def test_a_page_has_type_domain_and_digest(corpus):
    page = corpus.page(0)
    assert (page.infobox, page.type, page.lead_type, page.domain) == (
        "Infobox bridge",
        "bridge",
        "bridge",
        "Building/Place",
    )
    assert page.bytes == len(corpus.text(0).encode())
    assert corpus.nodes_of_type("river").tolist() == [1]
    assert corpus.nodes_of_type("unicorn").tolist() == []


@pytest.mark.parametrize("node", [-1, 3])
def test_other_nodes_are_an_index_error(corpus, node):
    with pytest.raises(IndexError):
        corpus.page(node)


def test_search_ranks_and_repeats_itself(corpus):
    first = corpus.search("How many spans has the Kelm Bridge?", 5)
    assert (first[0].title, first[0].node) == ("Kelm Bridge", 0)
    assert first == corpus.search("How many spans has the Kelm Bridge?", 5)
    assert [passage.score for passage in first] == sorted((passage.score for passage in first), reverse=True)
    assert first[0].text.startswith("Crosses: Ost.\nSpans: 3.\n")


def test_threads_that_search_at_once_find_what_one_finds(corpus):
    queries = [f"word{number} bridge river" for number in range(0, 400, 5)]
    alone = [corpus.search(query, 5) for query in queries]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda query: corpus.search(query, 5), queries)) == alone
        phrases = list(pool.map(lambda number: corpus.find_phrases([f"word{number}"], 5), range(0, 400, 5)))
    assert phrases == [(0,)] * len(queries)


def test_a_corpus_whose_search_was_closed_opens_it_again(corpus):
    first = corpus.search("bridge", 3)
    corpus.close()
    assert corpus.search("bridge", 3) == first


@pytest.mark.parametrize("query", ['"', "AND OR NOT", "a* NEAR(b", "title:kelm", "-- ;", "", "the of"])
def test_no_query_is_a_syntax_error(corpus, query):
    assert isinstance(corpus.search(query, 3), list)


def test_passages_are_cut_near_their_length_and_lose_no_word():
    text = f"One two.\n\n{LONG}\nLast line."
    passages = list(split_passages(text, 120))
    assert " ".join(passages).split() == text.split()
    assert max(len(passage.split()) for passage in passages) <= 120


def test_a_folder_without_manifest_is_no_corpus(tmp_path):
    with pytest.raises(ConfigError, match="no corpus at"):
        Corpus.open(tmp_path)


def test_an_unknown_picture_has_no_path(corpus):
    assert corpus.image("X.jpg") is None
    with pytest.raises(ConfigError, match=r"'X\.jpg' is not in corpus"):
        corpus.image_path("X.jpg")


@pytest.mark.parametrize(
    ("phrases", "nodes"),
    [
        (["crossed by one"], (1,)),
        (["CROSSED by: one"], (1,)),
        (["one crossed"], ()),
        (["Ost"], (0, 1)),
        (["Kelm Bridge", "river in Varn"], (0, 1, 2)),
        (["spans 3"], (0,)),
        (["Infobox"], ()),
        (['"Ost" OR "Kelm"', "text:river"], ()),
        (["!?", ""], ()),
        ([], ()),
    ],
)
def test_phrases_are_found_word_for_word_in_texts_and_infoboxes(corpus, phrases, nodes):
    assert corpus.find_phrases(phrases, 9) == nodes


def test_a_phrase_in_more_passages_than_the_limit_is_not_listed(corpus):
    assert corpus.find_phrases(["word1", "river"], 2) == (0, 1)
    assert corpus.find_phrases(["Kelm Bridge", "river"], 1) is None


def test_all_facts_are_read_in_tables_of_whole_articles(corpus):
    (table,) = corpus.read_fact_tables(("node", "key", "text"))
    assert table.to_pylist() == [
        {"node": 0, "key": "crosses", "text": "Ost"},
        {"node": 0, "key": "spans", "text": "3"},
    ]


def test_a_corpus_of_an_older_form_is_refused(corpus):
    manifest = corpus.folder / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"schema_version": 3', '"schema_version": 2'))
    with pytest.raises(ConfigError, match="schema version 2; this synth reads 3: rebuild the corpus"):
        Corpus.open(corpus.folder)
