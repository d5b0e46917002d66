"""The composition root: the only module that builds adapters and stages from a configuration."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import urlsplit

from pipelines.agent.loop import Agent, Limits
from pipelines.agent.tools import ToolBox
from pipelines.backends.image_metadata import ImageMetadata
from pipelines.backends.knower import ScriptedKnower
from pipelines.backends.local_images import LocalImageSearch
from pipelines.backends.local_pages import LocalPages
from pipelines.backends.local_search import LocalTextSearch
from pipelines.backends.protocols import ChatModel, ImageSearch, Sampling
from pipelines.backends.recorded import (
    RecordedChat,
    RecordedImageSearch,
    RecordedPages,
    RecordedSparql,
    RecordedTextSearch,
)
from pipelines.backends.recorded_commons import RecordedImageMetadata
from pipelines.backends.replies import ReplyStore, open_replies
from pipelines.backends.sparql import Manners, SparqlEndpoint, name_agent
from pipelines.backends.sparql_http import RequestLimits
from pipelines.backends.teacher import ScriptedTeacher, make_vices
from pipelines.backends.templates import TemplatesModel
from pipelines.config import ModelConfig, RunConfig
from pipelines.corpus.store import Corpus
from pipelines.errors import ConfigError
from pipelines.graph.gates import SeedGate
from pipelines.graph.relations import RelationIndex
from pipelines.graph.splits import SplitRule
from pipelines.graph.walks import WalkGraph, WalkRules, find_hub_threshold
from pipelines.ids import digest_value, make_stage_key
from pipelines.pictures import PictureStore
from pipelines.prompting import Asking, load_prompt
from pipelines.runs import PlannedStage
from pipelines.stage import AnyStage
from pipelines.stages.difficulty import MeasuredDifficulty
from pipelines.stages.groundings import GroundingRules, Groundings
from pipelines.stages.paths import Paths
from pipelines.stages.questions import Questions
from pipelines.stages.releases import Releases
from pipelines.stages.rewrites import RewriteRules, Rewrites
from pipelines.stages.rollouts import Rollouts
from pipelines.stages.seeds import Seeds, WikidataSource
from pipelines.stages.trajectories import Trajectories
from pipelines.workspace import Workspace
from schemas.manifest import InputEntry

SOURCES: Mapping[str, tuple[str, ...]] = {
    "seeds": (),
    "paths": ("seeds",),
    "questions": ("paths",),
    "rewrites": ("questions",),
    "groundings": ("rewrites",),
    "difficulty": ("groundings",),
    "rollouts": ("difficulty",),
    "trajectories": ("rollouts",),
    "releases": ("difficulty", "trajectories"),
}
"""Where each stage's rows come from, in pipeline order."""


