"""Defects of files that others make, planted by who wrote the audit, and the clean questions that they are planted in.

A plant changes questions before they are written in a layout, so that each is planted in every layout alike.
"""

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from random import Random

import numpy as np
from PIL import Image, ImageOps

from pipelines.toy.pictures import SIMPLE
from tests.published import Published

Change = Callable[[Published, Sequence[Published]], Published]
"""Returns a row with a defect; it is given the row and the clean rows of the file."""
TOLD = """
Who designed the bridge shown in this image?|Mira Tolland|M. Tolland|Kelm Bridge
In which year was the church in the picture completed?|1874|the year 1874|Orn Church
Which river flows past the castle that is pictured here?|Velka|River Velka|Sorn Castle
What is the wingspan in centimetres of this butterfly?|9.4|9.4 cm|Amber Fritillary
Which company manufactured the locomotive seen in this photograph?|Harrow and Pike|Harrow & Pike|Engine 41
Who painted the portrait depicted in the image, and for no one else in his life?|Jon Vask|Vask|Lady in Grey
What material is the statue in this image made of?|bronze|cast bronze|Statue of Ilse
In what country was the author in this photo born?|Norway|Kingdom of Norway|Ada Lorn
How high in metres is the lighthouse shown in the picture?|37|37 m|Grey Point Light
Which saint is the chapel in the image dedicated to?|Nicholas|Saint Nicholas|Marsh Chapel
What is the genus of the flower in this picture?|Gentiana|gentians|Blue Bell
Which team plays its home matches in the stadium pictured here?|Ostrel Rovers|Rovers|Gale Park
Who was the first owner of the house shown in this photo?|Hans Oder|H. Oder|Oder House
Which architect restored this theatre after the fire of its stage?|Ines Farrow|Farrow|Old Playhouse
When did the ship in the image sink?|12 March 1908|1908-03-12|SS Marn
What language is the inscription on this stone written in?|Latin|Latin language|Marn Stone
How many spans does the viaduct in this image have?|23|twenty-three|Pell Viaduct
Which university owns the telescope in the photograph?|University of Lumby|Lumby University|Dunn Telescope
What is the name of the mountain range behind this village?|Valdo Alps|the Valdo range|Lumby
Which award did the film on this poster win in its year?|Golden Lantern|Lantern|The Long Ferry
Who composed the opera whose first page is shown in this image?|Elsa Brandt|Brandt|The Miller
What mineral gives the rock in this picture its green colour?|olivine|chrysolite|Green Boulder
Which century does the helmet in the photo date from?|fifteenth|15th|Marn Helmet
Which sea does the strait shown on this satellite photograph lead to?|Sea of Orn|Orn Sea|Strait of Pell
"""


def paint(seed: int, size: tuple[int, int] = (160, 120)) -> Image.Image:
    """Soft noise of many colours, no two alike: what a photograph is to the measures."""
    blocks = np.random.default_rng(seed).integers(0, 255, (8, 10, 3), dtype=np.uint8)
    return Image.fromarray(blocks).resize(size, Image.Resampling.BICUBIC)


def encode(picture: Image.Image, form: str = "PNG") -> bytes:
    target = io.BytesIO()
    picture.save(target, form)
    return target.getvalue()


@cache
def make_clean() -> tuple[Published, ...]:
    """Questions without a defect, each with a picture of its own."""
    told = [line.split("|") for line in TOLD.strip().splitlines()]
    return tuple(Published(str(30000000 + at), *words, encode(paint(at))) for at, words in enumerate(told))


@dataclass(frozen=True)
class Plant:
    """A defect of a row: how a row gets it, and the names under which it may be found."""

    name: str
    put: Change
    found: tuple[str, ...]


def change(**changes: object) -> Change:
    return lambda row, _: replace(row, **changes)


def repaint(make: Callable[[bytes], bytes]) -> Change:
    return lambda row, _: replace(row, picture=make(row.picture))


def copy_of(at: int, turn: Callable[[Image.Image], Image.Image]) -> Change:
    return lambda row, rows: replace(row, picture=encode(turn(Image.open(io.BytesIO(rows[at].picture)))))


