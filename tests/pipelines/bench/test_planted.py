import io
import json

import pytest

from pipelines.bench.catalogue import DEMANDS, list_defects
from pipelines.bench.planted import make_share, run_planted
from pipelines.bench.planted_tables import render_planted
from pipelines.cli import main, to_json
from pipelines.errors import ConfigError

TEXTS = ("D01", "D02", "D03", "D04", "D05", "D13", "D16")
PLANTED = "D01 D02 D03 D04 D05 D06 D07 D08 D09 D10 D11 D13 D14 D15 D16 D17 D18 D19 D24".split()


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


def test_a_pair_flips_only_when_both_twins_are_told_apart(report):
    for row in report.defects:
        assert row.flip_rate <= min(row.recall, 1 - row.false_alarm_rate)


def test_the_confusion_counts_every_plant_once(report):
    assert sum(cell.count for cell in report.confusion) == sum(row.pairs for row in report.defects)


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


def test_the_same_seed_gives_the_same_report(texts):
    assert run_planted(60, 3, defects=TEXTS) == texts


def test_added_words_are_planted_too(tmp_path, texts):
    from importlib import resources

    path = tmp_path / "words.toml"
    path.write_text(resources.files("pipelines.bench").joinpath("data/held-out.toml").read_text("utf-8"), "utf-8")
    report = run_planted(6, 3, defects=["D13"], vocabulary=path)
    assert report.defects[0].pairs == 6


def test_intervals_surround_their_share():
    share = make_share(59, 60)
    assert share.low < share.share < share.high


def test_the_report_renders(report):
    from rich.console import Console

    console = Console(width=200, record=True, file=io.StringIO())
    console.print(render_planted(report))
    text = console.export_text()
    assert all(code in text for code in PLANTED)
    assert "pair flip rate" in text


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
        main(["bench", "planted", "--pairs", "4", "--defect", "D13", "--json"])
    assert exit_.value.code == 0
    document = json.loads(capsys.readouterr().out)
    assert [row["code"] for row in document["defects"]] == ["D13"]
    assert document["met"]
