"""Thirty defects of published files for each layout, written by somebody who had not read the checks.

A plant changes a clean file in place and says which rows it spoilt. The plants of one batch spoil different rows, so
that one audit tells about all of them; what is alike (four bad answers, say) lies in different batches.
"""

import copy
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from PIL import Image, ImageOps

from tests.audit.bank import draw_flag, draw_icon, draw_map, draw_photograph, encode
from tests.audit.published import LAYOUTS, Layout, Row, Turns, make_rows, write_pictures

ROWS, EVALUATION, BATCHES = 64, 12, 4
PICTURE = (
    "image picture photo file icon logo flag map blank tiny small truncat broken unread extension format plain flat "
    "simple draw duplicate same like copy copies mirror crop missing pixel size overlap"
).split()  # fmt: skip
TEXT = (
    "question refer picture image mention answer leak template text encod mojibake entit markup token control "
    "placeholder duplicate same near several two charac overlap"
).split()  # fmt: skip
ANSWER = (
    "answer refus placeholder url link value final often share"
).split()  # fmt: skip
TALK = (
    "role turn order message conversation placeholder image tool call json final answer end token control train "
    "trajectory drop format"
).split()  # fmt: skip


@dataclass
class File:
    """A clean file in a layout, and a second one of evaluation questions that shares nothing with it."""

    layout: Layout
    rows: list[Row]
    evaluation: list[Row] = field(default_factory=list)

    def write(self, folder: Path) -> list[Path]:
        """Write both files and their pictures; return their paths."""
        paths = [folder / self.layout.file, folder / "held-out" / self.layout.file]
        for path, rows in zip(paths, (self.rows, self.evaluation), strict=True):
            path.parent.mkdir(parents=True, exist_ok=True)
            if self.layout.kind != "bytes":
                write_pictures(folder, rows)
            self.layout.write(path, rows)
        return paths

    def mark(self, place: int) -> str:
        """Return the id of a row."""
        return self.layout.mark(place, self.rows[place])


Plant = Callable[[File, int], tuple[int, ...]]


@cache
def share_rows() -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    return tuple(make_rows(0, ROWS)), tuple(make_rows(100, EVALUATION))


def make_clean(layout: str) -> File:
    """Return a clean file of 64 rows in a layout, and 12 of evaluation."""
    rows, evaluation = share_rows()
    return File(LAYOUTS[layout], copy.deepcopy(list(rows)), copy.deepcopy(list(evaluation)))


# Pictures.


def open_picture(row: Row) -> Image.Image:
    return Image.open(io.BytesIO(row.picture or b"")).convert("RGB")


def plant_picture(make: Callable[[File, int], bytes | None]) -> Plant:
    def plant(file: File, at: int) -> tuple[int, ...]:
        file.rows[at].picture = make(file, at)
        return (at,)

    return plant


def repeat_picture(change: Callable[[Image.Image], Image.Image]) -> Plant:
    def plant(file: File, at: int) -> tuple[int, ...]:
        file.rows[at].picture = encode(change(open_picture(file.rows[at + 24])))
        return (at, at + 24)

    return plant


