"""What names an open_clip model: architecture, weights, device and precision, checked before torch is imported."""

import difflib
import importlib.util
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from pipelines.errors import ConfigError
from pipelines.ids import digest_file, digest_value

Precision = Literal["fp32", "bf16", "fp16"]
_PARTS = ("embed_dim", "vision_cfg", "text_cfg")
_FILES = (".pt", ".pth", ".bin", ".safetensors")
"""Names of checkpoint files end so."""
_NEAR = 5
"""Names that a refusal suggests."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """What is built before weights fill it.

    Attributes:
        name: open_clip's name, or the name of the file without its suffix.
        model: as open_clip's JSON files have it.
        preprocessing: what differs from open_clip's defaults; only a file can say so.
    """

    name: str
    model: dict[str, Any]
    preprocessing: dict[str, Any]

    @property
    def digest(self) -> str:
        """Names the content."""
        return digest_value([self.model, self.preprocessing])


def read_architecture(named: str) -> Architecture:
    """Return an architecture by open_clip's name, or from a JSON file; open_clip itself is not imported.

    Args:
        named: a name, or a path that ends in ``.json``: a file like open_clip's ``model_configs/ViT-B-32.json``, or
            like the ``open_clip_config.json`` beside weights on the Hub, which names the preprocessing, too.

    Raises:
        ConfigError: if the extra is missing, there is no such name or file, or it holds no architecture.
    """
    package = importlib.util.find_spec("open_clip")
    if package is None or package.origin is None:
        raise ConfigError("encoder.model: open_clip is not installed; pip install 'synth[clip]', or leave encoder out")
    if named.endswith(".json"):
        return _read_file(Path(named).expanduser())
    folder = Path(package.origin).with_name("model_configs")
    # open_clip takes both: ViT-B/32 is how the first models were named.
    path = folder / f"{named.replace('/', '-')}.json"
    if not path.is_file():
        known = sorted(entry.stem for entry in folder.glob("*.json"))
        raise ConfigError(f"encoder.model {named!r}: open_clip has no such architecture{suggest(named, known)}")
    return _read_file(path)


def _read_file(path: Path) -> Architecture:
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"encoder.model {path}: {error.strerror}") from error
    except ValueError as error:
        raise ConfigError(f"encoder.model {path}: no JSON ({error})") from error
    found = content if isinstance(content, dict) else {}
    model, preprocessing = found.get("model_cfg", found), found.get("preprocess_cfg", {})
    if not isinstance(model, dict) or not isinstance(preprocessing, dict) or not set(_PARTS) <= set(model):
        raise ConfigError(f"encoder.model {path}: no architecture of open_clip's; it needs {', '.join(_PARTS)}")
    return Architecture(path.stem, model, preprocessing)


def suggest(given: str, known: Sequence[str]) -> str:
    """Return words that name what was perhaps meant; the first few where nothing is like it."""
    near = difflib.get_close_matches(given, known, n=_NEAR, cutoff=0.5)
    return f"; near: {', '.join(near)}" if near else f"; there are {', '.join(known[:_NEAR]) or 'none'}"


def find_checkpoint(pretrained: str) -> Path | None:
    """Return the checkpoint file that is named, or None where the name is a tag of open_clip's.

    Raises:
        ConfigError: if it is a path, and no file is there; or if it is empty.
    """
    if not pretrained:
        raise ConfigError("encoder.pretrained is empty: name weights of open_clip's or a checkpoint file")
    path = Path(pretrained).expanduser()
    if path.is_file():
        return path.resolve()
    if path.suffix in _FILES or os.sep in pretrained:
        raise ConfigError(f"encoder.pretrained {pretrained}: there is no such file")
    return None


def digest_weights(path: Path) -> str:
    """Return the sha256 of a checkpoint file; read once for as long as it does not change.

    Raises:
        ConfigError: if it cannot be read.
    """
    try:
        state = path.stat()
        return _digest(path, state.st_size, state.st_mtime_ns)
    except OSError as error:
        raise ConfigError(f"encoder.pretrained {path}: {error.strerror}") from error


@lru_cache(maxsize=8)
def _digest(path: Path, size: int, changed: int) -> str:
    return digest_file(path)


def clean_tag(tag: str) -> str:
    """Return a tag as open_clip looks it up."""
    return tag.lower().replace("-", "_")


def check_device(device: str, precision: str) -> None:
    """Refuse what no model runs on; whether the machine has it is known once torch is loaded.

    Raises:
        ConfigError: if there is no such device or precision, or the two do not go together.
    """
    kind, _, number = device.partition(":")
    if kind not in ("auto", "cpu", "cuda") or (":" in device and not (kind == "cuda" and number.isdecimal())):
        raise ConfigError(f"encoder.device {device!r}: allowed are auto, cpu, cuda and cuda:N")
    if precision not in ("fp32", "bf16", "fp16"):
        raise ConfigError(f"encoder.precision {precision!r}: allowed are fp32, bf16 and fp16")
    if kind == "cpu" and precision == "fp16":
        raise ConfigError("encoder.precision fp16: not on a processor; use bf16 or fp32")
