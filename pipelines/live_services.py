"""What ``synth doctor`` asks of the services behind the live tools: are they there, and do they take the key?

Each gets one request that asks for nothing, which no service charges: a key is looked at before what is asked for.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pipelines.backends.live_http import Busy, LiveReply, LiveRequest, open_client
from pipelines.backends.live_reader import name_converter
from pipelines.backends.live_service import Service
from pipelines.backends.openai_errors import NoReply
from pipelines.errors import ConfigError, RateLimited, RecordFailed, SynthError
from pipelines.findings import Finding
from pipelines.live_tools import LiveService, list_services, make_manners
from pipelines.settings import LiveConfig

PATIENCE: Final = 10.0
"""Seconds for one reply."""


def look_at_live(config: LiveConfig, patience: float = PATIENCE) -> list[Finding]:
    """Ask every service behind the live tools, all at the same time.

    Args:
        config: of the services.
        patience: seconds for one reply.
    """
    found = asyncio.run(_ask_all(config, list_services(config), patience))
    if config.images == "serpapi" and not config.picture_base:
        detail = "live.picture_base is empty: serpapi takes addresses alone; say where images/ is published"
        found.append(Finding("live images: pictures", "problem", detail))
    return found


async def _ask_all(config: LiveConfig, services: Sequence[LiveService], patience: float) -> list[Finding]:
    return list(await asyncio.gather(*(_ask(config, service, patience) for service in services)))


async def _ask(config: LiveConfig, asked: LiveService, patience: float) -> Finding:
    if not asked.url:
        return _look_at_direct()
    what = f"live {asked.tool}: {asked.protocol} at {asked.url}"
    client = open_client(replace(make_manners(config), tries=1, timeout=patience))
    service = Service(asked.protocol, asked.url, asked.key_env, client, f"live.{asked.tool}_url")
    try:
        reply = await client.send(_make_request(asked, service.read_key()))
    except SynthError as error:
        return Finding(what, "problem", str(error))
    except NoReply as error:
        return Finding(what, "problem", f"{error}; see {service.setting}")
    return _judge(what, service, reply)


def _look_at_direct() -> Finding:
    what = "live reader: pages are fetched here"
    try:
        return Finding(what, "ok", name_converter())
    except ConfigError as error:
        return Finding(what, "problem", str(error))


def _make_request(asked: LiveService, key: str) -> LiveRequest:
    """Return a request that a service refuses for what is missing in it, and before that for a wrong key."""
    json = {"Content-Type": "application/json", "Accept": "application/json"}
    match asked.protocol:
        case "serper":
            return LiveRequest(asked.url, "POST", json | ({"X-API-KEY": key} if key else {}), body=b"{}")
        case "google-vision":
            keyed = json | ({"X-Goog-Api-Key": key} if key else {})
            return LiveRequest(asked.url, "POST", keyed, body=b'{"requests": []}')
        case "serpapi":
            engine = "google" if asked.tool == "search" else "google_lens"
            return LiveRequest(asked.url, query={"engine": engine} | ({"api_key": key} if key else {}))
    return LiveRequest(asked.url, headers={"Authorization": f"Bearer {key}"} if key else {})


def _judge(what: str, service: Service, reply: LiveReply) -> Finding:
    if reply.status == 200:
        return Finding(what, "ok", "is there")
    match service.explain(reply):
        case RecordFailed():
            return Finding(what, "ok", "is there and takes the key" if service.key_env else "is there")
        case Busy() | RateLimited():
            return Finding(what, "warning", f"busy (HTTP {reply.status}); look again later")
        case error:
            return Finding(what, "problem", str(error))