def repeat(at: int, **changes: object) -> Change:
    return lambda row, rows: replace(rows[at], id=row.id, **changes)


def cut(picture: Image.Image) -> Image.Image:
    width, height = picture.size
    return picture.crop((round(width * 0.03), round(height * 0.03), round(width * 0.97), round(height * 0.97)))


def draw(name: str) -> bytes:
    picture, _ = SIMPLE[name]((640, 480), Random(name))
    return encode(picture)


NEARLY = "Who painted the portrait depicted in the image, and for no one in his life?"
PLANTS = (
    Plant("a picture cut off in its middle", repaint(lambda data: data[: len(data) // 2]), ("unreadable-image",)),
    Plant("a web page in place of a picture", repaint(lambda _: b"<!doctype html><p>404"), ("unreadable-image",)),
    Plant("a picture of one colour", repaint(lambda _: encode(Image.new("RGB", (320, 240), "navy"))), ("blank-image",)),
    Plant("an icon of 16 pixels", repaint(lambda _: encode(paint(90, (16, 16)))), ("tiny-image",)),
    *(
        Plant(f"a drawing: {name}", repaint(lambda _, name=name: draw(name)), ("simple-image",))
        for name in sorted(SIMPLE)[:3]
    ),
    Plant("a crop of another row's picture", copy_of(0, cut), ("like-image",)),
    Plant("a mirrored picture", copy_of(1, ImageOps.mirror), ("like-image",)),
    Plant("another row's picture", copy_of(2, lambda picture: picture), ("duplicate-image", "like-image")),
    Plant("no question", change(question=""), ("missing-question",)),
    Plant("a question of general knowledge", change(question="What is the capital of France?"), ("no-reference",)),
    Plant("two questions", change(question="Who is in this picture? When did she die?"), ("several-questions",)),
    Plant("two in one", change(question="Who built this tower and when was it built?"), ("several-questions",)),
    Plant("half a question", change(question="Which artist made the painting in this image, and the"),
          ("question-cut-off",)),
    Plant("a slot", change(question="Who built the {entity} in this image?"), ("unfilled-template",)),
    Plant("mojibake", change(question="Who built the cafÃ© in this image?"), ("encoding",)),
    Plant("an HTML entity", change(question="Who built the Tom &amp; Son shop in this image?"), ("encoding",)),
    Plant("an escape", change(question="Who built the caf\\u00e9 in this image?"), ("encoding",)),
    Plant("a path as question", change(question="data/questions/0005.txt"), ("question-no-text",)),
    Plant("no answer", change(answer="", alias=""), ("missing-answer",)),
    Plant("unknown", change(answer="unknown", alias="unknown"), ("no-real-answer",)),
    Plant("a refusal", change(answer="I'm sorry, but I cannot identify people.", alias="I cannot"),
          ("no-real-answer",)),
    Plant("a slot as answer", change(answer="{answer}", alias="{answer}"), ("unfilled-template",)),
    Plant("an address as answer", change(answer="https://example.org/a", alias="x"), ("answer-no-text",)),
    Plant("an essay", change(answer="It was painted in 1820. The painter lived near the sea. He was poor.", alias="x"),
          ("answer-too-long",)),
    Plant("the answer told", change(question="Which painter, Jon Vask, made the portrait in this image?"),
          ("answer-in-question",)),
    Plant("the answer inflected", change(question="Which Norwegian town is in this image?", answer="Norway", alias="x"),
          ("answer-in-question",)),
    Plant("a number spelled", change(question="Which of the forty-two towers is this?", answer="42", alias="x"),
          ("answer-in-question",)),
    Plant("Cyrillic", change(question="Что видно в Москве на фото?", answer="Москва", alias="x"),
          ("answer-in-question",)),
    Plant("a row twice", repeat(3), ("duplicate-question",)),
    Plant("another answer", repeat(4, answer="Ogrim", alias="x"), ("contradiction", "duplicate-question")),
    Plant("nearly a row twice", repeat(5, question=NEARLY),
          ("near-duplicate-question", "duplicate-image")),
)  # fmt: skip
