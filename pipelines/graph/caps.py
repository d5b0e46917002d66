"""Caps on how many paths ask for one fact, have one answer or ask for one relation, decided before any path is drawn.

A shard of seeds cannot count the paths of others. So how often walks end at each fact is estimated from the graph, by
walks from articles that a hash draws, and each fact, answer and relation that would be asked for too often gets a
rate below 1. A seed may ask for it if a hash of the two is below the rate. What a seed may ask for is thus known
without any other seed, the same in every order, and a walk that is refused is drawn anew.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipelines.graph.facts import Attribute, stem_key
from pipelines.ids import draw_unit

ROUNDS = 200
"""Rounds of fitting the rates; each refusal leaves more of the paths to what is not refused."""
DAMPED = 0.25
"""Power of a correction: a fact has three keys, and full corrections of all three would swing to and fro."""
EVEN = 2.0
"""Where there are too few answers for the cap, each may have so many times its even share."""


@dataclass(frozen=True, slots=True)
class Ending:
    """A fact that walks end at."""

    keys: tuple[str, ...]
    """Of the fact, its answer and its relation, as :func:`name_keys` returns them."""
    share: float
    """Expected share of walks that ask for it."""


def name_keys(attribute: Attribute) -> tuple[str, ...]:
    """Return what is capped of an attribute: its fact, its answer, its relation."""
    relation = stem_key(attribute.fact.key)
    return f"fact {attribute.fact.node} {relation}", f"answer {attribute.answer.key}", f"relation {relation}"


def fit_rates(endings: Sequence[Ending], answer_share: float, relation_share: float) -> dict[str, float]:
    """Return the rate of each key that is refused at times.

    Args:
        endings: facts with their expected shares; what is missing of 1 is spread over other facts.
        answer_share: cap of a fact and of an answer.
        relation_share: cap of a relation.
    """
    rest = max(1.0 - sum(ending.share for ending in endings), 0.0)
    kinds = Counter(key.partition(" ")[0] for key in {key for ending in endings for key in ending.keys})
    wanted = {"relation": relation_share, "fact": answer_share, "answer": answer_share}
    caps = {kind: max(cap, EVEN * (1.0 - rest) / max(kinds[kind], 1)) for kind, cap in wanted.items()}
    rates = {key: 1.0 for ending in endings for key in ending.keys}
    for _ in range(ROUNDS):
        shares: Counter[str] = Counter()
        total = rest
        for ending in endings:
            share = ending.share
            for key in ending.keys:
                share *= rates[key]
            total += share
            shares.update(dict.fromkeys(ending.keys, share))
        over = {key: share / total / caps[key.partition(" ")[0]] for key, share in shares.items()} if total else {}
        for key, excess in over.items():
            rates[key] = min(rates[key] * excess**-DAMPED, 1.0) if excess > 0 else rates[key]
    return {key: rate for key, rate in rates.items() if rate < 1.0}


def admit(rates: Mapping[str, float], seed: str, keys: Sequence[str]) -> bool:
    """Say whether a seed may ask for a fact with these keys."""
    return all(draw_unit("cap", seed, key) < rates[key] for key in keys if key in rates)
