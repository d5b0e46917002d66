"""Reading a picture with every engine at every scale: what one of them can read, a reader of the picture can, too."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipelines.backends.ocr_scaling import list_scales
from pipelines.backends.protocols import Ocr, TextBlock
from pipelines.errors import ConfigError
from pipelines.names import fold_name
from pipelines.pixels import open_pixels

SCALES = (1.0, 2.0)
_MIN_LETTERS = 3
"""Letters and digits of a block that counts as text: engines see a 1 or a dot in many a pole, cloud and lawn."""
_GRID = 1024
"""Cells across and down on which the text's share of a picture is counted."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What stands in a picture."""

    lines: tuple[str, ...]
    """Each line once, however its letters were written; in reading order of the first engine that read it."""
    area: float
    """Share of the picture that text covers, 0..1; single letters and signs are left out."""
    engines: tuple[str, ...]
    """Names of those that looked."""


@dataclass(frozen=True, slots=True)
class Reader:
    """Several engines as one. A reading is whole or there is none: what one engine failed on is not known to be empty.

    Attributes:
        engines: at least one; each reads the picture at every scale.
        scales: factors by which the picture is enlarged; those that a large one cannot be enlarged by are left out.

    Raises:
        ConfigError: if there is no engine or no scale, or an engine is named twice.
    """

    engines: tuple[Ocr, ...]
    scales: tuple[float, ...] = SCALES

    def __post_init__(self) -> None:
        names = [engine.name for engine in self.engines]
        if not names or not self.scales or len(set(names)) < len(names):
            raise ConfigError(f"OCR engines {names} at scales {list(self.scales)}; expected one or more, each once")

    @property
    def identity(self) -> str:
        """The engines' identities and the scales."""
        read = "+".join(engine.identity for engine in self.engines)
        return f"{read}@{','.join(f'{scale:g}' for scale in self.scales)}"

    async def read(self, data: bytes) -> Reading:
        """Return what all engines read at all scales.

        Args:
            data: a picture file's bytes.

        Raises:
            RecordFailed: if it is no picture, or one engine cannot read it.
            ServiceError: if one engine is away.
        """
        blocks: list[TextBlock] = []
        scales = list_scales(data, self.scales)
        for engine in self.engines:
            for scale in scales:
                blocks += await engine.read_text(data, scale)
        written = [block for block in blocks if sum(map(str.isalnum, block.text)) >= _MIN_LETTERS]
        area = measure_area(written, open_pixels(data).size) if written else 0.0
        return Reading(_list_lines(blocks), area, tuple(engine.name for engine in self.engines))


def measure_area(blocks: Sequence[TextBlock], size: tuple[int, int]) -> float:
    """Return the share of a picture under the union of the blocks' boxes, to a thousandth of its sides.

    Args:
        blocks: with boxes in pixels of the picture.
        size: width and height in pixels.
    """
    across, down = _GRID / size[0], _GRID / size[1]
    covered = np.zeros((_GRID, _GRID), dtype=np.bool_)
    for block in blocks:
        left, top, right, bottom = block.box
        rows = slice(max(0, round(top * down)), max(0, round(bottom * down)))
        covered[rows, max(0, round(left * across)) : max(0, round(right * across))] = True
    return float(covered.mean())


def _list_lines(blocks: Sequence[TextBlock]) -> tuple[str, ...]:
    lines: dict[str, str] = {}
    for block in blocks:
        for line in block.text.splitlines():
            if line.strip():
                lines.setdefault(fold_name(line), line.strip())
    return tuple(lines.values())
