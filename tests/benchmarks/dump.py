"""Measures how fast a dump is read, as a share of the speed at which bz2 alone unpacks it.

The real slice beside the checkout is read, where it lies there. Rounds take turns, and the best of each is compared.
"""

import bz2
import time
from collections.abc import Callable
from pathlib import Path

from pipelines.corpus.dump import cover_file, read_range, read_site
from pipelines.corpus.scan import RangeJob, scan_range
from tests.benchmarks.measured import Measured
from tests.pipelines.test_real_slice import SLICE

ROUNDS = 3


def unpack(dump: Path) -> int:
    """Unpack all streams of a multistream file and return its bytes."""
    rest, size = dump.read_bytes(), 0
    while rest:
        stream = bz2.BZ2Decompressor()
        size += len(stream.decompress(rest))
        rest = stream.unused_data
    return size


def measure(folder: Path) -> list[Measured]:
    """Return the speed of bz2, of reading pages, and of the whole scan (links, infoboxes, texts, tables)."""
    if not SLICE.is_file():
        return []
    site, whole = read_site(SLICE), cover_file(SLICE)

    def scan() -> int:
        return scan_range(RangeJob(SLICE, whole, site, folder / "part")).rows_in

    work: dict[str, Callable[[], int]] = {
        "bz2": lambda: unpack(SLICE),
        "pages": lambda: sum(1 for _ in read_range(SLICE, whole)),
        "scan": scan,
    }
    best, counts = dict.fromkeys(work, float("inf")), dict.fromkeys(work, 0)
    for _ in range(ROUNDS):
        for name, do in work.items():
            started = time.perf_counter()
            counts[name] = do()
            best[name] = min(best[name], time.perf_counter() - started)
    megabytes = counts["bz2"] / 1e6
    return [
        Measured("bz2 alone", f"{megabytes / best['bz2']:.1f} MB/s of XML"),
        Measured("pages read", f"{megabytes / best['pages']:.1f} MB/s, {best['bz2'] / best['pages']:.2f} of bz2"),
        Measured(
            "pages scanned: links, infoboxes, texts, tables",
            f"{megabytes / best['scan']:.1f} MB/s, {best['bz2'] / best['scan']:.2f} of bz2, {counts['scan']:,} pages",
        ),
    ]
