"""veRL's own tool registry and calls over the served tools, with a policy that searches, crops and answers.

Usage: roll_verl.py FOLDER FILE ADDRESS CALLS (calls of an attempt as JSON: name and arguments each; the last is the
text that the policy ends with)
"""

import asyncio
import gc
import hashlib
import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import torch
import toy

os.environ |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
# PyPI's torchvision is built for CUDA and lacks two operators beside a CPU torch, which nothing here calls.
OPERATORS = torch.library.Library("torchvision", "FRAGMENT")
for operator in ("nms", "qnms"):
    OPERATORS.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

import pyarrow.parquet as pq  # noqa: E402
from verl.experimental.agent_loop.tool_agent_loop import AgentData, FunctionCall, ToolAgentLoop  # noqa: E402
from verl.tools.base_tool import BaseTool  # noqa: E402
from verl.tools.tool_registry import initialize_tools_from_config  # noqa: E402
from verl.utils.import_utils import load_extern_object  # noqa: E402

folder, file, address, calls = Path(sys.argv[1]), sys.argv[2], sys.argv[3], json.loads(sys.argv[4])
sys.path.insert(0, str(folder))
os.environ["SYNTH_TOOLS"] = address
tools = {tool.name: tool for tool in initialize_tools_from_config(str(folder / "tools.yaml"))}
compute_score = load_extern_object(str(folder / "rewards.py"), "compute_score")
loop = SimpleNamespace(tools=tools, max_tool_response_length=20_000, tool_response_truncate_side="left")


async def call(data, name, arguments):
    """Make a call as the loop does: create, execute, release."""
    made = FunctionCall(name=name, arguments=json.dumps(arguments))
    response, _, metrics = await ToolAgentLoop._call_tool(loop, made, data.tools_kwargs, data)
    return {
        "text": response.text,
        "pictures": [hashlib.sha256(picture.tobytes()).hexdigest() for picture in response.image or []],
        "failed": metrics.get("failed"),
    }


async def roll(row):
    """Return what one attempt saw, and its reward."""
    info = row["extra_info"]
    data = AgentData(
        messages=row["prompt"], image_data=[], video_data=[], audio_data=None, mm_processor_kwargs=None, metrics={},
        request_id="one", tools_kwargs=info["tools_kwargs"],
    )  # fmt: skip
    *made, answer = calls
    seen = [await call(data, name, arguments) for name, arguments in made]
    # Two at once, as a turn with parallel calls makes them.
    both = await asyncio.gather(*(call(data, "crop", {"box": [0, 0, edge, edge]}) for edge in (300, 600)))
    said = [
        f"<think>t</think><tool_call>{json.dumps({'name': name, 'arguments': given})}</tool_call>\n<|im_end|>\n"
        f"<|im_start|>user\n<tool_response>\n{reply['text']}\n</tool_response><|im_end|>\n<|im_start|>assistant\n"
        for (name, given), reply in zip(made, seen, strict=True)
    ]
    answer = answer.replace("TRUTH", row["reward_model"]["ground_truth"])
    truth = row["reward_model"]["ground_truth"]
    score = compute_score(row["data_source"], "".join(said) + answer, truth, info, dialect="synth")
    return {
        "question_id": info["question_id"],
        "seen": seen,
        "both": list(both),
        "score": score,
        "extra": data.extra_fields,
    }


rows = pq.read_table(folder / file).to_pylist()[:2]
rolled = [asyncio.run(roll(row)) for row in rows]
gc.collect()
toy.report(
    classes=sorted({f"{type(tool).__module__}.{type(tool).__name__}" for tool in tools.values()}),
    real=all(isinstance(tool, BaseTool) for tool in tools.values()),
    tools=sorted(tools),
    schemas=[tool.tool_schema.model_dump(exclude_unset=True, exclude_none=True) for tool in tools.values()],
    rolled=rolled,
)
