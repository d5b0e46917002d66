"""What a release's pictures come to in numbers: how they were chosen, how easily they are looked up, how degraded."""

from collections import Counter
from collections.abc import Sequence

from pipelines.release.statistics import Number, Table, count_rows, count_values, describe_numbers, share
from schemas.enhancements import Enhancement
from schemas.groundings import Depiction


def measure_grounding(questions: Sequence[Enhancement]) -> Table:
    """Return rankers and sources, how scores and margins lie, and what OCR and a search by picture find."""
    seen = [question.depiction for question in questions if question.depiction is not None]
    table: dict[str, dict[str, Number]] = {}
    for name, values in (
        ("ranked by", [each.ranker for each in seen]),
        ("from", [each.source for each in seen]),
        ("to look up", [each.ease or "not searched" for each in seen]),
        ("to look up at training resolution", [each.ease_at_training or "not searched" for each in seen]),
        ("read by", [" and ".join(each.engines) or "nobody" for each in seen]),
        ("Commons says it depicts the anchor", [_say(each.depicts) for each in seen]),
    ):
        table |= {f"{name}: {value}": dict(row) for value, row in count_values(values).items()}
    table["with text that tells nothing"] = dict(count_rows(bool(each.text) for each in seen))
    table["candidates a question"] = dict(describe_numbers([each.candidates for each in seen]))
    margins = [each.margin for each in seen if each.margin is not None]
    if margins:
        table |= _measure_margins(seen, margins)
    return table


def _measure_margins(seen: Sequence[Depiction], margins: Sequence[float]) -> dict[str, dict[str, Number]]:
    judged = [each for each in seen if each.margin is not None]
    return {
        "score": dict(describe_numbers([each.score for each in judged])),
        "margin over the best distractor": dict(describe_numbers(margins)),
        "distractors": dict(describe_numbers([each.distractors for each in judged])),
        "over the absolute threshold": dict(count_rows(bool(each.over_threshold) for each in judged)),
    }


def measure_enhancements(questions: Sequence[Enhancement]) -> Table:
    """Return how many pictures are degraded, by degradation and what showed that its repair restores them; strengths.

    A strength is looked for, picture by picture, so hardly two are alike: they are described, not listed.
    """
    trials = [question.trial for question in questions if question.trial is not None]
    found = Counter(f"{trial.degradation}, {trial.repair}, shown by {trial.test}" for trial in trials)
    rows = {"degraded": len(trials), **{name: found[name] for name in sorted(found)}}
    table: Table = {name: {"rows": count, "share": share(count, len(questions))} for name, count in rows.items()}
    for degradation in sorted({trial.degradation for trial in trials}):
        strengths = [trial.strength for trial in trials if trial.degradation == degradation]
        table[f"strength of {degradation}"] = dict(describe_numbers(strengths))
    return table


def _say(depicts: bool | None) -> str:
    return "not stated" if depicts is None else "yes" if depicts else "no"
