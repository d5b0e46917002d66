"""Addresses that a model or a page names: only those of public web pages are ever requested.

An address is parsed strictly and rewritten, so that the checked and the requested address are the same. Every address
that a name resolves to must be public, and the connection goes to these very addresses.
"""

import asyncio
import ipaddress
import re
import socket
import unicodedata
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Final
from urllib.parse import SplitResult, quote, urljoin, urlsplit

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
Lookup = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the addresses of a host, as text, for a port; raises ``OSError`` if there are none."""

# The IANA registries of special-purpose addresses; ``ipaddress`` has a list that differs from version to version.
_CLOSED_V4 = [
    ipaddress.IPv4Network(network)
    for network in (
        "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 "
        "192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 "
        "168.63.129.16/32"  # looks public; inside one cloud it is the host's own service
    ).split()
]
_UNICAST_V6 = ipaddress.IPv6Network("2000::/3")
"""IANA's public unicast range, without loopback, private, link-local and multicast addresses."""
_CLOSED_V6 = [
    ipaddress.IPv6Network("2001::/23"),  # protocol assignments, Teredo among them
    ipaddress.IPv6Network("2001:db8::/32"),
    ipaddress.IPv6Network("2002::/16"),  # 6to4
    ipaddress.IPv6Network("3fff::/20"),
]
_MAPPED = ipaddress.IPv6Network("::ffff:0:0/96")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
"""Addresses of public names on a network without IPv4 (RFC 6052)."""
_ISATAP = (0x00005EFE, 0x02005EFE)
"""Upper half of an interface identifier whose lower half is an IPv4 address (RFC 5214)."""
LONGEST: Final = 4096
"""Characters of an address."""
_LONGEST_NAME = 253
_PATH = "/:@!$&'()*+,;=~"
"""Characters that stay unquoted in a path."""
_SCHEMES = {"http": 80, "https": 443}
_UNPRIVILEGED = 1024
_BAD_PORTS = frozenset(
    [1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080]
)
"""Ports from 1024 that browsers refuse (Fetch standard, "bad port")."""
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_PRIVATE_NAMES = frozenset(
    "alt corp example home intranet internal invalid lan local localdomain localhost onion private test".split()
)
"""Top-level labels of private names (RFC 6761, RFC 6762 and common use)."""
_PRIVATE_SUFFIXES = (".home.arpa", ".in-addr.arpa", ".ip6.arpa")
_RESOLVERS = ThreadPoolExecutor(32, "look-up")
"""Separate threads, because a name whose servers are silent blocks one for half a minute."""


PORTS: Final = (80, 443)
"""Ports that pages are fetched from unless others are set."""


class ForbiddenAddress(ValueError):
    """An address that is not of a public web page."""


@dataclass(frozen=True, slots=True)
class Address:
    """A checked address: its rewritten ``url`` (ASCII, percent-encoded, no fragment), scheme, host and TCP port.

    The host is a name in lower case without trailing dot, or a literal address without brackets.
    """

    url: str
    scheme: str
    host: str
    port: int


