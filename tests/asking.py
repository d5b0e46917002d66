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
from pathlib import Path

from pipelines.services.clients.replies import open_replies

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

    def start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "tests.asking", json.dumps(asdict(self))]
        return subprocess.Popen(command, cwd=ROOT)


async def ask_all(asking: Asking) -> None:
    out = os.open(asking.sent, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    async def ask(key: str) -> str:
        async def send() -> str:
            os.write(out, f"{key}\n".encode())
            await (asyncio.sleep(asking.seconds) if asking.seconds >= 0 else asyncio.Event().wait())
            return f"reply of {os.getpid()}"

        reply, _ = await store.recall(key, "b", send)
        assert store.read(key) == reply
        return reply

    keys = [f"key {number}" for number in range(asking.keys)]
    with closing(open_replies(Path(asking.folder), asking.address)) as store:
        await asyncio.gather(*map(ask, reversed(keys) if asking.reverse else keys))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("asking", type=json.loads)
    asyncio.run(ask_all(Asking(**parser.parse_args().asking)))


if __name__ == "__main__":
    main()
