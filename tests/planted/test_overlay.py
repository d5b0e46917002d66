from dataclasses import fields, replace
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from pipelines.corpus.build import build_corpus
from pipelines.corpus.store import Corpus
from pipelines.corpus.tables import FACTS
from pipelines.errors import ConfigError
from pipelines.graph.proofs import cite_fact, make_node
from pipelines.toy.publishing import write_dump
from pipelines.toy.wikitext import ToyPage, compose_wiki
from pipelines.toy.world import WorldConfig, build_world
from schemas.proofs import Evidence, Hop, Proof
from tests.planted.scenes import OverlayCorpus, relocate

QUERIES = ("bridge over the river", "born in", "Quarvo Bridge", "town", "painter 1870")
NEW = "Quarvo Bridge"


def write_corpus(folder, pages):
    folder.mkdir()
    dump = folder / "toywiki-20260101-pages-articles-multistream.xml.bz2"
    write_dump(pages, dump)
    build_corpus(dump, folder / "corpus")
    return Corpus.open(folder / "corpus")


@pytest.fixture(scope="module")
def pages():
    """The pages of a toy wiki, and one with a link to a page that does not exist."""
    pages = [page for page in compose_wiki(build_world(WorldConfig(entities=80)), {}).pages if page.namespace == 0]
    last = pages[-1].page_id
    orphan = ToyPage("Orphan", f"'''Orphan''' is a town near [[{NEW}|the new bridge]].", page_id=last + 1, revision=9)
    other = ToyPage("Other", f"'''Other''' is a town by [[{NEW}|the new bridge]].", page_id=last + 2, revision=9)
    return [*pages, orphan, other]


@pytest.fixture(scope="module")
def base(pages, tmp_path_factory):
    corpus = write_corpus(tmp_path_factory.mktemp("base") / "wiki", pages)
    yield corpus
    corpus.close()


def list_facts(corpus):
    tables = list(corpus.read_fact_tables(FACTS.names))
    return pa.concat_tables(tables).to_pylist()


def assert_same(overlay, corpus):
    """Compare everything that a check may read."""
    assert overlay.article_nodes() == corpus.article_nodes()
    assert overlay.manifest.counts.articles == corpus.manifest.counts.articles
    for node in corpus.article_nodes():
        assert overlay.page(node) == corpus.page(node)
        assert overlay.text(node) == corpus.text(node)
        assert overlay.facts(node) == corpus.facts(node)
        assert overlay.aliases(node) == corpus.aliases(node)
        assert overlay.links(node) == corpus.links(node)
        assert overlay.find(corpus.page(node).title) == node
    for field in fields(corpus.graph):
        assert np.array_equal(getattr(overlay.graph, field.name), getattr(corpus.graph, field.name)), field.name
    for kind in {corpus.page(node).type for node in corpus.article_nodes()}:
        assert overlay.nodes_of_type(kind).tolist() == corpus.nodes_of_type(kind).tolist()
    assert list_facts(overlay) == list_facts(corpus)
    for query in QUERIES:
        assert [(found.node, found.text) for found in overlay.search(query, 15)] == [
            (found.node, found.text) for found in corpus.search(query, 15)
        ]
        assert overlay.find_phrases([query], 20) == corpus.find_phrases([query], 20)


def write_changes(base, pages, edits, added, folder):
    """Build the corpus that an overlay stands for: the same pages in the same order, as a dump."""
    titles = {base.page(node).title: node for node in base.article_nodes()}
    changed = []
    for page in pages:
        node = titles.get(page.title) if page.redirect is None else None
        changed.append(replace(page, text=edits[node], revision=page.revision + 1) if node in edits else page)
    last = max(page.page_id for page in pages if page.redirect is None)
    changed += [
        ToyPage(title, text, page_id=last + place, revision=last + place, timestamp="2000-01-01T00:00:00Z")
        for place, (title, text) in enumerate(added, start=1)
    ]
    return write_corpus(folder, changed)


def test_an_overlay_equals_its_base_without_edits_and_but_for_revisions_with_every_page_read_anew(base):
    assert_same(OverlayCorpus(base, {}), base)
    overlay = OverlayCorpus(base, {node: base.text(node) for node in base.article_nodes()})
    for node in base.article_nodes():
        assert replace(overlay.page(node), revision=base.page(node).revision) == base.page(node)
        assert overlay.facts(node) == base.facts(node)
        assert overlay.aliases(node) == base.aliases(node)


@pytest.mark.parametrize("seed", range(4))
def test_an_overlay_equals_the_corpus_built_from_its_pages(base, pages, tmp_path, seed):
    rng = Random(seed)
    nodes = [node for node in base.article_nodes() if base.page(node).infobox]
    first, second, third = rng.sample(nodes, 3)
    title = base.page(third).title
    edits = {
        first: base.text(first).replace("[[", f"[[{title}|the thing]] and [[{title}|thing]], [[", 2),
        second: base.text(second) + f"\n\n[[{title}|the thing]] stands near [[{NEW}|the bridge]].",
        third: base.text(third).replace("| ", f"| nearest = [[{base.page(first).title}|Nearby]]\n| ", 1)[:900],
    }
    box = base.text(second)[: base.text(second).find("\n}}") + 3]
    added = [(NEW, f"{box}\n'''{NEW}''', or '''Big Q''', is a bridge in [[{title}]]."), ("Zzyzx Road", "A road.")]
    corpus = write_changes(base, pages, edits, added, tmp_path / "wiki")
    assert_same(OverlayCorpus(base, edits, added), corpus)
    corpus.close()


