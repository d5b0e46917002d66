"""Addresses that a model or a page names: only those of public web pages are ever asked for.

An address is read strictly and written anew, so that what is checked is what is asked. Of a name, every address that
it resolves to must be public; whoever connects asks for these very addresses, so that a name that resolves to others
the next time gains nothing.

Which addresses are those of the public internet.

Ranges are those of the IANA registries of special-purpose addresses. They are listed here, and what Python's
``ipaddress`` knows is asked besides: its own list differs from version to version.
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

_CLOSED_V4 = tuple(
    map(
        ipaddress.IPv4Network,
        (
            "0.0.0.0/8",
            "10.0.0.0/8",
            "100.64.0.0/10",
            "127.0.0.0/8",
            "168.63.129.16/32",  # looks public; inside one cloud it is the host's own service
            "169.254.0.0/16",
            "172.16.0.0/12",
            "192.0.0.0/24",
            "192.0.2.0/24",
            "192.88.99.0/24",
            "192.168.0.0/16",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/4",
            "240.0.0.0/4",
        ),
    )
)
_UNICAST_V6 = ipaddress.IPv6Network("2000::/3")
"""All that IANA has given out for the public internet; loopback, private, link-local and multicast lie outside."""
_CLOSED_V6 = tuple(
    map(
        ipaddress.IPv6Network,
        (
            "2001::/23",  # protocol assignments, Teredo among them
            "2001:db8::/32",
            "2002::/16",  # 6to4
            "3fff::/20",
        ),
    )
)
_MAPPED = ipaddress.IPv6Network("::ffff:0:0/96")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
"""What a resolver of a network without IPv4 gives out for public names (RFC 6052); its address of IPv4 is asked for."""
_ISATAP = (0x00005EFE, 0x02005EFE)
"""Upper half of an interface identifier whose lower half is an address of IPv4 (RFC 5214)."""


def is_public(address: IpAddress) -> bool:
    """Say whether an address is one of the public internet, and so is any address of IPv4 that is hidden in it.

    Of the forms that hide one, only IPv4-mapped and NAT64 addresses can be public; 6to4, Teredo, IPv4-compatible,
    translated and ISATAP ones never are.
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


Lookup = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the addresses of a host, as text, for a port; raises ``OSError`` if there are none."""

LONGEST: Final = 4096
"""Characters of an address."""
_LONGEST_NAME = 253
_SCHEMES = {"http": 80, "https": 443}
_UNPRIVILEGED = 1024
_BAD_PORTS = frozenset(
    [1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080]
)
"""Ports of 1024 and over at which browsers speak no HTTP (Fetch standard, "bad port"): they are other protocols'."""
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_PRIVATE_NAMES = frozenset(
    "alt corp example home intranet internal invalid lan local localdomain localhost onion private test".split()
)
"""Last labels of names that are no public ones: RFC 6761 and 6762, and what private networks commonly use."""
_PRIVATE_SUFFIXES = (".home.arpa", ".in-addr.arpa", ".ip6.arpa")
_LOOKING = ThreadPoolExecutor(32, "look-up")
"""Threads of their own: a name whose servers are silent takes one for half a minute, and pictures need the others."""


class ForbiddenAddress(ValueError):
    """An address that is not one of a public web page."""


@dataclass(frozen=True, slots=True)
class Address:
    """An address as it is asked for.

    Attributes:
        url: ASCII, percent-encoded, without fragment; the port is written only where it is not the scheme's own.
        scheme: ``http`` or ``https``.
        host: name in lower case, encoded, without trailing dot; or a literal address without brackets.
        port: TCP.
    """

    url: str
    scheme: str
    host: str
    port: int


def check_address(url: str) -> None:
    """Refuse what is not written as the address of a public web page; nothing is looked up.

    Raises:
        ForbiddenAddress: naming the address and what is wrong with it, as :func:`read_address`.
    """
    read_address(url)


