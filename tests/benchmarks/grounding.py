"""Measures which picture is taken for an anchor, and which sets of wrong ones are let through.

A small CLIP is trained on drawn buildings and captions and ranks candidate sets of buildings that it never saw; needs
the extra ``clip``. A set is let through when any of its pictures passes, as the stage would take that one.
"""

import time
from collections.abc import Iterable
from pathlib import Path

from pipelines.agent import depicting
from pipelines.services.clients.encoder import CachedEncoder
from pipelines.services.protocols import ImageEncoder
from tests.benchmarks.measured import Measured
from tests.clip.trials import CANDIDATES, Town, build_town, choose_looks, list_sets, rank_sets
from tests.planted.shares import make_share, show_interval

DISTRACTORS = (5, 20, 50)
DEFAULT = depicting.DISTRACTORS
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
    for count in DISTRACTORS:
        depicting.DISTRACTORS = count
        right, wrong, strange = (rank_sets(town, encoder, some) for some in (sets.right, sets.wrong, sets.strange))
        if count == DEFAULT:
            first = [outcome.shown[0] == anchor for outcome, (anchor, _) in zip(right, sets.right, strict=True)]
            what = f"sets of {CANDIDATES} views of one kind of building: the anchor's own comes first"
            measured.append(Measured(what, _show(first), f"{LEAST:.0%}"))
        results = (
            _show(outcome.find_taken() == anchor for outcome, (anchor, _) in zip(right, sets.right, strict=True)),
            _show(not outcome.find_taken() for outcome in wrong),
            _show(not outcome.find_taken() for outcome in strange),
        )
        what = f"margin to {count} others: right picture taken, wrong sets refused, sets of strangers refused"
        measured.append(Measured(what, "; ".join(results), f"wrong {LEAST:.0%}" if count == DEFAULT else ""))
    return measured


def _show(claims: Iterable[bool]) -> str:
    found = list(claims)
    share = make_share(sum(found), len(found))
    return f"{share.share:.1%} ({show_interval(share)})"
