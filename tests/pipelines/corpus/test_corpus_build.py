import bz2
import hashlib
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pipelines.corpus import build
from pipelines.corpus.build import CorpusOptions, build_corpus
from pipelines.corpus.redirects import follow_redirects
from pipelines.corpus.store import Corpus
from pipelines.errors import ConfigError, CorruptInput

PAGES = [
    (
        "Kelm Bridge",
        "{{Infobox bridge|crosses=[[Ost]]|name={{odd}}}}\n'''Kelm Bridge''' is a bridge over the [[River Ost]].",
    ),
    (
        "River Ost",
        "The '''Ost''' is a river. See [[Kelm Bridge|the bridge]], [[Ost]], [[Nowhere]], [[Category:Rivers]].",
    ),
    ("Ost", "#REDIRECT [[River Ost]]", 0, "River Ost"),
    ("The Ost", "#REDIRECT [[Ost]]", 0, "Ost"),
    ("Gone", "#REDIRECT [[Nowhere]]", 0, "Nowhere"),
    ("Round", "#REDIRECT [[Round and round]]", 0, "Round and round"),
    ("Round and round", "#REDIRECT [[Round]]", 0, "Round"),
    ("Category:Rivers", "text", 14),
    ("Ada (disambiguation)", "'''Ada''' may be: [[Kelm Bridge|the bridge]]"),
]


def read_rows(corpus, name):
    return pq.read_table(corpus.folder / f"{name}.parquet").to_pylist()


def test_every_page_ends_in_one_place(make_corpus):
    corpus = make_corpus(*PAGES)
    counts = corpus.manifest.counts
    assert (counts.rows_in, counts.kept, counts.failed) == (9, 5, 0)
    assert counts.rejected == {"dangling-redirect": 1, "namespace": 1, "redirect-cycle": 2}
    reasons = {row["record_id"]: row["reason"] for row in read_rows(corpus, "rejected-00000")}
    assert reasons == {
        "page:5": "dangling-redirect",
        "page:6": "redirect-cycle",
        "page:7": "redirect-cycle",
        "page:8": "namespace",
    }


def test_a_page_whose_infobox_cannot_be_parsed_is_failed_and_no_article(make_corpus, monkeypatch):
    monkeypatch.setattr(build, "read_infobox", "tests.pipelines.corpus.slow_parsers.refuse_bad_infobox")
    corpus = make_corpus(("A", "{{Infobox bad}} [[B]]"), ("B", "see [[A]]"))
    assert read_rows(corpus, "failed-00000") == [{"record_id": "page:1", "error": "too-odd", "detail": "A: on purpose"}]
    assert (corpus.find("A"), corpus.find("B"), corpus.graph.link_count) == (None, 0, 0)
    assert (corpus.manifest.counts.kept, corpus.manifest.counts.failed) == (1, 1)


def test_a_second_page_of_the_same_title_is_failed(make_corpus):
    corpus = make_corpus(("A", "one"), ("A", "two"))
    assert [row["error"] for row in read_rows(corpus, "failed-00000")] == ["duplicate-page"]
    assert corpus.text(0) == "one"


def test_links_follow_redirects_and_point_at_their_brackets(make_corpus):
    corpus = make_corpus(*PAGES)
    bridge, river = corpus.find("Kelm Bridge"), corpus.find("River Ost")
    assert corpus.graph.targets_of(bridge).tolist() == [river]
    position = corpus.graph.find_link(bridge, river)
    assert corpus.text(bridge)[position:].startswith("[[Ost]]")
    assert corpus.graph.in_degree[bridge] == 2


def test_facts_name_their_target_and_span(make_corpus):
    corpus = make_corpus(*PAGES)
    (fact,) = corpus.facts(corpus.find("Kelm Bridge"))
    text = corpus.text(fact.node)
    assert (fact.key, fact.text, fact.target, fact.value_count) == ("crosses", "Ost", corpus.find("River Ost"), 1)
    assert text[fact.start : fact.end] == "[[Ost]]"
    assert text[fact.link_start : fact.link_start + 2] == "[["


def test_unreadable_values_count_but_make_no_row(make_corpus):
    corpus = make_corpus(("A", "{{Infobox x|k={{ubl|one|{{odd}}}}}}"))
    assert [(fact.text, fact.value_index, fact.value_count) for fact in corpus.facts(0)] == [("one", 0, 2)]


def test_aliases_come_from_titles_redirects_bold_and_anchors(make_corpus):
    corpus = make_corpus(*PAGES)
    rows = {(row["node"], row["alias"]): row["source"] for row in read_rows(corpus, "aliases")}
    bridge, river, ada = (corpus.find(title) for title in ("Kelm Bridge", "River Ost", "Ada (disambiguation)"))
    assert rows == {
        (bridge, "Kelm Bridge"): "title",
        (bridge, "the bridge"): "anchor",
        (river, "Ost"): "redirect",
        (river, "The Ost"): "redirect",
        (river, "River Ost"): "title",
        (ada, "Ada"): "title-base",
        (ada, "Ada (disambiguation)"): "title",
    }


def test_two_builds_give_the_same_bytes(write_dump, tmp_path):
    dump = write_dump(*PAGES)
    for name in ("one", "two"):
        build_corpus(dump, tmp_path / name)
    first, second = (
        {
            path.relative_to(tmp_path / name): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted((tmp_path / name).rglob("*"))
            if path.suffix in (".parquet", ".npy", ".zst")
        }
        for name in ("one", "two")
    )
    assert first == second
    assert len(first) >= 15
    assert Corpus.open(tmp_path / "one").digest == Corpus.open(tmp_path / "two").digest


