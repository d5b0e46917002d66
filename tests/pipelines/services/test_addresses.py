import asyncio
import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.services.addresses import (
    ForbiddenAddress,
    Guard,
    is_public,
    look_up,
    read_address,
)

PRIVATE = (
    "0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.100.100.200 127.0.0.1 127.8.9.10 168.63.129.16 "
    "169.254.0.1 169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.1 192.0.2.1 192.88.99.1 192.168.0.1 198.18.0.1 "
    "198.51.100.7 203.0.113.9 224.0.0.1 239.255.255.250 240.0.0.1 255.255.255.255"
).split()
PRIVATE_V6 = (
    ":: ::1 ::127.0.0.1 ::8.8.8.8 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:0:8.8.8.8 64:ff9b::10.0.0.1 "
    "64:ff9b:1::8.8.8.8 100::1 2001::1 2001:db8::1 2002:7f00:1:: 2002:808:808:: 3fff::1 5f00::1 fc00::1 fd00:ec2::254 "
    "fe80::1 fec0::1 ff02::1 2a00:1450::5efe:10.0.0.1 2a00:1450::200:5efe:10.0.0.1"
).split()
PUBLIC = "1.1.1.1 8.8.8.8 93.184.215.14 100.63.255.255 100.128.0.1 172.15.0.1 172.32.0.1 192.167.255.255".split()
NO_PAGES = (
    "http://127.0.0.1/ http://[::1]/ http://10.1.2.3/ http://169.254.169.254/latest/meta-data/ "
    "http://2130706433/ http://0x7f000001/ http://0X7F000001/ http://017700000001/ http://127.1/ http://0/ "
    "http://0x/ http://134744072/ http://1.2.3.4.5/ http://8.8.8.08/ http://example.org.1/ "
    "http://\uff11\uff12\uff17.\uff10.\uff10.\uff11/ http://127\u30020\u30020\u30021/ "
    "http://\u2460\u2461\u2466.\u24ea.\u24ea.\u2460/ http://%31%32%37.0.0.1/ http://localhost/ "
    "http://LOCALHOST/ http://localhost./ http://localhost../ http://a.localhost/ "
    "http://\uff4c\uff4f\uff43\uff41\uff4c\uff48\uff4f\uff53\uff54/ http://printer.local/ "
    "http://metadata.google.internal/ http://router.lan/ http://nas.home.arpa/ "
    "http://1.0.0.127.in-addr.arpa/ http://intranet/ http://[fe80::1%25eth0]/ http://[fe80::1%eth0]/ "
    "http://[::1/ http://[v1.x]/ http://user@example.org/ http://user:word@example.org/ "
    "http://example.org@127.0.0.1/ http://@example.org/ http://example.org:22/ http://example.org:25/ "
    "http://example.org:0/ http://example.org:6000/ http://example.org:65536/ http://example.org:+80/ "
    "http://example.org:\uff18\uff10/ http://example.org:80:80/ http://example.org\\@127.0.0.1/ "
    "http://exa\tmple.org/ http://exam\xadple/ http://example..org/ http://-example.org/ http:///path "
    "http:example.org http:// https://\u2100.example.org/ file:///etc/passwd ftp://example.org/ "
    "gopher://example.org/ javascript:alert(1) data:text/html,hello //example.org/ example.org /etc/passwd"
).split(" ")
V4 = st.integers(0, 2**32 - 1).map(ipaddress.IPv4Address)


@pytest.mark.parametrize("address", [*PRIVATE, *PRIVATE_V6])
def test_what_is_not_of_the_public_internet_is_not_public(address):
    assert not is_public(ipaddress.ip_address(address))


@given(V4)
def test_a_mapped_or_nat64_address_is_as_public_as_the_one_in_it(inner):
    for prefix in ("::ffff:0:0", "64:ff9b::"):
        outer = ipaddress.IPv6Address(int(ipaddress.IPv6Address(prefix)) | int(inner))
        assert is_public(outer) == is_public(inner)


@given(V4, st.integers(0, 2**61 - 1), st.sampled_from([0x5EFE, 0x0200_5EFE]))
def test_no_6to4_teredo_isatap_compatible_or_translated_address_is_public(inner, rest, marker):
    hidden = (
        0x2002 << 112 | int(inner) << 80 | rest,
        0x20010000 << 96 | rest << 32 | int(inner) ^ 0xFFFFFFFF,
        1 << 125 | rest << 64 | marker << 32 | int(inner),
        int(inner),
        0xFFFF << 48 | int(inner),
    )
    assert not any(is_public(ipaddress.IPv6Address(number)) for number in hidden)


