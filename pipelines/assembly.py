"""The composition root: the only module that builds adapters and stages from a configuration."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from pipelines.acting import Acting
from pipelines.adapters import make_image_metadata, make_wikidata_source, open_later
from pipelines.agent.conditions import Searches
from pipelines.agent.judging import UnscoredWatch
from pipelines.agent.loop import Agent
from pipelines.agent.rounds import Askings
from pipelines.agent.swapping import PictureSwaps
from pipelines.checks.alternatives import check_alternative
from pipelines.checks.examination import AnswerRules, PathDemands
from pipelines.checks.knowledge import digest_checks
from pipelines.config import RunConfig
from pipelines.corpus.store import Corpus
from pipelines.graph.gates import SeedGate
from pipelines.graph.ground import Ground
from pipelines.graph.injections import AnchorRules, InjectionRules
from pipelines.graph.splits import SplitRule
from pipelines.graph.walks import WalkGraph, WalkRules, find_hub_threshold
from pipelines.ids import digest_value, make_stage_key
from pipelines.roles import Roles
from pipelines.runs import PlannedStage
from pipelines.scoring.filters import make_plan
from pipelines.seeing import Seeing
from pipelines.stage import AnyStage
from pipelines.stages.difficulty import DifficultyRules, MeasuredDifficulty
from pipelines.stages.groundings import GroundingRules, Groundings
from pipelines.stages.initials import Initials
from pipelines.stages.injections import Injections
from pipelines.stages.paths import Paths
from pipelines.stages.questions import Questions
from pipelines.stages.releases import Releases
from pipelines.stages.rewrites import RewriteRules, Rewrites
from pipelines.stages.seeds import Seeds
from pipelines.workspace import Workspace
from schemas.manifest import InputEntry

_REST: Mapping[str, tuple[str, ...]] = {
    "rewrites": ("questions",),
    "groundings": ("rewrites",),
    "difficulty": ("groundings",),
    "enhancements": ("difficulty",),
    "rollouts": ("enhancements",),
    "trajectories": ("rollouts",),
    "releases": ("enhancements", "trajectories"),
}
SOURCES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "paths": {"seeds": (), "paths": ("seeds",), "questions": ("paths",), **_REST},
    "injection": {"seeds": (), "questions": ("seeds",), **_REST},
}
"""By method, where each stage's rows come from, in pipeline order."""


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
    def roles(self) -> Roles:
        """Who plays each role."""
        return Roles(self.config, self.workspace)

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
    def ground(self) -> Ground:
        """The corpus with what checks count by, and the other dump where one is named."""
        other = self.config.questions.other_corpus
        return Ground(self.corpus, open_later(Path(other), self.corpus) if other else None)

    @cached_property
    def answer_rules(self) -> AnswerRules:
        """What is demanded of every answer."""
        questions = self.config.questions
        return AnswerRules(
            questions.max_answer_tokens, questions.agreement, questions.volatile, questions.max_answer_share
        )

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
        return WalkGraph(self.corpus, rules, self.ground.relations, self.workspace.derived)

    @cached_property
    def seeing(self) -> Seeing:
        """What pictures are seen with."""
        return Seeing(self.config, self.workspace, self.corpus, self.roles)

    @cached_property
    def acting(self) -> Acting:
        """What the teacher acts with."""
        return Acting(self.config, self.corpus, self.roles, self.seeing)

    def close(self) -> None:
        """End what was begun for models and pictures; nothing happens a second time."""
        if "seeing" in self.__dict__:
            self.seeing.close()
        self.roles.close()

    def make_agent(self) -> Agent:
        """Return the teacher with its tools, all recorded."""
        return self.acting.make_agent()

    def build_stage(self, name: str) -> AnyStage:
        """Build one stage."""
        builders: Mapping[str, Callable[[], AnyStage]] = {
            "seeds": self._build_seeds,
            "paths": self._build_paths,
            "questions": self._build_questions,
            "rewrites": self._build_rewrites,
            "groundings": self._build_groundings,
            "difficulty": self._build_difficulty,
            "enhancements": self.seeing.make_enhancements,
            "rollouts": self.acting.make_rollouts,
            "trajectories": self.acting.make_trajectories,
            "releases": self._build_releases,
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
        source = (
            make_wikidata_source(self.config, self.corpus, self.roles.replies, self.roles.count_renewals("wikidata"))
            if seeds.source == "sparql"
            else None
        )
        asked = self.config.commons.api and gate.require_image
        metadata = (
            make_image_metadata(self.config.commons, self.roles.replies, self.roles.count_renewals("commons"))
            if asked
            else None
        )
        return Seeds(self.corpus, gate, self.splits, seeds.limit, self.config.seed, source, metadata, seeds.splits)

    def _build_paths(self) -> Paths:
        paths = self.config.paths
        demands = PathDemands(self.answer_rules, self.config.groundings.min_answers)
        return Paths(self.graph, paths.walks, paths.per_seed, self.config.seed, self.ground, demands)

    def _build_questions(self) -> AnyStage:
        config, audit = self.config.questions, self.config.checks.audit
        if self.config.method == "injection":
            words = self.config.injections.page_words
            asking = self.roles.ask("writer", "ask_fact")
            return Initials(self.ground, asking, self.answer_rules, self.splits, words, audit)
        asking = self.roles.ask("writer", "write_question")
        return Questions(self.ground, asking, self.answer_rules, config.obfuscated_answers, audit)

    def _build_rewrites(self) -> AnyStage:
        if self.config.method == "injection":
            return self._build_injections()
        rewrites = self.config.rewrites
        rules = RewriteRules(
            candidates=rewrites.candidates,
            min_alone_first=rewrites.min_alone_first,
            min_alone=rewrites.min_alone,
            forbid_shortcuts=rewrites.forbid_shortcuts,
            hub_in_degree=self.hub_in_degree,
            max_answer_tokens=self.config.questions.max_answer_tokens,
            near_misses=rewrites.near_misses,
            audit=self.config.checks.audit,
        )
        proposing, rewriting = (
            self.roles.ask("rewriter", "propose_descriptors", 2),
            self.roles.ask("rewriter", "rewrite_question"),
        )
        return Rewrites(self.ground, proposing, rewriting, rules)

    def _build_injections(self) -> Injections:
        injections, rewrites = self.config.injections, self.config.rewrites
        rules = InjectionRules(
            rounds=injections.rounds,
            weights=injections.weights,
            tries=injections.tries,
            page_words=injections.page_words,
            candidates=rewrites.candidates,
            min_alone_first=rewrites.min_alone_first,
            min_alone=rewrites.min_alone,
            near_misses=rewrites.near_misses,
            min_answers=self.config.groundings.min_answers,
            forbid_shortcuts=rewrites.forbid_shortcuts,
            hub_in_degree=self.hub_in_degree,
            max_answer_tokens=self.config.questions.max_answer_tokens,
            seed=self.config.seed,
            audit=self.config.checks.audit,
        )
        anchors = AnchorRules(self.splits, self.config.groundings.require_image, self.config.groundings.min_side)
        askings = Askings(
            selecting=self.roles.ask("rewriter", "select_entity"),
            extracting=self.roles.ask("rewriter", "extract_fact"),
            proposing=self.roles.ask("rewriter", "propose_descriptors", 2),
            rewriting=self.roles.ask("rewriter", "inject_fact"),
        )
        return Injections(self.ground, askings, anchors, rules)

    def _build_groundings(self) -> Groundings:
        groundings = self.config.groundings
        rules = GroundingRules(
            require_image=groundings.require_image,
            min_answers=groundings.min_answers,
            retrieval_rank=groundings.retrieval_rank,
            audit=self.config.checks.audit,
        )
        return Groundings(self.ground, self.seeing.make_chooser(), self.roles.ask("rewriter", "refer_to_anchor"), rules)

    def _build_difficulty(self) -> MeasuredDifficulty:
        difficulty, judging, roles = self.config.difficulty, self.config.judging, self.roles
        plan = make_plan(difficulty.preset, difficulty.solvers, difficulty.text_solver, difficulty.max_correct)
        return MeasuredDifficulty(
            solvers={role: self.roles.ask(role, "answer_question", 2) for role in plan.list_roles()},
            jury=roles.make_jury(),
            searches=Searches(
                self.acting.corpus_search, self.seeing.image_search, self.roles.pictures, difficulty.search_hits
            ),
            rules=DifficultyRules(plan, difficulty.attempts, difficulty.early_stop),
            watch=UnscoredWatch(judging.max_unscored, judging.min_attempts),
            swaps=PictureSwaps(self.ground, self.roles.pictures),
            contest=partial(check_alternative, self.ground) if difficulty.alternatives else None,
            picture_judge=roles.ask("image_judge", "judge_picture") if self.config.models.image_judge else None,
        )

    def _build_releases(self) -> Releases:
        releases = self.config.releases
        return Releases(
            releases.max_per_answer, releases.max_per_anchor, releases.max_skeleton_share, releases.max_search_free
        )

    def plan_stages(self) -> list[PlannedStage]:
        """Return all stages after the corpus, in order, with their keys."""
        # Where the dump lies and how the work is cut decide no row; the corpus is known by its digest.
        settings = self.config.model_dump(mode="json", exclude={"runtime", "corpus"})
        digest = digest_value([settings, self.corpus.digest])
        planned: dict[str, PlannedStage] = {}
        for name, sources in SOURCES[self.config.method].items():
            stage = self.build_stage(name)
            inputs = [self.corpus.digest, *(planned[source].key for source in sources)]
            decides = [stage.fingerprint(), *filter(None, [digest_checks(name)])]
            key = make_stage_key(stage.name, stage.version, digest_value(decides), inputs)
            folder = self.workspace.stage(name, key)
            planned[name] = PlannedStage(stage, key, folder, tuple(planned[source] for source in sources), digest)
        return list(planned.values())
