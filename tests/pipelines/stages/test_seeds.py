from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.corpus.tables import PAGES
from pipelines.errors import ConfigError
from pipelines.graph.seeds import SeedGate
from pipelines.services.image_metadata import ImageFacts
from pipelines.splits import SplitRule
from pipelines.stages.seeds import Seeds
from schemas.base import Rejection
from schemas.corpus import CorpusImage, Page
from schemas.datasets import Seed

GATE = SeedGate(min_in_degree=3, hub_in_degree=50)
RARE = SeedGate(rule="vsearcher")
SPLITS = SplitRule({"sft": 0.6, "rl": 0.3, "eval": 0.1}, seed=7)


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
        "identifiers": 1,
        "classes": ("Q100",),
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
    folder: Path = Path()
    images: dict[str, CorpusImage] = field(default_factory=lambda: IMAGES)

    def article_nodes(self):
        return range(len(self.pages))

    def table(self, name):
        return self.folder / f"{name}.parquet"

    def page(self, node):
        return self.pages[node]

    def image(self, file):
        return self.images.get(file)


def draw(*changes, gate=GATE, limit=0, seed=1):
    """Return what the stage makes of pages with these changes."""
    pages = [make_page(node, **change) for node, change in enumerate(changes)]
    with TemporaryDirectory() as folder:
        return list(Seeds(write_corpus(Path(folder), pages), gate.model_copy(update={"limit": limit}), SPLITS, seed)())


def write_corpus(folder, pages):
    table = pa.Table.from_pylist([asdict(page) for page in pages], schema=PAGES)
    pq.write_table(table, folder / "pages.parquet")
    return FakeCorpus(pages, folder)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"is_disambiguation": True}, "disambiguation-page"),
        ({"in_degree": 51}, "hub"),
        ({"infobox": ""}, "no-infobox"),
        ({"type": ""}, "no-type"),
        ({"type": "philosophical theory"}, "abstract"),
        ({"image": ""}, "no-image"),
        ({"image": "Broken.jpg"}, "image-unusable"),
        ({"image_free": False}, "image-not-free"),
        ({"image": "Low.jpg"}, "image-too-small"),
    ],
)
def test_each_gate_refuses_with_its_reason(change, reason):
    (row,) = draw(change)
    assert isinstance(row, Rejection)
    assert (row.record_id, row.reason) == ("page:1", reason)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"is_disambiguation": True}, "disambiguation-page"),
        ({"sitelinks": -1}, "counts-unknown"),
        ({"sitelinks": 11}, "too-well-known"),
        ({"statements": 19}, "too-few-statements"),
        ({"type": "theory"}, "abstract"),
        ({"image": "Low.jpg"}, "image-too-small"),
    ],
)
def test_the_rule_for_rare_entities_refuses_with_its_reasons(change, reason):
    (row,) = draw({"sitelinks": 10, "statements": 20} | change, gate=RARE)
    assert isinstance(row, Rejection)
    assert (row.record_id, row.reason) == ("page:1", reason)


def test_a_class_that_is_not_wanted_is_refused():
    changes = [{"classes": classes} for classes in (("Q5", "Q100"), ("Q5",), (), ("Q10",), ("Q200",))]
    rows = draw(*changes, gate=GATE.model_copy(update={"classes": ("Q100", "Q200")}))
    refused = {row.record_id: (row.reason, row.detail) for row in rows if isinstance(row, Rejection)}
    assert refused == {
        "page:2": ("class", "Q5"),
        "page:3": ("class", "class not known"),
        "page:4": ("class", "Q10"),
    }


def test_classes_of_a_corpus_that_knows_none_are_a_mistake_of_the_configuration():
    with pytest.raises(ConfigError, match="the corpus knows no classes"):
        draw({"classes": ()}, {"classes": ()}, gate=GATE.model_copy(update={"classes": ("Q100",)}))


def test_seeds_over_the_limit_are_refused_and_the_domains_take_turns():
    rows = draw(*[{"domain": domain} for domain in ["Person"] * 20 + ["Artifact"] * 3 + ["Location"] * 3], limit=9)
    kept = [row for row in rows if isinstance(row, Seed)]
    assert Counter(row.domain for row in kept) == {"Person": 3, "Artifact": 3, "Location": 3}
    assert Counter(row.reason for row in rows if isinstance(row, Rejection)) == {"over-quota": 17}


