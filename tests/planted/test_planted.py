import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.cli.console import to_json
from pipelines.errors import ConfigError
from tests.planted import bench
from tests.planted.bench import measure_defect, measure_flips, render_planted, run_planted
from tests.planted.catalogue import DEMANDS, list_defects
from tests.planted.words import Pair

TEXTS = ("D01", "D02", "D03", "D04", "D05", "D13", "D16")
ROLLOUTS = [f"D22-R{number}" for number in range(1, 11)]
READ_BACK = [f"D{number}" for number in range(25, 34)]
PLANTED = [*(f"D{number:02}" for number in range(1, 20)), *ROLLOUTS, "D24", *READ_BACK, "I5", "L4"]
LEAK = CheckResult("FAIL", "alias-leak")
OTHER = CheckResult("FAIL", "answer-leak")
UNSURE = CheckResult("UNKNOWN", "undecided")


def make(result=LEAK, code="alias-leak", **fields):
    return Pair("a", PASSED, result, (code,), **fields)


@pytest.fixture(scope="module")
def report():
    """Everything, at the smallest size: two pairs a defect in one world."""
    return run_planted(2, 7, missing=(0.1,))


@pytest.fixture(scope="module")
def texts():
    return run_planted(60, 3, defects=TEXTS)


def test_every_defect_of_the_design_is_planted(report):
    assert [row.code for row in report.defects] == PLANTED
    assert {defect.code for defect in list_defects()} == set(DEMANDS) == set(PLANTED)
    assert list(dict.fromkeys(defect.code for defect in list_defects(["D22"]))) == ROLLOUTS
    assert {defect.code for defect in list_defects(["D22-R3", "D01"])} == {"D22-R3", "D01"}


def test_demands_are_those_of_the_design_and_strict_ones_get_twice_the_pairs(report):
    assert {code for code in ROLLOUTS if DEMANDS[code].recall == 1.0} == {"D22-R1", "D22-R2", "D22-R8", "D22-R9"}
    assert (DEMANDS["D24"].recall, DEMANDS["D24"].false_alarm) == (1.0, 0.0)
    rows = {row.code: row for row in report.defects}
    assert rows["D07"].demanded_recall == 0.95
    assert (rows["D07"].pairs, rows["D06"].pairs) == (2, 4)


def test_the_checks_of_texts_meet_their_demands_and_need_no_world(texts):
    assert [(row.code, row.missed, row.accused) for row in texts.defects if not row.met] == []
    assert (texts.missing, texts.accepted_defect_rate, texts.ocr) == ((), {}, "")
    assert run_planted(60, 3, defects=TEXTS) == texts


def test_the_document_has_the_agreed_keys(report):
    document = json.loads(json.dumps(to_json(report)))
    assert 0.0 <= document["pair_flip_rate"] <= 1.0
    assert list(document["accepted_defect_rate"]) == ["0.1"]
    wanted = {"code", "pairs", "recall", "false_alarm_rate", "demanded_recall", "demanded_false_alarm_rate"}
    assert all(wanted <= row.keys() for row in document["defects"])
    assert document["ocr"] == "rapidocr"


def test_a_flip_needs_both_twins_right_and_every_code_is_counted(report):
    for row in report.defects:
        assert row.flip_rate <= min(row.recall, 1 - row.false_alarm_rate)
        assert sum(row.returned.values()) >= row.pairs


def measure(*pairs):
    (defect,) = list_defects(["D04"])
    return measure_defect({defect: [("open", pair) for pair in pairs]})


def test_a_row_counts_pairs():
    row = measure(make(), make(UNSURE))
    assert (row.recall, row.undecided, row.missed, row.flip_rate) == (1.0, 1, (), 0.5)
    assert measure(make(CheckResult("UNKNOWN", "near-miss"), "near-miss")).recall == 1.0, "it names the defect"
    row = measure(make(OTHER))
    assert (row.recall, row.met, row.missed) == (0.0, False, ("a -> FAIL answer-leak",))
    row = measure(*(make(question=question) for question in "qqr"))
    assert (row.pairs, row.questions) == (3, 2)
    row = measure(make(returned=("alias-leak", "answer-leak", "alias-leak")), make(PASSED), make(OTHER))
    assert row.returned == {"alias-leak": 1, "answer-leak": 2, "PASS": 1}


def test_defects_without_a_demand_are_left_out_of_the_flip_rate():
    (whole, _), (demanded,) = list_defects(["L4"]), list_defects(["D04"])
    flips = measure_flips({whole: [("open", make(PASSED))], demanded: [("open", make())]})
    assert (flips.count, flips.trials) == (1, 1)


def test_added_words_are_planted_too(texts):
    path = Path(__file__).parent / "data/held-out.toml"
    (row,) = run_planted(21, 3, defects=["D13"], vocabulary=path).defects
    assert (row.pairs, row.added_recall) == (21, 1.0)
    assert texts.defects[0].added_recall is None


def test_the_report_renders(report):
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(render_planted(report))
    text = " ".join(console.export_text().split())
    wanted = ("pair flip rate", "read by rapidocr", "had accepted", "not shown", "held out", "second value, by prose")
    assert all(words in text for words in (*PLANTED, *wanted))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"pairs": 1}, "pairs is 1"),
        ({"pairs": 4, "missing": ()}, "missing rates"),
        ({"pairs": 4, "missing": (0.8,)}, "missing rates"),
        ({"pairs": 4, "defects": ["D99"]}, "no defect D99"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments, said):
    with pytest.raises(ConfigError, match=said):
        run_planted(seed=3, **arguments)


def test_the_command_prints_the_document_and_exits_with_0_when_demands_are_met(capsys):
    with pytest.raises(SystemExit) as exit_:
        bench.main(["--pairs", "4", "--defect", "D13", "--json"])
    assert exit_.value.code == 0
    document = json.loads(capsys.readouterr().out)
    assert [row["code"] for row in document["defects"]] == ["D13"]
    assert document["met"]
