"""Every fault of a model server in every role: no stage is sealed, and after the repair it is as if nothing was."""

from itertools import product
from pathlib import Path

import pytest

from tests.chaos.driving import (
    STAGES,
    TINY,
    Outcome,
    call_here,
    check_one_line,
    copy_workspace,
    digest_files,
    list_settings,
    list_trusted,
    run_small,
)
from tests.faults.server import FAULTS, Handle
from tests.sampled import draw_every

SERVED = ("adapter=openai", "name=mock", "revision=r1", "timeout=3")


REFUSED = (2, "rejects the request")
AWAY = (3, "no address answered for 3 s")
UNUSABLE = (3, "had no usable reply")
"""How the command ends: its exit code, and words of its one line."""
EXPECTED = {
    **dict.fromkeys(("400", "404", "422", "redirect"), REFUSED),
    **dict.fromkeys(("401", "403"), (2, "rejects the key")),
    "413": (3, "prompt-too-long"),
    **dict.fromkeys(("429", "500", "502", "503", "504"), AWAY),
    **dict.fromkeys(("html", "no body", "malformed", "a list", "no message", "error in 200", "number"), AWAY),
    **dict.fromkeys(("wrong bytes", "gzip", "short", "close", "hang", "drip", "endless"), AWAY),
    **dict.fromkeys(("no choice", "null", "empty", "blank", "reasoning only"), UNUSABLE),
    **dict.fromkeys(("cut", "filtered", "refusal", "prose", "other shape", "one token", "uninvited call"), UNUSABLE),
}


def serve_role(role: str, url: str) -> tuple[str, ...]:
    """Return the settings of a run in which a role is served at an address."""
    return (*TINY, "runtime.patience=3", *(f"models.{role}.{setting}" for setting in (*SERVED, f"base_url={url}")))


def run_role(capture: pytest.CaptureFixture[str], url: str, workspace: Path, role: str) -> Outcome:
    """Run a role's stage, always by the same command."""
    settings = list_settings(serve_role(role, url))
    return call_here(capture, "run", "--workspace", workspace, *settings, "--until", STAGES[role], "--json")


@pytest.fixture(scope="module")
def undisturbed(made: Path, server: Handle, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """The files of each role's stage where its server is well, by role; made by processes of their own."""
    found = {}
    for role, stage in STAGES.items():
        workspace = copy_workspace(made, tmp_path_factory.mktemp(role) / "workspace")
        document = run_small(workspace, "--until", stage, settings=serve_role(role, server.url))
        found[role] = digest_files(workspace, f"stages/{stage}/{document['stages'][-1]['key']}/*.parquet")
    return found


def test_every_fault_has_an_ending() -> None:
    assert set(EXPECTED) == set(FAULTS)


@pytest.mark.parametrize(("role", "fault"), draw_every(19, list(product(STAGES, FAULTS))))
def test_a_fault_of_a_service_seals_no_stage_and_the_same_command_goes_on_after_the_repair(
    role: str,
    fault: str,
    made: Path,
    server: Handle,
    undisturbed: dict[str, dict[str, str]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    workspace = copy_workspace(made, tmp_path / "workspace")
    sealed = list_trusted(workspace)
    server.fail(fault)
    code, words = EXPECTED[fault]
    line = check_one_line(run_role(capsys, server.url, workspace, role), code)
    assert words in line
    assert list_trusted(workspace) == sealed

    server.mend()
    mended = run_role(capsys, server.url, workspace, role)
    assert mended.code == 0, mended.err
    key = mended.document["stages"][-1]["key"]
    assert digest_files(workspace, f"stages/{STAGES[role]}/{key}/*.parquet") == undisturbed[role]
    assert server.count()["paid_duplicates"] == 0
