"""The closed list of rejection reasons. A stage may use only its own."""

from typing import Final, Literal, get_args

CorpusReason = Literal["namespace", "dangling-redirect", "redirect-cycle"]
SeedReason = Literal[
    "list-page", "disambiguation-page", "no-infobox", "no-type", "abstract", "no-image", "image-not-free",
    "image-too-small", "image-unusable", "in-degree-low", "hub", "class", "counts-unknown", "too-well-known",
    "too-few-statements", "not-in-corpus", "other-split", "over-quota",
]  # fmt: skip
PathReason = Literal["no-walk", "no-answer-in-reach"]
QuestionReason = Literal[
    "answer-untyped", "answer-too-long", "answer-form", "answer-is-bridge", "not-derivable", "multi-valued",
    "answer-unconfirmed", "answer-disputed", "volatile", "guessable-answer", "no-fact", "reading-differs", "unread",
    "writer-declined", "asked-often",
]  # fmt: skip
RewriteReason = Literal[
    "alias-leak", "demonym-leak", "answer-leak", "not-unique", "multi-valued", "near-miss", "too-many-near-misses",
    "no-injection", "picture-not-needed", "volatile", "entity-not-in-question", "answer-changed", "stands-alone",
    "shorter-path", "answer-on-earlier-page", "no-descriptor", "descriptor-lost",
    "reading-differs", "unread",
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
    "reference-narrower", "alias-leak", "demonym-leak", "file-leak", "answer-leak",
    "precision-unasked", "volatile", "one-retrieval", "descriptor-lost", "fact-unproved", "picture-not-needed",
    "reading-differs", "unread", "given-away", "second-entity", "several-answers",
    "undecided", "refused-by-person",
]  # fmt: skip
DifficultyReason = Literal[
    "solved-without-tools", "solved-by-one-text-search", "solved-by-one-image-search", "solved-by-one-search",
    "not-rare", "picture-too-simple", "answer-leak", "never-solved", "alternative-answer", "unproved", "unscored",
    "clause-answers",
]  # fmt: skip
RolloutReason = Literal["other-split", "no-teacher-turn"]
TrajectoryReason = Literal[
    "format", "tool-errors", "no-answer", "wrong-answer", "unscored", "from-memory", "unsupported", "memory-jump",
    "path-not-covered", "repetition", "contaminated", "unknown-image", "unseen-claim", "too-long", "poor-process",
    "process-unscored",
]  # fmt: skip
ReleaseReason = Literal[
    "duplicate-question", "duplicate-path", "duplicate-picture", "anchor-over-used", "answer-over-used",
    "skeleton-over-used", "search-free-over-share", "shared-across-splits", "tells-held-out-fact",
]  # fmt: skip

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
    DifficultyReason,
    RolloutReason,
    TrajectoryReason,
    ReleaseReason,
]

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
    "difficulty": get_args(DifficultyReason),
    "enhancements": (),
    "rollouts": get_args(RolloutReason),
    "trajectories": get_args(TrajectoryReason),
    "releases": get_args(ReleaseReason),
}
