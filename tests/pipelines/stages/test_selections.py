from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.agent.pictures import degrade_picture
from pipelines.checks.limits import Limits
from pipelines.checks.quotas import Quotas
from pipelines.config.settings import EnhancementsConfig, ReleasesConfig
from pipelines.errors import GateNotMet
from pipelines.pictures import PictureStore
from pipelines.run.stage import DatasetStage
from pipelines.stages.selections import Selections, choose_degradations
from schemas.base import Rejection
from schemas.datasets import Offer, SearchResult
from schemas.reasons import STAGE_REASONS
from tests.pipelines.agent.signs import draw_scene, encode_scene
from tests.pipelines.agent.trail import SOURCE
from tests.pipelines.release.builders import make_picture, make_question, make_trial

WAYS = ("blur", "downsample", "perspective")
FOUND = (SearchResult(url="u", title="Kelm Bridge"),)
LOOSE = ReleasesConfig(max_skeleton_share=1.0)


def make_selections(tmp_path, limits=LOOSE, **changes):
    return Selections(Limits(limits), EnhancementsConfig(**changes), PictureStore(tmp_path / "images"), 7)


def select(stage, *questions):
    return list(stage([questions]))


def test_selections_is_a_dataset_stage_whose_key_holds_its_limits(tmp_path):
    stages = [
        make_selections(tmp_path),
        make_selections(tmp_path, ReleasesConfig()),
        make_selections(tmp_path, share=0.2),
        make_selections(tmp_path, substitute=True),
        replace(make_selections(tmp_path), seed=8),
    ]
    assert all(isinstance(stage, DatasetStage) for stage in stages)
    assert len({stage.fingerprint() for stage in stages}) == len(stages)
    assert (stages[0].prompts(), stages[0].models()) == ({}, ())


def test_what_a_release_would_refuse_of_questions_alone_is_refused_in_the_order_it_came(tmp_path):
    pictures = [make_picture(tmp_path, number) for number in range(4)]
    first, second, third = (make_question(n, pictures[n], split) for n, split in enumerate(("sft", "sft", "eval")))
    twin = second.model_copy(update={"proof": first.proof, "answer": first.answer})
    shared = third.model_copy(update={"answer": first.answer})
    rows = select(make_selections(tmp_path), twin, shared, first)
    assert [(row.record_id, row.reason if isinstance(row, Rejection) else "") for row in rows] == [
        (twin.record_id, "shared-across-splits"),
        (shared.record_id, ""),
        (first.record_id, "shared-across-splits"),
    ]
    assert rows[1] == shared
    assert select(make_selections(tmp_path), twin, first)[0].reason == "duplicate-question"


def test_with_target_sizes_what_an_earlier_round_kept_stays_when_later_ones_bring_more(tmp_path):
    later, earlier = make_question(1, None), make_question(2, None)
    earlier = earlier.model_copy(update={"answer": later.answer})
    limits = ReleasesConfig(max_skeleton_share=1.0, max_answer_share=1.0)
    stage = make_selections(tmp_path, limits)
    stage = replace(stage, limits=replace(stage.limits, quotas=Quotas((), (), {("sft",): 2}), per_answer=1))
    assert later.record_id < earlier.record_id
    (kept,) = select(stage, earlier)
    found, refused = select(stage, earlier, later)
    assert found == kept
    assert (refused.record_id, refused.reason) == (later.record_id, "answer-over-used")


def test_a_chosen_picture_is_degraded_as_its_trial_says_and_makes_another_question(tmp_path):
    data = encode_scene(draw_scene(1))
    store = PictureStore(tmp_path / "images")
    picture = store.add_bytes(data, SOURCE)
    made = degrade_picture(data, "perspective", 0.5, 7, make_question(1, picture).record_id)
    trial = make_trial(
        degradation="perspective", repair="perspective_correct", strength=0.5, parameters=made.parameters
    )
    row = make_question(1, picture, offers=(Offer(trial=trial, found=FOUND),), left_whole="unharmed: blur")
    (whole,) = select(make_selections(tmp_path, share=0.0), row)
    assert whole == row.model_copy(update={"offers": (), "left_whole": ""})
    (found,) = select(make_selections(tmp_path, share=1.0, degradations=("perspective",)), row)
    assert store.read(found.picture) == made.data
    assert (found.parent_id, found.original, found.trial, found.found) == (row.record_id, picture, trial, FOUND)
    assert (found.record_id != row.record_id, found.offers, found.left_whole) == (True, (), "")
    assert (found.picture.author, found.picture.licence) == (picture.author, picture.licence)


@given(
    st.lists(st.lists(st.sampled_from(WAYS), min_size=1, unique=True), max_size=60), st.integers(0, 60), st.booleans()
)
def test_each_degradation_that_can_be_had_keeps_its_part(ways, wanted, substitute):
    offered = {f"q{number:02}": found for number, found in enumerate(ways)}
    chosen = choose_degradations(offered, WAYS, wanted, substitute)
    assert all(way in offered[record_id] for record_id, way in chosen.items())
    assert len(chosen) <= wanted
    counts = Counter(chosen.values())
    if not substitute:
        possible = {way for found in ways for way in found}
        numbers = [counts[way] for way in possible] or [0]
        assert max(numbers) <= max(min(numbers) + 1, 1.15 * min(numbers))
        assert max(numbers) <= -(-wanted // len(WAYS))
    else:
        assert len(chosen) == min(wanted, len(offered))


@pytest.mark.parametrize(
    ("offers", "substitute", "expected"),
    [
        (("blur", "downsample", "perspective"), False, {"blur": 10, "downsample": 10, "perspective": 10}),
        (("blur", "perspective"), False, {"blur": 10, "perspective": 10}),
        (("blur", "perspective"), True, {"blur": 15, "perspective": 15}),
    ],
)
def test_the_part_of_one_that_no_tool_repairs_goes_to_the_others_only_where_the_setting_lets_it(
    offers, substitute, expected
):
    offered = {f"q{number:02}": offers for number in range(90)}
    assert Counter(choose_degradations(offered, WAYS, 30, substitute).values()) == expected


def mix(tmp_path, bounds, *rows):
    """Return what is kept of rows and the reasons of what is not, under bounds of the share that needs no search."""
    made = select(make_selections(tmp_path, ReleasesConfig(max_skeleton_share=1.0, search_free=bounds)), *rows)
    refused = {row.record_id: row.reason for row in made if isinstance(row, Rejection)}
    return [row for row in made if not isinstance(row, Rejection)], refused


def need(number, kind, split="rl"):
    return make_question(number, None, split, search_need=kind)


def test_a_mix_is_decided_by_the_bounds_and_says_what_it_refuses(tmp_path):
    rows = [need(n, "search-free" if n < 8 else "image") for n in range(12)]
    kept, refused = mix(tmp_path, (0.3, 0.34), *rows)
    assert Counter(row.search_need for row in kept) == {"search-free": 2, "image": 4}
    assert set(refused.values()) == {"search-free-over-share"} <= set(STAGE_REASONS["selections"])
    assert [row.record_id for row in kept] == sorted(row.record_id for row in kept)


def test_a_run_that_cannot_meet_the_floor_says_by_which_gate(tmp_path):
    with pytest.raises(GateNotMet, match=r"releases\.search_free.*of rl, 0 need no search and 3 take one"):
        mix(tmp_path, (0.3, 0.34), *(need(n, "image") for n in range(3)))
