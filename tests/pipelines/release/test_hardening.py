"""What nobody may leave out of a release or lead elsewhere: settings, names of files, parts of pictures."""

import io

import pytest
from PIL import Image, ImageDraw
from pydantic import ValidationError

from pipelines.config.disclosure import disclose_settings
from pipelines.config.loading import make_config, read_recipe
from pipelines.release.manifest import make_release_manifest
from pipelines.release.publish import publish_releases
from pipelines.release.verify.origin import read_settings
from pipelines.release.verify.replaying import look_alike
from schemas.manifest import FileEntry
from tests.pipelines.release.builders import make_context

TOLD, UNTOLD = disclose_settings(make_config(read_recipe("demo"), ()))


def make_manifest(told, untold):
    return make_release_manifest("vqa", "0" * 64, (), (), make_context(told=told, untold=untold))


@pytest.mark.parametrize("name", ["tools.family", "splits.sft", "rollouts.dialect", "rollouts.wanted", "models"])
def test_a_setting_that_is_left_out_is_a_problem(name):
    assert read_settings(make_manifest(TOLD, UNTOLD))[1] == []
    cut = [{key: value for key, value in each.items() if key != name} for each in (TOLD, UNTOLD)]
    (problem,) = read_settings(make_manifest(*cut))[1]
    assert f"{name} is missing; it was made by synth at commit abc123" in problem.what


@pytest.mark.parametrize("name", ["../secret.txt", "/etc/passwd", "data/../../x", "a\\b", "a\0b", "", ".", "a//b"])
def test_a_name_that_may_lead_out_of_the_folder_is_none(name):
    with pytest.raises(ValidationError, match="no name of a file inside the folder"):
        FileEntry(name=name, rows=0, bytes=0, sha256="")
    assert FileEntry(name="data/train.parquet", rows=0, bytes=0, sha256="").name == "data/train.parquet"


def test_a_part_of_a_picture_painted_over_is_another_picture():
    plain = Image.linear_gradient("L").resize((300, 217)).convert("RGB")
    painted = plain.copy()
    ImageDraw.Draw(painted).rectangle((2, 2, 38, 22), fill=(255, 0, 0))
    assert look_alike(save(plain, "PNG"), save(plain, "JPEG"))
    assert not look_alike(save(plain, "PNG"), save(painted, "PNG"))


def save(image, kind):
    made = io.BytesIO()
    image.save(made, kind, quality=85)
    return made.getvalue()


@pytest.fixture
def folder(tmp_path, material, context):
    return publish_releases(tmp_path, *material, context)[0].path
