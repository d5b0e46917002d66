"""What attempts say of a release's questions: cells summed up, and why each counts as a question that can be solved."""

from collections import Counter
from collections.abc import Mapping, Sequence

from pipelines.release.statistics import DIGITS, Number, share
from pipelines.scoring.intervals import bound_mean
from schemas.difficulty import Cell, Difficulty


def measure_difficulty(questions: Sequence[Difficulty]) -> dict[str, dict[str, str | Number]]:
    """Return the attempts by condition and solver, by name; an interval takes each question's attempts as one."""
    cells: dict[str, list[Cell]] = {}
    for question in questions:
        for cell in question.cells:
            cells.setdefault(f"{cell.condition}, {cell.solver}", []).append(cell)
    return {name: _sum_cells(cells[name]) for name in sorted(cells)}


def _sum_cells(cells: Sequence[Cell]) -> dict[str, str | Number]:
    correct, attempts = sum(cell.correct for cell in cells), sum(cell.attempts for cell in cells)
    scored = attempts - sum(cell.unscored for cell in cells)
    asked = sum(cell.attempts > cell.unscored for cell in cells)
    # Attempts at one question are alike: at worst all of them say what one says.
    interval = bound_mean(asked * correct / scored if scored else 0.0, asked, 1.0)
    return {
        "questions": len(cells),
        "planned": sum(cell.planned for cell in cells),
        "attempts": attempts,
        "unscored": attempts - scored,
        "correct": correct,
        "rate": share(correct, scored),
        "low": round(interval.low, DIGITS),
        "high": round(interval.high, DIGITS),
        "never solved": sum(cell.correct == 0 for cell in cells),
        "latest reply": max(cell.day for cell in cells),
    }


def measure_standing(questions: Sequence[Difficulty]) -> dict[str, dict[str, Number]]:
    """Return rows and shares by standing and by search need, of alternatives, and of what had to be left out."""
    counts: Counter[str] = Counter()
    for question in questions:
        counts[f"standing: {question.standing}"] += 1
        counts[f"search need: {question.search_need or 'not measured'}"] += 1
        counts["with wrong answers given twice, all refuted"] += bool(question.alternatives)
        counts["shown a swapped picture"] += bool(question.swapped_with)
        counts.update(f"left out: {name}" for name in question.left_out)
    return {name: {"rows": counts[name], "share": share(counts[name], len(questions))} for name in sorted(counts)}


def list_unmeasured(questions: Sequence[Difficulty], reasons: Mapping[str, str]) -> dict[str, str]:
    """Return what was not measured, without the picture ablation where pictures were swapped."""
    swapped = any(question.swapped_with for question in questions)
    return {name: reason for name, reason in reasons.items() if not (swapped and name == "picture ablation")}