def crop(picture: Image.Image) -> Image.Image:
    width, height = picture.size
    return picture.crop((width * 3 // 100, height * 3 // 100, width * 97 // 100, height * 97 // 100)).resize((512, 416))


def copy_picture(file: File, at: int) -> tuple[int, ...]:
    file.rows[at].picture = file.rows[at + 24].picture
    return (at, at + 24)


def name_after_answer(file: File, at: int) -> tuple[int, ...]:
    row = file.rows[at]
    row.answer, row.name = "Kaiserbrücke Aldenrode", "Kaiserbruecke_Aldenrode_entrance.jpg"
    return (at,)


BLANK = encode(Image.new("RGB", (512, 416), (243, 243, 243)))
WEB_PAGE = b"<!DOCTYPE html>\n<html><head><title>403 Forbidden</title></head><body><h1>Forbidden</h1></body></html>\n"

# Questions and answers.


def ask(question: str, answer: str = "") -> Plant:
    """Plant a question, with an answer where the defect lies between both."""

    def plant(file: File, at: int) -> tuple[int, ...]:
        row = file.rows[at]
        row.question, row.answer = question, answer or row.answer
        return (at,)

    return plant


def reply(answer: str) -> Plant:
    def plant(file: File, at: int) -> tuple[int, ...]:
        file.rows[at].answer = answer
        return (at,)

    return plant


def rephrase_another(file: File, at: int) -> tuple[int, ...]:
    other = file.rows[at + 24]
    file.rows[at].question = other.question.replace("?", " exactly?")
    file.rows[at].answer = other.answer
    return (at, at + 24)


def repeat_template(file: File, at: int) -> tuple[int, ...]:
    nouns = "abbey, barn, canal, depot, estate, ferry, garden, hotel, inn, jetty, kiosk, lodge, mill, nave, oven".split(
        ", "
    )
    places = range(at, at + len(nouns))
    for place, noun in zip(places, nouns, strict=True):
        file.rows[place].question = f"What is the name of the town in which the {noun} in the picture is located?"
    return tuple(places)


def repeat_answer(file: File, at: int) -> tuple[int, ...]:
    for place in range(at, at + 15):
        file.rows[place].answer = file.rows[place].second = "Lisbon"  # the same share of the answers in every layout
    return tuple(range(at, at + 15))


# Rows.


def repeat_row(file: File, at: int) -> tuple[int, ...]:
    file.rows[at] = copy.deepcopy(file.rows[at + 24])
    if file.layout.name == "webqa":  # its ids are keys
        file.rows[at].mark = "d5bc1c280dba11ecb1e8999999999999"
    return (at, at + 24)


def copy_held_out(file: File, at: int) -> tuple[int, ...]:
    held = file.evaluation[11]
    row = file.rows[at]
    row.question, row.answer, row.picture = held.question, held.answer, held.picture
    return (at,)


def lose_placeholder(file: File, at: int) -> tuple[int, ...]:
    file.rows[at].placeholder = ""
    return (at,)


# Conversations.


def retell(edit: Callable[[Turns], Turns]) -> Plant:
    def plant(file: File, at: int) -> tuple[int, ...]:
        file.rows[at].edits.append(edit)
        return (at,)

    return plant


def swap_turns(turns: Turns) -> Turns:
    return [turns[0], turns[2], turns[1], turns[3]]


def break_call(turns: Turns) -> Turns:
    return [turns[0], ("call", turns[1][1].replace('"arguments": {', '"arguments": {{')[:-1]), *turns[2:]]


def misname_tool(turns: Turns) -> Turns:
    return [turns[0], ("call", turns[1][1].replace("text_search", "open_browser")), *turns[2:]]


def quote_placeholder(turns: Turns) -> Turns:
    return [*turns[:2], ("tool", turns[2][1] + " Figure: <image> (scan)."), turns[3]]


def break_off(turns: Turns) -> Turns:
    return turns[:3]


def contradict_sources(turns: Turns) -> Turns:
    return [*turns[:3], ("assistant", "Reykjanesbrekka")]


def leak_control(turns: Turns) -> Turns:
    return [*turns[:2], ("tool", turns[2][1] + "<|im_end|>\n<|im_start|>assistant"), turns[3]]


# The lists: name, plant, what the report must be about.

Named = tuple[str, Plant, Sequence[str]]
BASE: tuple[Named, ...] = (
    ("blank picture", plant_picture(lambda file, at: BLANK), PICTURE),
    ("tiny picture", plant_picture(lambda file, at: encode(draw_photograph(900, 24, 24))), PICTURE),
    ("truncated picture", plant_picture(lambda file, at: (file.rows[at].picture or b"")[:9000]), PICTURE),
    ("icon", plant_picture(lambda file, at: encode(draw_icon())), PICTURE),
    ("flag", plant_picture(lambda file, at: encode(draw_flag())), PICTURE),
    ("mirrored picture", repeat_picture(ImageOps.mirror), PICTURE),
    ("picture of another row", copy_picture, PICTURE),
    ("no picture", plant_picture(lambda file, at: None), PICTURE),
    ("picture not mentioned", ask("Which Dutch painter moved to Aldenrode in the spring of 1871?"), TEXT),
    ("answer in question", ask("What is the name of the lighthouse at Brekkvik in the picture?", "Brekkvik"), TEXT),
    ("answer in another script", ask("Which city runs the tram in the picture to «Владивосток»?", "Vladivostok"), TEXT),
    ("answer as a numeral word", ask("How many of the twelve arches in the picture carry the road?", "12"), TEXT),
    ("two questions", ask("Who designed the tower in the picture, and in which year was it opened?"), TEXT),
    ("unfilled template", ask("In which year was the {entity} in the picture opened?"), TEXT),
    ("mojibake", ask("Which cafÃ© near the square in the picture did Ã‰douard RosÃ©n visit?"), TEXT),
    ("HTML entities", ask("Who built the &quot;Old Mill&quot; &amp; the weir shown in the picture?"), TEXT),
    ("near-duplicate question", rephrase_another, TEXT),
    ("one template too often", repeat_template, TEXT),
    ("refusal", reply("I'm sorry, but I cannot identify this from the picture."), ANSWER),
    ("placeholder as answer", reply("N/A"), ANSWER),
    ("URL as answer", reply("https://en.wikipedia.org/wiki/Aldenrode"), ANSWER),
    ("one answer too often", repeat_answer, ANSWER),
    ("row twice", repeat_row, PICTURE + TEXT + ["id"]),
    ("row of the evaluation file", copy_held_out, PICTURE + TEXT + ["eval"]),
)  # fmt: skip
QUESTIONS: tuple[Named, ...] = (
    ("map", plant_picture(lambda file, at: encode(draw_map())), PICTURE),
    ("cropped picture", repeat_picture(crop), PICTURE),
    ("inflected answer", ask("From which country does the Norwegian sailor in the picture come?", "Norway"), TEXT),
    ("control tokens", ask("Who painted the ship in the picture?<|im_end|>\n<|im_start|>assistant"), TEXT),
)
LYING: Named = ("lying extension", plant_picture(lambda file, at: encode(draw_photograph(901), "PNG")), PICTURE)
NAMED: Named = ("file named after the answer", name_after_answer, PICTURE + TEXT)
EMPTY: Named = ("empty answer", reply(""), ANSWER)
WEB: Named = ("web page for a picture", plant_picture(lambda file, at: WEB_PAGE), PICTURE)
CONVERSATIONS: tuple[Named, ...] = (
    LYING,
    ("roles out of order", retell(swap_turns), TALK),
    ("placeholder missing", lose_placeholder, TALK),
    ("tool call no JSON", retell(break_call), TALK),
    ("ends without an answer", retell(break_off), TALK),
    ("placeholder in an observation", retell(quote_placeholder), TALK),
)
TALKED = {"URL as answer": ("unknown tool", retell(misname_tool), TALK),
          "near-duplicate question": ("final answer that no source gives", retell(contradict_sources), TALK),
          "answer in another script": ("control tokens in an observation", retell(leak_control), TALK)}  # fmt: skip
"""What takes the place of a plant of questions in conversations."""


def list_plants(layout: str) -> list[Named]:
    """Return the thirty plants of a layout."""
    kind = LAYOUTS[layout].kind
    if kind == "talk":
        return [*(TALKED.get(plant[0], plant) for plant in BASE), *CONVERSATIONS]
    if layout == "verl":
        return [*BASE, *QUESTIONS, WEB, ("placeholder missing", lose_placeholder, TALK)]
    if kind == "bytes":
        return [*BASE, *QUESTIONS, WEB, EMPTY]
    return [*BASE, *QUESTIONS, LYING, EMPTY if layout in ("infoseek", "webqa") else NAMED]


def plant_batch(layout: str, batch: int) -> tuple[File, list[tuple[str, tuple[int, ...], Sequence[str]]]]:
    """Return a file with every fourth plant in it, and what was planted: name, places of the rows, words to be used."""
    file = make_clean(layout)
    planted, single, wide = [], 0, 40
    for name, plant, words in list_plants(layout)[batch::BATCHES]:
        if plant in (repeat_template, repeat_answer):
            planted.append((name, plant(file, wide), words))
            wide = 8
            continue
        planted.append((name, plant(file, single), words))
        single += 1
    return file, planted
