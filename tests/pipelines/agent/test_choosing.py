import asyncio
import hashlib
import io
from dataclasses import dataclass
from random import Random

import pytest
from PIL import Image

from pipelines.agent.choosing import Anchor, EaseRater, PictureChooser
from pipelines.agent.depicting import PictureCandidate, Ranked
from pipelines.agent.pictures import Reader
from pipelines.checks.pictures import Copy
from pipelines.config.settings import GroundingsConfig
from pipelines.errors import RecordFailed, Unavailable
from pipelines.pictures import PictureStore
from pipelines.services.protocols import ImageHit, PictureFile, TextBlock
from pipelines.toy.drawing import paint_landscape, plant_trees
from schemas.corpus import CorpusImage
from schemas.proofs import Answer

ANSWER = Answer(surface="1867", value="1867", type="date", key="date:1867", aliases=(), unit="", precision="year")


class Order:
    """Ranks as it is told: a score and a margin for each file."""

    name = identity = "order"

    def __init__(self, **margins):
        self.margins = margins

    async def rank(self, node, path, candidates):
        ranked = [self._score(each) for each in candidates]
        return tuple(sorted(ranked, key=lambda each: -each.margin))

    def _score(self, candidate):
        margin = self.margins.get(candidate.image.file[0].lower(), 0.1)
        return Ranked(candidate, 0.3 + margin, margin, 40, margin > 0)


@dataclass
class Search:
    """Finds what it is told to find, and remembers how large the pictures were."""

    titles: tuple[str, ...] = ("Kelm Bridge",)
    distance: float = 0.0
    sizes: tuple = ()
    identity: str = "search"

    async def search_image(self, picture, count):
        with Image.open(picture.path) as shown:
            self.sizes += (shown.size,)
        return tuple(ImageHit(f"https://toy.example/{title}", title, "", self.distance) for title in self.titles)


@dataclass
class Copies:
    """Knows one picture of another article, by its hash."""

    copies: tuple[Copy, ...] = ()
    identity: str = "copies"

    def find_copies(self, phash):
        return self.copies


class Eyes:
    """An OCR engine that reads what it is told, at full size and above."""

    name = identity = "eyes"

    def __init__(self, *lines):
        self.lines = lines

    async def read_text(self, data, scale=1.0):
        return tuple(TextBlock(line, "text", (0.0, 0.0, 90.0, 20.0), 0.9) for line in self.lines if scale >= 1.0)


class NoLister:
    identity = "lister"


def paint_scene(size, seed):
    rng = Random(seed)
    picture, draw, ground, _ = paint_landscape(size, rng)
    plant_trees(draw, size, rng, ground)
    return picture


def make_candidate(folder, file="A.jpg", source="infobox", size=(640, 520), seed=3, licence="CC BY 4.0", **changes):
    buffer = io.BytesIO()
    paint_scene(size, seed).save(buffer, "JPEG", quality=90)
    data = buffer.getvalue()
    path = folder / file
    path.write_bytes(data)
    sha256 = hashlib.sha256(data).hexdigest()
    values = {"file": file, "title": ("Kelm Bridge",), "path": file, "sha256": sha256, "width": size[0],
              "height": size[1], "format": "jpg", "author": "Ada", "licence": licence, "licence_url": "https://l.example",
              "source_url": "https://s.example", "phash": "0" * 16, "error": ""}  # fmt: skip
    return PictureCandidate(CorpusImage(**(values | changes)), source, PictureFile(sha256, path))


@pytest.fixture
def anchor():
    names = (("Kelm Bridge",), ("Mira Tolland", "Tolland"))
    return Anchor(0, (1,), "Kelm Bridge", "Q7", "A.jpg", names, ANSWER, frozenset({"bridge"}))


@pytest.fixture
def make_chooser(tmp_path):
    def make(order=None, search=None, copies=None, eyes=None, **settings):
        reader = Reader((eyes,)) if eyes else None
        store = PictureStore(tmp_path / "store")
        chosen = GroundingsConfig(**settings)
        rater = EaseRater(search or Search(), store)
        return PictureChooser(store, NoLister(), order or Order(), rater, copies or Copies(), reader, chosen)

    return make


