import bz2
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pipelines.corpus.build import build_corpus
from pipelines.corpus.manifest import place_unfinished
from pipelines.corpus.store import Corpus
from pipelines.errors import ConfigError, CorruptInput
from tests.chaos.driving import make_environment
from tests.pipelines.corpus.conftest import render_page

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


def test_a_page_whose_infobox_cannot_be_parsed_is_failed_and_no_article(make_corpus):
    deep = "{{Infobox bad|a=" + "{{" * 1500 + "x" + "}}" * 1500 + "}} [[B]]"
    corpus = make_corpus(("A", deep), ("B", "see [[A]]"))
    (failed,) = read_rows(corpus, "failed-00000")
    assert (failed["record_id"], failed["error"]) == ("page:1", "parse-crash")
    assert (corpus.find("A"), corpus.find("B"), corpus.graph.link_count) == (None, 0, 0)
    assert (corpus.manifest.counts.kept, corpus.manifest.counts.failed) == (1, 1)


def test_hostile_pages_are_failed_rows_and_the_dump_goes_on(write_dump, tmp_path):
    dump = write_dump(("A", "see [[B]]"), ("B", "see [[A]]"), ("C", ""))
    page = render_page(3, "C", "", 0, None)
    old, new = (bz2.compress(text.encode()) for text in (page, page.replace("<timestamp>", "<timestamp>in ")))
    assert dump.read_bytes().count(old) == 1
    dump.write_bytes(dump.read_bytes().replace(old, new))
    for workers in (1, 2):
        build_corpus(dump, tmp_path / f"{workers}" / "corpus", workers=workers, range_bytes=100)
        corpus = Corpus.open(tmp_path / f"{workers}" / "corpus")
        counts = corpus.manifest.counts
        assert (counts.rows_in, counts.kept, counts.rejected, counts.failed) == (3, 2, {}, 1)
        failed = [(row["record_id"], row["error"]) for row in read_rows(corpus, "failed-00000")]
        assert failed == [("page:3", "invalid-timestamp")]


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


def test_the_bytes_and_the_digest_follow_content_only(write_dump, tmp_path):
    moved = tmp_path / "elsewhere" / "other-pages-articles.xml.bz2"
    moved.parent.mkdir()
    moved.write_bytes(write_dump(*PAGES).read_bytes())
    for name, dump in {"a": write_dump(*PAGES), "b": moved}.items():
        build_corpus(dump, tmp_path / name)
    build_corpus(write_dump(*PAGES[:-1]), tmp_path / "c")
    assert list_files(tmp_path / "a") == list_files(tmp_path / "b") != list_files(tmp_path / "c")
    a, b, c = (Corpus.open(tmp_path / name).digest for name in "abc")
    assert a == b != c


def test_a_failed_build_leaves_nothing_and_the_next_clears_what_a_crash_left(write_dump, tmp_path):
    dump = write_dump(*PAGES)
    whole, out = dump.read_bytes(), tmp_path / "made" / "corpus"
    dump.write_bytes(whole.removesuffix(bz2.compress(b"</mediawiki>\n")))
    with pytest.raises(CorruptInput):
        build_corpus(dump, out)
    assert list(out.parent.iterdir()) == []
    (out.parent / ".tmp-corpus-0123").mkdir()
    dump.write_bytes(whole)
    build_corpus(dump, out)
    assert list(out.parent.iterdir()) == [out]
    with pytest.raises(ConfigError, match="exists"):
        build_corpus(dump, out)


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


def test_the_manifest_names_its_inputs_and_progress_its_phases(write_dump, tmp_path):
    seen = []
    dump = write_dump(*PAGES)
    build_corpus(dump, tmp_path / "out", progress=lambda *event: seen.append(event))
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["snapshot"] == "2025-01-31"
    assert manifest["inputs"][0]["sha256"] == hashlib.sha256(dump.read_bytes()).hexdigest()
    assert manifest["rows_in"] == manifest["kept"] + sum(manifest["rejected"].values()) + manifest["failed"]
    phases = list(dict.fromkeys(phase for phase, _, _ in seen))
    assert phases == ["pages", "properties", "titles", "links", "tables", "images", "search", "manifest"]
    size = dump.stat().st_size
    assert [event[1:] for event in seen if event[0] == "pages"][-2:] == [(0, size), (size, size)]


def write_redirects(*pairs):
    return [(name, f"#REDIRECT [[{target}]]", 0, target) for name, target in pairs]


def test_redirect_chains_end_at_their_target_and_cycles_are_refused(make_corpus):
    pairs = ("A", "B"), ("B", "Z"), ("C", "D"), ("D", "C"), ("E", "C"), ("F", "Help:F"), ("G", "F"), ("H", "H")
    corpus = make_corpus(("Z", "text"), *write_redirects(*pairs))
    assert [corpus.find(title) for title in "ABCDEFGHZ"] == [0, 0, *[None] * 6, 0]
    refused = {row["detail"]: row["reason"] for row in read_rows(corpus, "rejected-00000")}
    assert refused == {
        **{f"{name}: 'D' leads round in a circle": "redirect-cycle" for name in "C"},
        **{f"{name}: 'C' leads round in a circle": "redirect-cycle" for name in "DE"},
        "F: 'Help:F' is no article and leads to none": "dangling-redirect",
        "G: 'F' is no article and leads to none": "dangling-redirect",
        "H: 'H' leads round in a circle": "redirect-cycle",
    }


