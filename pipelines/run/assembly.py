"""The composition root: the only module that builds adapters and stages from a configuration.

:class:`Seeing` builds all that handles pictures, :class:`Acting` the teacher with its tools and judges, and
:class:`Assembly` the stages with their keys. Each part is built once and only when it is needed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from pipelines.agent.acceptance import Cascade
from pipelines.agent.attempts import MAX_SEARCHES, SEARCH_HITS, Preset, Searches, make_plan
from pipelines.agent.choosing import FETCHED_OTHERS, DistractorFetcher, EaseRater, PictureChooser
from pipelines.agent.depicting import LISTED, CandidateLister, ClipRanker, MetadataRanker, Ranker
from pipelines.agent.dialects import find_dialect
from pipelines.agent.guiding import Guide
from pipelines.agent.injecting import Askings
from pipelines.agent.judging import ProcessJury, UnscoredWatch, Verifier
from pipelines.agent.loop import Agent
from pipelines.agent.naming import ConceptAsker
from pipelines.agent.observations import Summariser, Thumbnails
from pipelines.agent.picture_search import FetchedPictures, LocalImageSearch
from pipelines.agent.pictures import Reader, Upscaler, has_opencv, make_repairs
from pipelines.agent.scenes import SceneMaker
from pipelines.agent.tools import ToolBox
from pipelines.checks.agreement import check_alternative
from pipelines.checks.benchmarks import Benchmarks
from pipelines.checks.endings import list_endings
from pipelines.checks.examination import PathDemands, digest_word_lists
from pipelines.checks.limits import MAX_PER_ANSWER, Limits, bound_gold
from pipelines.checks.propositions import ProseReader
from pipelines.checks.quotas import Quotas
from pipelines.checks.readings import Evaluator
from pipelines.checks.sets import Apart
from pipelines.checks.standings import COVERED
from pipelines.config.disclosure import digest_settings, disclose_settings
from pipelines.config.settings import LiveConfig, LiveTool, OcrEngine, RunConfig, ToolsConfig
from pipelines.corpus.search import LocalPages, LocalTextSearch
from pipelines.corpus.store import Corpus
from pipelines.errors import ConfigError
from pipelines.graph.proofs import PAGE_WORDS, AnchorRules, InjectionRules
from pipelines.graph.query import Indexes
from pipelines.graph.seeds import SeedGate
from pipelines.graph.walks import WalkGraph, WalkRules, find_hub_threshold
from pipelines.ids import digest_value, make_stage_key
from pipelines.pictures import PictureStore
from pipelines.release.making import read_apart
from pipelines.run.corpora import digest_input
from pipelines.run.models import (
    Roles,
    count_in_flight,
    make_file_fetch,
    make_image_metadata,
    make_wikidata_source,
)
from pipelines.run.plugins import find_prompt_folder
from pipelines.run.reviewing import read_decisions
from pipelines.run.runner import PlannedStage
from pipelines.run.shards import read_fetched
from pipelines.run.stage import AnyStage
from pipelines.run.workspace import StageFolder, Workspace
from pipelines.services.addresses import Guard
from pipelines.services.clients.commons import RecordedFileFetch
from pipelines.services.clients.encoder import CachedEncoder
from pipelines.services.clients.http import HttpClient
from pipelines.services.clients.images import LiveImageSearch
from pipelines.services.clients.pages import DirectReader, JinaReader
from pipelines.services.clients.recorded import Recorded
from pipelines.services.clients.search import LiveSearch
from pipelines.services.prompting import make_sampling
from pipelines.services.protocols import ImageSearch, Ocr, PageReader, TextSearch
from pipelines.splits import SplitRule
from pipelines.stages.anchors import Anchors
from pipelines.stages.articles import Articles
from pipelines.stages.bridges import Bridges
from pipelines.stages.choices import ChosenSearches
from pipelines.stages.concepts import Concepts
from pipelines.stages.difficulty import MeasuredDifficulty
from pipelines.stages.enhancements import Enhancements
from pipelines.stages.groundings import Groundings
from pipelines.stages.initials import Initials
from pipelines.stages.injections import Injections
from pipelines.stages.mixtures import Mixtures, WalkedMixtures
from pipelines.stages.paths import Paths
from pipelines.stages.pools import Pools
from pipelines.stages.questions import Questions
from pipelines.stages.releases import Releases
from pipelines.stages.reviews import Reviews
from pipelines.stages.rewrites import Rewrites
from pipelines.stages.rollouts import Rollouts, make_oracle
from pipelines.stages.samples import Samples
from pipelines.stages.seeds import Seeds
from pipelines.stages.selections import Selections
from pipelines.stages.trajectories import Trajectories
from schemas.datasets import Split
from schemas.manifest import InputEntry
from schemas.proofs import UNCOUNTED, Thresholds

if TYPE_CHECKING:
    from pipelines.services.clients.encoder import OpenClipEncoder
    from pipelines.services.clients.turns import Turns

ANSWER_TOKENS = 6
"""Longest answer, white-space tokens: longer ones are seldom given word for word (VSearcher, 2.2)."""
NEWS_WORDS = 900
"""Words of an article of the news that a model is shown: nearly all are shorter."""
NEWS_OTHERS = 3
"""Further articles that name the bridge, where the second fact is sought."""
NEWS_ANCHORS = 1
"""Things in a picture about which a question is tried; one a picture is released."""
LEAST_MARK = 3
"""Least mark, 1 to 5, for what a curious person would ask about a concept: the middle."""
SMALL_CORPUS = 1_000_000
"""Articles under which gates are those of a small corpus."""
SMALL_IN_DEGREE = 3
"""Articles that must link to a seed in a small corpus: the 50 that are meant for 7 M articles leave almost none."""
LIVE_URLS: Mapping[LiveTool, str] = {
    "search": "https://google.serper.dev/search",
    "reader": "https://r.jina.ai/",
    "images": "https://vision.googleapis.com/v1/images:annotate",
}
"""The public addresses of the services behind the live tools."""
NEAR_BITS = 4.0
"""Most bits in which perceptual hashes of one picture differ after scaling or saving it again."""
NEAR_COSINE = 0.05
"""The same for 1 - cosine of two embeddings."""


def has_clip() -> bool:
    """Say whether the extra `clip` is installed, without importing it."""
    return find_spec("open_clip") is not None and find_spec("torch") is not None


def picks_clip(config: RunConfig) -> bool:
    """Say whether an encoder ranks pictures: where weights are named and the extra is installed."""
    return bool(config.encoder["pretrained"]) and has_clip()


@dataclass
class Seeing:
    """Everything of one run that handles pictures: candidates, rankers, encoder, OCR engines, searches by picture."""

    config: RunConfig
    workspace: Workspace
    corpus: Corpus
    roles: Roles
    grounded: StageFolder | None = None
    """The stage groundings, once it is planned: later stages search the pictures that it fetched, too."""
    _engines: dict[OcrEngine, Ocr] = field(default_factory=dict)
    _model: "OpenClipEncoder | None" = None

    @cached_property
    def encoder(self) -> CachedEncoder:
        """The model that scores pictures against descriptions; its embeddings are kept in the workspace.

        Raises:
            ConfigError: if there are no weights, or the extra is not installed.
        """
        from pipelines.services.clients.encoder import OpenClipEncoder

        self._model = OpenClipEncoder(self.config.encoder["model"], self.config.encoder["pretrained"])
        return CachedEncoder(self._model, self.workspace.derived / "embeddings")

    @cached_property
    def copies(self) -> LocalImageSearch:
        """The corpus's pictures by perceptual hash."""
        return LocalImageSearch(self.corpus)

    @cached_property
    def image_search(self) -> ImageSearch:
        """The corpus's image search, recorded."""
        return self._make_search(None, None)

    @cached_property
    def later_search(self) -> ImageSearch:
        """The same search after pictures were fetched."""
        return self._make_search(None, self._find_fetched())

    @cached_property
    def shown_search(self) -> ImageSearch:
        """The same as the later search with thumbnails, for models that see the results."""
        return self._make_search(Thumbnails(self.roles.pictures), self._find_fetched())

    def _find_fetched(self) -> FetchedPictures | None:
        """Return the pictures that the stage groundings fetches; None where none is fetched."""
        folder = self.grounded
        if folder is None or not self.config.commons.fetch:
            return None
        return FetchedPictures(folder.path.name, partial(read_fetched, folder), self.roles.pictures)

    def _make_search(self, thumbnails: Thumbnails | None, fetched: FetchedPictures | None) -> ImageSearch:
        search: ImageSearch = LocalImageSearch(self.corpus, thumbnails=thumbnails, fetched=fetched)
        if plugged := self.roles.plugins.find_tool("image_search"):
            search = plugged
        elif self._searches_by_likeness:
            from pipelines.agent.picture_search import ClipImageSearch

            folder = self.workspace.derived / "image-indexes"
            search = ClipImageSearch(self.corpus, self.encoder, folder, thumbnails=thumbnails, fetched=fetched)
        return Recorded(search, self.roles.replies, self.roles.find_epoch("image_search"))

    @cached_property
    def reader(self) -> Reader | None:
        """The OCR engines that search pictures for readable names; None if none is configured."""
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
        """The ranker of an anchor's candidate pictures."""
        if not picks_clip(self.config):
            return MetadataRanker(self.corpus)
        return ClipRanker(self.corpus, self.encoder, self.config.seed)

    @property
    def _searches_by_likeness(self) -> bool:
        return self.config.tools.image_search == "clip"

    def find_engine(self, name: OcrEngine) -> Ocr:
        """Return an OCR engine, recorded unless it is the text layer of the toy world.

        Raises:
            ConfigError: if it is not installed.
        """
        if name not in self._engines:
            engine = make_engine(name)
            if name != "layer":
                engine = Recorded(engine, self.roles.replies, self.roles.find_epoch("ocr"))
            self._engines[name] = engine
        return self._engines[name]

    def make_lister(self) -> CandidateLister:
        """Return the lister of an anchor's candidate pictures."""
        config, roles, limit = self.config.commons, self.roles, LISTED
        epoch = self.roles.find_epoch("commons")
        metadata = make_image_metadata(self.config, roles.replies, epoch) if config.fetch else None
        fetch = None
        if config.fetch:
            fetching = make_file_fetch(self.config, roles.replies.turns)
            fetch = RecordedFileFetch(fetching, roles.replies, epoch, pictures=roles.pictures)
        return CandidateLister(self.corpus, roles.pictures, limit, metadata, fetch)

    def make_chooser(self, lister: CandidateLister) -> PictureChooser:
        """Return the chooser of an anchor's picture; where pictures are fetched, it rates none by a search."""
        rater = None if self.config.commons.fetch else self._make_rater(self.image_search)
        parts = (lister, self.ranker, rater, self.copies, self.reader)
        return PictureChooser(self.roles.pictures, *parts, self.config.groundings)

    def make_late_rater(self) -> EaseRater | None:
        """Return what rates pictures after all were fetched; None where none is."""
        return self._make_rater(self.later_search) if self.config.commons.fetch else None

    def _make_rater(self, search: ImageSearch) -> EaseRater:
        near = NEAR_COSINE if self._searches_by_likeness else NEAR_BITS
        return EaseRater(search, self.roles.pictures, near)

    def make_enhancements(self) -> Enhancements:
        """Return the stage that degrades pictures and sets them in scenes."""
        # A text layer is lost with the first change of a picture: it tells nothing of what can still be read.
        reads = set(self.config.groundings.ocr) - {"layer"}
        return Enhancements(
            self.roles.pictures,
            self.shown_search,
            self.reader if reads else None,
            make_repairs(self.upscaler, has_opencv()),
            self.config.enhancements,
            self.config.seed,
            self._make_scenes(),
        )

    def _make_scenes(self) -> SceneMaker | None:
        """Return what sets pictures in scenes; None where no share of them is."""
        config = self.config
        if not config.enhancements.high_resolution:
            return None
        splits = SplitRule(config.splits, config.seed)
        parts = (self.corpus, self.roles.pictures, self.later_search, splits)
        locator = self.roles.ask("judge", "locate_object") if "judge" in config.roles else None
        return SceneMaker(*parts, config.enhancements.high_resolution, config.seed, locator)

    def close(self) -> None:
        """Close the encoder with its cache, threads and model."""
        if self._model is not None:
            self.encoder.close()
            self._model.close()
            self._model = None
            del self.__dict__["encoder"]


