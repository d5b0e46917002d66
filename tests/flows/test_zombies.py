"""Flow runs of one workspace beside and after each other; ``test_endings`` and ``test_deployed`` close real ones."""

from contextlib import nullcontext
from pathlib import Path
from uuid import uuid4

import pytest

from pipelines.errors import WorkspaceBusy
from pipelines.run.progress import Reporter, following_run
from pipelines.run.workspace import Workspace

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.mark.parametrize("noted", [b"", b"half-a-", b"\xff\xfe"])
def test_an_unreadable_note_means_that_no_run_came_before(noted: bytes, tmp_path: Path) -> None:
    from flows.zombies import succeed

    (tmp_path / "flow-run.txt").write_bytes(noted)
    run = uuid4()
    assert succeed(Workspace(tmp_path), run) is None
    assert (tmp_path / "flow-run.txt").read_text().strip() == str(run)


def test_a_workspace_has_one_parent_at_a_time(tmp_path: Path) -> None:
    from flows.zombies import PARENT, hold_parent

    workspace, run = Workspace(tmp_path / "new"), uuid4()
    with hold_parent(workspace, run) as is_alone, hold_parent(workspace, uuid4()) as is_also_alone:
        assert (is_alone, is_also_alone) == (True, False)
    assert (workspace.root / PARENT).read_text().strip() == str(run)
    (workspace.root / PARENT).write_bytes(b"\xff")
    with hold_parent(workspace, run) as is_alone:
        assert is_alone


@pytest.mark.parametrize(
    ("holder", "recipe", "state"),
    [
        ("run", "demo", "COMPLETED Skipped"),
        ("run", "", "COMPLETED Skipped"),
        ("run", "fvqa", "FAILED Unavailable"),
        ("prune", "", "FAILED Unavailable"),
        ("nightly", "", "FAILED Unavailable"),
    ],
)
def test_only_a_run_of_the_recipe_makes_what_a_skipped_one_would_have_made(
    holder: str, recipe: str, state: str, tmp_path: Path
) -> None:
    from flows.synthesize import name_busy

    workspace = Workspace(tmp_path)
    shown = following_run(Reporter(), workspace, "", recipe) if recipe else nullcontext()
    with workspace.claim(holder=holder), shown:
        ended = name_busy(WorkspaceBusy("busy"), workspace, "demo")
    assert f"{ended.type.value} {ended.name}" == state


@pytest.mark.parametrize(
    ("states", "ended", "started"),
    [
        (("Completed", "Completed"), None, ["seeds", ""]),
        (("Unavailable", "Completed"), "FAILED Unavailable", ["seeds"]),
        (("Skipped", "Completed"), "COMPLETED Skipped", ["seeds"]),
    ],
)
def test_a_part_that_is_not_made_ends_a_run_in_parts(states: tuple[str, ...], ended: str | None, started: list) -> None:
    from prefect.client.schemas.objects import FlowRun, StateType
    from prefect.states import State

    from flows.nightly import run_parts

    left, asked = list(states), []

    def start(_: str, until: str) -> FlowRun:
        asked.append(until)
        name = left.pop(0)
        kind = StateType.FAILED if name == "Unavailable" else StateType.COMPLETED
        return FlowRun(flow_id=uuid4(), state=State(type=kind, name=name))

    state = run_parts([("synthesize/nightly", "seeds"), ("synthesize/nightly", "")], start)
    assert (state and f"{state.type.value} {state.name}") == ended
    assert asked == started
