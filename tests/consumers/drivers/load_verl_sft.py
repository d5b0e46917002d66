"""veRL's own multi-turn SFT dataset over an export, on a CPU and without weights.

Usage: load_verl_sft.py FILE
"""

import hashlib
import importlib.metadata
import os
import sys

import torch
import toy

os.environ |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
# PyPI's torchvision is built for CUDA and lacks two operators beside a CPU torch, which nothing here calls.
OPERATORS = torch.library.Library("torchvision", "FRAGMENT")
for operator in ("nms", "qnms"):
    OPERATORS.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

import verl.utils.dataset.multiturn_sft_dataset as reader  # noqa: E402
from omegaconf import OmegaConf  # noqa: E402

shown = []
open_image = reader.process_image


def watch_image(image, **kwargs):
    """Keep what the reader is given and what it makes of it."""
    data = image["bytes"]
    made = open_image(image, **kwargs)
    shown.append((hashlib.sha256(data).hexdigest(), toy.hash_pixels(made)))
    return made


reader.process_image = watch_image
tokenizer = toy.make_tokenizer()
processor = toy.make_processor(tokenizer)
config = OmegaConf.create({"max_length": 50_000_000, "pad_mode": "no_padding", "truncation": "error"})
loaded = reader.MultiTurnSFTDataset([sys.argv[1]], tokenizer, config, processor)
rows = []
for place in range(len(loaded)):
    shown.clear()
    row = loaded[place]
    ids, mask = row["input_ids"].tolist(), row["loss_mask"].tolist()
    rows.append(
        toy.describe_row(tokenizer, ids, mask)
        | {"files": [file for file, _ in shown], "pixels": [pixels for _, pixels in shown]}
    )
toy.report(version=importlib.metadata.version("verl"), loaded=len(loaded), rows=rows)
