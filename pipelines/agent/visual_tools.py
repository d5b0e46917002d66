"""The tools that look at a picture and make another of it, or read it (OpenSearch-VL, appendix F)."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from pipelines.agent.cropping import cut_picture
from pipelines.agent.enhancing import Upscaler, correct_perspective, enlarge_picture, sharpen_picture
from pipelines.agent.layout import render_blocks
from pipelines.agent.observing import (
    ImageStore,
    Outcome,
    credit_picture,
    refuse_failed,
    show_picture,
    show_text,
    warn_of,
)
from pipelines.agent.toolspecs import (
    CropArguments,
    LayoutArguments,
    PerspectiveArguments,
    PictureArguments,
    SharpenArguments,
    SuperResolutionArguments,
)
from pipelines.backends.protocols import Ocr
from pipelines.errors import RecordFailed
from schemas.rollouts import RolloutImage

NO_WEIGHTS = "no-weights"
NO_QUADRILATERAL = "no-quadrilateral"


@dataclass(frozen=True, slots=True)
class VisualTools:
    """The visual tools over the image store and what reads and enlarges.

    Attributes:
        text_limit: characters of the text read in a picture.
    """

    store: ImageStore
    ocr: Ocr | None
    upscaler: Upscaler | None
    text_limit: int

    async def call(self, arguments: PictureArguments, images: Sequence[RolloutImage]) -> Outcome:
        """Make one call on one of the rollout's pictures; a produced one takes the next number.

        Raises:
            ServiceError: if the engine that reads is away.
        """
        image = next(image for image in images if image.id == arguments.image)
        made_id = f"img_{len(images) + 1}"
        data = await asyncio.to_thread(self.store.read, image.picture)
        try:
            match arguments:
                case LayoutArguments():
                    return await self._read(image, data)
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

    async def _read(self, image: RolloutImage, data: bytes) -> Outcome:
        if self.ocr is None:
            raise TypeError("layout_parsing is offered only where an engine reads")
        blocks = await self.ocr.read_text(data)
        size = (image.picture.width, image.picture.height)
        return show_text(render_blocks(blocks, size, self.text_limit) or f"No text can be read in {image.id}.")

    async def _crop(self, arguments: CropArguments, image: RolloutImage, made_id: str, data: bytes) -> Outcome:
        part = await asyncio.to_thread(cut_picture, data, arguments.box, arguments.unit)
        box = ", ".join(f"{edge:g}" for edge in arguments.box)
        unit = " in pixels" if arguments.unit == "pixels" else ""
        return await self._show(part, image, made_id, f"the part [{box}]{unit} of {image.id}")

    async def _enlarge(
        self, arguments: SuperResolutionArguments, image: RolloutImage, made_id: str, data: bytes
    ) -> Outcome:
        if self.upscaler is None:
            return warn_of(NO_WEIGHTS, f"The network's weights are not at hand; {image.id} stays as it is.")
        enlarge = partial(enlarge_picture, upscaler=self.upscaler, scale=arguments.scale)
        made = await asyncio.to_thread(enlarge, data)
        return await self._show(made, image, made_id, f"{image.id}, enlarged {arguments.scale} times")

    async def _straighten(self, image: RolloutImage, made_id: str, data: bytes) -> Outcome:
        made = await asyncio.to_thread(correct_perspective, data)
        if made is None:
            text = f"No area with four clear sides was found in {image.id}; it stays as it is."
            return warn_of(NO_QUADRILATERAL, text)
        return await self._show(made, image, made_id, f"the largest four-sided area of {image.id}, seen straight on")

    async def _show(self, data: bytes, image: RolloutImage, made_id: str, what: str) -> Outcome:
        # Beside the loop: what is stored is decoded and flushed to disk first.
        made = await asyncio.to_thread(self.store.add_bytes, data, credit_picture(image.picture))
        text = f"{made_id}: {what}, {made.width} x {made.height} pixels."
        return show_picture(RolloutImage(id=made_id, picture=made), text)
