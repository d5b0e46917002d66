"""Calls of transcripts, and searches by an RL question's picture, made again with tools that the corpus alone decides.

The manifest's settings say which tools a run had. What asked a live service, a model or an encoder cannot be made
again; it is counted, never passed over in silence.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType

import numpy as np

from pipelines.agent.contamination import Watched
from pipelines.agent.dialects import Dialect, find_dialect, list_specs
from pipelines.agent.observations import Thumbnails, ToolOutcome, credit_picture, keep_results
from pipelines.agent.picture_search import LocalImageSearch
from pipelines.agent.pictures import has_opencv
from pipelines.agent.tools import ToolBox, call_tool
from pipelines.agent.transcript import Turn
from pipelines.config.disclosure import read_sections
from pipelines.config.settings import ToolsConfig
from pipelines.corpus.search import LocalPages, LocalTextSearch
from pipelines.corpus.store import Corpus
from pipelines.errors import RecordFailed
from pipelines.ids import digest_value
from pipelines.pictures import PictureSource, PictureStore, open_pixels
from pipelines.release.manifest import ReleaseManifest
from pipelines.release.rows import EmbeddedImage
from pipelines.services.protocols import PictureFile, TextBlock
from schemas.datasets import Picture, RolloutImage, SearchResult

NOBODY = PictureSource("", "", "", "", "")
LOOK_ALIKE, BLOCK = 12.0, 16
"""Mean difference of two pictures' channels, of 255, up to which any square of so many pixels a side is one picture's,
saved by two versions of a library."""
_VISION = frozenset({"super_resolution", "perspective_correct"})
_PLAIN = frozenset({"crop", "sharpen"})
_BLOCKED = digest_value(list(ToolsConfig().blocked_hosts))
"""Digest of the hosts that are blocked unless a run says otherwise; what others a run blocked is not told."""


class _NoEngine:
    """Stands for the engine of a run, so that its tool is offered; calls of it are not made again."""

    name = identity = "none"

    async def read_text(self, data: bytes, scale: float = 1.0) -> tuple[TextBlock, ...]:
        """Read nothing."""
        raise RecordFailed("tool-failed", f"nothing reads {len(data)} bytes, enlarged by {scale:g}")


@dataclass(frozen=True, slots=True)
class Reach:
    """Which calls can be made again, as the settings of a run say.

    Attributes:
        tools: names of ours.
        visits: whether a visit with a goal is among them: a model may have summed its page up.
        searches: whether a search by picture is.
    """

    tools: frozenset[str] = frozenset()
    visits: bool = False
    searches: bool = False

    @classmethod
    def of(cls, manifest: ReleaseManifest, dialect: Dialect) -> "Reach":
        """Read the settings that a manifest tells; without them nothing can be made again."""
        told, untold = manifest.told, manifest.untold
        if told.get("tools.family") != "local":
            return cls()
        summarised = told.get("tools.summarise") is not False
        searches = told.get("image_search.method") == "hash" and told.get("commons.fetch") is False
        tools = {"visit", *_PLAIN, *(["image_search"] if searches else [])}
        tools |= set() if summarised and dialect.reads_pages(True) else {"text_search"}
        tools |= {"layout_parsing"} if told.get("tools.layout") == "" else set()
        tools |= {"perspective_correct"} if has_opencv() else set()
        if untold.get("tools.blocked_hosts") != _BLOCKED:
            tools, searches = tools - {"visit", "text_search", "image_search"}, False
        tools |= {"super_resolution"} if untold.get("tools.edsr") == digest_value("") else set()
        return cls(frozenset(tools), not summarised, searches)


@dataclass
class Replayer:
    """Makes calls again. A context; pictures lie in a folder of their own.

    Attributes:
        corpus: what the tools search.
        manifest: of the release.
        store: a picture store that is thrown away.
    """

    corpus: Corpus
    manifest: ReleaseManifest
    store: PictureStore
    skipped: Counter[str] = field(default_factory=Counter)
    """Calls that cannot be made again, by tool."""
    alike: int = 0
    """Pictures that look as they should and have other bytes."""
    calls: int = 0
    _runner: asyncio.Runner = field(default_factory=asyncio.Runner)
    _made: dict[str, ToolOutcome] = field(default_factory=dict)
    _boxes: dict[tuple[frozenset[str], str], ToolBox] = field(default_factory=dict)
    _search: LocalImageSearch = field(init=False)

    def __post_init__(self) -> None:
        """Open the search by picture."""
        self._search = LocalImageSearch(self.corpus, thumbnails=Thumbnails(self.store))

    def __enter__(self) -> "Replayer":
        """Begin."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the loop."""
        self._runner.close()

    def can_replay(self, turn: Turn, dialect: Dialect) -> bool:
        """Say whether the call of a turn is decided by corpus and pictures alone."""
        reach = self._find_reach(dialect)
        if turn.tool == "visit" and not reach.visits:
            return False
        known = {spec.name for spec in list_specs(opencv=True, layout=True)}
        return turn.tool in reach.tools or (bool(reach.tools) and turn.tool not in known)

    def replay(
        self, turn: Turn, dialect: Dialect, offered: frozenset[str], images: Sequence[RolloutImage]
    ) -> ToolOutcome:
        """Return the outcome of a call among a rollout's pictures so far.

        Args:
            turn: with a call that can be made again.
            dialect: of the transcript.
            offered: names of our tools that the transcript's schemas offer.
            images: the pictures so far, in the store.
        """
        shown = [image.picture.sha256 for image in images]
        pictures = shown if turn.tool in _VISION | _PLAIN | {"image_search", "layout_parsing"} else []
        key = digest_value([dialect.name, turn.tool, turn.arguments, sorted(offered), pictures])
        if key not in self._made:
            tools, about = self._open_tools(offered, dialect), Watched("")
            self._made[key] = self._runner.run(call_tool(tools, dialect, turn, images, about))
        self.calls += 1
        return self._made[key]

    def search(self, picture: Picture, count: int) -> tuple[SearchResult, ...] | None:
        """Return what a search by a stored picture finds; None where that cannot be made again."""
        if not self._find_reach(find_dialect("synth")).searches:
            return None
        file = PictureFile(picture.sha256, self.store.path(picture.sha256, picture.extension))
        try:
            return keep_results(self._runner.run(self._search.search_image(file, count))) if count else ()
        except RecordFailed:
            return ()

    def keep(self, image: EmbeddedImage, source: PictureSource = NOBODY) -> Picture:
        """Store a row's picture.

        Raises:
            RecordFailed: if it cannot be decoded.
        """
        return self.store.add_bytes(image.bytes, source)

    def judge(self, made: Picture, image: EmbeddedImage) -> Picture | None:
        """Return a row's picture with the credit of the one that was made again; None if it is another picture."""
        given = self.keep(image, credit_picture(made))
        if given.sha256 == made.sha256:
            return given
        alike = look_alike(self.store.read(made), image.bytes)
        self.alike += alike
        return given if alike else None

    def _find_reach(self, dialect: Dialect) -> Reach:
        return Reach.of(self.manifest, dialect)

    def _open_tools(self, offered: frozenset[str], dialect: Dialect) -> ToolBox:
        if (offered, dialect.name) not in self._boxes:
            settings = ToolsConfig.model_validate(read_sections(self.manifest.told).get("tools", {}), strict=False)
            self._boxes[offered, dialect.name] = ToolBox(
                text_search=LocalTextSearch(self.corpus),
                image_search=self._search,
                pages=LocalPages(self.corpus),
                store=self.store,
                settings=settings,
                ocr=_NoEngine() if "layout_parsing" in offered else None,
                opencv=bool(offered & _VISION),
                reads=dialect.reads_pages(summarised=False),
                snapshot=self.corpus.snapshot,
            )
        return self._boxes[offered, dialect.name]


def look_alike(made: bytes, given: bytes) -> bool:
    """Say whether two picture files show the same pixels, but for what another version of a codec changes."""
    one, other = (open_pixels(data).convert("RGB") for data in (made, given))
    if one.size != other.size:
        return False
    apart = np.abs(np.asarray(one, dtype=np.int16) - np.asarray(other, dtype=np.int16)).mean(axis=2)
    rows, columns = (np.arange(0, side, BLOCK) for side in apart.shape)
    sums = np.add.reduceat(np.add.reduceat(apart, rows, axis=0), columns, axis=1)
    sizes = np.outer(np.diff([*rows, apart.shape[0]]), np.diff([*columns, apart.shape[1]]))
    return float((sums / sizes).max()) <= LOOK_ALIKE
