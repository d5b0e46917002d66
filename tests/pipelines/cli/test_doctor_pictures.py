import pytest

from pipelines.cli.doctor import look_at_pictures
from pipelines.config.loading import make_config, read_recipe


def look(*settings, recipe="demo"):
    config = make_config(read_recipe(recipe), settings)
    return {finding.what: finding for finding in look_at_pictures(config)}


def test_the_demo_is_ready_and_needs_no_encoder():
    found = look()
    assert {name: finding.state for name, finding in found.items()} == {
        "ranker": "ok",
        "OCR layer": "ok",
        "degraded pictures": "ok",
    }


def test_without_weights_the_metadata_ranks_and_doctor_says_so():
    found = look("corpus.dump=wiki.xml", recipe="opensearch-vl")
    assert (found["ranker"].state, "encoder.pretrained" in found["ranker"].detail) == ("warning", True)


def test_an_encoder_that_is_asked_for_and_not_to_be_had_is_a_problem(tmp_path):
    weights = tmp_path / "weights.pt"
    found = look("groundings.ranker=clip", f"encoder.pretrained={weights}")
    assert found["encoder"].state == "problem"


@pytest.mark.parametrize(
    ("setting", "state", "word"),
    [
        ('enhancements.degradations=["blur", "downsample"]', "warning", "downsample is left out"),
        ("tools.edsr=/nowhere/EDSR_x4.pb", "problem", "EDSR_x4.pb"),
    ],
)
def test_what_nothing_repairs_is_named(setting, state, word):
    found = look(setting)["degraded pictures"]
    assert (found.state, word in found.detail) == (state, True)


def test_no_degraded_pictures_are_looked_at_where_none_are_made():
    assert "degraded pictures" not in look("enhancements.share=0")


def test_a_dump_without_pictures_that_nobody_fetches_is_a_problem(tmp_path):
    dump = tmp_path / "wiki-20260101-pages-articles.xml"
    dump.write_text("")
    assert look(f"corpus.dump={dump}")["pictures"].state == "problem"
    fetched = look(f"corpus.dump={dump}", "commons.fetch=true", "commons.contact=a@b.example")
    assert "pictures" not in fetched
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "images.tsv").write_text("")
    assert "pictures" not in look(f"corpus.dump={dump}")
