"""Measures which picture is taken for an anchor, and which sets of wrong ones are let through.

A small CLIP is trained on drawn buildings and captions and ranks candidate sets of buildings that it never saw; needs
the extra ``clip``. A set is let through when any of its pictures passes, as the stage would take that one.
"""

import time
from collections.abc import Iterable
from pathlib import Path

from pipelines.config.settings import GroundingsConfig
from pipelines.services.clients.encoder import CachedEncoder
from pipelines.services.protocols import ImageEncoder
from tests.benchmarks.measured import Measured
from tests.clip.trials import CANDIDATES, Town, build_town, choose_looks, list_sets, rank_sets
from tests.planted.shares import make_share, show_interval

MARGINS = (0.0, 0.02, 0.05)
DISTRACTORS = (5, 20, 50)
DEFAULT = GroundingsConfig()
LEAST = 0.95


def measure(scratch: Path) -> list[Measured]:
    """Train, build the wiki, and measure."""
    from tests.clip.models import make_encoder
    from tests.clip.training import train_clip

    known, strangers = choose_looks()
    before = time.process_time()
    written = train_clip(scratch / "model", frozenset([*known.values(), *strangers.values()]))
    trained = time.process_time() - before
    town = build_town(scratch / "wiki", known, strangers)
    encoder = make_encoder(written.config, written.weights, device="cpu")
    try:
        measured = measure_town(town, CachedEncoder(encoder, scratch / "embeddings"))
    finally:
        encoder.close()
        town.corpus.close()
    return [Measured("a small CLIP trained on drawn pictures, processor time", f"{trained:.0f} s"), *measured]


def measure_town(town: Town, encoder: ImageEncoder) -> list[Measured]:
    """Measure a wiki's candidate sets with a trained encoder."""
    sets = list_sets(town)
    measured = []
    for rules in (GroundingsConfig(distractors=count) for count in DISTRACTORS):
        right, wrong, strange = (
            rank_sets(town, encoder, rules, some) for some in (sets.right, sets.wrong, sets.strange)
        )
        if rules == DEFAULT:
            first = [outcome.shown[0] == anchor for outcome, (anchor, _) in zip(right, sets.right, strict=True)]
            what = f"sets of {CANDIDATES} views of one kind of building: the anchor's own comes first"
            measured.append(Measured(what, _show(first), f"{LEAST:.0%}"))
        for check in _list_checks(rules):
            results = (
                _show(
                    outcome.find_taken(check) == anchor for outcome, (anchor, _) in zip(right, sets.right, strict=True)
                ),
                _show(not outcome.find_taken(check) for outcome in wrong),
                _show(not outcome.find_taken(check) for outcome in strange),
            )
            budget = (
                f"wrong {LEAST:.0%}" if rules == DEFAULT and check.decides == "margin" and not check.min_margin else ""
            )
            what = "right picture taken, wrong sets refused, sets of strangers refused"
            measured.append(Measured(f"{_describe(check)}: {what}", "; ".join(results), budget))
    return measured


def _list_checks(rules: GroundingsConfig) -> list[GroundingsConfig]:
    checks = [rules.model_copy(update={"min_margin": margin}) for margin in MARGINS]
    return [*checks, GroundingsConfig(decides="threshold")] if rules == DEFAULT else checks


def _describe(check: GroundingsConfig) -> str:
    if check.decides == "threshold":
        return f"similarity over {check.threshold} alone"
    return f"margin over {check.min_margin} to {check.distractors} others described most like the anchor"


def _show(claims: Iterable[bool]) -> str:
    found = list(claims)
    share = make_share(sum(found), len(found))
    return f"{share.share:.1%} ({show_interval(share)})"
