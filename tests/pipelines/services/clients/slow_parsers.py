"""Parsers that misbehave, for the child process to run."""

import os
import signal
import time

from pipelines.errors import RecordFailed


def count_or_misbehave(text: str) -> int:
    match text:
        case "hang":
            while True:
                pass
        case "eat":
            return len(bytearray(1 << 40))
        case "sleep":
            time.sleep(600)
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "raise":
            raise ValueError("no such text")
        case "refuse":
            raise RecordFailed("too-odd", "on purpose")
        case "pid":
            return os.getpid()
        case "secret":
            return len(os.environ.get("SYNTH_TEST_SECRET", ""))
    return len(text)
