"""The tools: what a call does, and its typed observation.

An unknown tool, bad arguments, an unknown picture or page is an observation with ``ok=False`` and an error class. A
service that is away is no observation: its ``ServiceError`` goes through and the rollout is tried again later.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pydantic import ValidationError

from pipelines.agent.cropping import cut_picture
from pipelines.agent.layout import Shown, render_hits, render_page
from pipelines.agent.toolspecs import (
    TOOL_SPECS,
    Arguments,
    CropArguments,
    ImageSearchArguments,
    TextSearchArguments,
    ToolSpec,
    VisitArguments,
    render_tools,
)
from pipelines.agent.transcript import neutralise_markup
from pipelines.backends.protocols import ImageSearch, PageNotFound, PageReader, PictureFile, TextSearch
from pipelines.errors import RecordFailed
from pipelines.ids import digest_value
from pipelines.pictures import PictureSource
from schemas.groundings import Picture
from schemas.rollouts import Observation, RolloutImage

VERSION = 1
"""Raised when a tool's behaviour changes, so that rollouts are made anew."""

IMAGE_HITS = 5


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


@dataclass(frozen=True, slots=True)
class ToolBox:
    """The tools over their backends.

    Attributes:
        snippet_limit: characters of a hit's snippet.
        page_limit: characters of a visited page.
    """

    text_search: TextSearch
    image_search: ImageSearch
    pages: PageReader
    store: ImageStore
    specs: tuple[ToolSpec, ...] = TOOL_SPECS
    snippet_limit: int = 600
    page_limit: int = 12_000

    @property
    def identity(self) -> str:
        """Digest of everything that decides an observation: backends, schemas, limits, behaviour."""
        backends = [self.text_search.identity, self.image_search.identity, self.pages.identity]
        return digest_value([VERSION, backends, self.describe(), self.snippet_limit, self.page_limit, IMAGE_HITS])

    def describe(self) -> str:
        """Return the tools' JSON schemas."""
        return render_tools(self.specs)

    async def call(self, name: str, arguments: str, images: Sequence[RolloutImage]) -> Outcome:
        """Make one call.

        Args:
            name: tool name, known or not.
            arguments: JSON object, valid for the tool or not.
            images: the rollout's pictures so far; a produced one takes the next number.

        Raises:
            ServiceError: if a backend is away.
        """
        spec = next((spec for spec in self.specs if spec.name == name), None)
        if spec is None:
            names = ", ".join(spec.name for spec in self.specs)
            return _refuse("unknown-tool", f"There is no tool {name!r}; there are: {names}.")
        try:
            parsed = spec.arguments.model_validate_json(arguments)
        except ValidationError as error:
            return _refuse("bad-arguments", f"{name}: {_explain(error)}")
        return await self._dispatch(parsed, images)

    async def _dispatch(self, arguments: Arguments, images: Sequence[RolloutImage]) -> Outcome:
        match arguments:
            case TextSearchArguments():
                return await self._search_text(arguments)
            case VisitArguments():
                return await self._visit(arguments)
            case ImageSearchArguments() | CropArguments():
                image = next((image for image in images if image.id == arguments.image), None)
                if image is None:
                    known = ", ".join(image.id for image in images)
                    return _refuse("unknown-image", f"There is no picture {arguments.image!r}; there are: {known}.")
                if isinstance(arguments, CropArguments):
                    return await self._crop(arguments, image, f"img_{len(images) + 1}")
                return await self._search_image(image)
        raise TypeError(f"no tool takes {type(arguments).__name__}")

    async def _search_text(self, arguments: TextSearchArguments) -> Outcome:
        hits = await self.text_search.search_text(arguments.query, arguments.top_k)
        shown = [Shown(hit.url, hit.title, hit.snippet) for hit in hits]
        return _show(render_hits(shown, self.snippet_limit) or "No page was found for these words.")

    async def _search_image(self, image: RolloutImage) -> Outcome:
        sha256 = image.picture.sha256
        picture = PictureFile(sha256, self.store.path(sha256, image.picture.extension))
        hits = await self.image_search.search_image(picture, IMAGE_HITS)
        shown = [Shown(hit.url, hit.title, hit.snippet) for hit in hits]
        return _show(render_hits(shown, self.snippet_limit) or f"No page shows a picture like {image.id}.")

    async def _visit(self, arguments: VisitArguments) -> Outcome:
        try:
            page = await self.pages.read_page(arguments.url)
        except PageNotFound:
            return _refuse(
                "unknown-page", f"There is no page at {arguments.url}; use an address that a search returned."
            )
        return _show(render_page(Shown(page.url, page.title, page.text), self.page_limit))

    async def _crop(self, arguments: CropArguments, image: RolloutImage, made_id: str) -> Outcome:
        picture = image.picture
        data = self.store.read(picture)
        try:
            part = await asyncio.to_thread(cut_picture, data, arguments.box)
            made = self.store.add_bytes(part, _credit(picture))
        except RecordFailed as error:
            return _refuse(error.error, f"{image.id} cannot be cut there: {error.detail}")
        box = ", ".join(f"{edge:g}" for edge in arguments.box)
        text = f"{made_id}: the part [{box}] of {image.id}, {made.width} x {made.height} pixels."
        return Outcome(
            Observation(ok=True, error="", text=text, images=(made_id,)), (RolloutImage(id=made_id, picture=made),)
        )


def _credit(picture: Picture) -> PictureSource:
    """A part of a picture keeps its author and licence."""
    return PictureSource(
        file=picture.file,
        author=picture.author,
        licence=picture.licence,
        licence_url=picture.licence_url,
        source_url=picture.source_url,
    )


def _show(text: str) -> Outcome:
    return Outcome(Observation(ok=True, error="", text=neutralise_markup(text), images=()))


def _refuse(error: str, text: str) -> Outcome:
    return Outcome(Observation(ok=False, error=error, text=neutralise_markup(text), images=()))


def _explain(error: ValidationError) -> str:
    return "; ".join(f"{'.'.join(map(str, part['loc'])) or 'arguments'}: {part['msg']}" for part in error.errors())
