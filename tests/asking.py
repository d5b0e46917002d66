"""A process that asks for keys through a reply store: what tests and benchmarks start several of.

Every request that it sends is a line in a file, its key, written before the reply comes.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from pipelines.errors import BudgetSpent
from pipelines.services.clients.http import RateLimiter
from pipelines.services.clients.replies import open_replies
from pipelines.services.metering import Budget
from schemas.manifest import Usage

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Asking:
    """What a process is told: which keys it asks for, all at once, through which store."""

    folder: str
    address: str
    sent: str
    keys: int
    seconds: float
    """How long a reply takes; for ever if negative."""
    reverse: bool = False
    run: str = ""
    tokens: int = 0
    """Limit of the run's budget; 0 for none. A reply takes one."""
    rate: float = 0.0
    """Requests a second at one service, with one in flight; 0 for no limit."""
    prefix: str = "key"
    wave: int = 0
    """Keys asked for at once; 0 for all."""

    def start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "tests.asking", json.dumps(asdict(self))]
        return subprocess.Popen(command, cwd=ROOT)


async def ask_all(asking: Asking) -> None:
    out = os.open(asking.sent, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    budget = Budget({"tokens": asking.tokens})

    async def send(key: str) -> str:
        async with limiter.enter():
            os.write(out, f"{key}\n".encode())
            await (asyncio.sleep(asking.seconds) if asking.seconds >= 0 else asyncio.Event().wait())
        budget.add(Usage(tokens_in=1))
        return f"reply of {os.getpid()}"

    async def ask(key: str) -> None:
        try:
            reply, _ = await store.recall(key, "b", partial(send, key), budget.check)
        except BudgetSpent:
            return
        assert store.read(key) == reply

    keys = [f"{asking.prefix} {number}" for number in range(asking.keys)]
    with closing(open_replies(Path(asking.folder), asking.address, asking.run, budget)) as store:
        limits = {"rate": asking.rate, "concurrency": 1} if asking.rate else {"concurrency": asking.keys}
        limiter = RateLimiter("service", **limits, turns=store.turns if asking.rate else None)
        size = asking.wave or asking.keys
        for start in range(0, len(keys), size):
            wave = keys[start : start + size]
            await asyncio.gather(*map(ask, reversed(wave) if asking.reverse else wave))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("asking", type=json.loads)
    asyncio.run(ask_all(Asking(**parser.parse_args().asking)))


if __name__ == "__main__":
    main()
