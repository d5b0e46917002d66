import os
import sys
import time
from pathlib import Path

import pytest

from pipelines.services.clients.supervisor import start_leashed
from tests.fake_vllm import is_alive

STUBBORN = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
worker = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(worker.pid, flush=True)
time.sleep(600)
"""


def run(command: list[str], log: Path, grace: float = 0.3):
    return start_leashed(command, os.environ, log, grace)


def read_number(log: Path) -> int:
    end = time.monotonic() + 20
    while not log.read_text().endswith("\n"):
        assert time.monotonic() < end
        time.sleep(0.05)
    return int(log.read_text())


def test_a_command_says_into_its_log_and_its_status_is_told(tmp_path):
    log = tmp_path / "logs" / "log"
    with run([sys.executable, "-c", "print('hello'); raise SystemExit(3)"], log) as process:
        assert process.wait(20) == 3
    assert log.read_text() == "hello\n"


@pytest.mark.parametrize("signal_name", ["SIGKILL", "SIGTERM"])
def test_a_command_that_a_signal_ended_has_the_shells_status(tmp_path, signal_name):
    command = [sys.executable, "-c", f"import os, signal; os.kill(os.getpid(), signal.{signal_name})"]
    with run(command, tmp_path / "log") as process:
        assert process.wait(20) == 128 + {"SIGKILL": 9, "SIGTERM": 15}[signal_name]


def test_a_command_that_is_none_says_so(tmp_path):
    with run([str(tmp_path / "nobody")], tmp_path / "log") as process:
        assert process.wait(20) == 127
    assert "nobody: No such file or directory" in (tmp_path / "log").read_text()


def test_a_command_that_will_not_end_is_killed_with_all_it_started(tmp_path):
    log = tmp_path / "log"
    with run([sys.executable, "-c", STUBBORN], log) as process:
        worker = read_number(log)
        process.stdin.close()
        assert process.wait(20) == 128 + 9
    end = time.monotonic() + 20
    while is_alive(worker):
        assert time.monotonic() < end
        time.sleep(0.05)


def test_whoever_holds_the_leash_is_not_ended_by_a_signal_meant_for_it(tmp_path):
    log = tmp_path / "log"
    with run([sys.executable, "-c", STUBBORN], log) as process:
        worker = read_number(log)
        process.terminate()
        time.sleep(0.5)
        assert is_alive(worker)
        assert process.poll() is None
        process.stdin.close()