def make_upscaler(config: ToolsConfig) -> Upscaler | None:
    """Return the network behind super_resolution; None where no weights are named.

    Raises:
        ConfigError: if the file holds no EDSR network, or OpenCV is not installed.
    """
    if not config.edsr:
        return None
    from pipelines.services.clients.upscaling import Edsr

    return Edsr(Path(config.edsr))


def make_engine(name: str) -> Ocr:
    """Return an OCR engine; no other engine is imported.

    Raises:
        ConfigError: if it is not installed.
    """
    if name == "rapidocr":
        from pipelines.services.clients.ocr import RapidOcr

        return RapidOcr()
    from pipelines.toy.textlayer import LayerOcr

    return LayerOcr()


def make_text_search(config: LiveConfig, turns: "Turns | None" = None) -> TextSearch:
    """Return the text search; no request is sent before it is used."""
    return LiveSearch(config.search, *_find_service(config, "search"), HttpClient(turns=turns))


def make_reader(config: LiveConfig, contact: str, turns: "Turns | None" = None) -> PageReader:
    """Return the reader of pages.

    Raises:
        ConfigError: if pages are to be fetched here and trafilatura is not installed.
    """
    guard = Guard()
    if config.reader == "jina":
        return JinaReader("jina", *_find_service(config, "reader"), HttpClient(turns=turns), guard=guard)
    return DirectReader(contact, HttpClient(turns=turns), guard)


