"""What is done to pictures: repairs, degradations, the loop that tests both, and reading."""

import asyncio
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw

from pipelines.agent.pictures import (
    BROKEN,
    RESTORED,
    Gauge,
    Reader,
    RepairLoop,
    RepairTool,
    correct_perspective,
    degrade_picture,
    find_gauge,
    list_words,
    make_repairs,
    place_corners,
)
from pipelines.pictures import compute_phash, find_extension, measure_distance, open_pixels
from pipelines.services.protocols import ImageHit, TextBlock
from tests.pipelines.agent.signs import draw_scene, encode_scene
from tests.pipelines.services.clients.signs import draw_sign

DATA = encode_scene(draw_scene(1), "png")
STRENGTHS = (0.1, 0.25, 0.5, 0.75, 1.0)
DEGRADATIONS = ("blur", "downsample", "perspective")


@dataclass(frozen=True)
class Doubling:
    scale: int = 2
    identity: str = "doubling"

    def enlarge(self, pixels):
        return pixels.repeat(2, axis=0).repeat(2, axis=1)


def measure_detail(data):
    gray = np.asarray(open_pixels(data).convert("L"), dtype=float)
    return float(np.abs(np.diff(gray, axis=1)).mean())


def draw_card(corners, size=(640, 480), outline=True):
    """A light card on a dark ground."""
    image = Image.new("RGB", size, (30, 30, 34))
    if outline:
        ImageDraw.Draw(image).polygon(corners, fill=(230, 226, 220))
    return encode_scene(image, "png")


def test_a_card_seen_at_an_angle_is_straightened():
    corners = [(120, 80), (520, 130), (560, 400), (90, 430)]
    made = correct_perspective(draw_card(corners))
    assert made is not None
    straight = open_pixels(made)
    assert abs(straight.width - 471) < 12
    assert abs(straight.height - 351) < 12
    assert np.asarray(straight).mean() > 220


@pytest.mark.parametrize("seed", range(3))
def test_a_picture_turned_away_is_recognised_again_once_corrected(seed):
    data = encode_scene(draw_scene(seed))
    turned = degrade_picture(data, "perspective", 0.6, seed).data
    made = correct_perspective(turned)
    assert made is not None
    original = compute_phash(data)
    assert measure_distance(compute_phash(made), original) <= 8 < measure_distance(compute_phash(turned), original)


@pytest.mark.parametrize("degradation", DEGRADATIONS)
@pytest.mark.parametrize("extension", ["jpg", "png"])
def test_the_same_seed_makes_the_same_bytes_in_the_same_format(degradation, extension):
    data = encode_scene(draw_scene(1), extension)
    first, second = (degrade_picture(data, degradation, 0.5, 7, "row") for _ in range(2))
    assert first == second
    assert find_extension(first.data) == extension
    assert first.data != data
    other = degrade_picture(data, degradation, 0.5, 7, "another row")
    assert (other == first) is (degradation != "perspective")


@pytest.mark.parametrize("degradation", DEGRADATIONS)
def test_a_stronger_degradation_leaves_the_picture_less_like_itself(degradation):
    data = encode_scene(draw_scene(4), "png")
    original = np.asarray(open_pixels(data), dtype=float)
    losses = []
    for strength in STRENGTHS:
        shown = open_pixels(degrade_picture(data, degradation, strength, 1).data).resize((640, 480))
        losses.append(float(np.abs(np.asarray(shown, dtype=float) - original).mean()))
    assert losses == sorted(losses)
    assert losses[0] < losses[-1]


@given(st.integers(32, 4000), st.integers(32, 4000), st.floats(0.01, 1.0), st.floats(0.01, 1.0), st.integers(0, 10_000))
@settings(max_examples=300, deadline=None)
def test_corners_move_inwards_with_the_strength_and_stay_convex(width, height, one, other, seed):
    weak, strong = sorted((one, other))
    far, near = (np.array(place_corners((width, height), strength, (seed,))) for strength in (weak, strong))
    middle = np.array([width / 2, height / 2])
    assert (np.abs(near - middle) <= np.abs(far - middle) + 0.01).all()
    for corners in (near, far):
        sides = np.roll(corners, -1, axis=0) - corners
        following = np.roll(sides, -1, axis=0)
        assert (sides[:, 0] * following[:, 1] - sides[:, 1] * following[:, 0] > 0).all()


@dataclass
class TurnOcr:
    """Reads the given words of the original, and of any other picture the words given for its turn."""

    original: str
    later: list[str] = field(default_factory=list)
    name: str = "fake"
    identity: str = "fake-ocr"

    async def read_text(self, data, scale=1.0):
        text = self.original if data == DATA else self.later.pop(0)
        return tuple(TextBlock(line, "text", (0, 0, 9, 9), 0.9) for line in text.splitlines())


