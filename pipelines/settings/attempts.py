"""Attempts and rollouts, which of them are kept, and what is published."""

from typing import Literal, get_args

from pydantic import Field

from pipelines.settings.base import Section


class DifficultyConfig(Section):
    """Attempts under conditions of rising cost, and which questions they refuse."""

    preset: Literal["opensearch-vl", "vsearcher", "mars", "fvqa", "grid"] = Field(
        "opensearch-vl",
        description="which conditions are measured and decide: opensearch-vl (no tool, then one image search), "
        "vsearcher (with the picture, text alone, picture too simple), mars (rare successes with the picture), fvqa "
        "(search-need labels), grid (every condition; only an alternative that is not refuted refuses)",
    )
    attempts: int = Field(8, ge=1, description="attempts a condition and solver")
    max_correct: int = Field(
        0,
        ge=0,
        description="opensearch-vl, vsearcher: a question with more correct attempts in a condition is refused; other "
        "presets have a rule of their own",
    )
    solvers: tuple[str, ...] = Field(
        ("solver",), description="who attempts, the cheapest first: solver, or names under models.solvers"
    )
    text_solver: str = Field("", description="who attempts without the picture, where that is another model")
    early_stop: bool = Field(True, description="no further attempt once no further one can change the decision")
    search_hits: int = Field(3, ge=1, description="results of one search that an attempt is shown")
    alternatives: bool = Field(
        True, description="a wrong answer given twice is held against the corpus and refuses what it may fit"
    )


class JudgingConfig(Section):
    """Judges of what the typed comparer leaves open: models.judge, and models.second_judge to agree with it."""

    max_unscored: float = Field(
        0.2, ge=0.0, le=1.0, description="largest share of attempts that nobody could score; with more the run stops"
    )
    min_attempts: int = Field(200, ge=1, description="attempts before that share is looked at")


class RolloutsConfig(Section):
    """Teacher rollouts."""

    attempts: int = Field(5, ge=1, description="rollouts a question (K)")
    max_calls: int = Field(30, ge=1, description="tool calls a rollout; one more turn is left for the answer")
    max_seconds: float = Field(
        9000.0, gt=0.0, description="seconds that models and live tools may take in a rollout, recorded ones included"
    )
    max_context: int = Field(200_000, ge=1000, description="characters of transcript a rollout")
    max_context_tokens: int = Field(
        0, ge=0, description="tokens in and out of one turn, as the teacher's server counts them; 0 is no limit"
    )
    dialect: Literal["synth", "opensearch-vl", "vsearcher", "mmsearch-r1", "mars", "dr-mmsearch", "native"] = Field(
        "synth",
        description="protocol that the teacher speaks: tags, tool names and system prompt of a published system, ours, "
        "or native tool calls",
    )
    bad_turns: Literal["stop", "tell"] = Field(
        "stop", description="a turn that does not parse ends the rollout (VSearcher), or is answered with an error"
    )
    fatal_errors: int = Field(3, ge=1, description="consecutive tool errors that are fatal (OpenSearch-VL, K)")
    stop_when_fatal: bool = Field(True, description="end a rollout at its fatal step")


TrajectoryCheck = Literal[
    "tool-errors",
    "from-memory",
    "unsupported",
    "memory-jump",
    "path-not-covered",
    "repetition",
    "contaminated",
    "unknown-image",
    "unseen-claim",
    "too-long",
]
ALL_CHECKS: tuple[TrajectoryCheck, ...] = get_args(TrajectoryCheck)


class TrajectoriesConfig(Section):
    """The rejection cascade. Format and the answer always decide."""

    max_accepted: int = Field(2, ge=1, description="trajectories kept of a question")
    checks: tuple[TrajectoryCheck, ...] = Field(ALL_CHECKS, description="mechanical checks that refuse")
    max_tokens: int = Field(32_000, ge=0, description="length a student is trained at, pictures included; 0: no limit")
    image_pixels: int = Field(262_144, ge=1, description="pixels of a picture as a student sees it")
    tokenizer: str = Field(
        "", description="tokenizer.json of the student, read with `tokenizers`; empty: lengths are estimated from above"
    )
    overlap: float = Field(
        0.8, gt=0.0, le=1.0, description="share of words that two queries have in common to be a repetition"
    )
    max_repeats: int = Field(0, ge=0, description="repetitions that a rollout may have")
    min_process: float = Field(
        3.0, ge=1.0, le=5.0, description="lowest mean mark of models.process_judge; none is asked where there is none"
    )


class ReleasesConfig(Section):
    """Published datasets."""

    image_results: int = Field(5, ge=0, le=10, description="results of a search by the picture kept with RL questions")
    max_search_free: float = Field(
        1.0, ge=0.0, le=1.0, description="largest share of a split's questions that need no search, where that is known"
    )
    max_per_anchor: int = Field(3, ge=1, description="questions of a split sharing an anchor")
    max_per_answer: int = Field(5, ge=1, description="questions of a split sharing an answer or an answer node")
    max_skeleton_share: float = Field(
        0.05,
        gt=0.0,
        le=1.0,
        description="largest share of questions with the same words around names, types and values",
    )
    unknown_licences: bool = Field(
        False, description="publish pages and pictures whose licence is not known, as live tools bring them, marked so"
    )
    shard_bytes: int = Field(400_000_000, ge=1_000_000, description="largest Parquet file, bytes before compression")
