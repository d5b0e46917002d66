"""Counts the files and functions that one row runs through: ``python -m tests.benchmarks.executed [-v]``.

The demo is run up to ``rewrites`` first. Then ``synth run --stage groundings`` runs in this process, and every call of
a function of the repository is noted: from the command line to the Parquet file, and while the first row that is kept
is processed alone. ``-v`` lists the files.
"""

import asyncio
import inspect
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parents[2]
OURS = tuple(f"{ROOT / name}{os.sep}" for name in ("pipelines", "schemas", "flows"))


@dataclass(slots=True)
class Executed:
    """Functions of the repository that were called, by file."""

    functions: set[tuple[str, str, int]] = field(default_factory=set)

    @property
    def files(self) -> set[str]:
        """The files that they stand in."""
        return {file for file, _, _ in self.functions}

    def note(self, frame: FrameType, event: str, _: object) -> None:
        """Note a call; bodies of modules and classes and comprehensions do not count."""
        code = frame.f_code
        is_function = code.co_flags & inspect.CO_NEWLOCALS and not code.co_name.startswith("<")
        if event == "call" and is_function and code.co_filename.startswith(OURS):
            self.functions.add((code.co_filename, code.co_qualname, code.co_firstlineno))


@contextmanager
def watch() -> Iterator[Executed]:
    """Note every call in all threads inside."""
    executed = Executed()
    threading.setprofile(executed.note)
    sys.setprofile(executed.note)
    try:
        yield executed
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def call_synth(*arguments: str) -> None:
    """Run the command line in this process."""
    from pipelines.cli.main import app

    app(list(arguments), standalone_mode=False)


def ground_one(workspace: Path) -> Executed:
    """Process rewritten questions one by one until one is kept, and return what that one ran through."""
    from pipelines.cli.commands import load_config
    from pipelines.corpus.store import Corpus
    from pipelines.run.assembly import Assembly
    from pipelines.run.shards import read_parts
    from pipelines.run.workspace import Workspace
    from schemas.base import Rejection

    space = Workspace(workspace)
    corpus = Corpus.open(space.corpora / space.read_latest()["corpus"])

    async def process(stage: Callable, rows: Iterator) -> Executed:
        for row in rows:
            with watch() as executed:
                made = await stage(row)
            if not isinstance(made, Rejection):
                return executed
        raise LookupError("no row is kept")

    with closing(Assembly(load_config("demo", None, []), space, corpus)) as assembly:
        (plan,) = [plan for plan in assembly.plan_stages() if plan.name == "groundings"]
        rows = read_parts(plan.sources[0].folder, plan.stage.input)
        return asyncio.run(process(plan.stage, rows))


def main() -> None:
    """Print both counts."""
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder) / "workspace"
        call_synth("run", "--until", "rewrites", "--workspace", str(workspace))
        with watch() as whole:
            call_synth("run", "--stage", "groundings", "--workspace", str(workspace))
        one = ground_one(workspace)
    for what, executed in (("one row of groundings", one), ("from the command line to Parquet", whole)):
        sys.stdout.write(f"{what}: {len(executed.files)} files, {len(executed.functions)} functions\n")
        if "-v" in sys.argv:
            names = sorted(Path(file).relative_to(ROOT).as_posix() for file in executed.files)
            sys.stdout.write("".join(f"  {name}\n" for name in names))


if __name__ == "__main__":
    main()