def read_address(url: str, base: str = "") -> Address:
    """Return an address as it will be asked for.

    Args:
        url: as a model or a page wrote it; white space around it does not count.
        base: what a relative address is relative to, as of a redirect; empty where there is no such thing.

    Raises:
        ForbiddenAddress: for any scheme but http and https, user or password, a port below 1024 other than 80 and 443,
            a literal address that is not public or not in its usual form (decimal, hexadecimal, octal, short), a name
            that is never public, and anything that two readers could understand differently.
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
        host, port = _read_place(parts, scheme)
    except ForbiddenAddress:
        raise
    except ValueError as error:
        raise ForbiddenAddress(f"{given!r}: {error}") from error
    return Address(_write_address(parts, scheme, host, port), scheme, host, port)


def _read_place(parts: SplitResult, scheme: str) -> tuple[str, int]:
    place = parts.netloc
    if "@" in place:
        raise ForbiddenAddress(f"{_show(parts)}: an address with a user or password")
    if "%" in place:
        raise ForbiddenAddress(f"{place!r}: a host with percent signs")
    name, colon, digits = place.rpartition(":")
    if not colon or place.endswith("]"):
        name, digits = place, ""
    if digits and not (digits.isascii() and digits.isdecimal() and len(digits) <= 5):
        raise ForbiddenAddress(f"{place!r}: no port")
    port = int(digits) if digits else _SCHEMES[scheme]
    if port not in _SCHEMES.values() and (port < _UNPRIVILEGED or port in _BAD_PORTS or port > 0xFFFF):
        raise ForbiddenAddress(
            f"{place!r}: port {port}; allowed are 80, 443 and those of 1024 and over that browsers ask"
        )
    return _read_host(name), port


def _show(parts: SplitResult) -> str:
    """Return an address for a message without what may be a password."""
    return repr(f"{parts.scheme}://...@{parts.netloc.rpartition('@')[2]}")


def _read_host(name: str) -> str:
    """Return a host as it will be looked up: a public literal address, or a name that may be public."""
    if name.startswith("["):
        if not name.endswith("]"):
            raise ForbiddenAddress(f"{name!r}: an open bracket")
        literal: IpAddress = ipaddress.IPv6Address(name[1:-1])
        return _check_literal(literal)
    host = _encode_name(name)
    labels = host.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        # Resolvers read 127.1, 0177.0.0.1, 0x7f000001 and 2130706433 alike.
        return _check_literal(_read_dotted(host))
    if not all(map(_LABEL.fullmatch, labels)):
        raise ForbiddenAddress(f"{name!r} is no host name")
    if len(labels) < 2 or labels[-1] in _PRIVATE_NAMES or f".{host}".endswith(_PRIVATE_SUFFIXES):
        raise ForbiddenAddress(f"{name!r} is no public host")
    return host


def _encode_name(name: str) -> str:
    """Return a name in ASCII and lower case: full-width letters and digits are folded, other letters encoded."""
    if len(name) > _LONGEST_NAME:
        raise ForbiddenAddress(f"{name[:80]!r}...: a host name of over {_LONGEST_NAME} characters")
    folded = unicodedata.normalize("NFKC", name).lower().replace("\u3002", ".")
    # One dot at the end says that the name is whole, which it is anyway.
    folded = folded.removesuffix(".")
    if not folded or len(folded) > _LONGEST_NAME:
        raise ForbiddenAddress(f"{name!r} is no host name")
    return folded if folded.isascii() else folded.encode("idna").decode("ascii").lower()


def _read_dotted(host: str) -> ipaddress.IPv4Address:
    try:
        return ipaddress.IPv4Address(host)
    except ValueError as error:
        raise ForbiddenAddress(f"{host!r}: an address of IPv4 that is not four decimal numbers") from error


def _check_literal(literal: IpAddress) -> str:
    if not is_public(literal):
        raise ForbiddenAddress(f"{literal} is no public address")
    return str(literal)


def _write_address(parts: SplitResult, scheme: str, host: str, port: int) -> str:
    place = f"[{host}]" if ":" in host else host
    if port != _SCHEMES[scheme]:
        place = f"{place}:{port}"
    path = _quote(parts.path, "/:@!$&'()*+,;=~") or "/"
    query = f"?{_quote(parts.query, '/?:@!$&' + chr(39) + '()*+,;=~')}" if parts.query else ""
    return f"{scheme}://{place}{path}{query}"


def _quote(text: str, safe: str) -> str:
    """Percent-encode what must be; what is encoded already stays as it is."""
    whole = re.sub(r"%(?![0-9a-fA-F]{2})", "%25", text)
    return quote(whole, safe=f"%{safe}", errors="replace")


async def look_up(host: str, port: int) -> tuple[str, ...]:
    """Return the addresses of a host as this machine resolves it, for TCP.

    Raises:
        OSError: if there are none.
    """
    resolve = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    found = await asyncio.get_running_loop().run_in_executor(_LOOKING, resolve)
    return tuple(dict.fromkeys(str(place[0]) for *_, place in found))


@dataclass(frozen=True, slots=True)
class Guard:
    """Who may be connected to.

    Both are given where it is constructed and never come from a configuration: tests have their servers on loopback.

    Attributes:
        lookup: resolves names.
        is_open: says of an address whether a name may lead to it.
    """

    lookup: Lookup = look_up
    is_open: Callable[[IpAddress], bool] = is_public

    async def resolve(self, host: str, port: int) -> tuple[str, ...]:
        """Return the addresses of a host, each of them open.

        Args:
            host: as :class:`Address` has it.
            port: TCP.

        Raises:
            ForbiddenAddress: if any is not: a name with a public and a private address is a trap.
            OSError: if there are none.
        """
        found = tuple(await self.lookup(host, port))
        if not found:
            raise OSError(f"{host}: no address")
        for place in found:
            self.check(place, host)
        return found

    def check(self, place: str, host: str = "") -> None:
        """Refuse to connect to an address.

        Args:
            place: address as text; one that cannot be read is refused.
            host: whose it is, for the message.

        Raises:
            ForbiddenAddress: if it is not open.
        """
        try:
            address = ipaddress.ip_address(place)
        except ValueError as error:
            raise ForbiddenAddress(f"{host}: {place!r} is no address") from error
        if not self.is_open(address):
            raise ForbiddenAddress(f"{host or place} leads to {place}, which is no public address")


async def resolve_address(url: str, guard: Guard | None = None) -> tuple[str, ...]:
    """Return the addresses that an address leads to, all of them public.

    Args:
        url: as a model or a page wrote it.
        guard: who may be connected to; the public internet where it is left out.

    Raises:
        ForbiddenAddress: as :func:`read_address` and :meth:`Guard.resolve`.
        OSError: if the host has no address.
    """
    address = read_address(url)
    return await (guard or Guard()).resolve(address.host, address.port)
