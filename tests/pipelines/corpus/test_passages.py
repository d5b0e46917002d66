import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.corpus.passages import PassageIndex, fill_index, write_passages
from pipelines.errors import ConfigError

TIED = [(node, f"T{node}", "The same words stand here, of a bridge.") for node in range(60)]


def hold(*texts, **settings):
    return PassageIndex(fill_index((node, f"T{node}", text) for node, text in enumerate(texts)), **settings)


def read_bytes(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_passage_that_is_quoted_comes_before_those_that_only_hold_the_words():
    quote = "It borders Kelm and Velm on the north, and Orsa on the west."
    others = [f"{'Kelm borders Velm, north and west of Orsa. ' * 3}Number {number}." for number in range(9)]
    index = hold(*others, f"{'A land of rain. ' * 20}{quote}")
    quoted, scattered = (index.search(query, 5) for query in (quote, "borders Orsa, Kelm, Velm"))
    assert [quoted[0].node, len(quoted), len({passage.node for passage in quoted})] == [9, 5, 5]
    assert 9 not in [passage.node for passage in scattered]


def test_an_index_has_the_same_bytes_whatever_number_of_threads_wrote_it(tmp_path):
    rows = [(node, f"T{node}", f"Word{node % 7} of the bridge number {node}. " * 5) for node in range(300)]
    counts = {write_passages(tmp_path / str(threads), rows, threads, characters=9_000) for threads in (1, 2, 5)}
    written = [read_bytes(tmp_path / str(threads)) for threads in (1, 2, 5)]
    assert counts == {300}
    assert written[0] == written[1] == written[2]
    assert len({name.partition(".")[0] for name in written[0]}) > 3


def test_only_the_best_passage_of_each_of_the_first_articles_is_returned():
    rows = [(1, "A", "A bridge. A bridge."), (2, "B", "A bridge and much besides, far away."), (1, "A", "A bridge.")]
    index = PassageIndex(fill_index([*rows, (3, "C", "Something else about a bridge, and more words than others.")]))
    ranked = index.search("bridge", 9)
    assert sorted(passage.node for passage in ranked) == [1, 1, 2, 3]
    assert [passage.node for passage in ranked] == index.rank_nodes("bridge", 9)
    first = {passage.node: passage for passage in reversed(ranked)}
    assert index.search("bridge", 9, 2) == [
        first[node] for node in list(dict.fromkeys(index.rank_nodes("bridge", 9)))[:2]
    ]


@pytest.mark.parametrize("lost", [".idx", ".store", ".term", "meta.json"])
def test_an_index_that_lacks_a_file_is_refused(tmp_path, lost):
    write_passages(tmp_path / "search", TIED)
    for path in tmp_path.glob(f"search/*{lost}"):
        path.unlink()
    with pytest.raises(ConfigError, match="no search index in"):
        PassageIndex.open(tmp_path / "search")


FOREIGN = (
    "東京都は日本の首都である。人口は約1400万人。",
    "京都市は京都府の府庁所在地である。",
    "กรุงเทพมหานครเป็นเมืองหลวงของประเทศไทย",
    "เชียงใหม่เป็นจังหวัดหนึ่งของประเทศไทย",
    "서울특별시는 대한민국의 수도이다.",
    "Łódź and Besançon, Ærø and Malmö: café, naïve, Straße.",
)
PHRASES = {
    "首都": (0,),
    "京都": (0, 1),
    "京都府": (1,),
    "東京 都": (0,),
    "都東": (),
    "ประเทศไทย": (2, 3),
    "เมืองหลวง": (2,),
    "เชียงใหม่": (3,),
    "수도": (4,),
    "BESANCON": (5,),
    "malmo cafe": (5,),
    "aero": (5,),
    "strasse": (5,),
    "cafe\u0301 nai\u0308ve": (5,),
    "約１４００万": (0,),
    "人": None,
}


def test_pieces_of_unspaced_text_and_words_without_their_accents_are_found():
    index = hold(*FOREIGN)
    assert {phrase: index.find_phrases([phrase], 9) for phrase in PHRASES} == PHRASES
    for query, node in {"日本の首都": 0, "เมืองหลวงของไทย": 2, "จังหวัดเชียงใหม่": 3, "대한민국 수도": 4}.items():
        assert index.rank_nodes(query, 1) == [node]


def test_a_phrase_of_words_that_stand_nearly_everywhere_is_not_looked_for():
    texts = [f"The Who and the river, number {number}." for number in range(20)]
    bounded, unbounded = hold(*texts, most_read=5), hold(*texts)
    assert (unbounded.find_phrases(["the who"], 50), bounded.find_phrases(["the who"], 50)) == (tuple(range(20)), None)
    assert bounded.find_phrases(["number 7", "the who 7"], 50) == (7,)
    assert (bounded.find_phrases(["river"], 20), bounded.find_phrases(["river"], 19)) == (tuple(range(20)), None)
    assert len(bounded.search("the who and the river number", 9)) == 9


@settings(max_examples=30)
@given(st.lists(st.text(max_size=30), min_size=1, max_size=4), st.text(max_size=30))
def test_every_text_finds_itself_and_no_query_is_an_error(texts, query):
    index = hold(*texts)
    assert len(index.search(query, 9)) <= len(texts)
    for node, text in enumerate(texts):
        found = index.find_phrases([text], len(texts))
        assert found is None or node in found or not any(map(str.isalnum, text))
