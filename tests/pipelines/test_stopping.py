import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import ClassVar

import pytest
import typer

from pipelines.cli.console import guarded
from pipelines.run.workers import ENDING, WORKERS, Span, SpanReport, WorkerSpec, prepare_worker
from pipelines.stopping import heeding_signals, holding_signals
from tests.pipelines.run.test_chains import plan
from tests.pipelines.run.test_spans import FakePool, run_spans, wait_for_stop

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


class InterruptedPool(FakePool):
    """An interrupt comes amid the submit, whose span is under way."""

    masks: ClassVar[list[set[int]]] = []

    def submit(self, spec: WorkerSpec, span: Span) -> "Future[SpanReport]":
        self.masks.append(signal.pthread_sigmask(signal.SIG_BLOCK, []))
        super().submit(spec, span)
        raise KeyboardInterrupt

    def close(self) -> None:
        for future in self.futures:
            future.result(10)


def test_a_signal_acts_amid_the_submit_of_any_pool_and_the_span_is_asked_to_stop(tmp_path):
    planned = plan(tmp_path, {})
    pool = InterruptedPool(planned[1:], [wait_for_stop])
    with pytest.raises(KeyboardInterrupt):
        run_spans(tmp_path, pool, planned)
    assert pool.masks == [set()]
    assert not list(tmp_path.glob(".stop-*"))


def test_workers_outlive_a_signal_to_all_processes_and_end_with_their_pool_when_it_breaks():
    with ProcessPoolExecutor(2, WORKERS, prepare_worker, (ENDING,)) as pool:
        naps = [pool.submit(time.sleep, 1) for _ in range(2)]
        for nap in naps:
            nap.result(60)
        for worker in list(pool._processes.values()):
            os.kill(worker.pid, signal.SIGTERM)
        assert {pool.submit(os.getpid).result(60) for _ in range(2)} <= set(pool._processes)
        naps = [pool.submit(time.sleep, 600) for _ in range(2)]
        os.kill(next(iter(pool._processes)), signal.SIGKILL)
        assert [type(nap.exception(60)) for nap in naps] == [BrokenProcessPool] * 2


def test_a_signal_ends_a_command_whose_end_nobody_reads_with_its_exit_code(tmp_path):
    command = [sys.executable, "-m", "pipelines.cli.main", "config", "--set", f"{'long' * 20_000}.key=1"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as child:
        assert child.stderr is not None
        # Its line has begun and is longer than the pipe, so that it never ends.
        child.stderr.peek(1)
        child.send_signal(signal.SIGTERM)
        try:
            assert child.wait(20) == 2
        finally:
            child.kill()


def test_an_interrupt_that_no_command_meets_is_one_line_and_exit_code_3(capsys):
    app = typer.Typer()

    @app.command()
    def begin() -> None:
        raise KeyboardInterrupt

    with pytest.raises(SystemExit) as ending:
        guarded(lambda: app(args=[], prog_name="synth"), [])
    assert ending.value.code == 3
    assert capsys.readouterr().err == "synth: interrupted; run the same command again\n"
