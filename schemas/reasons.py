"""The closed list of rejection reasons. A stage may use only its own, and those that its plugins declare."""

from typing import Annotated, Final, Literal, NewType, get_args

from pydantic import StringConstraints

CorpusReason = Literal["namespace", "dangling-redirect", "redirect-cycle"]
SeedReason = Literal[
    "list-page", "disambiguation-page", "no-infobox", "no-type", "abstract", "no-image", "image-not-free",
    "image-too-small", "image-unusable", "in-degree-low", "hub", "class", "counts-unknown", "too-well-known",
    "too-few-statements", "not-in-corpus", "other-split", "over-quota", "same-article",
]  # fmt: skip
PathReason = Literal["no-walk", "no-answer-in-reach"]
QuestionReason = Literal[
    "answer-untyped", "answer-too-long", "answer-form", "answer-is-bridge", "not-derivable", "multi-valued",
    "answer-unconfirmed", "answer-disputed", "volatile", "guessable-answer", "no-fact", "reading-differs", "unread",
    "writer-declined", "unnamed", "concept-not-in-answer", "rules-broken", "not-curious",
]  # fmt: skip
RewriteReason = Literal[
    "alias-leak", "demonym-leak", "answer-leak", "not-unique", "multi-valued", "near-miss", "too-many-near-misses",
    "no-injection", "picture-not-needed", "volatile", "entity-not-in-question", "answer-changed", "stands-alone",
    "shorter-path", "answer-on-earlier-page", "no-descriptor", "descriptor-lost",
    "reading-differs", "unread", "category-over-share", "in-other-release",
]  # fmt: skip
ArticleReason = Literal[
    "too-old", "undated", "no-picture", "picture-too-small", "picture-unusable", "too-short",
    "duplicate-article", "duplicate-picture", "source-over-quota",
]  # fmt: skip
AnchorReason = Literal["nothing-named", "quote-not-found", "anchor-not-in-article", "picture-readable"]
ChainReason = Literal[
    "no-bridge", "no-question", "quote-not-found", "link-unsupported", "bridge-is-anchor", "answer-is-bridge",
    "answer-in-first-link", "answer-untyped", "answer-too-long", "precision-unasked", "alias-leak", "demonym-leak",
    "answer-leak", "reference-missing", "chain-refused",
]  # fmt: skip
GroundingReason = Literal[
    "no-picture", "picture-too-small", "picture-unusable", "picture-not-free", "picture-of-another",
    "picture-ambiguous", "picture-duplicate", "picture-too-simple", "picture-readable", "reference-missing",
    "reference-narrower", "alias-leak", "demonym-leak", "answer-leak",
    "precision-unasked", "volatile", "one-retrieval", "descriptor-lost", "fact-unproved", "picture-not-needed",
    "reading-differs", "unread", "given-away", "second-entity", "several-answers",
    "undecided", "refused-by-person",
]  # fmt: skip
PoolReason = Literal[
    "no-question", "no-answer", "placeholder-answer", "answer-untyped", "answer-too-long", "answer-leak", "no-picture",
    "several-pictures", "picture-unusable", "duplicate-question", "other-split",
]  # fmt: skip
MixtureReason = Literal["over-share"]
DifficultyReason = Literal[
    "solved-without-tools", "solved-by-one-text-search", "solved-by-one-image-search", "solved-by-one-search",
    "not-rare", "picture-too-simple", "answer-leak", "never-solved", "alternative-answer", "unproved", "unscored",
    "clause-answers",
]  # fmt: skip
MixReason = Literal["search-free-over-share", "search-required-over-share"]
RolloutReason = Literal["other-split", "no-teacher-turn"]
TrajectoryReason = Literal[
    "format", "tool-errors", "no-answer", "wrong-answer", "unscored", "from-memory", "unsupported", "memory-jump",
    "path-not-covered", "repetition", "contaminated", "unknown-image", "unseen-claim", "too-long", "poor-process",
    "process-unscored", "incoherent", "implausible", "unverified",
]  # fmt: skip
BenchmarkReason = Literal[
    "benchmark-question", "benchmark-words", "benchmark-near", "benchmark-fact", "benchmark-entity",
    "benchmark-picture",
]  # fmt: skip
SelectionReason = Literal[
    BenchmarkReason,
    "duplicate-question", "duplicate-path", "duplicate-picture", "near-duplicate", "fact-over-used",
    "anchor-over-used", "answer-over-used", "skeleton-over-used", "search-free-over-share",
    "search-required-over-share", "shared-across-splits", "rounds-over-share", "in-other-release", "over-target",
    "guessed-without-picture",
]  # fmt: skip
ReleaseReason = Literal[SelectionReason, "tells-held-out-fact"]

Reason = Literal[
    CorpusReason,
    SeedReason,
    PathReason,
    QuestionReason,
    RewriteReason,
    ArticleReason,
    AnchorReason,
    ChainReason,
    GroundingReason,
    PoolReason,
    MixtureReason,
    DifficultyReason,
    MixReason,
    RolloutReason,
    TrajectoryReason,
    ReleaseReason,
]

PluginReason = NewType("PluginReason", str)
"""A plugin's own reason, as ``plugin:reason``; the plugin declares it with its meaning, and manifests keep both."""
AnyReason = Reason | Annotated[PluginReason, StringConstraints(pattern=r"^[a-z][a-z0-9_]*:[a-z0-9][a-z0-9-]*$")]

STAGE_REASONS: Final[dict[str, tuple[str, ...]]] = {
    "corpus": get_args(CorpusReason),
    "seeds": get_args(SeedReason),
    "paths": get_args(PathReason),
    "questions": get_args(QuestionReason),
    "rewrites": get_args(RewriteReason),
    "articles": get_args(ArticleReason),
    "anchors": get_args(AnchorReason),
    "bridges": get_args(ChainReason),
    "groundings": get_args(GroundingReason),
    "pools": get_args(PoolReason),
    "mixtures": get_args(MixtureReason),
    "difficulty": get_args(DifficultyReason),
    "enhancements": (),
    "selections": get_args(SelectionReason),
    "rollouts": get_args(RolloutReason),
    "trajectories": get_args(TrajectoryReason),
    "releases": get_args(ReleaseReason),
}
