"""The whole configuration of a run."""

from typing import Literal

from pydantic import Field

from pipelines.settings.attempts import (
    DifficultyConfig,
    JudgingConfig,
    ReleasesConfig,
    RolloutsConfig,
    TrajectoriesConfig,
)
from pipelines.settings.base import Section
from pipelines.settings.models import BudgetConfig, ModelsConfig, RuntimeConfig
from pipelines.settings.pictures import (
    EncoderConfig,
    EnhancementsConfig,
    GroundingsConfig,
    ImageSearchConfig,
    OcrConfig,
)
from pipelines.settings.questions import ChecksConfig, InjectionsConfig, PathsConfig, QuestionsConfig, RewritesConfig
from pipelines.settings.sources import CommonsConfig, CorpusConfig, SeedsConfig, SparqlConfig, SplitsConfig
from pipelines.settings.tools import LiveConfig, ToolsConfig


class RunConfig(Section):
    """Everything a run is told."""

    recipe: str = Field(description="name of the recipe")
    method: Literal["paths", "injection"] = Field(
        "paths",
        description="paths: walk, then hide (OpenSearch-VL); injection: ask, then hide behind facts (VSearcher)",
    )
    seed: int = Field(7, ge=0, description="seed of every choice the pipeline makes")
    corpus: CorpusConfig = CorpusConfig()
    seeds: SeedsConfig = SeedsConfig()
    sparql: SparqlConfig = SparqlConfig()
    commons: CommonsConfig = CommonsConfig()
    splits: SplitsConfig = SplitsConfig()
    paths: PathsConfig = PathsConfig()
    questions: QuestionsConfig = QuestionsConfig()
    rewrites: RewritesConfig = RewritesConfig()
    injections: InjectionsConfig = InjectionsConfig()
    checks: ChecksConfig = ChecksConfig()
    groundings: GroundingsConfig = GroundingsConfig()
    encoder: EncoderConfig = EncoderConfig()
    image_search: ImageSearchConfig = ImageSearchConfig()
    ocr: OcrConfig = OcrConfig()
    tools: ToolsConfig = ToolsConfig()
    live: LiveConfig = LiveConfig()
    difficulty: DifficultyConfig = DifficultyConfig()
    judging: JudgingConfig = JudgingConfig()
    enhancements: EnhancementsConfig = EnhancementsConfig()
    rollouts: RolloutsConfig = RolloutsConfig()
    trajectories: TrajectoriesConfig = TrajectoriesConfig()
    releases: ReleasesConfig = ReleasesConfig()
    models: ModelsConfig = ModelsConfig()
    budget: BudgetConfig = BudgetConfig()
    runtime: RuntimeConfig = RuntimeConfig()
