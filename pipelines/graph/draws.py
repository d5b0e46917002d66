"""Random numbers by hash: any choice of any walk can be drawn alone, in any order, and comes out the same.

A generator would tie each draw to those before it; here a word is a function of the seed, who draws, and a counter.
"""

from typing import Literal

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]
Purpose = Literal["link", "relation", "links-in-order", "relations-in-order", "coin"]
"""What a step of a walk draws: a link or a relation by number, an order of all of them, which kind comes first."""

TRIES = 10
"""Draws of a link, and of a relation, that a step has counters for."""
COUNTED_STEPS = 1 << 26
"""Steps that have counters, all of them below 2 to the 32."""
CHOICES = 64
"""Counters of a step, more than it has choices: where each begins is kept as it is, or every walk would be another."""
_FIRST: dict[Purpose, int] = {
    "link": 0,
    "relation": 11,
    "links-in-order": 31,
    "relations-in-order": 42,
    "coin": 60,
}

_GOLDEN = 0x9E3779B97F4A7C15
_WORD = (1 << 64) - 1


def mix_words(values: Words) -> Words:
    """Return the finaliser of splitmix64 over 64-bit words."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def make_keys(seed: int, identities: Words) -> Words:
    """Return for each identity the word that all its choices are drawn from."""
    salt = mix_words(np.array([seed & _WORD], dtype=np.uint64) + np.uint64(_GOLDEN))
    return mix_words(mix_words(identities.astype(np.uint64) + np.uint64(_GOLDEN)) ^ salt)


def count_choice(step: int, purpose: Purpose, attempt: int = 0) -> int:
    """Return the counter of one choice of a step: each step, purpose and attempt has its own.

    Raises:
        ValueError: there is no such step, or no such attempt; only links and relations have more than one.
    """
    attempts = TRIES if purpose in ("link", "relation") else 1
    if not 0 <= step < COUNTED_STEPS or not 0 <= attempt < attempts:
        allowed = f"expected attempts below {attempts} and steps below {COUNTED_STEPS}"
        raise ValueError(f"attempt {attempt} at {purpose} of step {step}: {allowed}")
    return step * CHOICES + _FIRST[purpose] + attempt


def draw_words(keys: Words, counter: int) -> Words:
    """Return one random word for each key; another counter, another word."""
    return mix_words(keys + np.uint64((counter + 1) * _GOLDEN & _WORD))


def draw_units(keys: Words, counter: int) -> npt.NDArray[np.float64]:
    """Return one number in [0, 1) for each key."""
    return (draw_words(keys, counter) >> np.uint64(11)).astype(np.float64) * 2.0**-53
