"""Measures MediaWiki's SQL tables: rows read a second and core, and memory by the number of pages.

``python -m tests.benchmarks.tables`` prints the table. Seconds are of processor time, unpacking included; each peak of
memory is that of a process of its own.
"""

import gzip
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from pipelines.corpus.properties import PropertySources, collect_properties
from pipelines.corpus.sqltables import Window, read_columns, read_integers, read_table
from pipelines.corpus.tablelinks import LinkTables, count_table_links
from tests.benchmarks.measured import Measured, read_peak
from tests.chaos.driving import ROOT, make_environment

ROWS = 5_000_000
SLOW_ROWS = 200_000
SMALL, LARGE = 200_000, 2_000_000
LINKS_PER_PAGE = 3
MEMORY_MB = 256
STATEMENT_ROWS = 25_000
WORDS = (
    "United States of_America battle census Zürich O\\'Brien (film) Springfield, 1992 river List_of the north "
    "national football season album station railway Saint-Étienne"
).split()


def write_table(path: Path, table: str, columns: str, row: str, values: Iterable[Sequence[object]]) -> Path:
    """Write a table as mysqldump does; ``row`` is the format of one row."""
    lines = ",\n".join(f"  `{column}` blob" for column in columns.split())
    rows = (row.format(*value) for value in values)
    with gzip.open(path, "wb", compresslevel=6) as out:
        out.write(f"CREATE TABLE `{table}` (\n{lines}\n);\n".encode())
        while chunk := list(islice(rows, STATEMENT_ROWS)):
            out.write(f"INSERT INTO `{table}` VALUES {','.join(chunk)};\n".encode())
    return path


def draw_titles(draws: np.random.Generator, count: int) -> list[str]:
    """Return titles of two to four words, a number making each its own."""
    words = draws.choice(WORDS, (count, 3)).tolist()
    return [f"{'_'.join(three)}_{number}" for number, three in enumerate(words)]


def write_pagelinks(folder: Path, count: int) -> dict[str, Path]:
    """Write the same number of links in the three layouts."""
    draws = np.random.default_rng(1)
    sources = np.sort(draws.integers(10_000_000, 80_000_000, count)).tolist()
    targets = draws.integers(1, 2_000_000_000, count).tolist()
    spaces = draws.choice([0, 0, 0, 1, 2, 4, 10], count).tolist()
    pool = draw_titles(draws, 300_000)
    titles = [pool[place] for place in (300_000 * draws.random(count) ** 3).astype(int).tolist()]
    old = zip(sources, spaces, titles, spaces, strict=True)
    transition = zip(sources, spaces, titles, spaces, targets, strict=True)
    names = "pl_from pl_namespace pl_title pl_from_namespace"
    return {
        "now": write_table(
            folder / "now.sql.gz",
            "pagelinks",
            "pl_from pl_from_namespace pl_target_id",
            "({},{},{})",
            zip(sources, spaces, targets, strict=True),
        ),
        "transition": write_table(
            folder / "transition.sql.gz", "pagelinks", f"{names} pl_target_id", "({},{},'{}',{},{})", transition
        ),
        "old": write_table(folder / "old.sql.gz", "pagelinks", names, "({},{},'{}',{})", old),
    }


def time_processor(call: Callable[[], object]) -> float:
    """Return the processor seconds that a call takes."""
    started = time.process_time()
    call()
    return time.process_time() - started


def measure_pagelinks(folder: Path, count: int) -> list[Measured]:
    """Measure how fast the links are read, beside unpacking alone and beside reading row by row."""
    paths = write_pagelinks(folder, count)
    numbers = ["pl_from", "pl_from_namespace", "pl_target_id"]
    named = ["pl_from", "pl_from_namespace", "pl_namespace"]

    def unpack() -> None:
        with gzip.open(paths["now"]) as stream:
            while stream.read(1 << 19):
                continue

    fast = min(time_processor(lambda: exhaust(read_integers(paths["now"], "pagelinks", numbers))) for _ in range(3))
    rows = min(
        time_processor(lambda: exhaust(islice(read_table(paths["now"], "pagelinks", numbers), SLOW_ROWS)))
        for _ in range(2)
    )
    measured = [
        Measured("pagelinks of today", f"{count / fast / 1e6:.1f} M rows/s", "5 M rows/s"),
        Measured("... unpacking with zlib alone", f"{count / time_processor(unpack) / 1e6:.1f} M rows/s"),
        Measured("... row by row", f"{SLOW_ROWS / rows / 1e6:.2f} M rows/s"),
    ]
    for layout in ("transition", "old"):
        path = paths[layout]
        seconds = min(
            time_processor(lambda path=path: exhaust(read_columns(path, "pagelinks", named, ["pl_title"])))
            for _ in range(2)
        )
        measured.append(Measured(f"pagelinks with titles, {layout}", f"{count / seconds / 1e6:.1f} M rows/s"))
    return measured


def exhaust(blocks: Iterator[object]) -> None:
    """Read to the end."""
    for _ in blocks:
        continue


