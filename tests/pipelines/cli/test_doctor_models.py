import json
import socket
import sys

import pytest

from pipelines.cli.doctor import look_at_own_servers
from pipelines.config.loading import make_config, read_recipe
from pipelines.run.judges import look_at_judges


def configure(*settings):
    return make_config(read_recipe("demo"), list(settings))


def make_model(role, adapter="openai", **more):
    settings = {"adapter": adapter, "name": "Qwen/Qwen3-8B", **more}
    table = ", ".join(f"{key} = {json.dumps(value)}" for key, value in settings.items())
    return f"models.{role}={{ {table} }}"


def own_model(role, port, python, model, **more):
    serve = f"{{ own = true, python = {json.dumps(str(python))}, model = {json.dumps(str(model))} }}"
    return [make_model(role, base_url=f"http://127.0.0.1:{port}/v1", **more), f"models.{role}.serve={serve}"]


def make_python(folder, text):
    """A program that stands for another environment's Python."""
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def make_weights(folder):
    (folder / "weights").mkdir()
    (folder / "weights" / "config.json").write_text("{}")
    return folder / "weights"


@pytest.fixture
def port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def states(findings):
    return {finding.what: finding.state for finding in findings}


def test_nothing_is_looked_at_where_nothing_is_started():
    setting = make_model("solver", base_url="http://127.0.0.1:1/v1")
    assert look_at_own_servers(configure(setting)) == []


def test_a_server_of_our_own_with_all_it_needs_is_fine(tmp_path, port):
    python, weights = make_python(tmp_path, "echo /somewhere/vllm/__init__.py"), make_weights(tmp_path)
    found = look_at_own_servers(configure(*own_model("solver", port, python, weights)))
    assert states(found) == {"solver: vLLM": "ok", "solver: weights": "ok", "solver: port": "ok"}


@pytest.mark.parametrize("text", ["echo", "exit 1"])
def test_a_python_without_vllm_is_a_problem(tmp_path, port, text):
    python, weights = make_python(tmp_path, text), make_weights(tmp_path)
    found = look_at_own_servers(configure(*own_model("solver", port, python, weights)))
    assert (found[0].state, "has no vLLM" in found[0].detail) == ("problem", True)


def test_a_python_that_is_not_there_is_a_problem(tmp_path, port):
    found = look_at_own_servers(configure(*own_model("solver", port, tmp_path / "python", make_weights(tmp_path))))
    assert (found[0].state, "cannot be run" in found[0].detail) == ("problem", True)


def test_a_model_folder_must_be_one(tmp_path, port):
    (tmp_path / "empty").mkdir()
    for model, state in (
        (tmp_path / "gone", "problem"), (tmp_path / "empty", "problem"), ("./gone", "problem"), ("org/name", "ok")
    ):  # fmt: skip
        found = look_at_own_servers(configure(*own_model("solver", port, sys.executable, model)))
        assert states(found)["solver: weights"] == state, model


def test_a_port_that_is_taken_is_a_problem(tmp_path):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        found = look_at_own_servers(configure(*own_model("solver", taken, sys.executable, make_weights(tmp_path))))
    assert states(found)["solver: port"] == "problem"


def test_one_port_is_for_one_model(tmp_path, port):
    weights = make_weights(tmp_path)
    solver = own_model("solver", port, sys.executable, weights)
    same = look_at_own_servers(configure(*solver, *own_model("teacher", port, sys.executable, weights)))
    other = look_at_own_servers(configure(*solver, *own_model("teacher", port, sys.executable, weights, name="x")))
    assert not [finding for finding in same if "another model" in finding.detail]
    assert [finding.what for finding in other if "another model" in finding.detail] == ["teacher: port"]


def judge(role, name, revision=""):
    return make_model(role, name=name, revision=revision, base_url="http://127.0.0.1:1/v1")


@pytest.mark.parametrize("judged", ["solver", "teacher"])
def test_a_judge_that_is_a_model_it_judges_is_a_problem(judged):
    found = look_at_judges(configure(judge("judge", "m", "r1"), judge(judged, "m", "r1")))
    assert states(found) == {f"judge and {judged}": "problem"}


def test_another_revision_of_the_model_judged_is_warned_of():
    found = look_at_judges(configure(judge("judge", "m", "r1"), judge("solver", "m", "r2")))
    assert [finding.state for finding in found] == ["warning"]
