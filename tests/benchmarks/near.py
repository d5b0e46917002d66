"""Measures the search for near duplicates: what it finds of all, its time, its memory.

Questions are put together of openings, clauses and what is asked for, with names and years drawn from thousands, so
that they are alike as those of templates are; a fifth are the one before with a few words replaced, left out or added.
What is near is counted exactly, by how many shingles each question shares with every other, for some of them. Memory
is a process's own, of each size, over that of its questions.
"""

import argparse
import json
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from pipelines.checks.near import DIGEST, ROUNDING, Sketches, find_alike, shingle_text
from pipelines.checks.repeats import refuse_near
from pipelines.checks.sets import Signature, make_signature
from pipelines.config.settings import ReleasesConfig
from tests.benchmarks.measured import Measured, read_peak
from tests.chaos.driving import ROOT
from tests.pipelines.release.builders import make_question

SEARCHES = {0.8: 100_000, 0.6: 100_000}
"""Questions by the similarity that is searched by: that within a split, and that across splits."""
ASKED = 5_000
"""Questions whose near ones are counted exactly, among all."""
SIZES = (20_000, 40_000, 80_000)
MILLION = 1_000_000
LEAST_FOUND = 0.99
OPENINGS = (
    "Start from", "Consider", "Look up", "Take", "Find", "Think of", "Begin with", "Identify", "Go to", "Picture",
)  # fmt: skip
CLAUSES = (
    "the place that saw the birth of {}", "the river that flows through {}", "the architect who designed {} in {}",
    "the person who was married to {}", "the town twinned with {} since {}", "the university where {} studied",
    "the museum that keeps {} by {}", "the author of the book about {}", "the company that {} founded in {}",
    "the lake into which the river of {} flows", "the film that {} directed in {}", "the stadium opened by {} in {}",
    "the orchid first described by {}", "the newspaper whose seat is near {}", "the battle that {} lost in {}",
    "the festival held each year in {}",
)  # fmt: skip
ASKS = (
    "In what year was it founded?", "How many metres above sea level is it?", "Who is it named after?",
    "What is the name of its twin town?", "On which date did it open?", "How long is it, in kilometres?",
    "Which river is nearest to it?", "Who designed it?",
)  # fmt: skip


def make_texts(count: int) -> list[str]:
    """Return questions, a fifth of them made from the one before."""
    draw = random.Random(count)
    texts: list[str] = []
    for _ in range(count):
        if texts and draw.random() < 0.2:
            texts.append(_change(texts[-1], draw))
            continue
        clauses = [each.format(*_draw_names(draw)) for each in draw.sample(CLAUSES, draw.randint(2, 4))]
        texts.append(f"{draw.choice(OPENINGS)} {', and then '.join(clauses)}. {draw.choice(ASKS)}")
    return texts


def _draw_names(draw: random.Random) -> tuple[str, str]:
    return f"Name{draw.randrange(4_000)} Family{draw.randrange(4_000)}", str(draw.randrange(1500, 2020))


def _change(text: str, draw: random.Random) -> str:
    words = text.split()
    for _ in range(draw.randint(1, 5)):
        place = draw.randrange(len(words))
        words[place : place + draw.randint(0, 1)] = draw.choice(([], ["another"], ["one", "more"]))
    return " ".join(words) or text


def count_exactly(shingled: Sequence[bytes], asked: Sequence[int], similarity: float) -> set[tuple[int, int]]:
    """Return the near pairs of some texts among all, from the shingles that each shares with every other."""
    sizes = np.array([len(each) // DIGEST for each in shingled])
    digests = np.frombuffer(b"".join(shingled), dtype="<u8")
    order = np.argsort(digests, kind="stable")
    holders, ordered = np.repeat(np.arange(len(shingled)), sizes)[order], digests[order]
    found = set()
    for place in asked:
        own = np.frombuffer(shingled[place], dtype="<u8")
        starts, ends = np.searchsorted(ordered, own, "left"), np.searchsorted(ordered, own, "right")
        lists = [holders[start:end] for start, end in zip(starts, ends, strict=True)]
        shared = np.bincount(np.concatenate(lists), minlength=len(shingled))
        near = np.flatnonzero(shared >= similarity * (len(own) + sizes - shared) - ROUNDING)
        found |= {(min(place, other), max(place, other)) for other in near.tolist() if other != place}
    return found


def sign(number: int, text: str) -> Signature:
    """Return what a release compares of a question; six ask for each final fact and share a hop."""
    fact = number // 6
    return replace(
        PLAIN,
        record_id=f"question-{number:08}",
        answer_key=f"text:{fact}",
        hops=(f"{number} built by {fact}", f"{fact} born in {fact + 1}", f"{number} seat {number + 1}"),
        final=f"town {fact} founded",
        entities=(f"bridge {number}", f"architect {fact}", f"town {fact}"),
        shingles=shingle_text(text),
    )


PLAIN = make_signature(make_question(0, None))


def measure_size(count: int) -> dict[str, float]:
    """Return what the refusal of so many questions takes in this process: seconds, and megabytes over the questions."""
    signatures = [sign(number, text) for number, text in enumerate(make_texts(count))]
    before, began = read_peak(), time.process_time()
    refused = refuse_near(signatures, ReleasesConfig())
    return {"seconds": time.process_time() - began, "megabytes": read_peak() - before, "refused": len(refused)}


def measure_memory() -> list[Measured]:
    """Return the memory by size, and of a million at the rate of the last step."""
    told, rows = [], []
    for count in SIZES:
        command = [sys.executable, "-m", "tests.benchmarks.near", str(count)]
        found = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout)
        told.append(found)
        what = f"refusing among {count:,} questions, {found['refused']:,.0f} refused: processor time"
        rows += [
            Measured(what, f"{found['seconds']:.1f} s"),
            Measured("memory over the questions' own", f"{found['megabytes']:,.0f} MB"),
        ]
    rate = (told[-1]["megabytes"] - told[-2]["megabytes"]) / (SIZES[-1] - SIZES[-2])
    whole = told[-1]["megabytes"] + rate * (MILLION - SIZES[-1])
    size = sum(map(len, map(shingle_text, make_texts(2_000)))) / 2_000
    return [
        *rows,
        Measured("memory of a million, at the rate from the second size to the third", f"{whole:,.0f} MB"),
        Measured("and the shingles that a million questions keep", f"{size * MILLION / 2**20:,.0f} MB"),
    ]


def measure(folder: Path) -> list[Measured]:
    """Return the section's rows."""
    rows = [row for similarity, count in SEARCHES.items() for row in _measure_search(make_texts(count), similarity)]
    return [*rows, *measure_memory()]


def _measure_search(texts: Sequence[str], similarity: float) -> list[Measured]:
    began = time.process_time()
    sets = Sketches(list(map(shingle_text, texts)), similarity)
    pairs = {(other, one) for one, other, _ in find_alike(sets, sets)}
    taken = time.process_time() - began
    asked = set(random.Random(1).sample(range(len(texts)), ASKED))
    wanted = count_exactly([shingle_text(text) for text in texts], sorted(asked), similarity)
    found = {pair for pair in pairs if asked & set(pair)}
    assert found <= wanted
    what = f"similarity {similarity:g}, {len(texts):,} questions, {len(pairs):,} near pairs: processor time"
    sampled = f"found of the {len(wanted):,} near pairs that {ASKED:,} of them have among all"
    return [
        Measured(what, f"{taken:.1f} s"),
        Measured(sampled, f"{len(found) / len(wanted):.4f}", f"{LEAST_FOUND:g}"),
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int)
    sys.stdout.write(json.dumps(measure_size(parser.parse_args().count)))
