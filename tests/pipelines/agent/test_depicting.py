import asyncio
import hashlib
import io
import zlib

import numpy as np
import pytest
from PIL import Image

from pipelines.agent import depicting
from pipelines.agent.depicting import (
    METADATA_PASSES,
    ClipRanker,
    MetadataRanker,
    PictureCandidate,
    Ranked,
    check_depiction,
    choose_distractors,
    find_lead_picture,
    weigh_file,
)
from pipelines.errors import RecordFailed
from pipelines.services.protocols import PictureFile
from schemas.corpus import CorpusImage
from tests.toy import box, build_toy_corpus

BRIDGES = [f"Bridge {number:02d}" for number in range(30)]
ANCHOR = "Bridge 00"
ARCHITECT = "Mira Tolland"
LONE = "Lone Shrub"
WIDTH = 64


def make_png(name):
    buffer = io.BytesIO()
    Image.frombytes("RGB", (4, 1), hashlib.sha256(name.encode()).digest()[:12]).save(buffer, "PNG")
    return buffer.getvalue()


def aim(*names):
    """A unit vector between those of some names; one name is near-orthogonal to any other."""
    rows = [np.random.default_rng(zlib.crc32(name.encode())).standard_normal(WIDTH) for name in names]
    vector = np.sum(rows, axis=0)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


class FakeEncoder:
    """Knows what each picture shows; ``likeness`` of a description decides its vector."""

    name = "fake"
    identity = "fake@1"

    def __init__(self, shown, described=None, broken=()):
        self.shown = shown
        self.described = described or {}
        self.broken = set(broken)
        self.calls = []

    async def encode_texts(self, texts):
        self.calls.append(("texts", len(texts)))
        names = [text.partition(",")[0] for text in texts]
        return np.stack([aim(*self.described.get(name, (name,))) for name in names])

    async def encode_pictures(self, pictures):
        self.calls.append(("pictures", len(pictures)))
        for picture in pictures:
            if picture.sha256 in self.broken:
                raise RecordFailed("picture-undecodable", picture.sha256)
        return np.stack([aim(*self.shown[picture.sha256]) for picture in pictures])


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("depicted") / "world"
    (folder / "images").mkdir(parents=True)
    rows = ["file\tauthor\tlicence\tlicence_url\tsource_url"]
    pages = {}
    for title in [*BRIDGES, ARCHITECT, LONE]:
        kind = {ARCHITECT: "architect", LONE: "dog breed"}.get(title, "bridge")
        pages[title] = box(kind, f"'''{title}''' is a {kind}.", f"image = {title}.png")
        (folder / "images" / f"{title}.png").write_bytes(make_png(title))
        rows.append(f"{title}.png\tA\tCC0\t\t")
    (folder / "images" / "images.tsv").write_text("\n".join(rows) + "\n")
    corpus = build_toy_corpus(folder, pages, {})
    yield corpus
    corpus.close()


def sha(name):
    return hashlib.sha256(make_png(name)).hexdigest()


def leads():
    """What the lead pictures show, by content."""
    return {sha(title): (title,) for title in [*BRIDGES, ARCHITECT, LONE]}


def make_candidate(corpus, name, source="page"):
    image = corpus.image(f"{BRIDGES[0]}.png")
    return PictureCandidate(image, source, PictureFile(sha(name), corpus.folder / f"{name}.png"))


def rank(corpus, encoder, names, anchor=ANCHOR, path=()):
    ranker = ClipRanker(corpus, encoder, 7)
    candidates = [make_candidate(corpus, name) for name in names]
    nodes = [corpus.find(title) for title in (anchor, *path)]
    ranked = asyncio.run(ranker.rank(nodes[0], nodes, candidates))
    return [(names[candidates.index(each.candidate)], each) for each in ranked]


def test_the_picture_most_like_the_description_is_first_and_passes(corpus):
    encoder = FakeEncoder(leads() | {sha("view"): (ANCHOR,), sha("wrong"): ("Bridge 07",), sha("cat"): ("cat",)})
    ranked = rank(corpus, encoder, ["cat", "wrong", "view"])
    assert encoder.calls == [("texts", 1 + 29), ("pictures", 3 + 20)]
    assert ranked[0][0] == "view"
    assert ranked[0][1].score == 1.0
    assert ranked[0][1].over_threshold
    assert [check_depiction(each).outcome for _, each in ranked] == ["PASS", "FAIL", "FAIL"]


def test_the_lead_picture_of_another_that_fits_better_refuses_a_picture(corpus, monkeypatch):
    monkeypatch.setattr(depicting, "DISTRACTORS", 29)
    shown = leads() | {sha("view"): (ANCHOR, "fog"), sha("Bridge 11"): (ANCHOR,)}
    [(_, ranked)] = rank(corpus, FakeEncoder(shown), ["view"])
    assert ranked.margin < 0
    assert ranked.note == "lead picture of 'Bridge 11': 1.000"


def test_the_entities_described_most_like_the_anchor_are_held_against_it(corpus, monkeypatch):
    monkeypatch.setattr(depicting, "DISTRACTORS", 2)
    twin = {"Bridge 23": (ANCHOR, "twin"), ANCHOR: (ANCHOR, "twin")}
    encoder = FakeEncoder(leads() | {sha("wrong"): ("twin", "Bridge 23")}, twin | {"Bridge 23": ("twin", "Bridge 23")})
    [(_, nearest)] = rank(corpus, encoder, ["wrong"])
    assert "Bridge 23" in nearest.note
    assert nearest.distractors == 2


NAN = float("nan")