def test_the_fingerprint_covers_gate_splits_limit_and_seed():
    stage = Seeds(FakeCorpus([]), GATE, SPLITS, 1)
    others = [
        replace(stage, gate=GATE.model_copy(update={"rule": "vsearcher"})),
        replace(stage, splits=replace(SPLITS, seed=8)),
        replace(stage, gate=GATE.model_copy(update={"limit": 5})),
        replace(stage, seed=2),
    ]
    assert len({other.fingerprint() for other in [stage, *others]}) == 5
    assert replace(stage, corpus=FakeCorpus([make_page(0)])).fingerprint() == stage.fingerprint()


@dataclass
class FakeMetadata:
    """A service that knows some pictures and remembers what it was asked."""

    known: dict[str, ImageFacts]
    asked: list[str] = field(default_factory=list)
    identity: str = "fake"

    async def describe_images(self, files):
        self.asked += files
        return {file: self.known.get(file) for file in files}


def make_facts(**changes):
    values = {"url": "https://u/x.jpg", "width": 900, "height": 700, "mime": "image/jpeg"}
    rest = {"bytes": 9, "sha1": "", "licence": "CC BY-SA 4.0", "licence_url": "", "author": "B", "source_url": ""}
    return ImageFacts(**(values | rest | changes))


def test_the_service_is_asked_only_of_unknown_pictures_of_otherwise_eligible_pages():
    facts = {"Far.jpg": make_facts(), "Far low.jpg": make_facts(height=400), "Far closed.jpg": make_facts(licence="")}
    metadata = FakeMetadata(facts)
    images = ["Far.jpg", "Far low.jpg", "Far closed.jpg", "Nowhere.jpg", "Good.jpg", ""]
    pages = [make_page(node, image=image) for node, image in enumerate(images)]
    pages += [make_page(6, image="Hub.jpg", in_degree=99), make_page(7, image="Fair use.jpg", image_free=False)]
    with TemporaryDirectory() as folder:
        stage = Seeds(write_corpus(Path(folder), pages), GATE, SPLITS, 1, metadata=metadata)
        rows = list(stage())
    assert sorted(row.page_id for row in rows if isinstance(row, Seed)) == [1, 5]
    assert {row.record_id: row.reason for row in rows if isinstance(row, Rejection)} == {
        "page:2": "image-too-small",
        "page:3": "image-not-free",
        "page:4": "no-image",
        "page:6": "no-image",
        "page:7": "hub",
        "page:8": "no-image",
    }
    assert sorted(metadata.asked) == ["Far closed.jpg", "Far low.jpg", "Far.jpg", "Nowhere.jpg"]


def draw_far(pages, metadata, limit, near=()):
    """Return what the stage makes of pages whose pictures the corpus knows only where they are ``near``."""
    with TemporaryDirectory() as folder:
        corpus = write_corpus(Path(folder), pages)
        corpus.images = {file: make_image(file, licence=metadata.known[file].licence) for file in near}
        return list(Seeds(corpus, GATE.model_copy(update={"limit": limit}), SPLITS, 1, metadata=metadata)())


def make_far_pages(count, domains):
    return [make_page(n, image=f"Far {n}.jpg", domain=domains[n % len(domains)]) for n in range(count)]


@pytest.mark.parametrize("limit", [0, 1, 7, 40, 100, 1000])
@pytest.mark.parametrize("poor", ["Person", "none", "all"])
def test_pictures_asked_along_the_turns_give_the_seeds_of_pictures_known_before(limit, poor):
    pages = make_far_pages(300, ["Person", "Artifact", "Person"])
    bad = {page.image for page in pages if page.node % 4 == 1 or poor in (page.domain, "all")}
    known = {page.image: make_facts(licence="Own" if page.image in bad else "CC0") for page in pages}
    metadata, idle = FakeMetadata(known), FakeMetadata(known)
    asked = draw_far(pages, metadata, limit)
    given = draw_far(pages, idle, limit, near=known)
    assert [row for row in asked if isinstance(row, Seed)] == [row for row in given if isinstance(row, Seed)]
    ends = {row.parent_id if isinstance(row, Seed) else row.record_id for row in asked}
    assert len(ends) == len(asked) == len(given) == 300
    assert (idle.asked, len(metadata.asked)) == ([], len(set(metadata.asked)))
    if limit in (0, 1000):
        assert len(metadata.asked) == 300
        reasons = [Counter(row.reason for row in rows if isinstance(row, Rejection)) for rows in (asked, given)]
        assert reasons[0] == reasons[1]
