import pytest

from pipelines.config import make_config, read_recipe
from pipelines.doctor import examine_run

CONFIG = make_config(read_recipe("demo"), [])


def look_at_workspace(root):
    return next(finding for finding in examine_run(CONFIG, root).findings if finding.what == "workspace")


def test_a_workspace_that_is_not_there_is_not_made(tmp_path):
    finding = look_at_workspace(tmp_path / "a" / "b")
    assert (finding.state, str(tmp_path) in finding.detail) == ("ok", True)
    assert not list(tmp_path.iterdir())


def test_an_existing_workspace_is_probed_and_left_without_a_trace_but_its_lock(tmp_path):
    finding = look_at_workspace(tmp_path)
    assert (finding.state, "renames and locks" in finding.detail) == ("ok", True)
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


@pytest.mark.parametrize("below", ["", "deeper"])
def test_a_workspace_in_the_place_of_a_file_is_a_problem(tmp_path, below):
    (tmp_path / "file").write_text("mine")
    examination = examine_run(CONFIG, tmp_path / "file" / below)
    assert not examination.ready
    assert (tmp_path / "file").read_text() == "mine"
