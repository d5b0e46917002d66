import pytest

from pipelines.cli.commands import run_recipe
from pipelines.cli.console import emit_table
from pipelines.cli.doctor import Examination, examine_run, render_examination
from pipelines.config.loading import make_config, read_recipe
from pipelines.errors import ConfigError
from pipelines.run.judges import Finding
from tests.mock_batches import BatchMock, serve_batches
from tests.mock_openai import start_mock

CONFIG = make_config(read_recipe("demo"), [])
NOBODY = "http://127.0.0.1:9/v1"


def look_at_workspace(root):
    return next(finding for finding in examine_run(CONFIG, root).findings if finding.what == "workspace")


def test_another_package_of_one_of_our_import_names_is_told(tmp_path, monkeypatch):
    def look():
        return next(
            finding for finding in examine_run(CONFIG, tmp_path / "w").findings if finding.what == "import names"
        )

    assert look().state == "ok"
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "other-1.0.dist-info").mkdir()
    (tmp_path / "other-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (tmp_path / "other-1.0.dist-info" / "top_level.txt").write_text("schemas\nelse_where\n")
    (tmp_path / "third-1.0.dist-info").mkdir()
    (tmp_path / "third-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: third\nVersion: 1.0\n")
    (tmp_path / "third-1.0.dist-info" / "RECORD").write_text("promptslike/a.py,,\nprompts/a.py,,\nflows.py,,\n")
    taken = look()
    assert taken.state == "warning"
    assert "flows (third), prompts (third), schemas (other):" in taken.detail


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


def test_an_extra_in_brackets_is_printed_as_it_is(capsys):
    emit_table(render_examination(Examination((Finding("ranker", "warning", "pip install 'synth[clip]'"),))))
    assert "synth[clip]" in capsys.readouterr().out


def test_a_server_away_is_no_ready_run_and_scripted_players_need_none(tmp_path):
    setting = f'models.rewriter={{ adapter = "openai", name = "m", base_url = "{NOBODY}" }}'
    away = examine_run(make_config(read_recipe("demo"), [setting]), tmp_path, patience=1.0)
    assert [finding.what for finding in away.findings if finding.state == "problem"] == [f"rewriter at {NOBODY}"]
    assert examine_run(CONFIG, tmp_path).ready


def test_a_judge_that_judges_itself_is_no_ready_run(tmp_path):
    roles = {"judge": ("openai", NOBODY), "solver": ("openai", NOBODY)}
    settings = [f'models.{r}={{ adapter = "{a}", name = "m", base_url = "{u}" }}' for r, (a, u) in roles.items()]
    examination = examine_run(make_config(read_recipe("demo"), settings), tmp_path, patience=1.0)
    assert "judge and solver" in [finding.what for finding in examination.findings if finding.state == "problem"]


def test_a_judge_that_judges_itself_is_no_run(tmp_path):
    table = f'{{ adapter = "openai", name = "m", base_url = "{NOBODY}" }}'
    config = make_config(read_recipe("demo"), [f"models.solver={table}", f"models.judge={table}"])
    with pytest.raises(ConfigError, match="a judge is never the model it judges"):
        run_recipe(config, tmp_path / "work", "", [])
    assert not (tmp_path / "work").exists()


@pytest.mark.parametrize("role", ["writer", "rewriter"])
def test_an_evaluator_that_reads_its_own_words_is_no_run(tmp_path, role):
    table = f'{{ adapter = "openai", name = "m", base_url = "{NOBODY}" }}'
    config = make_config(read_recipe("demo"), [f"models.{role}={table}", f"models.evaluator={table}"])
    with pytest.raises(ConfigError, match=f"evaluator and {role}: both are m; an evaluator never reads its own words"):
        run_recipe(config, tmp_path / "work", "", [])
    assert not (tmp_path / "work").exists()


def test_a_run_without_an_evaluator_stops_before_any_work_and_says_what_to_add(tmp_path):
    config = make_config(read_recipe("demo"), ["models.evaluator.name="])
    with pytest.raises(ConfigError, match=r"no model for models.evaluator(.|\n)*\[models.evaluator\]"):
        run_recipe(config, tmp_path / "work", "", [])
    assert not (tmp_path / "work").exists()


def test_a_solver_that_teaches_is_warned_of_by_its_name(tmp_path):
    examination = examine_run(make_config(read_recipe("demo"), ["models.solver.name=scripted-teacher"]), tmp_path)
    (roles,) = [finding for finding in examination.findings if finding.what == "roles"]
    assert (roles.state, roles.detail.startswith("solver and teacher")) == ("warning", True)


def test_attempts_that_are_one_answer_are_warned_of(tmp_path):
    solver = f'{{ adapter = "openai", name = "m", base_url = "{NOBODY}", temperature = 0.0 }}'
    examination = examine_run(make_config(read_recipe("demo"), [f"models.solver={solver}"]), tmp_path)
    (found,) = [finding for finding in examination.findings if finding.what == "attempts"]
    assert "temperature 0" in found.detail
    assert not any(finding.what == "attempts" for finding in examine_run(CONFIG, tmp_path).findings)


def look_at_batches(url, root):
    writer = (
        f'{{ adapter = "openai", name = "mock", base_url = "{url}", api_key_env = "SYNTH_TEST_KEY", mode = "batch" }}'
    )
    config = make_config(read_recipe("demo"), [f"models.writer={writer}"])
    (found,) = [each for each in examine_run(config, root).findings if each.what.endswith("batches")]
    return found.state, found.detail


def test_a_server_is_asked_for_its_batch_api_where_a_role_needs_it(monkeypatch, tmp_path):
    monkeypatch.setenv("SYNTH_TEST_KEY", "secret")
    with serve_batches(BatchMock()) as mock:
        assert look_at_batches(mock.url, tmp_path) == ("ok", "the server has a Batch API")
    with start_mock() as url:
        state, detail = look_at_batches(url, tmp_path)
    assert state == "problem"
    assert detail == 'no Batch API (HTTP 404: {}); set mode = "live" for writer'