def choose(chooser, anchor, *candidates):
    return asyncio.run(chooser.choose(anchor, candidates))


def test_the_best_ranked_candidate_that_passes_is_taken_and_stored(make_chooser, anchor, tmp_path):
    first, second = make_candidate(tmp_path), make_candidate(tmp_path, "B.jpg", "page", seed=2)
    chooser = make_chooser(Order(a=0.05, b=0.2))
    choice = choose(chooser, anchor, first, second)
    assert (choice.picture.file, choice.refused) == ("B.jpg", ())
    assert chooser.pictures.read(choice.picture) == second.file.path.read_bytes()
    seen = choice.depiction
    assert (seen.source, seen.ranker, seen.candidates, seen.margin) == ("page", "order", 2, 0.2)
    assert (seen.over_threshold, seen.articles, seen.depicts, seen.engines) == (True, 1, None, ())


@pytest.mark.parametrize(
    ("made", "parts", "code"),
    [
        ({"size": (600, 300)}, {}, "picture-too-small"),
        ({"licence": "Fair use"}, {}, "picture-not-free"),
        ({}, {"order": Order(a=-0.01)}, "picture-of-another"),
        ({"file": "Flag of Kelm.jpg"}, {}, "picture-too-simple"),
        ({"title": ("Kelm Bridge", "Orsa Bridge")}, {}, "picture-ambiguous"),
        ({"depicts": ("Q99",)}, {}, "picture-ambiguous"),
        ({}, {"copies": Copies((Copy("Other.jpg", ("Orsa Bridge",), 0),))}, "picture-duplicate"),
        *(({}, {"eyes": Eyes(line)}, "picture-readable") for line in ("KELM BRIDGE", "to Kelm Br1dge", "since 1867")),
    ],
)
def test_what_speaks_against_the_best_candidate_is_named(make_chooser, anchor, tmp_path, made, parts, code):
    choice = choose(make_chooser(**parts), anchor, make_candidate(tmp_path, **made))
    assert (choice.picture, choice.refused[0].code) == (None, code)


def test_ease_is_rated_at_training_resolution_too(make_chooser, anchor, tmp_path):
    search = Search()
    choose(make_chooser(search=search), anchor, make_candidate(tmp_path))
    full, small = search.sizes
    assert full == (640, 520)
    assert choose(make_chooser(search=Search(())), anchor, make_candidate(tmp_path)).depiction.ease == "hard"
    assert small[0] * small[1] <= 264_000


def test_a_picture_that_an_engine_cannot_read_gives_way_to_one_that_it_can(make_chooser, anchor, tmp_path):
    class Broken(Eyes):
        async def read_text(self, data, scale=1.0):
            if data == bad.file.path.read_bytes():
                raise RecordFailed("ocr-timeout", "no end in 60 s")
            return ()

    bad, good = make_candidate(tmp_path), make_candidate(tmp_path, "B.jpg", "page", seed=2)
    chooser = make_chooser(Order(a=0.3, b=0.1), eyes=Broken())
    assert choose(chooser, anchor, bad, good).picture.file == "B.jpg"
    (refused,) = choose(chooser, anchor, bad).refused
    assert (refused.outcome, refused.code) == ("UNKNOWN", "picture-readable")
    assert refused.detail == "A.jpg: ocr-timeout: no end in 60 s"


def test_a_file_that_is_gone_stops_the_run_and_a_changed_one_is_refused(make_chooser, anchor, tmp_path):
    candidate = make_candidate(tmp_path)
    candidate.file.path.write_bytes(b"other")
    assert choose(make_chooser(), anchor, candidate).refused[0].code == "picture-unusable"
    candidate.file.path.unlink()
    with pytest.raises(Unavailable, match="restore it"):
        choose(make_chooser(), anchor, candidate)
