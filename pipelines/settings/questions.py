"""Paths, questions, rewrites, injections, and how their checks are run."""

from pydantic import Field

from pipelines.settings.base import Section
from schemas.proofs import Agreement


class PathsConfig(Section):
    """Constrained walks."""

    hops: tuple[int, ...] = Field((2, 3, 4), description="path lengths h")
    weights: tuple[float, ...] = Field((0.4, 0.4, 0.2), description="probability of each length")
    walks: int = Field(10, ge=1, description="walks tried for a seed before it is dropped")
    per_seed: int = Field(1, ge=1, description="paths made from a seed")
    text_hops: bool = Field(False, description="allow hops made by a link in a sentence, beside infobox relations")
    relation_preference: float = Field(
        1.0, ge=0.0, le=1.0, description="probability that a step looks for an infobox relation before a link"
    )
    look_ahead: bool = Field(
        True, description="step only where an answer is in reach; false draws failed walks anew, as published"
    )


class QuestionsConfig(Section):
    """Canonical questions, and what their answers must be."""

    max_answer_tokens: int = Field(6, ge=1, description="longest answer, white-space tokens")
    agreement: Agreement = Field(
        "required",
        description="what a sentence of the answer's page must say beside the infobox: required (the same), "
        "uncontradicted (nothing else) or off",
    )
    volatile: bool = Field(False, description="allow answers that change with time: populations, office holders, ranks")
    other_corpus: str = Field(
        "",
        description="corpus folder built from a dump of the same wiki at least a year away; an answer that differs "
        "there is refused",
    )
    max_answer_share: float = Field(
        0.05, gt=0.0, le=1.0, description="largest share of one answer among all of its relation; 1 is no limit"
    )
    obfuscated_answers: float = Field(
        0.0, ge=0.0, le=1.0, description="share of fuller dates of which only the month and year, or year, is asked"
    )


class RewritesConfig(Section):
    """Fuzzy rewriting."""

    candidates: int = Field(6, ge=1, description="descriptors tried for a bridge")
    min_alone_first: int = Field(
        5, ge=1, description="entities the first bridge's descriptor must fit without the chain"
    )
    min_alone: int = Field(2, ge=1, description="the same for the other bridges")
    near_misses: int = Field(
        50,
        ge=0,
        description="entities a node looked up in their articles because their infoboxes leave a fact open; with more "
        "the descriptor is refused; 0 trusts infoboxes to be complete",
    )
    forbid_shortcuts: bool = Field(True, description="refuse a shorter link path or the answer on an earlier page")


class InjectionsConfig(Section):
    """Rounds of text injection, for method = "injection"."""

    rounds: tuple[int, ...] = Field((1, 3, 5), description="numbers of rounds: easy, medium, hard")
    weights: tuple[float, ...] = Field((0.4, 0.3, 0.3), description="share of each number of rounds")
    tries: int = Field(10, ge=1, description="chains tried for a seed before it is dropped")
    page_words: int = Field(400, ge=0, description="words of an article that a model is shown")


class ChecksConfig(Section):
    """How checks are run."""

    audit: bool = Field(False, description="run every check on a refused question and record all codes, not the first")
