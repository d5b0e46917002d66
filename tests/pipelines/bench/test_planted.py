import pytest

from pipelines.bench.planted import make_share, render_planted, run_planted
from pipelines.bench.vocabulary import HELD_OUT, OPEN
from pipelines.errors import ConfigError


@pytest.fixture(scope="module")
def report():
    return run_planted(120, 3)


def test_every_defect_is_measured_on_both_halves(report):
    assert len(report.rows) == 14
    assert {row.half for row in report.rows} == {"open", "held-out"}
    assert all(row.recall.trials == 60 for row in report.rows)


def test_the_checks_meet_their_demands(report):
    assert [(row.code, row.half, row.missed) for row in report.rows if not row.met] == []
    assert report.met


def test_a_pair_flips_only_when_both_twins_are_told_apart(report):
    for row in report.rows:
        assert row.flip.count <= min(row.recall.count, row.false_alarm.trials - row.false_alarm.count)


def test_the_confusion_counts_every_plant_once(report):
    assert sum(cell.count for cell in report.confusion) == 7 * 120


def test_the_same_seed_gives_the_same_report(report):
    assert run_planted(120, 3) == report


def test_intervals_surround_their_share():
    share = make_share(59, 60)
    assert share.low < share.share < share.high


def test_the_halves_share_no_words():
    for field in ("starts", "middles", "ends", "given", "types", "questions", "words"):
        assert not set(getattr(OPEN, field)) & set(getattr(HELD_OUT, field))


def test_the_table_has_a_row_for_each_measure(report):
    assert render_planted(report).row_count == len(report.rows)


def test_a_bench_without_pairs_is_refused():
    with pytest.raises(ConfigError, match="pairs is 1"):
        run_planted(1, 3)
