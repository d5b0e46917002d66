"""What a call leads to: an observation, and the pictures it made."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from pipelines.agent.layout import cut_text
from pipelines.agent.results import clean_text
from pipelines.errors import RecordFailed
from pipelines.pictures import PictureSource
from schemas.groundings import Picture
from schemas.rollouts import Observation, RolloutImage
from schemas.searches import SearchResult

LONGEST_DETAIL = 300
"""Characters of a failure that a model is told."""


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


ERRORS: Mapping[str, str] = MappingProxyType(
    {
        "unknown-tool": "there is no tool of this name",
        "bad-arguments": "the arguments do not fit the tool's schema",
        "bad-turn": "the turn could not be read as one; no tool was called",
        "unknown-image": "the rollout has no picture of this name",
        "unknown-page": "there is no page at this address, or none that can be read",
        "blocked-host": "the address leads to a host that publishes datasets",
        "forbidden-address": "the address is none of the public web: its scheme, host or port may not be reached",
        "crop-outside": "the box goes beyond the picture",
        "crop-too-small": "a side of the part is too short",
        "picture-missing": "the picture's file cannot be read",
        "picture-format": "the picture is of no format that can be read",
        "picture-too-large": "the picture has too many pixels or bytes",
        "picture-undecodable": "the picture's file is broken",
        "picture-too-small": "the picture has too few pixels for this tool",
        "picture-refused": "the service does not take this picture",
        "search-refused": "the service does not take this query",
        "no-text-layer": "only drawn pictures can be read here",
        "ocr-timeout": "reading the picture took too long",
        "ocr-failed": "the engine failed on this picture",
        "ocr-refused": "the engine does not take this picture",
        "tool-failed": "the tool failed on this call for another reason",
    }
)
"""Every class of a call that failed, and what it means. An observation's ``error`` is one of them, or empty."""
WARNINGS: Mapping[str, str] = MappingProxyType(
    {
        "no-weights": "nothing was enlarged: the network's weights are not at hand",
        "no-quadrilateral": "nothing was straightened: no four-sided area was found",
        "no-summary": "a page could not be summed up: the passages that fit best are shown",
    }
)
"""Every class of a call that was answered, but not as it was meant."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a call led to."""

    observation: Observation
    images: tuple[RolloutImage, ...] = ()
    """The pictures that are new to the rollout."""
    raw: str = ""
    """What came from outside, before markup was stripped, beyond what is shown if more was looked at."""


def show_text(text: str, warning: str = "") -> Outcome:
    """Return what a tool found, stripped of markup."""
    return Outcome(Observation(ok=True, error="", text=clean_text(text), images=(), warning=warning), raw=text)


def show_results(
    text: str, results: tuple[SearchResult, ...], images: tuple[RolloutImage, ...] = (), warning: str = ""
) -> Outcome:
    """Return what a search found, with the thumbnails that are shown."""
    observation = Observation(
        ok=True,
        error="",
        text=clean_text(text),
        images=tuple(image.id for image in images),
        warning=warning,
        results=results,
    )
    return Outcome(observation, images, text)


def show_picture(made: RolloutImage, text: str) -> Outcome:
    """Return a picture that a tool made."""
    observation = Observation(ok=True, error="", text=clean_text(text), images=(made.id,))
    return Outcome(observation, (made,))


def warn_of(warning: str, text: str) -> Outcome:
    """Return what a tool says that leaves the picture as it is: an answer with a warning's class and no new picture."""
    return Outcome(Observation(ok=True, error="", text=clean_text(text), images=(), warning=warning))


def refuse_call(error: str, text: str) -> Outcome:
    """Return what is said of a call that cannot be made.

    Args:
        error: one of :data:`ERRORS`.
        text: for the model.
    """
    if error not in ERRORS:
        raise ValueError(f"error class {error!r}; there are: {', '.join(ERRORS)}")
    return Outcome(Observation(ok=False, error=error, text=clean_text(text), images=()))


def refuse_failed(error: RecordFailed, what: str) -> Outcome:
    """Return what is said of a call on which a tool failed, under the failure's class if it is one of ours."""
    known = error.error in ERRORS
    detail = error.detail if known else f"{error.error}: {error.detail}"
    return refuse_call(error.error if known else "tool-failed", f"{what}: {cut_text(detail, LONGEST_DETAIL)}")


def credit_picture(picture: Picture) -> PictureSource:
    """Return the source of a picture made from another: it keeps file name, author and licence."""
    return PictureSource(
        file=picture.file,
        author=picture.author,
        licence=picture.licence,
        licence_url=picture.licence_url,
        source_url=picture.source_url,
    )
