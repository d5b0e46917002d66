"""``synth export`` as people type it."""

import json
from pathlib import Path

import pytest

from pipelines.cli.releases import TRAINERS
from pipelines.release.exporters.registry import EXPORTERS
from tests.chaos.driving import call_here
from tests.pipelines.release.exporters.rl_releases import publish_rl
from tests.pipelines.release.exporters.trajectories import make_release

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def sft(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_release(tmp_path_factory.mktemp("sft"), ("A page.", "Another."))[0]


@pytest.fixture(scope="module")
def rl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return publish_rl(tmp_path_factory.mktemp("rl"))


def test_help_names_every_trainer_and_the_dataset_that_it_reads(capsys: Capture) -> None:
    told = " ".join(call_here(capsys, "export", "--help").out.split())
    assert TRAINERS in told
    sft, _, rl = TRAINERS.partition(";")
    for name, exporter in EXPORTERS.items():
        assert name in (sft if exporter.dataset == "sft" else rl)


@pytest.mark.parametrize("to", EXPORTERS)
def test_a_release_is_exported_for_each_trainer(to: str, sft: Path, rl: Path, tmp_path: Path, capsys: Capture) -> None:
    release = sft if EXPORTERS[to].dataset == "sft" else rl
    made = call_here(capsys, "export", release, tmp_path / "out", "--to", to)
    assert (made.code, made.err) == (0, "")
    first, *notes = made.out.splitlines()
    rows = json.loads((tmp_path / "out" / "export.json").read_text())["rows"]
    assert first == f"{tmp_path / 'out'}: {rows} rows for {to}"
    assert notes


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--to", "axolotl"), "trainer 'axolotl' is not known"),
        (("--to", "verl"), "verl needs one of rl"),
        (("--to", "trl", "--dialect", "mars"), "2 of 2 rows cannot be expressed in mars"),
        (("--to", "trl", "--dialect", "french"), "dialect 'french': unknown dialect"),
    ],
)
def test_what_cannot_be_exported_is_told_in_a_line_and_leaves_nothing(
    options: tuple[str, ...], told: str, sft: Path, tmp_path: Path, capsys: Capture
) -> None:
    done = call_here(capsys, "export", sft, tmp_path / "out", *options)
    assert done.code == 2
    assert told in done.err
    assert len(done.err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []
