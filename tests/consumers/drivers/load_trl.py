"""TRL's own message preparation and collator over an export, on a CPU and without weights.

Usage: load_trl.py FILE
"""

import hashlib
import importlib.metadata
import os
import sys

import toy

os.environ |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}

from datasets import Image, List, load_dataset
from trl.data_utils import prepare_multimodal_messages
from trl.trainer.sft_trainer import DataCollatorForVisionLanguageModeling

loaded = load_dataset("parquet", data_files=sys.argv[1], split="train")
bare = loaded.cast_column("images", List(Image(decode=False)))
tokenizer = toy.make_tokenizer()
processor = toy.make_processor(tokenizer)
collate = DataCollatorForVisionLanguageModeling(processor, assistant_only_loss=True)
rows = []
for row, raw in zip(loaded, bare, strict=True):
    messages = prepare_multimodal_messages(row["messages"], row["images"])
    shown = [part["image"] for message in messages for part in message["content"] if part["type"] == "image"]
    batch = collate([row])
    ids, labels = batch["input_ids"][0].tolist(), batch["labels"][0].tolist()
    rows.append(
        toy.describe_row(tokenizer, ids, [label != -100 for label in labels])
        | {
            "files": [hashlib.sha256(image["bytes"]).hexdigest() for image in raw["images"]],
            "pixels": [toy.hash_pixels(image) for image in shown],
        }
    )
toy.report(version=importlib.metadata.version("trl"), loaded=len(loaded), rows=rows)