def make_image_search(config: LiveConfig, pictures: PictureStore, turns: "Turns | None" = None) -> ImageSearch:
    """Return the search by picture, with thumbnails in the workspace's image store.

    Raises:
        ConfigError: if the service takes addresses and ``urls.pictures`` names none.
    """
    service = (config.images, *_find_service(config, "images"), HttpClient(turns=turns))
    guard = Guard()
    return LiveImageSearch(*service, pictures=pictures, picture_base=config.urls.get("pictures", ""), guard=guard)


def _find_service(config: LiveConfig, tool: LiveTool) -> tuple[str, str]:
    """Return the address of a service and the variable of its key."""
    return config.urls.get(tool, LIVE_URLS[tool]), config.key_envs.get(tool, "")


@dataclass
class Acting:
    """The teacher of one run: its tools, and the judges of its rollouts."""

    config: RunConfig
    corpus: Corpus
    roles: Roles
    seeing: Seeing

    @cached_property
    def corpus_search(self) -> TextSearch:
        """The corpus's full-text search, recorded."""
        search = self.roles.plugins.find_tool("text_search") or LocalTextSearch(self.corpus)
        return Recorded(search, self.roles.replies, self.roles.find_epoch("text_search"))

    @cached_property
    def live_searches(self) -> tuple[TextSearch, ImageSearch] | None:
        """The live searches by words and by picture, recorded; None where the run's tools are local.

        Raises:
            ConfigError: if a service's key is missing.
        """
        if self.config.tools.family != "live":
            return None
        roles, live, plugins = self.roles, self.config.live, self.roles.plugins
        turns = roles.replies.turns
        texts = plugins.find_tool("text_search") or make_text_search(live, turns)
        images = plugins.find_tool("image_search") or make_image_search(live, roles.pictures, turns)
        return (
            Recorded(texts, roles.replies, roles.find_epoch("text_search"), live=True),
            Recorded(images, roles.replies, roles.find_epoch("image_search"), live=True),
        )

    def make_searches(self) -> Searches:
        """Return the searches that difficulty's attempts are given: those of the teacher."""
        texts, images = self.live_searches or (self.corpus_search, self.seeing.later_search)
        return Searches(texts, images, self.roles.pictures, SEARCH_HITS)

    def make_agent(self, role: str = "teacher") -> Agent:
        """Return the teacher with its tools, or a solver that may make as many searches as are configured.

        Raises:
            ConfigError: if a service's key or the page reader is missing.
        """
        rollouts, roles = self.config.rollouts, self.roles
        if role != "teacher":
            rollouts = rollouts.model_copy(update={"max_calls": MAX_SEARCHES})
        dialect = find_dialect(rollouts.dialect)
        return Agent(
            roles.find_model(role),
            dialect.load_prompt(find_prompt_folder(self.config)),
            self._make_tools(),
            rollouts,
            make_sampling(self.config.models[role]),
            dialect=dialect,
        )

    def make_cascade(self) -> Cascade:
        """Return the rejection cascade, with a count of unscored answers of its own.

        Raises:
            ConfigError: if nobody is there to verify.
        """
        config, roles = self.config, self.roles
        judged, verified = "judge" in config.roles, bool(config.trajectories.verifications)
        if verified and not judged:
            raise ConfigError("trajectories.verifications needs models.judge, a model that is not the teacher")
        marked = judged and not verified and config.trajectories.min_process
        return Cascade(
            config.trajectories,
            roles.make_jury(),
            ProcessJury(roles.ask("judge", "judge_process")) if marked else None,
            UnscoredWatch(self.config.runtime.unscored),
            verifier=Verifier(roles.ask("judge", "verify_trajectory")) if verified else None,
        )

    def _make_tools(self) -> ToolBox:
        config, roles, live = self.config.tools, self.roles, self.config.tools.family == "live"
        summarised = self.config.summarises
        texts, images = self.live_searches or (self.corpus_search, self.seeing.shown_search)
        reader: PageReader | None = self.roles.plugins.find_tool("pages")
        if reader is None:
            reader = (
                make_reader(self.config.live, self.config.contact, self.roles.replies.turns)
                if live
                else LocalPages(self.corpus)
            )
        return ToolBox(
            text_search=texts,
            image_search=images,
            pages=Recorded(reader, roles.replies, roles.find_epoch("pages"), live=live),
            store=self.roles.pictures,
            settings=config,
            ocr=self.seeing.layout,
            upscaler=self.seeing.upscaler,
            opencv=has_opencv(),
            summariser=Summariser(roles.ask("summariser", "summarise_page")) if summarised else None,
            reads=find_dialect(self.config.rollouts.dialect).reads_pages(summarised),
            snapshot="" if live else self.corpus.snapshot,
            online=live,
        )


