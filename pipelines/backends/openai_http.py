"""OpenAI's client on a short lead: bounded replies, no redirects, nothing of the environment in its requests."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import httpx2
from openai import AsyncOpenAI

MAX_REPLY = 16 << 20
_CHUNK = 1 << 16
_SENT = frozenset("host accept accept-encoding authorization connection content-length content-type user-agent".split())


class BoundedClient(httpx2.AsyncClient):
    """Sends what the request needs and nothing else; reads no reply beyond its limit, packed or not."""

    async def send(self, request: httpx2.Request, *, stream: bool = False, **settings: Any) -> httpx2.Response:  # noqa: ANN401 - as httpx2 has it
        """Return a whole reply.

        Raises:
            httpx2.DecodingError: if the reply is larger than allowed.
        """
        # The client adds an organisation, a project and more from the environment, and what machine this is.
        headers = [(name, value) for name, value in request.headers.multi_items() if name in _SENT]
        extensions = dict(request.extensions)
        bare = httpx2.Request(
            request.method, request.url, headers=headers, content=request.content, extensions=extensions
        )
        response = await super().send(bare, stream=True, **settings)
        body = bytearray()
        try:
            async for chunk in response.aiter_bytes(_CHUNK):
                body += chunk
                if len(body) > MAX_REPLY:
                    raise httpx2.DecodingError(f"a reply of over {MAX_REPLY:,} bytes", request=request)
        finally:
            await response.aclose()
        kept = [(name, value) for name, value in response.headers.items() if name != "content-encoding"]
        return httpx2.Response(response.status_code, headers=kept, content=bytes(body), request=request)


@dataclass(slots=True)
class _Shared:
    """A client and how many requests use it."""

    client: AsyncOpenAI
    users: int = 0


@dataclass(frozen=True, slots=True)
class Clients:
    """One client for each event loop on which requests are under way.

    Connections belong to a loop, every shard has a loop of its own, and nobody says when it ends: the last request
    under way closes the client.
    """

    make: Callable[[], AsyncOpenAI]
    by_loop: dict[int, _Shared] = field(default_factory=dict)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[AsyncOpenAI]:
        """Share the running loop's client."""
        loop = id(asyncio.get_running_loop())
        if loop not in self.by_loop:
            self.by_loop[loop] = _Shared(self.make())
        shared = self.by_loop[loop]
        shared.users += 1
        try:
            yield shared.client
        finally:
            shared.users -= 1
            if not shared.users:
                del self.by_loop[loop]
                await shared.client.close()


@lru_cache(maxsize=1)
def _make_context() -> ssl.SSLContext:
    """Return the trusted certificates; reading them takes longer than all else that a request takes here."""
    return httpx2.create_ssl_context()


def make_client(base_url: str, key: str, timeout: float, connections: int) -> AsyncOpenAI:
    """Return a client that asks once and sends this key alone.

    Args:
        base_url: address that ``/chat/completions`` is appended to.
        key: sent as a bearer token.
        timeout: seconds without a byte.
        connections: most requests under way at once.
    """
    limits = httpx2.Limits(max_connections=connections)
    return AsyncOpenAI(
        api_key=key,
        base_url=base_url,
        timeout=timeout,
        max_retries=0,
        # As a header, too: the client would let one from OPENAI_CUSTOM_HEADERS win.
        default_headers={"Authorization": f"Bearer {key}"},
        http_client=BoundedClient(verify=_make_context(), limits=limits, timeout=timeout, follow_redirects=False),
    )
