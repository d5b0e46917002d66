"""What releases and splits share, however their questions were made."""

from dataclasses import replace

import pytest

from pipelines.checks import limits as limits_module
from pipelines.checks.limits import Limits, refuse_elsewhere, refuse_over_limits
from pipelines.checks.sets import list_shared_values, make_signature, mark_question, refuse_apart
from pipelines.config.settings import ReleasesConfig
from pipelines.graph.proofs import NO_PROOF
from schemas.datasets import Origin, Scene, ScenePart
from schemas.proofs import Trace, TraceLink
from tests.pipelines.release.builders import make_evidence, make_picture, make_question

WALKED = make_question(1, None, "eval")
"""About Kelm Bridge 1, Mira Tolland 1 and Ostrava 1."""


SEEN = {"url": "u", "source": "s", "published": "2026-11-22"}


def make_news(number, anchor, bridge, relation="founded", **changes):
    quote = make_evidence(1, "An article")
    links = (
        TraceLink(subject=anchor, relation="designed by", object=bridge, evidence=quote, **SEEN),
        TraceLink(subject=bridge, relation=relation, object="1901", evidence=quote, **SEEN),
    )
    trace = Trace(
        corpus="c", snapshot="s", anchor=anchor, anchor_kind="person", anchor_evidence=quote, links=links, steps=(),
        decided_by="x",
    )  # fmt: skip
    return make_question(number, None, "sft", proof=NO_PROOF, trace=trace, **changes)


def make_outside(number, entity, **changes):
    origin = Origin(pool="p", row="1", entity=entity, licence="", source="")
    return make_question(number, None, "sft", proof=NO_PROOF, origin=origin, **changes)


OTHERS = {
    "news of the same picture": make_news(2, "KELM Bridge 1", "Nobody"),
    "news that asks about the same": make_news(2, "Nobody", "Ostrava 1"),
    "a pool's question of the same picture": make_outside(2, "Kelm bridge 1"),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_an_entity_is_one_however_a_question_was_made(kind):
    signatures = [make_signature(WALKED), make_signature(OTHERS[kind])]
    refused = refuse_elsewhere((), signatures, Limits(), None)
    assert {name: each.reason for name, each in refused.items()} == {OTHERS[kind].record_id: "shared-across-splits"}
    assert any(list_shared_values(signatures).values())
    apart = refuse_elsewhere((), [make_signature(make_news(3, "Someone", "Something"))], Limits(), None)
    assert apart == {}


def test_guessing_the_commonest_answer_of_what_news_ask_for_is_limited(monkeypatch):
    monkeypatch.setattr(limits_module, "COMMONEST", 0.5)
    same = make_question(5, None).answer
    rows = [make_news(n, f"A {n}", f"B {n}", "mayor", answer=same) for n in range(10, 14)]
    rows += [make_news(n, f"A {n}", f"B {n}", "mayor") for n in range(14, 16)]
    signatures = [make_signature(row) for row in rows]
    assert {each.asked for each in signatures} == {"mayor"}
    limits = Limits(ReleasesConfig(max_skeleton_share=1.0, max_answer_share=0.5), per_answer=9)
    refused = refuse_over_limits(signatures, (), limits)
    assert {each.reason for each in refused.values()} == {"answer-over-used"}
    assert len(refused) == 2


def show_scene(row, part):
    scene = Scene(
        box=(0, 0, 1, 1), share=0.1, training_pixels=1, whole=True, cropped=True, crop_phash="",
        parts=(ScenePart(title="x", picture=part, box=(0, 0, 100, 100)),),
    )  # fmt: skip
    return row.model_copy(update={"scene": scene})


def test_a_part_of_a_scene_is_in_one_split_and_in_no_other_release(tmp_path):
    first, other = make_picture(tmp_path, 1), make_picture(tmp_path, 2)
    shown = make_question(2, first, "eval")
    scene, apart = (make_signature(show_scene(make_question(3, other, "sft"), part)) for part in (first, other))
    refused = refuse_elsewhere((), [make_signature(shown), scene], Limits(), None)
    assert {name: each.reason for name, each in refused.items()} == {scene.record_id: "shared-across-splits"}
    assert refuse_elsewhere((), [make_signature(shown), replace(apart, record_id="q")], Limits(), None) == {}
    held = mark_question(shown.proof, shown.answer, (first,))
    assert list(refuse_apart([scene], held)) == [scene.record_id]
    assert refuse_apart([apart], held) == {}


def test_questions_of_an_exam_are_counted_in_a_dataset_of_their_own():
    rows = [make_question(n, None, split) for n, split in enumerate(("eval", "sft", "eval", "sft"))]
    limits = Limits(ReleasesConfig(max_skeleton_share=0.5))
    counted = {}
    for exam in (False, True):
        signatures = [make_signature(row, exam) for row in rows]
        counted[exam] = [each.dataset for each in signatures]
        assert len(refuse_over_limits(signatures, (), limits)) == (2 if exam else 3)
    assert counted == {False: ["vqa"] * 4, True: ["exam", "vqa", "exam", "vqa"]}
