"""The Python API: what a user calls, what a user's check is given, and the examples of the documentation."""

import asyncio
import doctest
import importlib.util
import json
import multiprocessing
import shutil
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pyarrow as pa
import pytest

import pipelines.api as api
from pipelines.api import ConfigError, open_workspace, run, verify
from pipelines.cli.naming import RunChoice, make_request
from pipelines.run.naming import list_runs
from pipelines.run.workspace import Workspace
from tests.conftest import SETTINGS

EXAMPLES = Path(__file__).parents[2] / "data_cards" / "docs" / "examples"


@pytest.fixture(scope="module")
def finished(demo, tmp_path_factory):
    """A copy of the finished workspace, and the settings that it was made with."""
    root = tmp_path_factory.mktemp("api") / "workspace"
    shutil.copytree(demo.root, root)
    return root, [f"corpus.world={demo.world}", *SETTINGS]


async def call_inside_a_loop(call):
    return call()


def load_example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_docstrings_say_what_happens():
    found = doctest.testmod(api, optionflags=doctest.IGNORE_EXCEPTION_DETAIL)
    assert (found.failed, found.attempted > 0) == (0, True)


def test_everything_offered_is_there_and_documented():
    assert all(getattr(api, name).__doc__ for name in api.__all__ if name not in ("PASSED", "PluginReason"))


def test_a_finished_run_is_found_again_and_released_the_same(demo, finished):
    root, settings = finished
    document = run("demo", root, settings=settings)
    assert not any(report.ran for report in document.stages)
    assert {r.dataset: (r.version, r.rows) for r in document.releases} == {
        r.dataset: (r.version, r.rows) for r in open_workspace(root).releases()
    }
    # A notebook's own event loop runs while its cells do.
    again = asyncio.run(call_inside_a_loop(lambda: run(demo.config, root, until="paths")))
    assert [report.stage for report in again.stages] == ["corpus", "seeds", "paths"]
    with pytest.raises(ConfigError, match="a whole configuration takes no files"):
        run(demo.config, root, settings=["seed=1"])


def test_a_run_is_kept_under_its_name_and_goes_on_without_the_recipe(demo, finished, tmp_path):
    root, settings = tmp_path / "workspace", finished[1]
    shutil.copytree(demo.root, root, ignore=shutil.ignore_patterns("releases"))
    run("demo", root, settings=settings, until="paths", name="first")
    run(demo.config, root, until="paths", name="second")
    assert [each.name for each in list_runs(Workspace(root))][-2:] == ["first", "second"]
    assert [make_request(RunChoice(name), root).config for name in ("first", "")] == [demo.config, demo.config]
    assert run("", root, until="seeds").name == "second"


def test_a_script_that_its_own_workers_import_is_told_of(demo, finished, monkeypatch):
    def lose_workers(*_):
        raise BrokenProcessPool

    monkeypatch.setattr(api, "run_request", lose_workers)
    with pytest.raises(ConfigError, match=r'a worker process died .* call it under `if __name__ == "__main__":`'):
        run(demo.config, finished[0])
    monkeypatch.setattr(multiprocessing.current_process(), "_inheriting", True, raising=False)
    with pytest.raises(ConfigError, match="worker processes import the script"):
        run(demo.config, finished[0])


def test_datasets_read_as_arrow_and_as_rows_with_rejections_among_them(demo, finished):
    datasets = open_workspace(finished[0]).datasets()
    assert {"seeds", "questions", "releases", "rejections", "failures", "funnel", "pages"} <= datasets.keys()
    refused = datasets["rejections"]
    table = refused.to_arrow()
    assert isinstance(table, pa.Table)
    assert (table.num_rows, table.column_names[:3]) == (len(refused), ["stage", "record_id", "reason"])
    rows = list(refused)
    assert rows == table.to_pylist()
    assert {row["reason"] for row in rows if row["stage"] == "groundings"} == {
        row["reason"] for row in demo.rejections("groundings")
    }


def test_explain_and_sql_find_a_row(finished):
    workspace = open_workspace(finished[0])
    (row,) = workspace.sql("SELECT record_id, text FROM groundings ORDER BY record_id LIMIT 1").as_dicts()
    explained = workspace.explain(row["record_id"])
    assert explained.record["text"] == row["text"]
    assert "Path" in {part.title for part in explained.parts}


def test_verify_passes_a_release_and_says_what_is_wrong_with_a_changed_one(finished, tmp_path):
    root, _ = finished
    release = next(each for each in open_workspace(root).releases() if each.dataset == "rl")
    assert verify(release.path).passed
    changed = tmp_path / "rl"
    shutil.copytree(release.path, changed)
    (changed / "README.md").write_text("something else")
    report = verify(changed, next((root / "corpus").iterdir()))
    assert not report.passed
    assert any("README.md has changed" in problem.what for problem in report.problems)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("run_and_look", ["Nothing to do", "groundings", "hops: "]),
        ("own_check", ["questions would be refused"]),
        pytest.param("read_a_proof", ["rows are derived again", "Answer: ", "revision"], marks=pytest.mark.slow),
    ],
)
def test_the_examples_run(finished, capsys, name, wanted):
    root, settings = finished
    example = load_example(name)
    example.main(str(root), settings) if name == "run_and_look" else example.main(str(root))
    printed = capsys.readouterr().out
    assert [text for text in wanted if text not in printed] == []


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_the_notebook_runs(finished, monkeypatch, tmp_path):
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    for variable in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
    notebook = nbformat.read(EXAMPLES / "tour.ipynb", as_version=4)
    nbformat.validate(notebook)
    assert not any(cell.get("outputs") for cell in notebook.cells)
    (first,) = [cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", ())]
    first.source = f"workspace, settings = {json.dumps([str(finished[0]), finished[1]])}"
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources={}).execute()
    printed = json.dumps([cell.get("outputs", []) for cell in notebook.cells])
    assert "Nothing to do" in printed
    assert "'rl': '" in printed
