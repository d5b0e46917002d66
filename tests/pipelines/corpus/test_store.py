import pytest

from pipelines.corpus.store import MAX_PIECES, Corpus, count_pieces, describe_entity
from pipelines.errors import ConfigError
from tests.toy import box, build_toy_corpus

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
    for node in (-1, 3):
        with pytest.raises(IndexError):
            corpus.page(node)


def test_no_query_is_a_syntax_error_and_a_closed_index_opens_again(corpus):
    for query in ('"', "AND OR NOT", "a* NEAR(b", "title:kelm", "-- ;", "", "the of", "\ud800 bridge"):
        assert isinstance(corpus.search(query, 3), list)
        corpus.close()


def test_all_facts_are_read_in_tables_of_whole_articles(corpus):
    (table,) = corpus.read_fact_tables(("node", "key", "text"))
    assert table.to_pylist() == [
        {"node": 0, "key": "crosses", "text": "Ost"},
        {"node": 0, "key": "spans", "text": "3"},
    ]


def test_a_folder_without_manifest_and_a_corpus_of_an_older_form_are_refused(corpus, tmp_path):
    with pytest.raises(ConfigError, match="no corpus at"):
        Corpus.open(tmp_path)
    manifest = corpus.folder / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"schema_version": 6', '"schema_version": 5'))
    with pytest.raises(ConfigError, match="schema version 5; expected 6: rebuild the corpus"):
        Corpus.open(corpus.folder)


STORKS = ", and the home of a thousand and one storks" * 40
DESCRIBED = {
    "Kelm Bridge": box(
        "bridge", "'''Kelm Bridge''' is a suspension bridge over the [[Orsa]]. It is old.", "length = 3"
    ),
    "Orsa (river)": box("river", "The '''Orsa''' ({{IPA|o}}; {{lang|x|Orssa}}) is a river in the north.", "length = 3"),
    "Lumby, Ohio": box("station", "'''Lumby''' was the first stop in the valley.", "opened = 1904"),
    "Siege of Marn": box(
        "military conflict", "The '''siege of Marn''' took place in 1320 near the sea.", "date = 1320"
    ),
    "Vast": box("bridge", f"'''Vast''' is a bridge{STORKS}."),
    "Bare": "",
    "Ostrel": box("settlement", "'''Ostrel''' is a town."),
}


@pytest.fixture(scope="module")
def described(tmp_path_factory):
    corpus = build_toy_corpus(tmp_path_factory.mktemp("described"), DESCRIBED, {})
    yield corpus
    corpus.close()


def describe(corpus, title):
    return describe_entity(corpus, corpus.find(title))


LINES = {
    "Kelm Bridge": "Kelm Bridge, a suspension bridge over the Orsa",
    "Orsa (river)": "Orsa, a river in the north",
    "Lumby, Ohio": "Lumby, railway station, the first stop in the valley",
    "Siege of Marn": "Siege of Marn, battle, The siege of Marn took place in 1320 near the sea",
    "Bare": "Bare",
    "Ostrel": "Ostrel, a town",
}


def test_an_entity_is_described_by_its_name_its_type_and_what_its_article_says_it_is(described):
    assert {title: describe(described, title) for title in LINES} == LINES


def test_a_long_sentence_is_cut_between_words_and_the_name_stays(described):
    line = describe(described, "Vast")
    assert line.startswith("Vast, a bridge, and the home of a thousand")
    assert MAX_PIECES - 10 < count_pieces(line) <= MAX_PIECES
