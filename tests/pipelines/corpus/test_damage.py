"""A corpus of any size: every bit that turns over in its files is found by what reads it, block by block."""

import random
from pathlib import Path

import pytest

from pipelines.checksums import forget_checks
from pipelines.corpus.manifest import read_manifest
from pipelines.corpus.store import Corpus
from pipelines.corpus.tables import FACTS
from pipelines.errors import Damaged
from tests.toy import build_toy_corpus

FLIPS = 150


def open_large(folder):
    """Open a corpus as one that is too large to be checked whole."""
    forget_checks()
    return Corpus(folder, read_manifest(folder / "manifest.json"))


def read_all(folder):
    """Return what every reader of a corpus gives."""
    corpus = open_large(folder)
    nodes = corpus.article_nodes()
    titles = [corpus.page(node).title for node in nodes]
    columns = [name for name in FACTS.names if name in ("node", "key", "text", "target")]
    graph = corpus.graph
    links = (graph.targets_of, graph.positions_of, graph.sources_of)
    found = (
        [(corpus.page(node), corpus.text(node), corpus.facts(node), corpus.aliases(node)) for node in nodes],
        [corpus.find(title) for title in (*titles, "Tolland", "nowhere")],
        [[part(node).tolist() for part in links] for node in nodes],
        graph.in_degree.tolist(),
        [table.to_pylist() for table in corpus.read_fact_tables(columns)],
        {kind: corpus.nodes_of_type(kind).tolist() for kind in sorted(corpus.types)},
        [corpus.search(title, 5) for title in titles],
        corpus.find_phrases(["Valdonia", "an architect"], 100),
        corpus.image("none.jpg"),
        [corpus.table(name).read_bytes() for name in ("pages", "images", "aliases")],
    )
    corpus.close()
    return found


def read_or_name(folder):
    """Return what the readers give, or the damaged file."""
    try:
        return read_all(folder)
    except Damaged as error:
        return error.path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return build_toy_corpus(tmp_path_factory.mktemp("damage")).folder


def test_every_bit_that_turns_over_is_named_or_read_by_nobody(folder):
    whole, rng = read_all(folder), random.Random(20)
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)
    named = set()
    for number in range(FLIPS):
        path = files[number % len(files)]
        data = path.read_bytes()
        place = rng.randrange(len(data))
        path.write_bytes(data[:place] + bytes([data[place] ^ 1 << rng.randrange(8)]) + data[place + 1 :])
        found = read_or_name(folder)
        path.write_bytes(data)
        if isinstance(found, Path):
            named.add(path.relative_to(folder).as_posix())
        assert found in (whole, path), path
    unread = ("rejected", "failed", "redirects", "images")
    names = {path.relative_to(folder).as_posix() for path in files}
    assert {name for name in names if not name.startswith(unread)} <= named


def test_a_corpus_is_opened_without_its_damaged_file_being_read_and_refused_if_it_is_small(folder):
    path = folder / "store" / "texts-00000.zst"
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    try:
        assert open_large(folder).page(0).title
        with pytest.raises(Damaged, match=r"texts-00000\.zst: has other bytes"):
            Corpus.open(folder)
    finally:
        path.write_bytes(data)
