"""Random signals at random moments of whole runs, from one process and from pools, and how they end.

As a program::

    python -m tests.chaos.signals [--times 50] [--seed 1] [--longest 20]

sends ``times`` signals, each up to ``longest`` seconds after a command heeds them, to it alone or to all its processes,
some of them twice. It prints how the commands ended, each one that did not end in order, and whether what they have
made in the end is what an undisturbed run makes.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.chaos.driving import ROOT, TINY, call, digest_outputs, make_environment, make_run

SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
SPREAD = ("runtime.engine=processes", "runtime.workers=2")
PATIENCE = 600.0


def list_session(leader: int) -> list[str]:
    """Return the command lines of the living processes of a session."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, session = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
            if int(session) == leader and state != "Z":
                found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def heeds_signals(child: "subprocess.Popen[str]") -> bool:
    """Whether a process has a handler of SIGTERM."""
    status = Path(f"/proc/{child.pid}/status").read_text()
    return bool(int(status.partition("SigCgt:")[2].split()[0], 16) >> (signal.SIGTERM - 1) & 1)


def disturb(command: list[str], rng: random.Random, longest: float) -> tuple[int, str]:
    """Send a command a signal; return its exit code and what is wrong with its end, empty for nothing."""
    child = subprocess.Popen(
        command, cwd=ROOT, env=make_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    while child.poll() is None and not heeds_signals(child):
        time.sleep(0.005)
    time.sleep(rng.uniform(0.0, longest))
    number, send = rng.choice(SIGNALS), rng.choice([os.kill, os.killpg])
    for _ in range(rng.choice([1, 1, 2])):
        if child.poll() is None:
            send(child.pid, number)
            time.sleep(rng.uniform(0.0, 1.0))
    _, err = child.communicate(timeout=PATIENCE)
    lines = [line for line in err.splitlines() if line.startswith("synth:")]
    told = child.returncode == 0 or (child.returncode == 3 and len(lines) == 1 and err.splitlines()[-1] == lines[0])
    if told and "Traceback" not in err and not list_session(child.pid):
        return child.returncode, ""
    return child.returncode, f"{number.name} by {send.__name__}: {child.returncode} {list_session(child.pid)}\n{err}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.signals")
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--longest", type=float, default=20.0)
    given = parser.parse_args()
    rng, endings, wrong = random.Random(given.seed), Counter[int](), 0
    with TemporaryDirectory() as folder:
        calm, disturbed = Path(folder) / "calm", Path(folder) / "disturbed"
        for _ in range(given.times):
            code, fault = disturb(make_run(disturbed, settings=(*TINY, *rng.choice([(), SPREAD]))), rng, given.longest)
            endings[code] += 1
            wrong += bool(fault)
            sys.stderr.write(fault)
        for workspace in (calm, disturbed):
            assert call(make_run(workspace, settings=TINY), PATIENCE).code == 0
        same = digest_outputs(calm) == digest_outputs(disturbed)
    sys.stdout.write(f"ended {dict(endings)}, out of order {wrong}, the same bytes {same}\n")
    sys.exit(bool(wrong) or not same)


if __name__ == "__main__":
    main()
