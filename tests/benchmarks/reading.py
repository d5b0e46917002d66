"""Measures how well names on drawn signs are found: by engine, size, contrast, turn and scale, and what it costs.

Signs stand in drawn landscapes. A case is the names of a path of four and one sign: it shows one of these names, or
another text of the same kind. Nothing is thrown out of the other texts because it looks like a name.
"""

import asyncio
import io
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from random import Random

from PIL import Image, ImageDraw, ImageFont

from pipelines.agent.pictures import Reader
from pipelines.checks.leakage import split_words
from pipelines.checks.legibility import check_readable
from pipelines.cli.judge_card import make_share, show_interval
from pipelines.corpus.dump import strip_qualifier
from pipelines.names import is_common_word
from pipelines.services.clients.ocr import RapidOcr
from pipelines.services.protocols import Ocr
from pipelines.toy.drawing import OUTDOORS, Pen, paint_landscape
from pipelines.toy.world import WorldConfig, build_world
from schemas.proofs import Answer
from tests.benchmarks.measured import Measured
from tests.planted.words import invent_title, load_half

SIZE = (660, 512)
FONTS = ("", "DejaVuSans-Bold.ttf", "DejaVuSerif.ttf", "LiberationSansNarrow-Bold.ttf", "LiberationSerif-Italic.ttf")
"""Those that are at hand are used; the empty one comes with Pillow."""
CASES = 150
"""Signs with a name, and as many without."""
FEW = 24
"""Signs for each value of a sweep."""
RECALL, FALSE_ALARMS = 0.95, 0.02
SIZES = (10, 14, 20, 32, 56)
CONTRASTS = (20, 45, 90, 180)
ANGLES = (0.0, 8.0, 20.0, 40.0)


@dataclass(frozen=True, slots=True)
class Look:
    """How a sign is drawn: height of its letters in pixels, grey levels between them and the board, degrees."""

    size: int = 30
    contrast: int = 150
    angle: float = 0.0


@dataclass(frozen=True, slots=True)
class Case:
    """A path's names and what a sign in its picture says."""

    names: tuple[tuple[str, ...], ...]
    types: frozenset[str]
    shown: str
    """Empty for a picture without a sign."""
    names_a_node: bool
    half: str


def list_paths(half: str) -> list[tuple[tuple[str, ...], str]]:
    """Return names with the type word of what they name: of the toy world, or invented from held-out syllables."""
    if half == "toy":
        world = build_world(WorldConfig(entities=600, seed=11))
        return [
            ((entity.title, *(alias for alias, _ in entity.aliases)), entity.noun)
            for entity in world.entities
            if not is_plain(entity.title)
        ]
    words, rng = load_half("held-out"), Random("reading:names")
    return [((title := invent_title(words, rng),), strip_qualifier(title).split()[-1].lower()) for _ in range(400)]


def is_plain(title: str) -> bool:
    """Say whether every word of a title is an ordinary one: such names give nothing away by themselves."""
    return all(len(word) < 4 or is_common_word(word) for word in split_words(strip_qualifier(title)))


def make_cases(half: str, count: int) -> Iterable[Case]:
    """Yield cases, one with a name of its path, one without, and so on."""
    known = list_paths(half)
    rng = Random(f"reading:{half}")
    for place in range(count):
        chosen = rng.sample(known, 4)
        names = tuple(each for each, _ in chosen)
        types = frozenset(word for _, noun in chosen for word in split_words(noun))
        leaks = place % 2 == 0
        shown = strip_qualifier(rng.choice(names)[0]) if leaks else draw_other(known, names, place, rng)
        yield Case(names, types, shown, leaks, half)


def draw_other(
    known: Sequence[tuple[tuple[str, ...], str]], names: Sequence[tuple[str, ...]], place: int, rng: Random
) -> str:
    """Return what a sign says that names no node: another name, words that anything may be called, or nothing."""
    if place % 8 == 1:
        return ""
    if place % 8 == 3:
        return rng.choice(("City Museum", "Old Town Bridge", "Grand Theatre", "North Street", "Open Daily", "Exit"))
    own = {word for each in names for name in each for word in split_words(name)}
    while True:
        other = strip_qualifier(rng.choice(known)[0][0])
        if not any(word in own and not is_common_word(word) for word in split_words(other)):
            return other


