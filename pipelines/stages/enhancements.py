"""Enhancements: how the pictures of some questions could be degraded so that a tool of the agent can repair them.

OpenSearch-VL, section 3.2, degrades 10% without a test. Here each way is tested: the degradation must do harm and the
tool must undo it. Which of the ways is taken, and for which questions, the stage ``selections`` says: it sees what a
release may keep. SenseNova-MARS, section 3.4, asks about small parts of pictures of high resolution: there the tool is
``crop`` (:mod:`pipelines.agent.scenes`).
"""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar

from pipelines.agent.observations import VERSION as RESULTS
from pipelines.agent.observations import credit_picture, keep_results
from pipelines.agent.pictures import DEGRADING_VERSION as DEGRADING
from pipelines.agent.pictures import (
    FINE,
    KEPT_RESULTS,
    Gauge,
    Reader,
    RepairLoop,
    RepairTool,
    Tried,
    find_gauge,
    make_detail_gauge,
)
from pipelines.agent.pictures import REPAIRING_VERSION as REPAIRING
from pipelines.agent.scenes import SceneMaker
from pipelines.config.settings import EnhancementsConfig
from pipelines.errors import RecordFailed
from pipelines.graph.proofs import make_question_id
from pipelines.ids import digest_value, draw_unit
from pipelines.pictures import PictureStore, find_extension
from pipelines.services.prompting import Prompted
from pipelines.services.protocols import ImageSearch, PictureFile
from schemas.base import Record
from schemas.datasets import Degradation, Difficulty, Enhancement, Offer, Picture, Scene, SearchResult
from schemas.manifest import ModelEntry

TRIED = 3.0
"""Pictures tried for each one that is to be degraded: not every one can be repaired."""
STRENGTHS = (0.25, 0.5, 0.75, 1.0)
"""Tried from the one drawn upwards, until the picture is of no use any more; what is then beyond repair is tried again
at strengths between. The paper names no strengths."""
UNTESTED = "untested: neither words nor a search by picture tell what the original shows"
UNHARMED, UNREPAIRED = "unharmed", "unrepaired"
"""Why a picture is left as it is: no strength made it useless, or none that did could be put right."""


