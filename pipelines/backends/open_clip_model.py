"""open_clip's models: how one is loaded, and how it is fed.

Torch is imported only where a model is loaded. What open_clip's ``preprocess_val`` does to a picture is done in any
thread, see :mod:`pipelines.backends.squaring`; its last step, the normalisation, for a whole batch on the device.
"""

import hashlib
import http.client
import importlib
import json
import pickle
import struct
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pipelines.backends.encoding_engine import Asked, Prepared, Rows
from pipelines.backends.open_clip_names import (
    Architecture,
    Precision,
    check_device,
    clean_tag,
    find_checkpoint,
    suggest,
)
from pipelines.backends.protocols import PictureFile
from pipelines.backends.squaring import Preprocessing, square_picture
from pipelines.errors import ConfigError, CorruptInput, RecordFailed, Unavailable
from pipelines.picturefiles.limits import MAX_BYTES

if TYPE_CHECKING:
    import torch

_MISFITS: tuple[type[Exception], ...] = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    LookupError,
    RuntimeError,
    StopIteration,
    TypeError,
    ValueError,
    pickle.UnpicklingError,
    struct.error,
)
"""What open_clip and torch raise over weights that are none, or do not fit, and over architectures that are none."""
_QUOTED = 300
"""Characters of what they say that are quoted."""


def choose_device(device: str, precision: str) -> str:
    """Return the device to load to.

    Raises:
        ConfigError: if the machine has it not, or it cannot do the precision.
    """
    import torch

    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    chosen = ("cuda" if count else "cpu") if device == "auto" else device
    if chosen != "cpu" and int(chosen.partition(":")[2] or 0) >= count:
        raise ConfigError(f"encoder.device {device}: torch finds {count} GPUs here; use auto or cpu")
    check_device(chosen, precision)
    return chosen


class ClipModel:
    """A loaded model. Preparing is for any thread, encoding for one.

    Args:
        architecture: what to build.
        pretrained: a tag of open_clip's, or a checkpoint file.
        device: as :func:`check_device` allows.
        precision: of weights and arithmetic.

    Raises:
        ConfigError: if the machine lacks the device, there is no such tag, or the architecture cannot be built.
        CorruptInput: if the weights are none, or those of another architecture.
        Unavailable: if weights cannot be fetched.
    """

    def __init__(self, architecture: Architecture, pretrained: str, device: str, precision: Precision) -> None:
        import open_clip
        import torch

        self._name = f"{architecture.name}/{Path(pretrained).name}"
        self._precision = precision
        self._device = torch.device(choose_device(device, precision))
        self._type = open_clip.get_input_dtype(precision) or torch.float32
        weights, preprocessing = _find_weights(architecture, pretrained)
        self._model, self._tokenize = self._build(architecture, weights, preprocessing)
        self._tokenizing = threading.Lock()
        self._preprocessing = Preprocessing.from_settings(self._model.visual.preprocess_cfg)
        self._mean, self._deviation = (
            torch.tensor(values, device=self._device).view(1, 3, 1, 1)
            for values in (self._preprocessing.mean, self._preprocessing.deviation)
        )

    def _build(
        self, architecture: Architecture, weights: Path, preprocessing: dict[str, Any]
    ) -> "tuple[torch.nn.Module, Callable[[list[str]], torch.Tensor]]":
        """Return the model and what turns texts into numbers."""
        import open_clip

        misfits = (*_MISFITS, importlib.import_module("safetensors").SafetensorError)
        with TemporaryDirectory(prefix="synth-clip-") as folder:
            # A name of its own: open_clip would take one file for another of the same name.
            path = Path(folder) / f"{architecture.name}-{architecture.digest[:16]}.json"
            path.write_text(json.dumps(architecture.model))
            try:
                open_clip.add_model_config(path)
                model = open_clip.create_model(
                    path.stem,
                    pretrained=str(weights),
                    precision=self._precision,
                    device=self._device,
                    force_preprocess_cfg=preprocessing,
                    require_pretrained=True,
                )
                return model.eval().requires_grad_(False), open_clip.get_tokenizer(path.stem)
            except ImportError as error:
                raise ConfigError(f"encoder {self._name}: needs another package ({error}); install it") from error
            except OSError as error:
                # Some have a part, such as the tokenizer, that open_clip fetches by itself.
                raise Unavailable(f"encoder {self._name}: {_quote(error)}") from error
            except misfits as error:
                said = f"encoder {self._name}: {weights} holds no weights of this model ({_quote(error)})"
                raise CorruptInput(said) from error

    def prepare(self, asked: Asked) -> Prepared:
        """Return a picture's pixels, of shape (height, width, 3), or a text's words as numbers.

        Raises:
            RecordFailed: if the picture cannot be decoded; the message names it.
            Unavailable: if its file is gone.
        """
        if isinstance(asked, PictureFile):
            return read_square(asked, self._preprocessing)
        with self._tokenizing:
            words: NDArray[np.int64] = self._tokenize([asked])[0].numpy()
        return words

    def encode_pictures(self, prepared: Sequence[Prepared]) -> Rows:
        """Return one row of unit length a picture.

        Raises:
            ConfigError: if the model's numbers overflow, or the device's memory does.
        """
        import torch

        pixels = torch.from_numpy(np.stack(prepared)).to(self._device)
        with torch.inference_mode():
            scaled = pixels.permute(0, 3, 1, 2).to(torch.float32, memory_format=torch.contiguous_format).div_(255.0)
            return self._finish(self._model.encode_image, scaled.sub_(self._mean).div_(self._deviation).to(self._type))

    def encode_texts(self, prepared: Sequence[Prepared]) -> Rows:
        """Return one row of unit length a text; errors as above."""
        import torch

        return self._finish(self._model.encode_text, torch.from_numpy(np.stack(prepared)).to(self._device))

    def _finish(self, encode: Callable[["torch.Tensor"], "torch.Tensor"], batch: "torch.Tensor") -> Rows:
        import torch

        try:
            with torch.inference_mode():
                rows: Rows = torch.nn.functional.normalize(encode(batch).float(), dim=-1).cpu().numpy()
        except torch.OutOfMemoryError as error:
            raise ConfigError(
                f"encoder {self._name}: no memory for {len(batch)} at once; lower encoder.batch"
            ) from error
        if not np.isfinite(rows).all():
            raise ConfigError(f"encoder {self._name}: embeddings are no numbers in {self._precision}; use another")
        return rows


