"""Trainers' own loaders over `synth serve-tools`: a mock policy plays whole attempts of the demo's RL release."""

import json
import os
from pathlib import Path

import pytest

from pipelines.cli.tool_server import ServingOptions
from pipelines.release.exporters.registry import export_release
from pipelines.release.exporters.rl import flatten_schema, list_tools
from pipelines.release.synth_tools import ToolSession
from tests.serving_tools import copy_workspace, serving_tools

pytestmark = pytest.mark.consumers
CALLS = [
    ["image_search", {"image": "img_1"}],
    ["crop", {"box": [0, 0, 500, 500]}],
    ["image_search", {"image": "img_2"}],
    ["crop", {"image": "img_99", "box": [0, 0, 500, 500]}],
]
ANSWER = "<think>It is said there.</think><answer>TRUTH</answer>"


@pytest.fixture(scope="module")
def served(demo, tmp_path_factory):
    root = copy_workspace(demo.root, tmp_path_factory.mktemp("served") / "workspace")
    with serving_tools(demo.config, root, ServingOptions(release=demo.release("rl"))) as server:
        yield server


def export(demo, tmp_path, to):
    export_release(demo.release("rl"), tmp_path / "out", to)
    return tmp_path / "out"


def test_veRL_loads_tools_yaml_and_rolls_out_over_the_served_tools(demo, served, drive, tmp_path, note):
    folder = export(demo, tmp_path, "verl")
    told = drive("verl", "roll_verl.py", folder, "train.parquet", served.address, json.dumps([*CALLS, ANSWER]))
    assert told["classes"] == ["synth_tools.VerlTool"]
    assert told["real"]
    assert told["schemas"] == [flatten_schema(spec) for spec in list_tools()]
    for attempt in told["rolled"]:
        session = ToolSession(attempt["question_id"], served.address)
        expected = [session.call(name, arguments) for name, arguments in CALLS]
        assert [seen["text"] for seen in attempt["seen"]] == [reply.text for reply in expected]
        assert [len(seen["pictures"]) for seen in attempt["seen"]] == [len(reply.images) for reply in expected]
        assert [seen["failed"] for seen in attempt["seen"]] == [not reply.ok for reply in expected]
        # One session for all tools of an attempt: the pictures of two calls at once have names of their own.
        names = {seen["text"].partition(":")[0] for seen in attempt["both"]}
        assert names == {f"img_{len(session.images) + 1}", f"img_{len(session.images) + 2}"}
        assert attempt["score"]["acc"] == 1.0
        assert attempt["score"]["calls"] == len(CALLS)
        assert attempt["extra"] == {"held_out": False}
        session.close()
    note(export="verl", loader="tools.yaml", **{"attempts": len(told["rolled"]), "calls": len(CALLS) + 2})


def test_rllm_environments_play_whole_attempts(demo, served, drive, tmp_path, note):
    source = os.environ.get("SYNTH_RLLM_SOURCE", "")
    if not (Path(source) / "rllm" / "environments" / "base" / "base_env.py").is_file():
        pytest.skip("set SYNTH_RLLM_SOURCE to a checkout of rLLM, which cannot be installed by name")
    folder = export(demo, tmp_path, "rllm")
    told = drive("rllm", "roll_rllm.py", source, folder, served.address, json.dumps([*CALLS, "TRUTH"]))
    assert told["real"]
    for attempt in told["rolled"]:
        session = ToolSession(attempt["question_id"], served.address)
        expected = [session.call(name, arguments) for name, arguments in CALLS]
        assert attempt["seen"] == [reply.text for reply in expected]
        assert attempt["pictures"] == [len(reply.images) for reply in expected]
        assert (attempt["reward"], attempt["done"]) == (1.0, True)
        session.close()
    note(export="rllm", loader="source", **{"attempts": len(told["rolled"]), "calls": len(CALLS)})
