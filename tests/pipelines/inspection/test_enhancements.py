"""The report on degraded pictures: shares by degradation and strength, and pictures before, degraded and repaired."""

import base64
import io
import re

import pytest
from PIL import Image

from pipelines.agent.observations import credit_picture
from pipelines.agent.pictures import degrade_picture
from pipelines.cli.report import collect_report, render_report, report_enhancements
from pipelines.pictures import PictureStore
from pipelines.run.workspace import Workspace
from schemas.base import Failure, Rejection
from schemas.datasets import Enhancement
from tests.pipelines.agent.signs import draw_scene, encode_scene
from tests.pipelines.agent.trail import SOURCE
from tests.pipelines.inspection.conftest import FakeStage, write_stage
from tests.pipelines.release.builders import make_degraded, make_question, make_trial

LOST = "perspective 0.75 (upper_left_x 9.5, upper_left_y 8): image-search 0.00, 0.00 after perspective_correct"
HARMLESS = "perspective 0.5 (upper_left_x 6.2, upper_left_y 5): image-search 1.00, still of use"


def write_rows(root, rows, rejected=(), failed=()):
    write_stage(root, FakeStage("enhancements", Enhancement), "e" * 16, rows, rejected, failed)
    Workspace(root).note_latest({"enhancements": "e" * 16})


def refuse(number, reason, detail):
    return Rejection(record_id=f"question-refused{number}", reason=reason, detail=detail)


@pytest.fixture
def turned(tmp_path):
    """A question whose picture is truly turned away, with both pictures in the image store."""
    store, data = PictureStore(tmp_path / "images"), encode_scene(draw_scene(3))
    made = degrade_picture(data, "perspective", 0.5, "seed")
    original = store.add_bytes(data, SOURCE)
    picture = store.add_bytes(made.data, credit_picture(original))
    trial = make_trial(degradation="perspective", repair="perspective_correct", parameters=made.parameters)
    return make_question(1, picture, original=original, trial=trial)


def test_shares_are_those_of_the_broken_pictures_by_degradation_and_strength(tmp_path):
    kept = [make_degraded(tmp_path, n, trial=make_trial(strength=each)) for n, each in enumerate((0.41, 0.5, 0.5001))]
    rejected = [
        refuse(1, "unrepaired", f"{HARMLESS}; {LOST}; {HARMLESS}"),
        refuse(2, "unrepaired", LOST.replace("perspective 0.75", "blur 0.45")),
        refuse(3, "unharmed", HARMLESS),
        refuse(4, "test-fails", "neither words nor a search by picture tell what the original shows"),
    ]
    write_rows(tmp_path, [*kept, make_question(9, None)], rejected)
    report = report_enhancements(tmp_path)
    assert [(row.degradation, row.strength, row.degraded, row.restored, row.share) for row in report.rows] == [
        ("blur", "0.4 to 0.5", 2 + 1, 2, 67),
        ("blur", "0.5 to 0.6", 1, 1, 100),
        ("perspective", "0.7 to 0.8", 1, 0, 0),
    ]
    assert (report.chosen, report.kept) == (7, 3)
    assert report.refused == (("test-fails", 1), ("unharmed", 1), ("unrepaired", 2))


def test_what_failed_is_counted_and_told_of_no_degradation(tmp_path):
    failed = [Failure(record_id="question-failed1", error="picture-undecodable", detail=LOST.replace(":", ""))]
    write_rows(tmp_path, [], [refuse(1, "test-fails", "neither words nor a search")], failed)
    report = report_enhancements(tmp_path)
    assert (report.rows, report.chosen) == ((), 2)
    assert report.refused == (("picture-undecodable", 1), ("test-fails", 1))


def test_an_example_shows_the_picture_before_degraded_and_repaired(tmp_path, turned):
    write_rows(tmp_path, [turned])
    (example,) = report_enhancements(tmp_path).examples
    assert [picture.label for picture in example.pictures] == ["original", "perspective", "perspective_correct"]
    shown = [decode(picture.data) for picture in example.pictures]
    before, degraded, repaired = (measure_likeness(shown[0], each) for each in shown)
    assert before < repaired < degraded / 2
    assert "perspective of strength 0.5" in example.caption
    assert SOURCE.licence in example.caption


def decode(address):
    return Image.open(io.BytesIO(base64.b64decode(address.partition(",")[2]))).convert("L").resize((32, 24))


def measure_likeness(one, other):
    """Return the mean difference of brightness: 0 of a picture from itself."""
    return sum(abs(a - b) for a, b in zip(one.tobytes(), other.tobytes(), strict=True)) / (32 * 24)


def test_a_repair_that_needs_weights_shows_two_pictures(tmp_path, turned):
    trial = make_trial(degradation="downsample", repair="super_resolution")
    write_rows(tmp_path, [turned.model_copy(update={"trial": trial})])
    (example,) = report_enhancements(tmp_path).examples
    assert [picture.label for picture in example.pictures] == ["original", "downsample"]


def test_a_picture_that_cannot_be_shown_says_why(tmp_path, turned):
    write_rows(tmp_path, [turned])
    PictureStore(tmp_path / "images").path(turned.picture.sha256, turned.picture.extension).write_bytes(b"no picture")
    (example,) = report_enhancements(tmp_path).examples
    assert example.pictures == ()
    assert turned.picture.file in example.caption


def test_the_page_has_the_table_and_the_pictures_only_where_something_was_degraded(tmp_path, turned):
    write_rows(tmp_path / "some", [], [])
    assert "Degraded pictures" not in render_report(collect_report(tmp_path / "some"))
    write_rows(tmp_path, [turned], [refuse(1, "unrepaired", LOST)])
    page = render_report(collect_report(tmp_path))
    part = page[page.index("Degraded pictures") : page.index("<h2>Questions")]
    assert len(re.findall(r'<img src="data:image/webp', part)) == 3
    for text in (
        "0.4 to 0.5",
        "0.7 to 0.8",
        "100%",
        "refused: unrepaired",
        "2 pictures were to be degraded, 1 of them",
    ):
        assert text in part
