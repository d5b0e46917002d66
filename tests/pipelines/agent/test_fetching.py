"""Choosing among pictures that must be fetched, and fetching those of others."""

import asyncio
import io

import pytest

from pipelines.agent.choosing import Anchor, DistractorFetcher, PictureChooser
from pipelines.agent.depicting import CandidateLister, MetadataRanker
from pipelines.agent.picture_search import LocalImageSearch
from pipelines.config.settings import GroundingsConfig
from pipelines.corpus.build import build_corpus
from pipelines.corpus.images import find_shared_leads
from pipelines.corpus.store import Corpus
from pipelines.pictures import PictureStore
from tests.pipelines.agent.test_candidates import COLUMNS, Service, make_facts
from tests.pipelines.agent.test_choosing import ANSWER, paint_scene
from tests.pipelines.corpus.conftest import HEADER, render_page

KELM = "{{Infobox bridge|image=Kelm Bridge.jpg}} The bridge. [[File:Kelm Bridge at dusk.jpg]] [[File:Mill.jpg]]"
OTHERS = ("Orsa", "Pell", "Dunn", "Marn", "Lumby")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Corpus:
    """Six bridges, of which the picture of the last alone is at hand, and two that share a picture."""
    folder = tmp_path_factory.mktemp("fetching")
    (folder / "images").mkdir()
    (folder / "images" / "Lumby.jpg").write_bytes(draw(99))
    (folder / "images" / "images.tsv").write_text(COLUMNS + "Lumby.jpg\tA\tCC0\thttps://l\thttps://s\t\n")
    others = [f"{{{{Infobox bridge|image={name}.jpg}}}} '''{name} Bridge''' is a bridge." for name in OTHERS]
    pages = [render_page(1, "Kelm Bridge", KELM, 0, None)]
    pages += [render_page(2 + n, f"{OTHERS[n]} Bridge", text, 0, None) for n, text in enumerate(others)]
    twin = "{{Infobox tower|image=Twin.jpg}} A tower."
    pages += [render_page(20 + n, title, twin, 0, None) for n, title in enumerate(("Upper Twin Bridge", "Twin Bridge"))]
    dump = folder / "toywiki-20250131-pages-articles.xml"
    dump.write_text(HEADER + "".join(pages) + "</mediawiki>\n")
    build_corpus(dump, folder / "out")
    return Corpus.open(folder / "out")


def draw(seed: int, size=(640, 520)) -> bytes:
    stream = io.BytesIO()
    paint_scene(size, seed).save(stream, "JPEG", quality=90)
    return stream.getvalue()


def make_service(**changes) -> Service:
    """Return a service that has all pictures; a change is what it says of a file, None for one that it cannot give."""
    facts = {"width": 640, "height": 520, "mime": "image/jpeg"}
    names = ["Kelm Bridge", "Kelm Bridge at dusk", "Mill", *OTHERS]
    service = Service()
    for seed, name in enumerate(names):
        service.facts[f"{name}.jpg"] = make_facts(**facts | (changes.get(name.replace(" ", "_"), {}) or {}))
        if changes.get(name.replace(" ", "_"), {}) is not None:
            service.files[f"{name}.jpg"] = draw(seed)
    return service


def make_lister(corpus, folder, service) -> CandidateLister:
    return CandidateLister(corpus, PictureStore(folder / "store"), metadata=service, fetch=service)


def choose(corpus, folder, service, ranker=None, title="Kelm Bridge", **settings):
    lister = make_lister(corpus, folder, service)
    chosen = GroundingsConfig(**settings)
    ranker = ranker or MetadataRanker(corpus)
    chooser = PictureChooser(lister.pictures, lister, ranker, None, LocalImageSearch(corpus), None, chosen)
    node = corpus.find(title)
    anchor = Anchor(node, (), title, "", corpus.page(node).image, ((title,),), ANSWER, frozenset())

    async def run():
        listed = await lister.list_candidates(node, anchor.lead)
        return await chooser.choose(anchor, listed.found)

    return asyncio.run(run())


def name_fetched(service):
    return [remote.file for remote in service.fetched]


def test_of_candidates_that_must_be_fetched_the_likeliest_alone_is(corpus, tmp_path):
    service = make_service()
    choice = choose(corpus, tmp_path, service)
    assert choice.picture.file == "Kelm Bridge.jpg"
    assert name_fetched(service) == ["Kelm Bridge.jpg"]
    assert [(each.title, each.picture) for each in choice.fetched] == [("Kelm Bridge", choice.picture)]
    assert (choice.depiction.candidates, choice.depiction.ease, choice.depiction.ease_at_training) == (3, "", "")


@pytest.mark.parametrize("fault", [None, {"height": 400}, {"licence": "Fair use"}])
def test_the_next_is_taken_where_the_likeliest_cannot_be(corpus, tmp_path, fault):
    service = make_service(Kelm_Bridge=fault)
    choice = choose(corpus, tmp_path, service)
    assert choice.picture.file == "Kelm Bridge at dusk.jpg"
    # What is told of a file refuses it unfetched.
    assert name_fetched(service) == ["Kelm Bridge.jpg"] * (fault is None) + ["Kelm Bridge at dusk.jpg"]


def test_a_picture_with_which_several_articles_lead_is_refused_unfetched(corpus, tmp_path):
    service = make_service()
    titles = find_shared_leads(corpus.folder / "pages.parquet", corpus.digest)
    assert titles == {"Twin.jpg": ("Twin Bridge", "Upper Twin Bridge")}
    service.facts["Twin.jpg"] = make_facts(width=640, height=520, mime="image/jpeg")
    choice = choose(corpus, tmp_path, service, title="Twin Bridge")
    assert (choice.refused[0].code, "also leads Upper Twin Bridge" in choice.refused[0].detail) == (
        "picture-ambiguous",
        True,
    )
    assert service.fetched == []


def fetch_others(corpus, folder, service, count, seed=7, avoid=()):
    fetcher = DistractorFetcher(make_lister(corpus, folder, service), count, seed)
    nodes = [corpus.find(f"{name} Bridge") for name in avoid]
    made = asyncio.run(fetcher.fetch(corpus.find("Kelm Bridge"), nodes))
    return [(each.title.removesuffix(" Bridge"), each.picture.file.removesuffix(".jpg")) for each in made]


def test_lead_pictures_of_others_of_the_type_are_fetched_and_what_is_at_hand_counts(corpus, tmp_path):
    service = make_service()
    made = fetch_others(corpus, tmp_path, service, 3)
    assert len(made) == 2  # the third is Lumby's
    assert all(title == file for title, file in made)
    assert {title for title, _ in made} <= set(OTHERS[:4])
    assert made == fetch_others(corpus, tmp_path, make_service(), 3)
    assert fetch_others(corpus, tmp_path, make_service(), 0) == []
