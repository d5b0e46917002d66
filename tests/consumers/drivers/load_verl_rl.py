"""veRL's own RL dataset over an export, on a CPU and without weights, with its tool registry and its reward loader.

Usage: load_verl_rl.py FOLDER FILE true|false SOLUTIONS (whether it filters overlong prompts, as it does by default;
texts to score, as JSON)
"""

import asyncio
import hashlib
import importlib.metadata
import inspect
import json
import os
import sys
from pathlib import Path

import torch
import toy

os.environ |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
# PyPI's torchvision is built for CUDA and lacks two operators beside a CPU torch, which nothing here calls.
OPERATORS = torch.library.Library("torchvision", "FRAGMENT")
for operator in ("nms", "qnms"):
    OPERATORS.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

from omegaconf import OmegaConf  # noqa: E402
from verl.tools.tool_registry import initialize_tools_from_config  # noqa: E402
from verl.utils.dataset.rl_dataset import RLHFDataset, collate_fn  # noqa: E402
from verl.utils.import_utils import load_extern_object  # noqa: E402

folder, file, filters, solutions = Path(sys.argv[1]), sys.argv[2], sys.argv[3] == "true", json.loads(sys.argv[4])
# As PYTHONPATH has it in a trainer.
sys.path.insert(0, str(folder))
tools = initialize_tools_from_config(str(folder / "tools.yaml"))
schemas = [tool.tool_schema.model_dump(exclude_unset=True, exclude_none=True) for tool in tools]

tokenizer = toy.make_tokenizer()
processor = toy.make_processor(tokenizer)
settings = {
    "cache_dir": os.environ["HF_HOME"],
    "filter_overlong_prompts": filters,
    "filter_overlong_prompts_workers": 1,
    "max_prompt_length": 100_000,
    "tool_config_path": None,
}
loaded = RLHFDataset(str(folder / file), tokenizer, OmegaConf.create(settings), processor)
compute_score = load_extern_object(str(folder / "rewards.py"), "compute_score")


def score(row, solution):
    """Return what veRL's reward manager makes of a response to one row."""
    ids = tokenizer(solution, add_special_tokens=False)["input_ids"]
    return compute_score(
        data_source=row["data_source"],
        solution_str=tokenizer.decode(ids, skip_special_tokens=True),
        ground_truth=row["reward_model"]["ground_truth"],
        extra_info={**row["extra_info"], "num_turns": 2, "rollout_reward_scores": {}},
        dialect="synth",
    )["score"]


def read_row(place):
    """Return what a rollout and a reward would be given of one row."""
    row = loaded[place]
    prompt = processor.apply_chat_template(row["raw_prompt"], add_generation_prompt=True, tokenize=False)
    parts = [part for message in row["raw_prompt"] for part in message["content"] if isinstance(part, dict)]
    pictures = [part for part in parts if part["type"] == "image"]
    images, _ = asyncio.run(RLHFDataset.process_vision_info(row["raw_prompt"], 14, loaded.config))
    inputs = processor(text=[prompt], images=images, return_tensors="pt")
    arguments = row["tools_kwargs"]
    return {
        "prompt": toy.decode(tokenizer, inputs["input_ids"][0].tolist()),
        "pads": int((inputs["input_ids"] == processor.image_token_id).sum()),
        "files": [hashlib.sha256(part["bytes"]).hexdigest() for part in pictures],
        "pixels": [toy.hash_pixels(part["image"]) for part in pictures],
        "agent_name": row["agent_name"],
        "index": row["index"],
        "question_id": row["extra_info"]["question_id"],
        "truth": row["reward_model"]["ground_truth"],
        # As tool_agent_loop.py does it: a missing tool would be None here, and its .get an error told to the model.
        "created": {tool.name: sorted(arguments.get(tool.name, {}).get("create_kwargs", {})) for tool in tools},
        "results": [
            {
                "title": found["title"],
                "thumbnail": hashlib.sha256(found["thumbnail"]).hexdigest() if found["thumbnail"] else "",
            }
            for found in arguments["image_search"]["create_kwargs"]["results"]
        ],
        "scores": [score(row, solution) for solution in solutions],
    }


rows = [read_row(place) for place in range(len(loaded))]
batch = collate_fn([loaded[place] for place in range(len(loaded))]) if len(loaded) else {}
toy.report(
    version=importlib.metadata.version("verl"),
    loaded=len(loaded),
    rows=rows,
    collated=sorted(batch),
    schemas=json.loads(json.dumps(schemas)),
    is_async=inspect.iscoroutinefunction(compute_score),
)
