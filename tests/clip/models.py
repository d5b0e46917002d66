"""Small open_clip models made on the spot: an architecture of our own, weights saved as any checkpoint is.

Nothing is fetched: the tokenizer's vocabulary is in open_clip's package. Imports torch, so that only tests import it.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import open_clip
import torch

from pipelines.services.clients.encoder import OpenClipEncoder
from pipelines.services.protocols import PictureFile

SIDE = 32
"""Pixels of the tiny model's square picture."""
WIDTH = 32
"""Numbers of one embedding."""
VOCABULARY = 49_408
"""Words of open_clip's own tokenizer."""


@dataclass(frozen=True, slots=True)
class Written:
    """A model on disk: what ``make_encoder(config, weights)`` loads."""

    config: Path
    weights: Path


def make_architecture(
    side: int = SIDE, patch: int = 8, width: int = 64, layers: int = 2, embedding: int = WIDTH
) -> dict[str, Any]:
    """Return an architecture as open_clip's JSON files have it; heads are 32 wide in both towers."""
    return {
        "embed_dim": embedding,
        "vision_cfg": {"image_size": side, "patch_size": patch, "width": width, "head_width": 32, "layers": layers},
        "text_cfg": {
            "context_length": 32,
            "vocab_size": VOCABULARY,
            "width": width,
            "heads": width // 32,
            "layers": layers,
        },
    }


def write_architecture(path: Path, architecture: dict[str, Any]) -> Path:
    """Write the JSON file that open_clip and our encoder load an architecture from."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(architecture))
    return path


def make_model(config: Path, seed: int = 7) -> torch.nn.Module:
    """Return a model of an architecture file with random weights, to be trained or saved; fp32, on the processor."""
    torch.manual_seed(seed)
    open_clip.add_model_config(config)
    return open_clip.create_model(config.stem, load_weights=False)


def save_checkpoint(model: torch.nn.Module, path: Path) -> Path:
    """Save weights as open_clip's training does; ``pretrained=<path>`` loads them, torch's safe loader included."""
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save({"name": path.stem, "state_dict": model.state_dict()}, path)
    return path


def write_tiny_model(folder: Path, seed: int = 7, **sizes: int) -> Written:
    """Write an architecture (sizes: see :func:`make_architecture`) and random weights for it."""
    config = write_architecture(folder / f"tiny-{seed}.json", make_architecture(**sizes))
    return Written(config, save_checkpoint(make_model(config, seed), folder / f"tiny-{seed}.pt"))


def make_encoder(model: Path | str, pretrained: Path | str, **settings: Any) -> OpenClipEncoder:
    """Return our encoder; settings are its device and its batch."""
    return OpenClipEncoder(str(model), str(pretrained), **settings)


def name_picture(path: Path) -> PictureFile:
    """Return a picture file under its content's name: an encoder takes it under no other."""
    return PictureFile(hashlib.sha256(path.read_bytes()).hexdigest(), path)
