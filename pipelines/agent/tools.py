"""The tools: what a call does, and its typed observation.

An unknown tool, bad arguments, an unknown picture or page is an observation with ``ok=False`` and a class of
:data:`pipelines.agent.observations.ERRORS`. A service that is away is no observation: its ``ServiceError`` goes through
and the rollout is tried again later.

The visual tools are those of OpenSearch-VL, appendix F.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from pydantic import ValidationError

from pipelines.agent.contamination import Watched, find_flags, identify_rules, is_blocked
from pipelines.agent.dialects import (
    FULL_BOX,
    Arguments,
    BoxUnit,
    CropArguments,
    Dialect,
    ImageSearchArguments,
    LayoutArguments,
    PerspectiveArguments,
    PictureArguments,
    SharpenArguments,
    SuperResolutionArguments,
    TextSearchArguments,
    ToolSpec,
    VisitArguments,
    list_specs,
    render_tools,
    translate_tools,
)
from pipelines.agent.observations import (
    LONGEST,
    LONGEST_DETAIL,
    LONGEST_URL,
    PASSAGE,
    Shown,
    Summariser,
    ToolOutcome,
    choose_passages,
    credit_picture,
    cut_match,
    cut_text,
    keep_result,
    keep_results,
    refuse_call,
    refuse_failed,
    render_blocks,
    render_hits,
    render_page,
    show_picture,
    show_results,
    show_text,
    warn_of,
)
from pipelines.agent.observations import PASSAGES_VERSION as PASSAGES
from pipelines.agent.observations import VERSION as RESULTS
from pipelines.agent.pictures import VERSION as ENHANCING
from pipelines.agent.pictures import Upscaler, correct_perspective, enlarge_picture, sharpen_picture
from pipelines.agent.transcript import Turn
from pipelines.config.settings import ToolsConfig
from pipelines.errors import RecordFailed
from pipelines.ids import digest_value
from pipelines.pictures import PictureStore, encode_picture, find_extension, open_pixels
from pipelines.services.addresses import ForbiddenAddress, read_address
from pipelines.services.protocols import (
    ImageHit,
    ImageSearch,
    Ocr,
    PageNotFound,
    PageReader,
    PageText,
    PictureFile,
    TextHit,
    TextSearch,
)
from schemas.datasets import Observation, Picture, RolloutImage

MIN_SIDE = 16


def place_box(box: Sequence[float], size: tuple[int, int], unit: BoxUnit = "normalised") -> tuple[int, int, int, int]:
    """Return a box in whole pixels of a picture of ``size`` (width, height); it may go beyond the picture."""
    across, down = (size[0] / FULL_BOX, size[1] / FULL_BOX) if unit == "normalised" else (1.0, 1.0)
    left, right = (round(edge * across) for edge in (box[0], box[2]))
    top, bottom = (round(edge * down) for edge in (box[1], box[3]))
    return left, top, right, bottom


def cut_picture(data: bytes, box: Sequence[float], unit: BoxUnit = "normalised") -> bytes:
    """Return the part of a picture inside a box as a file's bytes: JPEG for a JPEG, else PNG."""
    shown = open_pixels(data)
    width, height = shown.size
    left, top, right, bottom = place_box(box, shown.size, unit)
    if right > width or bottom > height:
        raise RecordFailed("crop-outside", f"the picture is {width} x {height} pixels")
    if min(right - left, bottom - top) < MIN_SIDE:
        part = f"{right - left} x {bottom - top}"
        raise RecordFailed("crop-too-small", f"the part is {part} pixels, each side needs {MIN_SIDE}")
    return encode_picture(shown.crop((left, top, right, bottom)), find_extension(data))


IMAGE_HITS = 5
LEAST_SHOWN = 28
"""Pixels of the shorter side of a thumbnail that is shown: models refuse a conversation for a sliver of a banner."""
NO_SUMMARY = "no-summary"
HitT = TypeVar("HitT", TextHit, ImageHit)


@dataclass(frozen=True, slots=True)
class Read:
    """The text shown for one page."""

    text: str
    source: str = ""
    """The whole page, where something else than its beginning is shown."""
    whole: bool = True
    """False if a summary was requested and is missing."""


def _mark(outcome: ToolOutcome, found: Sequence[TextHit | ImageHit], hosts: tuple[str, ...]) -> ToolOutcome:
    if not any(is_blocked(hit.url, hosts) for hit in found):
        return outcome
    return replace(outcome, observation=_flag_host(outcome.observation))


