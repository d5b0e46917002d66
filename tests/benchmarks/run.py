"""Measures what a user waits for and writes ``results.md`` beside this file.

``python -m tests.benchmarks.run`` measures everything. With names, as ``links graph``, it measures these sections and
leaves the others as they are.
"""

import os
import platform
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.benchmarks import (
    batches,
    copies,
    corpus,
    demo,
    difficulty,
    encoding,
    engines,
    faults,
    fetching,
    graph,
    grounding,
    models,
    near,
    overlap,
    prompts,
    publishing,
    resume,
    rollouts,
    search,
    serving,
    sharing,
    stalls,
    trajectories,
    workers,
)
from tests.benchmarks.measured import Measured

RESULTS = Path(__file__).with_name("results.md")
SECTIONS: Mapping[str, Callable[[Path], list[Measured]]] = {
    "demo": demo.measure,
    "models": models.measure,
    "resume": resume.measure,
    "sharing": sharing.measure,
    "overlap": overlap.measure,
    "faults": faults.measure,
    "batches": batches.measure,
    "serving": serving.measure,
    "difficulty": difficulty.measure,
    "encoding": encoding.measure,
    "grounding": grounding.measure,
    "copies": copies.measure,
    "fetching": fetching.measure,
    "rollouts": rollouts.measure,
    "near": near.measure,
    "publishing": publishing.measure,
    "prompts": prompts.measure,
    "graph": graph.measure,
    "corpus": corpus.measure,
    "search": search.measure,
    "stalls": stalls.measure,
    "trajectories": trajectories.measure,
    "workers": workers.measure,
    "engines": engines.measure,
}
TITLES = {
    "demo": "What a user of the demo waits for",
    "models": "The model layer beside other clients",
    "resume": "What is paid twice",
    "sharing": "What processes of one run share",
    "overlap": "Stages at once",
    "faults": "Faulty addresses beside healthy ones",
    "batches": "Batches of a strict mock server: 2 % of lines fail at each try, one batch expires",
    "difficulty": "What the difficulty filter leaves, and what an early stop saves",
    "encoding": "The encoder of pictures beside the bare model",
    "grounding": "Which picture is taken for an anchor",
    "copies": "Which pictures are copies of one another",
    "fetching": "Fetching pictures from Commons",
    "rollouts": "500 rollouts in flight",
    "near": "Near duplicates among many questions",
    "publishing": "What publishing holds in memory",
    "serving": "Our client beside `vllm bench serve`",
    "prompts": "What opensearch-vl asks models, scripted players over 500 entities",
    "graph": "A link graph of the size of English Wikipedia",
    "corpus": "The corpus stage by the size of the dump",
    "search": "Full-text search beside SQLite's FTS5",
    "stalls": "How long groundings keeps the event loop over two million passages",
    "trajectories": "What the stage trajectories holds in memory",
    "workers": "What a second process saves",
    "engines": "What Prefect adds to a run",
    "paper": "On paper: 200,000 seeds and 36,000 trajectories on English Wikipedia",
}


def describe_machine() -> str:
    """Return the machine in words."""
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    version = ".".join(map(str, sys.version_info[:3]))
    processor = model.group(1) if model else platform.machine()
    return f"{os.cpu_count()} cores ({processor}), {pages * size >> 30} GB, {platform.system()}, Python {version}"


def render_section(name: str, measured: list[Measured]) -> str:
    """Return a section's table."""
    rows = [f"| {entry.what} | {entry.value} | {entry.budget} |" for entry in measured]
    head = [f"## {TITLES[name]}", "", f"`python -m tests.benchmarks.run {name}` on {describe_machine()}.", ""]
    return "\n".join([*head, "| what | measured | budget |", "|---|---:|---:|", *rows, ""])


def read_sections() -> dict[str, str]:
    """Return the sections of the results as they are, by name."""
    parts = re.split(r"(?m)^(?=## )", RESULTS.read_text()) if RESULTS.is_file() else []
    found = {part[3 : part.index("\n")]: part for part in parts if part.startswith("## ")}
    return {name: found[title] for name, title in TITLES.items() if title in found}


def main(names: list[str]) -> None:
    """Measure the named sections, or all, and write the table."""
    unknown = sorted(set(names) - set(SECTIONS))
    if unknown:
        raise SystemExit(f"no section {', '.join(unknown)}; there are {', '.join(SECTIONS)}")
    sections = read_sections()
    for name in names or SECTIONS:
        with TemporaryDirectory(prefix="synth-bench-") as scratch:
            sections[name] = render_section(name, SECTIONS[name](Path(scratch)))
        # What is worked out from these numbers stands last, and nothing here measures it.
        body = [sections[known].rstrip() + "\n" for known in (*SECTIONS, "paper") if known in sections]
        RESULTS.write_text("\n".join(["# Benchmarks\n", *body]))
    sys.stdout.write(RESULTS.read_text())


if __name__ == "__main__":
    main(sys.argv[1:])
