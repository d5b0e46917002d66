"""The tables of a configuration: every key with its default, its bounds and what it means.

Units are in the field's description. Published numbers are the defaults of the recipe that publishes them.
"""

from pipelines.settings.attempts import (
    ALL_CHECKS,
    DifficultyConfig,
    JudgingConfig,
    ReleasesConfig,
    RolloutsConfig,
    TrajectoriesConfig,
    TrajectoryCheck,
)
from pipelines.settings.base import Qid, Section
from pipelines.settings.models import BudgetConfig, ModelConfig, ModelsConfig, RuntimeConfig, ServeConfig
from pipelines.settings.pictures import (
    EncoderConfig,
    EnhancementsConfig,
    GroundingsConfig,
    ImageSearchConfig,
    OcrConfig,
    OcrEngine,
)
from pipelines.settings.questions import ChecksConfig, InjectionsConfig, PathsConfig, QuestionsConfig, RewritesConfig
from pipelines.settings.sources import (
    CommonsConfig,
    CorpusConfig,
    GeneratedWorld,
    SeedsConfig,
    SmallCorpus,
    SparqlConfig,
    SplitsConfig,
)
from pipelines.settings.tools import LiveConfig, ToolsConfig

__all__ = [
    "ALL_CHECKS",
    "BudgetConfig",
    "ChecksConfig",
    "CommonsConfig",
    "CorpusConfig",
    "DifficultyConfig",
    "EncoderConfig",
    "EnhancementsConfig",
    "GeneratedWorld",
    "GroundingsConfig",
    "ImageSearchConfig",
    "InjectionsConfig",
    "JudgingConfig",
    "LiveConfig",
    "ModelConfig",
    "ModelsConfig",
    "OcrConfig",
    "OcrEngine",
    "PathsConfig",
    "Qid",
    "QuestionsConfig",
    "ReleasesConfig",
    "RewritesConfig",
    "RolloutsConfig",
    "RuntimeConfig",
    "Section",
    "SeedsConfig",
    "ServeConfig",
    "SmallCorpus",
    "SparqlConfig",
    "SplitsConfig",
    "ToolsConfig",
    "TrajectoriesConfig",
    "TrajectoryCheck",
]
