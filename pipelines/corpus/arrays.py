"""Arrays on disk, mapped into memory."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.errors import ConfigError

_HEADER_BYTES = 128
"""Size of the header that numpy writes before an array of one or two dimensions."""


def map_array(path: Path) -> NDArray[Any]:
    """Map an array into memory: opened at once, shared by all processes.

    Raises:
        ConfigError: there is no such file, it is no array of numpy's, or it is shorter than it says.
    """
    try:
        # An empty array cannot be mapped.
        array: NDArray[Any] = np.load(path, mmap_mode="r" if path.stat().st_size > _HEADER_BYTES else None)
    except FileNotFoundError as error:
        raise ConfigError(f"no {path.name} in {path.parent}; the corpus is incomplete: build it anew") from error
    except (ValueError, EOFError) as error:
        raise ConfigError(f"{path} is no whole array ({error}); the corpus is damaged: build it anew") from error
    # Without numpy's subclass for maps, whose every look-up makes a new object.
    return np.asarray(array)
