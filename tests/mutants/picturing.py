"""Pictures that are simple, copied, shared or of another, and what can be read in them, as small sets of pairs."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from random import Random

from pipelines.agent import depicting as depiction
from pipelines.checks import descriptors as references
from pipelines.checks import legibility
from pipelines.checks import pictures as likeness
from pipelines.graph.answers import make_answer
from pipelines.graph.values import Date
from tests.mutants.corpora import SCENES, WORDS, Judge, flips
from tests.planted import picture_plants
from tests.planted.words import Defect, Pair

NAMES = (("Kelm Bridge",), ("Mira Tolland",), ("Ostrel",))
TYPES = ("bridge", "suspension bridge", "town")
MISSING = ("the bridge", "it in the image")
NARROWER = (
    "the suspension bridge in the image",
    "the oldest bridge in the image",
    "the bridge in the image, a suspension bridge",
)
ANSWER = make_answer("2 May 1928", Date(1928, 5, 2))


def list_picture_sets() -> dict[str, Judge]:
    return {
        **{f"{defect.code} {defect.title}": _keep(defect) for defect in picture_plants.DEFECTS},
        "a file that leads two articles": _judge_use,
        "a reference that is left out": partial(_judge_reference, "reference-missing", MISSING),
        "a reference that says more": partial(_judge_reference, "reference-narrower", NARROWER),
        "a name that was read": _judge_read,
        "a name that was misread": _judge_misread,
        "a picture that fits another better": _judge_margin,
        "a picture of which little is said": _judge_points,
    }


def _keep(defect: Defect) -> Judge:
    """Return what judges the same pairs each time: seeds of the first that flip while the checks are right."""
    seeds: list[int] = []

    def plant(seed: int) -> Pair:
        return defect.plant(WORDS, Random(f"mutants:{defect.title}:{seed}"))

    def judge() -> list[Pair]:
        if not seeds:
            seeds.extend(islice((seed for seed in range(20 * SCENES) if flips(plant(seed))), SCENES))
        return [plant(seed) for seed in seeds]

    return judge


def _judge_read() -> list[Pair]:
    """What OCR reads on a sign names a node, or the answer, or nobody."""
    return [_read("Visitors Centre", line) for line in ("Kelm Bridge", "Tolland", "since 1928", "OSTREL 2 km")]


def _judge_misread() -> list[Pair]:
    """The same with letters wrong, words run together, and digits read as letters."""
    return [_read("Vis1tors Centre", line) for line in ("Mlra To1land", "KelmBridge2km", "since I9Z8")]


def _judge_use() -> list[Pair]:
    """Only a P180 that names the anchor and nobody else says whose picture it is."""
    both = ("Kelm Bridge", "Marn Bridge")
    bad = (("Q1", "Q2"), ("Q2",), ())
    results = [likeness.check_use(both, both[0], depicts, "Q1") for depicts in (("Q1",), *bad)]
    return [
        Pair(str(depicts), results[0], result, ("picture-ambiguous",))
        for depicts, result in zip(bad, results[1:], strict=True)
    ]


def _judge_reference(code: str, wrong: Sequence[str]) -> list[Pair]:
    """A question that points to its picture by the type, and one that does not, or tells more of it."""
    texts = (f"Who designed {phrase}?" for phrase in ("the bridge in the image", *wrong))
    clean, *results = (references.check_reference(text, "bridge", TYPES) for text in texts)
    return [Pair(phrase, clean, result, (code,)) for phrase, result in zip(wrong, results, strict=True)]


def _read(clean: str, bad: str) -> Pair:
    results = [legibility.check_readable((line,), NAMES, ANSWER) for line in (clean, bad)]
    return Pair(bad, results[0], results[1], ("picture-readable",))


@dataclass(frozen=True)
class Measured:
    """What a ranker measured."""

    score: float
    margin: float | None = None
    distractors: int = 20
    over_threshold: bool | None = False
    note: str = ""


def _judge_margin() -> list[Pair]:
    bad = (Measured(0.4, 0.0), Measured(0.4, -0.1), Measured(0.4, 0.1, 19), Measured(0.4))
    return [_depict(Measured(0.1, 0.01), each) for each in bad]


def _judge_points() -> list[Pair]:
    return [_depict(Measured(0.5, over_threshold=None), Measured(0.49, over_threshold=None))]


def _depict(clean: Measured, bad: Measured) -> Pair:
    results = [depiction.check_depiction(each) for each in (clean, bad)]
    return Pair(repr(bad), results[0], results[1], ("picture-of-another",))
