import asyncio

import pytest

from pipelines.cli.doctor import ask_commons, look_at_pictures
from pipelines.config.loading import make_config, read_recipe
from pipelines.config.settings import COMMONS_API, CommonsConfig
from tests.pipelines.services.clients.commons_server import make_image, run_commons


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


def test_what_the_gate_for_seeds_pictures_asks_is_said_before_the_run(tmp_path):
    dump = tmp_path / "wiki-20260101-pages-articles.xml"
    dump.write_text("")
    fetched = (f"corpus.dump={dump}", "commons.fetch=true", "commons.contact=a@b.example")
    found = look(*fetched)["seeds' pictures"]
    assert (found.state, "page_props" in found.detail) == ("warning", True)
    (tmp_path / "wiki-20260101-page_props.sql").write_text("")
    found = look(*fetched)["seeds' pictures"]
    assert (found.state, COMMONS_API in found.detail) == ("ok", True)
    (tmp_path / "commons-20260101-mediainfo.ttl").write_text("")
    assert "seeds' pictures" not in look(*fetched)
    assert "seeds' pictures" not in look(*fetched[:1], "seeds.require_image=false")


def test_commons_is_asked_once_whether_it_is_there():
    with run_commons(images={"File:Example.jpg": [make_image()]}) as server:
        config = CommonsConfig(api=server.url, contact="a@b.example")
        assert asyncio.run(ask_commons(config)).state == "ok"
        assert len(server.asked) == 1
        server.answer = lambda server, form: {"error": {"code": "unknown_action"}}
        assert asyncio.run(ask_commons(config)).state == "problem"
    assert asyncio.run(ask_commons(config, patience=0.5)).state == "problem"
