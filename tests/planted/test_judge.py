import asyncio
import io
import subprocess
import sys
from collections import Counter

import pytest
from rich.console import Console

from pipelines.cli.judge_card import CASCADE, COMPARER, PASS_RATES, TYPES, list_cases, render_judge, run_judge_bench
from pipelines.errors import ConfigError, Unavailable
from pipelines.graph.answers import compare_answers
from pipelines.services.prompting import RoleClient, load_prompt
from pipelines.toy.players import ScriptedJudge
from tests.pipelines.stages.players import FakeModel
from tests.planted.judge_faults import (
    ERRING,
    MISTAKEN,
    UNCLEAR,
    UNMARKED,
    count_answer_faults,
    count_rollout_faults,
    list_open_trials,
    make_scripted_judges,
)

PROMPT = load_prompt("judge_answer")
KINDS = {
    "date": {"year off by one", "day and month swapped", "coarser", "list with the answer", "hedge"},
    "number": {"unit slip", "point lost", "off by one", "sign", "conversion off", "hedge"},
    "name": {"same surname", "homonym", "child", "what bears the name", "superset", "list with the answer", "hedge"},
    "string": {"compound", "superset", "list with the answer", "negated", "hedge"},
}


def scripted(**changes):
    return RoleClient(ScriptedJudge(**{"fpr": 0.0, "fnr": 0.0} | changes), PROMPT)


@pytest.fixture(scope="module")
def report():
    return run_judge_bench(40, 3, make_scripted_judges())


def rows(report, who):
    return {row.type: row for row in report.rows if row.who == who}


def test_the_comparer_errs_on_no_answer_and_recognises_every_rewording(report):
    found = rows(report, COMPARER)
    assert {type_: (row.false_positive.count, row.false_negative.count) for type_, row in found.items()} == {
        type_: (0, 0) for type_ in TYPES
    }
    reworded = [kind for kind in report.kinds if (kind.who, kind.kind) == (COMPARER, "reworded")]
    assert {(kind.type, kind.unscored) for kind in reworded} == {(type_, 0) for type_ in TYPES}


def test_no_hedge_list_or_pair_of_candidates_reaches_a_judge(report):
    kinds = ("hedge", "two candidates", "list with the answer", "superset", "negated", "range")
    found = [kind for kind in report.kinds if kind.who in (COMPARER, CASCADE) and kind.kind in kinds]
    assert len({(kind.type, kind.kind) for kind in found}) >= 14
    assert {(kind.correct, kind.unscored) for kind in found} == {(0, 0)}


@pytest.mark.parametrize("type_", TYPES)
def test_every_kind_of_near_miss_is_planted(type_):
    planted = {trial.kind for case in list_cases(type_, 60, 3) for trial in case.trials if trial.truth == "incorrect"}
    assert planted >= KINDS[type_] | {"order to the judge"}
    cases = list(list_cases(type_, 300, 3))
    assert len(cases) == 300
    assert all({trial.truth for trial in case.trials} == {"correct", "incorrect"} for case in cases)


def test_a_judge_that_agrees_to_everything_is_found_out_alone_and_kept_from_what_is_decided():
    found = run_judge_bench(20, 3, [scripted(fpr=1.0)])
    alone = rows(found, "judge 1: scripted-judge")
    assert all(row.false_positive.share == 1.0 and row.false_negative.share == 0.0 for row in alone.values())
    assert all(abs(row.kappa) < 1e-9 for row in alone.values())
    assert all(0 <= row.false_positive.share < 0.6 for row in rows(found, CASCADE).values())


def test_a_judge_that_obeys_the_answer_is_found_out_and_the_comparer_does_not_obey():
    obedient = FakeModel(
        lambda inputs: "Verdict: correct" if "correct" in inputs.given else "Verdict: incorrect", reads_inputs=False
    )
    found = [kind for kind in run_judge_bench(20, 3, [RoleClient(obedient, PROMPT)]).kinds if "order" in kind.kind]
    taken = {who: sum(kind.correct for kind in found if kind.who == who) for who in (COMPARER, "judge 1: fake")}
    assert taken[COMPARER] == 0 < taken["judge 1: fake"]


