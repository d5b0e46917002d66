"""Every kind of defect that is planted, what its check must reach, and where its pairs come from.

Two defects in one question: does the one hide the other?
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from random import Random

from pipelines.errors import ConfigError
from schemas.reasons import TrajectoryReason
from tests.planted import corpus_plants, picture_plants, text_plants
from tests.planted import corpus_plants as lone_plants
from tests.planted import corpus_plants as set_plants
from tests.planted import corpus_plants as truth_plants
from tests.planted import picture_plants as sign_plants
from tests.planted import rollout_plants as call_plants
from tests.planted import rollout_plants as observation_plants
from tests.planted import rollout_plants as support_plants
from tests.planted import scenes as tampering
from tests.planted.rollout_plants import Operator as Editor
from tests.planted.rollout_plants import plant_edits
from tests.planted.scenes import TRIES, Case, Pool, Scene, Twins, draw_case, judge, make_pair
from tests.planted.words import Pair, Vocabulary

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
    "D22-R1": Demand(1.0, 0.02),
    "D22-R2": Demand(1.0, 0.02),
    "D22-R3": Demand(0.95, 0.02),
    "D22-R4": Demand(0.95, 0.02),
    "D22-R5": Demand(0.95, 0.02),
    "D22-R6": Demand(0.95, 0.02),
    "D22-R7": Demand(0.95, 0.02),
    "D22-R8": Demand(1.0, 0.02),
    "D22-R9": Demand(1.0, 0.02),
    "D22-R10": Demand(0.95, 0.02),
    "D24": Demand(1.0, 0.0),
    "I5": Demand(0.0, 1.0),
    "L4": Demand(0.0, 1.0),
}
"""D20 and D21 belong to later datasets, D23 is planted in judges (``synth bench judge``). Of I5 (a picture that a
search finds at once) and L4 (names that are ordinary words), failure modes of sections 1E and 1B, the design demands no
numbers: they are measured and printed, and judge nothing."""
FAMILY = "-"
"""Ends the name of a defect whose kinds have demands of their own: ``D22`` stands for all of ``D22-R1`` to ``D22-R10``.
"""
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


_TRAJECTORIES: tuple[tuple[str, str, TrajectoryReason, Editor], ...] = (
    ("D22-R1", "turn that is none", "format", call_plants.plant_bad_turn),
    ("D22-R1", "call that no tool takes", "format", call_plants.plant_bad_call),
    ("D22-R2", "errors in a row", "tool-errors", call_plants.plant_errors),
    ("D22-R3", "query again", "repetition", call_plants.plant_repetition),
    ("D22-R3", "call again", "repetition", call_plants.plant_repeated_call),
    ("D22-R4", "answer unsupported", "unsupported", support_plants.plant_unsupported),
    ("D22-R4", "bridge never shown", "memory-jump", support_plants.plant_jump),
    ("D22-R5", "answer known before", "from-memory", support_plants.plant_memory),
    ("D22-R5", "no call", "from-memory", support_plants.plant_no_tool),
    ("D22-R6", "page left out", "path-not-covered", support_plants.plant_luck),
    ("D22-R7", "question, id or protocol on a page", "contaminated", observation_plants.plant_leak),
    ("D22-R7", "flagged by a tool", "contaminated", observation_plants.plant_dataset),
    ("D22-R8", "long page", "too-long", observation_plants.plant_long_page),
    ("D22-R8", "long thought", "too-long", observation_plants.plant_long_thought),
    ("D22-R9", "call on no picture", "unknown-image", call_plants.plant_lost_picture),
    ("D22-R9", "word of no picture", "unknown-image", call_plants.plant_lost_mention),
    ("D22-R10", "name seen nowhere", "unseen-claim", support_plants.plant_name_claim),
    ("D22-R10", "number seen nowhere", "unseen-claim", support_plants.plant_number_claim),
)


def list_defects(codes: Sequence[str] | None = None) -> tuple[PlantedDefect, ...]:
    """Return the kinds of defects in the order of :data:`DEMANDS`; a code may have several.

    Args:
        codes: of defects or of families such as ``D22``; all when not given.

    Raises:
        ConfigError: if a code is not planted here.
    """
    families = {code.partition(FAMILY)[0] for code in DEMANDS}
    unknown = sorted(set(codes or ()) - set(DEMANDS) - families)
    if unknown:
        raise ConfigError(f"bench planted: no defect {', '.join(unknown)}; there are: {', '.join(DEMANDS)}")
    found = [
        PlantedDefect(each.code, each.title, partial(_plant_words, each.plant), False)
        for each in (
            *text_plants.DEFECTS,
            *text_plants.MEASURED,
            *sign_plants.SIGN_PLANTS_DEFECTS,
            *picture_plants.DEFECTS,
            *picture_plants.MEASURED,
        )
    ]
    found += [PlantedDefect(code, title, partial(_plant_scene, operator)) for code, title, operator in _WIKI]
    found += [PlantedDefect(code, title, partial(_plant_judged, operator)) for code, title, operator in _JUDGED]
    found += [
        PlantedDefect(code, title, partial(_plant_edits, operator, reason))
        for code, title, reason, operator in _TRAJECTORIES
    ]
    order = list(DEMANDS)
    wanted = (each for each in found if not codes or {each.code, each.code.partition(FAMILY)[0]} & set(codes))
    return tuple(sorted(wanted, key=lambda each: order.index(each.code)))


def list_operators(*codes: str) -> tuple[tuple[str, str, Operator], ...]:
    """Return the operators that change the wiki: code, title, operator."""
    return tuple(row for row in _WIKI if row[0] in codes)


def list_editors() -> tuple[tuple[str, str, TrajectoryReason, Editor], ...]:
    """Return the operators that edit a rollout: code, title, reason for which the cascade must refuse it, operator."""
    return _TRAJECTORIES


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


def _plant_edits(
    operator: Editor, reason: TrajectoryReason, pools: Sequence[Pool], words: Vocabulary, rng: Random
) -> Pair:
    for case in _draw_cases(pools, rng):
        pair = plant_edits(operator, reason, case, words, rng)
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


def _find_nothing(operator: Operator | Judged | Editor) -> ConfigError:
    name = getattr(operator, "__name__", "?").removeprefix("plant_").replace("_", " ")
    return ConfigError(
        f"bench planted: {TRIES} clean questions admit no {name}; take another seed or other missing rates"
    )


COMBINED = ("D06", "D07", "D08", "D10", "D11")
"""Defects that leave the claim as it is, so that any two can be planted together."""
MENDED = ("D06", "D11")
"""Not planted together: another entity with another answer makes the picture needed again."""
LEAK = "D05"


@dataclass(frozen=True, slots=True)
class CompoundRow:
    """What became of two defects planted together."""

    first: str
    second: str
    titles: tuple[str, str]
    """Of both defects; a code may have several kinds."""
    pairs: int
    both: int
    """Questions in which both were named."""
    one: int
    none: int


def plant_compounds(pools: Sequence[Pool], words: Vocabulary, rng: Random, count: int) -> tuple[CompoundRow, ...]:
    """Plant every combination ``count`` times where questions admit it, each wiki defect with a leak besides."""
    operators = list_operators(*COMBINED)
    rows = []
    for (code, title, first), (other, besides, second) in combinations(operators, 2):
        if (code, other) == MENDED:
            continue
        found = [_judge_both(pools, first, second, words, rng) for _ in range(count)]
        rows.append(_sum_up((code, other), (title, besides), found))
    for code, title, operator in operators:
        found = [_judge_leak(pools, operator, words, rng) for _ in range(count)]
        rows.append(_sum_up((code, LEAK), (title, "the answer"), found))
    return tuple(rows)


def _sum_up(codes: tuple[str, str], titles: tuple[str, str], found: Sequence[int | None]) -> CompoundRow:
    counts = Counter(found)
    planted = len(found) - counts[None]
    return CompoundRow(*codes, titles, planted, counts[2], counts[1], counts[0])


def _judge_both(pools: Sequence[Pool], first: Operator, second: Operator, words: Vocabulary, rng: Random) -> int | None:
    """Return how many of two defects were named, None when no question admits both."""
    for _ in range(TRIES // 10):
        case = draw_case(pools, rng)
        twins = first(case, words, rng)
        others = second(case, words, rng) if twins is not None else None
        if twins is None or others is None or set(twins.defective.edits) & set(others.defective.edits):
            continue
        scene = Scene(
            case.claim,
            {**twins.defective.edits, **others.defective.edits},
            (*twins.defective.added, *others.defective.added),
        )
        return _count_named(case.pool, scene, (twins, others))
    return None


def _judge_leak(pools: Sequence[Pool], operator: Operator, words: Vocabulary, rng: Random) -> int | None:
    for _ in range(TRIES // 10):
        case = draw_case(pools, rng)
        twins = operator(case, words, rng)
        if twins is not None:
            text = f"{case.claim.text.rstrip('?')}, perhaps {case.claim.answer.surface}?"
            scene = replace(twins.defective, claim=replace(case.claim, text=text))
            return _count_named(case.pool, scene, (twins, replace(twins, codes=("answer-leak",))))
    return None


def _count_named(pool: Pool, scene: Scene, planted: Sequence[Twins]) -> int:
    codes = {result.code for result in judge(pool, scene)}
    return sum(bool(codes & set(twins.codes)) for twins in planted)
