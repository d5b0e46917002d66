import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import typer

from pipelines.cli.console import guarded
from pipelines.stopping import heeding_signals, holding_signals

ROOT = Path(__file__).parents[2]
SIGNALS = [signal.SIGTERM, signal.SIGHUP, signal.SIGINT]


def run_program(folder: Path, text: str, *arguments: object) -> "subprocess.CompletedProcess[str]":
    """Run a program as a module, in a session of its own."""
    (folder / "program.py").write_text(text)
    return subprocess.run(
        [sys.executable, "-m", "program", *(str(argument) for argument in arguments)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        start_new_session=True,
    )


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_amid_the_start_of_a_pool_acts_once_the_pool_stands(number):
    started = []

    def start() -> None:
        with holding_signals():
            # To this thread: a signal to the process may reach another one a moment later.
            signal.pthread_kill(threading.main_thread().ident, number)
            started.append("all")
        started.append("more")

    with heeding_signals(), pytest.raises(KeyboardInterrupt):
        start()
    assert started == ["all"]
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == set()


POOL = """
import os, sys, time
from pipelines.pools import open_pool
from pipelines.stopping import heeding_signals, holding_signals

if __name__ == "__main__":
    try:
        with heeding_signals(), open_pool(2) as pool:
            with holding_signals():
                naps = pool.map(time.sleep, [60, 60, 60])
                # The processes have not come to Python yet.
                os.killpg(0, int(sys.argv[1]))
            list(naps)
    except KeyboardInterrupt:
        print("interrupted")
"""


@pytest.mark.parametrize("number", SIGNALS)
def test_a_pool_whose_processes_only_begin_ends_at_once_and_in_silence(tmp_path, number):
    done = run_program(tmp_path, POOL, int(number))
    # Its streams were read to their end, so nobody is left who holds them.
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\n", "")


def test_an_interrupt_that_no_command_meets_is_one_line_and_exit_code_3(capsys):
    app = typer.Typer()

    @app.command()
    def begin() -> None:
        raise KeyboardInterrupt

    with pytest.raises(SystemExit) as ending:
        guarded(lambda: app(args=[], prog_name="synth"), [])
    assert ending.value.code == 3
    assert capsys.readouterr().err == "synth: interrupted; run the same command again\n"


SETTLED = """
import os, signal, sys, time
from pipelines.stopping import end_by_signals
try:
    exec("raise KeyboardInterrupt")
except KeyboardInterrupt:
    end_by_signals(3)
if len(sys.argv) > 1:
    os.kill(os.getpid(), int(sys.argv[1]))
    time.sleep(60)
sys.exit(3)
"""


@pytest.mark.parametrize("more", [[], [int(signal.SIGTERM)], [int(signal.SIGINT)]])
def test_an_ending_that_is_settled_keeps_its_exit_code(tmp_path, more):
    done = run_program(tmp_path, SETTLED, *more)
    assert (done.returncode, done.stderr) == (3, "")
