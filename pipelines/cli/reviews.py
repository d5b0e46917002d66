"""``synth review``: a sample of questions for people to judge, and what they said of it."""

from pathlib import Path
from typing import Annotated

import typer

from pipelines.cli.console import WORKSPACE, JsonOption, WorkspaceOption, emit, emit_json, review, to_json

SIZE = 100


@review.command("export")
def export_sample_command(
    release: Annotated[
        Path | None, typer.Argument(help="Release folder to draw from; left out, what the last run selected.")
    ] = None,
    size: Annotated[int, typer.Option("--size", min=1, help="Questions of the sample.")] = SIZE,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the draw.")] = 0,
    workspace: WorkspaceOption = WORKSPACE,
    as_json: JsonOption = False,
) -> None:
    """Write a stratified sample as CSV, Argilla records and Label Studio tasks, with pictures."""
    from pipelines.run.sampling import export_sample
    from pipelines.run.workspace import Workspace

    report = export_sample(Workspace(workspace.resolve()), release, size, seed)
    if as_json:
        emit_json(to_json(report))
        return
    emit(f"{report.folder}: {report.questions} of {report.drawn_from} questions, of {len(report.strata)} strata")
    emit("Who judges fills in decision (accept or refuse), decided_by and decided_on; then `synth review import FILE`.")


@review.command("import")
def import_decisions_command(
    files: Annotated[list[Path], typer.Argument(help="The filled in CSV, or JSON of Argilla or Label Studio.")],
    workspace: WorkspaceOption = WORKSPACE,
    as_json: JsonOption = False,
) -> None:
    """Read decisions of one or several people; the next run publishes them, with names as given."""
    from pipelines.run.sampling import import_decisions
    from pipelines.run.workspace import Workspace

    report = import_decisions(Workspace(workspace.resolve()), files)
    if as_json:
        emit_json(to_json(report))
        return
    from pipelines.release.quality import render_section

    emit(f"{report.file}: {report.added} decisions added, {report.known} known already")
    for name, section in report.result.items():
        emit(f"\n{name}\n\n{render_section(section)}")
    emit("\nThe next `synth run` publishes this with what is released.")
