"""Clean material for files of questions: pictures like photographs, questions that point at them, short answers."""

import io

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

GROUPS = (
    (
        "bridge, lighthouse, cathedral, castle, railway station, dam, opera house, windmill, stadium, town hall",
        (
            ("Which architect drew up the plans for {}?", "person"),
            ("In which year was {} opened to the public?", "year"),
            ("What is the name of the river that flows closest to {}?", "river"),
            ("Which company won the contract to build {}?", "company"),
            ("After whom is {} named?", "person"),
            ("How many steps lead up to the main entrance of {}?", "count"),
            ("Which town lies on the bank opposite {}?", "town"),
            ("Who laid the foundation stone of {}?", "person"),
            ("What kind of stone covers the front of {}?", "stone"),
            ("Which engineer repaired {} after the flood?", "person"),
            ("In what year did a fire damage {}?", "year"),
            ("Which district has {} on its coat of arms?", "town"),
            ("Who owned {} before the state bought it?", "company"),
        ),
    ),
    (
        "bird, butterfly, orchid, lizard, mushroom, beetle, frog, palm",
        (
            ("Who first described the species of {}?", "person"),
            ("To which genus does {} belong?", "genus"),
            ("On which island was {} rediscovered?", "island"),
            ("What does {} mainly feed on or grow on?", "food"),
            ("Which museum keeps the type specimen of {}?", "company"),
            ("Which explorer is honoured in the scientific name of {}?", "person"),
            ("What month does {} usually start to breed or flower?", "month"),
            ("How many ribs or stripes tell {} from its nearest relative?", "count"),
        ),
    ),
    (
        "man on the left, woman with the trophy, player in red, singer on the stage, speaker at the lectern, "
        "cyclist in front, officer with the medal, dancer in the middle",
        (
            ("Where was {} born?", "town"),
            ("Which club did {} join at the start of the career?", "club"),
            ("Who taught {}?", "person"),
            ("When did {} first win a national prize?", "year"),
            ("Which record label or publisher signed {}?", "company"),
            ("What is the surname of the coach of {}?", "surname"),
            ("In which village does the family of {} live?", "town"),
            ("What instrument does the sister of {} play?", "instrument"),
        ),
    ),
    (
        "mountain, lake, waterfall, island, valley, harbour, market square, glacier",
        (
            ("Which province administers {}?", "province"),
            ("Who was the first to map {}?", "person"),
            ("What is the local name for the wind that blows over {}?", "wind"),
            ("Into which sea does the water of {} finally drain?", "sea"),
            ("Which treaty mentions {} by name?", "treaty"),
            ("How deep, in metres, is the deepest point near {}?", "number"),
            ("Which saint is honoured every summer beside {}?", "saint"),
            ("What ferry line used to call at {}?", "company"),
        ),
    ),
    (
        "aircraft, locomotive, sailing ship, painting, sculpture, racing car, coin, violin",
        (
            ("Which workshop made {}?", "company"),
            ("Who commissioned {}?", "person"),
            ("In which museum can {} be seen today?", "museum"),
            ("What was {} called before it was sold?", "ship"),
            ("For which exhibition was {} made?", "fair"),
            ("How much does {} weigh in kilograms?", "number"),
            ("Which dealer brought {} across the border?", "person"),
            ("What metal or wood is the front of {} made of?", "metal"),
        ),
    ),
)  # fmt: skip
REFERENCES = ("the {} in the picture", "this {}", "the {} shown here", "the pictured {}",
              "the {} in the photograph", "the {} you can see in the image", "the {} depicted")  # fmt: skip
