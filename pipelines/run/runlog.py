"""The log file of a run: what the terminal said and what libraries warned of, each line with its time, without keys."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipelines.secrets import mask_keys


class LineFormatter(logging.Formatter):
    """Time, level and text; the text without keys."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        return mask_keys(super().format(record))


class LogFile(logging.FileHandler):
    """Appends to a file; one that takes no more lines is told once, for a run goes on without it."""

    refused = False

    def handleError(self, record: logging.LogRecord) -> None:
        """Say on stderr that lines are lost."""
        if not self.refused:
            self.refused = True
            sys.stderr.write(f"warning        {self.baseFilename}: {sys.exc_info()[1]}; lines of the log are lost\n")


@contextmanager
def open_run_log(path: Path, formatter: logging.Formatter | None = None) -> Iterator[logging.Logger]:
    """Yield a logger into a file; warnings of libraries go there, too, and to stderr as without it.

    Raises:
        OSError: if the file cannot be opened.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    file, log = LogFile(path, encoding="utf-8", errors="backslashreplace"), logging.Logger("synth.run")
    file.setFormatter(formatter or LineFormatter())
    log.addHandler(file)
    # A root logger without handlers has this one; with ours it would have it no more.
    handlers = [file] if logging.root.handlers or logging.lastResort is None else [file, logging.lastResort]
    for handler in handlers:
        logging.root.addHandler(handler)
    try:
        yield log
    except BaseException as error:
        log.error("ended early: %s", str(error) or type(error).__name__)
        raise
    finally:
        for handler in handlers:
            logging.root.removeHandler(handler)
        file.close()
