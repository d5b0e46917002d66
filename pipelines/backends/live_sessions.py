"""Connections to live services and to pages; guarded ones are made to the very address that was checked."""

import errno
import socket
from collections.abc import Callable
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from pipelines.addresses import ForbiddenAddress, Guard

_CONNECT_SECONDS = 20.0
_IDLE_SECONDS = 4.0


def make_session(guard: Guard | None) -> aiohttp.ClientSession:
    """Return a session without cookies, proxies, and anything else that it might find around it.

    Args:
        guard: who may be connected to; None for anybody.
    """
    settings: dict[str, Any] = {"limit": 0, "use_dns_cache": False}
    if guard is None:
        connector = aiohttp.TCPConnector(**settings, keepalive_timeout=_IDLE_SECONDS)
    else:
        connector = aiohttp.TCPConnector(
            **settings, force_close=True, resolver=_GuardedResolver(guard), socket_factory=_make_socket_factory(guard)
        )
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS),
        trust_env=False,
        auto_decompress=False,
    )


class _GuardedResolver(AbstractResolver):
    """Resolves names to addresses that the guard lets pass."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the addresses to connect to, in numbers, so that nobody looks them up again."""
        return [
            ResolveResult(
                hostname=host,
                host=place,
                port=port,
                family=socket.AF_INET6 if ":" in place else socket.AF_INET,
                proto=socket.IPPROTO_TCP,
                flags=socket.AI_NUMERICHOST,
            )
            for place in await self._guard.resolve(host, port)
        ]

    async def close(self) -> None:
        """Nothing is kept open."""


def _make_socket_factory(guard: Guard) -> Callable[[Any], socket.socket]:
    """Return what makes a socket for an address that is about to be connected to: the last place to refuse it."""

    def open_socket(place: Any) -> socket.socket:  # noqa: ANN401 - aiohttp's own tuple
        family, kind, protocol, _, address = place
        try:
            guard.check(str(address[0]))
        except ForbiddenAddress as error:
            # What connects understands errors of sockets alone.
            raise PermissionError(errno.EACCES, str(error)) from error
        return socket.socket(family=family, type=kind, proto=protocol)

    return open_socket
