"""A run over a world whose lead pictures were replaced, and what it said of each of them."""

import csv
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from pipelines.run.workspace import Workspace
from tests.chaos.driving import SMALL, run_small

SETTINGS = tuple(setting for setting in SMALL if not setting.startswith("corpus."))


@dataclass(frozen=True, slots=True)
class HostileRun:
    """A run over a world full of such pictures."""

    document: Any
    files: Mapping[str, str]
    """File of each picture, by the picture's name."""
    images: Mapping[str, Mapping[str, Any]]
    """What the corpus says of each file."""
    refusals: Mapping[str, Mapping[str, Any]]
    """The seeds' refusals, by the picture's name."""
    grounded: Mapping[str, Mapping[str, Any]]
    """Pictures of groundings, by file."""


def run_hostile(shared: Path, folder: Path, pictures: Mapping[str, bytes]) -> HostileRun:
    """Run the demo up to its groundings over a copy of a world in which pictures lead articles.

    Args:
        shared: workspace of a finished run, whose world is copied and whose seeds say which pictures lead articles.
        folder: where world and workspace are made.
        pictures: by name; each takes the place of one lead picture, whose file name stays.
    """
    world, root = folder / "world", folder / "work"
    shutil.copytree(next(shared.glob("worlds/*/world.json")).parent, world)
    leads = {row["image"]: f"page:{row['page_id']}" for row in read_rows(find_stage(shared, "seeds"), "part-*.parquet")}
    files = dict(zip(pictures, sorted(leads), strict=False))
    assert len(files) == len(pictures), "the world has too few seeds"
    replace_pictures(world, {file: pictures[name] for name, file in files.items()})
    document = run_small(root, "--set", f"corpus.world={world}", "--until", "groundings", settings=SETTINGS)
    refusals = {row["record_id"]: row for row in read_rows(find_stage(root, "seeds"), "rejected-*.parquet")}
    return HostileRun(
        document=document,
        files=files,
        images={row["file"]: row for row in read_rows(root, "corpus/*/images.parquet")},
        refusals={name: refusals[leads[file]] for name, file in files.items() if leads[file] in refusals},
        grounded={
            row["picture"]["file"]: row["picture"]
            for row in read_rows(find_stage(root, "groundings"), "part-*.parquet")
        },
    )


def read_rows(folder: Path, pattern: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of all matching tables."""
    for path in sorted(folder.glob(pattern)):
        yield from pq.read_table(path).to_pylist()


def find_stage(root: Path, name: str) -> Path:
    """Return the folder of a workspace's latest stage."""
    return Workspace(root).stage(name, Workspace(root).read_latest()[name]).path


def replace_pictures(world: Path, pictures: Mapping[str, bytes]) -> None:
    """Write pictures over files; the table of pictures forgets what these files were."""
    table = world / "images" / "images.tsv"
    with table.open(encoding="utf-8", newline="") as source:
        rows = list(csv.DictReader(source, delimiter="\t", quoting=csv.QUOTE_NONE))
    names = {file.replace(" ", "_"): data for file, data in pictures.items()}
    for name, data in names.items():
        (world / "images" / name).write_bytes(data)
    lines = ["\t".join((row | ({"sha256": ""} if row["file"] in names else {})).values()) for row in rows]
    table.write_text("\n".join(["\t".join(rows[0]), *lines, ""]), encoding="utf-8")
