import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.corpus.store import MAX_PIECES, count_pieces, cut_pieces, describe_entity
from tests.toy import box, build_toy_corpus

LONG = ", and the home of a thousand and one storks" * 40
PAGES = {
    "Kelm Bridge": box(
        "bridge", "'''Kelm Bridge''' is a suspension bridge over the [[Orsa]]. It is old.", "length = 3"
    ),
    "Orsa (river)": box("river", "The '''Orsa''' ({{IPA|o}}; {{lang|x|Orssa}}) is a river in the north.", "length = 3"),
    "Lumby, Ohio": box("station", "'''Lumby''' was the first stop in the valley.", "opened = 1904"),
    "Siege of Marn": box(
        "military conflict", "The '''siege of Marn''' took place in 1320 near the sea.", "date = 1320"
    ),
    "Vast": box("bridge", f"'''Vast''' is a bridge{LONG}."),
    "Bare": "",
    "Ostrel": box("settlement", "'''Ostrel''' is a town."),
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    corpus = build_toy_corpus(tmp_path_factory.mktemp("described"), PAGES, {})
    yield corpus
    corpus.close()


def describe(corpus, title):
    return describe_entity(corpus, corpus.find(title))


@pytest.mark.parametrize(
    ("title", "line"),
    [
        ("Kelm Bridge", "Kelm Bridge, a suspension bridge over the Orsa"),
        ("Orsa (river)", "Orsa, a river in the north"),
        ("Lumby, Ohio", "Lumby, railway station, the first stop in the valley"),
        ("Siege of Marn", "Siege of Marn, battle, The siege of Marn took place in 1320 near the sea"),
        ("Bare", "Bare"),
        ("Ostrel", "Ostrel, a town"),
    ],
)
def test_an_entity_is_described_by_its_name_its_type_and_what_its_article_says_it_is(corpus, title, line):
    assert describe(corpus, title) == line


def test_a_long_sentence_is_cut_between_words_and_the_name_stays(corpus):
    line = describe(corpus, "Vast")
    assert line.startswith("Vast, a bridge, and the home of a thousand")
    assert MAX_PIECES - 10 < count_pieces(line) <= MAX_PIECES


def test_every_article_of_the_toy_world_has_a_short_line_of_its_own(demo_corpus):
    lines = [describe_entity(demo_corpus, node) for node in demo_corpus.article_nodes()]
    assert all(line and "\n" not in line and count_pieces(line) <= MAX_PIECES for line in lines)
    assert len(set(lines)) > len(lines) * 0.99


@given(st.text(max_size=400), st.integers(1, 80))
def test_a_cut_text_is_a_beginning_within_the_limit_or_one_word(text, limit):
    cut = cut_pieces(text, limit)
    words = cut.split()
    assert [word.rstrip(",;:") for word in text.split()[: len(words)]] == [word.rstrip(",;:") for word in words]
    assert len(words) <= 1 or count_pieces(cut) <= limit
