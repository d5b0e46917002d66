"""What a run sees pictures with: candidates, rankers, encoder, OCR engines and searches by picture, each built once."""

from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from threading import Lock, RLock
from typing import TYPE_CHECKING

from pipelines.adapters import make_file_fetch, make_file_search, make_image_metadata
from pipelines.agent.candidates import CandidateLister
from pipelines.agent.choosing import PictureChooser, PictureRules
from pipelines.agent.depicting import ClipRanker, ClipRules, MetadataRanker, Ranker
from pipelines.agent.enhancing import Upscaler, has_opencv, make_repairs
from pipelines.agent.reading import Reader
from pipelines.agent.results import Thumbnails
from pipelines.backends.embeddings import CachedEncoder
from pipelines.backends.local_images import LocalImageSearch
from pipelines.backends.ocr_layer import LayerOcr
from pipelines.backends.protocols import ImageSearch, Ocr
from pipelines.backends.recorded import RecordedImageSearch
from pipelines.backends.recorded_ocr import RecordedOcr
from pipelines.checks.depiction import DepictionRules
from pipelines.config import RunConfig
from pipelines.corpus.store import Corpus
from pipelines.roles import Roles
from pipelines.settings import EncoderConfig, OcrConfig, OcrEngine, ToolsConfig
from pipelines.stages.enhancements import EnhancementRules, Enhancements
from pipelines.workspace import Workspace

if TYPE_CHECKING:
    from pipelines.backends.open_clip_encoder import OpenClipEncoder

NEAR_BITS = 4.0
"""Bits of two perceptual hashes in which one picture, scaled or saved again, differs from itself."""
NEAR_COSINE = 0.05
"""The same for 1 - cosine of two embeddings."""


def has_clip() -> bool:
    """Say whether the extra `clip` is installed, without importing it."""
    return find_spec("open_clip") is not None and find_spec("torch") is not None


def picks_clip(config: RunConfig) -> bool:
    """Say whether pictures are ranked by an encoder: where that is asked for, or there are weights and the extra."""
    ranker = config.groundings.ranker
    return ranker == "clip" or (ranker == "auto" and bool(config.encoder.pretrained) and has_clip())


@dataclass(slots=True)
class _Lent:
    """An encoder and how many use it."""

    model: "OpenClipEncoder"
    cached: CachedEncoder
    users: int = 0


# The threads of a flow have a Seeing each; a model and its cache are too large to have several of in a process.
_lent: dict[tuple[EncoderConfig, Path, str], _Lent] = {}
_lending = Lock()


def _borrow_encoder(config: EncoderConfig, folder: Path) -> CachedEncoder:
    """Return the process's one encoder of a configuration, whose embeddings are kept in a folder."""
    from pipelines.backends.open_clip_encoder import OpenClipEncoder  # most runs need neither it nor its cache

    model = OpenClipEncoder(**config.model_dump())
    # A checkpoint that was written anew under its old name is another model.
    key = (config, folder, model.identity)
    with _lending:
        lent = _lent.setdefault(key, _Lent(model, CachedEncoder(model, folder)))
        lent.users += 1
        return lent.cached


def _return_encoder(encoder: CachedEncoder) -> None:
    with _lending:
        key, lent = next((key, lent) for key, lent in _lent.items() if lent.cached is encoder)
        lent.users -= 1
        if lent.users:
            return
        del _lent[key]
    lent.cached.close()
    lent.model.close()