_REST: Mapping[str, tuple[str, ...]] = {
    "rewrites": ("questions",),
    "groundings": ("rewrites",),
    "difficulty": ("groundings",),
    "enhancements": ("difficulty",),
    "selections": ("enhancements",),
    "rollouts": ("selections",),
    "trajectories": ("rollouts",),
    "releases": ("selections", "trajectories"),
}
SOURCES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "paths": {"seeds": (), "paths": ("seeds",), "questions": ("paths",), **_REST},
    "injection": {"seeds": (), "questions": ("seeds",), **_REST},
    "concepts": {"seeds": (), "questions": ("seeds",), **_REST},
    "news": {
        "articles": (),
        "anchors": ("articles",),
        "bridges": ("anchors",),
        **{name: sources for name, sources in _REST.items() if name != "rewrites"},
        "groundings": ("bridges",),
    },
    "pools": {},
}
"""By method, where each stage's rows come from, in pipeline order."""


def list_sources(method: str, pooled: bool) -> Mapping[str, tuple[str, ...]]:
    """Return where each stage's rows come from by method, in pipeline order; with pools, their rows come in as well."""
    own = SOURCES[method]
    if not pooled:
        return own
    behind = list(_REST).index("difficulty")
    merged = {"pools": (), "mixtures": ("pools", *(["groundings"] if own else []))}
    rest = {name: _REST[name] for name in list(_REST)[behind:]} | {"difficulty": ("mixtures",)}
    return {name: sources for name, sources in own.items() if name not in rest} | merged | rest