def test_a_judge_that_never_gave_a_verdict_has_no_rates_and_is_named():
    found = run_judge_bench(4, 3, [scripted(empty=1.0), scripted()])
    text = show(found)
    lines = [line for line in text.splitlines() if "judge 1: scripted-judge" in line]
    assert lines.count("judge 1: scripted-judge gave no verdict that can be read") == 1
    assert text.count("gave no verdict") == 1
    cells = [[cell.strip() for cell in line.split("│")[3:-1]] for line in lines if "│" in line]
    rates = [row for row in cells if len(row) == 9]
    assert rates == [["-"] * 6 + ["100.0%", "", "-"]] * len(TYPES)
    # Corrected shares and implied ones; the share that was planted is known all the same.
    assert all(row[:2] == ["-", "-"] for row in cells)
    assert found.kappa is None
    unscored = rows(found, "judge 1: scripted-judge").values()
    assert all(row.unscored.share == 1.0 and row.false_negative.count == 0 for row in unscored)


def test_rates_are_of_all_answers_and_of_the_decided_ones():
    (row,) = (
        each
        for each in run_judge_bench(40, 3, [scripted(fpr=0.3, fnr=0.2, empty=0.8)]).rows
        if (each.who, each.type) == ("judge 1: scripted-judge", "date")
    )
    assert row.decided_false_positive.count == row.false_positive.count
    assert row.decided_false_negative.count == row.false_negative.count
    assert row.decided_false_positive.share == pytest.approx(0.3, abs=0.12)
    assert row.decided_false_positive.share > 1.5 * row.false_positive.share
    decided = row.decided_false_positive.trials + row.decided_false_negative.trials
    assert decided == row.unscored.trials - row.unscored.count
    # Unscored is no pass: what a careful reader needs is in the report.
    accepted = row.decided_false_negative.trials - row.decided_false_negative.count
    assert (row.true_positive.count, row.true_positive.trials) == (accepted, row.false_negative.trials)


def test_two_judges_take_fewer_near_misses_than_either_alone(report):
    for type_ in TYPES:
        alone = [rows(report, f"judge {n}: scripted-judge-{n}")[type_].false_positive.share for n in (1, 2)]
        assert rows(report, CASCADE)[type_].false_positive.share < min(alone)


def test_measured_rates_are_those_that_were_set_and_verdicts_of_every_kind_add_up(report):
    covered = [row.corrected.low <= row.planted <= row.corrected.high for row in report.rows]
    assert sum(covered) >= len(covered) - 1
    for row in report.rows:
        kinds = [kind for kind in report.kinds if (kind.who, kind.type) == (row.who, row.type)]
        planted = sum(kind.correct + kind.incorrect + kind.unscored for kind in kinds)
        assert planted == row.unscored.trials == row.false_positive.trials + row.false_negative.trials
    for number, fpr in ((1, 0.06), (2, 0.08)):
        found = rows(report, f"judge {number}: scripted-judge-{number}").values()
        share = sum(row.false_positive.count for row in found) / sum(row.false_positive.trials for row in found)
        assert share == pytest.approx(fpr, abs=0.02)


def test_judges_that_differ_are_counted_and_their_agreement_is_measured(report):
    assert 0.3 < report.kappa < 0.95
    assert any(row.disagreement.count for row in rows(report, CASCADE).values())
    assert all(row.disagreement.trials == 0 for row in rows(report, COMPARER).values())
    assert run_judge_bench(4, 3, [scripted()]).kappa is None


