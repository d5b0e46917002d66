import numpy as np
import pytest

from pipelines.corpus.texts import (
    PageStore,
    PageStoreWriter,
    PassageIndex,
    join_stores,
    search_passages,
    write_passages,
)
from pipelines.errors import ConfigError


def write_part(folder, *texts):
    with PageStoreWriter(folder) as writer:
        for text in texts:
            writer.append(text)
    return folder, np.ones(len(texts), dtype=bool)


def test_kept_texts_of_several_writers_come_back_in_order_even_without_their_parts(tmp_path):
    first = write_part(tmp_path / "a", "first", "left out", "zweiter – ☃")[0], np.array([True, False, True])
    join_stores(tmp_path / "store", [first, write_part(tmp_path / "b"), write_part(tmp_path / "c", "", "fourth")])
    for path in first[0].iterdir():
        path.unlink()
    store = PageStore.open(tmp_path / "store")
    assert [store.text(node) for node in range(len(store))] == ["first", "zweiter – ☃", "", "fourth"]
    for node in (-1, 4):
        with pytest.raises(IndexError, match="no node"):
            store.text(node)


@pytest.mark.parametrize("parts", [0, 2])
def test_a_store_of_nothing_opens(tmp_path, parts):
    join_stores(tmp_path / "store", [write_part(tmp_path / str(number)) for number in range(parts)])
    assert len(PageStore.open(tmp_path / "store")) == 0


@pytest.mark.parametrize("lost", ["starts.npy", "spans.npy", "lengths.npy", "texts-00000.zst"])
def test_a_store_that_lacks_a_file_is_refused(tmp_path, lost):
    join_stores(tmp_path / "store", [write_part(tmp_path / "a", "only")])
    (tmp_path / "store" / lost).unlink()
    with pytest.raises(ConfigError, match=lost):
        PageStore.open(tmp_path / "store")


def test_a_passage_that_is_quoted_comes_before_those_that_only_hold_the_words(tmp_path):
    quote = "It borders Kelm and Velm on the north, and Orsa on the west."
    others = [f"{'Kelm borders Velm, north and west of Orsa. ' * 3}Number {number}." for number in range(9)]
    texts = [*others, f"{'A land of rain. ' * 20}{quote}"]
    write_passages(tmp_path / "search.db", ((number, f"T{number}", text) for number, text in enumerate(texts)))
    with PassageIndex(tmp_path / "search.db").borrow() as connection:
        quoted, scattered = (search_passages(connection, query, 5) for query in (quote, "borders Orsa, Kelm, Velm"))
    assert [quoted[0].node, len(quoted), len({passage.node for passage in quoted})] == [9, 5, 5]
    assert 9 not in [passage.node for passage in scattered]