POINTED = ("the {} in the picture", "the {} in this photo", "the {} shown in the image", "the {} seen here")
"""References to somebody who is told by a place in the picture."""
GIVEN = (
    "Anselm Birgit Corrado Dagny Edvin Fiammetta Goran Hedda Ilmari Jorunn Kasimir Liesel Matteo Nadezhda Oskar Petra "
    "Quirin Ragna Silvio Tove"
).split()  # fmt: skip
FAMILY = (
    "Aspelund Brunetti Castellan Dreyer Eskola Falkner Gustavsen Horvat Ivarsson Jelinek Kowalczyk Lindqvist "
    "Marchetti Novotny Orlova Paasikivi Quist Rosetti Szabo Tamm Ullrich Vestergaard Wieczorek Zapletal"
).split()  # fmt: skip
TOWNS = (
    "Aldenrode Brekkvik Castelmorro Drumlish Eskelund Fontavera Grunwede Hallbacken Imbreda Jasenovo Kirkvoll Lomazzo "
    "Mirandel Nordstrup Ostravice Pellworth Querfeld Rosavik Sandomir Tervola Umbriano Valdoro Wendisch Ylitori "
    "Zelenice"
).split()  # fmt: skip
ENDINGS = {
    "river": ("Water", "Beck", "Aa"), "company": ("and Sons", "Works", "Society"), "club": ("Rovers", "United"),
    "province": ("Land", "Shire"), "sea": ("Sea", "Gulf"), "treaty": ("Accord",), "museum": ("Gallery", "Collection"),
    "fair": ("Biennale", "Exposition"), "ship": ("Star", "Maiden"), "island": ("Holm", "Skerry"), "wind": ("wind",),
}  # fmt: skip
GENERA = "Abrotella Belonia Caradrina Dendrixa Erythrota Filamona Gonoptera Helicella Ixodira Lamprina".split()
WORDS = {
    "stone": "basalt granite limestone marble travertine slate sandstone porphyry gneiss tuff".split(),
    "metal": "walnut brass bronze oak copper maple tin spruce".split(),
    "food": "lichens midges figs nectar snails heather aphids birch krill acorns".split(),
    "month": "March April May June July October November February".split(),
    "instrument": "cello bassoon harp clarinet accordion oboe trombone viola".split(),
}


def make_answer(kind: str, number: int) -> str:
    """Return a short answer of a kind; different for every number where the kind has so many."""
    town, family = TOWNS[number * 7 % len(TOWNS)], FAMILY[number * 5 % len(FAMILY)]
    if kind == "person":
        return f"{GIVEN[number * 3 % len(GIVEN)]} {FAMILY[number * 11 % len(FAMILY)]}"
    if kind in ("year", "count", "number"):
        return str(
            {"year": 1702 + number * 13 % 311, "count": 21 + number * 7 % 160, "number": 203 + number * 37}[kind]
        )
    if kind in WORDS:
        return WORDS[kind][number * 3 % len(WORDS[kind])]
    if kind == "genus":
        return GENERA[number % len(GENERA)][:-1] + ("a" if number < 40 else "odes")
    if kind in ENDINGS:
        return f"{town if number % 2 else family} {ENDINGS[kind][number % len(ENDINGS[kind])]}"
    return {"surname": family, "saint": f"Saint {GIVEN[number % len(GIVEN)]}"}.get(kind, town)


def make_question(number: int) -> tuple[str, str]:
    """Return question and answer; no two numbers below 350 share a question, and templates take turns."""
    pairs = [(nouns.split(", "), template, kind) for nouns, found in GROUPS for template, kind in found]
    lap, place = divmod(number, len(pairs))
    place = place * 7 % len(pairs)
    nouns, template, kind = pairs[place]
    ways = POINTED if "man on the left" in nouns else REFERENCES
    pointed = ways[(place * 2 + lap * 3) % len(ways)].format(nouns[(place * 3 + lap) % len(nouns)])
    return template.format(pointed), make_answer(kind, number)


def draw_cloud(rng: np.random.Generator, width: int, height: int, slope: float) -> np.ndarray:
    """Return noise in [0, 1] whose spectrum falls like that of a natural scene."""
    across, down = np.fft.rfftfreq(width)[None, :], np.fft.fftfreq(height)[:, None]
    radius = np.maximum(np.hypot(across, down), 1 / max(width, height))
    wave = np.exp(2j * np.pi * rng.random(radius.shape)) / radius**slope
    field = np.fft.irfft2(wave, (height, width))
    return (field - field.min()) / (np.ptp(field) or 1)


