"""rLLM's own environment over the served tools, with a policy that searches, crops and answers.

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


def roll(row):
    """Return what one attempt saw."""
    *made, answer = calls
    environment = synth_tools.RllmEnvironment.from_dict({**row, "max_steps": 20})
    environment.reset()
    steps = [
        environment.step([{"id": "a", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}])
        for name, given in made
    ]
    _, reward, done, _ = environment.step(answer.replace("TRUTH", row["answer"]))
    environment.close()
    return {
        "question_id": row["id"],
        "seen": [seen["tool_outputs"]["a"] for seen, *_ in steps],
        "pictures": [len(seen["images"]) for seen, *_ in steps],
        "reward": reward,
        "done": done,
    }


(path,) = Path(folder).glob("datasets/*/train.arrow")
with pa.memory_map(str(path)) as opened:
    rows = pa.ipc.open_file(opened).read_all().to_pylist()[:2]
told = {"real": issubclass(synth_tools.RllmEnvironment, BaseEnv), "rolled": [roll(row) for row in rows]}
sys.stdout.write("\n" + json.dumps(told) + "\n")