@given(V4.filter(lambda address: not is_public(address)))
def test_no_way_to_write_a_private_address_passes(address):
    number, (first, second, third, fourth) = int(address), address.packed
    forms = [
        str(address),
        f"{address}.",
        str(number),
        hex(number),
        f"0{number:o}",
        f"{first}.{number & 0xFFFFFF}",
        f"{first}.{second}.{third << 8 | fourth}",
        f"0{first:o}.{second}.{third}.{fourth}",
        f"{first:#x}.{second:#x}.{third:#x}.{fourth:#x}",
        "".join(chr(ord(char) + 0xFEE0) for char in str(address)),
        str(address).replace(".", "\u3002"),
        f"%{ord(str(first)[0]):x}{str(address)[1:]}",
        f"[::ffff:{address}]",
        f"[64:ff9b::{address}]",
        f"[2002:{number >> 16:x}:{number & 0xFFFF:x}::]",
    ]
    for form in forms:
        for url in (f"http://{form}/", f"https://{form}:8080/a?b", f"//{form}/"):
            with pytest.raises(ForbiddenAddress):
                read_address(url, "http://pages.example.org/")


@pytest.mark.parametrize(
    "url",
    [
        *NO_PAGES,
        "http://example.org/\r\nHost: a",
        "http://exa mple.org/",
        "",
        "\ud800",
        f"http://{'a' * 64}.org/",
        f"http://{'a.' * 130}org/",
        f"http://{'ü' * 70}.org/",
        f"http://example.org/{'a' * 4096}",
    ],
)
def test_what_is_no_address_of_a_public_page_is_refused(url):
    with pytest.raises(ForbiddenAddress):
        read_address(url)


@pytest.mark.parametrize(
    ("given_url", "asked"),
    [
        ("http://example.org", "http://example.org/"),
        (" https://EXAMPLE.org./a b?q=ä#part \n", "https://example.org/a%20b?q=%C3%A4"),
        ("https://example.org:443/%41%zz", "https://example.org/%41%25zz"),
        ("http://example.org:8080/", "http://example.org:8080/"),
        ("https://example.org:80/", "https://example.org:80/"),
        ("https://bücher.example.org/", "https://xn--bcher-kva.example.org/"),
        ("https://ｅｘａｍｐｌｅ.org/", "https://example.org/"),
        ("http://8.8.8.8/", "http://8.8.8.8/"),
        ("http://[2606:4700:4700:0::1111]:8443/", "http://[2606:4700:4700::1111]:8443/"),
        ("https://en.wikipedia.org/wiki/Ada_(x)", "https://en.wikipedia.org/wiki/Ada_(x)"),
    ],
)
def test_a_public_page_is_asked_for_by_one_form_of_its_address(given_url, asked):
    address = read_address(given_url)
    assert address.url == asked
    assert read_address(address.url) == address


@given(st.text(max_size=60), st.sampled_from(["", "http://", "https://", "http://example.org/", "//"]))
def test_whatever_is_given_is_refused_or_read_to_a_plain_public_form(text, start):
    try:
        address = read_address(start + text)
    except ForbiddenAddress:
        return
    assert address.url.isascii()
    assert address.url.isprintable()
    assert read_address(address.url) == address


def give(*places):
    async def lookup(host, port):
        return places

    return lookup


@pytest.mark.parametrize("place", [*PRIVATE, *PRIVATE_V6, "not-an-address", "fe80::1%eth0"])
def test_a_public_name_that_leads_to_a_private_address_is_refused(place):
    with pytest.raises(ForbiddenAddress, match=r"pages\.example\.org"):
        asyncio.run(Guard(give("8.8.8.8", place)).resolve("pages.example.org", 80))


def test_a_public_name_comes_with_all_its_addresses_and_one_without_any_is_an_os_error():
    found = asyncio.run(Guard(give("8.8.8.8", "2606:4700::1")).resolve("pages.example.org", 80))
    assert found == ("8.8.8.8", "2606:4700::1")
    with pytest.raises(OSError, match="no address"):
        asyncio.run(Guard(give()).resolve("pages.example.org", 80))
    assert asyncio.run(look_up("127.0.0.1", 80)) == ("127.0.0.1",)


@pytest.mark.parametrize("port", [8080])
def test_pages_come_from_the_ports_of_the_web_unless_others_are_set(port):
    assert Guard().read("https://pages.example.org/a").port == 443
    assert Guard().read("a", "http://pages.example.org:80/").port == 80
    with pytest.raises(ForbiddenAddress, match="allowed are 80, 443"):
        Guard().read(f"http://pages.example.org:{port}/")
    with pytest.raises(ForbiddenAddress, match="allowed are 80, 443"):
        Guard().read(f"//pages.example.org:{port}/", "http://pages.example.org/")
    assert Guard(ports=frozenset([port])).read(f"http://pages.example.org:{port}/").port == port