@lru_cache(maxsize=64)
def load_font(name: str, size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """Return a font of the machine, or Pillow's own where it has no such."""
    if not name:
        return ImageFont.load_default(size)
    try:
        return ImageFont.truetype(name, size)
    except OSError:
        return ImageFont.load_default(size)


def draw_scene(text: str, look: Look, rng: Random) -> bytes:
    """Return a drawn landscape with a sign in it as JPEG; long texts stand in two lines."""
    picture, draw, ground, _ = paint_landscape(SIZE, rng)
    subject = rng.choice(tuple(OUTDOORS.values()))
    subject(Pen(draw, (SIZE[0] * rng.uniform(0.3, 0.7), ground + 40), SIZE[1] * 0.4, rng.choice((1, -1))), rng)
    if text:
        board = draw_board(text, look, rng)
        room = (max(1, SIZE[0] - board.width), max(1, SIZE[1] - board.height))
        picture.paste(board, (rng.randrange(room[0]), rng.randrange(room[1])), board)
    target = io.BytesIO()
    picture.save(target, "JPEG", quality=85)
    return target.getvalue()


def draw_board(text: str, look: Look, rng: Random) -> Image.Image:
    """Return a board with a text, turned, with everything around it transparent."""
    font = load_font(rng.choice(FONTS), look.size)
    text = text.upper() if rng.random() < 0.25 else text
    words = text.split()
    half = (len(words) + 1) // 2
    if font.getlength(text) > SIZE[0] * 0.8 and len(words) > 1:
        text = " ".join(words[:half]) + "\n" + " ".join(words[half:])
    left, top, right, bottom = ImageDraw.Draw(Image.new("L", (1, 1))).multiline_textbbox((0, 0), text, font=font)
    edge = look.size * 0.5
    board = Image.new("RGBA", (int(right - left + 2 * edge), int(bottom - top + 2 * edge)))
    dark = rng.randrange(0, 256 - look.contrast)
    shades = [dark, dark + look.contrast]
    rng.shuffle(shades)
    tint = [rng.uniform(0.85, 1.0) for _ in range(3)]
    ground, ink = (tuple(int(level * part) for part in tint) for level in shades)
    pen = ImageDraw.Draw(board)
    pen.rectangle((0, 0, *board.size), fill=(*ground, 255))
    pen.multiline_text((edge - left, edge - top), text, font=font, fill=(*ink, 255), align="center")
    if board.width > SIZE[0] - 20:
        board = board.resize((SIZE[0] - 20, max(1, board.height * (SIZE[0] - 20) // board.width)))
    return board.rotate(look.angle, Image.Resampling.BICUBIC, expand=True) if look.angle else board


def draw_look(rng: Random) -> Look:
    """Return a sign as photographs show them when they can be read at all."""
    return Look(rng.randrange(18, 52), rng.randrange(80, 200), rng.uniform(-8.0, 8.0))


def make_answer(names: Sequence[str]) -> Answer:
    """Return the answer whose names these are."""
    value = names[0]
    return Answer(
        type="name", value=value, precision="", unit="", surface=value, aliases=tuple(names[1:]), key=value.lower()
    )


@dataclass(slots=True)
class Tally:
    """How many cases were refused, and the processor's seconds that reading them took."""

    refused: int = 0
    all: int = 0
    seconds: float = 0.0

    @property
    def share(self) -> str:
        """The share with its 95% interval."""
        share = make_share(self.refused, self.all)
        return f"{share.share:.3f} ({show_interval(share)})"


def read_case(reader: Reader, data: bytes) -> tuple[tuple[str, ...], float]:
    """Return what is read in a picture, and the processor's seconds that it took, those of child processes included."""
    before = sum(os.times()[:4])
    lines = asyncio.run(reader.read(data)).lines
    return lines, sum(os.times()[:4]) - before


def judge_case(case: Case, lines: Sequence[str], seconds: float, tally: Tally) -> None:
    """Count whether a case is refused for what was read."""
    tally.refused += not check_readable(lines, case.names, make_answer(case.names[-1]), case.types).passed
    tally.all += 1
    tally.seconds += seconds


def measure_halves(engines: Sequence[Ocr], count: int) -> list[Measured]:
    """Return recall and false alarms by engine and by where the names come from; together they are read as one."""
    readers = {engine.name: Reader((engine,)) for engine in engines}
    measured = []
    for half in ("toy", "held-out"):
        tallies = {(name, leaks): Tally() for name in (*readers, "both") for leaks in (True, False)}
        for place, case in enumerate(make_cases(half, 2 * count)):
            rng = Random(f"reading:{half}:{place}")
            data = draw_scene(case.shown, draw_look(rng), rng)
            read = {name: read_case(reader, data) for name, reader in readers.items()}
            read["both"] = (
                [line for lines, _ in read.values() for line in lines],
                sum(cost for _, cost in read.values()),
            )
            for name, (lines, seconds) in read.items():
                judge_case(case, lines, seconds, tallies[name, case.names_a_node])
        for name in (*readers, "both"):
            measured += report_half(f"{half}, {name}", tallies[name, True], tallies[name, False])
    return measured


def report_half(label: str, found: Tally, alarms: Tally) -> list[Measured]:
    """Return recall, false alarms and cost of one engine on one half."""
    bound = (f"at least {RECALL:.2f}", f"at most {FALSE_ALARMS:.2f}")
    cost = (found.seconds + alarms.seconds) / (found.all + alarms.all)
    return [
        Measured(f"{label}: names on signs that are found", found.share, bound[0]),
        Measured(f"{label}: pictures without one that are refused", alarms.share, bound[1]),
        Measured(f"{label}: a picture at both scales, processor time", f"{cost:.2f} s"),
    ]


def list_sweeps() -> list[tuple[str, Look]]:
    """Return looks that differ from the usual one in one thing."""
    usual = Look()
    sizes = [(f"letters of {size} px", replace(usual, size=size)) for size in SIZES]
    contrasts = [(f"contrast of {levels} grey levels", replace(usual, contrast=levels)) for levels in CONTRASTS]
    return [*sizes, *contrasts, *((f"turned by {angle:g} degrees", replace(usual, angle=angle)) for angle in ANGLES)]


def measure_sweeps(engines: Sequence[Ocr], count: int) -> list[Measured]:
    """Return recall by look, engine and scale."""
    measured = []
    for label, look in list_sweeps():
        shares = []
        for engine in engines:
            for scale in (1.0, 2.0):
                tally, reader = Tally(), Reader((engine,), (scale,))
                for place, case in enumerate(make_cases("held-out", 2 * count)):
                    if case.names_a_node:
                        rng = Random(f"sweep:{place}")
                        judge_case(case, *read_case(reader, draw_scene(case.shown, look, rng)), tally)
                shares.append(f"{engine.name} x{scale:g} {tally.refused / tally.all:.0%}")
        measured.append(Measured(f"names found on signs with {label}", ", ".join(shares)))
    return measured


def measure(scratch: Path) -> list[Measured]:
    """Measure both engines; nothing is kept."""
    engines = (RapidOcr(threads=1),)
    return [*measure_halves(engines, CASES), *measure_sweeps(engines, FEW)]
