import asyncio
from dataclasses import dataclass, field

import numpy as np
import pytest

from pipelines.agent.pictures import (
    BROKEN,
    HALVINGS,
    RESTORED,
    Patient,
    Reader,
    RepairTool,
    find_gauge,
    find_strength,
    list_words,
    make_repairs,
    try_repair,
)
from pipelines.pictures import compute_phash, measure_distance
from pipelines.pixels import open_pixels
from pipelines.services.protocols import ImageHit, TextBlock
from tests.pipelines.agent.signs import draw_scene, encode_scene

DATA = encode_scene(draw_scene(1), "png")


@dataclass
class FakeOcr:
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


@dataclass(frozen=True)
class DetailGauge:
    """Of use as long as a picture has so much contrast between neighbours."""

    least: float
    test: str = "text"

    async def measure(self, data):
        gray = np.asarray(open_pixels(data).convert("L"), dtype=float)
        return 1.0 if np.abs(np.diff(gray, axis=1)).mean() >= self.least else 0.0


def make_reader(original, *later):
    return Reader((FakeOcr(original, list(later)),), scales=(1.0,))


def look(tmp_path, reader, search, title="Kelm Bridge"):
    return asyncio.run(find_gauge(DATA, reader, search, title, tmp_path))


def attempt(gauge, degradation="blur", strength=0.5, mend=None):
    repair = make_repairs(None, opencv=True)[degradation]
    if mend is not None:
        repair = RepairTool(repair.name, "fake", mend)
    return asyncio.run(try_repair(Patient(DATA, gauge, degradation, repair, (1,)), strength))


def test_words_are_the_test_where_the_original_has_two(tmp_path):
    gauge = look(tmp_path, make_reader("Old Harbour\n5"), HashSearch())
    assert (gauge.test, gauge.words) == ("text", {"old", "harbour"})


@pytest.mark.parametrize("reader", [None, make_reader(""), make_reader("Harbour harbour A")])
def test_a_search_by_picture_is_the_test_where_it_has_none(tmp_path, reader):
    assert look(tmp_path, reader, HashSearch()).test == "image-search"


def test_a_picture_that_neither_tells_has_no_test(tmp_path):
    assert look(tmp_path, None, HashSearch("Another")) is None
    assert look(tmp_path, None, HashSearch(""), title="") is None


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
    gauge = look(tmp_path, make_reader("one two three four five", degraded, repaired), HashSearch())
    assert attempt(gauge).holds is holds


def test_there_is_room_for_noise_between_broken_and_restored():
    assert BROKEN < 0.6 < RESTORED


def test_a_tool_that_gives_the_original_back_restores_nothing(tmp_path):
    tried = attempt(look(tmp_path, None, HashSearch()), "perspective", 1.0, mend=lambda data: None)
    assert (tried.trial.before, tried.trial.degraded, tried.trial.repaired) == (True, False, False)


def test_perspective_hides_a_picture_from_a_search_and_its_tool_brings_it_back(tmp_path):
    tried = attempt(look(tmp_path, None, HashSearch()), "perspective", 0.75)
    assert tried.holds
    assert tried.trial.repair == "perspective_correct"
    assert tried.describe().startswith("perspective 0.75 (upper_left_x")
    assert tried.describe().endswith("image-search 0.00, 1.00 after perspective_correct")


def run_course(gauge, strengths, mend=None):
    repair = RepairTool("sharpen", "fake", mend) if mend else make_repairs(None, opencv=False)["blur"]
    return asyncio.run(find_strength(Patient(DATA, gauge, "blur", repair, (1,)), strengths))


def measure_detail(data):
    return float(np.abs(np.diff(np.asarray(open_pixels(data).convert("L"), dtype=float), axis=1)).mean())


def test_between_harmless_and_beyond_repair_the_range_of_the_tool_is_found():
    course = run_course(DetailGauge(0.55 * measure_detail(DATA)), (0.01, 1.0))
    assert [tried.trial.strength for tried in course][:2] == [0.01, 1.0]
    assert course[0].trial.degraded
    assert not course[1].holds
    assert course[-1].holds
    assert 0.01 < course[-1].trial.strength < 1.0
    assert not any(tried.holds for tried in course[:-1])


def test_a_picture_that_nothing_harms_is_tried_at_each_strength_once():
    course = run_course(DetailGauge(0.0), (0.25, 0.5, 1.0))
    assert [tried.trial.strength for tried in course] == [0.25, 0.5, 1.0]
    assert all(tried.trial.degraded for tried in course)


def test_a_tool_that_never_helps_is_tried_a_bounded_number_of_times():
    course = run_course(DetailGauge(0.55 * measure_detail(DATA)), (0.25, 0.5, 1.0), mend=lambda data: data)
    assert not course[-1].holds
    assert len(course) <= 3 + HALVINGS


def test_words_are_compared_without_case_and_single_letters():
    assert list_words(["Old HARBOUR, a 12 m", "harbour"]) == {"old", "harbour", "12"}