@dataclass(frozen=True)
class Enhancements(Prompted):
    """The stage: measured questions in, the same out; for some, the ways to degrade their picture and repair it.

    Difficulty was measured with the original picture. Each row keeps the results of a search by its own picture, for
    trainers that replay it.
    """

    pictures: PictureStore
    search: ImageSearch
    reader: Reader | None
    """Without a reader, a search by picture is the only test."""
    repairs: Mapping[Degradation, RepairTool]
    """Installed tools; a degradation without its tool is not used."""
    settings: EnhancementsConfig
    seed: int
    scenes: SceneMaker | None = None
    """Sets pictures in scenes of high resolution; a question that it chooses is not degraded."""
    name: str = "enhancements"
    version: int = 7
    input: ClassVar[type[Record]] = Difficulty
    output: ClassVar[type[Record]] = Enhancement

    def fingerprint(self) -> str:
        kept = [KEPT_RESULTS, RESULTS, self.search.identity]
        kept += [self.scenes.identity] if self.scenes is not None else []
        if not self._degrades:
            return digest_value([kept])
        tools = {degradation: tool.identity for degradation, tool in self.repairs.items()}
        reader = "" if self.reader is None else self.reader.identity
        rules = [self._share, self._degradations, STRENGTHS, self.seed]
        return digest_value([kept, *rules, DEGRADING, REPAIRING, tools, self.search.identity, reader])

    @property
    def _degradations(self) -> list[Degradation]:
        return [each for each in self.settings.degradations if each in self.repairs]

    @property
    def _share(self) -> float:
        return min(1.0, self.settings.share * TRIED)

    @property
    def _degrades(self) -> bool:
        return bool(self._share and self._degradations)

    def models(self) -> tuple[ModelEntry, ...]:
        locator = self.scenes and self.scenes.locator
        return (locator.describe("judge"),) if locator else ()

    async def __call__(self, record: Difficulty) -> Sequence[Enhancement]:
        picture = record.picture
        if picture is not None and self.scenes is not None and self.scenes.is_chosen(record):
            made = await self.scenes.compose(record, picture)
            if isinstance(made, str):
                return (await self._keep(record, made),)
            if isinstance(made, Scene):
                return ((await self._keep(record)).model_copy(update={"scene": made}),)
            return (await self._set_in_scene(record, picture, made.data, made.scene),)
        if picture is None or not self._degrades or draw_unit(self.seed, record.record_id, "enhance") >= self._share:
            return (await self._keep(record),)
        data = await asyncio.to_thread(self.pictures.read, picture)
        with TemporaryDirectory(prefix="synth-repair-") as folder:
            title = record.shown_title
            gauge = await find_gauge(data, self.reader, self.search, title, Path(folder))
            courses = [await self._try(record, data, gauge, each) for each in self._degradations]
            held = [course[-1] for course in courses if course and course[-1].holds]
            offers = [Offer(trial=each.trial, found=await self._search(each.data, Path(folder))) for each in held]
        lost = [each for course in courses if not (course and course[-1].holds) for each in course]
        found = UNHARMED if all(each.trial.degraded for each in lost) else UNREPAIRED
        why = f"{found}: {'; '.join(each.describe() for each in lost)}" if lost else "" if held else UNTESTED
        return (await self._keep(record, why, tuple(offers)),)

    async def _try(self, record: Difficulty, data: bytes, gauge: Gauge | None, degradation: Degradation) -> list[Tried]:
        gauges = [gauge] if gauge else []
        if degradation in FINE and (gauge is None or gauge.test == "image-search"):
            gauges.append(make_detail_gauge(data))
        drawn = STRENGTHS[int(draw_unit(self.seed, record.record_id, "strength", degradation) * len(STRENGTHS)) :]
        tried: list[Tried] = []
        for each in gauges:
            loop = RepairLoop(data, each, degradation, self.repairs[degradation], (self.seed, record.record_id))
            # What the strongest does not harm, none does.
            strongest = [await loop.try_strength(drawn[-1])]
            tried += strongest if strongest[0].trial.degraded else await loop.find_strength(drawn)
            if not tried[-1].trial.degraded:
                break
        return tried

    async def _search(self, data: bytes, folder: Path) -> tuple[SearchResult, ...]:
        sha256 = hashlib.sha256(data).hexdigest()
        path = folder / f"{sha256}.{find_extension(data)}"
        await asyncio.to_thread(path.write_bytes, data)
        return await self._look_up(PictureFile(sha256, path))

    async def _set_in_scene(self, record: Difficulty, picture: Picture, data: bytes, scene: Scene) -> Enhancement:
        made = await asyncio.to_thread(self.pictures.add_bytes, data, credit_picture(picture))
        changes = {
            "record_id": make_question_id(record.text, made.sha256, record.answer, record.proof),
            "parent_id": record.record_id,
            "picture": made,
            "original": picture,
            "scene": scene,
        }
        file = PictureFile(made.sha256, self.pictures.path(made.sha256, made.extension))
        return Enhancement(**(dict(record) | changes), found=await self._look_up(file))

    async def _keep(self, record: Difficulty, why: str = "", offers: tuple[Offer, ...] = ()) -> Enhancement:
        picture = record.picture
        file = picture and PictureFile(picture.sha256, self.pictures.path(picture.sha256, picture.extension))
        found = await self._look_up(file) if file else ()
        return Enhancement(**dict(record), left_whole=why, offers=offers, found=found)

    async def _look_up(self, file: PictureFile) -> tuple[SearchResult, ...]:
        try:
            return keep_results(await self.search.search_image(file, KEPT_RESULTS))
        except RecordFailed:
            return ()