def is_public(address: IpAddress) -> bool:
    """Return whether an address, and any IPv4 address inside it, is one of the public internet.

    IPv4-mapped and NAT64 addresses can be public; 6to4, Teredo, IPv4-compatible, translated and ISATAP ones never are.
    """
    if isinstance(address, ipaddress.IPv4Address):
        return address.is_global and not any(address in network for network in _CLOSED_V4)
    if address.scope_id is not None:
        return False
    if address in _MAPPED or address in _NAT64:
        return is_public(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    if address not in _UNICAST_V6 or any(address in network for network in _CLOSED_V6):
        return False
    return address.is_global and (int(address) >> 32) & 0xFFFFFFFF not in _ISATAP


def read_address(url: str, base: str = "") -> Address:
    """Return an address as it will be requested; a relative one (of a redirect) belongs to ``base``.

    Raises:
        ForbiddenAddress: for any scheme but http and https, user or password, a port below 1024 other than 80 and 443,
            a literal address that is not public or not in its usual form (decimal, hexadecimal, octal, short), a name
            that is never public, and anything that two parsers could read differently.
    """
    given = url.strip(" \t\r\n")
    if len(given) > LONGEST:
        raise ForbiddenAddress(f"{given[:80]!r}...: an address of over {LONGEST:,} characters")
    if not given.replace(" ", "").isprintable() or "\\" in given:
        raise ForbiddenAddress(f"{given!r}: an address with a control character or a backslash")
    try:
        parts = urlsplit(urljoin(base, given) if base else given)
        scheme = parts.scheme.lower()
        if scheme not in _SCHEMES:
            raise ForbiddenAddress(f"{given!r}: {scheme or 'no scheme'}; allowed are http and https")
        name, port = _split_place(parts, _SCHEMES[scheme])
        host = _read_host(name)
    except ForbiddenAddress:
        raise
    except ValueError as error:
        raise ForbiddenAddress(f"{given!r}: {error}") from error
    place = f"[{host}]" if ":" in host else host
    path = _quote(parts.path, _PATH) or "/"
    query = f"?{_quote(parts.query, f'{_PATH}?')}" if parts.query else ""
    shown = "" if port == _SCHEMES[scheme] else f":{port}"
    return Address(f"{scheme}://{place}{shown}{path}{query}", scheme, host, port)


def _split_place(parts: SplitResult, default: int) -> tuple[str, int]:
    place = parts.netloc
    if "@" in place:
        shown = f"{parts.scheme}://...@{place.rpartition('@')[2]}"
        raise ForbiddenAddress(f"{shown!r}: an address with a user or password")
    if "%" in place:
        raise ForbiddenAddress(f"{place!r}: a host with percent signs")
    name, colon, digits = place.rpartition(":")
    if not colon or place.endswith("]"):
        name, digits = place, ""
    if digits and not (digits.isascii() and digits.isdecimal() and len(digits) <= 5):
        raise ForbiddenAddress(f"{place!r}: no port")
    port = int(digits) if digits else default
    if port not in _SCHEMES.values() and (port < _UNPRIVILEGED or port in _BAD_PORTS or port > 0xFFFF):
        allowed = "80, 443 and those of 1024 and over that browsers ask"
        raise ForbiddenAddress(f"{place!r}: port {port}; allowed are {allowed}")
    return name, port


def _read_host(name: str) -> str:
    """Return a public literal address, or a name that may be public."""
    if name.startswith("["):
        if not name.endswith("]"):
            raise ForbiddenAddress(f"{name!r}: an open bracket")
        return _check_literal(ipaddress.IPv6Address(name[1:-1]))
    host = _encode_name(name)
    labels = host.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        # Resolvers read 127.1, 0177.0.0.1, 0x7f000001 and 2130706433 alike, which IPv4Address refuses.
        return _check_literal(ipaddress.IPv4Address(host))
    if not all(map(_LABEL.fullmatch, labels)):
        raise ForbiddenAddress(f"{name!r} is not a host name")
    if len(labels) < 2 or labels[-1] in _PRIVATE_NAMES or f".{host}".endswith(_PRIVATE_SUFFIXES):
        raise ForbiddenAddress(f"{name!r} is not a public host")
    return host


def _check_literal(literal: IpAddress) -> str:
    if not is_public(literal):
        raise ForbiddenAddress(f"{literal} is not a public address")
    return str(literal)


def _encode_name(name: str) -> str:
    """Return a name in ASCII and lower case; full-width characters are folded, other letters encoded (IDNA)."""
    if len(name) > _LONGEST_NAME:
        raise ForbiddenAddress(f"{name[:80]!r}...: a host name of over {_LONGEST_NAME} characters")
    folded = unicodedata.normalize("NFKC", name).lower().replace("\u3002", ".").removesuffix(".")
    if not folded or len(folded) > _LONGEST_NAME:
        raise ForbiddenAddress(f"{name!r} is not a host name")
    return folded if folded.isascii() else folded.encode("idna").decode("ascii").lower()


def _quote(text: str, safe: str) -> str:
    """Percent-encode what must be; what is already encoded stays."""
    whole = re.sub(r"%(?![0-9a-fA-F]{2})", "%25", text)
    return quote(whole, safe=f"%{safe}", errors="replace")


async def look_up(host: str, port: int) -> tuple[str, ...]:
    """Return the addresses of a host by this machine's resolver; raises OSError if there are none."""
    resolve = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    found = await asyncio.get_running_loop().run_in_executor(_RESOLVERS, resolve)
    return tuple(dict.fromkeys(str(place[0]) for *_, place in found))


@dataclass(frozen=True, slots=True)
class Guard:
    """Which addresses may be connected to: those that ``is_open``, at ``ports``; an empty set is all of them.

    Only tests replace the two functions.
    """

    lookup: Lookup = look_up
    is_open: Callable[[IpAddress], bool] = is_public
    ports: frozenset[int] = frozenset(PORTS)

    def read(self, url: str, base: str = "") -> Address:
        """Return an address as :func:`read_address` does; raises ForbiddenAddress for another port, too."""
        address = read_address(url, base)
        if self.ports and address.port not in self.ports:
            allowed = ", ".join(map(str, sorted(self.ports)))
            raise ForbiddenAddress(f"{address.host}: port {address.port}; allowed are {allowed}")
        return address

    async def resolve(self, host: str, port: int) -> tuple[str, ...]:
        """Return the addresses of a host.

        Raises:
            ForbiddenAddress: if any of them is not open; a name with a public and a private address is a trap.
            OSError: if there are none.
        """
        found = tuple(await self.lookup(host, port))
        if not found:
            raise OSError(f"{host}: no address")
        for place in found:
            self.check(place, host)
        return found

    def check(self, place: str, host: str = "") -> None:
        """Raise :class:`ForbiddenAddress` for an unreadable address or one that is not open."""
        try:
            address = ipaddress.ip_address(place)
        except ValueError as error:
            raise ForbiddenAddress(f"{host}: {place!r} is no address") from error
        if not self.is_open(address):
            raise ForbiddenAddress(f"{host or place} leads to {place}, which is not a public address")
