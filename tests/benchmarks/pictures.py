"""Shows what becomes of hostile pictures in a run, what each costs, and what the dearest cost that are let in.

Costs are taken in a process for each picture: its processor seconds, and its peak memory beyond the file and the
libraries.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from PIL import Image

from pipelines.errors import RecordFailed
from pipelines.pictures import open_pixels, probe_picture
from tests.benchmarks.measured import Measured, read_peak
from tests.chaos.driving import ROOT, make_environment, share_small_run
from tests.chaos.hostile_runs import HostileRun, run_hostile
from tests.hostile_pictures import HOSTILE, ODD, add_scans, cut, deflate_zeros, draw, encode, make_chunk, make_png

WIDE, WHOLE = (10_000, 10_000), (10_000, 5_000)
"""As many pixels as a JPEG may have, and as a picture of any other format."""
SECONDS, MEGABYTES = 1.0, 100
"""Budget of a hostile picture."""
MOST_SECONDS, MOST_MEGABYTES = 10.0, 1_200
"""Budget of the dearest picture that is let in."""
PALETTE = (make_chunk(b"PLTE", bytes(768)), make_chunk(b"tRNS", bytes(256)))
LISTED: dict[str, Callable[[], bytes]] = {
    "bomb (PNG of 400 megapixels in 218 KB)": HOSTILE["png bomb of 400 megapixels"].build,
    "truncated (JPEG)": lambda: cut("JPEG"),
    "wrong extension (WebP)": lambda: encode(draw(), "WEBP"),
    "SVG": HOSTILE["svg"].build,
    "animated (GIF)": ODD["animated gif"].build,
    "CMYK (JPEG)": ODD["jpeg of four inks"].build,
    "1 x 1": lambda: encode(draw((1, 1)), "PNG"),
    "30,000 px wide": HOSTILE["png 30,000 pixels wide"].build,
    "EXIF-rotated (JPEG)": ODD["turned jpeg"].build,
    "zero bytes": HOSTILE["zero bytes"].build,
}
"""Each takes the place of an article's lead picture, under its file name."""
DEAREST: dict[str, Callable[[], bytes]] = {
    "50 megapixels, PNG, 16 bits, colour with transparency": lambda: make_png(
        WHOLE, 16, 6, deflate_zeros(WHOLE[1] * (8 * WHOLE[0] + 1))
    ),
    "50 megapixels, PNG, palette with transparency": lambda: make_png(
        WHOLE, 8, 3, deflate_zeros(WHOLE[1] * (WHOLE[0] + 1)), *PALETTE
    ),
    "50 megapixels, GIF": lambda: encode(Image.new("P", WHOLE), "GIF"),
    "50 megapixels, WebP with transparency": lambda: encode(
        Image.new("RGBA", WHOLE), "WEBP", lossless=True, quality=0, method=0
    ),
    "100 megapixels, JPEG, four inks": lambda: encode(Image.new("CMYK", WIDE)),
    "100 megapixels, JPEG, progressive, 60 scans": lambda: add_scans(50, WIDE),
}


def look(path: Path, whole: bool) -> tuple[float, float, str]:
    """Return processor seconds, peak megabytes and what became of a picture, probed or opened at its whole size."""
    data = path.read_bytes()
    probe_picture(encode(Image.new("RGB", (64, 64))))
    before, started, outcome = read_peak(), time.process_time(), "kept"
    try:
        if whole:
            open_pixels(data)
        else:
            probe_picture(data)
    except RecordFailed as refusal:
        outcome = refusal.error
    return time.process_time() - started, read_peak() - before, outcome


def run_child(path: Path, whole: bool) -> tuple[float, float, str]:
    """As :func:`look`, in a process of its own."""
    command = [sys.executable, "-m", "tests.benchmarks.pictures", str(path), str(int(whole))]
    out = subprocess.run(command, cwd=ROOT, env=make_environment(), stdout=subprocess.PIPE, check=True).stdout
    seconds, megabytes, outcome = json.loads(out)
    return seconds, megabytes, outcome


def measure_one(path: Path, whole: bool = False) -> tuple[str, str]:
    """Return a picture's cost in words and what became of it."""
    seconds, megabytes, outcome = run_child(path, whole)
    return f"{seconds:.2f} s, {megabytes:.0f} MB", outcome


def describe_end(run: HostileRun, name: str) -> str:
    """Say how a picture's row ended, with the reason."""
    refusal, image = run.refusals.get(name), run.images[run.files[name]]
    if refusal is not None and refusal["reason"].startswith("image"):
        return f"seed refused, {refusal['reason']}: {refusal['detail']}"
    file = run.files[name]
    grounded = ", stands in a question" if file in run.grounded else ""
    return f"kept as {image['format']} of {image['width']} x {image['height']} (named {Path(file).suffix}){grounded}"


def measure(scratch: Path) -> list[Measured]:
    """Measure every hostile picture, those of the list in a run as well, then the dearest of those that are let in."""
    run = run_hostile(share_small_run(scratch)[0], scratch / "hostile", {name: make() for name, make in LISTED.items()})
    builds = LISTED | {name: hostile.build for name, hostile in HOSTILE.items()}
    measured, path = [], scratch / "picture"
    for name, build in builds.items():
        path.write_bytes(build())
        value, outcome = measure_one(path)
        end = describe_end(run, name) if name in LISTED else outcome
        measured.append(Measured(f"{name}: {end}", value, f"{SECONDS:.0f} s, {MEGABYTES} MB"))
    for name, build in DEAREST.items():
        path.write_bytes(build())
        for what, whole in (("probed", False), ("opened", True)):
            budget = f"{MOST_SECONDS:.0f} s, {MOST_MEGABYTES} MB"
            measured.append(Measured(f"{name}, {what}", measure_one(path, whole)[0], budget))
    return measured


if __name__ == "__main__":
    sys.stdout.write(json.dumps(look(Path(sys.argv[1]), sys.argv[2] == "1")))
