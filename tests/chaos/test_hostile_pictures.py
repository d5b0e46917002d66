"""Pictures that were made to hurt in place of the lead pictures of a world: each ends as a row with its reason.

What each may cost is measured by ``python -m tests.benchmarks.run pictures``.
"""

import pytest

from tests.chaos.driving import share_small_run
from tests.chaos.hostile_runs import HostileRun, run_hostile
from tests.hostile_pictures import HOSTILE, ODD, draw, encode

REFUSED = {name: hostile.error for name, hostile in HOSTILE.items() if hostile.error}
SIZES = {name: HOSTILE[name].size for name in HOSTILE.keys() - REFUSED.keys()} | {
    name: odd.size for name, odd in ODD.items()
}
DOT = "one pixel"


def build_pictures() -> dict[str, bytes]:
    built = {name: picture.build() for name, picture in {**HOSTILE, **ODD}.items()}
    return {**built, DOT: encode(draw((1, 1)), "PNG")}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> HostileRun:
    shared, _ = share_small_run(tmp_path_factory.getbasetemp())
    return run_hostile(shared, tmp_path_factory.mktemp("hostile"), build_pictures())


def test_no_picture_fails_the_run_and_every_row_is_accounted_for(run: HostileRun) -> None:
    for stage in run.document["stages"]:
        assert stage["rows_in"] == stage["kept"] + sum(stage["rejected"].values()) + stage["failed"], stage
        assert stage["failed"] == 0, stage


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_hostile_lead_picture_refuses_its_seed_with_the_reason(run: HostileRun, name: str) -> None:
    assert run.images[run.files[name]]["error"] == REFUSED[name].removeprefix("picture-")
    assert run.refusals[name]["reason"] == "image-unusable"
    assert REFUSED[name].removeprefix("picture-") in run.refusals[name]["detail"]


def test_a_lead_picture_of_one_pixel_is_too_small(run: HostileRun) -> None:
    assert run.refusals[DOT]["reason"] == "image-too-small"


@pytest.mark.parametrize("name", sorted(SIZES))
def test_an_odd_but_healthy_lead_picture_is_kept_with_its_size(run: HostileRun, name: str) -> None:
    image = run.images[run.files[name]]
    assert (image["error"], image["width"], image["height"]) == ("", *SIZES[name])
    refused = run.refusals.get(name, {"reason": ""})["reason"]
    assert refused == "image-too-small" if max(SIZES[name]) < 100 else not refused.startswith("image")


def test_a_picture_of_the_wrong_extension_is_what_its_first_bytes_say(run: HostileRun) -> None:
    wrong = [name for name, odd in ODD.items() if not run.files[name].endswith(f".{odd.extension}")]
    assert len(wrong) > 1
    assert all(run.images[run.files[name]]["format"] == ODD[name].extension for name in wrong)


def test_what_is_grounded_with_an_odd_picture_has_its_size(run: HostileRun) -> None:
    for name, file in run.files.items():
        if file in run.grounded:
            picture = run.grounded[file]
            assert (picture["width"], picture["height"]) == SIZES[name]
