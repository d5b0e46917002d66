"""The releases load with Hugging Face ``datasets``, pictures decoded, by file and by folder."""

import subprocess
import sys
from collections import Counter
from typing import Any

import pytest

from tests.chaos.driving import ROOT, make_environment, share_small_run

LOAD = """
import sys
from pathlib import Path
from datasets import load_dataset
from PIL.Image import Image as Picture

def count_pictures(value):
    if isinstance(value, Picture):
        value.load()
        assert min(value.size) > 0
        return 1
    if isinstance(value, dict):
        return sum(map(count_pictures, value.values()))
    return sum(map(count_pictures, value)) if isinstance(value, list) else 0

for name in sys.argv[1:]:
    release = Path(name)
    files = {}
    for path in sorted(release.glob("data/*.parquet")):
        files.setdefault(path.name.partition("-")[0], []).append(str(path))
    for form, loaded in (("files", load_dataset("parquet", data_files=files)), ("folder", load_dataset(name))):
        for split, dataset in loaded.items():
            rows = list(dataset)
            assert all(set(row) == set(dataset.features) for row in rows)
            pictures = [count_pictures(row) for row in rows]
            print(release.parent.name, form, len(rows), sum(pictures), sum(count > 0 for count in pictures))
"""


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    releases = share_small_run(tmp_path_factory.getbasetemp())[1]["releases"]
    return {release["dataset"]: release for release in releases}


@pytest.fixture(scope="module")
def loaded(small: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Counter[tuple[str, str, str]]:
    """Load every release both ways in one process; count rows, pictures, and rows with a picture."""
    home = tmp_path_factory.mktemp("hf")
    caches = {"HF_HOME": str(home), "HF_DATASETS_CACHE": str(home / "sets"), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-c", LOAD, *(release["path"] for release in small.values())]
    environment = make_environment() | caches
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    counts: Counter[tuple[str, str, str]] = Counter()
    for line in done.stdout.splitlines():
        dataset, form, *numbers = line.split()
        for what, number in zip(("rows", "pictures", "shown"), numbers, strict=True):
            counts[dataset, form, what] += int(number)
    return counts


@pytest.mark.parametrize("form", ["files", "folder"])
@pytest.mark.parametrize("dataset", ["sft", "rl", "vqa"])
def test_every_released_row_loads_with_its_pictures(
    small: dict[str, Any], loaded: Counter[tuple[str, str, str]], dataset: str, form: str
) -> None:
    rows = loaded[dataset, form, "rows"]
    assert rows == small[dataset]["rows"] > 0
    assert loaded[dataset, form, "shown"] == rows
    assert loaded[dataset, form, "pictures"] >= rows
