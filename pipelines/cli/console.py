"""The console: what commands are registered with, their common options, and how they print and fail."""

import json
import os
import shutil
import sys
from codecs import lookup
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from textwrap import wrap
from typing import Annotated, Any

import typer

app = typer.Typer(
    help="From a Wikipedia dump to verified multi-hop visual QA. `synth run` alone makes a demo dataset, offline.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
review = typer.Typer(help="Ask people to judge a sample, and read what they said.", no_args_is_help=True)
app.add_typer(review, name="review")


def _show_version(is_asked: bool) -> None:
    if is_asked:
        from importlib.metadata import version

        typer.echo(f"synth {version('synth')}")
        raise typer.Exit


@app.callback()
def _take_options(
    _: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options before a command."""


WorkspaceOption = Annotated[Path, typer.Option("--workspace", help="Folder for everything a run makes.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
RecipeOption = Annotated[str, typer.Option("--recipe", help="Shipped recipe (demo).")]
ConfigOption = Annotated[
    list[Path] | None, typer.Option("--config", help="TOML file over the recipe; may be repeated, the last one wins.")
]
SetOption = Annotated[list[str] | None, typer.Option("--set", help="Change one key: section.key=value.")]
LimitOption = Annotated[int, typer.Option("--limit", min=0, help="At most this many seeds; 0 is the recipe's own.")]
RunOption = Annotated[
    str, typer.Option("--run", help="Run that is meant; `synth status` lists them. The last one if left out.")
]
ReleaseArgument = Annotated[Path, typer.Argument(help="Release folder, or RUN/DATASET.", metavar="RELEASE")]
WORKSPACE = Path("workspace")
PIPE_COLUMNS = 140
INTERRUPTED = 130
"""What the command line library makes of an interrupt that no command has met."""


def emit(text: str) -> None:
    """Write a line to stdout: results go there, progress and errors to stderr."""
    sys.stdout.write(text if text.endswith("\n") else text + "\n")


def emit_prose(text: str) -> None:
    """Write lines to stdout; on a terminal none is broken amid a word."""
    if sys.stdout.isatty():
        columns = shutil.get_terminal_size().columns
        fold = partial(wrap, width=columns, break_long_words=False, break_on_hyphens=False)
        text = "\n".join("\n".join(fold(line)) for line in text.splitlines())
    emit(text)


def emit_json(document: Any) -> None:  # noqa: ANN401 - any JSON value
    """Write one JSON document to stdout."""
    # What an encoding lacks is written as JSON's escape; a lone surrogate is lacked by every one.
    is_plain = lookup(sys.stdout.encoding or "utf-8").name != "utf-8"
    text = json.dumps(document, indent=1, ensure_ascii=is_plain, default=str)
    emit(text.encode("utf-8", "backslashreplace").decode())


def emit_table(shown: Any) -> None:  # noqa: ANN401 - a rich renderable
    """Write a rich table, or several in a group, to stdout, plain when it is no terminal; no text of a cell is cut."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console, Group
    from rich.table import Table

    # A pipe or a log has no width of its own but the one that its user names.
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else PIPE_COLUMNS
    for table in shown.renderables if isinstance(shown, Group) else [shown]:
        if isinstance(table, Table):
            table.box, table.title_justify, table.caption_justify = table.box and SIMPLE_HEAD, "left", "left"
            for column in table.columns:
                column.overflow = "fold"
    # Cells are text, not markup: synth[clip], a folder run[1] and :key: are printed as they are.
    Console(width=width, markup=False, emoji=False).print(shown)


def to_json(value: Any) -> Any:  # noqa: ANN401 - any dataclass or model
    """Return dataclasses and models, at any depth, as plain JSON values."""
    from dataclasses import fields, is_dataclass

    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {str(key): to_json(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_json(entry) for entry in value]
    return value


@contextmanager
def interruptible(what_next: str = "the same command goes on from here") -> Iterator[None]:
    """Say what an interrupt means; the command line library would end without a word."""
    from pipelines.errors import Unavailable

    try:
        yield
    except KeyboardInterrupt as error:
        raise Unavailable(f"interrupted; {what_next}") from error


def guarded(call: Callable[[], None], arguments: Sequence[str], is_own: bool = False) -> None:
    """Call and turn the failures of DESIGN section 4 into exit codes; all else is a defect, reported with its log.

    With ``is_own`` the process is the command's: a signal ends it at once where nobody reads how the command ends.
    """
    from pipelines.stopping import heeding_signals

    with heeding_signals():
        try:
            _call(call, is_own)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is ours
            from pipelines.cli.defects import report_defect

            report_defect(error, arguments)


def _call(call: Callable[[], None], is_own: bool) -> None:
    from pipelines.errors import ConservationError, SynthError, Unavailable
    from pipelines.run.endings import naming_endings
    from pipelines.stopping import end_by_signals, ignore_signals

    settle = end_by_signals if is_own else lambda _: ignore_signals()
    try:
        with naming_endings():
            call()
    except ConservationError:
        raise
    except SynthError as error:
        # Bound to no other name: the error would hold this frame and its own, and DuckDB tells of what is left at exit.
        settle(error.exit_code)
        fail(error)
    except SystemExit as left:
        ignore_signals()
        if left.code != INTERRUPTED:
            raise
        settle(Unavailable.exit_code)
        fail(Unavailable("interrupted; run the same command again"))


def fail(error: Any) -> None:  # noqa: ANN401 - a SynthError, whose class is imported late
    """Write one line to stderr, without any key, and leave with the error's exit code."""
    say_end(str(error))
    raise SystemExit(error.exit_code)


def say_end(text: str, trace: str = "") -> None:
    """Write to stderr why a command ends, without any key: a line that begins so, after a traceback.

    A terminal that is gone does not change the exit code.
    """
    from pipelines.secrets import mask_keys

    said = mask_keys(text)
    try:
        sys.stderr.write(trace + (f"synth: {said}\n" if not said.startswith("synth:") else f"{said}\n"))
        sys.stderr.flush()
    except OSError:
        # Python writes what is left when it ends; that would fail, too, and change the exit code.
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), sys.stderr.fileno())