@dataclass
class Assembly:
    """Everything of one run that is built from its configuration, each part once and only when needed."""

    config: RunConfig
    workspace: Workspace
    corpus: Corpus

    @property
    def corpus_entry(self) -> InputEntry:
        """The corpus as the first input of every stage."""
        return InputEntry(name="corpus", key=self.corpus.folder.name, digest=self.corpus.digest)

    @cached_property
    def replies(self) -> ReplyStore:
        """The workspace's recorded replies."""
        return open_replies(self.workspace.replies)

    @cached_property
    def pictures(self) -> PictureStore:
        """The workspace's image store."""
        return PictureStore(self.workspace.images)

    @cached_property
    def splits(self) -> SplitRule:
        """The split of every entity and answer key."""
        shares = self.config.splits
        return SplitRule(shares.sft, shares.rl, shares.eval, self.config.seed)

    @cached_property
    def small(self) -> bool:
        """Whether the gates for small corpora are used."""
        return len(self.corpus.article_nodes()) < self.config.seeds.small_corpus.below_articles

    @cached_property
    def hub_in_degree(self) -> int:
        """In-degree above which an article is a hub."""
        seeds = self.config.seeds
        in_degree = self.corpus.graph.in_degree
        return find_hub_threshold(in_degree, seeds.hub_in_degree, seeds.small_corpus.hub_share, self.small)

    @cached_property
    def relations(self) -> RelationIndex:
        """The corpus's relations."""
        return RelationIndex(self.corpus)

    @cached_property
    def graph(self) -> WalkGraph:
        """The link graph with the walk rules applied."""
        paths = self.config.paths
        rules = WalkRules(
            hops=paths.hops,
            weights=paths.weights,
            hub_in_degree=self.hub_in_degree,
            text_hops=paths.text_hops,
            relation_preference=paths.relation_preference,
            look_ahead=paths.look_ahead,
            max_answer_tokens=self.config.questions.max_answer_tokens,
            splits=self.splits,
        )
        return WalkGraph(self.corpus, rules, self.relations, self.workspace.derived)

    @cached_property
    def image_search(self) -> ImageSearch:
        """The corpus's image search, recorded."""
        return RecordedImageSearch(LocalImageSearch(self.corpus), self.replies)

    def ask(self, role: str, prompt: str) -> Asking:
        """Return a role's model with a prompt."""
        return Asking(self.make_model(role), load_prompt(prompt), self.make_sampling(role))

    def make_sampling(self, role: str) -> Sampling:
        """Return a role's sampling settings."""
        model: ModelConfig = getattr(self.config.models, role)
        return Sampling(model.temperature, model.top_p, model.max_tokens)

    def make_model(self, role: str) -> ChatModel:
        """Return the model in a role, recorded."""
        return RecordedChat(build_model(role, getattr(self.config.models, role)), self.replies)

    def make_agent(self) -> Agent:
        """Return the teacher with its tools, all recorded."""
        rollouts = self.config.rollouts
        tools = ToolBox(
            text_search=RecordedTextSearch(LocalTextSearch(self.corpus), self.replies),
            image_search=self.image_search,
            pages=RecordedPages(LocalPages(self.corpus), self.replies),
            store=self.pictures,
        )
        limits = Limits(turns=rollouts.max_turns, context=rollouts.max_context)
        return Agent(self.make_model("teacher"), load_prompt("act"), tools, limits, self.make_sampling("teacher"))

    def build_stage(self, name: str) -> AnyStage:
        """Build one stage."""
        builders: Mapping[str, Callable[[], AnyStage]] = {
            "seeds": self._build_seeds,
            "paths": self._build_paths,
            "questions": lambda: Questions(
                self.corpus, self.ask("writer", "write_question"), self.config.questions.max_answer_tokens
            ),
            "rewrites": self._build_rewrites,
            "groundings": self._build_groundings,
            "difficulty": self._build_difficulty,
            "rollouts": lambda: Rollouts(self.make_agent(), self.config.rollouts.attempts),
            "trajectories": lambda: Trajectories(self.config.trajectories.max_accepted),
            "releases": lambda: Releases(self.config.releases.max_per_answer),
        }
        return builders[name]()

    def _build_seeds(self) -> Seeds:
        seeds, small = self.config.seeds, self.config.seeds.small_corpus
        gate = SeedGate(
            rule=seeds.rule,
            min_in_degree=small.min_in_degree if self.small else seeds.min_in_degree,
            hub_in_degree=self.hub_in_degree,
            require_infobox=small.require_infobox if self.small else seeds.require_infobox,
            in_degree=seeds.in_degree,
            max_sitelinks=seeds.max_sitelinks,
            min_statements=seeds.min_statements,
            count_identifiers=seeds.count_identifiers,
            classes=seeds.classes,
            require_image=small.require_image if self.small else seeds.require_image,
            min_image_side=seeds.min_image_side,
        )
        source = self._make_source() if seeds.source == "sparql" else None
        metadata = self._make_metadata() if self.config.commons.api and gate.require_image else None
        return Seeds(self.corpus, gate, self.splits, seeds.limit, self.config.seed, source, metadata)

    def _make_metadata(self) -> ImageMetadata:
        """Return Commons' imageinfo API, recorded."""
        from pipelines.backends.commons_api import CommonsApi  # its client takes longer to import than `synth status`

        config = self.config.commons
        if not config.contact:
            raise ConfigError("commons.contact is empty; say who asks: --set commons.contact=you@example.org")
        api = CommonsApi(config.api, name_agent(config.contact), pause=config.pause)
        return RecordedImageMetadata(api, self.replies)

    def _make_source(self) -> WikidataSource:
        """Return the endpoint that seeds are drawn from, recorded.

        Raises:
            ConfigError: if no class or no contact is named.
        """
        config = self.config.sparql
        if not self.config.seeds.classes:
            raise ConfigError("seeds.classes is empty; a query needs a class: --set 'seeds.classes=[\"Q12280\"]'")
        if not config.contact:
            raise ConfigError("sparql.contact is empty; say who asks: --set sparql.contact=you@example.org")
        manners = Manners(
            pause=config.pause,
            tries=config.tries,
            backoff=config.backoff,
            request=RequestLimits(config.silence, config.deadline, config.reply_bytes),
        )
        endpoint = SparqlEndpoint(config.endpoint, name_agent(config.contact), manners)
        address = urlsplit(self.corpus.manifest.base_url)
        site = config.site or f"{address.scheme}://{address.netloc}/"
        return WikidataSource(RecordedSparql(endpoint, self.replies), site, config.page_rows)

    def _build_paths(self) -> Paths:
        paths = self.config.paths
        return Paths(self.graph, paths.walks, paths.per_seed, self.config.seed)

    def _build_rewrites(self) -> Rewrites:
        rewrites = self.config.rewrites
        rules = RewriteRules(
            candidates=rewrites.candidates,
            min_alone_first=rewrites.min_alone_first,
            min_alone=rewrites.min_alone,
            forbid_shortcuts=rewrites.forbid_shortcuts,
            hub_in_degree=self.hub_in_degree,
            max_answer_tokens=self.config.questions.max_answer_tokens,
        )
        proposing, rewriting = self.ask("rewriter", "propose_descriptors"), self.ask("rewriter", "rewrite_question")
        return Rewrites(self.corpus, self.relations, proposing, rewriting, rules)

    def _build_groundings(self) -> Groundings:
        groundings = self.config.groundings
        rules = GroundingRules(groundings.require_image, groundings.min_side, groundings.min_answers)
        return Groundings(self.corpus, self.pictures, self.ask("rewriter", "refer_to_anchor"), rules)

    def _build_difficulty(self) -> MeasuredDifficulty:
        difficulty = self.config.difficulty
        solver = self.ask("solver", "answer_question")
        return MeasuredDifficulty(solver, self.image_search, self.pictures, difficulty.attempts, difficulty.max_correct)

    def plan_stages(self) -> list[PlannedStage]:
        """Return all stages after the corpus, in order, with their keys."""
        # Where the dump lies and how the work is cut decide no row; the corpus is known by its digest.
        settings = self.config.model_dump(mode="json", exclude={"runtime", "corpus"})
        digest = digest_value([settings, self.corpus.digest])
        planned: dict[str, PlannedStage] = {}
        for name, sources in SOURCES.items():
            stage = self.build_stage(name)
            inputs = [self.corpus.digest, *(planned[source].key for source in sources)]
            key = make_stage_key(stage.name, stage.version, stage.fingerprint(), inputs)
            folder = self.workspace.stage(name, key)
            planned[name] = PlannedStage(stage, key, folder, tuple(planned[source] for source in sources), digest)
        return list(planned.values())


def build_model(role: str, config: ModelConfig) -> ChatModel:
    """Build the adapter of a role.

    Raises:
        ConfigError: if the adapter has no such setting.
    """
    try:
        if config.adapter == "knower":
            return ScriptedKnower(**config.settings, name=config.name)
        if config.adapter == "teacher":
            return ScriptedTeacher(name=config.name, vices=make_vices(config.settings))
    except TypeError as error:
        raise ConfigError(f"models.{role}.settings: {error}") from error
    if config.settings:
        raise ConfigError(f"models.{role}.settings: templates takes none, given {sorted(config.settings)}")
    return TemplatesModel()
