"""Measures the way from a dump to the edges of its link graph: ``python -m tests.benchmarks.links``.

The real slice is mostly plain text, so its pages of real wikitext are repeated to a hundred MB of XML. Times are CPU
seconds of one process, and what is compared takes turns, so that a busy machine slows both.
"""

import bz2
import os
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import mwparserfromhell
import mwxml

from pipelines.corpus.dump import (
    ByteRange,
    RawPage,
    TitleRules,
    cover_file,
    hash_title,
    plan_ranges,
    read_pages,
    read_range,
    read_site,
)
from pipelines.corpus.edges import read_edges
from pipelines.corpus.wikitext import LinkReader, find_links
from tests.benchmarks.measured import Measured

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("SYNTH_SHARED_DATA", ROOT.parent / "shared" / "data"))
SLICE = DATA / "enwiki-slice" / "enwiki-slice-pages-articles-multistream.xml.bz2"
MEGABYTES = 105
ROUNDS = 3
PARSED_MEGABYTES = 8
PIECE_BYTES = 1 << 17
NEW_SHARE = 1 / 3
RANGE_BYTES = 2 << 20
_PAGE = re.compile(rb"  <page>.*?</page>\n", re.DOTALL)
_LINK = re.compile(rb"(\[\[[A-Z][^\[\]{}|\n:#&]+)(?=\]\]|\|)")
_IMAGEMAP = re.compile(r"<imagemap>.*?</imagemap>", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Sample:
    """A dump of repeated real wikitext."""

    packed: Path
    plain: Path
    megabytes: float
    """Of XML."""


def measure(scratch: Path, megabytes: int = MEGABYTES) -> list[Measured]:
    """Measure everything; without the real slice there is one row that says so."""
    if not SLICE.is_file():
        return [Measured("link pipeline", "not measured: the real slice is not here")]
    repeated = write_sample(scratch, "repeated", megabytes, 0)
    fresh = write_sample(scratch, "fresh", megabytes, NEW_SHARE)
    part = write_sample(scratch, "part", PARSED_MEGABYTES, 0)
    packed = read_all(SLICE)
    return [
        *measure_share("real wikitext, repeated", repeated.packed, repeated.megabytes),
        *measure_share("real wikitext, a third of the link targets never seen", fresh.packed, fresh.megabytes),
        *measure_share("real slice, mostly plain text", SLICE, packed / 1e6),
        *measure_others(part),
        *measure_workers(repeated),
        *measure_agreement(),
    ]


def write_sample(folder: Path, name: str, megabytes: int, new_share: float) -> Sample:
    """Repeat the slice's pages of real wikitext; a share of the links gets a target of its own at each repetition."""
    xml = bz2.decompress(SLICE.read_bytes())
    pages = [page for page in _PAGE.findall(xml) if b"{{" in page and b"<ns>0<" in page and b"<redirect" not in page]
    streams = [xml[: xml.index(b"<page>")].rstrip(b" ")]
    draw = random.Random(0)
    size = repetition = 0
    while size < megabytes * 10**6:
        repetition += 1
        mark = b" %d" % repetition
        for start in range(0, len(pages), 100):
            stream = b"".join(pages[start : start + 100])
            if new_share:
                stream = _LINK.sub(lambda link: link[1] + mark * (draw.random() < new_share), stream)  # noqa: B023
            streams.append(stream)
            size += len(stream)
    streams.append(b"</mediawiki>\n")
    sample = Sample(folder / f"{name}-multistream.xml.bz2", folder / f"{name}.xml", sum(map(len, streams)) / 1e6)
    sample.packed.write_bytes(b"".join(map(bz2.compress, streams)))
    sample.plain.write_bytes(b"".join(streams))
    return sample


def read_all(path: Path) -> int:
    """Unpack a file with nothing but the standard library's decoder, and return its size unpacked."""
    size = 0
    decoder = bz2.BZ2Decompressor()
    with path.open("rb") as file:
        while piece := file.read(PIECE_BYTES):
            while piece:
                size += len(decoder.decompress(piece))
                piece = decoder.unused_data
                if decoder.eof:
                    decoder = bz2.BZ2Decompressor()
    return size


def count_edges(path: Path, ranges: tuple[ByteRange, ...]) -> int:
    """Read the edges of some ranges and return how many there are."""
    rules = TitleRules(read_site(path))
    return sum(len(block.sources) for piece in ranges for block in read_edges(path, piece, rules))


def count_edges_of_all(path: Path) -> int:
    """Read the edges of a whole file and return how many there are."""
    return count_edges(path, (cover_file(path),))


def count_with_mwxml(path: Path, list_targets: Callable[[str], Iterator[str]]) -> int:
    """Read the edges of a file by way of mwxml and return how many there are."""
    rules = TitleRules(read_site(path))
    edges = []
    with bz2.open(path, "rb") if path.suffix == ".bz2" else path.open("rb") as file:
        for page in mwxml.Dump.from_file(file):
            for revision in page:
                if page.namespace == 0 and page.redirect is None:
                    targets = map(rules.resolve, list_targets(revision.text or ""))
                    edges += [hash_title(target.title) for target in targets if target and target.namespace == 0]
    return len(edges)


def list_by_regex(text: str) -> Iterator[str]:
    """List link targets by the regular expression of ``find_links``."""
    return (link.target for link in find_links(text))


def list_by_parser(text: str) -> Iterator[str]:
    """List link targets by mwparserfromhell."""
    return (str(link.title) for link in mwparserfromhell.parse(text, skip_style_tags=True).ifilter_wikilinks())


def take_turns(calls: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return the least CPU seconds of each call, the calls taking turns."""
    seconds = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            started = time.process_time()
            call()
            seconds[name] = min(seconds[name], time.process_time() - started)
    return seconds


def measure_share(what: str, path: Path, megabytes: float) -> list[Measured]:
    """Measure the decoder alone against the whole way to the edges, and the way by texts of pages."""
    calls = {
        "decoder": lambda: read_all(path),
        "edges": lambda: count_edges_of_all(path),
        "pages": lambda: _count_by_pages(path),
    }
    seconds = take_turns(calls, ROUNDS)
    share = seconds["decoder"] / seconds["edges"]
    beside = (seconds["edges"] - seconds["decoder"]) / megabytes * 1000
    speed = f"{share:.2f} ({megabytes / seconds['edges']:.1f} MB/s; {beside:.1f} ms a MB beside the decoder)"
    return [
        Measured(f"bz2 to edges: share of bz2's speed, {what}", speed, "0.85"),
        Measured(
            f"bz2 to edges and anchors by way of page texts, {what}", f"{seconds['decoder'] / seconds['pages']:.2f}"
        ),
    ]


def _count_by_pages(path: Path) -> int:
    reader = LinkReader(TitleRules(read_site(path)), keep_anchors=True)
    for page in read_range(path, cover_file(path)):
        if page.namespace == 0 and page.redirect is None:
            reader.add_page(page.page_id, page.text)
    return len(reader.take().sources)


def measure_others(part: Sample) -> list[Measured]:
    """Measure against mwxml with the same regular expression, and with mwparserfromhell, packed and plain."""
    measured = []
    for kind, path in (("bz2", part.packed), ("plain XML", part.plain)):
        calls: dict[str, Callable[[], object]] = {
            "edges": lambda path=path: count_edges_of_all(path),
            "regex": lambda path=path: count_with_mwxml(path, list_by_regex),
        }
        seconds = take_turns(calls, ROUNDS)
        seconds |= take_turns({"parser": lambda path=path: count_with_mwxml(path, list_by_parser)}, 1)
        for name, budget, other in (("regex", "5x", "mwxml + regex"), ("parser", "30x", "mwxml + mwparserfromhell")):
            ratio = seconds[name] / seconds["edges"]
            measured.append(Measured(f"{kind} to edges against {other}", f"{ratio:.1f}x", budget))
    return measured


def measure_workers(sample: Sample) -> list[Measured]:
    """Measure the wall time of two processes, each with every other range, against one with all."""
    ranges = plan_ranges(sample.packed, RANGE_BYTES)
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        list(pool.map(count_edges, [sample.packed] * 2, [ranges[:1]] * 2))
        alone = _time_wall(lambda: pool.submit(count_edges, sample.packed, ranges).result())
        shares = [ranges[::2], ranges[1::2]]
        together = _time_wall(lambda: list(pool.map(count_edges, [sample.packed] * 2, shares)))
    load = os.getloadavg()[0]
    speed = f"{alone / together:.2f}x (load {load:.1f} on {os.cpu_count()} cores)"
    return [Measured("bz2 to edges, two workers against one", speed, "1.8x on idle cores")]


def _time_wall(call: Callable[[], object]) -> float:
    started = time.monotonic()
    call()
    return time.monotonic() - started


def measure_agreement() -> list[Measured]:
    """Compare the article links of the real slice with mwparserfromhell's, page by page, and explain what differs."""
    rules = TitleRules(read_site(SLICE))
    common = union = 0
    reasons: Counter[str] = Counter()
    for page in read_pages(SLICE):
        if page.namespace == 0 and page.redirect is None:
            ours = _count_titles(rules, list_by_regex(page.text))
            theirs = _count_titles(rules, list_by_parser(page.text))
            common += (ours & theirs).total()
            union += (ours | theirs).total()
            reasons += _explain(rules, page, ours - theirs, theirs - ours)
    unexplained = reasons.pop("unexplained", 0)
    rows = [
        Measured(
            f"link targets in common with mwparserfromhell, {union:,} on the real slice",
            f"{100 * common / union:.3f} %",
            "99.9 %",
        ),
        Measured("link targets not in common and not explained", f"{unexplained}", "0"),
    ]
    return rows + [Measured(f"link targets not in common: {reason}", f"{count}") for reason, count in reasons.items()]


def _count_titles(rules: TitleRules, targets: Iterator[str]) -> Counter[str]:
    resolved = map(rules.resolve, targets)
    return Counter(target.title for target in resolved if target is not None and target.namespace == 0)


def _explain(rules: TitleRules, page: RawPage, ours: Counter[str], theirs: Counter[str]) -> Counter[str]:
    """Return the reasons for links that one side alone found."""
    mapped = (list_by_regex(match[0]) for match in _IMAGEMAP.finditer(page.text))
    pictured = _count_titles(rules, (target for targets in mapped for target in targets))
    inside = (ours & pictured).total()
    reasons = Counter({"ours, inside <imagemap>: links to MediaWiki, unparsed by mwparserfromhell": inside})
    reasons["unexplained"] = ours.total() - inside + theirs.total()
    return +reasons


def main() -> None:
    """Measure everything and show the rows."""
    with TemporaryDirectory(prefix="synth-links-") as scratch:
        for entry in measure(Path(scratch)):
            sys.stdout.write(f"{entry.what}: {entry.value} ({entry.budget or 'no budget'})\n")


if __name__ == "__main__":
    main()