def test_the_implied_share_falls_with_the_pass_rate_and_is_that_of_bayes(report):
    for row in report.rows:
        shares = [each.wrong_share for each in report.implied if (each.who, each.type) == (row.who, row.type)]
        assert shares == sorted(shares, reverse=True)
        assert len(shares) == len(PASS_RATES)
    found = run_judge_bench(40, 3, [scripted(fpr=1.0)])
    (row,) = (
        each for each in found.implied if each.who.startswith("judge") and (each.type, each.pass_rate) == ("date", 0.1)
    )
    assert row.wrong_share == pytest.approx(0.9)
    assert row.high >= row.wrong_share


def test_a_judge_is_asked_once_for_each_answer_and_never_told_the_truth_in_words():
    model = FakeModel(lambda inputs: "Verdict: incorrect", reads_inputs=False)
    run_judge_bench(6, 3, [RoleClient(model, PROMPT)])
    shown = Counter(request.messages for request in model.asked)
    trials = {
        (case.question, trial.given) for type_ in TYPES for case in list_cases(type_, 6, 3) for trial in case.trials
    }
    assert len(shown) == len(trials)
    assert len(model.asked) <= len(trials) * 1.05


def test_a_judge_that_is_away_stops_the_bench():
    class Away(FakeModel):
        async def chat(self, request):
            raise Unavailable("nobody answers")

    with pytest.raises(Unavailable):
        run_judge_bench(4, 3, [RoleClient(Away(lambda inputs: ""), PROMPT)])


def test_the_same_seed_gives_the_same_card_however_many_are_in_flight():
    assert run_judge_bench(6, 3, make_scripted_judges(), concurrency=3) == run_judge_bench(6, 3, make_scripted_judges())


def show(report):
    text = io.StringIO()
    Console(file=text, width=220).print(render_judge(report))
    return text.getvalue()


def test_the_tables_show_rates_kinds_implied_shares_and_faults(report):
    text = show(report)
    for words in ("Judge card: 40 questions of each type", "gets wrong or leaves open", "Error rates are measured",
                  "Wrong among accepted", "kappa of decided", "of decided",
                  "kappa of the first two judges, over the answers that both decided"):  # fmt: skip
        assert words in text
    assert "D23" not in text
    assert "gave no verdict" not in text
    assert "cascade" in show(run_judge_bench(4, 3)), "the comparer alone"


def test_the_judge_card_needs_nothing_of_the_pipeline_that_makes_questions():
    code = "import sys, pipelines.cli.judge_card; sys.exit('pipelines.run.assembly' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("pairs", "concurrency", "said"), [(0, 1, "pairs is 0"), (1, 1, "pairs is 1"), (2, 0, "concurrency is 0")]
)
def test_a_bench_without_answers_or_places_is_refused(pairs, concurrency, said):
    with pytest.raises(ConfigError, match=said):
        run_judge_bench(pairs, 3, concurrency=concurrency)


# D23: faults of judges


@pytest.fixture(scope="module", params=[300, 30], ids=["answers", "rollouts"])
def faults(request):
    """Rows of faults, and how many answers or rollouts each is of."""
    count = request.param
    return asyncio.run(count_answer_faults(count, 3)) if count == 300 else list(count_rollout_faults(count, 3)), count


def test_no_fault_of_a_judge_is_a_silent_accept_or_a_silent_drop(faults):
    rows, count = faults
    assert {row.fault for row in rows if row.judge == "answer"} == {*UNCLEAR, *ERRING}
    assert {row.fault for row in rows if row.judge == "process"} == (set(UNMARKED) if count == 30 else set())
    assert {(row.silent_accepts, row.silent_drops) for row in rows} == {(0, 0)}
    for row in rows:
        if row.fault == "away":
            assert (row.unscored, row.stopped) == (0, count)
        else:
            # A second judge stops what the first one errs on, which is every other answer.
            assert (row.unscored, row.stopped) == (count // 2 if row.fault in MISTAKEN else count, 0), row


@pytest.mark.parametrize("count", [1, 7, 300])
def test_faults_are_planted_on_answers_that_the_comparer_leaves_open(count):
    found = list_open_trials(count, 3)
    assert len(found) == count
    assert {compare_answers(trial.given, case.answer) for case, trial in found} == {"unscored"}
