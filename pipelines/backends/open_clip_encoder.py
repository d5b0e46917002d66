"""open_clip as an encoder of pictures and texts; needs the extra ``clip``.

What concurrent callers ask for shares batches, see :mod:`pipelines.backends.encoding_engine`.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pipelines.backends import squaring
from pipelines.backends.encoding_engine import Asked, EncodingEngine, Rows
from pipelines.backends.open_clip_model import ClipModel
from pipelines.backends.open_clip_names import (
    Architecture,
    Precision,
    check_device,
    clean_tag,
    digest_weights,
    find_checkpoint,
    read_architecture,
)
from pipelines.backends.protocols import PictureFile

VERSION = 1


@dataclass(frozen=True, slots=True)
class OpenClipEncoder:
    """A CLIP model of open_clip's; loaded, and torch with it, when something is first encoded.

    The last digits of an embedding depend on the batch it was made in; who needs the very same numbers again keeps
    them, see :mod:`pipelines.backends.embeddings`.

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
            f"preprocessing@{squaring.VERSION}"
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