def _refuse_host(url: str) -> ToolOutcome:
    refused = refuse_call("blocked-host", f"Pages at {url} may not be read: their host publishes datasets.")
    return replace(refused, observation=_flag_host(refused.observation))


def _flag_host(observation: Observation) -> Observation:
    return observation.model_copy(update={"flags": ("dataset-host",)})


def _name_thumbnails(hits: Sequence[ImageHit], most: int, known: int) -> dict[str, str]:
    pictures = [hit.thumbnail for hit in hits if hit.thumbnail is not None]
    found = dict.fromkeys(each.sha256 for each in pictures if min(each.width, each.height) >= LEAST_SHOWN)
    return {sha256: f"img_{known + number}" for number, sha256 in enumerate(list(found)[:most], start=1)}


def _find_sha(hit: ImageHit) -> str:
    return "" if hit.thumbnail is None else hit.thumbnail.sha256


NO_WEIGHTS = "no-weights"
NO_QUADRILATERAL = "no-quadrilateral"


VERSION = 5
"""Raised when a tool's behaviour changes, so that rollouts are made again."""


@dataclass(frozen=True, slots=True)
class ToolBox:
    """The tools over their backends.

    Attributes:
        settings: the section ``[tools]``.
        ocr: engine behind layout_parsing; without one there is no such tool.
        upscaler: network behind super_resolution; without one it warns.
        opencv: whether OpenCV is installed; without it neither super_resolution nor perspective_correct is offered.
        snippet_limit: characters of a hit's snippet; twice as many where the query's words are spread.
        page_limit: characters of a visited page, or of the text in a picture.
        summariser: sums up pages that are searched for or visited; without one passages are shown.
        reads: whether a text search reads its best pages; else its hits show the passages that it found.
        snapshot: date of the corpus that is searched; empty for live tools.
        online: whether pages come from the web, so that an address outside the public web is refused as such.
    """

    text_search: TextSearch
    image_search: ImageSearch
    pages: PageReader
    store: PictureStore
    settings: ToolsConfig
    ocr: Ocr | None = None
    upscaler: Upscaler | None = None
    opencv: bool = False
    snippet_limit: int = 600
    page_limit: int = 12_000
    summariser: Summariser | None = None
    reads: bool = False
    snapshot: str = ""
    online: bool = False

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools that are offered."""
        return list_specs(self.opencv, self.ocr is not None)

    @property
    def identity(self) -> str:
        backends = [self.text_search.identity, self.image_search.identity, self.pages.identity]
        seeing = [
            ENHANCING,
            "" if self.ocr is None else self.ocr.identity,
            "" if self.upscaler is None else self.upscaler.identity,
        ]
        limits = [self.snippet_limit, self.page_limit, IMAGE_HITS, self.settings.thumbnails, self.online]
        reading = [
            PASSAGES,
            RESULTS,
            None if self.summariser is None else self.summariser.identity,
            self.settings.pages_read if self.reads else 0,
            identify_rules(self.settings.blocked_hosts),
        ]
        return digest_value([VERSION, backends, seeing, self.describe(), limits, reading])

    def describe(self) -> str:
        """Return the tools' JSON schemas."""
        return render_tools(self.specs)

    async def call(
        self, name: str, arguments: str, images: Sequence[RolloutImage], about: Watched | None = None
    ) -> ToolOutcome:
        """Make one call."""
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
        return ToolOutcome(_flag(outcome, about), outcome.images)

    async def _dispatch(self, arguments: Arguments, images: Sequence[RolloutImage]) -> ToolOutcome:
        match arguments:
            case TextSearchArguments():
                return await self._search_text(arguments)
            case VisitArguments():
                return await self._visit(arguments)
            case PictureArguments():
                return await self._look(arguments, images)
        raise TypeError(f"no tool takes {type(arguments).__name__}")

    async def _look(self, arguments: PictureArguments, images: Sequence[RolloutImage]) -> ToolOutcome:
        image = next((image for image in images if image.id == arguments.image), None)
        if image is None:
            known = ", ".join(image.id for image in images)
            return refuse_call("unknown-image", f"There is no picture {arguments.image!r}; there are: {known}.")
        if isinstance(arguments, ImageSearchArguments):
            return await self._search_image(arguments, image, len(images))
        return await self._edit(arguments, image, f"img_{len(images) + 1}")

    async def _search_text(self, arguments: TextSearchArguments) -> ToolOutcome:
        found = await self.text_search.search_text(arguments.query, arguments.top_k)
        hits = self._leave_out(found)
        reads = [Read(cut_match(hit.snippet, arguments.query, self.snippet_limit)) for hit in hits]
        if self.reads:
            best = zip(hits[: self.settings.pages_read], reads, strict=False)
            whole = await asyncio.gather(*(self._read_hit(hit, read, arguments.query) for hit, read in best))
            reads[: len(whole)] = whole
        shown = [Shown(hit.url, hit.title, read.text) for hit, read in zip(hits, reads, strict=True)]
        text = render_hits(shown, max(5 * self.snippet_limit, LONGEST)) or "No page was found for these words."
        warning = "" if all(read.whole for read in reads) else NO_SUMMARY
        outcome = show_results(text, keep_results(hits), (), warning)
        raw = "\n".join((text, *(read.source for read in reads)))
        return _mark(replace(outcome, raw=raw), found, self.settings.blocked_hosts)

    async def _read_hit(self, hit: TextHit, passage: Read, query: str) -> Read:
        try:
            page = await self.pages.read_page(hit.url)
        except (PageNotFound, ForbiddenAddress):
            return passage
        if is_blocked(page.url, self.settings.blocked_hosts):
            return passage
        if self.summariser is not None:
            summary = await self.summariser.summarise(query, page.title, page.text)
            if summary.whole:
                return Read(summary.text, page.text)
        text = await asyncio.to_thread(self._show_fitting, page.text, passage.text, query)
        return Read(text, page.text, whole=self.summariser is None)

    def _show_fitting(self, page: str, passage: str, query: str) -> str:
        if len(page) <= LONGEST:
            return page
        if passage.strip("…") in " ".join(page.split()):
            return passage
        return f"{passage} {choose_passages(page, query, 2 * (PASSAGE + 2))}"

    async def _search_image(self, arguments: ImageSearchArguments, image: RolloutImage, known: int) -> ToolOutcome:
        what, picture = image.id, image.picture
        if arguments.box:
            picture = await asyncio.to_thread(self._cut, arguments, image.picture)
            what = f"this part of {image.id}"
        file = PictureFile(picture.sha256, self.store.path(picture.sha256, picture.extension))
        found = await self.image_search.search_image(file, IMAGE_HITS)
        hits = self._leave_out(found)
        names = _name_thumbnails(hits, self.settings.thumbnails, known)
        results = tuple(keep_result(hit, names.get(_find_sha(hit), "")) for hit in hits)
        shown = [
            Shown(hit.url, hit.title, cut_text(" ".join(hit.snippet.split()), self.snippet_limit), result.image)
            for hit, result in zip(hits, results, strict=True)
        ]
        text = render_hits(shown, self.snippet_limit) or f"No page shows a picture like {what}."
        pictures = {hit.thumbnail.sha256: hit.thumbnail for hit in hits if hit.thumbnail is not None}
        images = tuple(RolloutImage(id=name, picture=pictures[sha256]) for sha256, name in names.items())
        return _mark(show_results(text, results, images), found, self.settings.blocked_hosts)

    def _cut(self, arguments: ImageSearchArguments, picture: Picture) -> Picture:
        data = cut_picture(self.store.read(picture), arguments.box, arguments.unit)
        return self.store.add_bytes(data, credit_picture(picture))

    async def _visit(self, arguments: VisitArguments) -> ToolOutcome:
        url = arguments.url
        try:
            if self.online:
                read_address(url)
            if is_blocked(url, self.settings.blocked_hosts):
                return _refuse_host(url)
            page = await self.pages.read_page(url)
        except PageNotFound:
            return refuse_call(
                "unknown-page", f"No page can be read at {url}; use another address that a search returned."
            )
        except ForbiddenAddress as error:
            # Of the address itself, of one that it redirects to, or of what its name resolves to.
            return refuse_call("forbidden-address", cut_text(f"{error}.", LONGEST_DETAIL))
        if is_blocked(page.url, self.settings.blocked_hosts):
            return _refuse_host(page.url)
        read = await self._read_page(page, arguments.goal, self.page_limit)
        text = render_page(Shown(page.url, page.title, read.text), self.page_limit)
        outcome = show_text(text, "" if read.whole else NO_SUMMARY)
        return replace(outcome, raw=f"{text}\n{read.source}")

    async def _read_page(self, page: PageText, goal: str, limit: int) -> Read:
        if self.summariser is None or not goal.strip():
            return Read(choose_passages(page.text, goal, limit))
        summary = await self.summariser.summarise(goal, page.title, page.text, limit)
        return Read(summary.text, page.text, summary.whole)

    def _leave_out(self, hits: Sequence[HitT]) -> tuple[HitT, ...]:
        hosts = self.settings.blocked_hosts
        return tuple(hit for hit in hits if len(hit.url) <= LONGEST_URL and not is_blocked(hit.url, hosts))

    async def _edit(self, arguments: PictureArguments, image: RolloutImage, made_id: str) -> ToolOutcome:
        data = await asyncio.to_thread(self.store.read, image.picture)
        try:
            match arguments:
                case LayoutArguments():
                    return await self._read_picture(image, data)
                case CropArguments():
                    return await self._crop(arguments, image, made_id, data)
                case SharpenArguments():
                    made = await asyncio.to_thread(sharpen_picture, data, arguments.amount)
                    return await self._show(made, image, made_id, f"{image.id}, sharpened by {arguments.amount:g}")
                case SuperResolutionArguments():
                    return await self._enlarge(arguments, image, made_id, data)
                case PerspectiveArguments():
                    return await self._straighten(image, made_id, data)
        except RecordFailed as error:
            return refuse_failed(error, f"This cannot be done with {image.id}")
        raise TypeError(f"no tool takes {type(arguments).__name__}")

    async def _read_picture(self, image: RolloutImage, data: bytes) -> ToolOutcome:
        if self.ocr is None:
            raise TypeError("layout_parsing is offered only where an engine reads")
        blocks = await self.ocr.read_text(data)
        size = (image.picture.width, image.picture.height)
        return show_text(render_blocks(blocks, size, self.page_limit) or f"No text can be read in {image.id}.")

    async def _crop(self, arguments: CropArguments, image: RolloutImage, made_id: str, data: bytes) -> ToolOutcome:
        part = await asyncio.to_thread(cut_picture, data, arguments.box, arguments.unit)
        box = ", ".join(f"{edge:g}" for edge in arguments.box)
        unit = " in pixels" if arguments.unit == "pixels" else ""
        return await self._show(part, image, made_id, f"the part [{box}]{unit} of {image.id}")

    async def _enlarge(
        self, arguments: SuperResolutionArguments, image: RolloutImage, made_id: str, data: bytes
    ) -> ToolOutcome:
        if self.upscaler is None:
            return warn_of(NO_WEIGHTS, f"The network's weights are not at hand; {image.id} stays as it is.")
        enlarge = partial(enlarge_picture, upscaler=self.upscaler, scale=arguments.scale)
        made = await asyncio.to_thread(enlarge, data)
        return await self._show(made, image, made_id, f"{image.id}, enlarged {arguments.scale} times")

    async def _straighten(self, image: RolloutImage, made_id: str, data: bytes) -> ToolOutcome:
        made = await asyncio.to_thread(correct_perspective, data)
        if made is None:
            text = f"No area with four clear sides was found in {image.id}; it stays as it is."
            return warn_of(NO_QUADRILATERAL, text)
        return await self._show(made, image, made_id, f"the largest four-sided area of {image.id}, seen straight on")

    async def _show(self, data: bytes, image: RolloutImage, made_id: str, what: str) -> ToolOutcome:
        # Beside the loop: what is stored is decoded and flushed to disk first.
        made = await asyncio.to_thread(self.store.add_bytes, data, credit_picture(image.picture))
        text = f"{made_id}: {what}, {made.width} x {made.height} pixels."
        return show_picture(RolloutImage(id=made_id, picture=made), text)


