"""Each row of :mod:`tests.faults.listed` as it stands, and the table of all of them."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.chaos.driving import ROOT, call_here, copy_workspace, digest_outputs, list_trusted
from tests.faults.__main__ import TABLE, render_table
from tests.faults.listed import HELD, MADE, ROWS, Command, Row, Stand, lay_dump, lay_world
from tests.faults.server import Handle
from tests.pipelines.services.clients.sparql_server import SparqlServer, load_store, serve_sparql
from tests.turtle import make_turtle


@pytest.fixture(scope="module")
def sparql(made: Path) -> Iterator[SparqlServer]:
    with serve_sparql(load_store(make_turtle(next(made.glob("worlds/*"))))) as server:
        yield server


@pytest.fixture
def stand(
    made: Path, server: Handle, sparql: SparqlServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Stand:
    server.mend()
    sparql.always = None
    # Brackets: no reader may take the path for a pattern.
    root = copy_workspace(made, tmp_path / "work [1]")
    return Stand(root, tmp_path, server, sparql, partial(call_here, capsys))


@pytest.fixture(scope="module")
def known() -> dict[Command, dict[str, str]]:
    """Outputs of undisturbed runs, by command."""
    return {}


def read_undisturbed(row: Row, stand: Stand, known: dict[Command, dict[str, str]]) -> dict[str, str]:
    """Return the outputs of a workspace in which the command, if it is a run, met no fault."""
    if row.command[0] != "run" or row.command == MADE or row.then.__name__ != "end_alike":
        return digest_outputs(stand.root)
    if row.command not in known:
        clean = Stand(stand.root.with_name("clean"), stand.folder, stand.model, stand.sparql, stand.call)
        copy_workspace(stand.root, clean.root)
        for lay in (lay_dump(), lay_world):
            lay(clean)
        ended = clean.run(row.command)
        assert ended.code == 0, ended.err
        known[row.command] = digest_outputs(clean.root)
    return known[row.command]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.fault)
def test_a_fault_ends_as_its_row_says_and_so_does_the_next_run(
    row: Row, stand: Stand, known: dict[Command, dict[str, str]]
) -> None:
    undisturbed, sealed = read_undisturbed(row, stand, known), list_trusted(stand.root)
    row.harm(stand)
    ended = stand.run(row.command)
    assert ended.code == row.code, ended
    assert row.words in ended.err + ended.out
    assert ended.err.count("synth: ") <= 1, ended.err
    if row.code in (2, 3):
        assert set(list_trusted(stand.root)) <= set(sealed)
    row.repair(stand)
    row.then(stand, row, undisturbed)


def test_the_table_is_that_of_the_rows() -> None:
    assert TABLE.read_text(encoding="utf-8") == render_table(), "say `python -m tests.faults --write`"


@pytest.mark.parametrize("test", sorted({held.test for held in HELD}))
def test_a_test_that_is_named_is_there(test: str) -> None:
    path, _, name = test.partition("::")
    assert f"\ndef {name}(" in (ROOT / path).read_text(encoding="utf-8")
