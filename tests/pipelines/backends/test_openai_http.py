"""Servers behind TLS and IPv6, on loopback with an authority of our own."""

import asyncio
import json
import os
import socket
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from pipelines.errors import ConfigError
from pipelines.services.clients.chat import OpenAIChat
from tests.chaos.test_faulty_endpoints import make_request
from tests.mock_openai import Mock, MockSettings

ROOT = Path(__file__).parents[3]
HOSTS = ("127.0.0.1", "::1")


def has_ipv6() -> bool:
    """Whether this machine has a loopback of IPv6."""
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="no IPv6 loopback")
SERVED = [HOSTS[0], pytest.param(HOSTS[1], marks=needs_ipv6)]
ASK = """
import asyncio, sys
from pipelines.services.clients.chat import OpenAIChat
from tests.chaos.test_faulty_endpoints import make_request
print(asyncio.run(OpenAIChat("mock", (sys.argv[1],)).chat(make_request(1))).text)
"""


def write_certificate(folder: Path) -> Path:
    """Write a certificate that vouches for itself, with its key, and return their file."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "synth test")])
    hosts = x509.SubjectAlternativeName([x509.IPAddress(ip_address(host)) for host in HOSTS])
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(hosts, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    path = folder / "server.pem"
    path.write_bytes(certificate.public_bytes(pem) + key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
    return path


@asynccontextmanager
async def serve(host: str, certificate: Path | None) -> AsyncIterator[str]:
    """Serve the mock at a host, behind TLS where a certificate is given, and yield its address."""
    context = None
    if certificate is not None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate)
    runner = web.ServerRunner(web.Server(Mock(MockSettings()).answer), shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, 0, ssl_context=context).start()
        shown = f"[{host}]" if ":" in host else host
        yield f"{'https' if certificate else 'http'}://{shown}:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


@pytest.mark.parametrize("host", SERVED)
def test_a_certificate_that_nobody_vouches_for_stops_the_run_at_once_and_says_what_to_name(tmp_path, host):
    async def run():
        async with serve(host, write_certificate(tmp_path)) as url:
            # With the usual patience of minutes: nobody waits for what will not change.
            await OpenAIChat("mock", (url,), patience=600.0).chat(make_request(1))

    with pytest.raises(ConfigError, match=r"https://.*: its certificate is not trusted \(self-signed.*SSL_CERT_FILE"):
        asyncio.run(asyncio.wait_for(run(), 30.0))


@pytest.mark.parametrize("host", SERVED)
def test_an_authority_of_ones_own_is_trusted_when_it_is_named(tmp_path, host):
    async def run() -> str:
        certificate = write_certificate(tmp_path)
        async with serve(host, certificate) as url:
            child = await asyncio.create_subprocess_exec(
                sys.executable,
                "-c",
                ASK,
                url,
                cwd=ROOT,
                env=os.environ | {"SSL_CERT_FILE": str(certificate)},
                stdout=subprocess.PIPE,
            )
            return (await child.communicate())[0].decode()

    assert json.loads(asyncio.run(run()))["answer"].startswith("mock ")


@needs_ipv6
def test_an_address_may_be_ipv6():
    async def run() -> str:
        async with serve("::1", None) as url:
            return (await OpenAIChat("mock", (url,)).chat(make_request(1))).text

    assert json.loads(asyncio.run(run()))["answer"].startswith("mock ")