SEARCHING = frozenset(["difficulty", "enhancements", "rollouts"])
"""Stages that search by picture among all that groundings fetched."""
CHECKED = frozenset(["paths", "questions", "rewrites", "bridges", "groundings", "rollouts", "trajectories"])
"""Stages whose rows are decided by checks, and so by their word lists."""
ASKED_ROLES: Mapping[str, tuple[str, ...]] = {
    "questions": ("writer", "evaluator"),
    "rewrites": ("rewriter", "evaluator"),
    "groundings": ("rewriter", "evaluator"),
    "difficulty": ("solver",),
    "rollouts": ("teacher",),
    "anchors": ("writer",),
    "bridges": ("writer", "evaluator"),
}
"""Roles whose models a stage uses."""


def list_roles(config: RunConfig, last: str = "") -> list[str]:
    """Return the roles whose models stages up to ``last``, or all stages, ask."""
    found: dict[str, None] = {}
    for stage in () if last == "corpus" else list_sources(config.method, bool(config.pools)):
        asked = () if (config.method, stage) == ("news", "groundings") else ASKED_ROLES.get(stage, ())
        asked += ("path_judge",) if stage == "paths" and config.paths.guide == "model" else ()
        asked += ("judge",) if stage == "rollouts" and config.trajectories.verifications else ()
        found |= dict.fromkeys(asked)
        if stage == last:
            break
    return list(found)


def list_missing_roles(config: RunConfig, last: str = "") -> list[str]:
    """Return those of :func:`list_roles` that have no model."""
    return [role for role in list_roles(config, last) if role not in config.roles]


def make_evaluator(ground: Indexes, roles: Roles, role: str = "evaluator") -> Evaluator:
    """Return what reads texts back, with the model of a role."""
    return Evaluator(ground, roles.ask(role, "read_question", 2), roles.ask(role, "screen_question"))


def make_page_reader(ground: Indexes, roles: Roles, role: str = "evaluator") -> ProseReader:
    """Return what reads pages, with the model of a role."""
    return ProseReader(ground, roles.ask(role, "read_page"))


