"""LLaMA-Factory's own loader, converter, template and collator inputs over an export, on a CPU and without weights.

Usage: load_llamafactory.py FOLDER DATASET TEMPLATE
"""

import hashlib
import importlib.metadata
import os
import sys
import types
from pathlib import Path

import toy

os.environ |= {"DISABLE_VERSION_CHECK": "1", "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
sys.modules["torchaudio"] = types.ModuleType("torchaudio")
folder, dataset, template_name = Path(sys.argv[1]), sys.argv[2], sys.argv[3]

from llamafactory.data.loader import _get_preprocessed_dataset, _load_single_dataset  # noqa: E402
from llamafactory.data.parser import get_dataset_list  # noqa: E402
from llamafactory.data.template import TEMPLATES  # noqa: E402
from llamafactory.hparams.data_args import DataArguments  # noqa: E402
from transformers import Qwen2VLImageProcessor  # noqa: E402


class Processor:
    """What the Qwen plug-ins ask of a processor."""

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer
        self.image_processor = Qwen2VLImageProcessor()
        self.video_processor = self.image_processor
        self.image_max_pixels, self.image_min_pixels = 768 * 768, 32 * 32


tokenizer = toy.make_tokenizer()
processor = Processor(tokenizer)
data = DataArguments(
    dataset_dir=str(folder), media_dir=str(folder), cutoff_len=50_000_000, preprocessing_num_workers=None
)
model = types.SimpleNamespace(cache_dir=os.environ["HF_DATASETS_CACHE"], hf_hub_token=None, trust_remote_code=False)
training = types.SimpleNamespace(
    dataloader_num_workers=0, local_process_index=0, should_log=False, seed=1, predict_with_generate=False
)
loaded = _load_single_dataset(get_dataset_list([dataset], str(folder))[0], model, data, training)
template = TEMPLATES[template_name]
encoded = _get_preprocessed_dataset(loaded, data, training, "sft", template, tokenizer, processor)
rows = []
for row in encoded:
    images = template.mm_plugin._regularize_images(
        row["images"] or [], image_max_pixels=768 * 768, image_min_pixels=32 * 32
    )
    rows.append(
        toy.describe_row(tokenizer, row["input_ids"], [label != -100 for label in row["labels"]])
        | {
            "files": [hashlib.sha256(Path(name).read_bytes()).hexdigest() for name in row["images"] or []],
            "pixels": [toy.hash_pixels(image) for image in images["images"]],
        }
    )
toy.report(version=importlib.metadata.version("llamafactory"), loaded=len(loaded), rows=rows)
