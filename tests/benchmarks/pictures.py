"""Measures what a hostile picture costs before it is refused, and the dearest pictures that are let in.

Each is looked at in a process of its own: its processor seconds, and its peak memory beyond the file and the libraries.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from PIL import Image

from pipelines.errors import RecordFailed
from pipelines.pictures import probe_picture
from pipelines.pixels import open_pixels
from tests.benchmarks.measured import Measured, read_peak
from tests.chaos.driving import ROOT, make_environment
from tests.hostile_pictures import HOSTILE, add_scans, deflate_zeros, encode, make_chunk, make_png

WIDE = (10_000, 10_000)
"""As many pixels as a picture may have."""
SECONDS, MEGABYTES = 1.0, 100
"""Budget of a hostile picture."""
MOST_SECONDS, MOST_MEGABYTES = 10.0, 2_048
"""Budget of the dearest picture that is let in."""
PALETTE = (make_chunk(b"PLTE", bytes(768)), make_chunk(b"tRNS", bytes(256)))
DEAREST: dict[str, Callable[[], bytes]] = {
    "PNG, 16 bits, colour with transparency": lambda: make_png(WIDE, 16, 6, deflate_zeros(10_000 * 80_001)),
    "PNG, 16 bits, grey": lambda: make_png(WIDE, 16, 0, deflate_zeros(10_000 * 20_001)),
    "PNG, palette with transparency": lambda: make_png(WIDE, 8, 3, deflate_zeros(10_000 * 10_001), *PALETTE),
    "GIF": lambda: encode(Image.new("P", WIDE), "GIF"),
    "WebP with transparency": lambda: encode(Image.new("RGBA", WIDE), "WEBP", lossless=True, quality=0, method=0),
    "JPEG": lambda: encode(Image.new("RGB", WIDE)),
    "JPEG, four inks": lambda: encode(Image.new("CMYK", WIDE)),
    "JPEG, progressive, 60 scans": lambda: add_scans(50, WIDE),
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


def measure_one(scratch: Path, build: Callable[[], bytes], whole: bool = False) -> tuple[str, str]:
    """Return a picture's cost in words and what became of it."""
    path = scratch / "picture"
    path.write_bytes(build())
    seconds, megabytes, outcome = run_child(path, whole)
    return f"{seconds:.2f} s, {megabytes:.0f} MB", outcome


def measure(scratch: Path) -> list[Measured]:
    """Measure every hostile picture, then the dearest of those that are let in."""
    measured = []
    for name, hostile in HOSTILE.items():
        value, outcome = measure_one(scratch, hostile.build)
        measured.append(Measured(f"{name}: {outcome}", value, f"{SECONDS:.0f} s, {MEGABYTES} MB"))
    for name, build in DEAREST.items():
        for what, whole in (("probed", False), ("opened", True)):
            value, _ = measure_one(scratch, build, whole)
            budget = f"{MOST_SECONDS:.0f} s, {MOST_MEGABYTES} MB"
            measured.append(Measured(f"100 megapixels, {name}, {what}", value, budget))
    return measured


if __name__ == "__main__":
    sys.stdout.write(json.dumps(look(Path(sys.argv[1]), sys.argv[2] == "1")))
