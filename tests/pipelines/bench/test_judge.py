import subprocess
import sys

import pytest

from pipelines.bench.judge import render_judge, run_judge_bench
from pipelines.errors import ConfigError


@pytest.fixture(scope="module")
def report():
    return run_judge_bench(60, 3)


def test_the_comparer_takes_no_near_miss_and_refuses_no_true_answer(report):
    assert [(row.type, row.false_positive.count, row.false_negative.count) for row in report.rows] == [
        ("date", 0, 0),
        ("number", 0, 0),
        ("name", 0, 0),
        ("string", 0, 0),
    ]


def test_every_rewording_is_recognised_without_a_judge(report):
    assert {(kind.type, kind.unscored) for kind in report.kinds if kind.kind == "reworded"} == {
        (type_, 0) for type_ in ("date", "number", "name", "string")
    }


def test_a_judge_that_agrees_to_everything_is_found_out():
    rows = run_judge_bench(20, 3, lambda given, reference: "correct").rows
    assert all(row.false_positive.share == 1.0 and row.false_negative.share == 0.0 for row in rows)
    assert all(abs(row.kappa) < 1e-9 for row in rows)


def test_a_judge_that_never_answers_is_unscored_not_wrong():
    rows = run_judge_bench(20, 3, lambda given, reference: "unscored").rows
    assert all(row.unscored.share == 1.0 and row.false_negative.count == 0 and row.kappa == 0.0 for row in rows)


def test_the_same_seed_gives_the_same_card(report):
    assert run_judge_bench(60, 3) == report


def test_the_table_has_a_row_for_each_type(report):
    assert render_judge(report).row_count == 4


def test_the_judge_card_needs_nothing_of_the_pipeline_that_makes_questions():
    code = "import sys, pipelines.bench.judge; sys.exit('pipelines.assembly' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_bench_without_answers_is_refused():
    with pytest.raises(ConfigError, match="pairs is 0"):
        run_judge_bench(0, 3)
