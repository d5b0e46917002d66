"""The tools: what a call does, and its typed observation.

An unknown tool, bad arguments, an unknown picture or page is an observation with ``ok=False`` and an error class. A
service that is away is no observation: its ``ServiceError`` goes through and the rollout is tried again later.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from pipelines.agent.enhancing import VERSION as ENHANCING
from pipelines.agent.enhancing import Upscaler
from pipelines.agent.layout import Shown, render_hits, render_page
from pipelines.agent.observing import ImageStore, Outcome, refuse_call, show_text
from pipelines.agent.toolspecs import (
    Arguments,
    ImageSearchArguments,
    PictureArguments,
    TextSearchArguments,
    ToolSpec,
    VisitArguments,
    list_specs,
    render_tools,
)
from pipelines.agent.visual_tools import VisualTools
from pipelines.backends.protocols import ImageSearch, Ocr, PageNotFound, PageReader, PictureFile, TextSearch
from pipelines.ids import digest_value
from schemas.rollouts import RolloutImage

VERSION = 2
"""Raised when a tool's behaviour changes, so that rollouts are made anew."""

IMAGE_HITS = 5


@dataclass(frozen=True, slots=True)
class ToolBox:
    """The tools over their backends.

    Attributes:
        ocr: engine behind layout_parsing; without one there is no such tool.
        upscaler: network behind super_resolution; without one it warns.
        opencv: whether OpenCV is installed; without it neither super_resolution nor perspective_correct is offered.
        snippet_limit: characters of a hit's snippet.
        page_limit: characters of a visited page, or of the text in a picture.
    """

    text_search: TextSearch
    image_search: ImageSearch
    pages: PageReader
    store: ImageStore
    ocr: Ocr | None = None
    upscaler: Upscaler | None = None
    opencv: bool = False
    snippet_limit: int = 600
    page_limit: int = 12_000

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools that are offered."""
        return list_specs(self.opencv, self.ocr is not None)

    @property
    def identity(self) -> str:
        """Digest of everything that decides an observation: backends, schemas, limits, behaviour."""
        backends = [self.text_search.identity, self.image_search.identity, self.pages.identity]
        seeing = [
            ENHANCING,
            "" if self.ocr is None else self.ocr.identity,
            "" if self.upscaler is None else self.upscaler.identity,
        ]
        limits = [self.snippet_limit, self.page_limit, IMAGE_HITS]
        return digest_value([VERSION, backends, seeing, self.describe(), limits])

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
            return refuse_call("unknown-tool", f"There is no tool {name!r}; there are: {names}.")
        try:
            parsed = spec.arguments.model_validate_json(arguments)
        except ValidationError as error:
            return refuse_call("bad-arguments", f"{name}: {_explain(error)}")
        return await self._dispatch(parsed, images)

    async def _dispatch(self, arguments: Arguments, images: Sequence[RolloutImage]) -> Outcome:
        match arguments:
            case TextSearchArguments():
                return await self._search_text(arguments)
            case VisitArguments():
                return await self._visit(arguments)
            case PictureArguments():
                return await self._look(arguments, images)
        raise TypeError(f"no tool takes {type(arguments).__name__}")

    async def _look(self, arguments: PictureArguments, images: Sequence[RolloutImage]) -> Outcome:
        image = next((image for image in images if image.id == arguments.image), None)
        if image is None:
            known = ", ".join(image.id for image in images)
            return refuse_call("unknown-image", f"There is no picture {arguments.image!r}; there are: {known}.")
        if isinstance(arguments, ImageSearchArguments):
            return await self._search_image(image)
        return await VisualTools(self.store, self.ocr, self.upscaler, self.page_limit).call(arguments, images)

    async def _search_text(self, arguments: TextSearchArguments) -> Outcome:
        hits = await self.text_search.search_text(arguments.query, arguments.top_k)
        shown = [Shown(hit.url, hit.title, hit.snippet) for hit in hits]
        return show_text(render_hits(shown, self.snippet_limit) or "No page was found for these words.")

    async def _search_image(self, image: RolloutImage) -> Outcome:
        sha256 = image.picture.sha256
        picture = PictureFile(sha256, self.store.path(sha256, image.picture.extension))
        hits = await self.image_search.search_image(picture, IMAGE_HITS)
        shown = [Shown(hit.url, hit.title, hit.snippet) for hit in hits]
        return show_text(render_hits(shown, self.snippet_limit) or f"No page shows a picture like {image.id}.")

    async def _visit(self, arguments: VisitArguments) -> Outcome:
        try:
            page = await self.pages.read_page(arguments.url)
        except PageNotFound:
            return refuse_call(
                "unknown-page", f"There is no page at {arguments.url}; use an address that a search returned."
            )
        return show_text(render_page(Shown(page.url, page.title, page.text), self.page_limit))


def _explain(error: ValidationError) -> str:
    return "; ".join(f"{'.'.join(map(str, part['loc'])) or 'arguments'}: {part['msg']}" for part in error.errors())