@dataclass
class Seeing:
    """The eyes of one run."""

    config: RunConfig
    workspace: Workspace
    corpus: Corpus
    roles: Roles
    _engines: dict[OcrEngine, Ocr] = field(default_factory=dict)
    _lock: RLock = field(default_factory=RLock, repr=False, compare=False)

    @cached_property
    def encoder(self) -> CachedEncoder:
        """The model that says which picture fits which description; what it said is kept in the workspace.

        Raises:
            ConfigError: if there are no weights, or the extra is not installed.
        """
        return _borrow_encoder(self.config.encoder, self.workspace.derived / "embeddings")

    @cached_property
    def copies(self) -> LocalImageSearch:
        """The corpus's pictures by perceptual hash."""
        return LocalImageSearch(self.corpus)

    @cached_property
    def image_search(self) -> ImageSearch:
        """The corpus's image search, recorded."""
        return self._make_search(None)

    @cached_property
    def shown_search(self) -> ImageSearch:
        """The same, with a thumbnail of what each page shows: for those who look at the results."""
        return self._make_search(Thumbnails(self.roles.pictures))

    def _make_search(self, thumbnails: Thumbnails | None) -> ImageSearch:
        search: ImageSearch = LocalImageSearch(self.corpus, thumbnails=thumbnails)
        if self._searches_by_likeness:
            from pipelines.backends.clip_images import ClipImageSearch

            folder = self.workspace.derived / "image-indexes"
            search = ClipImageSearch(self.corpus, self.encoder, folder, thumbnails=thumbnails)
        return RecordedImageSearch(search, self.roles.replies, self.roles.count_renewals("image_search"))

    @cached_property
    def reader(self) -> Reader | None:
        """The OCR engines that look for readable names, together; None where none is configured."""
        engines = self.config.groundings.ocr
        return Reader(tuple(self.find_engine(name) for name in dict.fromkeys(engines))) if engines else None

    @cached_property
    def layout(self) -> Ocr | None:
        """The engine behind the agent's layout_parsing."""
        name = self.config.tools.layout
        return self.find_engine(name) if name else None

    @cached_property
    def upscaler(self) -> Upscaler | None:
        """The network behind the agent's super_resolution."""
        return make_upscaler(self.config.tools)

    @cached_property
    def ranker(self) -> Ranker:
        """What orders the candidates of an anchor."""
        if not picks_clip(self.config):
            return MetadataRanker(self.corpus)
        groundings = self.config.groundings
        rules = ClipRules(groundings.threshold, groundings.distractors, self.config.seed)
        return ClipRanker(self.corpus, self.encoder, rules)

    @property
    def _searches_by_likeness(self) -> bool:
        return self.config.image_search.method == "clip"

    def find_engine(self, name: OcrEngine) -> Ocr:
        """Return an OCR engine, recorded unless it costs nothing.

        Raises:
            ConfigError: if it is not installed.
        """
        with self._lock:
            if name not in self._engines:
                engine = make_engine(name, self.config.ocr)
                if name != "layer":
                    engine = RecordedOcr(engine, self.roles.replies, self.roles.count_renewals("ocr"))
                self._engines[name] = engine
            return self._engines[name]

    def make_lister(self) -> CandidateLister:
        """Return what finds the candidates of an anchor."""
        config, roles, limit = self.config.commons, self.roles, self.config.groundings.candidates
        fresh = self.roles.count_renewals("commons")
        metadata = make_image_metadata(config, roles.replies, fresh) if config.api and config.fetch else None
        search = make_file_search(config, roles.replies, fresh) if config.search else None
        fetch = make_file_fetch(config, roles.replies, roles.pictures, fresh) if config.fetch else None
        return CandidateLister(self.corpus, roles.pictures, limit, metadata, search, fetch)

    def make_chooser(self) -> PictureChooser:
        """Return what chooses an anchor's picture."""
        groundings = self.config.groundings
        depiction = DepictionRules(
            groundings.decides, groundings.threshold, groundings.min_margin, groundings.distractors
        )
        rules = PictureRules(
            min_side=groundings.min_side,
            depiction=depiction,
            refuse_simple=groundings.refuse_simple,
            avoid_lead=groundings.avoid_lead,
            training_pixels=groundings.training_pixels,
            near=NEAR_COSINE if self._searches_by_likeness else NEAR_BITS,
        )
        copies = self.copies if self.copies.has_pictures() else None
        parts = (self.make_lister(), self.ranker, self.image_search, copies, self.reader)
        return PictureChooser(self.roles.pictures, *parts, rules)

    def make_enhancements(self) -> Enhancements:
        """Return the stage that degrades pictures; what nothing repairs here is left out of its degradations."""
        config = self.config.enhancements
        repairs = make_repairs(self.upscaler, has_opencv())
        possible = tuple(each for each in config.degradations if each in repairs)
        rules = EnhancementRules(config.share if possible else 0.0, possible, config.strengths, self.config.seed)
        # A text layer is lost with the first change of a picture: it tells nothing of what can still be read.
        reads = set(self.config.groundings.ocr) - {"layer"}
        reader, results = self.reader if reads else None, self.config.releases.image_results
        return Enhancements(self.roles.pictures, self.shown_search, reader, repairs, rules, results)

    def close(self) -> None:
        """Give the encoder back; the last to do so ends its threads, its model and its cache."""
        if "encoder" in self.__dict__:
            _return_encoder(self.encoder)
            del self.__dict__["encoder"]


def make_upscaler(config: ToolsConfig) -> Upscaler | None:
    """Return the network behind super_resolution; None where no weights are named.

    Raises:
        ConfigError: if the file is none of EDSR's, or OpenCV is not installed.
    """
    if not config.edsr:
        return None
    from pipelines.backends.super_resolution import Edsr

    return Edsr(Path(config.edsr))


def make_engine(name: OcrEngine, config: OcrConfig) -> Ocr:
    """Return an OCR engine; only the one that is asked for is imported.

    Raises:
        ConfigError: if it is not installed.
    """
    if name == "rapidocr":
        from pipelines.backends.ocr_rapid import RapidOcr

        return RapidOcr()
    if name == "tesseract":
        from pipelines.backends.ocr_tesseract import Tesseract

        return Tesseract(config.languages, config.seconds)
    if name == "paddlex":
        from pipelines.backends.ocr_paddlex import PaddleX

        return PaddleX(config.url, config.seconds)
    return LayerOcr()