def write_wiki(folder: Path, pages: int) -> dict[str, Path]:
    """Write the tables of a wiki with so many articles, a third as many redirects, and as many items of Wikidata."""
    folder.mkdir()
    draws = np.random.default_rng(2)
    titles = draw_titles(draws, pages + pages // 3)
    targets = draws.integers(0, len(titles), pages * LINKS_PER_PAGE).tolist()
    props = (
        row
        for page in range(pages)
        for row in (
            (page, "defaultsort", "Something, with; marks"),
            (page, "page_image_free", f"{titles[page]}.jpg"),
            (page, "wikibase_item", f"Q{page * 13 + 1}"),
        )
    )
    counts = (
        (item + 500, name, number)
        for item in range(pages)
        for name, number in (("wb-claims", item % 90), ("wb-identifiers", item % 9), ("wb-sitelinks", item % 70))
    )
    return {
        "page_props": write_table(folder / "page_props.sql.gz", "page_props", PROPS, "({},'{}','{}',NULL)", props),
        "wikidata_pages": write_table(
            folder / "wikidata-page.sql.gz",
            "page",
            PAGE,
            PAGE_ROW,
            ((item + 500, f"Q{item * 13 + 1}", 0) for item in range(pages)),
        ),
        "wikidata_props": write_table(
            folder / "wikidata-props.sql.gz", "page_props", PROPS, "({},'{}','{}',NULL)", counts
        ),
        "page": write_table(
            folder / "page.sql.gz",
            "page",
            PAGE,
            PAGE_ROW,
            ((number, title, int(number >= pages)) for number, title in enumerate(titles)),
        ),
        "redirect": write_table(
            folder / "redirect.sql.gz",
            "redirect",
            "rd_from rd_namespace rd_title rd_interwiki rd_fragment",
            "({},0,'{}','','')",
            ((number, titles[number % pages]) for number in range(pages, len(titles))),
        ),
        "linktarget": write_table(
            folder / "linktarget.sql.gz",
            "linktarget",
            "lt_id lt_namespace lt_title",
            "({},0,'{}')",
            ((number + 7, title) for number, title in enumerate(titles)),
        ),
        "pagelinks": write_table(
            folder / "pagelinks.sql.gz",
            "pagelinks",
            "pl_from pl_from_namespace pl_target_id",
            "({},0,{})",
            ((place // LINKS_PER_PAGE, target + 7) for place, target in enumerate(targets)),
        ),
    }


PROPS = "pp_page pp_propname pp_value pp_sortkey"
PAGE = """page_id page_namespace page_title page_is_redirect page_is_new page_random page_touched page_links_updated
page_latest page_len page_content_model page_lang"""
PAGE_ROW = "({},0,'{}',{},0,0.694663528602,'20240415143804','20240415143804',1219062925,1110,'wikitext',NULL)"


def collect_tables(folder: Path) -> object:
    """Collect the properties in the tables of ``write_wiki``."""
    names = ("page_props", "wikidata_pages", "wikidata_props")
    files = ("page_props", "wikidata-page", "wikidata-props")
    sources = {name: folder / f"{file}.sql.gz" for name, file in zip(names, files, strict=True)}
    return collect_properties(PropertySources(**sources), folder / "properties.parquet", folder, MEMORY_MB)


def count_links(folder: Path) -> object:
    """Count the links in the tables of ``write_wiki``."""
    names = ("page", "pagelinks", "redirect", "linktarget")
    with TemporaryDirectory(dir=folder) as scratch:
        links = count_table_links(LinkTables(**{name: folder / f"{name}.sql.gz" for name in names}), Path(scratch))
        return links.link_count


def import_alone(folder: Path) -> object:
    """Do nothing, for the memory of the libraries alone."""
    return Window.__name__


WORK = {work.__name__: work for work in (collect_tables, count_links, import_alone)}


def run_child(work: str, folder: Path) -> tuple[float, float]:
    """Run work in a process of its own; return its processor seconds and peak megabytes."""
    command = [sys.executable, "-m", "tests.benchmarks.tables", work, str(folder)]
    out = subprocess.run(command, cwd=ROOT, env=make_environment(), stdout=subprocess.PIPE, check=True).stdout
    seconds, megabytes = json.loads(out)
    return seconds, megabytes


def measure_wikis(folder: Path, small: int, large: int) -> list[Measured]:
    """Measure processor time and memory of both joins at two sizes."""
    paths = write_wiki(folder / "small", small)
    write_wiki(folder / "large", large)
    read = time_processor(
        lambda: exhaust(read_columns(paths["page_props"], "page_props", ["pp_page"], PROPS.split()[1:3]))
    )
    _, base = run_child("import_alone", folder)
    measured = [
        Measured("page_props", f"{small * 3 / read / 1e6:.1f} M rows/s"),
        Measured("peak memory, libraries alone", f"{base:.0f} MB"),
    ]
    for work, what in (
        ("collect_tables", f"properties, {MEMORY_MB} MB lent to the joins"),
        ("count_links", "links from tables"),
    ):
        _, before = run_child(work, folder / "small")
        seconds, peak = run_child(work, folder / "large")
        measured += [
            Measured(f"{what}, peak memory, {small:,} pages", f"{before:.0f} MB"),
            Measured(f"{what}, peak memory, {large:,} pages", f"{peak:.0f} MB"),
            Measured(f"{what}, {large:,} pages", f"{seconds:.0f} s of processor"),
        ]
        if work == "count_links":
            per_title = (peak - before) * 1e6 / ((large - small) * 4 / 3)
            measured.append(Measured("links from tables, memory a title", f"{per_title:.0f} bytes"))
    return measured


def measure(scratch: Path, rows: int = ROWS, small: int = SMALL, large: int = LARGE) -> list[Measured]:
    """Measure so many links, and wikis of so many articles, in a folder that has 2 GB left."""
    return [*measure_pagelinks(scratch, rows), *measure_wikis(scratch, small, large)]


def main() -> None:
    """Measure and print; or, with two arguments, do one piece of work on a folder and print its cost as JSON."""
    if len(sys.argv) > 1:
        WORK[sys.argv[1]](Path(sys.argv[2]))
        sys.stdout.write(json.dumps([time.process_time(), read_peak()]))
        return
    with TemporaryDirectory(prefix="synth-bench-") as scratch:
        for entry in measure(Path(scratch)):
            sys.stdout.write(f"{entry.what}: {entry.value} {entry.budget}\n")


if __name__ == "__main__":
    main()