def _find_weights(architecture: Architecture, pretrained: str) -> tuple[Path, dict[str, Any]]:
    """Return the file of some weights, fetched if need be, and how pictures are preprocessed for them."""
    import open_clip

    path = find_checkpoint(pretrained)
    if path is not None:
        return path, architecture.preprocessing
    facts = open_clip.get_pretrained_cfg(architecture.name, pretrained)
    if not facts:
        known = sorted(open_clip.list_pretrained_tags_by_model(architecture.name))
        raise ConfigError(
            f"encoder.pretrained {pretrained!r}: no file, and open_clip has no such weights of {architecture.name}"
            f"{suggest(clean_tag(pretrained), known)}"
        )
    if bool(facts.get("quick_gelu")) != bool(architecture.model.get("quick_gelu")):
        other = architecture.name.removesuffix("-quickgelu") + ("-quickgelu" if facts.get("quick_gelu") else "")
        raise ConfigError(f"encoder.model {architecture.name}: weights {pretrained!r} are those of {other}")
    try:
        return Path(open_clip.download_pretrained(facts)), facts
    except (OSError, RuntimeError, http.client.HTTPException) as error:
        raise Unavailable(f"encoder.pretrained {pretrained!r}: cannot be fetched ({_quote(error)})") from error


def _quote(error: Exception) -> str:
    said = str(error).strip()
    return f"{type(error).__name__}: {said}".splitlines()[0][:_QUOTED]


def read_square(picture: PictureFile, preprocessing: Preprocessing) -> NDArray[np.uint8]:
    """Return a picture file's pixels as a model takes them.

    Raises:
        RecordFailed: if it cannot be decoded, or holds other bytes than its sha256 says; the message names it.
        Unavailable: if the file is gone, which is no property of the picture.
    """
    try:
        with picture.path.open("rb") as source:
            data = source.read(MAX_BYTES + 1)
    except OSError as error:
        raise Unavailable(f"picture {picture.path}: {error.strerror}; bring it back and run again") from error
    # What is encoded is kept under this name, and a wrong embedding would stay for good.
    if hashlib.sha256(data).hexdigest() != picture.sha256:
        raise RecordFailed("picture-changed", f"{picture.path.name}: other bytes than its sha256 {picture.sha256[:16]}")
    try:
        return square_picture(data, preprocessing)
    except RecordFailed as error:
        raise RecordFailed(error.error, f"{picture.path.name}: {error.detail}") from error
