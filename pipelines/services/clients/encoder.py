"""open_clip as an encoder of pictures and texts (extra ``clip``), and the cache of its embeddings.

Torch is imported where a model is loaded. Pictures are decoded by a thread pool and encoded in batches by one thread;
concurrent callers share the batches. The queue between the two is bounded, so memory does not grow with a request.

The cache is one SQLite file in WAL mode. A row is an embedding under the hash of the encoder's identity and of the
picture's content, or the text. Rows are written in transactions: kill -9 loses only what was being encoded, and of two
processes that encode the same picture the first one's row stays, for both.
"""

import asyncio
import difflib
import hashlib
import http.client
import importlib
import importlib.util
import json
import os
import pickle
import queue
import sqlite3
import struct
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from pipelines.errors import ConfigError, CorruptInput, RecordFailed, Unavailable
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
Prepared = Any
"""What a model takes of one, such as a tensor: one shape for all pictures and one for all texts."""
Rows = NDArray[np.float32]
"""Embeddings of shape (n, d)."""
ROOM = 2
"""Batches that are decoded ahead."""


class EncodingModel(Protocol):
    """A loaded model; several threads prepare its input and one runs it."""

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


@dataclass(frozen=True, slots=True)
class _Item:
    """One picture or text of a request; ``prepared`` is None when it failed or its caller left."""

    asked: Asked
    future: "Future[NDArray[np.float32]]"
    prepared: Prepared = None


