"""What a quality report says of questions, attempts, pictures and wording, counted on questions built by hand."""

import pytest

from pipelines.checks.sets import make_signature
from pipelines.config.settings import ReleasesConfig
from pipelines.errors import GateNotMet
from pipelines.release import quality
from pipelines.release.facts import ReleaseFacts
from pipelines.release.making import Example
from schemas.datasets import Alternative, Cell, Depiction, ReleaseEntry
from schemas.proofs import Constraint, NearMiss, Thresholds
from tests.pipelines.release.builders import (
    make_context,
    make_degraded,
    make_evidence,
    make_picture,
    make_question,
    make_trial,
)

STRICT = Thresholds(alone_first=5, alone=2, answers=5, near_misses=50, retrieval_rank=10, volatile=False)
CELL = Cell(
    condition="image", solver="knower", prompt="p/v1", planned=8, attempts=8, correct=0, unscored=0, low=0.0, high=0.3
)
FACTS = (Constraint(node=1, relation="type", value="architect"),)
HALF, NONE = {"rows": 1, "share": 0.5}, {"rows": 0, "share": 0.0}
DEPICTION = {
    "source": "infobox", "ranker": "metadata", "candidates": 3, "score": 0.8, "margin": None, "distractors": 0,
    "over_threshold": None, "articles": 1, "depicts": None, "engines": (), "text": (), "text_at_training": (),
    "ease": "easy", "ease_at_training": "",
}  # fmt: skip


def measure(*questions):
    entry = ReleaseEntry(record_id="e", parent_id="q", dataset="vqa", split="train", trajectory_id="")
    facts = ReleaseFacts.of(Example(entry, question, None) for question in questions)
    return quality.measure_quality(facts, (), make_context(), ReleasesConfig())


def ask(number, **changes):
    return make_question(number, None, **changes)


def prove(number, **changes):
    question = ask(number)
    return question.model_copy(update={"proof": question.proof.model_copy(update=changes)})


def show(number, **changes):
    return ask(number, depiction=Depiction(**(DEPICTION | changes)))


def miss(page, resolution="absent"):
    return NearMiss(node=1, page_id=page, title=f"Person {page}", unknown=("birth_date",), resolution=resolution)


def test_cells_are_summed_by_condition_and_solver():
    first = CELL.model_copy(update={"correct": 1, "attempts": 2, "day": "2026-11-20"})
    second = CELL.model_copy(update={"unscored": 2, "day": "2026-11-22"})
    other = CELL.model_copy(update={"solver": "other"})
    found = measure(ask(1, cells=(first,)), ask(2, cells=(second, other)))["difficulty"]
    assert list(found) == ["image, knower", "image, other"]
    assert found["image, knower"].pop("low") < 0.125 < found["image, knower"].pop("high")
    assert found["image, knower"] == {
        "questions": 2, "planned": 16, "attempts": 10, "unscored": 2, "correct": 1, "rate": 0.125, "never solved": 1,
        "latest reply": "2026-11-22",
    }  # fmt: skip


def test_standing_need_alternatives_and_what_was_left_out_are_counted():
    refuted = Alternative(text="1999", times=2)
    report = measure(
        ask(1, search_need="image", standing="solved"),
        ask(2, standing="proved", alternatives=(refuted,), left_out=("image", "picture-too-simple")),
    )
    assert report["standing"] == dict.fromkeys(
        (
            "left out: picture-too-simple", "left out: image", "search need not measured",
            "standing: proved", "standing: solved",
            "with wrong answers given twice, all refuted",
        ),
        HALF,
    )  # fmt: skip
    assert report["balance"]["search need: image"]["share"] == 1.0


