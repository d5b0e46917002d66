"""Why a question counts as one that can be solved: one rule for the stage that says so and for verification."""

from collections.abc import Iterable

from schemas.datasets import Cell, Standing
from schemas.proofs import Proof, Trace

COVERED = frozenset({"en"})
"""Languages whose words the checks, the scripted players and the grammar reader know."""


def is_solved(cells: Iterable[Cell]) -> bool:
    """Say whether an attempt was right."""
    return any(cell.correct for cell in cells)


def find_standing(proof: Proof, trace: Trace | None, solved: bool, covered: bool) -> Standing:
    """Return why a question counts as solvable."""
    if solved:
        return "solved"
    if not covered:
        return "unproved"
    if trace is not None:
        return "quoted"
    return "proved" if proof.corpus and proof.nodes else "unproved"
