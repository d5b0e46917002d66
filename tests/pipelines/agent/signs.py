"""Drawn roadside scenes with a sign: pictures whose words can be read, and that differ at a glance."""

import io
from functools import lru_cache
from random import Random

from PIL import Image, ImageDraw, ImageFont

WORDS = (
    "Harbour", "Museum", "Station", "Market", "Garden", "Castle", "Bridge", "Library", "Theatre", "Hospital",
    "Airport", "Village", "Chapel", "Quarry", "Forest", "Meadow", "Orchard", "Tavern", "Lighthouse", "Cathedral",
)  # fmt: skip


@lru_cache(maxsize=8)
def _load_font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def draw_scene(seed: int, size: tuple[int, int] = (640, 480), words: int = 4) -> Image.Image:
    """Return sky, hills, houses and, with words, a sign in the foreground; the seed decides everything."""
    random = Random(seed)
    width, height = size
    image = Image.new("RGB", size, tuple(random.randint(150, 235) for _ in range(3)))
    draw = ImageDraw.Draw(image)
    horizon = random.randint(height // 3, height // 2)
    for _ in range(random.randint(3, 6)):
        middle, reach = random.randint(0, width), random.randint(width // 8, width // 3)
        peak = horizon - random.randint(height // 12, height // 4)
        colour = tuple(random.randint(60, 150) for _ in range(3))
        draw.polygon([(middle - reach, horizon), (middle, peak), (middle + reach, horizon)], fill=colour)
    draw.rectangle((0, horizon, width, height), fill=tuple(random.randint(70, 150) for _ in range(3)))
    for _ in range(random.randint(4, 9)):
        left, side = random.randint(0, width), random.randint(width // 20, width // 7)
        foot = horizon + random.randint(0, height // 4)
        colour = tuple(random.randint(40, 220) for _ in range(3))
        draw.rectangle((left, foot - side, left + side, foot), fill=colour, outline=(30, 30, 30))
        draw.ellipse((left + side // 4, foot - side // 2, left + side // 2, foot - side // 4), fill=(240, 230, 150))
    if words:
        _draw_sign(draw, random, size, random.sample(WORDS, words))
    return image


def _draw_sign(draw: ImageDraw.ImageDraw, random: Random, size: tuple[int, int], words: list[str]) -> None:
    font = _load_font(max(12, size[1] // 16))
    line = size[1] // 12
    left = random.randint(size[0] // 20, size[0] // 2)
    top = size[1] - line * len(words) - size[1] // 8
    box = (left, top, left + size[0] * 2 // 5, top + line * len(words) + line // 2)
    draw.rectangle(box, fill=(250, 250, 245), outline=(20, 20, 20), width=3)
    for number, word in enumerate(words):
        draw.text((left + line // 2, top + line // 4 + number * line), word, fill=(15, 15, 20), font=font)


def encode_scene(image: Image.Image, extension: str = "jpg") -> bytes:
    """Return a drawn picture as a file's bytes."""
    target = io.BytesIO()
    if extension == "jpg":
        image.save(target, "JPEG", quality=90)
    else:
        image.save(target, "PNG")
    return target.getvalue()