@pytest.mark.parametrize(
    ("pages", "failed"),
    [
        ([("A", "one"), ("A", "#REDIRECT [[B]]", 0, "B"), ("B", "two")], ["page:2"]),
        ([("A", "#REDIRECT [[B]]", 0, "B"), ("A", "one"), ("B", "two")], ["page:2"]),
        ([("A", "one"), ("B", "two"), ("A", "three"), ("A", "four")], ["page:3", "page:4"]),
    ],
)
def test_of_pages_with_one_title_the_first_is_kept(make_corpus, pages, failed):
    corpus = make_corpus(*pages)
    assert [row["record_id"] for row in read_rows(corpus, "failed-00000")] == failed
    assert len(corpus.article_nodes()) + corpus.manifest.counts.redirects == len(pages) - len(failed)


def list_files(folder):
    kinds = (".parquet", ".arrow", ".npy", ".db")
    paths = (path for path in sorted(folder.rglob("*")) if path.suffix in kinds and path.parent.name != "store")
    return {path.relative_to(folder): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


@pytest.mark.slow
@pytest.mark.parametrize(("range_bytes", "workers"), [(1, 1), (400, 2), (1 << 20, 2)])
def test_neither_the_cut_nor_the_workers_change_what_is_built(write_dump, tmp_path, range_bytes, workers):
    again = [(f"{page[0]} {number}", *page[1:]) for number in range(3) for page in PAGES]
    dump = write_dump(*PAGES, *again, *PAGES[:2])
    build_corpus(dump, tmp_path / "whole")
    build_corpus(dump, tmp_path / "cut", workers=workers, range_bytes=range_bytes)
    assert list_files(tmp_path / "whole") == list_files(tmp_path / "cut")
    whole, cut = (Corpus.open(tmp_path / name) for name in ("whole", "cut"))
    assert [whole.text(node) for node in whole.article_nodes()] == [cut.text(node) for node in cut.article_nodes()]
    assert whole.manifest.counts == cut.manifest.counts


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_a_killed_build_reads_only_what_was_not_read(write_dump, tmp_path, workers):
    text = "See [[Article 1]] and [[Article 2]]. " * 400
    dump = write_dump(*((f"Article {number}", f"{number} {text}") for number in range(600)))
    out = tmp_path / "out"
    code = f"build_corpus(Path({str(dump)!r}), Path({str(out)!r}), workers={workers}, range_bytes=40_000)"
    imports = "from pathlib import Path\nfrom pipelines.corpus.build import build_corpus\n"
    (tmp_path / "build_it.py").write_text(f"{imports}if __name__ == '__main__':\n    {code}\n")
    child = subprocess.Popen([sys.executable, tmp_path / "build_it.py"], cwd=Path.cwd(), env=make_environment())
    while len(list(place_unfinished(tmp_path).glob("*/*/part.json"))) < 3:
        assert child.poll() is None
        time.sleep(0.01)
    child.kill()
    child.wait()
    done = {
        path.parent.name: (path.parent / "texts.zst").stat().st_ino
        for path in place_unfinished(tmp_path).glob("*/*/part.json")
    }
    seen = []
    build_corpus(dump, out, workers=workers, range_bytes=40_000, progress=lambda *event: seen.append(event))
    ranges = len(list((out / "store").glob("texts-*.zst")))
    assert 3 <= len(done) < ranges
    # A part that was read again would have another file behind its name.
    kept = {path.name[6:11]: path.stat().st_ino for path in (out / "store").glob("texts-*.zst")}
    assert {name: kept[name] for name in done} == done
    begun = next(event for event in seen if event[0] == "pages" and event[2])
    assert 0 < begun[1] < begun[2] == dump.stat().st_size
    build_corpus(dump, tmp_path / "undisturbed", range_bytes=40_000)
    assert list_files(out) == list_files(tmp_path / "undisturbed")


TEXT = "See [[Article 1]] and [[Article 2]]. " * 300


def write_articles(write_dump, count):
    return write_dump(*((f"Article {number}", f"{number} {TEXT}") for number in range(count)))


def find_workers():
    """Return the child processes of this one that read ranges: those spawned by multiprocessing."""
    children = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            command = (folder / "cmdline").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if parent == os.getpid() and "spawn_main" in command:
            children.append(int(folder.name))
    return children


INTERRUPTED = """
import signal, sys, threading, time
from pathlib import Path
from pipelines.corpus.build import build_corpus, place_unfinished
from pipelines.stopping import heeding_signals
from tests.pipelines.corpus.test_build import find_workers

def tell():
    while not find_workers():
        time.sleep(0.01)
    print(*find_workers(), flush=True)

if __name__ == "__main__":
    with heeding_signals():
        threading.Thread(target=tell, daemon=True).start()
        build_corpus(Path(sys.argv[1]), Path(sys.argv[2]), workers=2, range_bytes=20_000)
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_processes_that_read_the_dump(write_dump, tmp_path, number):
    program = tmp_path / "program.py"
    program.write_text(INTERRUPTED)
    dump, environment = write_articles(write_dump, 2000), os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    command = [sys.executable, str(program), str(dump), str(tmp_path / "out")]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        workers = [int(word) for word in child.stdout.readline().split()]
        child.send_signal(number)
        _, said = child.communicate(timeout=60)
    assert workers
    assert said.rstrip().endswith("KeyboardInterrupt"), said
    assert not [worker for worker in workers if Path(f"/proc/{worker}").exists()]