@dataclass
class Assembly:
    """Everything of one run that is built from its configuration, each part once and only when needed."""

    config: RunConfig
    workspace: Workspace
    corpus: Corpus
    quotas: Quotas | None = None
    """Of the round of drawing, where target sizes are set; see :mod:`pipelines.run.quotas`."""

    @property
    def corpus_entry(self) -> InputEntry:
        """The corpus as the first input of every stage."""
        return InputEntry(name="corpus", key=self.corpus.folder.name, digest=self.corpus.digest)

    @cached_property
    def roles(self) -> Roles:
        """The models of the roles."""
        return Roles(self.config, self.workspace, language=self.corpus.manifest.language)

    @cached_property
    def splits(self) -> SplitRule:
        """The split of every entity and answer key."""
        return SplitRule(self.config.splits, self.config.seed)

    @cached_property
    def small(self) -> bool:
        """Whether the gates for small corpora are used."""
        return len(self.corpus.article_nodes()) < SMALL_CORPUS

    @cached_property
    def hub_in_degree(self) -> int:
        """In-degree above which an article is a hub."""
        return find_hub_threshold(self.corpus.graph.in_degree, self.config.seeds.hub_share, self.small)

    @cached_property
    def ground(self) -> Indexes:
        """The corpus with the indexes of the checks."""
        return Indexes(self.corpus)

    @cached_property
    def answer_limits(self) -> Thresholds:
        """Thresholds that every answer must meet."""
        own = self.config.questions.model_dump(include={"agreement", "volatile", "read_pages"})
        return UNCOUNTED.model_copy(update=own | {"answer_share": self.config.questions.max_answer_share})

    @cached_property
    def graph(self) -> WalkGraph:
        """The link graph with the walk rules applied."""
        rules = WalkRules(self.config.paths, self.hub_in_degree, ANSWER_TOKENS, self.splits)
        return WalkGraph(self.corpus, rules, self.ground.relations, self.workspace.derived)

    @cached_property
    def seeing(self) -> Seeing:
        """The parts that handle pictures."""
        return Seeing(self.config, self.workspace, self.corpus, self.roles)

    @cached_property
    def acting(self) -> Acting:
        """The teacher with its tools."""
        return Acting(self.config, self.corpus, self.roles, self.seeing)

    @cached_property
    def reader(self) -> Evaluator:
        """The evaluator, which reads every text back."""
        return make_evaluator(self.ground, self.roles)

    @cached_property
    def pages(self) -> ProseReader | None:
        """The evaluator as a reader of pages, unless pages are not to be read."""
        return make_page_reader(self.ground, self.roles) if self.config.questions.read_pages else None

    def close(self) -> None:
        """Close models and pictures; a second call does nothing."""
        if "seeing" in self.__dict__:
            self.seeing.close()
        self.roles.close()

    def make_agent(self) -> Agent:
        """Return the teacher with its tools, all recorded."""
        return self.acting.make_agent()

    def build_stage(self, name: str) -> AnyStage:
        """Build one stage."""
        config = self.config
        builders: Mapping[str, Callable[[], AnyStage]] = {
            "seeds": self._build_seeds,
            "paths": self._build_paths,
            "questions": self._build_questions,
            "rewrites": self._build_rewrites,
            "articles": lambda: Articles(self.corpus, config.news, config.groundings.min_side),
            "anchors": self._build_anchors,
            "bridges": self._build_bridges,
            "groundings": self._build_groundings,
            "pools": self._build_pools,
            "mixtures": self._build_mixtures,
            "difficulty": self._build_difficulty,
            "enhancements": self.seeing.make_enhancements,
            "selections": lambda: Selections(self.limits, config.enhancements, self.roles.pictures, config.seed),
            "rollouts": self._build_rollouts,
            "trajectories": lambda: Trajectories(self.acting.make_cascade()),
            "releases": lambda: Releases(self.limits, self.roles.pictures),
        }
        return builders[name]()

    @property
    def limits(self) -> Limits:
        """What a release may keep."""
        injections, releases = self.config.injections, self.config.releases
        mixed = self.config.method == "injection"
        total = sum(injections.weights)
        shares = {number: weight / total for number, weight in zip(injections.rounds, injections.weights, strict=True)}
        return Limits(releases, self.apart, self.benchmarks, shares if mixed else {}, self.quotas)

    @cached_property
    def benchmarks(self) -> Benchmarks:
        """What no question may overlap with."""
        digest = partial(digest_input, workspace=self.workspace)
        return Benchmarks(self.config.releases.benchmarks, digest)

    @cached_property
    def apart(self) -> Apart:
        """What no question may share with other releases."""
        return read_apart(Path(folder) for folder in self.config.releases.apart_from)

    def _build_rollouts(self) -> Rollouts:
        rollouts = self.config.rollouts
        numbers = (rollouts.attempts, rollouts.wanted, rollouts.splits)
        return Rollouts(self.make_agent(), *numbers, self.acting.make_cascade())

    @cached_property
    def seed_gate(self) -> SeedGate:
        """The settings of seeds that count for this corpus."""
        seeds = self.config.seeds
        links = min(seeds.min_in_degree, SMALL_IN_DEGREE) if self.small else seeds.min_in_degree
        return SeedGate(**seeds.model_dump() | {"hub_in_degree": self.hub_in_degree, "min_in_degree": links})

    def _build_seeds(self) -> AnyStage:
        seeds, gate = self.config.seeds, self.seed_gate
        source = (
            make_wikidata_source(self.config, self.corpus, self.roles.replies, self.roles.find_epoch("wikidata"))
            if seeds.endpoint
            else None
        )
        asked = self.config.commons.endpoint and gate.require_image
        metadata = (
            make_image_metadata(self.config, self.roles.replies, self.roles.find_epoch("commons")) if asked else None
        )
        if self.config.method == "concepts":
            return Concepts(self.corpus, gate, self.splits, self.config.seed, metadata)
        draws = self.quotas.draws if self.quotas else ()
        walked = bool(draws) and self.config.method == "paths"
        reach, walks = (self._list_lengths, repr(self.graph.rules)) if walked else (None, "")
        cut = self.config.runtime.shard_rows
        return Seeds(self.corpus, gate, self.splits, self.config.seed, source, metadata, draws, reach, walks, cut)

    def take_quotas(self, quotas: Quotas) -> None:
        """Plan for a further round of drawing: its stages have other keys, and search among other pictures."""
        self.quotas = quotas
        for part in ("later_search", "shown_search"):
            self.seeing.__dict__.pop(part, None)
        self.__dict__.pop("acting", None)

    def _list_lengths(self, node: int, split: Split) -> list[int]:
        return [length for length, _ in self.graph.lengths_from(node, split)]

    def _build_paths(self) -> Paths:
        limits = self.answer_limits.model_copy(update={"answers": self.config.groundings.min_answers})
        hub = self.hub_in_degree
        shares = {split: bound_gold(self.config.releases, split) for split in get_args(Split)}
        demands = PathDemands(limits, ANSWER_TOKENS, hub, shares)
        releases, used = self.config.releases, self.quotas.used if self.quotas else ()
        kept = (MAX_PER_ANSWER, releases.max_answer_share)
        return Paths(self.graph, self.config.seed, self.ground, demands, self._make_guide(), kept, used)

    def _make_guide(self) -> Guide | None:
        """Return what guides walks; None where they are drawn by chance."""
        if self.config.paths.guide == "off":
            return None
        prompts = ("extract_relations", "choose_steps", "judge_path")
        extracting, choosing, judging = (self.roles.ask("path_judge", prompt) for prompt in prompts)
        return Guide(self.ground, self.graph, extracting, choosing, judging)

    def _build_questions(self) -> AnyStage:
        config, limits = self.config.questions, self.answer_limits
        if self.config.method in ("injection", "concepts"):
            concepts = self._make_concept_asker() if self.config.method == "concepts" else None
            return Initials(
                self.ground,
                self.roles.ask("writer", "ask_fact", 3),
                self.reader,
                self.pages,
                concepts.limits if concepts else limits,
                ANSWER_TOKENS,
                self.splits,
                PAGE_WORDS,
                concepts,
            )
        asking = self.roles.ask("writer", "write_question", 4)
        return Questions(
            self.ground,
            asking,
            self.reader,
            self.pages,
            limits,
            ANSWER_TOKENS,
            self.splits,
            config.obfuscated_answers,
        )

    def _make_concept_asker(self) -> ConceptAsker:
        # No node is hidden, so there is no descriptor that fits only so many.
        limits = self.answer_limits.model_copy(update={"alone_first": 1, "alone": 1})
        asking, classifying = (
            self.roles.ask("writer", "ask_concept"),
            self.roles.ask("evaluator", "classify_question"),
        )
        return ConceptAsker(
            self.ground, asking, classifying, self.reader, limits, ANSWER_TOKENS, PAGE_WORDS, LEAST_MARK
        )

    def _build_rewrites(self) -> AnyStage:
        if self.config.method == "concepts":
            return Samples()
        if self.config.method == "injection":
            return self._build_injections()
        proposing, rewriting = (
            self.roles.ask("rewriter", "propose_descriptors", 4),
            self.roles.ask("rewriter", "rewrite_question", 3),
        )
        return Rewrites(
            self.ground,
            proposing,
            rewriting,
            self.config.rewrites,
            self.hub_in_degree,
            ANSWER_TOKENS,
        )

    def _build_injections(self) -> Injections:
        config = self.config
        rules = InjectionRules(
            config.injections,
            config.rewrites,
            min_answers=config.groundings.min_answers,
            hub_in_degree=self.hub_in_degree,
            max_answer_tokens=ANSWER_TOKENS,
            seed=config.seed,
        )
        anchors = AnchorRules(self.splits, config.groundings)
        askings = Askings(
            extracting=self.roles.ask("rewriter", "extract_fact", 3),
            proposing=self.roles.ask("rewriter", "propose_descriptors", 5),
            rewriting=self.roles.ask("rewriter", "inject_fact", 3),
        )
        return Injections(self.ground, askings, self.reader, anchors, rules, self.apart)

    def _build_anchors(self) -> Anchors:
        asking = self.roles.ask("writer", "name_anchors")
        numbers = (NEWS_ANCHORS, NEWS_WORDS)
        return Anchors(self.corpus, asking, self.roles.pictures, self.splits, *numbers, self.seeing.reader)

    def _build_bridges(self) -> Bridges:
        roles = self.roles
        asked = (roles.ask("writer", "find_bridge"), roles.ask("writer", "ask_bridge"))
        judging = roles.ask("evaluator", "judge_chain")
        numbers = (NEWS_WORDS, NEWS_OTHERS, ANSWER_TOKENS)
        return Bridges(self.corpus, *asked, judging, *numbers)

    def _build_groundings(self) -> AnyStage:
        if self.config.method == "news":
            return Reviews(read_decisions(self.config.news.decisions))
        asking = self.roles.ask("rewriter", "refer_to_anchor", 4)
        commons, lister = self.config.commons, self.seeing.make_lister()
        others = DistractorFetcher(lister, FETCHED_OTHERS, self.config.seed) if commons.fetch else None
        chooser = self.seeing.make_chooser(lister)
        settings, plugged = self.config.groundings, self.roles.plugins.checks
        return Groundings(self.ground, chooser, asking, settings, self.reader, others, plugged)

    def _build_pools(self) -> Pools:
        digest = partial(digest_input, workspace=self.workspace)
        read = {pool.name: self.roles.plugins.load("sources", pool.plugin) for pool in self.config.pools if pool.plugin}
        return Pools(self.config.pools, self.roles.pictures, self.splits, ANSWER_TOKENS, digest, read)

    def _build_mixtures(self) -> Mixtures:
        kind = Mixtures if self.config.method == "pools" else WalkedMixtures
        return kind({pool.name: pool.share for pool in self.config.pools}, self.config.seed)

    def _build_difficulty(self) -> AnyStage:
        difficulty = self.config.difficulty
        if difficulty.preset != "fvqa":
            return self.build_measuring(difficulty.preset)
        agent, rater = self.acting.make_agent("solver"), self.seeing.make_late_rater()
        watch = UnscoredWatch(self.config.runtime.unscored)
        contest = partial(check_alternative, self.ground) if self.config.method != "news" else None
        parts = (agent, self.roles.make_jury(), difficulty, make_oracle, watch, contest, rater)
        return ChosenSearches(*parts, at_once=self._batches)

    @property
    def _batches(self) -> bool:
        """Whether the solver is asked in batches, which may take a day each."""
        return "solver" in self.config.roles and self.config.models["solver"].mode == "batch"

    def build_measuring(self, preset: Preset) -> MeasuredDifficulty:
        """Build the stage difficulty with the conditions of a preset."""
        difficulty, roles = self.config.difficulty, self.roles
        plan = make_plan(preset, difficulty.probe_attempts > 0)
        # VSearcher asks for a short phrase at once; the others let the solver think.
        version = 3 if preset == "vsearcher" else 4
        judged = plan.judges_picture and "judge" in self.config.roles
        return MeasuredDifficulty(
            solver=roles.ask("solver", "answer_question", version),
            jury=roles.make_jury(),
            searches=self.acting.make_searches(),
            plan=plan,
            settings=difficulty,
            watch=UnscoredWatch(self.config.runtime.unscored),
            contest=partial(check_alternative, self.ground) if self.config.method != "news" else None,
            list_endings=partial(list_endings, self.ground.corpus),
            picture_judge=roles.ask("judge", "judge_picture") if judged else None,
            rater=self.seeing.make_late_rater(),
            covered=self.corpus.manifest.language in COVERED,
            at_once=self._batches,
        )

    def plan_stages(self, last: str = "") -> list[PlannedStage]:
        """Return the stages after the corpus up to the last one that is wanted, in order, with their keys."""
        # Where dump and replies lie decides no row; how walks are cut does, which seeds know. The corpus has a digest.
        digest = digest_settings(*disclose_settings(self.config), self.corpus.digest)
        planned: dict[str, PlannedStage] = {}
        plugins = self.roles.plugins
        merged = plugins.insert_stages(list_sources(self.config.method, bool(self.config.pools)))
        for name, sources in merged.items():
            after = self.config.plugins.stages.get(name, "")
            if last and not after and last in planned:
                break
            stage = plugins.build_stage(name, planned[after].stage.output) if after else self.build_stage(name)
            inputs = [self.corpus.digest, *(planned[source].key for source in sources)]
            decides = [stage.fingerprint(), *([digest_word_lists()] if name in CHECKED else [])]
            key = make_stage_key(stage.name, stage.version, digest_value(decides), inputs)
            folder = self.workspace.stage(name, key)
            upstream = tuple(planned[source] for source in sources)
            fetched = [planned["groundings"]] if self.config.commons.fetch and "groundings" in planned else []
            gathers = tuple(fetched) if name in SEARCHING else ()
            planned[name] = PlannedStage(
                stage,
                key,
                folder,
                upstream,
                digest,
                gathers,
                count_in_flight(self.config, stage),
                self.config.runtime.unusable,
                plugins.list_deciding(stage),
                planned[after].place if after else "",
            )
            if name == "groundings":
                self.seeing.grounded = folder
        return list(planned.values())
