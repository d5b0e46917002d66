import socket

import pytest

from schemas.datasets import Seed


def test_tests_cannot_reach_the_network():
    with socket.socket() as outside, pytest.raises(PermissionError, match="wanted to connect"):
        outside.connect(("192.0.2.1", 80))


def test_the_shared_run_reached_every_release(demo):
    assert {release["dataset"]: release["rows"] > 0 for release in demo.document["releases"]} == {
        "sft": True,
        "rl": True,
        "vqa": True,
    }
    assert len(demo.rows("seeds", Seed)) > 100


def test_every_stage_of_the_shared_run_conserves_rows(demo):
    for stage in demo.document["stages"]:
        assert stage["rows_in"] == stage["kept"] + sum(stage["rejected"].values()) + stage["failed"]
