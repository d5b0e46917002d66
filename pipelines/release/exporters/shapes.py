"""What an exporter is: it reads a release folder, fills an empty folder, and its rules read that folder back."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from schemas.releases import Dataset

CallForm = Literal["native", "text"]
DEFAULT_NAME = "synth"


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """How rows are written."""

    dialect: str = ""
    """Protocol to write the conversations in; empty leaves them as they are."""
    name: str = ""
    """What the dataset is called where a reader asks for a name; empty is ``synth``."""
    calls: CallForm = "native"
    """Tool calls as the reader's own kind of message, or as the text that the teacher wrote. A dialect whose calls are
    no JSON in tool_call tags is always written as text."""

    @property
    def title(self) -> str:
        """The dataset's name."""
        return self.name or DEFAULT_NAME


@dataclass(frozen=True, slots=True)
class Written:
    """What an exporter made of a release."""

    rows_in: int
    rows_out: int
    notes: tuple[str, ...] = ()
    """What the reader cannot be told, with counts, and how to read the folder."""


@dataclass(frozen=True, slots=True)
class ExportReport:
    """An export that was published."""

    to: str
    rows_in: int
    rows_out: int
    files: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Exporter:
    """One trainer's layout."""

    name: str
    dataset: Dataset
    """The dataset it is made from."""
    write: Callable[[Path, Path, ExportOptions], Written]
    """Release folder, empty folder to fill, options."""
    check: Callable[[Path], Iterable[str]]
    """Yields what its reader would drop, shift or fail on in a folder."""
