"""The tools: what a call does, and its typed observation.

An unknown tool, bad arguments, an unknown picture or page is an observation with ``ok=False`` and a class of
:data:`pipelines.agent.observing.ERRORS`. A service that is away is no observation: its ``ServiceError`` goes through
and the rollout is tried again later.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from pipelines.agent.contamination import Watched, find_flags, identify_rules
from pipelines.agent.enhancing import VERSION as ENHANCING
from pipelines.agent.enhancing import Upscaler
from pipelines.agent.observing import ImageStore, Outcome, refuse_call, refuse_failed
from pipelines.agent.passages import VERSION as PASSAGES
from pipelines.agent.results import VERSION as RESULTS
from pipelines.agent.search_tools import IMAGE_HITS, SearchTools
from pipelines.agent.summarising import Summariser
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
from pipelines.backends.protocols import ImageSearch, Ocr, PageReader, TextSearch
from pipelines.errors import RecordFailed
from pipelines.ids import digest_value
from schemas.rollouts import Observation, RolloutImage

VERSION = 4
"""Raised when a tool's behaviour changes, so that rollouts are made anew."""


@dataclass(frozen=True, slots=True)
class ToolBox:
    """The tools over their backends.

    Attributes:
        ocr: engine behind layout_parsing; without one there is no such tool.
        upscaler: network behind super_resolution; without one it warns.
        opencv: whether OpenCV is installed; without it neither super_resolution nor perspective_correct is offered.
        snippet_limit: characters of a hit's snippet.
        page_limit: characters of a visited page, or of the text in a picture.
        summariser: sums up pages that are searched for or visited; without one passages are shown.
        pages_read: best pages of a text search that are read to sum them up.
        thumbnails: pictures of an image search's results that are shown, each with a name of its own.
        blocked_hosts: hosts, with their subdomains, that publish datasets: never visited, left out of results.
        snapshot: date of the corpus that is searched; empty for live tools.
        online: whether pages come from the web, so that an address outside the public web is refused as such.
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
    summariser: Summariser | None = None
    pages_read: int = 3
    thumbnails: int = 0
    blocked_hosts: tuple[str, ...] = ()
    snapshot: str = ""
    online: bool = False

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
        limits = [self.snippet_limit, self.page_limit, IMAGE_HITS, self.thumbnails, self.online]
        reading = [
            PASSAGES,
            RESULTS,
            None if self.summariser is None else [self.summariser.identity, self.pages_read],
            identify_rules(self.blocked_hosts),
        ]
        return digest_value([VERSION, backends, seeing, self.describe(), limits, reading])

    @property
    def _searching(self) -> SearchTools:
        return SearchTools(
            text_search=self.text_search,
            image_search=self.image_search,
            pages=self.pages,
            store=self.store,
            summariser=self.summariser,
            blocked_hosts=self.blocked_hosts,
            snippet_limit=self.snippet_limit,
            page_limit=self.page_limit,
            pages_read=self.pages_read,
            thumbnails=self.thumbnails,
            online=self.online,
        )

    def describe(self) -> str:
        """Return the tools' JSON schemas."""
        return render_tools(self.specs)

    async def call(
        self, name: str, arguments: str, images: Sequence[RolloutImage], about: Watched | None = None
    ) -> Outcome:
        """Make one call.

        Args:
            name: tool name, known or not.
            arguments: JSON object, valid for the tool or not.
            images: the rollout's pictures so far; a produced one takes the next number.
            about: what contaminates an observation that holds it; where it is not known, only its protocol's tags do.

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
        try:
            outcome = await self._dispatch(parsed, images)
        except RecordFailed as error:
            return refuse_failed(error, f"{name} failed")
        return Outcome(_flag(outcome, about), outcome.images)

    async def _dispatch(self, arguments: Arguments, images: Sequence[RolloutImage]) -> Outcome:
        search = self._searching
        match arguments:
            case TextSearchArguments():
                return await search.search_text(arguments)
            case VisitArguments():
                return await search.visit(arguments)
            case PictureArguments():
                return await self._look(arguments, images)
        raise TypeError(f"no tool takes {type(arguments).__name__}")

    async def _look(self, arguments: PictureArguments, images: Sequence[RolloutImage]) -> Outcome:
        image = next((image for image in images if image.id == arguments.image), None)
        if image is None:
            known = ", ".join(image.id for image in images)
            return refuse_call("unknown-image", f"There is no picture {arguments.image!r}; there are: {known}.")
        if isinstance(arguments, ImageSearchArguments):
            return await self._searching.search_image(arguments, image, len(images))
        return await VisualTools(self.store, self.ocr, self.upscaler, self.page_limit).call(arguments, images)


def _flag(outcome: Outcome, about: Watched | None) -> Observation:
    observation = outcome.observation
    found = find_flags(outcome.raw, about) if outcome.raw else ()
    return observation.model_copy(update={"flags": tuple(sorted({*observation.flags, *found}))})


def _explain(error: ValidationError) -> str:
    return "; ".join(f"{'.'.join(map(str, part['loc'])) or 'arguments'}: {part['msg']}" for part in error.errors())
