"""Enhancements: a share of the questions get a picture that is of use only after a tool of the agent was called.

OpenSearch-VL, section 3.2, degrades 10% without a test. Here each degraded picture is tested: the degradation must do
harm and the tool must undo it, else the question keeps its picture as it was and says why. SenseNova-MARS, section 3.4,
asks about small parts of pictures of high resolution: there the tool is ``crop`` (:mod:`pipelines.agent.scenes`).
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar

from pipelines.agent.observations import VERSION as RESULTS
from pipelines.agent.observations import ImageStore, credit_picture, keep_results
from pipelines.agent.pictures import DEGRADING_VERSION as DEGRADING
from pipelines.agent.pictures import REPAIRING_VERSION as REPAIRING
from pipelines.agent.pictures import Reader, RepairLoop, RepairTool, find_gauge
from pipelines.agent.scenes import SceneMaker
from pipelines.config.settings import EnhancementsConfig
from pipelines.errors import RecordFailed
from pipelines.graph.proofs import make_question_id
from pipelines.ids import digest_value, draw_unit
from pipelines.services.prompting import RoleClient
from pipelines.services.protocols import ImageSearch, PictureFile
from schemas.base import Record
from schemas.datasets import Degradation, Difficulty, Enhancement, Picture, Scene, SearchResult, Trial
from schemas.manifest import ModelEntry

UNTESTED = "untested: neither words nor a search by picture tell what the original shows"
UNHARMED, UNREPAIRED = "unharmed", "unrepaired"
"""Why a picture is left as it is: no strength made it useless, or none that did could be put right."""


@dataclass(frozen=True)
class Enhancements:
    """The stage: measured questions in, the same out; a share has its picture degraded, if that can be put right.

    Difficulty was measured with the original picture. Each row keeps the results of a search by its own picture, for
    trainers that replay it.
    """

    pictures: ImageStore
    search: ImageSearch
    reader: Reader | None
    """Without a reader, a search by picture is the only test."""
    repairs: Mapping[Degradation, RepairTool]
    """Installed tools; a degradation without its tool is not used."""
    settings: EnhancementsConfig
    seed: int
    results: int = 5
    """Search results that a row keeps; 0 makes no search."""
    scenes: SceneMaker | None = None
    """Sets pictures in scenes of high resolution; a question that it chooses is not degraded."""
    name: str = "enhancements"
    version: int = 5
    input: ClassVar[type[Record]] = Difficulty
    output: ClassVar[type[Record]] = Enhancement

    def fingerprint(self) -> str:
        """Digest of the rules, the degradations, the tools that repair and what tests them."""
        kept = [self.results, RESULTS, self.search.identity] if self.results else []
        kept += [self.scenes.identity] if self.scenes is not None else []
        if not self._degrades:
            return digest_value([kept])
        tools = {degradation: tool.identity for degradation, tool in self.repairs.items()}
        reader = "" if self.reader is None else self.reader.identity
        rules = [self.settings.share, self._degradations, self.settings.strengths, self.seed]
        return digest_value([kept, *rules, DEGRADING, REPAIRING, tools, self.search.identity, reader])

    @property
    def _degradations(self) -> list[Degradation]:
        return [each for each in self.settings.degradations if each in self.repairs]

    @property
    def _degrades(self) -> bool:
        return bool(self.settings.share and self._degradations and self.settings.strengths)

    def prompts(self) -> dict[str, str]:
        """That of the model that says where something lies, where there is one."""
        locator = self._locator
        return {} if locator is None else {locator.prompt.label: locator.prompt.digest}

    def models(self) -> tuple[ModelEntry, ...]:
        """That model."""
        locator = self._locator
        return () if locator is None else (locator.describe("image_judge"),)

    @property
    def _locator(self) -> RoleClient | None:
        return None if self.scenes is None else self.scenes.locator

    async def __call__(self, record: Difficulty) -> Sequence[Enhancement]:
        """Degrade the picture of a chosen question, and search by the picture.

        Raises:
            RecordFailed: if the picture cannot be decoded.
            CorruptInput: if the image store's file was changed.
            ServiceError: if a reader or search is unavailable.
        """
        picture = record.picture
        if picture is not None and self.scenes is not None and self.scenes.is_chosen(record):
            made = await self.scenes.compose(record, picture)
            if isinstance(made, str):
                return (await self._leave(record, made),)
            if isinstance(made, Scene):
                return (Enhancement(**dict(record), scene=made, found=await self._look_up(picture)),)
            return (await self._replace(record, picture, made.data, scene=made.scene),)
        if (
            picture is None
            or not self._degrades
            or draw_unit(self.seed, record.record_id, "enhance") >= self.settings.share
        ):
            return (await self._leave(record),)
        degradation = self._degradations[self._draw(record, "degradation", len(self._degradations))]
        data = await asyncio.to_thread(self.pictures.read, picture)
        with TemporaryDirectory(prefix="synth-repair-") as folder:
            title = record.proof.nodes[0].title if record.proof.nodes else ""
            gauge = await find_gauge(data, self.reader, self.search, title, Path(folder))
            if gauge is None:
                return (await self._leave(record, UNTESTED),)
            loop = RepairLoop(data, gauge, degradation, self.repairs[degradation], (self.seed, record.record_id))
            strengths = sorted(self.settings.strengths)
            tried = await loop.find_strength(strengths[self._draw(record, "strength", len(strengths)) :])
        if not tried[-1].holds:
            found = UNHARMED if all(each.trial.degraded for each in tried) else UNREPAIRED
            return (await self._leave(record, f"{found}: {'; '.join(each.describe() for each in tried)}"),)
        return (await self._replace(record, picture, tried[-1].data, trial=tried[-1].trial),)

    def _draw(self, record: Difficulty, what: str, count: int) -> int:
        return int(draw_unit(self.seed, record.record_id, what) * count)

    async def _replace(self, record: Difficulty, picture: Picture, data: bytes, **how: Trial | Scene) -> Enhancement:
        """Return the question with another picture: another question, whose parent is the one before."""
        made = await asyncio.to_thread(self.pictures.add_bytes, data, credit_picture(picture))
        changes = {
            "record_id": make_question_id(record.text, made.sha256, record.answer, record.proof),
            "parent_id": record.record_id,
            "picture": made,
            "original": picture,
            "found": await self._look_up(made),
            **how,
        }
        return Enhancement(**(dict(record) | changes))

    async def _leave(self, record: Difficulty, why: str = "") -> Enhancement:
        """Return the question as it is; ``why`` its picture could not be changed, empty where it was not chosen."""
        return Enhancement(**dict(record), left_whole=why, found=await self._look_up(record.picture))

    async def _look_up(self, picture: Picture | None) -> tuple[SearchResult, ...]:
        """Return what a search by the picture finds: nothing where it refuses the picture, which costs no question."""
        if picture is None or not self.results:
            return ()
        file = PictureFile(picture.sha256, self.pictures.path(picture.sha256, picture.extension))
        try:
            return keep_results(await self.search.search_image(file, self.results))
        except RecordFailed:
            return ()
