"""aiohttp alone on the benchmark's requests: no queue, no retry, no record. The most that a client here can reach."""

import asyncio
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import aiohttp

sys.path.insert(0, str(Path(__file__).parent))


async def send(address: str, bodies: Iterator[bytes], session: aiohttp.ClientSession) -> int:
    """Send bodies one after the other until there are none; return how many replies were whole."""
    whole = 0
    for body in bodies:
        async with session.post(f"{address}/chat/completions", data=body) as reply:
            whole += bool(json.loads(await reply.read())["choices"][0]["message"]["content"])
    return whole


async def run(address: str, rows: int, in_flight: int) -> tuple[int, float]:
    """Send one request a row, so many at a time; return the whole replies and the seconds."""
    from prompts import make_prompts

    schema = {
        "type": "object",
        "properties": {"answer": {"type": "string", "title": "Answer"}},
        "required": ["answer"],
        "additionalProperties": False,
    }
    form = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, "strict": False}}

    def encode() -> Iterator[bytes]:
        for system, user in make_prompts(rows):
            messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
            body = {"model": "mock", "messages": messages, "temperature": 0.0, "top_p": 1.0, "max_tokens": 256}
            yield json.dumps(body | {"response_format": form}).encode()

    bodies = encode()
    headers = {"Content-Type": "application/json"}
    connector = aiohttp.TCPConnector(limit=in_flight)
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
        started = time.monotonic()
        whole = await asyncio.gather(*(send(address, bodies, session) for _ in range(in_flight)))
        return sum(whole), time.monotonic() - started


if __name__ == "__main__":
    rows, spent = asyncio.run(run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
    sys.stdout.write(json.dumps({"rows": rows, "seconds": spent}) + "\n")
