from collections import Counter
from dataclasses import dataclass, replace

import pytest

from pipelines.corpus.records import CorpusImage, Page
from pipelines.graph.splits import SplitRule
from pipelines.stages.seeds import SeedGate, Seeds
from schemas.base import Rejection
from schemas.reasons import STAGE_REASONS
from schemas.seeds import Seed

GATE = SeedGate(min_in_degree=3, hub_in_degree=50, require_infobox=True, require_image=True, min_image_side=512)
SPLITS = SplitRule(0.6, 0.3, 0.1, seed=7)


def make_page(node, **changes):
    values = {
        "node": node,
        "page_id": node + 1,
        "title": f"Page {node}",
        "revision": 100 + node,
        "timestamp": "",
        "bytes": 1,
        "text_sha256": "",
        "is_list": False,
        "is_disambiguation": False,
        "infobox": "Infobox bridge",
        "type": "bridge",
        "lead_type": "",
        "domain": "Artifact",
        "in_degree": 9,
        "qid": "Q1",
        "sitelinks": 2,
        "statements": 3,
        "image": "Good.jpg",
        "image_free": True,
    }
    return Page(**(values | changes))


def make_image(file, **changes):
    values = {
        "file": file,
        "title": (),
        "path": file,
        "sha256": "a" * 64,
        "width": 800,
        "height": 600,
        "format": "JPEG",
        "author": "A",
        "licence": "CC BY 4.0",
        "licence_url": "",
        "source_url": "",
        "phash": "0" * 16,
        "error": "",
    }
    return CorpusImage(**(values | changes))


IMAGES = {
    image.file: image
    for image in (
        make_image("Good.jpg"),
        make_image("Low.jpg", height=511),
        make_image("Closed.jpg", licence="All rights reserved"),
        make_image("Unknown.jpg", licence="Own licence"),
        make_image("Broken.jpg", error="undecodable"),
    )
}


@dataclass
class FakeCorpus:
    pages: list[Page]

    def article_nodes(self):
        return range(len(self.pages))

    def page(self, node):
        return self.pages[node]

    def image(self, file):
        return IMAGES.get(file)


def draw(*changes, gate=GATE, limit=0, seed=1):
    """Return what the stage makes of pages with these changes."""
    pages = [make_page(node, **change) for node, change in enumerate(changes)]
    return list(Seeds(FakeCorpus(pages), gate, SPLITS, limit, seed)())


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"is_list": True}, "list-page"),
        ({"is_disambiguation": True}, "disambiguation-page"),
        ({"in_degree": 51}, "hub"),
        ({"infobox": ""}, "no-infobox"),
        ({"in_degree": 2}, "in-degree-low"),
        ({"type": ""}, "no-type"),
        ({"image": ""}, "no-image"),
        ({"image": "Missing.jpg"}, "no-image"),
        ({"image": "Broken.jpg"}, "image-unusable"),
        ({"image_free": False}, "image-not-free"),
        ({"image": "Closed.jpg"}, "image-not-free"),
        ({"image": "Unknown.jpg"}, "image-not-free"),
        ({"image": "Low.jpg"}, "image-too-small"),
    ],
)
def test_each_gate_refuses_with_its_reason(change, reason):
    (row,) = draw(change)
    assert isinstance(row, Rejection)
    assert (row.record_id, row.reason) == ("page:1", reason)


@pytest.mark.parametrize("change", [{}, {"in_degree": 3}, {"in_degree": 50}])
def test_a_page_on_the_edge_of_the_gates_is_a_seed(change):
    (row,) = draw(change)
    assert isinstance(row, Seed)
    assert (row.page_id, row.title, row.split) == (1, "Page 0", SPLITS.place("entity", "Page 0"))


def test_gates_that_are_not_required_are_open():
    gate = replace(GATE, require_infobox=False, require_image=False)
    (row,) = draw({"infobox": "", "image": "Closed.jpg", "image_free": False}, gate=gate)
    assert isinstance(row, Seed)
    assert row.image == ""


def test_seeds_over_the_limit_are_refused_and_the_domains_take_turns():
    rows = draw(*[{"domain": domain} for domain in ["Person"] * 20 + ["Artifact"] * 3 + ["Location"] * 3], limit=9)
    kept = [row for row in rows if isinstance(row, Seed)]
    assert Counter(row.domain for row in kept) == {"Person": 3, "Artifact": 3, "Location": 3}
    assert Counter(row.reason for row in rows if isinstance(row, Rejection)) == {"over-quota": 17}


def test_the_draw_is_the_same_for_the_same_seed_only():
    pages = [{}] * 30
    titles = [[row.title for row in draw(*pages, limit=5, seed=seed) if isinstance(row, Seed)] for seed in (1, 1, 2)]
    assert titles[0] == titles[1] != titles[2]


def test_a_page_more_leaves_the_order_of_the_others_alone():
    def order(count):
        return [row.title for row in draw(*[{}] * count) if isinstance(row, Seed)]

    assert [title for title in order(31) if title != "Page 30"] == order(30)


def test_the_demo_accounts_for_every_article(demo, demo_corpus):
    reasons = Counter(row["reason"] for row in demo.rejections("seeds"))
    assert len(demo.rows("seeds", Seed)) + sum(reasons.values()) == len(demo_corpus.article_nodes())
    assert set(reasons) <= set(STAGE_REASONS["seeds"])
    assert len(reasons) >= 7


def test_the_fingerprint_covers_gate_splits_limit_and_seed():
    stage = Seeds(FakeCorpus([]), GATE, SPLITS, 0, 1)
    others = [
        replace(stage, gate=replace(GATE, min_image_side=1)),
        replace(stage, splits=replace(SPLITS, seed=8)),
        replace(stage, limit=5),
        replace(stage, seed=2),
    ]
    assert len({other.fingerprint() for other in [stage, *others]}) == 5
    assert replace(stage, corpus=FakeCorpus([make_page(0)])).fingerprint() == stage.fingerprint()