@dataclass(frozen=True)
class HashSearch:
    """Finds the one title by a copy of its picture."""

    title: str = "Kelm Bridge"
    phash: str = compute_phash(DATA)
    identity: str = "hashes"

    async def search_image(self, picture, count):
        assert picture.path.is_file()
        near = measure_distance(compute_phash(picture.path), self.phash) <= 10
        return (ImageHit("u", self.title, "s", 0.0),) if near else ()


def require_detail(least):
    """Return a test that a picture passes as long as it has so much contrast between neighbours."""

    async def measure(data):
        return 1.0 if measure_detail(data) >= least else 0.0

    return Gauge("text", measure)


def make_reader(original, *later):
    return Reader((TurnOcr(original, list(later)),), scales=(1.0,))


def look(tmp_path, reader, search, title="Kelm Bridge"):
    return asyncio.run(find_gauge(DATA, reader, search, title, tmp_path))


def attempt(gauge, degradation="blur", strength=0.5, mend=None):
    repair = make_repairs(None, opencv=True)[degradation]
    if mend is not None:
        repair = RepairTool(repair.name, "fake", mend)
    return asyncio.run(RepairLoop(DATA, gauge, degradation, repair, (1,)).try_strength(strength))


def test_words_are_the_test_where_the_original_has_two_and_a_search_by_picture_otherwise(tmp_path):
    assert look(tmp_path, make_reader("Old Harbour\n5"), HashSearch()).test == "text"
    for reader in (None, make_reader(""), make_reader("Harbour harbour A")):
        assert look(tmp_path, reader, HashSearch()).test == "image-search"
    assert look(tmp_path, None, HashSearch("Another")) is None
    assert look(tmp_path, None, HashSearch(""), title="") is None
    assert list_words(["Old HARBOUR, a 12 m", "harbour"]) == {"old", "harbour", "12"}


@pytest.mark.parametrize(
    ("degraded", "repaired", "holds"),
    [
        ("one two three four five", "", False),  # still of use: not repaired
        ("one two three", "", False),  # 0.6: neither broken nor whole
        ("one two", "one two three four", True),
        ("", "one two three", False),  # 0.6 is no restoration
        ("", "unrelated words", False),
    ],
)
def test_words_must_be_lost_and_come_back(tmp_path, degraded, repaired, holds):
    assert BROKEN < 0.6 < RESTORED
    gauge = look(tmp_path, make_reader("one two three four five", degraded, repaired), HashSearch())
    assert attempt(gauge).holds is holds


def run_course(gauge, strengths, mend=None):
    repair = RepairTool("sharpen", "fake", mend) if mend else make_repairs(None, opencv=False)["blur"]
    return asyncio.run(RepairLoop(DATA, gauge, "blur", repair, (1,)).find_strength(strengths))


def test_between_harmless_and_beyond_repair_the_range_of_the_tool_is_found():
    course = run_course(require_detail(0.55 * measure_detail(DATA)), (0.01, 1.0))
    assert [tried.trial.strength for tried in course][:2] == [0.01, 1.0]
    assert course[0].trial.degraded
    assert not course[1].holds
    assert course[-1].holds
    assert 0.01 < course[-1].trial.strength < 1.0
    assert not any(tried.holds for tried in course[:-1])


SIGN = draw_sign(size=(400, 100))
BOX = (0.0, 0.0, 200.0, 50.0)


@dataclass
class FakeOcr:
    """Reads what it is told, at each scale."""

    lines: dict = field(default_factory=dict)
    name: str = "fake"
    error: Exception | None = None
    asked: list = field(default_factory=list)

    @property
    def identity(self):
        return f"{self.name}@1"

    async def read_text(self, data, scale=1.0):
        self.asked.append(scale)
        if self.error is not None:
            raise self.error
        return tuple(TextBlock(text, "text", box, 0.9) for text, box in self.lines.get(scale, ()))


def read(*engines, **settings):
    return asyncio.run(Reader(engines, **settings).read(SIGN))


def test_every_engine_reads_at_every_scale_and_each_line_counts_once():
    first = FakeOcr({1.0: [("Kelmor Bridge", BOX)], 2.0: [("KELMOR BRIDGE", BOX), ("1875", BOX)]}, "first")
    second = FakeOcr({1.0: [("kelmor  bridge", BOX), ("Exit\n\nClosed", BOX)]}, "second")
    reading = read(first, second)
    assert reading.lines == ("Kelmor Bridge", "1875", "Exit", "Closed")
    assert reading.engines == ("first", "second")
    assert first.asked == second.asked == [1.0, 2.0]
    assert Reader((first, second)).identity == "first@1+second@1@1,2"
