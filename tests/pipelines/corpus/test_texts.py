import numpy as np
import pytest

from pipelines.corpus.texts import PageStore, PageStoreWriter, join_stores
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


@pytest.mark.parametrize("lost", ["starts.npy", "spans.npy", "lengths.npy", "texts-00000.zst"])
def test_a_store_that_lacks_a_file_is_refused(tmp_path, lost):
    join_stores(tmp_path / "store", [write_part(tmp_path / "a", "only")])
    (tmp_path / "store" / lost).unlink()
    with pytest.raises(ConfigError, match=lost):
        PageStore.open(tmp_path / "store")
