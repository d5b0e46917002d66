"""Every kind of planted defect, what its check must reach, and where its minimal pairs come from."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random

from pipelines.errors import ConfigError
from schemas.reasons import TrajectoryReason
from tests.planted import corpus_plants, picture_plants, reading_plants, rollout_plants, scenes, text_plants
from tests.planted.rollout_plants import Operator as Editor
from tests.planted.rollout_plants import plant_edits
from tests.planted.scenes import TRIES, Case, Pool, Twins, draw_case, make_pair
from tests.planted.words import Pair, Vocabulary

Source = Callable[[Sequence[Pool], Vocabulary, Random], Pair]
"""Makes one pair; the first pool is preferred if its questions admit the defect."""
Operator = Callable[[Case, Vocabulary, Random], Twins | None]
Attempt = Callable[[Case, Vocabulary, Random], Pair | None]


@dataclass(frozen=True, slots=True)
class Demand:
    """What a check must reach on one defect; a recall of 0 demands nothing."""

    recall: float
    false_alarm: float


DEMANDS: dict[str, Demand] = {
    "D01": Demand(1.0, 0.01), "D02": Demand(0.99, 0.01), "D03": Demand(0.95, 0.02), "D04": Demand(0.95, 0.02),
    "D05": Demand(0.99, 0.01), "D06": Demand(1.0, 0.0), "D07": Demand(0.95, 0.03), "D08": Demand(0.99, 0.01),
    "D09": Demand(1.0, 0.0), "D10": Demand(1.0, 0.0), "D11": Demand(1.0, 0.0), "D12": Demand(0.95, 0.02),
    "D13": Demand(0.95, 0.03), "D14": Demand(1.0, 0.0), "D15": Demand(0.99, 0.02), "D16": Demand(0.99, 0.01),
    "D17": Demand(1.0, 0.0), "D18": Demand(0.98, 0.03), "D19": Demand(1.0, 0.0), "D22-R1": Demand(1.0, 0.02),
    "D22-R2": Demand(1.0, 0.02), "D22-R3": Demand(0.95, 0.02), "D22-R4": Demand(0.95, 0.02),
    "D22-R5": Demand(0.95, 0.02), "D22-R6": Demand(0.95, 0.02), "D22-R7": Demand(0.95, 0.02),
    "D22-R8": Demand(1.0, 0.02), "D22-R9": Demand(1.0, 0.02), "D22-R10": Demand(0.95, 0.02), "D24": Demand(1.0, 0.0),
    "D25": Demand(0.95, 0.05), "D26": Demand(0.95, 0.05), "D27": Demand(0.95, 0.05), "D28": Demand(0.95, 0.05),
    "D29": Demand(0.95, 0.05), "D30": Demand(0.95, 0.05), "D31": Demand(0.95, 0.05), "D32": Demand(0.95, 0.05),
    "D33": Demand(0.95, 0.05), "I5": Demand(0.0, 1.0), "L4": Demand(0.0, 1.0),
}  # fmt: skip
"""D20 and D21 belong to later datasets; D23 is planted in judges. I5 (a picture that a search
finds at once) and L4 (names that are ordinary words) are measured and printed, without a demand."""
FAMILY = "-"
"""Separates a family from its kind: ``D22`` selects ``D22-R1`` to ``D22-R10``."""
STRICT = 0.99
"""Demanded recall from which twice as many pairs are planted: 300 without a miss show .99 at 95%, 150 do not."""
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
        """Return how many pairs to plant when ``pairs`` are requested."""
        return 2 * pairs if self.demand.recall >= STRICT else pairs


_WIKI: tuple[tuple[str, str, Operator], ...] = (
    ("D06", "another entity fits, visible", corpus_plants.plant_twin),
    ("D07", "another entity fits, by prose", corpus_plants.plant_hidden_twin),
    ("D07", "second value, by prose", corpus_plants.plant_hidden_value),
    ("D08", "second value of a field", corpus_plants.plant_second_value),
    ("D09", "descriptor stands alone", corpus_plants.plant_lone_descriptor),
    ("D10", "shorter way", corpus_plants.plant_shortcut),
    ("D11", "picture decorates", corpus_plants.plant_idle_picture),
    ("D14", "wrong gold of a question", corpus_plants.plant_gold),
    ("D15", "volatile fact", corpus_plants.plant_volatile),
    ("D18", "one text search", corpus_plants.plant_searchable),
)
_JUDGED: tuple[tuple[str, str, Attempt], ...] = (
    ("D17", "known by heart", corpus_plants.plant_parametric),
    ("D19", "repeats, one template", corpus_plants.plant_repeat),
    ("D24", "tampered proof", scenes.plant_tampering),
    *reading_plants.DEFECTS,
)
_TRAJECTORIES: tuple[tuple[str, str, TrajectoryReason, Editor], ...] = (
    ("D22-R1", "turn that is none", "format", rollout_plants.plant_bad_turn),
    ("D22-R1", "call that no tool takes", "format", rollout_plants.plant_bad_call),
    ("D22-R2", "errors in a row", "tool-errors", rollout_plants.plant_errors),
    ("D22-R3", "query again", "repetition", rollout_plants.plant_repetition),
    ("D22-R3", "call again", "repetition", rollout_plants.plant_repeated_call),
    ("D22-R4", "answer unsupported", "unsupported", rollout_plants.plant_unsupported),
    ("D22-R4", "bridge never shown", "memory-jump", rollout_plants.plant_jump),
    ("D22-R5", "answer known before", "from-memory", rollout_plants.plant_memory),
    ("D22-R5", "no call", "from-memory", rollout_plants.plant_no_tool),
    ("D22-R6", "page left out", "path-not-covered", rollout_plants.plant_luck),
    ("D22-R7", "question, id or protocol on a page", "contaminated", rollout_plants.plant_leak),
    ("D22-R7", "flagged by a tool", "contaminated", rollout_plants.plant_dataset),
    ("D22-R8", "long page", "too-long", rollout_plants.plant_long_page),
    ("D22-R8", "long thought", "too-long", rollout_plants.plant_long_thought),
    ("D22-R9", "call on no picture", "unknown-image", rollout_plants.plant_lost_picture),
    ("D22-R9", "word of no picture", "unknown-image", rollout_plants.plant_lost_mention),
    ("D22-R10", "name seen nowhere", "unseen-claim", rollout_plants.plant_name_claim),
    ("D22-R10", "number seen nowhere", "unseen-claim", rollout_plants.plant_number_claim),
)


def list_defects(codes: Sequence[str] | None = None) -> tuple[PlantedDefect, ...]:
    """Return the kinds of defects in the order of :data:`DEMANDS`; a code may have several.

    Args:
        codes: of defects or of families such as ``D22``; all when not given.

    Raises:
        ConfigError: an unknown code.
    """
    families = {code.partition(FAMILY)[0] for code in DEMANDS}
    unknown = sorted(set(codes or ()) - set(DEMANDS) - families)
    if unknown:
        raise ConfigError(f"bench planted: no defect {', '.join(unknown)}; there are: {', '.join(DEMANDS)}")
    texts = (*text_plants.DEFECTS, *text_plants.MEASURED, *picture_plants.SIGNS, *picture_plants.DEFECTS,
             *picture_plants.MEASURED)  # fmt: skip
    attempts: list[tuple[str, str, Attempt]] = [(*row[:2], partial(_plant_scene, row[2])) for row in _WIKI]
    attempts += _JUDGED
    attempts += [(code, title, partial(plant_edits, edit, reason)) for code, title, reason, edit in _TRAJECTORIES]
    found = [PlantedDefect(each.code, each.title, partial(_plant_text, each.plant), False) for each in texts]
    found += [PlantedDefect(code, title, partial(_try_cases, attempt, title)) for code, title, attempt in attempts]
    order = list(DEMANDS)
    wanted = (each for each in found if not codes or {each.code, each.code.partition(FAMILY)[0]} & set(codes))
    return tuple(sorted(wanted, key=lambda each: order.index(each.code)))


def list_editors() -> tuple[tuple[str, str, TrajectoryReason, Editor], ...]:
    """Return the operators that edit a rollout: code, title, reason for which the cascade must refuse it, operator."""
    return _TRAJECTORIES


def _plant_text(
    plant: Callable[[Vocabulary, Random], Pair], pools: Sequence[Pool], words: Vocabulary, rng: Random
) -> Pair:
    return plant(words, rng)


def _plant_scene(operator: Operator, case: Case, words: Vocabulary, rng: Random) -> Pair | None:
    twins = operator(case, words, rng)
    return None if twins is None else make_pair(case.pool, twins)


def _try_cases(attempt: Attempt, title: str, pools: Sequence[Pool], words: Vocabulary, rng: Random) -> Pair:
    """Plant in the first clean question that admits the defect."""
    for case in _draw_cases(pools, rng):
        pair = attempt(case, words, rng)
        if pair is not None:
            return replace(pair, question=case.question.record_id)
    raise ConfigError(
        f"bench planted: none of {TRIES} clean questions admits the defect {title!r}; "
        "use another seed or other missing rates"
    )


def _draw_cases(pools: Sequence[Pool], rng: Random) -> Iterator[Case]:
    """Yield clean questions of the first pool, then of all."""
    if pools[0].steady:
        yield from (draw_case(pools[:1], rng) for _ in range(TRIES // 4))
    yield from (draw_case(pools, rng) for _ in range(TRIES))
