"""What pairs are made in, and when one flips."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from pipelines.checks.examination import Claim
from pipelines.corpus.store import Corpus
from pipelines.graph.query import locate_nodes
from schemas.datasets import Question
from tests.pipelines.painters import build_painters
from tests.pipelines.stages.chain_wiki import build_chain_wiki
from tests.pipelines.stages.test_injections import make_question
from tests.planted.scenes import Case, Pool, Scene, Twins, make_pair
from tests.planted.words import Pair, load_half
from tests.toy import build_toy_corpus

WORDS = load_half("open")
SCENES = 4
"""Pairs of a defect that lies in the wiki."""
Judge = Callable[[], Sequence[Pair]]


def flips(pair: Pair) -> bool:
    """Say whether the clean twin passes and the defective one is refused with a right code."""
    return pair.clean.outcome == "PASS" and pair.defective.outcome != "PASS" and pair.defective.code in pair.codes


@dataclass(frozen=True)
class Corpora:
    """What pairs are made in."""

    pool: Pool
    painters: Corpus
    chain: Corpus
    question: Question
    """What the initial QA of the chain's wiki is."""
    toy: Corpus

    @property
    def cases(self) -> list[Case]:
        """The pool's questions that are far from every text search."""
        corpus = self.pool.corpus
        return [Case(self.pool, row, tuple(locate_nodes(corpus, row.proof.nodes))) for row in self.pool.steady]


def build_corpora(pool: Pool, folder: Path) -> Corpora:
    chain, toy = build_chain_wiki(folder / "chain"), build_toy_corpus(folder / "toy")
    return Corpora(pool, build_painters(folder / "painters"), chain, make_question(chain), toy)


def keep(corpora: Corpora, plant: Callable[[Case], Twins | None], count: int = SCENES) -> Judge:
    """Return what judges the same twins each time: the first whose pairs flip while the checks are right."""
    kept: list[tuple[Pool, Twins]] = []

    def judge() -> list[Pair]:
        if not kept:
            made = ((case.pool, twins) for case in corpora.cases if (twins := plant(case)) is not None)
            kept.extend(islice((each for each in made if flips(make_pair(*each))), count))
        return [make_pair(pool, twins) for pool, twins in kept]

    return judge


def examine_pair(case: Case, bad: Claim, *codes: str, clean: Claim | None = None) -> Twins:
    return Twins(bad.text, Scene(clean or case.claim), Scene(bad), codes)


def limit(claim: Claim, **changes: object) -> Claim:
    """Return a claim with other thresholds."""
    thresholds = claim.proof.thresholds.model_copy(update=changes)
    return replace(claim, proof=claim.proof.model_copy(update={"thresholds": thresholds}))
