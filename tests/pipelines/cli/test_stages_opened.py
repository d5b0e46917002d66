"""A run opens only what its stages use: what later stages need may be missing, and a full run says so first."""

from pathlib import Path

import pytest

from tests.chaos.driving import call_here, copy_workspace, list_trusted, make_run, share_small_run

IMPOSSIBLE = {
    "an encoder without weights": (["tools.image_search=clip"], "encoder.pretrained is empty"),
    "a teacher without its key": (
        ["models.teacher.name=t", "models.teacher.base_url=http://127.0.0.1:1/v1",
         "models.teacher.api_key_env=SYNTH_NO_SUCH_KEY"],
        "SYNTH_NO_SUCH_KEY is not set",
    ),
    "an upscaler that is not there": (["tools.edsr=/nowhere/edsr.pb"], "/nowhere/edsr.pb|OpenCV"),
}  # fmt: skip
"""Settings, and what a full run says of them."""


@pytest.fixture
def own(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Path:
    return copy_workspace(share_small_run(tmp_path_factory.getbasetemp())[0], tmp_path / "workspace")


def run(capsys: pytest.CaptureFixture[str], workspace: Path, settings: list[str], *more: str):
    command = make_run(workspace, "--limit", 60, *more)[3:]
    return call_here(capsys, *command, *(part for setting in settings for part in ("--set", setting)))


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_what_later_stages_need_may_be_missing_and_a_full_run_stops_before_it_writes(
    own: Path, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    settings, said = IMPOSSIBLE[case]
    before = list_trusted(own)
    outcome = run(capsys, own, settings, "--stage", "paths", "--stage", "rewrites")
    assert outcome.code == 0, outcome.err
    assert not any(stage["ran"] for stage in outcome.document["stages"])
    refused = run(capsys, own, settings)
    assert refused.code == 2, refused.err
    assert any(part in refused.err for part in said.split("|")), refused.err
    assert list_trusted(own) == before


def test_commons_is_asked_from_the_seeds_on_and_never_in_nobodys_name(
    own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = list_trusted(own)
    for choice in (["--until", "seeds"], []):
        refused = run(capsys, own, ["commons.fetch=true"], *choice)
        assert (refused.code, "contact is empty" in refused.err) == (2, True)
    assert run(capsys, own, ["commons.fetch=true"], "--until", "corpus").code == 0
    assert list_trusted(own) == before
