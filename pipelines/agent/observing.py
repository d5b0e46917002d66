"""What a call leads to: an observation, and the pictures it made."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pipelines.agent.transcript import neutralise_markup
from pipelines.pictures import PictureSource
from schemas.groundings import Picture
from schemas.rollouts import Observation, RolloutImage


class ImageStore(Protocol):
    """What the tools need of the workspace's image store."""

    def path(self, sha256: str, extension: str) -> Path:
        """Return where a picture lies."""

    def read(self, picture: Picture) -> bytes:
        """Return a picture's bytes.

        Raises:
            CorruptInput: if the file is missing or was changed.
        """

    def add_bytes(self, data: bytes, source: PictureSource) -> Picture:
        """Store a picture.

        Raises:
            RecordFailed: if the picture cannot be used.
        """


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a call led to: the observation, and the pictures it made."""

    observation: Observation
    images: tuple[RolloutImage, ...] = ()


def show_text(text: str) -> Outcome:
    """Return what a tool found, stripped of markup."""
    return Outcome(Observation(ok=True, error="", text=neutralise_markup(text), images=()))


def show_picture(made: RolloutImage, text: str) -> Outcome:
    """Return a picture that a tool made."""
    observation = Observation(ok=True, error="", text=neutralise_markup(text), images=(made.id,))
    return Outcome(observation, (made,))


def warn_of(warning: str, text: str) -> Outcome:
    """Return what a tool says that leaves the picture as it is: an answer with a warning's class and no new picture."""
    return Outcome(Observation(ok=True, error="", text=neutralise_markup(text), images=(), warning=warning))


def refuse_call(error: str, text: str) -> Outcome:
    """Return what is said of a call that cannot be made."""
    return Outcome(Observation(ok=False, error=error, text=neutralise_markup(text), images=()))


def credit_picture(picture: Picture) -> PictureSource:
    """Return the source of a picture made from another: it keeps file name, author and licence."""
    return PictureSource(
        file=picture.file,
        author=picture.author,
        licence=picture.licence,
        licence_url=picture.licence_url,
        source_url=picture.source_url,
    )