def draw_photograph(number: int, width: int = 512, height: int = 416) -> Image.Image:
    """Return a picture with the light, the texture and the grain of a photograph, another for each number."""
    rng = np.random.default_rng(number + 1000)
    palette = rng.integers(15, 240, (4, 3)) * 0.6 + rng.integers(30, 220, 3) * 0.4
    rough = draw_cloud(rng, width, height, 1.5)
    place = rough * 2.999
    low = place.astype(int)
    ground = palette[low] + (palette[low + 1] - palette[low]) * (place - low)[..., None]
    sky = palette[3] + (255 - palette[3]) * draw_cloud(rng, width, height, 1.9)[..., None]
    horizon = height * rng.uniform(0.2, 0.6) + 60 * (rough.mean(axis=0) - rough.mean()) * 4
    scene = np.where((np.arange(height)[:, None] < horizon[None, :])[..., None], sky, ground)
    for _ in range(int(rng.integers(4, 9))):
        draw_object(rng, scene, rough)
    scene *= rng.uniform(0.75, 1.1) - 0.25 * np.hypot(*np.meshgrid(
        np.linspace(-0.7, 0.7, width), np.linspace(-0.7, 0.7, height)))[..., None]  # fmt: skip
    scene += rng.normal(0, 5, (height, width, 1))
    return Image.fromarray(np.clip(scene, 0, 255).astype(np.uint8)).filter(ImageFilter.GaussianBlur(0.6))


def draw_object(rng: np.random.Generator, scene: np.ndarray, rough: np.ndarray) -> None:
    """Paint a body with texture and light from one side into a scene."""
    height, width = scene.shape[:2]
    x, y = int(rng.integers(0, width)), int(rng.integers(height // 4, height))
    across, down = int(rng.integers(20, max(width // 4, 21))), int(rng.integers(20, max(height // 3, 21)))
    left, top = max(x - across, 0), max(y - down, 0)
    part = scene[top : y + down, left : x + across]
    shape = Image.new("L", (part.shape[1], part.shape[0]))
    pen, x, y = ImageDraw.Draw(shape), x - left, y - top
    box = (x - across, y - down, x + across, y + down)
    roof = [(x - across, y), (x, y - down), (x + across, y), (x + across, y + down), (x - across, y + down)]
    (pen.ellipse, pen.rectangle, lambda _, fill: pen.polygon(roof, fill=fill))[rng.integers(0, 3)](box, fill=255)
    mask = np.asarray(shape, dtype=float)[..., None] / 255
    light = 0.6 + 0.7 * np.linspace(0, 1, part.shape[1])[None, :, None]
    texture = 0.8 + 0.4 * rough[: part.shape[0], : part.shape[1], None]
    part += mask * (rng.integers(30, 230, 3) * light * texture - part)


def encode(picture: Image.Image, kind: str = "JPEG") -> bytes:
    """Return the bytes of a picture file."""
    written = io.BytesIO()
    picture.save(written, kind, **({"quality": 88} if kind == "JPEG" else {}))
    return written.getvalue()


def draw_flag() -> Image.Image:
    """Return a flag of three stripes."""
    picture = Image.new("RGB", (900, 600), (0, 70, 173))
    ImageDraw.Draw(picture).rectangle((300, 0, 599, 599), fill=(255, 255, 255))
    ImageDraw.Draw(picture).rectangle((600, 0, 899, 599), fill=(206, 17, 38))
    return picture


def draw_icon() -> Image.Image:
    """Return a logo: a few flat colours on white."""
    picture = Image.new("RGB", (512, 512), "white")
    pen = ImageDraw.Draw(picture)
    pen.ellipse((60, 60, 452, 452), fill=(20, 140, 90))
    pen.polygon([(256, 110), (390, 360), (122, 360)], fill="white")
    pen.rectangle((226, 250, 286, 400), fill=(250, 200, 0))
    return picture


def draw_map() -> Image.Image:
    """Return a locator map: pale land and sea, thin borders, one red dot."""
    picture = Image.new("RGB", (800, 640), (198, 220, 236))
    pen = ImageDraw.Draw(picture)
    rng = np.random.default_rng(5)
    for step in range(7):
        x, y = 60 + step % 3 * 240, 60 + step // 3 * 190
        shape = [(x + dx, y + dy + int(rng.integers(0, 60))) for dx, dy in zip(
            [0, 90, 200, 230, 180, 90, 10], [20, 0, 10, 90, 160, 170, 120], strict=True
        )]  # fmt: skip
        pen.polygon(shape, fill=(254, 254, 233), outline=(100, 100, 100))
    pen.ellipse((392, 300, 408, 316), fill=(200, 0, 0))
    return picture
