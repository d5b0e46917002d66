import asyncio
import hashlib
import io
from dataclasses import dataclass, field

import pytest
from PIL import Image

from pipelines.agent.depicting import CandidateList, CandidateLister, Dropped, RemoteCandidate
from pipelines.corpus.build import build_corpus
from pipelines.corpus.store import Corpus
from pipelines.errors import RecordFailed
from pipelines.pictures import PictureStore
from pipelines.services.image_metadata import ImageFacts
from tests.pipelines.corpus.conftest import HEADER, render_page

PAGE = """{{Infobox bridge|image=Lead.png|photo2=Second.png}}
The bridge. [[File:Third.png|thumb|x]] [[File:Unfree.png]] [[File:Broken.png]] [[File:Lead.png]] [[File:Remote.png]]
[[File:Nowhere.png]] [[File:Gone.png]]
"""
COLUMNS = "file\tauthor\tlicence\tlicence_url\tsource_url\tdepicts\n"


def draw(shade: int) -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (64, 48), (shade, 90, 100)).save(stream, "PNG")
    return stream.getvalue()


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Corpus:
    """A corpus of two articles; of the pictures of the first, four are at hand, and one of them cannot be opened."""
    folder = tmp_path_factory.mktemp("candidates")
    (folder / "images").mkdir()
    rows = []
    for shade, (name, licence) in enumerate(
        {
            "Lead": "CC BY 4.0",
            "Second": "CC0",
            "Third": "CC0",
            "Unfree": "Fair use",
            "Broken": "CC0",
            "Gone": "CC0",
        }.items()
    ):
        if name != "Gone":
            (folder / "images" / f"{name}.png").write_bytes(b"<svg/>" if name == "Broken" else draw(shade))
        rows.append(f"{name}.png\tA. Uthor\t{licence}\thttps://l\thttps://s\t{'Q12' if name == 'Lead' else ''}\n")
    (folder / "images" / "images.tsv").write_text(COLUMNS + "".join(rows))
    pages = [
        render_page(1, "Kelm (bridge)", PAGE, 0, None),
        render_page(2, "Bare", "Nothing to see.", 0, None),
    ]
    dump = folder / "toywiki-20250131-pages-articles.xml"
    dump.write_text(HEADER + "".join(pages) + "</mediawiki>\n")
    build_corpus(dump, folder / "out")
    return Corpus.open(folder / "out")


def make_facts(**changes) -> ImageFacts:
    values = {
        "url": "https://u/Remote.png", "width": 640, "height": 480, "mime": "image/png",
        "bytes": 9, "sha1": "a" * 40, "licence": "CC BY-SA 4.0", "licence_url": "l", "author": "B", "source_url": "s",
    }  # fmt: skip
    return ImageFacts(**(values | changes))


@dataclass
class Service:
    """Commons as a test tells it: what it says of files, what it hands out."""

    facts: dict = field(default_factory=dict)
    files: dict = field(default_factory=dict)
    described: list = field(default_factory=list)
    fetched: list = field(default_factory=list)
    identity: str = "service:1"

    async def describe_images(self, files):
        self.described.append(list(files))
        return {file: self.facts.get(file) for file in files}

    async def fetch_file(self, file):
        self.fetched.append(file)
        reply = self.files.get(file.file, RecordFailed("picture-missing", "HTTP 404"))
        if isinstance(reply, Exception):
            raise reply
        return reply


@pytest.fixture
def pictures(tmp_path) -> PictureStore:
    return PictureStore(tmp_path / "images")


def list_candidates(corpus, pictures, title="Kelm (bridge)", **settings):
    lister = CandidateLister(corpus, pictures, **settings)
    node = corpus.find(title)
    return asyncio.run(lister.list_candidates(node, corpus.page(node).image))