def test_links_to_a_page_that_is_added_lead_somewhere(base):
    orphan = base.find("Orphan")
    overlay = OverlayCorpus(base, {}, [(NEW, f"'''{NEW}''' is a bridge.")])
    new = overlay.find(NEW)
    assert overlay.graph.targets_of(orphan).tolist() == [new]
    assert overlay.page(new).in_degree == 2
    assert "the new bridge" in overlay.aliases(new)
    assert overlay.page(orphan).revision == base.page(orphan).revision


def test_the_digest_names_the_changes(base):
    text = base.text(0)
    changes = [({},), ({0: text + "a"},), ({0: text + "b"},), ({}, [("A page", "a")])]
    digests = {base.digest, *(OverlayCorpus(base, *change).digest for change in changes)}
    assert len(digests) == 5
    assert OverlayCorpus(base, {0: text + "a"}).digest in digests


def test_a_closed_overlay_still_reads_and_leaves_its_base_open(base):
    overlay = OverlayCorpus(base, {0: base.text(0) + "\nQuendelbrot."})
    assert [found.node for found in overlay.search("Quendelbrot", 3)] == [0]
    overlay.close()
    assert [found.node for found in overlay.search("Quendelbrot", 3)] == [0]
    assert not base.search("Quendelbrot", 3)
    overlay.close()


@pytest.mark.parametrize(
    ("edits", "added", "said"),
    [
        ({10_000: "x"}, [], r"nodes \[10000\]"),
        ({}, [("Orphan", "x")], r"taken: \['Orphan'\]"),
        ({}, [("New", "x"), ("New", "y")], "differ"),
    ],
)
def test_pages_that_cannot_be_are_refused(base, edits, added, said):
    with pytest.raises(ConfigError, match=said):
        OverlayCorpus(base, edits, added)


@pytest.fixture(scope="module")
def proof(base):
    """A proof of one hop with an infobox field, and a sentence for the answer."""
    source = next(n for n in base.article_nodes() if any(f.link_start >= 0 for f in base.facts(n)))
    fact = next(f for f in base.facts(source) if f.link_start >= 0)
    text = base.text(fact.target)
    start = text.index("'''")
    sentence = Evidence(
        page_id=base.page(fact.target).page_id, title=base.page(fact.target).title,
        revision=base.page(fact.target).revision, kind="sentence", key="", start=start, end=start + 40,
        text=text[start : start + 40], link_start=-1,
    )  # fmt: skip
    hop = Hop(
        index=1, relation=fact.key, subject_id=base.page(source).page_id, object_id=base.page(fact.target).page_id,
        clause="", evidence=cite_fact(base, fact),
    )  # fmt: skip
    return Proof(
        corpus=base.digest, snapshot=base.snapshot,
        nodes=(make_node(base, source, "anchor"), make_node(base, fact.target, "answer")), hops=(hop,),
        answer_relation="x", answer_evidence=sentence, constraints=(), counts=(), alias_digest="",
    )  # fmt: skip


def test_a_relocated_proof_points_at_the_same_words_in_the_changed_pages(base, proof):
    edits = {base.find(node.title): "A new first line.\n" + base.text(base.find(node.title)) for node in proof.nodes}
    overlay = OverlayCorpus(base, edits)
    moved = relocate(proof, overlay)
    assert moved.corpus == overlay.digest
    spans = [(each.hops[0].evidence, each.answer_evidence) for each in (proof, moved)]
    for before, after in zip(*spans, strict=True):
        text = overlay.text(overlay.find(after.title))
        assert text[after.start : after.end] == after.text == before.text
        assert after.start == before.start + len("A new first line.\n")
        assert after.revision == before.revision + 1
    link = moved.hops[0].evidence
    assert overlay.text(overlay.find(link.title)).startswith("[[", link.link_start)


def test_a_relocated_proof_of_unchanged_pages_keeps_its_spans_and_counts_links_anew(base, proof):
    overlay = OverlayCorpus(base, {}, [("Far away", f"See [[{proof.nodes[1].title}]].")])
    moved = relocate(proof, overlay)
    assert [hop.evidence for hop in moved.hops] == [hop.evidence for hop in proof.hops]
    assert moved.nodes[1].in_degree == proof.nodes[1].in_degree + 1
    assert moved.alias_digest
    # Evidence that a changed page no longer has stays where it was.
    node = base.find(proof.nodes[0].title)
    moved = relocate(proof, OverlayCorpus(base, {node: "Nothing is left."}))
    assert moved.hops[0].evidence == proof.hops[0].evidence
