"""What synth tells a user of a defect of its own: one line, a log with the traceback, and where both belong."""

import os
import platform
import time
import traceback
from collections.abc import Sequence
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from tempfile import gettempdir

from pipelines.cli.console import WORKSPACE, say_end
from pipelines.errors import DEFECT
from pipelines.files import write_text
from pipelines.run.workspace import Workspace
from pipelines.secrets import mask_keys

OPTION = "--workspace"
LONGEST_LINE = 300
REPORT = "please report it with this file to those you have synth from (their issue tracker)"


def report_defect(error: Exception, arguments: Sequence[str]) -> None:
    """Write the log of a defect, say so in one line on stderr, and leave with exit code 4."""
    trace = mask_keys("".join(traceback.format_exception(error)))
    said = " ".join(mask_keys(f"{type(error).__name__}: {error}").split())[:LONGEST_LINE]
    path = _place_log(arguments)
    try:
        # What the machine's encoding cannot read has become lone surrogates, which no file takes.
        text = f"{_describe_machine(arguments)}\n{trace}".encode("utf-8", "backslashreplace").decode()
        write_text(path, text)
    except OSError as refused:
        say_end(f"a defect of synth: {said}; no log can be written ({refused.strerror})", trace)
    else:
        say_end(f"a defect of synth: {said}; its log is {path}; {REPORT}")
    raise SystemExit(DEFECT)


def _place_log(arguments: Sequence[str]) -> Path:
    """Return a new file in the logs of the workspace that the command names, if it is there, else of the machine."""
    named = [value for option, value in pairwise(arguments) if option == OPTION]
    named += [text.partition("=")[2] for text in arguments if text.startswith(f"{OPTION}=")]
    root = Path(named[-1]) if named else WORKSPACE
    folder = Workspace(root.resolve()).logs if root.is_dir() else Path(gettempdir())
    return folder / f"defect-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log"


def _describe_machine(arguments: Sequence[str]) -> str:
    command = mask_keys(" ".join(["synth", *arguments]))
    return f"{command}\nsynth {version('synth')}, Python {platform.python_version()}, {platform.platform()}\n"
