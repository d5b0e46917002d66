"""ms-swift's own loader and template over an export, on a CPU and without weights.

Usage: load_ms_swift.py FOLDER FILE
"""

import hashlib
import importlib.metadata
import os
import sys
import types
from pathlib import Path

import torch
import toy

os.environ |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "ROOT_IMAGE_DIR": sys.argv[1]}
# PyPI's torchvision is built for CUDA and lacks two operators beside a CPU torch, which nothing here calls.
OPERATORS = torch.library.Library("torchvision", "FRAGMENT")
for operator in ("nms", "qnms"):
    OPERATORS.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

from swift.dataset import load_dataset  # noqa: E402
from swift.template import get_template  # noqa: E402

tokenizer = toy.make_tokenizer()
processor = toy.make_processor(tokenizer)
processor.image_processor.patch_size = 16
processor.model_info = types.SimpleNamespace(
    config=None, task_type="causal_lm", max_model_len=50_000_000, model_dir="", torch_dtype=None
)
processor.model_meta = types.SimpleNamespace(is_multimodal=True, template="qwen3_vl", model_type="qwen3_vl")
template = get_template(processor, template_type="qwen3_vl", agent_template="hermes")
template.set_mode("train")
template.image_token_id = processor.image_token_id
template.video_token_id = processor.video_token_id
shown = []
replace_tag = template.replace_tag


def watch_tag(kind, place, inputs):
    """Keep the pictures that the template puts into the text, in its order."""
    made = replace_tag(kind, place, inputs)
    shown.append(toy.hash_pixels(inputs.images[place]))
    return made


template.replace_tag = watch_tag
loaded, _ = load_dataset(sys.argv[2], strict=True)
rows = []
for row in loaded:
    shown.clear()
    encoded = template.encode(dict(row))
    ids, labels = list(encoded["input_ids"]), list(encoded["labels"])
    files = [(Path(sys.argv[1]) / image["path"]).read_bytes() for image in row["images"]]
    rows.append(
        toy.describe_row(tokenizer, ids, [label != -100 for label in labels])
        | {"files": [hashlib.sha256(data).hexdigest() for data in files], "pixels": list(shown)}
    )
toy.report(version=importlib.metadata.version("ms-swift"), loaded=len(loaded), rows=rows)