@pytest.mark.parametrize(
    ("score", "margin", "outcome"),
    [(0.20, 0.01, "PASS"), (0.40, 0.0, "FAIL"), (0.40, -0.1, "FAIL"), (NAN, NAN, "FAIL")],
)
def test_a_picture_must_be_nearer_to_the_anchor_than_to_others(corpus, score, margin, outcome):
    ranked = Ranked(make_candidate(corpus, "view"), score, margin, 20, True)
    result = check_depiction(ranked)
    assert (result.outcome, result.code) == (outcome, "" if outcome == "PASS" else "picture-of-another")


def rank_by_metadata(corpus, *pairs, anchor=ANCHOR):
    candidates = [
        PictureCandidate(corpus.image(f"{title}.png"), source, PictureFile("", corpus.folder))
        for title, source in pairs
    ]
    return asyncio.run(MetadataRanker(corpus).rank(corpus.find(anchor), [], candidates))


def test_metadata_put_the_anchors_own_picture_first(corpus):
    ranked = rank_by_metadata(corpus, ("Bridge 07", "page"), (ARCHITECT, "search"), (ANCHOR, "infobox"))
    assert [each.candidate.image.file for each in ranked] == ["Bridge 00.png", "Bridge 07.png", "Mira Tolland.png"]
    assert [check_depiction(each).outcome for each in ranked] == ["PASS", "UNKNOWN", "UNKNOWN"]
    assert ranked[0].note == "source infobox, file named for it"
    assert (ranked[0].margin, ranked[0].distractors, ranked[0].over_threshold) == (None, 0, None)


SAME = "Bridge 03"
"""Leads with the picture of the anchor."""
COPY = "Bridge 04"
"""Leads with a file of the same bytes."""
BLIND = "Bridge 05"
"""Leads with a picture that is not at hand."""
TOWERS = [f"Tower {number}" for number in range(5)]


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """Bridges of which some share the anchor's picture or have none, towers, and a list."""
    folder = tmp_path_factory.mktemp("shared") / "world"
    (folder / "images").mkdir(parents=True)
    lines = ["file\tauthor\tlicence\tlicence_url\tsource_url"]
    pages = {"List of bridges": "'''List of bridges''' is a bridge list."}
    for title in BRIDGES + TOWERS:
        file = f"{ANCHOR if title == SAME else title}.png"
        kind = title.split()[0].lower()
        pages[title] = box(kind, f"'''{title}''' is a {kind}.", f"image = {file}")
        if title not in (SAME, BLIND):
            (folder / "images" / file).write_bytes(make_png(ANCHOR if title == COPY else title))
            lines.append(f"{file}\tA\tCC0\t\t")
    (folder / "images" / "images.tsv").write_text("\n".join(lines) + "\n")
    corpus = build_toy_corpus(folder, pages, {})
    yield corpus
    corpus.close()


def choose(corpus, count, seed=7, avoid=(), anchor=ANCHOR):
    nodes = choose_distractors(corpus, corpus.find(anchor), [corpus.find(title) for title in avoid], count, seed)
    return [corpus.page(node).title for node in nodes]


def test_distractors_are_all_of_the_type_but_the_anchor_the_path_and_pages_with_its_picture(shared):
    chosen = choose(shared, 2, avoid=["Bridge 09"])
    assert len(set(chosen)) == len(chosen) == 20
    assert set(chosen) < set(BRIDGES) - {ANCHOR, SAME, COPY, "Bridge 09"}
    assert choose(shared, 3)[-1] == BLIND
    assert find_lead_picture(shared, shared.find(BLIND)) is None
    assert find_lead_picture(shared, shared.find(ANCHOR)).path.name == "Bridge 00.png"
    assert choose(shared, 2, seed=8) != choose(shared, 2)


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


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    corpus = build_toy_corpus(tmp_path_factory.mktemp("files"), PAGES, REDIRECTS)
    yield corpus
    corpus.close()


def make_image(file, titles=(), depicts=()):
    return CorpusImage(
        file=file, title=tuple(titles), path=file, sha256="", width=0, height=0, format="", author="", licence="",
        licence_url="", source_url="", phash="", error="", depicts=tuple(depicts),
    )  # fmt: skip


def weigh(corpus, file, source="page", **image):
    return weigh_file(corpus, corpus.find("Kelm Bridge"), make_image(file, **image), source)


@pytest.mark.parametrize(
    ("file", "named_for"),
    [
        ("KELM-BRIDGE from the north 2019.jpg", "it"),
        ("Brucke von Kelm.png", "it"),
        ("Old Kelm.jpg", "part of its name"),
        ("Kelmscott manor.jpg", "nothing known"),
        ("Kelm Bridge Station, entrance.jpg", "another article"),
        ("Black Sea bridge.jpg", "another article"),
        ("Kelm Bridge locator map.png", "it, file name says locator, map"),
    ],
)
def test_a_file_name_names_the_anchor_or_another_or_a_drawing(named, file, named_for):
    assert weigh(named, file)[1] == f"source page, file named for {named_for}"


@pytest.mark.parametrize(
    ("source", "file", "titles", "passes"),
    [
        ("infobox", "DSC 0012.jpg", (), True),
        ("infobox", "DSC 0012.jpg", ("Map Lake",), False),
        ("infobox", "Black Sea bridge.jpg", (), False),
        ("infobox", "Map of Kelm Bridge.png", (), False),
        ("page", "Kelm Bridge.jpg", (), True),
        ("page", "Old Kelm.jpg", (), False),
        ("search", "Kelm Bridge.jpg", (), False),
    ],
)
def test_what_passes_stands_in_the_table(named, source, file, titles, passes):
    assert (weigh(named, file, source, titles=titles)[0] >= METADATA_PASSES) == passes
