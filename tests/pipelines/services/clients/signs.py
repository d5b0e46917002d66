"""Pictures with a text on them, for tests of OCR."""

import io

from PIL import Image, ImageDraw, ImageFont

from pipelines.toy.textlayer import WrittenText, encode_layered

GROUND = (58, 84, 120)


def draw_sign(text="Kelmor Bridge", size=(420, 120), place=(60, 30), letters=40, layered=False):
    """Return a PNG with a text, white on blue; with ``layered`` it carries its text layer, too."""
    picture = Image.new("RGB", size, GROUND)
    font = ImageFont.load_default(letters)
    pen = ImageDraw.Draw(picture)
    pen.text(place, text, font=font, fill="white")
    if layered:
        box = tuple(map(float, pen.textbbox(place, text, font=font)))
        return encode_layered(picture, "PNG", [WrittenText(text, box)] if text else [])
    target = io.BytesIO()
    picture.save(target, "PNG")
    return target.getvalue()
