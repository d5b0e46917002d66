import pytest
from rich.console import Console

from pipelines.cli.diff import ChangedRow, FunnelShift, diff_releases, render_diff
from pipelines.errors import ConfigError
from pipelines.release.manifest import FunnelRow
from pipelines.release.publish import publish_releases
from tests.pipelines.release.builders import make_context, make_material, make_picture, make_question, run_stage


@pytest.fixture
def versions(tmp_path):
    """Two versions of vqa: one question gone, one new, one with another answer."""
    questions, trajectories, entries = make_material(tmp_path)
    first = publish_releases(tmp_path, questions, trajectories, entries, make_context())
    answer = questions[5].answer.model_copy(update={"surface": "the year 1206"})
    changed = questions[5].model_copy(update={"answer": answer})
    changed_set = [*questions[:5], changed, make_question(50, make_picture(tmp_path, 50), "rl")]
    funnel = (FunnelRow(stage="seeds", rows_in=9, kept=6, rejected={"no-image": 3}, failed=0, rows_out=6),)
    context = make_context(funnel=funnel)
    second = publish_releases(tmp_path, changed_set, trajectories, run_stage(changed_set, trajectories), context)
    return [release.path for release in (first[-1], second[-1])]


def test_rows_are_told_apart_by_id_and_column(versions):
    diff = diff_releases(*versions)
    assert diff.removed == ("question-0000000000000007",)
    assert diff.added == ("question-0000000000000032",)
    assert diff.changed == (ChangedRow("question-0000000000000006", ("answer", "chain")),)
    assert diff.same == 5


def test_the_funnels_shift_is_told_by_reason(versions):
    shifts = diff_releases(*versions).funnel
    assert FunnelShift("seeds", "rejected: no-image", 2, 3) in shifts
    assert FunnelShift("releases", "kept", 7, 0) in shifts


def test_a_release_does_not_differ_from_itself(versions):
    diff = diff_releases(versions[0], versions[0])
    assert (diff.added, diff.removed, diff.changed, diff.funnel) == ((), (), (), ())


def test_two_datasets_cannot_be_compared(workspace, tmp_path):
    folders = [next((workspace / "releases" / name).iterdir()) for name in ("sft", "rl")]
    with pytest.raises(ConfigError, match="one dataset"):
        diff_releases(*folders)


def test_a_folder_that_is_no_release_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"manifest\.json"):
        diff_releases(tmp_path, tmp_path)


def test_the_difference_renders(versions):
    console = Console(width=160)
    with console.capture() as capture:
        console.print(render_diff(diff_releases(*versions)))
    assert "(answer, chain)" in capture.get()