def fetch_all(corpus, pictures, title="Kelm (bridge)", **settings):
    """Return an article's candidates after those that are not at hand were fetched."""
    lister = CandidateLister(corpus, pictures, **settings)
    listed = list_candidates(corpus, pictures, title, **settings)

    async def fetch():
        return [
            await lister.fetch_candidate(each) if isinstance(each, RemoteCandidate) else each for each in listed.found
        ]

    found = asyncio.run(fetch())
    dropped = tuple(each for each in found if isinstance(each, Dropped))
    return CandidateList(tuple(each for each in found if each not in dropped), listed.dropped + dropped)


def name_found(candidates):
    return [(candidate.image.file, candidate.source) for candidate in candidates.found]


def name_dropped(candidates):
    return {dropped.file: dropped.reason for dropped in candidates.dropped}


def test_pictures_at_hand_are_used_as_they_are_lead_first(corpus, pictures):
    candidates = list_candidates(corpus, pictures)
    assert name_found(candidates) == [("Lead.png", "infobox"), ("Second.png", "page"), ("Third.png", "page")]
    lead = candidates.found[0]
    assert (lead.file.sha256, lead.file.path) == (digest(draw(0)), corpus.image_path("Lead.png"))
    assert lead.image == corpus.image("Lead.png")
    assert lead.image.depicts == ("Q12",)
    assert not pictures.folder.exists()


def test_what_cannot_be_used_is_dropped_with_its_reason(corpus, pictures):
    candidates = list_candidates(corpus, pictures)
    assert name_dropped(candidates) == {
        "Unfree.png": "picture-not-free",
        "Broken.png": "picture-unusable",
        "Remote.png": "no-picture",
        "Nowhere.png": "no-picture",
        "Gone.png": "no-picture",
    }
    assert [dropped.detail for dropped in candidates.dropped][:2] == [
        "Unfree.png: licence 'Fair use'",
        "Broken.png: format",
    ]


def test_a_picture_that_is_not_at_hand_is_described_and_fetched(corpus, pictures):
    service = Service(facts={"Remote.png": make_facts(), "Gone.png": make_facts()}, files={"Remote.png": draw(50)})
    candidates = fetch_all(corpus, pictures, metadata=service, fetch=service)
    assert service.described == [["Remote.png", "Nowhere.png", "Gone.png"]]
    assert [(file.file, file.url, file.width, file.sha1) for file in service.fetched] == [
        ("Remote.png", "https://u/Remote.png", 640, "a" * 40),
        ("Gone.png", "https://u/Remote.png", 640, "a" * 40),
    ]
    remote = candidates.found[-1]
    assert (remote.image.file, remote.source) == ("Remote.png", "page")
    assert (remote.image.path, remote.image.sha256) == ("", digest(draw(50)))
    assert (remote.image.width, remote.image.height, remote.image.format) == (64, 48, "png")
    assert (remote.image.licence, remote.image.author, len(remote.image.phash)) == ("CC BY-SA 4.0", "B", 16)
    assert remote.file.sha256 == remote.image.sha256
    assert remote.file.path.read_bytes() == draw(50)
    assert remote.file.path.is_relative_to(pictures.folder)
    assert name_dropped(candidates) == {
        "Unfree.png": "picture-not-free",
        "Broken.png": "picture-unusable",
        "Nowhere.png": "no-picture",
        "Gone.png": "picture-unusable",
    }


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"licence": "CC BY-NC 4.0"}, "picture-not-free"),
        ({"licence": ""}, "picture-not-free"),
        ({"mime": "image/svg+xml"}, "picture-unusable"),
        ({"width": 0}, "picture-unusable"),
        ({"url": ""}, "picture-unusable"),
    ],
)
def test_nothing_is_fetched_that_could_not_be_used(corpus, pictures, changes, reason):
    service = Service(facts={"Remote.png": make_facts(**changes)}, files={"Remote.png": draw(50)})
    candidates = fetch_all(corpus, pictures, metadata=service, fetch=service)
    assert name_dropped(candidates)["Remote.png"] == reason
    assert service.fetched == []
