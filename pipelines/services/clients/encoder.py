"""open_clip as an encoder of pictures and texts (extra ``clip``), and the cache of its embeddings.

Torch is imported when a model is loaded. One thread runs the model; a pool decodes the next batch of pictures
meanwhile, so memory does not grow with a request.

The cache is one SQLite file with an embedding under the hash of the encoder's identity and the picture's content or
the text. kill -9 loses only the chunk that is being encoded. If two processes encode the same picture, both use the
first one's row.
"""

import asyncio
import hashlib
import http.client
import importlib.util
import json
import os
import sqlite3
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from pipelines.errors import ConfigError, CorruptInput, Damaged, RecordFailed, Unavailable
from pipelines.files import explain_os_error
from pipelines.ids import digest_file, digest_value
from pipelines.pictures import MAX_BYTES, open_pixels, read_header
from pipelines.services.protocols import ImageEncoder, PictureFile

if TYPE_CHECKING:
    import torch

_T = TypeVar("_T")
Rows = NDArray[np.float32]
"""Embeddings of unit length, of shape (n, d); one embedding has shape (d,)."""
BATCH = 64
"""Pictures encoded together: a processor is busy with less, and a GPU of 8 GB holds so many for the largest models."""
PRECISION = "fp32"
"""Of the weights and the arithmetic: every device has it, and a margin between pictures is smaller than others err."""
VERSION = 1
PREPROCESSING_VERSION = 2
"""Part of an encoder's identity, raised when the pixels change. 2: open_clip's own ``preprocess_val``."""
_PARTS = {"embed_dim", "vision_cfg", "text_cfg"}
_CHECKPOINTS = (".pt", ".pth", ".bin", ".safetensors")
_SCALES = (8, 4, 2)
"""A JPEG can be decoded at these fractions of its size, at much less cost."""
_MAX_ASPECT = 16
"""Longer strips are cropped first, because open_clip enlarges a whole strip before it crops."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """An architecture of open_clip, without weights.

    The name is open_clip's or that of its file; only a file can differ from open_clip's preprocessing.
    """

    name: str
    model: dict[str, Any]
    preprocessing: dict[str, Any]

    @property
    def digest(self) -> str:
        """Digest of the content."""
        return digest_value([self.model, self.preprocessing])


def read_architecture(named: str) -> Architecture:
    """Return an architecture by open_clip's name, or from a JSON file; open_clip itself is not imported.

    A file (``.json``) is like open_clip's ``model_configs/ViT-B-32.json``, or like ``open_clip_config.json`` on the
    Hub, which also names the preprocessing.

    Raises:
        ConfigError: if the extra is missing, there is no such name or file, or it holds no architecture.
    """
    package = importlib.util.find_spec("open_clip")
    if package is None or package.origin is None:
        raise ConfigError("encoder.model: open_clip is not installed; pip install 'synth[clip]', or leave encoder out")
    path = Path(named).expanduser()
    if path.suffix != ".json":
        folder = Path(package.origin).with_name("model_configs")
        # open_clip also takes the spelling ViT-B/32.
        path = folder / f"{named.replace('/', '-')}.json"
        if not path.is_file():
            raise ConfigError(f"encoder.model {named!r}: open_clip has no such architecture")
    try:
        found = json.loads(path.read_bytes())
        model, preprocessing = found.get("model_cfg", found), found.get("preprocess_cfg", {})
    except (OSError, ValueError, AttributeError) as error:
        raise ConfigError(f"encoder.model {path}: it cannot be read ({error})") from error
    if not set(model) >= _PARTS:
        raise ConfigError(f"encoder.model {path}: no open_clip architecture; it needs {', '.join(sorted(_PARTS))}")
    return Architecture(path.stem, model, preprocessing)


def find_checkpoint(pretrained: str) -> Path | None:
    """Return the path of a checkpoint file, or None for a tag of open_clip.

    Raises:
        ConfigError: if the name is empty, or a path without a file.
    """
    if not pretrained:
        raise ConfigError("encoder.pretrained is empty: name weights of open_clip's or a checkpoint file")
    path = Path(pretrained).expanduser()
    if path.is_file():
        return path.resolve()
    if path.suffix in _CHECKPOINTS or os.sep in pretrained:
        raise ConfigError(f"encoder.pretrained {pretrained}: there is no such file")
    return None


def _clean_tag(tag: str) -> str:
    return tag.lower().replace("-", "_")


def open_for_model(data: bytes, wanted: int) -> Image.Image:
    """Return a picture as displayed, a JPEG at a reduced scale whose shorter side is ``wanted`` pixels or more."""
    header = read_header(data)
    scales = _SCALES if header.extension == "jpg" else ()
    scale = next((scale for scale in scales if min(header.width, header.height) >= wanted * scale), 1)
    shown = open_pixels(data, -(-max(header.width, header.height) // scale) if scale > 1 else 0)
    most = _MAX_ASPECT * min(shown.size)
    left, top = max(0, shown.width - most) // 2, max(0, shown.height - most) // 2
    return shown.crop((left, top, shown.width - left, shown.height - top)) if left or top else shown


def _read_picture(picture: PictureFile, wanted: int) -> Image.Image:
    try:
        with picture.path.open("rb") as source:
            data = source.read(MAX_BYTES + 1)
    except OSError as error:
        raise Unavailable(f"picture {picture.path}: {error.strerror}; restore it and run again") from error
    if hashlib.sha256(data).hexdigest() != picture.sha256:
        raise RecordFailed("picture-changed", f"{picture.path.name}: other bytes than its sha256 {picture.sha256[:16]}")
    try:
        return open_for_model(data, wanted)
    except RecordFailed as error:
        raise RecordFailed(error.error, f"{picture.path.name}: {error.detail}") from error


class ClipModel:
    """A loaded model. Several threads may open pictures, one may encode.

    Raises:
        ConfigError: if there is no such tag, or the architecture cannot be built.
        CorruptInput: if the weights are damaged or of another architecture.
        Unavailable: if weights cannot be fetched.
    """

    def __init__(self, architecture: Architecture, pretrained: str, device: str) -> None:
        import torch
        from open_clip.transform import PreprocessCfg, image_transform_v2

        self._name = f"{architecture.name}/{Path(pretrained).name}"
        self._device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        self._model, self._tokenize = self._build(architecture, *_find_weights(architecture, pretrained))
        preprocessing = self._model.visual.preprocess_cfg
        try:
            wanted = PreprocessCfg(**preprocessing)
            self._preprocess = image_transform_v2(wanted, is_train=False)
        except (AssertionError, TypeError, ValueError) as error:
            said = f"encoder.model: open_clip does not know the preprocessing {preprocessing} ({error})"
            raise ConfigError(said) from error
        self._side = max(wanted.input_size[1:])

    def _build(
        self, architecture: Architecture, weights: Path, preprocessing: dict[str, Any]
    ) -> "tuple[torch.nn.Module, Callable[[list[str]], torch.Tensor]]":
        import open_clip

        with TemporaryDirectory(prefix="synth-clip-") as folder:
            # A unique name, because open_clip confuses files of one name.
            path = Path(folder) / f"{architecture.name}-{architecture.digest[:16]}.json"
            path.write_text(json.dumps(architecture.model))
            try:
                open_clip.add_model_config(path)
                model = open_clip.create_model(
                    path.stem,
                    pretrained=str(weights),
                    precision=PRECISION,
                    device=self._device,
                    force_preprocess_cfg=preprocessing,
                    require_pretrained=True,
                )
                return model.eval().requires_grad_(False), open_clip.get_tokenizer(path.stem)
            except ImportError as error:
                raise ConfigError(f"encoder {self._name}: needs another package ({error}); install it") from error
            except OSError as error:
                # open_clip fetches parts of some models, such as the tokenizer, by itself.
                raise Unavailable(f"encoder {self._name}: {_quote(error)}") from error
            except Exception as error:
                # torch and open_clip raise anything on damaged weights, from AttributeError to UnpicklingError.
                said = f"encoder {self._name}: {weights} holds no weights of this model ({_quote(error)})"
                raise CorruptInput(said) from error

    def open_picture(self, picture: PictureFile) -> "torch.Tensor":
        """Return a picture as normalised pixels, of shape (3, height, width).

        Raises:
            RecordFailed: if it cannot be decoded or its bytes do not fit its sha256.
            Unavailable: if its file is missing.
        """
        pixels: torch.Tensor = self._preprocess(_read_picture(picture, self._side))
        return pixels

    def encode_pictures(self, pixels: "Sequence[torch.Tensor]") -> Rows:
        """Return the embeddings of opened pictures.

        Raises:
            ConfigError: if the model's numbers overflow, or the device's memory does.
        """
        import torch

        return self._encode(self._model.encode_image, torch.stack(list(pixels)).to(self._device))

    def encode_texts(self, texts: Sequence[str]) -> Rows:
        """Return the embeddings of texts; errors as above."""
        return self._encode(self._model.encode_text, self._tokenize(list(texts)).to(self._device))

    def _encode(self, encode: "Callable[[torch.Tensor], torch.Tensor]", batch: "torch.Tensor") -> Rows:
        import torch

        try:
            with torch.inference_mode():
                rows: Rows = torch.nn.functional.normalize(encode(batch).float(), dim=-1).cpu().numpy()
        except torch.OutOfMemoryError as error:
            said = f"encoder {self._name}: not enough memory for {len(batch)} at once"
            raise ConfigError(said) from error
        if not np.isfinite(rows).all():
            raise ConfigError(f"encoder {self._name}: embeddings are not finite in {PRECISION}; use another model")
        return rows


def _find_weights(architecture: Architecture, pretrained: str) -> tuple[Path, dict[str, Any]]:
    """Return the file of weights, fetched if need be, and the preprocessing of their pictures."""
    import open_clip

    path = find_checkpoint(pretrained)
    if path is not None:
        return path, architecture.preprocessing
    facts = open_clip.get_pretrained_cfg(architecture.name, pretrained)
    if not facts:
        known = ", ".join(sorted(open_clip.list_pretrained_tags_by_model(architecture.name))[:8])
        raise ConfigError(
            f"encoder.pretrained {pretrained!r}: no file, and open_clip has of {architecture.name}: {known or 'none'}"
        )
    if bool(facts.get("quick_gelu")) != bool(architecture.model.get("quick_gelu")):
        raise ConfigError(f"encoder.model {architecture.name}: weights {pretrained!r} differ from it in -quickgelu")
    try:
        return Path(open_clip.download_pretrained(facts)), facts
    except (OSError, RuntimeError, http.client.HTTPException) as error:
        raise Unavailable(f"encoder.pretrained {pretrained!r}: cannot be fetched ({_quote(error)})") from error


def _quote(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip()}".splitlines()[0][:300]


class OpenClipEncoder:
    """A CLIP model of open_clip; model and torch are loaded when something is first encoded.

    Requests are encoded one after another, each in its own batches. The last digits of an embedding depend on its
    batch; :class:`CachedEncoder` keeps the first ones.

    Raises:
        ConfigError: if the extra is not installed, or the settings name no such architecture or file.
    """

    def __init__(self, model: str, pretrained: str, device: str = "", batch: int = BATCH) -> None:
        """Prepare an encoder on a device as torch names it; empty is a GPU where there is one."""
        find_checkpoint(pretrained)
        self._pretrained, self._device, self._batch = pretrained, device, batch
        self._architecture = read_architecture(model)
        self._worker = ThreadPoolExecutor(1, "encode")
        self._decoders = ThreadPoolExecutor(len(os.sched_getaffinity(0)), "decode")
        self._loading: Future[ClipModel] | None = None
        self._closed = False

    @property
    def name(self) -> str:
        """Architecture and weights, such as ``ViT-L-14-quickgelu/openai``."""
        return f"{self._architecture.name}/{Path(self._pretrained).name}"

    @cached_property
    def identity(self) -> str:
        """Architecture, weights, precision and preprocessing; neither device nor batch."""
        path = find_checkpoint(self._pretrained)
        try:
            tag = f"{self._architecture.name}:{_clean_tag(self._pretrained)}"
            weights = tag if path is None else digest_file(path)
        except OSError as error:
            raise ConfigError(f"encoder.pretrained {path}: {error.strerror}") from error
        digest = self._architecture.digest[:16]
        return f"open-clip@{VERSION}:{digest}:{weights}:{PRECISION}:preprocessing@{PREPROCESSING_VERSION}"

    async def encode_pictures(self, pictures: Sequence[PictureFile]) -> Rows:
        """Return one row of unit length a picture, of shape (n, d), in the order given.

        Raises:
            RecordFailed: for the first picture that cannot be decoded.
            ConfigError: if the model cannot be loaded or run as configured.
            Unavailable: if weights cannot be fetched, a picture's file is missing, or the encoder was closed.
        """
        return await self._run(lambda model: self._encode_pictures(model, pictures))

    async def encode_texts(self, texts: Sequence[str]) -> Rows:
        """Return one row of unit length a text, of shape (n, d), in the order given; errors as above."""
        return await self._run(
            lambda model: _join([self._encode(model.encode_texts, part) for part in self._cut(texts)])
        )

    def close(self) -> None:
        """End the threads; waiting and later requests get Unavailable."""
        self._closed = True
        self._worker.shutdown()
        self._decoders.shutdown()

    async def _run(self, encode: Callable[[ClipModel], Rows]) -> Rows:
        """Run a request in the worker thread; the first one loads the model, and all get the error of loading it."""
        self._check_open()
        if self._loading is None:
            self._loading = self._worker.submit(ClipModel, self._architecture, self._pretrained, self._device)
        loading = self._loading
        return await asyncio.wrap_future(self._worker.submit(lambda: encode(loading.result())))

    def _check_open(self) -> None:
        if self._closed:
            raise Unavailable(f"encoder {self.name}: it was closed")

    def _cut(self, items: Sequence[_T]) -> list[Sequence[_T]]:
        return [items[start : start + self._batch] for start in range(0, len(items), self._batch)]

    def _encode_pictures(self, model: ClipModel, pictures: Sequence[PictureFile]) -> Rows:
        """Encode batch after batch while the next one is decoded."""
        rows: list[Rows] = []
        opened, ahead = list[Future[Any]](), list[Future[Any]]()
        try:
            for batch in (*self._cut(pictures), ()):
                opened, ahead = ahead, [self._decoders.submit(model.open_picture, picture) for picture in batch]
                if opened:
                    rows.append(self._encode(model.encode_pictures, [future.result() for future in opened]))
        finally:
            for future in (*opened, *ahead):
                future.cancel()
        return _join(rows)

    def _encode(self, encode: Callable[[Sequence[_T]], Rows], batch: Sequence[_T]) -> Rows:
        self._check_open()
        return encode(batch)


def _join(rows: Sequence[Rows]) -> Rows:
    return np.concatenate(rows) if rows else np.empty((0, 0), dtype=np.float32)


FILE = "embeddings.db"
CHUNK = 512
"""Pictures or texts that are looked up, encoded and recorded together."""
BUSY_SECONDS = 30.0
_STORED = np.dtype("<f4")


class CachedEncoder:
    """An encoder that encodes nothing twice; the cache in ``folder`` holds embeddings of any number of encoders."""

    def __init__(self, encoder: ImageEncoder, folder: Path) -> None:
        self.encoder = encoder
        self.folder = folder
        self._connection: sqlite3.Connection | None = None
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    @property
    def name(self) -> str:
        """The encoder's."""
        return self.encoder.name

    @property
    def identity(self) -> str:
        """The encoder's."""
        return self.encoder.identity

    async def encode_pictures(self, pictures: Sequence[PictureFile]) -> Rows:
        """Return one row of unit length a picture, of shape (n, d), in the order given.

        Raises:
            Damaged: if the file of embeddings is damaged; others as the encoder.
        """
        keys = self._make_keys("picture", [picture.sha256 for picture in pictures])
        return await self._recall(keys, pictures, self.encoder.encode_pictures)

    async def encode_texts(self, texts: Sequence[str]) -> Rows:
        """Return one row of unit length a text, of shape (n, d), in the order given; errors as above."""
        return await self._recall(self._make_keys("text", texts), texts, self.encoder.encode_texts)

    def close(self) -> None:
        """Close the file of embeddings; the encoder stays open."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _make_keys(self, kind: str, contents: Sequence[str]) -> list[bytes]:
        start = hashlib.sha256(f"{kind}\0{self.identity}\0".encode())
        keys = []
        for content in contents:
            digest = start.copy()
            # A text may hold a lone surrogate.
            digest.update(content.encode("utf-8", "surrogatepass"))
            keys.append(digest.digest())
        return keys

    async def _recall(
        self, keys: Sequence[bytes], items: Sequence[_T], encode: Callable[[Sequence[_T]], Awaitable[Rows]]
    ) -> Rows:
        rows: dict[bytes, Rows] = {}
        wanted = dict(zip(keys, items, strict=True))
        for start in range(0, len(wanted), CHUNK):
            chunk = list(wanted)[start : start + CHUNK]
            found = self._guard(self._select, chunk)
            if len(found) < len(chunk):
                # One caller encodes at a time, and the next one finds its rows. A lock belongs to one event loop, and
                # each stage has its own.
                async with self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
                    found = self._guard(self._select, chunk)
                    missing = [key for key in chunk if key not in found]
                    if missing:
                        made = await encode([wanted[key] for key in missing])
                        found |= self._guard(self._insert, dict(zip(missing, made, strict=True)))
            rows |= found
        return np.stack([rows[key] for key in keys]) if keys else np.empty((0, 0), dtype=np.float32)

    def _guard(self, work: Callable[[_T], dict[bytes, Rows]], given: _T) -> dict[bytes, Rows]:
        try:
            return work(given)
        except sqlite3.OperationalError as error:
            raise Unavailable(f"embeddings {self.folder / FILE}: {error}; free space, then run again") from error
        except sqlite3.DatabaseError as error:
            self.close()
            raise Damaged(self.folder / FILE, f"is damaged ({error})") from error
        except OSError as error:
            raise explain_os_error(error, f"embeddings in {self.folder}") from error

    def _connect(self) -> sqlite3.Connection:
        if self._connection is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(self.folder / FILE, timeout=BUSY_SECONDS, isolation_level=None)
            # Survives kill -9; what a power cut loses is encoded again.
            self._connection.execute("PRAGMA synchronous=NORMAL")
            table = "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL)"
            self._connection.execute(table)
        return self._connection

    def _select(self, keys: Sequence[bytes]) -> dict[bytes, Rows]:
        query = f"SELECT key, vector FROM vectors WHERE key IN ({','.join('?' * len(keys))})"
        found = self._connect().execute(query, tuple(keys))
        return {key: np.frombuffer(vector, dtype=_STORED).astype(np.float32) for key, vector in found}

    def _insert(self, rows: Mapping[bytes, Rows]) -> dict[bytes, Rows]:
        """Record embeddings, all or none, and return the recorded ones: the first of a key stays."""
        connection = self._connect()
        connection.execute("BEGIN IMMEDIATE")
        with connection:
            packed = [(key, row.astype(_STORED).tobytes()) for key, row in rows.items()]
            connection.executemany("INSERT OR IGNORE INTO vectors (key, vector) VALUES (?, ?)", packed)
        return self._select(list(rows))
