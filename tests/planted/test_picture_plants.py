import io
from random import Random

import pytest
from PIL import Image

from pipelines.pictures import compute_phash, measure_distance
from pipelines.toy.textlayer import LayerOcr
from tests.planted import picture_plants
from tests.planted.catalogue import DEMANDS
from tests.planted.picture_plants import DESIGNS, GalleryFinder, copy_picture, draw_design, list_kin, open_gallery
from tests.planted.words import HALVES, load_half

PAIRS = 24
SIGNS = (picture_plants.plant_sign, picture_plants.plant_answer_sign)


def plant(defect, half, count=PAIRS, seed=5):
    rng = Random(f"{seed}:{defect.title}:{half}")
    return [defect.plant(load_half(half), rng) for _ in range(count)]


def test_the_checks_tell_the_twins_of_pictures_apart():
    pairs = [pair for defect in picture_plants.DEFECTS for half in HALVES for pair in plant(defect, half)]
    missed = [pair.plant for pair in pairs if not pair.caught and not pair.undecided]
    alarmed = [(pair.plant, pair.clean) for pair in pairs if not pair.clean.passed]
    assert len(missed) <= (1 - DEMANDS["D13"].recall) * len(pairs), missed
    assert len(alarmed) <= DEMANDS["D13"].false_alarm * len(pairs), alarmed

    assert {pair.codes for pair in pairs} == {
        ("picture-too-simple",), ("picture-duplicate",), ("picture-ambiguous",), ("picture-unusable",),
    }  # fmt: skip


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("sign", SIGNS)
def test_a_sign_with_a_name_is_told_from_one_with_a_strangers(sign, half):
    rng = Random(f"signs:{half}")
    found = [sign(load_half(half), rng, LayerOcr()) for _ in range(40)]
    assert [pair for pair in found if not pair.flips] == []
    assert len({pair.plant for pair in found}) > 35


@pytest.mark.parametrize("sign", SIGNS)
def test_an_engine_reads_the_sign(sign):
    assert picture_plants.open_engine().name == "rapidocr"
    assert sign(load_half("held-out"), Random("read")).flips


@pytest.mark.parametrize("half", HALVES)
def test_a_copy_of_the_lead_picture_is_found_at_once_and_another_view_is_not(half):
    (easy,) = picture_plants.MEASURED
    assert [pair for pair in plant(easy, half) if not pair.flips] == []


def test_the_designs_of_the_halves_differ_and_say_where_their_text_stands():
    drawn = [set(map(id, DESIGNS[half].values())) for half in HALVES]
    assert not drawn[0] & drawn[1]
    assert {"flag", "map", "arms"} <= DESIGNS["open"].keys() & DESIGNS["held-out"].keys()
    for half in HALVES:
        for seed in range(20):
            name, picture, written = draw_design(load_half(half), (640, 512), Random(seed))
            assert bool(written) == (name in ("card", "table", "poster") or (half, name) == ("held-out", "logo"))
            assert picture.size == (640, 512)


def test_the_gallery_is_searched_by_hash_and_a_copy_keeps_its_hash():
    gallery, rng = open_gallery(), Random(1)
    assert all(list_kin(each) for each in gallery)
    distances = [measure_distance(one.phash, other.phash) for one in gallery for other in gallery if one is not other]
    assert min(distances) > picture_plants.NEAR
    exhibit = gallery[7]
    ways = dict(copy_picture(exhibit.lead, rng) for _ in range(40))
    assert set(ways) == {"as it is", "quality", "smaller", "larger", "png", "crop"}
    assert all(measure_distance(compute_phash(copy), exhibit.phash) <= picture_plants.NEAR for copy in ways.values())
    with Image.open(io.BytesIO(ways["smaller"])) as smaller:
        assert smaller.width < exhibit.size[0]
    (copy,) = GalleryFinder().find_copies(exhibit.phash)
    assert (copy.file, copy.titles, copy.distance) == (exhibit.file, (exhibit.title,), 0)
    assert GalleryFinder().find_copies(f"{int(exhibit.phash, 16) ^ (2**64 - 1):016x}") == ()


def test_one_seed_plants_the_same_pair_and_another_plants_another():
    defect = picture_plants.DEFECTS[1]
    assert plant(defect, "open", 3) == plant(defect, "open", 3)
    assert plant(defect, "open", 3) != plant(defect, "open", 3, seed=6)
