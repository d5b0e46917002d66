"""open_clip as an encoder of pictures and texts; needs the extra ``clip``.

What concurrent callers ask for shares batches, see :mod:`pipelines.services.clients.encoder`.

open_clip's models: how one is loaded, and how it is fed.

Torch is imported only where a model is loaded. What open_clip's ``preprocess_val`` does to a picture is done in any
thread, see :mod:`pipelines.services.clients.encoder`; its last step, the normalisation, for a whole batch on the
device.

What names an open_clip model: architecture, weights, device and precision, checked before torch is imported.

Threads that make batches: pictures are decoded by some while one more has the model encode what is ready.

Whoever asks meanwhile shares the batches, turn by turn. No more is decoded than two batches hold, so that memory does
not grow with what is asked for. What a model computes is not known here.

A picture as a model takes it: open_clip's ``preprocess_val`` with Pillow alone, up to the normalisation.

Shrinking and cutting are one step, so that only the part which stays is ever computed.

Embeddings that are kept: nothing is encoded twice, within a run or across runs and processes.

One SQLite file in WAL mode under a folder. A row is an embedding under the hash of the encoder's identity and of the
picture's content, or the text. Rows are written in transactions, so that kill -9 leaves whole rows and loses only what
was being encoded; of two processes that encode the same at the same moment the first one's row stays, for both.
"""

import asyncio
import atexit
import difflib
import hashlib
import http.client
import importlib
import importlib.util
import json
import os
import pickle
import sqlite3
import struct
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from pipelines.errors import ConfigError, CorruptInput, RecordFailed, SynthError, Unavailable
from pipelines.files import check_shared_memory, explain_os_error
from pipelines.ids import digest_file, digest_value
from pipelines.pixels import MAX_BYTES, open_pixels, read_header
from pipelines.services.clients.replies import explain_sqlite_error, is_busy
from pipelines.services.protocols import ImageEncoder, PictureFile

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


Asked = PictureFile | str
"""A picture, or a text."""
Prepared = NDArray[Any]
"""What a model takes of one: pixels or words as numbers, of one shape for all pictures and one for all texts."""
Rows = NDArray[np.float32]
"""Embeddings of shape (n, d)."""
Undone = RecordFailed | Unavailable
"""Why one picture was not encoded: it cannot be decoded, or its file is gone."""
ROOM = 2
"""Batches that are decoded ahead."""


class EncodingModel(Protocol):
    """A loaded model; it is prepared for by several threads and run by one."""

    def prepare(self, asked: Asked) -> Prepared:
        """Return what the model takes.

        Raises:
            RecordFailed: if a picture cannot be decoded.
            Unavailable: if its file is gone.
        """

    def encode_pictures(self, prepared: Sequence[Prepared]) -> Rows:
        """Return the embeddings of some pictures."""

    def encode_texts(self, prepared: Sequence[Prepared]) -> Rows:
        """Return the embeddings of some texts."""


@dataclass(slots=True, eq=False)
class Request:
    """What one caller asked for, and how much of it there is."""

    asked: Sequence[Asked]
    future: "Future[Rows]" = field(default_factory=Future)
    taken: int = 0
    """How many were begun, in order."""
    left: int = 0
    rows: Rows | None = None
    failed: tuple[int, Undone] | None = None
    """The first that cannot be encoded, with the reason."""

    def __post_init__(self) -> None:
        self.left = len(self.asked)

    def needs(self, place: int) -> bool:
        """Whether it matters still what is at a place: nothing does after one that failed, or once nobody waits."""
        return not self.future.done() and (self.failed is None or place < self.failed[0])

    def fail(self, place: int, error: Undone) -> None:
        """Note that one cannot be encoded; the first in order is what the caller is told."""
        if self.failed is None or place < self.failed[0]:
            self.failed = (place, error)

    def put(self, place: int, row: Rows) -> None:
        """Note an embedding."""
        if self.rows is None:
            self.rows = np.empty((len(self.asked), len(row)), dtype=np.float32)
        self.rows[place] = row

    def count_done(self) -> None:
        """Count one that nothing more will happen to, and tell the caller after the last."""
        self.left -= 1
        if self.left or not self._may_tell():
            return
        if self.failed is not None:
            self.future.set_exception(self.failed[1])
        elif self.rows is not None:
            self.future.set_result(self.rows)

    def refuse(self, error: Exception) -> None:
        """Tell the caller that there will be nothing."""
        if self._may_tell():
            self.future.set_exception(error)

    def _may_tell(self) -> bool:
        return not self.future.done() and self.future.set_running_or_notify_cancel()


