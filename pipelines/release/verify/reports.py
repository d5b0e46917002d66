"""What verification found, and what the proofs of a release demanded, in words."""

from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.release.rows import (
    ProofRow,
)
from schemas.proofs import Proof, Reading, Screening


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a row or file, and which."""

    where: str
    what: str


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What verification found in one release."""

    dataset: str
    version: str
    rows: int
    """Those with a path or a trace: whatever verification derives again, and whose proof is missing."""
    verified: int
    problems: tuple[Problem, ...]
    claims: tuple[str, ...] = ()
    """What the proofs demanded, in words: a release made under weak thresholds verifies and says so."""
    unproved: int = 0
    """Rows from outside, of pools: neither a path nor a trace stands behind them."""
    held: int = 0
    """Those of them in which everything holds that needs no proof."""
    root: str = ""
    """sha256 of the manifest: who has it from the release's author knows a manifest that somebody else sealed."""
    underived: tuple[str, ...] = ()
    """What was not derived but taken from the release itself, in words."""

    @property
    def passed(self) -> bool:
        """Whether every row and every file holds, and there was at least one row."""
        whole = self.verified == self.rows and self.held == self.unproved
        return self.rows + self.unproved > 0 and whole and not self.problems

    def describe(self) -> str:
        """Return how many rows verify; rows without a proof are counted separately."""
        return describe_rows([self])


def describe_rows(reports: Sequence[VerifyReport]) -> str:
    """Return ``41/41``, and of rows without a proof how many there are: they are never counted as proved."""
    count = f"{sum(each.verified for each in reports)}/{sum(each.rows for each in reports)}"
    unproved, held = sum(each.unproved for each in reports), sum(each.held for each in reports)
    if not unproved:
        return count
    wrong = f", {unproved - held} of them with problems" if held < unproved else ""
    return f"{count} proved rows verify; {unproved} rows are from outside and have no proof{wrong}"


def describe_origin(row: ProofRow) -> str:
    """Return in words what there is in place of a proof."""
    origin = row.origin
    return f"no proof: from the pool {origin.pool}, {origin.licence or 'licence unknown'}" if origin else "no proof"


def describe_basis(row: ProofRow) -> str:
    """Return in words what stands behind a row: what its proof demanded, or where it comes from without one."""
    return describe_claim(row) if row.proof.nodes or row.trace is not None else describe_origin(row)


def describe_claim(row: ProofRow) -> str:
    """Return in words what a proof's thresholds and switches demanded."""
    if row.trace is not None:
        return (
            "each fact is quoted from an article, byte for byte, with both its ends and its relation; no name is in "
            f"the question; that the words ask these facts was judged by {row.trace.decided_by}, not derived"
        )
    if row.reading is None or row.screening is None:
        return "nobody read the words back"
    return _describe_demands(row.proof, row.reading, row.screening)


def _describe_demands(proof: Proof, reading: Reading, screening: Screening) -> str:
    least = proof.thresholds
    agreement = {
        "required": "a sentence says the answer too",
        "uncontradicted": "no sentence says another answer",
        "off": "prose not compared with the answer",
    }
    choices: tuple[tuple[object, str, str], ...] = (
        (least.answers, f"at least {least.answers} answers over other pictures", "need for the picture not counted"),
        (proof.shortcuts_checked, "no shorter path", "shorter paths not searched"),
        (
            least.near_misses,
            f"articles of up to {least.near_misses} near misses read, none left open",
            "near misses not checked",
        ),
        (True, agreement[least.agreement], ""),
        (
            least.answer_share < 1.0,
            f"no answer with more than {least.answer_share:.0%} of its relation",
            "frequency of the answer not checked",
        ),
        (not least.volatile, "no fact that changes with time", "facts that change with time allowed"),
        (least.read_pages, "pages read for other values", "pages not read for other values"),
        (
            least.retrieval_rank,
            f"not among the first {least.retrieval_rank} results of one search",
            "one search not tried",
        ),
    )
    return "; ".join(
        (
            "one entity fits every hidden node given the chain",
            f"at least {least.alone_first} the first and {least.alone} the others without it",
            *(demanded if holds else dropped for holds, demanded, dropped in choices),
            f"words read back by {reading.reader.partition(':')[0]}",
            f"what they give away, and what else a search finds for a step, by {screening.reader.partition(':')[0]}",
        )
    )
