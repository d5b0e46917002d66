"""EDSR through OpenCV (extra ``vision``): the published frozen TensorFlow graphs ``EDSR_x2.pb`` to ``EDSR_x4.pb``.

The network takes and returns BGR pixels minus the mean of its training pictures, as OpenCV's dnn_superres, which the
packages of OpenCV lack; its core runs the graph.
"""

import threading
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.errors import ConfigError
from pipelines.ids import digest_file

VERSION = 1
MEAN = (103.1545782, 111.561547, 114.35629928)
"""Mean of DIV2K; blue, green, red."""
SCALES = (2, 3, 4)
TILE = 128
"""Side in pixels of a tile, which bounds memory: EDSR needs 4 KiB a pixel and layer, and more after enlarging."""
OVERLAP = 12
"""Pixels that neighbouring tiles share, against seams."""
MAX_BYTES = 512 * 1024 * 1024
_BLOCK_SIZE = b"\n\x0ablock_size", b"\n\x89\x00blocksize"
"""A protocol buffer's map key (tag, length, name) as TensorFlow writes it, and as OpenCV 5 expects, of one length."""


class Edsr:
    """A network that enlarges pictures, read from a file of weights and tried on a grey picture.

    Attributes:
        identity: architecture, digest of the weights, and OpenCV's version, which decides the arithmetic.
        scale: factor of the enlargement.

    Raises:
        ConfigError: if OpenCV is not installed, or the file is missing or no such network.
    """

    def __init__(self, weights: Path) -> None:
        try:
            import cv2
        except ImportError as error:
            raise ConfigError("super-resolution needs OpenCV: install the extra vision") from error
        self._weights = weights
        self._lock = threading.Lock()
        try:
            size = weights.stat().st_size
            if not 0 < size <= MAX_BYTES:
                raise ConfigError(f"{weights}: {size} bytes; weights have between 1 and {MAX_BYTES}")
            graph = weights.read_bytes().replace(*_BLOCK_SIZE)
            self._network: Any = cv2.dnn.readNetFromTensorflow(np.frombuffer(graph, dtype=np.uint8))
        except OSError as error:
            raise ConfigError(f"{weights}: {error.strerror}; tools.edsr names the file of EDSR weights") from error
        except cv2.error as error:
            raise ConfigError(f"{weights}: not a frozen TensorFlow graph that OpenCV reads: {error}") from error
        self.identity = f"edsr@{VERSION}:{digest_file(weights)[:16]}:opencv-{cv2.__version__}"
        made = self._run(np.full((16, 16, 3), 128, dtype=np.uint8))
        self.scale = int(made.shape[0]) // 16
        if self.scale not in SCALES or made.shape != (16 * self.scale, 16 * self.scale, 3):
            raise ConfigError(f"{weights}: makes {made.shape} of (16, 16, 3); a factor of {SCALES} is allowed")

    def enlarge(self, pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return RGB pixels of shape (h * scale, w * scale, 3) for pixels of shape (h, w, 3), tile by tile."""
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

    def _run(self, pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
        import cv2

        colours = pixels[:, :, ::-1].astype(np.float32) - np.array(MEAN, dtype=np.float32)
        blob = np.ascontiguousarray(colours.transpose(2, 0, 1)[None])
        with self._lock:
            try:
                self._network.setInput(blob)
                made = np.array(self._network.forward())
            except cv2.error as error:
                raise ConfigError(f"{self._weights}: OpenCV cannot run this network: {error}") from error
        if made.ndim != 4 or made.shape[0] != 1 or 3 not in (made.shape[1], made.shape[3]):
            raise ConfigError(
                f"{self._weights}: makes an array of shape {made.shape}; a picture of 3 colours is wanted"
            )
        picture = made[0].transpose(1, 2, 0) if made.shape[1] == 3 else made[0]
        shown: NDArray[np.uint8] = np.clip(np.rint(picture + MEAN), 0, 255).astype(np.uint8)[:, :, ::-1]
        return shown
