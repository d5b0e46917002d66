"""rLLM's own environment and tool classes over the served tools, with a policy that searches, crops and answers.

Usage: roll_rllm.py SOURCE FOLDER ADDRESS CALLS (SOURCE is a checkout of rLLM: it is on no package index; calls as for
roll_verl.py)
"""

import json
import os
import sys
from pathlib import Path

import pyarrow as pa

source, folder, address, calls = *sys.argv[1:4], json.loads(sys.argv[4])
sys.path[:0] = [folder, source]
os.environ["SYNTH_TOOLS"] = address

import synth_tools  # noqa: E402
from rllm.environments.base.base_env import BaseEnv  # noqa: E402
from rllm.tools.tool_base import Tool, ToolOutput  # noqa: E402


def roll(row):
    """Return what one attempt saw through the environment, then through the tools alone."""
    *made, answer = calls
    environment = synth_tools.RllmEnvironment.from_dict({**row, "max_steps": 20})
    environment.reset()
    steps = [
        environment.step([{"id": "a", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}])
        for name, given in made
    ]
    _, reward, done, _ = environment.step(answer.replace("TRUTH", row["answer"]))
    environment.close()
    tools = synth_tools.list_rllm_tools(synth_tools.ToolSession(row["id"]))
    outputs = [tools[name](use_async=False, **given) for name, given in made]
    assert all(isinstance(output, ToolOutput) for output in outputs)
    assert all(tool.json["function"]["name"] == name for name, tool in tools.items())
    return {
        "question_id": row["id"],
        "seen": [seen["tool_outputs"]["a"] for seen, *_ in steps],
        "pictures": [len(seen["images"]) for seen, *_ in steps],
        "by_tools": [output.to_string() for output in outputs],
        "reward": reward,
        "done": done,
    }


(path,) = Path(folder).glob("datasets/*/train.arrow")
with pa.memory_map(str(path)) as opened:
    rows = pa.ipc.open_file(opened).read_all().to_pylist()[:2]
bases = [base.__name__ for base in (BaseEnv, Tool) if issubclass(
    {"BaseEnv": synth_tools.RllmEnvironment, "Tool": synth_tools.RllmTool}[base.__name__], base)]  # fmt: skip
told = {"bases": bases, "rolled": [roll(row) for row in rows]}
sys.stdout.write("\n" + json.dumps(told) + "\n")
