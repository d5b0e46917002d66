"""Six released questions on one sheet: ``python -m tests.benchmarks.contact_sheet WORKSPACE OUT.png``.

Degraded pictures come first, beside what their repair makes of them; the others are drawn by their ids.
"""

import io
import sys
import textwrap
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from pipelines.agent.pictures import has_opencv, make_repairs
from pipelines.cli.facets import read_stage
from pipelines.ids import draw_unit
from pipelines.pictures import PictureStore, open_pixels
from pipelines.toy.names import fold_accents
from schemas.datasets import Enhancement

ROWS = 6
DEGRADED = 2
SIDE, GAP, WIDTH = 200, 12, 1080
COLOURS = 128


def choose_rows(root: Path) -> list[Enhancement]:
    released = {row.parent_id for row in read_stage(root, "releases")}
    rows = [
        row for row in read_stage(root, "enhancements") if isinstance(row, Enhancement) and row.record_id in released
    ]
    rows.sort(key=lambda row: draw_unit(7, row.record_id))
    degraded = [row for row in rows if row.trial][:DEGRADED]
    return [*degraded, *(row for row in rows if not row.trial)][:ROWS]


def list_pictures(row: Enhancement, store: PictureStore) -> list[tuple[str, bytes]]:
    if row.trial is None or row.original is None:
        return [("", store.read(row.picture))]
    shown = store.read(row.picture)
    repaired = make_repairs(None, has_opencv())[row.trial.degradation].mend(shown)
    pictures = [("original", store.read(row.original)), (row.trial.degradation, shown)]
    return [*pictures, *([(row.trial.repair, repaired)] if repaired else [])]


def describe(row: Enhancement) -> list[str]:
    seen = row.depiction
    lines = [row.text, f"Answer: {row.answer.surface}", "Hidden: " + " > ".join(node.title for node in row.proof.nodes)]
    if seen is not None:
        lines.append(f"{seen.source} picture, ranked by {seen.ranker} ({seen.score:.2f}), {seen.ease} to look up")
    if row.picture is not None:
        lines.append(f"{row.picture.author}, {row.picture.licence}")
    width = 100 if row.trial is None else 56
    # Pillow's own font has no diacritics.
    return [part for line in lines for part in textwrap.wrap(fold_accents(line), width)]


def draw_sheet(root: Path) -> Image.Image:
    store, rows = PictureStore(root / "images"), choose_rows(root)
    sheet = Image.new("RGB", (WIDTH, GAP + len(rows) * (SIDE + 2 * GAP)), "white")
    draw = ImageDraw.Draw(sheet)
    large, small = ImageFont.load_default(14), ImageFont.load_default(12)
    for place, row in enumerate(rows):
        top, left = GAP + place * (SIDE + 2 * GAP), GAP
        for label, data in list_pictures(row, store):
            picture = open_pixels(data)
            picture.thumbnail((SIDE, SIDE - 16))
            sheet.paste(picture, (left, top))
            draw.text((left, top + SIDE - 14), label, fill="gray", font=small)
            left += SIDE + GAP
        draw.multiline_text((left + GAP, top), "\n".join(describe(row)), fill="black", font=large, spacing=5)
    return sheet


def write_sheet(root: Path, out: Path) -> None:
    target = io.BytesIO()
    draw_sheet(root).quantize(COLOURS).save(target, "PNG", optimize=True)
    out.write_bytes(target.getvalue())


if __name__ == "__main__":
    write_sheet(Path(sys.argv[1]), Path(sys.argv[2]))
