"""Measures the corpus stage as a whole: memory by the size of the dump, and what one and two workers take."""

import bz2
import json
import random
import resource
import subprocess
import sys
import time
from pathlib import Path
from xml.sax.saxutils import escape

from tests.benchmarks.measured import Measured, read_peak
from tests.chaos.driving import ROOT, make_environment

STREAM_PAGES = 100
SMALL, LARGE = 100_000, 1_000_000
HEADER = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="en">
  <siteinfo><dbname>enwiki</dbname><base>https://en.wikipedia.org/wiki/Main_Page</base><case>first-letter</case>
  <namespaces><namespace key="0" case="first-letter" /><namespace key="14" case="first-letter">Category</namespace>
  </namespaces></siteinfo>
"""
WORDS = tuple(f"w{number * 40_503 % 65_536:04x}" for number in range(20_000))
"""As many as make the text compress like real text, about threefold."""


def write_big_dump(path: Path, pages: int, seed: int = 7) -> None:
    """Write a multistream dump of articles (half of them with an infobox) and redirects (a third of all pages)."""
    draws = random.Random(seed)
    with path.open("wb") as out:
        out.write(bz2.compress(HEADER.encode()))
        for start in range(0, pages, STREAM_PAGES):
            stream = "".join(_render(number, pages, draws) for number in range(start, min(start + STREAM_PAGES, pages)))
            out.write(bz2.compress(stream.encode()))
        out.write(bz2.compress(b"</mediawiki>\n"))


def _name(number: int) -> str:
    return f"Thing {number * 2_654_435_761 % (1 << 32):08x}"


def _render(number: int, pages: int, draws: random.Random) -> str:
    if number % 3 == 2:
        title = f"Other name {number}"
        target = _name(number - 1)
        text, tag = f"#REDIRECT [[{target}]]", f'<redirect title="{target}" />'
    else:
        title, tag = _name(number), ""
        links = [_name(int(pages * draws.random() ** 3)) for _ in range(6)]
        box = f"{{{{Infobox river\n| source = [[{links[0]}]]\n| length_km = {draws.randrange(900)}\n}}}}\n"
        prose = " ".join(f"{' '.join(draws.choices(WORDS, k=12))} [[{link}|{link.lower()}]]." for link in links)
        text = f"{box if number % 2 else ''}'''{title}''' is a river in the north.\n\n{prose}\n"
    return (
        f"<page><title>{title}</title><ns>0</ns><id>{number + 1}</id>{tag}<revision><id>{number + 1}</id>"
        f"<timestamp>2026-01-01T00:00:00Z</timestamp><text>{escape(text)}</text></revision></page>\n"
    )


def build_and_report(dump: Path, out: Path, workers: int) -> None:
    """Build a corpus in this process and print its seconds and peaks as JSON; the main function of a child."""
    from pipelines.corpus.build import build_corpus

    started = time.monotonic()
    counts = build_corpus(dump, out, workers=workers, range_bytes=4 << 20)
    child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    document = {"seconds": time.monotonic() - started, "own": read_peak(), "child": child}
    print(json.dumps(document | {"phases": counts.seconds, "pages": counts.rows_in}))  # noqa: T201


def run_build(dump: Path, out: Path, workers: int) -> dict[str, float]:
    """Build a corpus in a fresh process and return what it took."""
    call = f"build_and_report(Path({str(dump)!r}), Path({str(out)!r}), {workers})"
    script = out.with_suffix(".py")
    imports = "from pathlib import Path\nfrom tests.benchmarks.corpus import build_and_report\n"
    script.write_text(f"{imports}if __name__ == '__main__':\n    {call}\n")
    done = subprocess.run(
        [sys.executable, script],
        cwd=ROOT,
        env=make_environment() | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    document: dict[str, float] = json.loads(done.stdout)
    return document


def measure(scratch: Path, small: int = SMALL, large: int = LARGE) -> list[Measured]:
    """Build corpora of two sizes, and the smaller one with one and two workers."""
    measured, peaks = [], []
    for pages in (small, large):
        dump = scratch / f"big{pages}-pages-articles-multistream.xml.bz2"
        write_big_dump(dump, pages)
        built = run_build(dump, scratch / f"corpus-{pages}", 2)
        peaks.append(built)
        what = f"corpus of {pages:,} pages, {dump.stat().st_size / 1e6:.0f} MB of bz2, 2 workers"
        measured.append(Measured(what, f"{built['seconds']:.1f} s, {pages / built['seconds']:,.0f} pages/s"))
        peak = f"{built['own']:.0f} MB the build, {built['child']:.0f} MB its largest worker"
        measured.append(Measured("its peak resident memory", peak))
    growth = peaks[1]["own"] / peaks[0]["own"]
    per_title = (peaks[1]["own"] - peaks[0]["own"]) * (1 << 20) / (large - small)
    times = f"{large / small:g}x the pages"
    measured.append(Measured(f"memory of the build at {times}", f"{growth:.2f}x", "1.3x"))
    measured.append(Measured("memory of a worker at " + times, f"{peaks[1]['child'] / peaks[0]['child']:.2f}x", "1.3x"))
    measured.append(Measured("bytes of memory that one more title costs", f"{per_title:.0f}"))
    return measured
