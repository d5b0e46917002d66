import asyncio
import hashlib
import io
import zlib

import numpy as np
import pytest
from PIL import Image

from pipelines.agent.candidates import Candidate
from pipelines.agent.depicting import ClipRanker, ClipRules, MetadataRanker
from pipelines.checks.pictures import DepictionRules, check_depiction
from pipelines.corpus.store import describe_entity
from pipelines.errors import RecordFailed, Unavailable
from pipelines.services.protocols import PictureFile
from tests.toy import box, build_toy_corpus

BRIDGES = [f"Bridge {number:02d}" for number in range(30)]
ANCHOR = "Bridge 00"
ARCHITECT = "Mira Tolland"
LONE = "Lone Shrub"
WIDTH = 64
RULES = ClipRules(threshold=0.28, distractors=20, seed=7)
MARGIN = DepictionRules("margin", 0.28, 0.0, 20)


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


class AwayEncoder(FakeEncoder):
    async def encode_pictures(self, pictures):
        if len(pictures) == 1:
            raise Unavailable("no encoder")
        raise RecordFailed("picture-undecodable", "one of them")


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
    return Candidate(image, source, PictureFile(sha(name), corpus.folder / f"{name}.png"))


def rank(corpus, encoder, names, anchor=ANCHOR, path=(), rules=RULES):
    ranker = ClipRanker(corpus, encoder, rules)
    candidates = [make_candidate(corpus, name) for name in names]
    nodes = [corpus.find(title) for title in (anchor, *path)]
    ranked = asyncio.run(ranker.rank(nodes[0], nodes, candidates))
    return [(names[candidates.index(each.candidate)], each) for each in ranked]


def test_the_picture_most_like_the_description_is_first_and_passes(corpus):
    encoder = FakeEncoder(leads() | {sha("view"): (ANCHOR,), sha("wrong"): ("Bridge 07",), sha("cat"): ("cat",)})
    ranked = rank(corpus, encoder, ["cat", "wrong", "view"])
    assert ranked[0][0] == "view"
    assert ranked[0][1].score == 1.0
    assert ranked[0][1].over_threshold
    assert [check_depiction(each, MARGIN).outcome for _, each in ranked] == ["PASS", "FAIL", "FAIL"]


def test_a_picture_of_the_kind_passes_the_threshold_and_not_the_margin(corpus):
    everyone = {title: ("bridges", title) for title in BRIDGES}
    shown = leads() | {sha(title): ("bridges", title) for title in BRIDGES} | {sha("wrong"): ("bridges", "Bridge 07")}
    [(_, ranked)] = rank(corpus, FakeEncoder(shown, everyone), ["wrong"], rules=ClipRules(0.28, 28, 7))
    assert ranked.over_threshold
    assert check_depiction(ranked, DepictionRules("threshold", 0.28, 0.0, 20)).passed
    refused = check_depiction(ranked, MARGIN)
    assert refused.outcome == "FAIL"
    assert "this picture with 'Bridge 07': 1.000" in refused.detail


def test_the_lead_picture_of_another_that_fits_better_refuses_a_picture(corpus):
    shown = leads() | {sha("view"): (ANCHOR, "fog"), sha("Bridge 11"): (ANCHOR,)}
    [(_, ranked)] = rank(corpus, FakeEncoder(shown), ["view"], rules=ClipRules(0.28, 29, 7))
    assert ranked.margin < 0
    assert ranked.note == "lead picture of 'Bridge 11': 1.000"


def test_the_very_picture_of_another_has_no_margin(corpus):
    [(_, ranked)] = rank(corpus, FakeEncoder(leads()), ["Bridge 11"], rules=ClipRules(-1.0, 29, 7))
    assert ranked.margin <= 0
    [(_, ranked)] = rank(corpus, FakeEncoder(leads()), [ARCHITECT], path=[ARCHITECT])
    assert ranked.margin <= 0


def test_the_rest_of_the_path_is_held_against_it_too_and_not_counted(corpus):
    encoder = FakeEncoder(leads() | {sha("both"): (ANCHOR, ARCHITECT, ARCHITECT)})
    [(_, alone)] = rank(corpus, encoder, ["both"])
    [(_, beside)] = rank(corpus, encoder, ["both"], path=[ARCHITECT])
    assert alone.margin > 0 > beside.margin
    assert alone.distractors == beside.distractors == 20
    assert f"this picture with {ARCHITECT!r}" in beside.note


