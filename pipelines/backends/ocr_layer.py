"""OCR of drawn pictures, without an engine: what is written on them stands in the file (pipelines.textlayer)."""

from dataclasses import dataclass

from pipelines.backends.protocols import TextBlock
from pipelines.errors import RecordFailed
from pipelines.textlayer import read_layer

VERSION = 1


@dataclass(frozen=True, slots=True)
class LayerOcr:
    """Reads the text layer of pictures of the toy world, and refuses all others."""

    @property
    def name(self) -> str:
        """``layer``."""
        return "layer"

    @property
    def identity(self) -> str:
        """The layer's version."""
        return f"layer@{VERSION}"

    async def read_text(self, data: bytes, scale: float = 1.0) -> tuple[TextBlock, ...]:
        """Return what is written on a picture; the scale changes nothing.

        Raises:
            RecordFailed: ``no-text-layer`` if the file has none, as after any change of its pixels; ``text-layer`` if
                it cannot be read.
        """
        written = read_layer(data)
        if written is None:
            raise RecordFailed("no-text-layer", "only drawn pictures have one; name an OCR engine for photographs")
        return tuple(TextBlock(piece.text, "text", piece.box, 1.0) for piece in written if piece.text.strip())
