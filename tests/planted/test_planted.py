import io
import json
from pathlib import Path

import pytest

from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.cli.console import to_json
from pipelines.cli.judge_card import make_share
from pipelines.errors import ConfigError
from tests.planted import bench
from tests.planted.bench import count_confusion, measure_defect, measure_flips, render_planted, run_planted
from tests.planted.catalogue import DEMANDS, NOT_PLANTED, list_defects
from tests.planted.words import Pair, find_lower_bound

TEXTS = ("D01", "D02", "D03", "D04", "D05", "D13", "D16")
ROLLOUTS = [f"D22-R{number}" for number in range(1, 11)]
PLANTED = [*(f"D{number:02}" for number in range(1, 20)), *ROLLOUTS, "D24", "I5", "L4"]
LEAK = CheckResult("FAIL", "alias-leak")
OTHER = CheckResult("FAIL", "answer-leak")
UNSURE = CheckResult("UNKNOWN", "undecided")


@pytest.fixture(scope="module")
def report():
    """Everything, at the smallest size: two pairs a defect in one world."""
    return run_planted(2, 7, missing=(0.1,))


@pytest.fixture(scope="module")
def texts():
    return run_planted(60, 3, defects=TEXTS)


def test_every_defect_of_the_design_is_planted_or_named_as_not_planted(report):
    assert [row.code for row in report.defects] == PLANTED
    assert report.not_planted == NOT_PLANTED
    assert NOT_PLANTED == ()
    assert {defect.code for defect in list_defects()} == set(DEMANDS) == set(PLANTED)


def test_a_family_stands_for_its_kinds():
    assert list(dict.fromkeys(defect.code for defect in list_defects(["D22"]))) == ROLLOUTS
    assert {defect.code for defect in list_defects(["D22-R3", "D01"])} == {"D22-R3", "D01"}


def test_format_errors_lengths_and_pictures_of_rollouts_must_all_be_found():
    strict = {code for code in ROLLOUTS if DEMANDS[code].recall == 1.0}
    assert strict == {"D22-R1", "D22-R2", "D22-R8", "D22-R9"}
    assert {DEMANDS[code].false_alarm for code in ROLLOUTS} == {0.02}


def test_strict_demands_get_twice_the_pairs(report):
    pairs = {row.code: row.pairs for row in report.defects}
    assert pairs["D07"] == 2
    assert pairs["D06"] == 4


def test_the_checks_of_texts_meet_their_demands(texts):
    assert [(row.code, row.missed, row.accused) for row in texts.defects if not row.met] == []


def test_the_document_has_the_keys_that_were_agreed(report):
    document = json.loads(json.dumps(to_json(report)))
    assert 0.0 <= document["pair_flip_rate"] <= 1.0
    assert list(document["accepted_defect_rate"]) == ["0.1"]
    wanted = {"code", "pairs", "recall", "false_alarm_rate", "demanded_recall", "demanded_false_alarm_rate"}
    assert all(wanted <= row.keys() for row in document["defects"])
    assert all(isinstance(row["recall"], float) for row in document["defects"])
    assert document["not_planted"] == []
    assert document["ocr"] == "rapidocr"


def test_a_pair_flips_only_when_both_twins_are_told_apart(report):
    for row in report.defects:
        assert row.flip_rate <= min(row.recall, 1 - row.false_alarm_rate)


def test_the_confusion_counts_every_code_that_came_back():
    (defect,) = list_defects(["D04"])
    pairs = [Pair("a", PASSED, LEAK, ("alias-leak",), ("alias-leak", "answer-leak", "alias-leak")),
             Pair("b", PASSED, PASSED, ("alias-leak",)), Pair("c", PASSED, OTHER, ("alias-leak",))]  # fmt: skip
    cells = count_confusion({defect: [("open", pair) for pair in pairs]})
    assert {(cell.returned, cell.count) for cell in cells} == {("alias-leak", 1), ("answer-leak", 2), ("PASS", 1)}


def test_no_plant_is_missing_from_the_confusion(report):
    for row in report.defects:
        assert sum(cell.count for cell in report.confusion if cell.planted == row.code) >= row.pairs


def measure(*pairs):
    (defect,) = list_defects(["D04"])
    return measure_defect({defect: [("open", pair) for pair in pairs]})


def test_what_is_refused_as_unknown_is_neither_caught_nor_missed():
    row = measure(Pair("a", PASSED, LEAK, ("alias-leak",)), Pair("b", PASSED, UNSURE, ("alias-leak",)))
    assert (row.recall, row.undecided, row.missed, row.flip_rate) == (1.0, 1, (), 0.5)


