"""Which addresses are those of the public internet.

Ranges are those of the IANA registries of special-purpose addresses. They are listed here, and what Python's
``ipaddress`` knows is asked besides: its own list differs from version to version.
"""

import ipaddress

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
