import numpy as np
import pytest

from pipelines.corpus.texts import PageStore, PageStoreWriter, StorePart, join_stores
from pipelines.errors import ConfigError


def write_part(folder, *texts):
    with PageStoreWriter(folder) as writer:
        for text in texts:
            writer.append(text)
    return StorePart(folder, np.ones(len(texts), dtype=bool))


def read_all(folder):
    store = PageStore.open(folder)
    return [store.text(node) for node in range(len(store))]


def test_texts_of_several_writers_come_back_in_order(tmp_path):
    parts = [write_part(tmp_path / "a", "first", "zweiter – ☃"), write_part(tmp_path / "b", "", "fourth")]
    assert join_stores(tmp_path / "store", parts) == 4
    assert read_all(tmp_path / "store") == ["first", "zweiter – ☃", "", "fourth"]


def test_a_text_that_is_left_out_takes_no_node(tmp_path):
    part = write_part(tmp_path / "a", "kept", "left out", "kept too")
    join_stores(tmp_path / "store", [StorePart(part.folder, np.array([True, False, True])), write_part(tmp_path / "b")])
    assert read_all(tmp_path / "store") == ["kept", "kept too"]


def test_a_store_outlives_the_parts_it_was_joined_from(tmp_path):
    part = write_part(tmp_path / "a", "still here")
    join_stores(tmp_path / "store", [part])
    for path in part.folder.iterdir():
        path.unlink()
    assert read_all(tmp_path / "store") == ["still here"]


@pytest.mark.parametrize("node", [-1, 1])
def test_other_nodes_are_an_index_error(tmp_path, node):
    join_stores(tmp_path / "store", [write_part(tmp_path / "a", "only")])
    with pytest.raises(IndexError, match="no node"):
        PageStore.open(tmp_path / "store").text(node)


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
