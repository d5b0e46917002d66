"""Notes of flow runs in a workspace; ``test_deployed`` closes real ones."""

from pathlib import Path
from uuid import uuid4

import pytest

from pipelines.run.workspace import Workspace

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.mark.parametrize("noted", [b"", b"half-a-", b"\xff\xfe"])
def test_an_unreadable_note_means_that_no_run_came_before(noted: bytes, tmp_path: Path) -> None:
    from flows.zombies import succeed

    (tmp_path / "flow-run.txt").write_bytes(noted)
    run = uuid4()
    assert succeed(Workspace(tmp_path), run) is None
    assert (tmp_path / "flow-run.txt").read_text().strip() == str(run)