def test_an_unknown_that_names_the_defect_is_a_catch():
    unsure = CheckResult("UNKNOWN", "near-miss")
    assert measure(Pair("a", PASSED, unsure, ("near-miss",))).recall == 1.0


def test_another_code_than_the_planted_one_is_a_miss():
    row = measure(Pair("a", PASSED, OTHER, ("alias-leak",)))
    assert (row.recall, row.met) == (0.0, False)
    assert row.missed == ("a -> FAIL answer-leak",)


def test_pairs_that_share_a_question_are_told():
    pairs = [
        Pair("a", PASSED, LEAK, ("alias-leak",), question=q, missing=m) for q, m in (("q", 0.1), ("q", 0.1), ("r", 0.2))
    ]
    row = measure(*pairs)
    assert (row.pairs, row.questions, row.pairs_by_missing) == (3, 2, {"0.1": 2, "0.2": 1})


def test_few_pairs_without_a_miss_meet_a_demand_and_prove_nothing():
    pair = Pair("a", PASSED, LEAK, ("alias-leak",))
    assert (measure(*[pair] * 10).met, measure(*[pair] * 10).proven) == (True, False)
    assert measure(*[pair] * 60).proven


def test_what_is_not_demanded_is_left_out_of_the_flip_rate():
    (whole, _), (demanded,) = list_defects(["L4"]), list_defects(["D04"])
    missed, caught = Pair("a", PASSED, PASSED, ("alias-leak",)), Pair("b", PASSED, LEAK, ("alias-leak",))
    flips = measure_flips({whole: [("open", missed)], demanded: [("open", caught)]})
    assert (flips.count, flips.trials) == (1, 1)


@pytest.mark.parametrize(
    ("count", "trials", "low"), [(300, 300, 0.990), (150, 150, 0.980), (0, 20, 0.0), (5, 10, 0.222), (0, 0, 0.0)]
)
def test_the_lower_bound_is_that_of_clopper_and_pearson(count, trials, low):
    assert find_lower_bound(count, trials) == pytest.approx(low, abs=5e-4)


def test_the_demands_are_those_of_the_design(report):
    assert {row.code: row.demanded_recall for row in report.defects}["D07"] == 0.95
    assert DEMANDS["D24"].recall == 1.0
    assert DEMANDS["D24"].false_alarm == 0.0


def test_two_defects_at_once_are_counted(report):
    assert report.compounds
    assert all(row.both + row.one + row.none == row.pairs for row in report.compounds)


def test_texts_alone_need_no_world(texts):
    assert texts.missing == ()
    assert texts.accepted_defect_rate == {}
    assert texts.ocr == ""


def test_the_same_seed_gives_the_same_report(texts):
    assert run_planted(60, 3, defects=TEXTS) == texts


def test_added_words_are_planted_too(tmp_path, texts):

    path = tmp_path / "words.toml"
    path.write_text((Path(__file__).parent / "data/held-out.toml").read_text("utf-8"), "utf-8")
    report = run_planted(21, 3, defects=["D13"], vocabulary=path)
    assert report.defects[0].pairs == 21
    assert report.defects[0].added_recall == 1.0
    assert texts.defects[0].added_recall is None


def test_intervals_surround_their_share():
    share = make_share(59, 60)
    assert share.low < share.share < share.high


def test_the_report_renders(report):
    from rich.console import Console

    console = Console(width=200, record=True, file=io.StringIO())
    console.print(render_planted(report))
    text = " ".join(console.export_text().split())
    assert all(code in text for code in PLANTED)
    assert "pair flip rate" in text
    assert all(
        said in text for said in ("read by rapidocr", "had accepted", "not shown", "held out", "second value, by prose")
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"pairs": 1}, "pairs is 1"),
        ({"pairs": 4, "missing": ()}, "missing rates"),
        ({"pairs": 4, "missing": (0.8,)}, "missing rates"),
        ({"pairs": 4, "defects": ["D99"]}, "no defect D99"),
    ],
)
def test_a_bench_that_cannot_be_is_refused(arguments, said):
    with pytest.raises(ConfigError, match=said):
        run_planted(seed=3, **arguments)


def test_the_command_prints_the_document_and_leaves_with_zero_when_demands_are_met(capsys):
    with pytest.raises(SystemExit) as exit_:
        bench.main(["--pairs", "4", "--defect", "D13", "--json"])
    assert exit_.value.code == 0
    document = json.loads(capsys.readouterr().out)
    assert [row["code"] for row in document["defects"]] == ["D13"]
    assert document["met"]