class Batcher:
    """Decodes in a thread pool and encodes in batches; its threads start with the first request.

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
        self._pool = ThreadPoolExecutor(threads or len(os.sched_getaffinity(0)), f"decode {name}")
        self._ready: queue.Queue[_Item | None] = queue.Queue(ROOM * batch)
        """Decoded items; None ends the encoding thread."""
        self._coming = 0
        """Items that were asked for and have not left the queue."""
        self._counting = threading.Lock()
        self._model: Future[EncodingModel] = Future()
        self._thread: threading.Thread | None = None
        self._closed = False

    async def encode(self, asked: Sequence[Asked]) -> Rows:
        """Return one row each, of shape (n, d), in the order given; ``asked`` holds one at least.

        Raises:
            RecordFailed, Unavailable: for the first in order that cannot be decoded; the rest is then dropped.
            SynthError: if the model cannot be loaded or run, or the encoder was closed.
        """
        if self._closed:
            raise self._refuse()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=f"encode {self._name}", daemon=True)
            self._thread.start()
        with self._counting:
            self._coming += len(asked)
        items = [_Item(one, Future()) for one in asked]
        for item in items:
            self._pool.submit(self._prepare, item)
        try:
            rows: list[NDArray[np.float32]] = [await asyncio.wrap_future(item.future) for item in items]
            return np.stack(rows)
        finally:
            for item in items:
                item.future.cancel()

    def close(self) -> None:
        """End the threads; callers who wait, or come later, get Unavailable."""
        if self._closed:
            return
        self._closed = True
        self._pool.shutdown()
        if self._thread is not None:
            self._ready.put(None)
            self._thread.join()

    def _refuse(self) -> Unavailable:
        return Unavailable(f"encoder {self._name}: it was closed")

    def _prepare(self, item: _Item) -> None:
        """Put exactly one item into the queue, whatever happens: the encoding thread counts them."""
        prepared = None
        if item.future.set_running_or_notify_cancel():
            try:
                if self._closed:
                    raise self._refuse()
                prepared = self._model.result().prepare(item.asked)
            except Exception as error:  # noqa: BLE001 (its own caller gets whatever it is)
                item.future.set_exception(error)
        self._ready.put(replace(item, prepared=prepared))

    def _run(self) -> None:
        """Load the model, and encode batch after batch until the end; without a model every item fails."""
        try:
            self._model.set_result(self._load())
        except Exception as error:  # noqa: BLE001 (every caller gets whatever it is)
            self._model.set_exception(error)
        while (batch := self._gather()) is not None:
            pictures = [item for item in batch if not isinstance(item.asked, str)]
            self._encode(pictures, "encode_pictures")
            self._encode([item for item in batch if isinstance(item.asked, str)], "encode_texts")

    def _gather(self) -> list[_Item] | None:
        """Wait for a full batch, or until nothing more is coming; None at the end."""
        batch: list[_Item] = []
        while not batch or (len(batch) < self._batch and self._coming):
            item = self._ready.get()
            if item is None:
                return None
            with self._counting:
                self._coming -= 1
            if item.prepared is not None:
                batch.append(item)
        return batch

    def _encode(self, items: Sequence[_Item], method: str) -> None:
        if not items:
            return
        try:
            if self._closed:
                raise self._refuse()
            rows = getattr(self._model.result(), method)([item.prepared for item in items])
        except Exception as error:  # noqa: BLE001 (the callers of the batch get whatever it is)
            for item in items:
                item.future.set_exception(error)
            return
        for item, row in zip(items, rows, strict=True):
            item.future.set_result(row)


PREPROCESSING_VERSION = 2
"""Part of an encoder's identity: raised when pixels come out otherwise. 2: open_clip's own ``preprocess_val``."""
_SCALES = (8, 4, 2)
"""Fractions of its size at which a JPEG can be decoded, for much less than the whole costs."""
_MAX_ASPECT = 16
"""A longer strip is cut at both ends first: open_clip enlarges the whole strip before it cuts."""


def open_for_model(data: bytes, wanted: int) -> Image.Image:
    """Return a picture as displayed, a JPEG at a reduced scale whose shorter side is ``wanted`` pixels or more.

    Raises:
        RecordFailed: as :func:`pipelines.pixels.open_pixels` says.
    """
    header = read_header(data)
    scales = _SCALES if header.extension == "jpg" else ()
    scale = next((scale for scale in scales if min(header.width, header.height) >= wanted * scale), 1)
    shown = open_pixels(header, -(-max(header.width, header.height) // scale) if scale > 1 else 0)
    most = _MAX_ASPECT * min(shown.size)
    left, top = max(0, shown.width - most) // 2, max(0, shown.height - most) // 2
    return shown.crop((left, top, shown.width - left, shown.height - top)) if left or top else shown


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
        from open_clip.transform import PreprocessCfg, image_transform_v2

        self._name = f"{architecture.name}/{Path(pretrained).name}"
        self._precision = precision
        self._device = torch.device(choose_device(device, precision))
        self._type = open_clip.get_input_dtype(precision) or torch.float32
        weights, preprocessing = _find_weights(architecture, pretrained)
        self._model, self._tokenize = self._build(architecture, weights, preprocessing)
        self._tokenizing = threading.Lock()
        settings = self._model.visual.preprocess_cfg
        try:
            wanted = PreprocessCfg(**settings)
            self._preprocess = image_transform_v2(wanted, is_train=False)
        except (AssertionError, TypeError, ValueError) as error:
            raise ConfigError(f"encoder.model: preprocessing {settings} is none of open_clip's ({error})") from error
        self._side = max(wanted.input_size[1:])

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

    def prepare(self, asked: Asked) -> "torch.Tensor":
        """Return a picture as normalised pixels, of shape (3, height, width), or a text as token numbers.

        Raises:
            RecordFailed: if the picture cannot be decoded; the message names it.
            Unavailable: if its file is gone.
        """
        if isinstance(asked, PictureFile):
            pixels: torch.Tensor = self._preprocess(read_picture(asked, self._side))
            return pixels
        with self._tokenizing:
            return self._tokenize([asked])[0]

    def encode_pictures(self, prepared: Sequence["torch.Tensor"]) -> Rows:
        """Return one row of unit length a picture.

        Raises:
            ConfigError: if the model's numbers overflow, or the device's memory does.
        """
        import torch

        return self._finish(self._model.encode_image, torch.stack(list(prepared)).to(self._device, self._type))

    def encode_texts(self, prepared: Sequence["torch.Tensor"]) -> Rows:
        """Return one row of unit length a text; errors as above."""
        import torch

        return self._finish(self._model.encode_text, torch.stack(list(prepared)).to(self._device))

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


def read_picture(picture: PictureFile, wanted: int) -> Image.Image:
    """Return a picture file as :func:`open_for_model` does.

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
        return open_for_model(data, wanted)
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
    _batcher: Batcher = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_device(self.device, self.precision)
        find_checkpoint(self.pretrained)
        object.__setattr__(self, "_architecture", read_architecture(self.model))
        object.__setattr__(self, "_batcher", Batcher(self.name, self._load, self.batch, self.threads))

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
            f"preprocessing@{PREPROCESSING_VERSION}"
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
        self._batcher.close()

    async def _encode(self, asked: Sequence[Asked]) -> Rows:
        # Of nothing the model's width is not known: any text tells it.
        rows = await self._batcher.encode(tuple(asked) or ("",))
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
    """The file; opened when it is first needed, used on the event loop alone."""

    folder: Path
    _connection: sqlite3.Connection | None = None

    def read(self, keys: Sequence[bytes]) -> dict[bytes, Row]:
        """Return the recorded embeddings of those keys that have one.

        Raises:
            Unavailable: if the file cannot be read now.
            CorruptInput: if it is damaged.
            ConfigError: if the folder's file system cannot hold it.
        """
        return self._guard(lambda connection: self._select(connection, keys))

    def record(self, rows: Mapping[bytes, Row]) -> dict[bytes, Row]:
        """Record embeddings, all or none; return what is recorded under their keys now: the first of a key stays.

        Raises:
            Unavailable: if the disk is full, or others hold the file for too long.
            CorruptInput: if the file is damaged.
        """
        return self._guard(lambda connection: self._insert(connection, rows))

    def close(self) -> None:
        """Close the file."""
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
    connection = sqlite3.connect(folder / FILE, timeout=BUSY_SECONDS)
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
    _flights: dict[bytes, asyncio.Event] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Keys that are being encoded: other callers wait for the event, and look the key up then."""

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
            others = {self._flights[key] for key in wanted if key in self._flights}
            mine = [key for key in wanted if key not in self._flights]
            landed = asyncio.Event()
            self._flights.update(dict.fromkeys(mine, landed))
            try:
                if mine:
                    rows |= await self._fly(mine, encode, places)
            finally:
                for key in mine:
                    del self._flights[key]
                landed.set()
            for other in others:
                await other.wait()
        return rows

    async def _fly(
        self, keys: Sequence[bytes], encode: EncodeSome, places: Mapping[bytes, list[int]]
    ) -> dict[bytes, Row]:
        found = self._store.read(keys)
        missing = [key for key in keys if key not in found]
        if not missing:
            return found
        try:
            encoded = await encode([places[key][0] for key in missing])
        except RecordFailed:
            await self._keep_others(missing, encode, places)
            raise
        made = dict(zip(missing, encoded, strict=True))
        return found | self._store.record(made)

    async def _keep_others(self, keys: Sequence[bytes], encode: EncodeSome, places: Mapping[bytes, list[int]]) -> None:
        """Record what can be encoded beside something that cannot."""
        outcomes = await asyncio.gather(*(encode([places[key][0]]) for key in keys), return_exceptions=True)
        made = {key: rows[0] for key, rows in zip(keys, outcomes, strict=True) if not isinstance(rows, BaseException)}
        if made:
            self._store.record(made)


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