def test_the_digest_follows_content_and_options_only(write_dump, tmp_path):
    dump = write_dump(*PAGES)
    moved = tmp_path / "elsewhere" / "other-pages-articles.xml.bz2"
    moved.parent.mkdir()
    moved.write_bytes(dump.read_bytes())
    build_corpus(dump, tmp_path / "a", CorpusOptions(name="x"))
    build_corpus(moved, tmp_path / "b")
    build_corpus(dump, tmp_path / "c", CorpusOptions(anchor_pages=5))
    a, b, c = (Corpus.open(tmp_path / name).digest for name in "abc")
    assert a == b != c


def test_a_failed_build_leaves_nothing(write_dump, tmp_path):
    dump = write_dump(*PAGES)
    dump.write_bytes(dump.read_bytes().removesuffix(bz2.compress(b"</mediawiki>\n")))
    with pytest.raises(CorruptInput):
        build_corpus(dump, tmp_path / "made" / "corpus")
    assert list((tmp_path / "made").iterdir()) == []


def test_what_an_earlier_crash_left_is_removed(write_dump, tmp_path):
    left = tmp_path / "made" / ".tmp-corpus-0123"
    left.mkdir(parents=True)
    build_corpus(write_dump(*PAGES), tmp_path / "made" / "corpus")
    assert [path.name for path in (tmp_path / "made").iterdir()] == ["corpus"]


def test_an_existing_corpus_is_never_overwritten(write_dump, tmp_path):
    dump = write_dump(*PAGES)
    build_corpus(dump, tmp_path / "out")
    with pytest.raises(ConfigError, match="exists"):
        build_corpus(dump, tmp_path / "out")


def test_side_files_give_qids_counts_and_images(write_dump, write_sql, tmp_path):
    prefix = "toywiki-20250131"
    props = "(1,'wikibase_item','Q7'),(1,'page_image_free','Kelm_B.jpg'),(2,'disambiguation','')"
    write_sql(f"{prefix}-page_props.sql.gz", "page_props", ["pp_page", "pp_propname", "pp_value"], props)
    wikidata = "wikidatawiki-20250131"
    columns = ["page_id", "page_namespace", "page_title"]
    write_sql(f"{wikidata}-page.sql.gz", "page", columns, "(50,0,'Q7'),(51,120,'P7')")
    counts = "(50,'wb-sitelinks','12'),(50,'wb-claims','34'),(51,'wb-claims','9')"
    write_sql(f"{wikidata}-page_props.sql.gz", "page_props", ["pp_page", "pp_propname", "pp_value"], counts)
    build_corpus(write_dump(*PAGES, name=f"{prefix}-pages-articles.xml"), tmp_path / "out")
    corpus = Corpus.open(tmp_path / "out")
    bridge, river = corpus.page(0), corpus.page(1)
    assert (bridge.qid, bridge.sitelinks, bridge.statements) == ("Q7", 12, 34)
    assert (bridge.image, bridge.image_free) == ("Kelm B.jpg", True)
    assert (river.qid, river.sitelinks, river.is_disambiguation) == ("", -1, True)
    assert [file.role for file in corpus.manifest.inputs] == [
        "dump",
        "page_props",
        "wikidata_page",
        "wikidata_page_props",
    ]


def test_the_manifest_tells_inputs_rows_and_snapshot(write_dump, tmp_path):
    dump = write_dump(*PAGES)
    build_corpus(dump, tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["snapshot"] == "2025-01-31"
    assert manifest["inputs"][0]["sha256"] == hashlib.sha256(dump.read_bytes()).hexdigest()
    assert manifest["rows_in"] == manifest["kept"] + sum(manifest["rejected"].values()) + manifest["failed"]


def test_progress_names_phases_and_counts(write_dump, tmp_path):
    seen = []
    build_corpus(write_dump(*PAGES), tmp_path / "out", progress=lambda *event: seen.append(event))
    phases = list(dict.fromkeys(phase for phase, _, _ in seen))
    assert phases == ["properties", "pages", "links", "tables", "images", "search", "manifest"]
    assert ("pages", 9, 0) in seen


def test_redirect_chains_end_at_their_target_and_cycles_are_refused():
    ends, refused = follow_redirects({"Z": 4}, {"A": "B", "B": "Z", "C": "D", "D": "C", "E": "C", "F": "", "G": "F"})
    assert ends == {"A": 4, "B": 4}
    assert {title: reason for title, (reason, _) in refused.items()} == {
        "C": "redirect-cycle",
        "D": "redirect-cycle",
        "E": "redirect-cycle",
        "F": "dangling-redirect",
        "G": "dangling-redirect",
    }


@pytest.mark.slow
def test_the_real_slice_gives_the_counts_of_its_readme(shared_data, tmp_path):
    dump = shared_data / "enwiki-slice" / "enwiki-slice-pages-articles-multistream.xml.bz2"
    counts = build_corpus(Path(dump), tmp_path / "slice")
    corpus = Corpus.open(tmp_path / "slice")
    assert (counts.rows_in, counts.articles, counts.redirects, counts.failed) == (4879, 4736, 64, 0)
    # The README counts 98,279 edges from pagelinks; six of them are in gallery captions, which are not read here.
    assert counts.links == 98_279 - 6
    assert corpus.graph.in_degree.max() == corpus.page(corpus.find("United States")).in_degree == 1404
    facts = {(fact.key, fact.target) for fact in corpus.facts(corpus.find("Algeria"))}
    assert ("capital", corpus.find("Algiers")) in facts
