import asyncio
from dataclasses import replace

import pytest

from pipelines.agent.pictures import RepairTool, degrade_picture, make_repairs
from pipelines.config.settings import EnhancementsConfig
from pipelines.pictures import PictureStore
from pipelines.services.protocols import ImageHit
from pipelines.stages.enhancements import Enhancements
from schemas.datasets import Difficulty, Enhancement, SearchResult
from tests.pipelines.agent.test_pictures import DATA, HashSearch, make_reader
from tests.pipelines.agent.trail import SOURCE, make_question

RULES = {"share": 1.0, "degradations": ("perspective",)}


@pytest.fixture
def picture(tmp_path):
    return PictureStore(tmp_path).add_bytes(DATA, SOURCE)


@pytest.fixture
def build(tmp_path):
    """A stage that turns every picture away and looks it up, with changes to its rules or parts."""

    def build_stage(rules=None, **parts):
        repairs = make_repairs(None, opencv=True)
        config = EnhancementsConfig(**(RULES | (rules or {})))
        return replace(Enhancements(PictureStore(tmp_path), HashSearch(), None, repairs, config, 7), **parts)

    return build_stage


def ask(picture, number=1):
    question = make_question(picture, number)
    fields = {name: getattr(question, name) for name in Difficulty.model_fields}
    return Difficulty(**fields)


def run(stage, record):
    return asyncio.run(stage(record))


def list_ways(row):
    return [(offer.trial.degradation, offer.trial.test) for offer in row.offers]


def test_a_question_stays_as_it_is_and_offers_the_trial_that_held_with_what_a_search_finds(build, picture, tmp_path):
    record = ask(picture)
    (row,) = run(build(), record)
    (offer,) = row.offers
    assert row.model_copy(update={"found": (), "offers": ()}) == Enhancement(**dict(record))
    assert (offer.trial.degradation, offer.trial.repair, offer.trial.test) == (
        "perspective",
        "perspective_correct",
        "image-search",
    )
    assert (offer.trial.before, offer.trial.degraded, offer.trial.repaired) == (True, False, True)
    assert len(list(tmp_path.rglob("*.png"))) == 1
    assert run(build(), record) == (row,)
    assert run(build(seed=8), record)[0].offers != row.offers
    assert len({run(build(), ask(picture, number))[0].offers[0].trial.strength for number in range(8)}) > 1


@pytest.mark.parametrize("search", [HashSearch(), HashSearch("Another")])
def test_a_blur_that_no_search_notices_is_tested_by_the_fine_structure_that_it_takes_away(build, picture, search):
    rules = {"degradations": ("blur", "perspective")}
    (row,) = run(build(rules, search=search), ask(picture))
    turned = [("perspective", "image-search")] if search.title == "Kelm Bridge" else []
    assert list_ways(row) == [("blur", "detail"), *turned]
    untold = {"blur": RepairTool("sharpen", "none", lambda data: None)}
    (row,) = run(build(rules, search=search, repairs=untold), ask(picture))
    assert (row.offers, row.left_whole.partition(": ")[0]) == ((), "unrepaired")
    assert "detail 0." in row.left_whole


@pytest.mark.parametrize("rules", [{"share": 0.0}, {"degradations": ("downsample",)}])
def test_a_question_that_is_not_chosen_goes_on_as_it_is(build, picture, rules):
    record = ask(picture)
    (row,) = run(build(rules), record)
    assert row.model_copy(update={"found": ()}) == Enhancement(**dict(record))
    assert (row.trial, row.original) == (None, None)
    assert run(build(), ask(None))[0].offers == ()


def test_every_row_keeps_what_a_search_by_its_final_picture_finds(build, picture, tmp_path):
    searched = []

    class Watching(HashSearch):
        async def search_image(self, picture, count):
            searched.append((picture.sha256, count))
            return (ImageHit("https://w/Kelm", "Kelm Bridge <image>", "A page.", 0.0, row_picture),)

    row_picture = picture
    (plain,) = run(build({"share": 0.0}, search=Watching()), ask(picture))
    assert searched == [(picture.sha256, 5)]
    assert plain.found == (SearchResult(url="https://w/Kelm", title="Kelm Bridge ", thumbnail=picture),)
    (tried,) = run(build(), ask(picture))
    (offer,) = tried.offers
    made = degrade_picture(DATA, "perspective", offer.trial.strength, 7, tried.record_id).data
    degraded = PictureStore(tmp_path).add_bytes(made, SOURCE)
    assert run(build({"share": 0.0}), ask(degraded))[0].found == offer.found


def give_back(data):
    return None


def list_left():
    perspective = {"perspective": RepairTool("perspective_correct", "none", give_back)}
    return [
        ({}, {"search": HashSearch("Another")}, "untested", "neither words nor"),
        ({}, {"repairs": perspective}, "unrepaired", "0.00 after perspective_correct"),
    ]


@pytest.mark.parametrize(("rules", "parts", "reason", "detail"), list_left())
def test_a_picture_for_which_the_loop_does_not_hold_is_left_as_it_is_with_the_trials(
    build, picture, tmp_path, rules, parts, reason, detail
):
    record = ask(picture)
    (row,) = run(build(rules, **parts), record)
    assert row.model_copy(update={"found": (), "left_whole": ""}) == Enhancement(**dict(record))
    assert row.left_whole.partition(": ")[0] == reason
    assert detail in row.left_whole
    assert len(list(tmp_path.rglob("*.png"))) == 1


def test_the_fingerprint_follows_rules_tools_and_tests_and_nothing_when_none_is_degraded(build):
    stages = [
        build(),
        build(seed=8),
        build(
            repairs=make_repairs(None, opencv=False)
            | {"perspective": RepairTool("perspective_correct", "b", give_back)}
        ),
        build(search=HashSearch(identity="other")),
        build(reader=make_reader("")),
        build({"share": 0.0}),
    ]
    assert len({stage.fingerprint() for stage in stages}) == len(stages)
    assert build({"share": 0.0}, repairs={}).fingerprint() == build({"share": 0.0}).fingerprint()
    assert (build().prompts(), build().models()) == ({}, ())
