"""Pictures that were made to hurt in place of the lead pictures of a world: each ends as a row with its reason.

What each may cost is measured by ``python -m tests.benchmarks.run pictures``.
"""

import csv
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pipelines.errors import RecordFailed
from pipelines.pictures import PictureSource, PictureStore
from pipelines.workspace import Workspace
from tests.chaos.driving import SMALL, run_small, share_small_run
from tests.hostile_pictures import HOSTILE, ODD, SIDE, draw, encode

SOURCE = PictureSource("Kelm.jpg", "A. Orn", "CC BY 4.0", "https://licence.example", "https://source.example")
REFUSED = {name: hostile.error for name, hostile in HOSTILE.items() if hostile.error}
SIZES = {name: SIDE for name in HOSTILE.keys() - REFUSED.keys()} | {name: odd.size for name, odd in ODD.items()}
DOT = "one pixel"
SETTINGS = tuple(setting for setting in SMALL if not setting.startswith("corpus."))


@dataclass(frozen=True, slots=True)
class Run:
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


def read_rows(folder: Path, pattern: str) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob(pattern)):
        yield from pq.read_table(path).to_pylist()


def find_stage(root: Path, name: str) -> Path:
    return Workspace(root).stage(name, Workspace(root).read_latest()[name]).path


def build_pictures() -> dict[str, bytes]:
    built = {name: picture.build() for name, picture in {**HOSTILE, **ODD}.items()}
    return {**built, DOT: encode(draw((1, 1)), "PNG")}


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


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return share_small_run(tmp_path_factory.getbasetemp())[0]


@pytest.fixture(scope="module")
def run(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("hostile")
    world, root = folder / "world", folder / "work"
    shutil.copytree(next(shared.glob("worlds/*/world.json")).parent, world)
    leads = {row["image"]: f"page:{row['page_id']}" for row in read_rows(find_stage(shared, "seeds"), "part-*.parquet")}
    pictures = build_pictures()
    files = dict(zip(pictures, sorted(leads), strict=False))
    assert len(files) == len(pictures), "the world has too few seeds"
    replace_pictures(world, {file: pictures[name] for name, file in files.items()})
    source = ("--set", f"corpus.world={world}")
    document = run_small(root, *source, "--until", "groundings", settings=SETTINGS)
    refusals = {row["record_id"]: row for row in read_rows(find_stage(root, "seeds"), "rejected-*.parquet")}
    return Run(
        document=document,
        files=files,
        images={row["file"]: row for row in read_rows(root, "corpus/*/images.parquet")},
        refusals={name: refusals[leads[file]] for name, file in files.items() if leads[file] in refusals},
        grounded={
            row["picture"]["file"]: row["picture"]
            for row in read_rows(find_stage(root, "groundings"), "part-*.parquet")
        },
    )


def test_no_picture_fails_the_run_and_every_row_is_accounted_for(run: Run) -> None:
    for stage in run.document["stages"]:
        assert stage["rows_in"] == stage["kept"] + sum(stage["rejected"].values()) + stage["failed"], stage
        assert stage["failed"] == 0, stage


@pytest.mark.parametrize("name", REFUSED)
def test_a_hostile_lead_picture_refuses_its_seed_with_the_reason(run: Run, name: str) -> None:
    assert run.images[run.files[name]]["error"] == REFUSED[name].removeprefix("picture-")
    assert run.refusals[name]["reason"] == "image-unusable"
    assert REFUSED[name].removeprefix("picture-") in run.refusals[name]["detail"]


def test_a_lead_picture_of_one_pixel_is_too_small(run: Run) -> None:
    assert run.refusals[DOT]["reason"] == "image-too-small"


@pytest.mark.parametrize("name", SIZES)
def test_an_odd_but_healthy_lead_picture_is_kept_with_its_size(run: Run, name: str) -> None:
    image = run.images[run.files[name]]
    assert (image["error"], image["width"], image["height"]) == ("", *SIZES[name])
    assert not run.refusals.get(name, {"reason": ""})["reason"].startswith("image")


def test_what_is_grounded_with_an_odd_picture_has_its_size(run: Run) -> None:
    for name, file in run.files.items():
        if file in run.grounded:
            picture = run.grounded[file]
            assert (picture["width"], picture["height"]) == SIZES[name]


@pytest.mark.parametrize("name", REFUSED)
def test_the_store_refuses_a_hostile_picture_and_keeps_nothing_of_it(tmp_path: Path, name: str) -> None:
    store = PictureStore(tmp_path / "images")
    with pytest.raises(RecordFailed) as caught:
        store.add_bytes(HOSTILE[name].build(), SOURCE)
    assert caught.value.error == REFUSED[name]
    assert not list(tmp_path.rglob("*.*"))


@pytest.mark.parametrize("name", SIZES)
def test_the_store_keeps_an_odd_but_healthy_picture_as_it_is(tmp_path: Path, name: str) -> None:
    store, data = PictureStore(tmp_path / "images"), {**HOSTILE, **ODD}[name].build()
    picture = store.add_bytes(data, SOURCE)
    assert (picture.width, picture.height) == SIZES[name]
    assert store.read(picture) == data