Ready = tuple[Request, int, Prepared]
"""A caller's request, a place in it, and what the model takes of what is there."""


class EncodingEngine:
    """The threads, started by the first request; they serve any number of event loops.

    Args:
        name: the model's name, for messages.
        load: loads the model; called once, in the thread that runs it.
        batch: pictures, or texts, encoded together at most.
        threads: threads that decode; 0 is one for each core.
    """

    def __init__(self, name: str, load: Callable[[], EncodingModel], batch: int, threads: int) -> None:
        self._name = name
        self._load = load
        self._batch = batch
        self._count = threads or len(os.sched_getaffinity(0))
        self._lock = threading.Lock()
        self._room = threading.Condition(self._lock)
        """Told when there is something to decode, and room for it."""
        self._full = threading.Condition(self._lock)
        """Told when there is something to encode."""
        self._requests: deque[Request] = deque()
        """Those of which something has not been begun, whose turn it is first."""
        self._ready: deque[Ready] = deque()
        self._busy = 0
        """Threads that decode something now."""
        self._open: set[Request] = set()
        """Those whose callers wait."""
        self._threads: list[threading.Thread] = []
        self._end: Exception | None = None
        """Why it encodes no more; None while it does."""

    def ask(self, asked: Sequence[Asked]) -> "Future[Rows]":
        """Have pictures or texts encoded.

        Args:
            asked: one at least.

        Returns:
            What will hold one row each, in order, or why the first that was not encoded could not be.
        """
        request = Request(asked)
        with self._lock:
            if self._end is not None:
                request.refuse(self._end)
                return request.future
            if not self._threads:
                self._start(self._encode_all)
                atexit.register(self.close)
            self._open.add(request)
            self._requests.append(request)
            self._room.notify_all()
        return request.future

    def close(self) -> None:
        """End the threads; whoever still waits is refused, and so is whoever comes later."""
        self._break(Unavailable(f"encoder {self._name}: it was closed"))
        atexit.unregister(self.close)
        for thread in self._threads:
            thread.join()

    def _start(self, work: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, name=f"encoder {self._name}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _break(self, why: Exception) -> None:
        """Refuse all that waits and all that comes; only the first reason counts."""
        with self._lock:
            self._end = self._end or why
            for request in self._open:
                request.refuse(self._end)
            self._open.clear()
            self._requests.clear()
            self._ready.clear()
            self._room.notify_all()
            self._full.notify_all()

    def _prepare_all(self, model: EncodingModel) -> None:
        """Decode what is asked for until the end."""
        why: Exception = Unavailable(f"encoder {self._name}: a thread that decodes ended early; run again")
        try:
            while taken := self._take():
                self._put(*taken, _prepare(model, *taken))
            why = Unavailable(f"encoder {self._name}: it was closed")
        finally:
            # Only a defect comes here before the end; nobody may wait for a thread that is gone.
            self._break(why)

    def _take(self) -> tuple[Request, int] | None:
        """Wait for something to decode and for room; None when it is time to end."""
        with self._lock:
            while self._end is None:
                if self._requests and len(self._ready) + self._busy < ROOM * self._batch:
                    request = self._requests.popleft()
                    place, request.taken = request.taken, request.taken + 1
                    if request.taken < len(request.asked) and not request.future.done():
                        self._requests.append(request)
                    self._busy += 1
                    return request, place
                self._room.wait()
        return None

    def _put(self, request: Request, place: int, prepared: Prepared | Undone | None) -> None:
        """Hand on what was decoded; what need not, or cannot, be encoded is done."""
        with self._lock:
            self._busy -= 1
            if isinstance(prepared, np.ndarray) and request.needs(place):
                self._ready.append((request, place, prepared))
            else:
                if isinstance(prepared, Undone):
                    request.fail(place, prepared)
                self._count_done(request)
            if self._is_due():
                self._full.notify()

    def _count_done(self, request: Request) -> None:
        request.count_done()
        if request.future.done():
            self._open.discard(request)

    def _is_due(self) -> bool:
        """Whether a batch should be encoded: it is full, or nothing more is on its way."""
        coming = bool(self._requests) or self._busy > 0
        return len(self._ready) >= self._batch or (bool(self._ready) and not coming)

    def _encode_all(self) -> None:
        """Load the model and encode batch after batch until the end."""
        why: Exception = Unavailable(f"encoder {self._name}: its thread ended early; run again")
        try:
            model = self._load()
            with self._lock:
                for _ in range(self._count):
                    self._start(self._prepare_all, model)
            while batch := self._gather():
                self._encode(model, batch)
            why = Unavailable(f"encoder {self._name}: it was closed")
        except SynthError as error:
            # It cannot be loaded, or cannot encode: the next request would fare no better.
            why = error
        finally:
            self._break(why)

    def _gather(self) -> list[Ready]:
        """Wait for a batch; empty when it is time to end."""
        with self._lock:
            while self._end is None and not self._is_due():
                self._full.wait()
            batch = [self._ready.popleft() for _ in range(min(self._batch, len(self._ready)))]
            self._room.notify_all()
        return batch

    def _encode(self, model: EncodingModel, batch: Sequence[Ready]) -> None:
        texts = [ready for ready in batch if isinstance(ready[0].asked[ready[1]], str)]
        pictures = [ready for ready in batch if not isinstance(ready[0].asked[ready[1]], str)]
        for part, encode in ((pictures, model.encode_pictures), (texts, model.encode_texts)):
            if not part:
                continue
            rows = encode([prepared for _, _, prepared in part])
            with self._lock:
                for (request, place, _), row in zip(part, rows, strict=True):
                    request.put(place, row)
                    self._count_done(request)


def _prepare(model: EncodingModel, request: Request, place: int) -> Prepared | Undone | None:
    """Return what the model takes, or why there is nothing; None where nobody needs it any more."""
    if not request.needs(place):
        return None
    try:
        return model.prepare(request.asked[place])
    except (RecordFailed, Unavailable) as error:
        return error


SQUARING_VERSION = 1
"""Part of an encoder's identity: raised when pixels come out otherwise."""
Mode = Literal["shortest", "longest", "squash"]
_SCALES = (8, 4, 2)
"""Fractions of its size at which a JPEG can be decoded, for much less than the whole costs."""


@dataclass(frozen=True, slots=True)
class Preprocessing:
    """What a model wants of a picture.

    Attributes:
        height: pixels of the result.
        width: likewise.
        mode: ``shortest``: the shorter side fits and the rest of the longer one is cut off; ``longest``: the longer
            side fits and the rest is filled up; ``squash``: both fit.
        bicubic: else bilinear.
        fill: 0..255, of each colour.
        mean: of red, green and blue in 0..1, subtracted at last.
        deviation: likewise, and divided by.
    """

    height: int
    width: int
    mode: Mode
    bicubic: bool
    fill: int
    mean: tuple[float, ...]
    deviation: tuple[float, ...]

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> "Preprocessing":
        """Return what open_clip's ``preprocess_cfg`` says.

        Raises:
            ConfigError: if it says something that open_clip does not know.
        """
        size, mode, interpolation = settings["size"], settings["resize_mode"], settings["interpolation"]
        if mode not in ("shortest", "longest", "squash") or interpolation not in ("bicubic", "bilinear", "random"):
            raise ConfigError(f"encoder.model: preprocessing {mode}, {interpolation} is none of open_clip's")
        height, width = (size, size) if isinstance(size, int) else (int(size[0]), int(size[-1]))
        # open_clip drops the interpolation on this one way.
        bicubic = interpolation != "bilinear" or (mode == "shortest" and height != width)
        mean, deviation = (tuple(settings[key]) for key in ("mean", "std"))
        return cls(height, width, mode, bicubic, int(settings["fill_color"]), mean, deviation)

    def fit(self, width: int, height: int) -> tuple[int, int]:
        """Return width and height of a whole picture before it is cut or filled up, rounded as open_clip rounds."""
        if self.mode == "squash":
            return self.width, self.height
        ratios = (height / self.height, width / self.width)
        if self.mode == "shortest" and self.height == self.width:
            short = min(width, height)
            return (
                self.width if width == short else int(self.width * width / short),
                self.height if height == short else int(self.height * height / short),
            )
        ratio = min(ratios) if self.mode == "shortest" else max(ratios)
        return max(1, round(width / ratio)), max(1, round(height / ratio))


def square_picture(data: bytes, preprocessing: Preprocessing) -> NDArray[np.uint8]:
    """Return the pixels of a picture file, of shape (height, width, 3), 0..255.

    Raises:
        RecordFailed: as :func:`pipelines.pixels.open_pixels` says.
    """
    header = read_header(data)
    side = choose_side(header.width, header.height, preprocessing) if header.extension == "jpg" else 0
    return np.asarray(square_pixels(open_pixels(header, side), preprocessing))


def choose_side(width: int, height: int, preprocessing: Preprocessing) -> int:
    """Return the longest side to decode a JPEG at, pixels: a half of its own, or less; 0 for its own.

    Reduced, it is never smaller than the model's picture, so that nothing is enlarged which need not be.
    """
    wanted = max(preprocessing.height, preprocessing.width)
    scale = next((scale for scale in _SCALES if min(width, height) >= wanted * scale), 1)
    return -(-max(width, height) // scale) if scale > 1 else 0


def square_pixels(shown: Image.Image, preprocessing: Preprocessing) -> Image.Image:
    """Return a picture shrunk, and cut or filled up, to what a model takes."""
    size = preprocessing.fit(shown.width, shown.height)
    target = (preprocessing.width, preprocessing.height)
    kept = (min(size[0], target[0]), min(size[1], target[1]))
    starts = (round((size[0] - kept[0]) / 2.0), round((size[1] - kept[1]) / 2.0))
    scales = (shown.width / size[0], shown.height / size[1])
    box = (
        starts[0] * scales[0],
        starts[1] * scales[1],
        min((starts[0] + kept[0]) * scales[0], shown.width),
        min((starts[1] + kept[1]) * scales[1], shown.height),
    )
    filtered = Image.Resampling.BICUBIC if preprocessing.bicubic else Image.Resampling.BILINEAR
    resized = shown.resize(kept, filtered, box=box)
    if kept == target:
        return resized
    canvas = Image.new("RGB", target, (preprocessing.fill,) * 3)
    canvas.paste(resized, ((target[0] - kept[0]) // 2, (target[1] - kept[1]) // 2))
    return canvas


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


VERSION = 1


@dataclass(frozen=True, slots=True)
class OpenClipEncoder:
    """A CLIP model of open_clip's; loaded, and torch with it, when something is first encoded.

    The last digits of an embedding depend on the batch it was made in; who needs the very same numbers again keeps
    them, see :mod:`pipelines.services.clients.encoder`.

    Attributes:
        model: architecture by open_clip's name, or a JSON file of one.
        pretrained: weights by open_clip's tag, or a checkpoint file.
        device: auto, cpu, cuda or cuda:N.
        precision: of weights and arithmetic.
        batch: pictures, or texts, encoded together at most.
        threads: threads that decode pictures; 0 is one for each core.

    Raises:
        ConfigError: if the extra is not installed, architecture, file, device or precision is unknown, or device and
            precision do not go together.
    """

    model: str
    pretrained: str
    device: str = "auto"
    precision: Precision = "fp32"
    batch: int = 64
    threads: int = 0
    _architecture: Architecture = field(init=False, repr=False, compare=False)
    _engine: EncodingEngine = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_device(self.device, self.precision)
        find_checkpoint(self.pretrained)
        object.__setattr__(self, "_architecture", read_architecture(self.model))
        object.__setattr__(self, "_engine", EncodingEngine(self.name, self._load, self.batch, self.threads))

    @property
    def name(self) -> str:
        """Architecture and weights, such as ``ViT-L-14-quickgelu/openai``."""
        return f"{self._architecture.name}/{Path(self.pretrained).name}"

    @property
    def identity(self) -> str:
        """Architecture, weights, precision and preprocessing; neither device nor batch.

        Raises:
            ConfigError: if the checkpoint file cannot be read.
        """
        path = find_checkpoint(self.pretrained)
        weights = f"{self._architecture.name}:{clean_tag(self.pretrained)}" if path is None else digest_weights(path)
        return (
            f"open-clip@{VERSION}:{self._architecture.digest[:16]}:{weights}:{self.precision}:"
            f"preprocessing@{SQUARING_VERSION}"
        )

    async def encode_pictures(self, pictures: Sequence[PictureFile]) -> Rows:
        """Return one row of unit length a picture, of shape (n, d), in the order given.

        Raises:
            RecordFailed: if one cannot be decoded: the first in order, which the message names.
            ConfigError: if the model cannot be loaded or run as configured.
            Unavailable: if weights cannot be fetched, a picture's file is gone, or the encoder was closed.
        """
        return await self._encode(pictures)

    async def encode_texts(self, texts: Sequence[str]) -> Rows:
        """Return one row of unit length a text, of shape (n, d), in the order given; errors as above."""
        return await self._encode(texts)

    def close(self) -> None:
        """End the threads; whoever waits is refused, and so is whoever comes later."""
        self._engine.close()

    async def _encode(self, asked: Sequence[Asked]) -> Rows:
        # Of nothing the model's width is not known: any text tells it.
        rows = await asyncio.wrap_future(self._engine.ask(tuple(asked) or ("",)))
        return rows[: len(asked)]

    def _load(self) -> ClipModel:
        return ClipModel(self._architecture, self.pretrained, self.device, self.precision)


FILE = "embeddings.db"
CHUNK = 256
"""Pictures or texts that are looked up, encoded and recorded together."""
FLYING = 2
"""Chunks of one caller that are under way at once: while one is recorded, the next is encoded."""
BUSY_SECONDS = 30.0
_STORED = np.dtype("<f4")
_UNIT = 1e-2
"""How far a stored row's length may be from 1."""

Row = NDArray[np.float32]
"""One embedding, of shape (d,)."""
EncodeSome = Callable[[Sequence[int]], Awaitable[NDArray[np.float32]]]
"""Encodes what is at some places of what was asked for."""


@dataclass(slots=True)
class EmbeddingStore:
    """The file; opened when it is first needed, shared by the threads and event loops of a process."""

    folder: Path
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Held while the connection is used."""
    _connection: sqlite3.Connection | None = None

    def read(self, keys: Sequence[bytes]) -> dict[bytes, Row]:
        """Return the recorded embeddings of those keys that have one.

        Raises:
            Unavailable: if the file cannot be read now.
            CorruptInput: if it is damaged.
            ConfigError: if the folder's file system cannot hold it.
        """
        with self.lock:
            return self._guard(lambda connection: self._select(connection, keys))

    def record(self, rows: Mapping[bytes, Row]) -> dict[bytes, Row]:
        """Record embeddings, all or none; return what is recorded under their keys now: the first of a key stays.

        Raises:
            Unavailable: if the disk is full, or others hold the file for too long.
            CorruptInput: if the file is damaged.
        """
        with self.lock:
            return self._guard(lambda connection: self._insert(connection, rows))

    def close(self) -> None:
        """Close the file."""
        with self.lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _guard(self, work: Callable[[sqlite3.Connection], dict[bytes, Row]]) -> dict[bytes, Row]:
        try:
            if self._connection is None:
                self._connection = _connect(self.folder)
            return work(self._connection)
        except sqlite3.Error as error:
            raise explain_sqlite_error(error, f"embeddings {self.folder / FILE}") from error
        except OSError as error:
            raise explain_os_error(error, f"embeddings in {self.folder}") from error

    def _select(self, connection: sqlite3.Connection, keys: Sequence[bytes]) -> dict[bytes, Row]:
        marks = ",".join("?" * len(keys))
        found = connection.execute(f"SELECT key, embedding FROM embeddings WHERE key IN ({marks})", tuple(keys))
        return {key: self._unpack(embedding) for key, embedding in found}

    def _insert(self, connection: sqlite3.Connection, rows: Mapping[bytes, Row]) -> dict[bytes, Row]:
        values = [(key, row.astype(_STORED).tobytes()) for key, row in rows.items()]
        with connection:
            done = connection.executemany("INSERT OR IGNORE INTO embeddings (key, embedding) VALUES (?, ?)", values)
        return dict(rows) if done.rowcount == len(rows) else self._select(connection, list(rows))

    def _unpack(self, embedding: bytes) -> Row:
        row = np.frombuffer(embedding, dtype=_STORED) if len(embedding) % _STORED.itemsize == 0 else np.zeros(0)
        if not abs(float(np.dot(row, row)) - 1.0) < _UNIT:
            place = self.folder / FILE
            raise CorruptInput(f"embeddings {place}: a row is no embedding; delete the file: it is made anew")
        return row.astype(np.float32)


def _connect(folder: Path) -> sqlite3.Connection:
    folder.mkdir(parents=True, exist_ok=True)
    check_shared_memory(folder)
    connection = sqlite3.connect(folder / FILE, timeout=BUSY_SECONDS, check_same_thread=False)
    try:
        _begin_log(connection)
        # What a power cut takes is encoded again; kill -9 takes nothing that was recorded.
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute("CREATE TABLE IF NOT EXISTS embeddings (key BLOB PRIMARY KEY, embedding BLOB NOT NULL)")
    except BaseException:
        connection.close()
        raise
    return connection


def _begin_log(connection: sqlite3.Connection) -> None:
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL").fetchone()
            return
        except sqlite3.OperationalError as error:
            # SQLite does not wait by itself for this one: another process makes the file just now.
            if not is_busy(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


@dataclass(frozen=True, slots=True)
class CachedEncoder:
    """An encoder that encodes nothing twice.

    Attributes:
        encoder: what encodes.
        folder: where embeddings are kept, those of any number of encoders.
    """

    encoder: ImageEncoder
    folder: Path
    _store: EmbeddingStore = field(init=False, repr=False, compare=False)
    _flights: dict[bytes, "Future[None]"] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What is being encoded by key: whoever wants the same meanwhile waits, and looks it up then."""
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False, compare=False)
    """Held while the flights are changed."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_store", EmbeddingStore(self.folder))

    @property
    def name(self) -> str:
        """The encoder's."""
        return self.encoder.name

    @property
    def identity(self) -> str:
        """The encoder's: what is kept is what it would say."""
        return self.encoder.identity

    async def encode_pictures(self, pictures: Sequence[PictureFile]) -> NDArray[np.float32]:
        """Return one row of unit length a picture, of shape (n, d), in the order given.

        Raises:
            RecordFailed: if one cannot be decoded; the others of its chunk are recorded all the same.
            ServiceError: if the encoder is away, a picture's file, or the disk.
            CorruptInput: if the file of embeddings is damaged.
        """

        async def encode(places: Sequence[int]) -> NDArray[np.float32]:
            return await self.encoder.encode_pictures([pictures[place] for place in places])

        return await self._recall("picture", [picture.sha256 for picture in pictures], encode)

    async def encode_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row of unit length a text, of shape (n, d), in the order given; errors as above."""

        async def encode(places: Sequence[int]) -> NDArray[np.float32]:
            return await self.encoder.encode_texts([texts[place] for place in places])

        return await self._recall("text", texts, encode)

    def close(self) -> None:
        """Close the file of embeddings; the encoder stays as it is."""
        self._store.close()

    async def _recall(self, kind: str, contents: Sequence[str], encode: EncodeSome) -> NDArray[np.float32]:
        if not contents:
            return await encode(())
        keys = make_keys(kind, self.identity, contents)
        places: dict[bytes, list[int]] = {}
        for place, key in enumerate(keys):
            places.setdefault(key, []).append(place)
        rows: list[NDArray[np.float32]] = []

        async def fill(chunk: Sequence[bytes]) -> None:
            for key, row in (await self._fetch(chunk, encode, places)).items():
                if not rows:
                    rows.append(np.empty((len(contents), len(row)), dtype=np.float32))
                rows[0][places[key]] = row

        await _run_chunks(fill, _cut(list(places)))
        return rows[0]

    async def _fetch(
        self, keys: Sequence[bytes], encode: EncodeSome, places: Mapping[bytes, list[int]]
    ) -> dict[bytes, Row]:
        """Return the embeddings of some keys: looked up, encoded here, or waited for where another caller encodes."""
        rows: dict[bytes, Row] = {}
        while wanted := [key for key in keys if key not in rows]:
            mine, others, flight = self._board(wanted)
            try:
                if mine:
                    rows |= await self._fly(mine, encode, places)
            finally:
                self._land(mine, flight)
            for other in others:
                await asyncio.wrap_future(other)
        return rows

    def _board(self, keys: Sequence[bytes]) -> "tuple[list[bytes], set[Future[None]], Future[None]]":
        """Return the keys that are the caller's to look up and encode, the flights of the others, and its own."""
        flight = Future[None]()
        # From now on nobody who waits for it can cancel it.
        flight.set_running_or_notify_cancel()
        with self._lock:
            others = {self._flights[key] for key in keys if key in self._flights}
            mine = [key for key in keys if key not in self._flights]
            self._flights.update(dict.fromkeys(mine, flight))
        return mine, others, flight

    def _land(self, keys: Iterable[bytes], flight: "Future[None]") -> None:
        with self._lock:
            for key in keys:
                del self._flights[key]
        flight.set_result(None)

    async def _fly(
        self, keys: Sequence[bytes], encode: EncodeSome, places: Mapping[bytes, list[int]]
    ) -> dict[bytes, Row]:
        found = await asyncio.to_thread(self._store.read, keys)
        missing = [key for key in keys if key not in found]
        if not missing:
            return found
        try:
            encoded = await encode([places[key][0] for key in missing])
        except RecordFailed:
            await self._keep_others(missing, encode, places)
            raise
        made = dict(zip(missing, encoded, strict=True))
        return found | await asyncio.to_thread(self._store.record, made)

    async def _keep_others(self, keys: Sequence[bytes], encode: EncodeSome, places: Mapping[bytes, list[int]]) -> None:
        """Record what can be encoded beside something that cannot."""
        outcomes = await asyncio.gather(*(encode([places[key][0]]) for key in keys), return_exceptions=True)
        made = {key: rows[0] for key, rows in zip(keys, outcomes, strict=True) if not isinstance(rows, BaseException)}
        if made:
            await asyncio.to_thread(self._store.record, made)


def make_keys(kind: str, identity: str, contents: Iterable[str]) -> list[bytes]:
    """Return the keys of pictures' digests, or of texts, as an encoder embeds them."""
    start = hashlib.sha256(f"{kind}\0{identity}\0".encode())
    keys = []
    for content in contents:
        digest = start.copy()
        # Half of a surrogate pair is a text, too.
        digest.update(content.encode("utf-8", "surrogatepass"))
        keys.append(digest.digest())
    return keys


def _cut(keys: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    return (keys[start : start + CHUNK] for start in range(0, len(keys), CHUNK))


async def _run_chunks(work: Callable[[Sequence[bytes]], Awaitable[None]], chunks: Iterator[Sequence[bytes]]) -> None:
    """Do the chunks in order, some at a time; the first error ends it."""

    async def take() -> None:
        for chunk in chunks:
            await work(chunk)

    tasks = [asyncio.create_task(take()) for _ in range(FLYING)]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