def _flag(outcome: ToolOutcome, about: Watched | None) -> Observation:
    observation = outcome.observation
    found = find_flags(outcome.raw, about) if outcome.raw else ()
    return observation.model_copy(update={"flags": tuple(sorted({*observation.flags, *found}))})


def _explain(error: ValidationError) -> str:
    return "; ".join(f"{'.'.join(map(str, part['loc'])) or 'arguments'}: {part['msg']}" for part in error.errors())


async def call_tool(
    tools: ToolBox, dialect: Dialect, turn: Turn, images: Sequence[RolloutImage], about: Watched
) -> ToolOutcome:
    """Make the call of a turn."""
    if dialect.forms is None:
        return await tools.call(turn.tool, turn.arguments, images, about)
    functions = [each["function"] for each in json.loads(translate_tools(tools.describe(), dialect))]
    parameters = {function["name"]: function["parameters"] for function in functions}
    name = dialect.name_tool(turn.tool)
    if name not in parameters:
        return refuse_call("unknown-tool", f"There is no tool {name!r}; there are: {', '.join(parameters)}.")
    outcome = await tools.call(turn.tool, turn.arguments, images, about)
    if outcome.observation.error != "bad-arguments":
        return outcome
    return refuse_call("bad-arguments", f"{name} takes {json.dumps(parameters[name], ensure_ascii=False)}.")
