"""Pictures for the rules' tests."""

import io

from PIL import Image


def draw(kind, width, height, **options):
    buffer = io.BytesIO()
    Image.new("RGB", (width, height), (90, 120, 40)).save(buffer, kind, **options)
    return buffer.getvalue()


def draw_png(width, height):
    return draw("PNG", width, height)
