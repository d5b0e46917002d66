from pipelines.cli.report import collect_report, render_report, report_courses
from pipelines.run.workspace import Workspace
from schemas.datasets import Rollout, Trajectory
from tests.pipelines.inspection.conftest import FakeStage, write_stage
from tests.pipelines.release.builders import make_picture, make_question, make_trajectory


def write_rollouts(root, rollouts, kept):
    write_stage(root, FakeStage("rollouts", Rollout), "r" * 16, rollouts)
    write_stage(root, FakeStage("trajectories", Trajectory), "t" * 16, kept)
    Workspace(root).note_latest({"rollouts": "r" * 16, "trajectories": "t" * 16})


def as_rollout(trajectory, **changes):
    return Rollout(**{name: getattr(trajectory, name) for name in Rollout.model_fields} | changes)


def test_rollouts_are_counted_by_their_calls_and_by_whether_they_were_kept(tmp_path):
    question = make_question(1, make_picture(tmp_path, 1))
    kept = make_trajectory(1, question)
    silent = as_rollout(kept, record_id="rollout-silent", steps=kept.steps[-1:])
    write_rollouts(tmp_path, [as_rollout(kept), silent], [kept])
    report = report_courses(tmp_path)
    assert (report.rollouts, report.kept, report.mean_calls) == (2, 1, 2.0)
    assert [(bar.calls, bar.kept, bar.refused) for bar in report.bars] == [(0, 0, 1), (1, 0, 0), (2, 1, 0)]
    assert [(share.value, share.count) for share in report.tools] == [("image_search", 1), ("visit", 1)]
    assert [(share.value, share.percent) for share in report.outcomes] == [("ok", 100.0)]


def test_a_page_shows_the_bars(tmp_path):
    question = make_question(1, make_picture(tmp_path, 1))
    kept = make_trajectory(1, question)
    write_rollouts(tmp_path, [as_rollout(kept)], [kept])
    page = render_report(collect_report(tmp_path))
    assert "1 rollouts, 1 of them kept, with 2.0 tool calls on average" in page


def test_without_rollouts_there_is_nothing_to_show(tmp_path):
    report = report_courses(tmp_path)
    assert (report.rollouts, report.bars, report.mean_calls) == (0, (), 0.0)
