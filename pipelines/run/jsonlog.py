"""The logs of a run: its file, with what the terminal said and libraries warned of, and lines of JSON for collectors.

Keys of every line: ``time`` (UTC, RFC 3339), ``level`` (info, warning or error), ``event`` and ``message`` (what a
person would read); ``run`` once the run has a name; ``stage`` and ``shard`` where it is about one. The events, with the
numbers that they add:

- ``stages``: the run begins; ``stages``, their names.
- ``begin``: a stage begins; ``total`` and ``unit`` (``total`` 0: not known).
- ``progress``: every five seconds; ``done``, ``total``, ``unit``, ``rate`` (units a second), ``seconds_left`` (null if
  not known), ``backlog_rows`` and ``backlog_shards`` (there and not done).
- ``shard``: a shard is written; ``rows_in``, ``kept``, ``rejected``, ``failed``, ``rows_out``, ``seconds``.
- ``end``: a stage ended; the same of the whole stage, with ``calls``, ``recorded``, ``tokens`` and ``cost``.
- ``note``, ``warning``: what was said meanwhile.
- ``error``: why the command ends, with ``exit_code``.
- ``log``: what a library said, with ``logger``, and ``error`` for its traceback.
"""

import json
import logging
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, TextIO

from pipelines.secrets import mask_keys

NO_KEYS: Mapping[str, object] = MappingProxyType({})
LOG = logging.getLogger("synth")
KEYS = "synth_keys"
"""Attribute of a record that holds the keys of its line."""


class JsonLines(logging.Handler):
    """Writes all that is logged in this process as JSON, warnings and the ends of threads included."""

    def __init__(self, out: TextIO) -> None:
        super().__init__()
        self.out = out
        self.run = ""
        """Name of the run, once there is one."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line."""
        keys: dict[str, Any] = getattr(record, KEYS, {"event": "log", "logger": record.name})
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {"time": moment, "level": _name_level(record.levelno), **({"run": self.run} if self.run else {}), **keys}
        line["message"] = mask_keys(record.getMessage())
        if record.exc_info:
            line["error"] = mask_keys(logging.Formatter().formatException(record.exc_info))
        self.out.write(json.dumps(line, ensure_ascii=False, default=str) + "\n")
        self.out.flush()


def _name_level(number: int) -> str:
    return "error" if number >= logging.ERROR else "warning" if number >= logging.WARNING else "info"


def find_json_log() -> JsonLines | None:
    """Return the log of this process if it is in JSON."""
    return next((handler for handler in logging.root.handlers if isinstance(handler, JsonLines)), None)


def start_json_log(out: TextIO | None = None) -> None:
    """Make everything that this process logs JSON, on stderr if no other stream is named."""
    if find_json_log() is None:
        logging.root.addHandler(JsonLines(out or sys.stderr))
        LOG.setLevel(logging.INFO)
        logging.captureWarnings(True)
        threading.excepthook = _log_thread


def stop_json_log() -> None:
    """Undo :func:`start_json_log`."""
    if (handler := find_json_log()) is not None:
        logging.root.removeHandler(handler)
        LOG.setLevel(logging.NOTSET)
        logging.captureWarnings(False)
        threading.excepthook = threading.__excepthook__


def _log_thread(ended: threading.ExceptHookArgs) -> None:
    if ended.exc_value is not None:
        LOG.error("a thread ended with an error", exc_info=ended.exc_value)


def log_event(event: str, message: str, keys: Mapping[str, object] = NO_KEYS, level: int = logging.INFO) -> None:
    """Log a line with keys of its own."""
    LOG.log(level, "%s", message, extra={KEYS: {"event": event, **keys}})


class LineFormatter(logging.Formatter):
    """Time, level and text; the text without keys."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        return mask_keys(super().format(record))


class LogFile(logging.FileHandler):
    """Appends to a file; warns once when it takes no more lines, as a run goes on without it."""

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