def test_near_misses_confirmations_and_constraints_are_counted():
    checked = {"thresholds": STRICT, "shortcuts_checked": True}
    misses = (miss(1), miss(2), miss(3, "unclear"))
    first = prove(
        1, near_misses=misses, corroboration=make_evidence(3, "Ostrava"), constraints=FACTS, redundant=FACTS, **checked
    )
    proofs = measure(first, prove(2))["proof"]
    assert proofs["near misses a question"] == {"n": 2, "min": 0, "median": 0, "p95": 3, "max": 3}
    assert proofs["near misses: absent"] == {"n": 2, "share": 0.6667}
    assert proofs["near misses: unclear"] == {"n": 1, "share": 0.3333}
    assert proofs["confirmation required"] == NONE
    for name in ("near misses looked for", "answer confirmed by a sentence",
                 "volatile facts refused", "checked: no path shorter by two links", "checked: not found by one search",
                 "questions with a redundant constraint"):  # fmt: skip
        assert proofs[name] == HALF


def test_pictures_are_counted_by_choice_text_and_margin():
    judged = {"ranker": "clip", "distractors": 20}
    seen = [
        show(1, margin=0.1, over_threshold=True, engines=("rapidocr", "layer"), text=("Open",), **judged),
        show(2, margin=0.3, over_threshold=False, source="page", ease="hard", depicts=True, **judged),
        show(3),
        show(4),
    ]
    table = measure(*seen, ask(5))["grounding"]
    for name, rows in {
        "from: infobox": 3, "ranked by: metadata": 2, "to look up: hard": 1, "read by: no engine": 3,
        "to look up at training resolution: not searched": 4, "Commons says it depicts the anchor: not stated": 3,
        "read by: rapidocr and layer": 1, "with text that tells nothing": 1, "over the absolute threshold": 1,
    }.items():  # fmt: skip
        assert table[name]["rows"] == rows
    assert table["over the absolute threshold"] == HALF
    assert (table["margin over the best distractor"]["n"], table["margin over the best distractor"]["max"]) == (2, 0.3)
    assert "margin over the best distractor" not in measure(show(1))["grounding"]


def test_degraded_pictures_are_counted_and_their_strengths_described_however_many_there_are(tmp_path):
    strengths = [0.2 + number / 100 for number in range(30)]
    degraded = [make_degraded(tmp_path, n, trial=make_trial(strength=each)) for n, each in enumerate(strengths)]
    table = measure(*degraded, *(ask(100 + n) for n in range(30)))["enhancements"]
    assert table["degraded"] == table["blur, sharpen, shown by image-search"] == {"rows": 30, "share": 0.5}
    assert (table["strength of blur"]["n"], table["strength of blur"]["min"], len(table)) == (30, 0.2, 3)
    assert measure(ask(1))["enhancements"] == {"degraded": NONE}


def test_nothing_to_measure_is_no_error():
    report = measure()
    assert report["grounding"]["candidates a question"] == {"n": 0}


def test_a_report_counts_what_is_there(material, context):
    questions, _, entries = material
    by_id = {question.record_id: question for question in questions}
    examples = [Example(each, by_id[each.parent_id], None) for each in entries if each.dataset == "vqa"]
    report = quality.measure_quality(
        ReleaseFacts.of(examples), tuple(map(make_signature, questions)), context, ReleasesConfig()
    )
    assert report["hops"] == {"2": {"rows": 7, "share": 1.0}}
    assert (report["splits"]["train"]["rows"], report["proof counts"]["answers"]["capped"]) == (6, 7)
    assert not any(report["overlap"].values())
    assert report["duplicates"] == dict.fromkeys(quality.DUPLICATES, 0)
    assert report["near duplicates"]["words 0.8 alike, one split"] == {"rows": 0, "share": 0.0}


def test_answers_that_splits_share_are_refused(tmp_path, context):
    first = make_question(1, make_picture(tmp_path, 1), "sft")
    second = make_question(2, make_picture(tmp_path, 2), "rl", answer=first.answer)
    signatures = tuple(map(make_signature, [first, second]))
    with pytest.raises(GateNotMet, match="answer key"):
        quality.check_quality(quality.measure_quality(ReleaseFacts(), signatures, context, ReleasesConfig()))
