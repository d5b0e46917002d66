from itertools import product

import pytest

from pipelines.agent.depicting import FileEvidence, explain_evidence, gather_evidence, weigh_evidence
from pipelines.checks.pictures import METADATA_PASSES
from schemas.corpus import CorpusImage
from tests.toy import box, build_toy_corpus

PAGES = {
    "Kelm Bridge": box("bridge", "'''Kelm Bridge''' is a bridge.", "length = 320 m"),
    "Kelm (town)": box("settlement", "'''Kelm''' is a town.", "settlement_type = Town"),
    "Kelm Bridge Station": box("station", "'''Kelm Bridge Station''' is a railway station.", "opened = 1900"),
    "Black Sea": box("sea", "The '''Black Sea''' is a sea.", "length = 3"),
    "Map Lake": box("lake", "'''Map Lake''' is a lake.", "length = 3"),
    "Kelm (disambiguation)": "'''Kelm''' may mean: [[Kelm Bridge]]. {{disambiguation}}",
    "Hope": box("ship", "'''Hope''' was a ship.", "length = 3"),
}
REDIRECTS = {"Brücke von Kelm": "Kelm Bridge"}
SOURCES = ("infobox", "page", "search")
NAMED = ("another", "not", "partly", "anchor")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    corpus = build_toy_corpus(tmp_path_factory.mktemp("files"), PAGES, REDIRECTS)
    yield corpus
    corpus.close()


def make_image(file, titles=(), depicts=()):
    return CorpusImage(
        file=file, title=tuple(titles), path=file, sha256="", width=0, height=0, format="", author="", licence="",
        licence_url="", source_url="", phash="", error="", depicts=tuple(depicts),
    )  # fmt: skip


def gather(corpus, file, title="Kelm Bridge", source="page", **image):
    return gather_evidence(corpus, corpus.find(title), make_image(file, **image), source)


@pytest.mark.parametrize(
    ("file", "named"),
    [
        ("Kelm Bridge.jpg", "anchor"),
        ("KELM-BRIDGE from the north 2019.jpg", "anchor"),
        ("View of Kelm Bridge.jpg", "anchor"),
        ("Bruecke.jpg", "not"),
        ("Brucke von Kelm.png", "anchor"),
        ("Old Kelm.jpg", "partly"),
        ("Kelm.jpg", "partly"),
        ("DSC 0012.jpg", "not"),
        ("Kelmscott manor.jpg", "not"),
        ("Bridge.jpg", "not"),
        ("Kelm Bridge Station, entrance.jpg", "another"),
        ("Black Sea 3.jpg", "another"),
        ("Black Sea, Kelm 3.jpg", "partly"),
        ("Black Sea bridge.jpg", "another"),
    ],
)
def test_a_file_name_names_the_anchor_or_another_or_nothing(corpus, file, named):
    assert gather(corpus, file).named == named


def test_ordinary_words_name_only_together(corpus):
    assert gather(corpus, "Black Sea.jpg", "Black Sea").named == "anchor"
    assert gather(corpus, "Black cat.jpg", "Black Sea").named == "not"
    assert gather(corpus, "Hope and glory.jpg", "Hope").named == "not"


@pytest.mark.parametrize(
    ("file", "contrary"),
    [
        ("Map of Kelm Bridge.png", ("map",)),
        ("Kelm Bridge locator map.png", ("locator", "map")),
        ("Coat of arms of Kelm.png", ("coat", "arms")),
        ("Signature of Kelm.png", ("signature",)),
        ("Kelm Bridge.jpg", ()),
        ("Mapping the Kelm Bridge.jpg", ()),
    ],
)
def test_words_for_drawings_and_parts_speak_against_a_file(corpus, file, contrary):
    assert gather(corpus, file).contrary == contrary


def test_a_word_of_the_anchors_own_name_does_not_speak_against_it(corpus):
    assert gather(corpus, "Map Lake.jpg", "Map Lake").contrary == ()
    assert gather(corpus, "Map of Map Lake flag.jpg", "Map Lake").contrary == ("flag",)


def test_a_picture_that_leads_another_article_is_not_single(corpus):
    assert gather(corpus, "A.jpg", titles=["Kelm Bridge"]).single
    assert gather(corpus, "A.jpg").single
    assert not gather(corpus, "A.jpg", titles=["Kelm Bridge", "Kelm (town)"]).single
    assert not gather(corpus, "A.jpg", titles=["Kelm (town)"]).single


def test_what_commons_says_is_depicted_needs_a_qid_on_both_sides(demo_corpus):
    node = next(node for node in demo_corpus.article_nodes() if demo_corpus.page(node).qid)
    qid = demo_corpus.page(node).qid

    def depicts(*qids):
        return gather_evidence(demo_corpus, node, make_image("A.jpg", depicts=qids), "page").depicts

    assert (depicts(), depicts(qid), depicts("Q1", qid), depicts("Q1")) == (None, True, True, False)


def test_without_a_qid_nothing_is_said_of_what_is_depicted(corpus):
    assert gather(corpus, "A.jpg", depicts=["Q1"]).depicts is None


@pytest.mark.parametrize(
    ("evidence", "passes"),
    [
        (FileEvidence("infobox", "not", True, None, ()), True),
        (FileEvidence("infobox", "not", False, None, ()), False),
        (FileEvidence("infobox", "anchor", False, None, ()), True),
        (FileEvidence("infobox", "another", True, None, ()), False),
        (FileEvidence("infobox", "anchor", True, False, ()), False),
        (FileEvidence("infobox", "anchor", True, None, ("map",)), False),
        (FileEvidence("page", "anchor", True, None, ()), True),
        (FileEvidence("page", "partly", True, None, ()), False),
        (FileEvidence("page", "not", False, True, ()), True),
        (FileEvidence("search", "anchor", True, None, ()), False),
        (FileEvidence("search", "not", True, True, ()), True),
        (FileEvidence("search", "anchor", True, True, ("plan",)), False),
    ],
)
def test_what_passes_stands_in_the_table(evidence, passes):
    assert (weigh_evidence(evidence) >= METADATA_PASSES) == passes


def test_more_evidence_never_lowers_the_score():
    ladders = (SOURCES[::-1], NAMED, (False, True), (False, None, True), (("map",), ()))
    for places in product(*(range(len(ladder)) for ladder in ladders)):
        points = weigh_evidence(FileEvidence(*(ladder[at] for ladder, at in zip(ladders, places, strict=True))))
        assert 0.0 <= points <= 1.0
        for step, ladder in enumerate(ladders):
            if places[step] + 1 < len(ladder):
                better = [at + (number == step) for number, at in enumerate(places)]
                more = FileEvidence(*(ladder[at] for ladder, at in zip(ladders, better, strict=True)))
                assert weigh_evidence(more) >= points


def test_what_commons_says_against_a_picture_refuses_it_whatever_else_is_known():
    for source, named, single in product(SOURCES, NAMED, (False, True)):
        assert weigh_evidence(FileEvidence(source, named, single, False, ())) < METADATA_PASSES


def test_evidence_is_told_in_words():
    told = explain_evidence(FileEvidence("page", "another", False, False, ("map", "logo")))
    assert told == (
        "source page, file named for another article, leads other articles, depicts others, file name says map, logo"
    )
