"""Every kind of defect that is planted, what its check must reach, and where its pairs come from."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random

from pipelines.bench import (
    corpus_plants,
    lone_plants,
    picture_plants,
    set_plants,
    sign_plants,
    tampering,
    text_plants,
    truth_plants,
)
from pipelines.bench.plants import Pair
from pipelines.bench.pools import Pool
from pipelines.bench.scenes import TRIES, Case, Twins, draw_case, make_pair
from pipelines.bench.vocabulary import Vocabulary
from pipelines.errors import ConfigError

Source = Callable[[Sequence[Pool], Vocabulary, Random], Pair]
"""Makes one pair, where it needs a world in one of the first pool, if its questions admit the defect."""
Operator = Callable[[Case, Vocabulary, Random], Twins | None]
Judged = Callable[[Case, Vocabulary, Random], Pair | None]


@dataclass(frozen=True, slots=True)
class Demand:
    """What a check must reach on one defect (research/quality.md 4.3)."""

    recall: float
    false_alarm: float


DEMANDS: dict[str, Demand] = {
    "D01": Demand(1.0, 0.01),
    "D02": Demand(0.99, 0.01),
    "D03": Demand(0.95, 0.02),
    "D04": Demand(0.95, 0.02),
    "D05": Demand(0.99, 0.01),
    "D06": Demand(1.0, 0.0),
    "D07": Demand(0.95, 0.03),
    "D08": Demand(0.99, 0.01),
    "D09": Demand(1.0, 0.0),
    "D10": Demand(1.0, 0.0),
    "D11": Demand(1.0, 0.0),
    "D12": Demand(0.95, 0.02),
    "D13": Demand(0.95, 0.03),
    "D14": Demand(1.0, 0.0),
    "D15": Demand(0.99, 0.02),
    "D16": Demand(0.99, 0.01),
    "D17": Demand(1.0, 0.0),
    "D18": Demand(0.98, 0.03),
    "D19": Demand(1.0, 0.0),
    "D24": Demand(1.0, 0.0),
    "I5": Demand(0.0, 1.0),
    "L4": Demand(0.0, 1.0),
}
"""D20 to D23 belong to later datasets. Of I5 (a picture that a search finds at once) and L4 (names that are ordinary
words), failure modes of sections 1E and 1B, the design demands no numbers: they are measured and printed, and judge
nothing."""
STRICT = 0.99
"""Demanded recall from which twice as many pairs are planted: 300 without a miss prove .99 (one-sided 95%), 150 do not.
Nothing proves 1.00: 300 without a miss leave room for one in a hundred."""


@dataclass(frozen=True, slots=True)
class NotPlanted:
    """A defect of the design that the bench does not plant."""

    code: str
    why: str


NOT_PLANTED: tuple[NotPlanted, ...] = ()
"""None is left out at present."""
READ = frozenset({"D12"})
"""Defects that an OCR engine has to find."""


@dataclass(frozen=True, slots=True)
class PlantedDefect:
    """One kind of defect."""

    code: str
    title: str
    source: Source
    needs_world: bool = True

    @property
    def demand(self) -> Demand:
        """What its check must reach."""
        return DEMANDS[self.code]

    def count_pairs(self, pairs: int) -> int:
        """Return how many pairs of it are planted where ``pairs`` are asked for of most."""
        return 2 * pairs if self.demand.recall >= STRICT else pairs


_WIKI: tuple[tuple[str, str, Operator], ...] = (
    ("D06", "another entity fits, visible", corpus_plants.plant_twin),
    ("D07", "another entity fits, by prose", corpus_plants.plant_hidden_twin),
    ("D07", "second value, by prose", corpus_plants.plant_hidden_value),
    ("D08", "second value of a field", corpus_plants.plant_second_value),
    ("D09", "descriptor stands alone", lone_plants.plant_lone_descriptor),
    ("D10", "shorter way", corpus_plants.plant_shortcut),
    ("D11", "picture decorates", corpus_plants.plant_idle_picture),
    ("D14", "wrong gold of a question", truth_plants.plant_gold),
    ("D15", "volatile fact", truth_plants.plant_volatile),
    ("D18", "one text search", truth_plants.plant_searchable),
)
_JUDGED: tuple[tuple[str, str, Judged], ...] = (
    ("D17", "known by heart", set_plants.plant_parametric),
    ("D19", "repeats, one template", set_plants.plant_repeat),
    ("D24", "tampered proof", tampering.plant_tampering),
)


def list_defects(codes: Sequence[str] | None = None) -> tuple[PlantedDefect, ...]:
    """Return the kinds of defects, by code; a code may have several.

    Raises:
        ConfigError: if a code is not planted here.
    """
    unknown = sorted(set(codes or ()) - set(DEMANDS))
    if unknown:
        raise ConfigError(f"bench planted: no defect {', '.join(unknown)}; there are: {', '.join(DEMANDS)}")
    found = [
        PlantedDefect(each.code, each.title, partial(_plant_words, each.plant), False)
        for each in (
            *text_plants.DEFECTS,
            *text_plants.MEASURED,
            *sign_plants.DEFECTS,
            *picture_plants.DEFECTS,
            *picture_plants.MEASURED,
        )
    ]
    found += [PlantedDefect(code, title, partial(_plant_scene, operator)) for code, title, operator in _WIKI]
    found += [PlantedDefect(code, title, partial(_plant_judged, operator)) for code, title, operator in _JUDGED]
    return tuple(sorted((each for each in found if not codes or each.code in codes), key=lambda each: each.code))


def list_operators(*codes: str) -> tuple[tuple[str, str, Operator], ...]:
    """Return the operators that change the wiki: code, title, operator."""
    return tuple(row for row in _WIKI if row[0] in codes)


def _plant_words(
    plant: Callable[[Vocabulary, Random], Pair], pools: Sequence[Pool], words: Vocabulary, rng: Random
) -> Pair:
    return plant(words, rng)


def _plant_scene(operator: Operator, pools: Sequence[Pool], words: Vocabulary, rng: Random) -> Pair:
    for case in _draw_cases(pools, rng):
        twins = operator(case, words, rng)
        if twins is not None:
            return _place(make_pair(case.pool, twins), case)
    raise _find_nothing(operator)


def _plant_judged(operator: Judged, pools: Sequence[Pool], words: Vocabulary, rng: Random) -> Pair:
    for case in _draw_cases(pools, rng):
        pair = operator(case, words, rng)
        if pair is not None:
            return _place(pair, case)
    raise _find_nothing(operator)


def _place(pair: Pair, case: Case) -> Pair:
    return replace(pair, question=case.question.record_id, missing=case.pool.missing)


def _draw_cases(pools: Sequence[Pool], rng: Random) -> Iterator[Case]:
    """Yield clean questions to try, of the first pool and, should none of them do, of all."""
    if pools[0].steady:
        yield from (draw_case(pools[:1], rng) for _ in range(TRIES // 4))
    yield from (draw_case(pools, rng) for _ in range(TRIES))


def _find_nothing(operator: Operator | Judged) -> ConfigError:
    name = getattr(operator, "__name__", "?").removeprefix("plant_").replace("_", " ")
    return ConfigError(
        f"bench planted: {TRIES} clean questions admit no {name}; take another seed or other missing rates"
    )
