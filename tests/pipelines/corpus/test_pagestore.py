import pytest

from pipelines.corpus.pagestore import PageStore, PageStoreWriter
from pipelines.errors import ConfigError


def test_texts_come_back_in_node_order(tmp_path):
    with PageStoreWriter(tmp_path) as writer:
        slots = [writer.append(text) for text in ("first", "zweiter – ☃", "", "left out")]
        writer.close([slots[2], slots[0], slots[1]])
    store = PageStore.open(tmp_path)
    assert [store.text(node) for node in range(len(store))] == ["", "first", "zweiter – ☃"]


@pytest.mark.parametrize("node", [-1, 1])
def test_other_nodes_are_an_index_error(tmp_path, node):
    with PageStoreWriter(tmp_path) as writer:
        writer.append("only")
        writer.close()
    with pytest.raises(IndexError, match="no node"):
        PageStore.open(tmp_path).text(node)


def test_a_store_of_nothing_opens(tmp_path):
    with PageStoreWriter(tmp_path) as writer:
        writer.close()
    assert len(PageStore.open(tmp_path)) == 0


def test_a_missing_store_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"texts\.zst"):
        PageStore.open(tmp_path)