def test_the_entities_described_most_like_the_anchor_are_held_against_it(corpus):
    twin = {"Bridge 23": (ANCHOR, "twin"), ANCHOR: (ANCHOR, "twin")}
    encoder = FakeEncoder(leads() | {sha("wrong"): ("twin", "Bridge 23")}, twin | {"Bridge 23": ("twin", "Bridge 23")})
    [(_, nearest)] = rank(corpus, encoder, ["wrong"], rules=ClipRules(0.28, 2, 7))
    assert "Bridge 23" in nearest.note
    assert nearest.distractors == 2


def test_too_few_entities_to_compare_with_are_unknown(corpus):
    encoder = FakeEncoder(leads() | {sha("view"): (LONE,)})
    [(_, ranked)] = rank(corpus, encoder, ["view"], anchor=LONE)
    assert ranked.distractors == 0
    assert ranked.margin is None
    assert check_depiction(ranked, MARGIN).outcome == "UNKNOWN"
    [(_, ranked)] = rank(
        corpus, FakeEncoder(leads() | {sha("view"): (ANCHOR,)}), ["view"], rules=ClipRules(0.28, 50, 7)
    )
    assert ranked.distractors == 29
    assert check_depiction(ranked, DepictionRules("margin", 0.28, 0.0, 50)).outcome == "UNKNOWN"


def test_texts_and_pictures_are_each_encoded_in_one_call(corpus):
    encoder = FakeEncoder(leads() | {sha("view"): (ANCHOR,)})
    rank(corpus, encoder, ["view"], path=[ARCHITECT])
    assert encoder.calls == [("texts", 1 + 29 + 1), ("pictures", 1 + 20 + 1)]


def test_a_picture_that_cannot_be_decoded_is_left_out(corpus):
    broken = [sha("torn"), sha("Bridge 11")]
    encoder = FakeEncoder(leads() | {sha("view"): (ANCHOR,), sha("torn"): ("torn",)}, broken=broken)
    ranked = rank(corpus, encoder, ["torn", "view"], rules=ClipRules(0.28, 29, 7))
    assert [name for name, _ in ranked] == ["view"]
    assert check_depiction(ranked[0][1], MARGIN).passed


def test_an_encoder_that_is_away_is_no_verdict(corpus):
    with pytest.raises(Unavailable):
        rank(corpus, AwayEncoder(leads()), ["view", "other"])


def test_no_candidates_ask_nothing(corpus):
    encoder = FakeEncoder(leads())
    assert rank(corpus, encoder, []) == []
    assert encoder.calls == []


def test_equals_keep_the_order_given(corpus):
    encoder = FakeEncoder(leads() | {sha(name): (ANCHOR,) for name in ("b", "a", "c")})
    assert [name for name, _ in rank(corpus, encoder, ["b", "a", "c"])] == ["b", "a", "c"]


def test_rules_and_encoder_make_the_rankers_identity(corpus):
    def identify(**changes):
        return ClipRanker(
            corpus, FakeEncoder({}), ClipRules(**({"threshold": 0.28, "distractors": 20, "seed": 7} | changes))
        ).identity

    assert identify() == identify()
    assert len({identify(), identify(threshold=0.3), identify(distractors=5), identify(seed=8)}) == 4
    assert "fake@1" in identify()
    assert ClipRanker(corpus, FakeEncoder({}), RULES).name == "fake"


def rank_by_metadata(corpus, *pairs, anchor=ANCHOR):
    candidates = [
        Candidate(corpus.image(f"{title}.png"), source, PictureFile("", corpus.folder)) for title, source in pairs
    ]
    return asyncio.run(MetadataRanker(corpus).rank(corpus.find(anchor), [], candidates))


def test_metadata_put_the_anchors_own_picture_first(corpus):
    ranked = rank_by_metadata(corpus, ("Bridge 07", "page"), (ARCHITECT, "search"), (ANCHOR, "infobox"))
    assert [each.candidate.image.file for each in ranked] == ["Bridge 00.png", "Bridge 07.png", "Mira Tolland.png"]
    assert [check_depiction(each, MARGIN).outcome for each in ranked] == ["PASS", "UNKNOWN", "UNKNOWN"]
    assert ranked[0].note == "source infobox, file named for it"


def test_metadata_have_no_margin_and_no_threshold(corpus):
    ranker = MetadataRanker(corpus)
    [ranked] = rank_by_metadata(corpus, (ANCHOR, "infobox"))
    assert (ranked.margin, ranked.distractors, ranked.over_threshold) == (None, 0, None)
    assert (ranker.name, ranker.identity) == ("metadata", "metadata@1")
    assert describe_entity(corpus, corpus.find(ANCHOR)) == "Bridge 00, a bridge"
