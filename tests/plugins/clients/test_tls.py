"""An endpoint over TLS: it is trusted by the certificates that the environment names, and by no others."""

from __future__ import annotations

import datetime
import ipaddress
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

ASK = """
import asyncio, ssl, sys
import keval_clients
from keval.plugin import Endpoint, ModelError

async def main(vendor, folder):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{folder}/cert.pem", f"{folder}/key.pem")

    async def connected(reader, writer):
        await reader.readuntil(b"\\r\\n\\r\\n{}")
        writer.write(b'HTTP/1.1 200 OK\\r\\ncontent-length: 14\\r\\n\\r\\n{"said": "Yo"}')
        writer.close()

    async with await asyncio.start_server(connected, "127.0.0.1", 0, ssl=context) as server:
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        client = getattr(keval_clients, f"{vendor}_client")(url, Endpoint("the-model", {}, "s3cret"))
        try:
            print(await client.post("/ask", {}, {}))
        except ModelError as error:
            print(error)
        await client.aclose()

asyncio.run(main(*sys.argv[1:]))
"""


def self_signed(folder: Path) -> Path:
    """Write a certificate for 127.0.0.1 and its key; returns the certificate's file."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(address, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "key.pem").write_bytes(key.private_bytes(*form))
    (folder / "cert.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return folder / "cert.pem"


@pytest.mark.parametrize("trusted", [True, False])
def test_the_environment_names_the_certificates_that_are_trusted(tmp_path: Path, trusted: bool) -> None:
    certificate = self_signed(tmp_path)
    environ = {**os.environ, **({"SSL_CERT_FILE": str(certificate)} if trusted else {})}

    command = [sys.executable, "-c", ASK, "openai", str(tmp_path)]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)

    told = "{'said': 'Yo'}\n" if trusted else "certificate verify failed"
    assert told in done.stdout


LOOPBACK = """
import json, ssl, sys
from keval_clients.network import Network

loaded, read = [], ssl.SSLContext.load_verify_locations
ssl.SSLContext.load_verify_locations = lambda context, path: (loaded.append(path), read(context, path))
Network.to("http://127.0.0.1:1/v1")
print(json.dumps([loaded, "urllib.request" in sys.modules]))
"""


def test_a_model_on_loopback_costs_one_look_at_a_bundle_that_several_variables_name() -> None:
    """A system's bundle takes 40 ms to read, and the module that knows proxies imports email and http."""
    bundle = str(Path(__file__).parents[2] / "authority.pem")
    names = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")

    done = subprocess.run(
        [sys.executable, "-c", LOOPBACK],
        env={**os.environ, **dict.fromkeys(names, bundle)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert [[os.path.realpath(bundle)], False] == json.loads(done.stdout)
