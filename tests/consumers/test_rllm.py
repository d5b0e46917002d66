"""rLLM's own dataset registry over our export; rLLM is on no package index, so a checkout of it must be at hand."""

import hashlib
import json
import os
from pathlib import Path

import pytest

from pipelines.release.exporters.base import ExportOptions
from pipelines.release.exporters.registry import export_release
from pipelines.release.exporters.rl import read_tasks
from tests.pipelines.release.exporters.rl_releases import HOSTILE, publish_rl

pytestmark = pytest.mark.consumers


@pytest.fixture(scope="module")
def source():
    folder = os.environ.get("SYNTH_RLLM_SOURCE", "")
    if not (Path(folder) / "rllm" / "data" / "dataset.py").is_file():
        pytest.skip("set SYNTH_RLLM_SOURCE to a checkout of rLLM, which cannot be installed by name")
    return folder


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    root = tmp_path_factory.mktemp("rllm")
    release = publish_rl(root)
    export_release(release, root / "out", "rllm", ExportOptions(name="kelm"))
    return root / "out", list(read_tasks(release))


@pytest.fixture(scope="module")
def loaded(drive, source, exported):
    return drive("rllm", "load_rllm.py", source, exported[0], "kelm", "train")


def test_every_row_is_loaded_as_it_was_released(loaded, exported, note):
    assert loaded["splits"] == ["train"]
    assert len(loaded["rows"]) == len(HOSTILE)
    for row, task in zip(loaded["rows"], exported[1], strict=True):
        assert (row["id"], row["question"], row["answer"]) == (task.row.id, task.row.extra_info.question, task.answer)
        assert json.loads(row["candidate_answers"]) == list(task.row.reward_model.candidate_answers)
        assert row["images"] == [hashlib.sha256(picture.content).hexdigest() for picture in task.pictures]
    counted = {"pictures equal": sum(len(row["images"]) for row in loaded["rows"]), "hostile pages": len(HOSTILE)}
    note(export="rllm", loader="source", **{"rows in": len(exported[1]), "rows out": len(loaded["rows"])}, **counted)


def test_what_rllm_hands_to_veRL_is_the_same_rows(loaded):
    assert loaded["companion"] == loaded["rows"]


def test_registering_the_rows_again_gives_what_we_wrote(loaded):
    assert loaded["registered"] == loaded["rows"]
    assert loaded["registered_companion"] == loaded["companion"]
