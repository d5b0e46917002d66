"""EDSR through OpenCV (extra ``vision``): the published frozen TensorFlow graphs ``EDSR_x2.pb`` to ``EDSR_x4.pb``.

The network takes BGR pixels less the mean of its training pictures and gives back the same at its scale, as OpenCV's
own module dnn_superres feeds it. That module is not in the packages of OpenCV; its core runs the graph.
"""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.errors import ConfigError
from pipelines.ids import digest_file

VERSION = 1
MEAN = (103.1545782, 111.561547, 114.35629928)
"""Of the pictures of DIV2K; blue, green, red."""
SCALES = (2, 3, 4)
TILE = 128
"""Pixels of a side of what the network sees at once: EDSR needs 4 KiB a pixel and layer, and more behind each
enlargement, so memory is bounded by the tile and not by the picture."""
OVERLAP = 12
"""Pixels that a tile shares with its neighbour on each side, so that no seam shows."""
MAX_BYTES = 512 * 1024 * 1024
_NODE, _OP, _ATTRIBUTE, _KEY, _VALUE = 1, 2, 5, 1, 2
"""Field numbers of GraphDef.node, NodeDef.op, NodeDef.attr and of a map's entry."""


@dataclass(frozen=True)
class Edsr:
    """A network that enlarges pictures, read from a file of weights.

    Raises:
        ConfigError: if OpenCV is not installed, or the file is missing or no such network.
    """

    weights: Path
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Load the network and try it, so that a bad file is found before anything is made with it."""
        self.scale  # noqa: B018 - reads the file and runs the network once

    @cached_property
    def identity(self) -> str:
        """Architecture and digest of the weights, and OpenCV's version, which decides the arithmetic."""
        import cv2

        return f"edsr@{VERSION}:{digest_file(self.weights)[:16]}:opencv-{cv2.__version__}"

    @cached_property
    def scale(self) -> int:
        """Factor that the network enlarges by, as seen on a grey picture."""
        made = self._run(np.full((16, 16, 3), 128, dtype=np.uint8))
        scale = int(made.shape[0]) // 16
        if scale not in SCALES or made.shape != (16 * scale, 16 * scale, 3):
            raise ConfigError(f"{self.weights}: makes {made.shape} of (16, 16, 3); a factor of {SCALES} is allowed")
        return scale

    def enlarge(self, pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return RGB pixels of shape (h * scale, w * scale, 3) for such of shape (h, w, 3), tile by tile."""
        height, width, scale = pixels.shape[0], pixels.shape[1], self.scale
        made = np.empty((height * scale, width * scale, 3), dtype=np.uint8)
        for top in range(0, height, TILE):
            for left in range(0, width, TILE):
                bottom, right = min(top + TILE, height), min(left + TILE, width)
                above, before = max(0, top - OVERLAP), max(0, left - OVERLAP)
                tile = self._run(pixels[above : bottom + OVERLAP, before : right + OVERLAP])
                kept = tile[(top - above) * scale :, (left - before) * scale :]
                kept = kept[: (bottom - top) * scale, : (right - left) * scale]
                made[top * scale : bottom * scale, left * scale : right * scale] = kept
        return made

    @cached_property
    def _network(self) -> Any:  # noqa: ANN401 - OpenCV has no types
        try:
            import cv2
        except ImportError as error:
            raise ConfigError("super-resolution needs OpenCV: install the extra vision") from error
        try:
            return cv2.dnn.readNetFromTensorflow(np.frombuffer(self._read_graph(), dtype=np.uint8))
        except (cv2.error, ValueError) as error:
            raise ConfigError(f"{self.weights}: no frozen TensorFlow graph that OpenCV reads: {error}") from error

    def _read_graph(self) -> bytes:
        try:
            size = self.weights.stat().st_size
            if not 0 < size <= MAX_BYTES:
                raise ConfigError(f"{self.weights}: {size} bytes; weights have between 1 and {MAX_BYTES}")
            return name_block_sizes(self.weights.read_bytes())
        except OSError as error:
            raise ConfigError(f"{self.weights}: {error.strerror}; tools.edsr names the file of EDSR weights") from error

    def _run(self, pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
        network = self._network
        import cv2

        colours = pixels[:, :, ::-1].astype(np.float32) - np.array(MEAN, dtype=np.float32)
        blob = np.ascontiguousarray(colours.transpose(2, 0, 1)[None])
        with self._lock:
            try:
                network.setInput(blob)
                made = np.array(network.forward())
            except cv2.error as error:
                raise ConfigError(f"{self.weights}: OpenCV cannot run this network: {error}") from error
        if made.ndim != 4 or made.shape[0] != 1 or 3 not in (made.shape[1], made.shape[3]):
            raise ConfigError(f"{self.weights}: makes an array of shape {made.shape}; a picture of 3 colours is wanted")
        picture = made[0].transpose(1, 2, 0) if made.shape[1] == 3 else made[0]
        shown: NDArray[np.uint8] = np.clip(np.rint(picture + MEAN), 0, 255).astype(np.uint8)[:, :, ::-1]
        return shown


def name_block_sizes(graph: bytes) -> bytes:
    """Return a frozen graph in which OpenCV 5 finds the block size of ``DepthToSpace``.

    TensorFlow calls it ``block_size``; OpenCV 5 looks for ``blocksize``, as ONNX has it, and refuses the graph. Such
    nodes get it under both names.

    Raises:
        ValueError: if the bytes are no protocol buffer.
    """
    parts = []
    for number, whole, payload in _list_fields(graph):
        if number == _NODE and _read_first(payload, _OP) == b"DepthToSpace":
            named = [_rename(value) for key, _, value in _list_fields(payload) if key == _ATTRIBUTE]
            whole = _write_field(_NODE, payload + b"".join(named))
        parts.append(whole)
    return b"".join(parts)


def _rename(entry: bytes) -> bytes:
    if _read_first(entry, _KEY) != b"block_size":
        return b""
    return _write_field(_ATTRIBUTE, _write_field(_KEY, b"blocksize") + _write_field(_VALUE, _read_first(entry, _VALUE)))


def _read_first(message: bytes, wanted: int) -> bytes:
    return next((payload for number, _, payload in _list_fields(message) if number == wanted), b"")


def _list_fields(message: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield a message's fields: number, all of its bytes, and the payload of those that have a length."""
    place = 0
    while place < len(message):
        start = place
        tag, place = _read_number(message, place)
        kind, payload = tag & 7, b""
        if kind == 0:
            _, place = _read_number(message, place)
        elif kind in (1, 5):
            place += 8 if kind == 1 else 4
        elif kind == 2:
            length, place = _read_number(message, place)
            payload, place = message[place : place + length], place + length
        else:
            raise ValueError(f"wire type {kind} at byte {start}")
        if place > len(message):
            raise ValueError(f"the field at byte {start} ends {place - len(message)} bytes behind the file")
        yield tag >> 3, message[start:place], payload


def _read_number(message: bytes, place: int) -> tuple[int, int]:
    number = 0
    for count in range(10):
        if place >= len(message):
            raise ValueError(f"ends within a number at byte {place}")
        byte, place = message[place], place + 1
        number |= (byte & 127) << (7 * count)
        if byte < 128:
            return number, place
    raise ValueError(f"a number of over ten bytes ends at byte {place}")


def _write_field(number: int, payload: bytes) -> bytes:
    return _write_number(number << 3 | 2) + _write_number(len(payload)) + payload


def _write_number(number: int) -> bytes:
    written = bytearray()
    while number > 127:
        written.append(number & 127 | 128)
        number >>= 7
    return bytes([*written, number])
