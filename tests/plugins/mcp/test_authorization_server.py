"""OAuth against an authorization server that is not of these tests: `oidc-provider`, certified for OpenID Connect.

The MCP server is the SDK's, names the authorization server in its metadata (RFC 9728), and validates what it issues.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from keval.plugin import PreflightError
from keval_mcp import Http
from keval_mcp.server.options import Auth
from tests.conformance import npm_module
from tests.contexts import started
from tests.processes import Listening

pytestmark = pytest.mark.slow

SECRET = "s3cret+of/keval:%&="
PERSON = (sys.executable, str(Path(__file__).with_name("person.py")))


REGISTERED = ["not registered: scope must only contain Authorization Server supported scope values", "registered"]
"""It knows scopes of its own, and those of a server only when a token for that is asked for."""


@attrs.frozen
class Protected:
    """The server, its authorization server, and the private key of the client `signer`."""

    url: str
    issuer: str
    key: str

    def log(self) -> list[str]:
        """Return what the authorization server did since the last time, with `it` for the server."""
        return [each.replace(self.url, "it") for each in httpx2.get(f"{self.issuer}/log").json()]

    def provider(self, **auth: Any) -> Http:
        return Http(url=self.url, isolation="condition", auth=Auth(**auth))


@pytest.fixture(scope="module")
def lasting_protected() -> Iterator[Protected]:
    node, module = npm_module("oidc-provider/lib/index.js")
    private = ec.generate_private_key(ec.SECP256R1())
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    public = jwt.algorithms.ECAlgorithm.to_jwk(private.public_key())
    script = Path(__file__).parent / "servers" / "authorization.mjs"
    command = [node, str(script), module, SECRET, public, "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        issuer = f"http://127.0.0.1:{int(process.stdout.readline())}"
        server = Listening.start("tests.plugins.mcp.servers.protected", issuer)
        yield Protected(f"http://127.0.0.1:{server.port}/mcp", issuer, private.private_bytes(*form).decode())
        server.stop()
        process.kill()


@pytest.fixture
def protected(lasting_protected: Protected) -> Protected:
    lasting_protected.log()
    return lasting_protected


@pytest.mark.parametrize(
    ("client", "options"),
    [
        ("machine", {"client_secret": SECRET}),
        ("poster", {"client_secret": SECRET, "method": "client_secret_post"}),
        ("signer", {"algorithm": "ES256"}),
        ("machine", {"client_secret": SECRET, "scope": "read admin"}),
    ],
)
def test_client_gets_a_token_for_the_server_alone(
    protected: Protected, outcomes: Callable[..., Any], client: str, options: dict[str, Any]
) -> None:
    proof = options if "client_secret" in options else {**options, "private_key": protected.key}
    provider = protected.provider(client_id=client, issuer=protected.issuer, **proof)

    (((said,), log),) = outcomes(provider, [("whoami", {})])

    assert (f"{client} {options.get('scope', 'read')}", None) == (said.rpartition(" ")[0], log.lost)
    assert ["client_credentials it"] == protected.log()


@pytest.mark.parametrize(
    ("options", "client", "registered"),
    [
        ({}, None, REGISTERED),
        ({"scope": "read"}, None, REGISTERED),
        ({"client_id": "known"}, "known", []),
        ({"client_metadata": "https://keval.example/client.json"}, "https://keval.example/client.json", []),
    ],
    ids=["registers itself", "registers itself for a scope", "is known", "has a document"],
)
def test_person_logs_in_once_and_the_token_is_refreshed(
    protected: Protected,
    attempt: Callable[..., Any],
    options: dict[str, Any],
    client: str | None,
    registered: list[str],
) -> None:
    async def run() -> tuple[str, str]:
        async with (
            started(protected.provider(browser=PERSON, **options), "every") as source,
            attempt(source) as tapped,
        ):
            first, until = await tapped.call("whoami"), time.monotonic() + 20
            again = first
            while again == first and time.monotonic() < until:
                again = await tapped.call("whoami")
            return first, again

    first, again = asyncio.run(run())

    name, *scopes = first.rpartition(" ")[0].split()
    assert (client or name, ["read"]) == (name, scopes)
    assert first != again
    assert first.rpartition(" ")[0] == again.rpartition(" ")[0]
    log = protected.log()
    page = [*registered, "page for read offline_access", "authorization_code it", "refresh_token it"]
    assert page == log[: len(page)]
    assert {"refresh_token it"} == {*log[len(page) - 1 :]}


@pytest.mark.parametrize("person", [False, True])
def test_scope_that_the_server_wants_besides_is_asked_for(
    protected: Protected, outcomes: Callable[..., Any], person: bool
) -> None:
    who = {"browser": PERSON} if person else {"client_id": "machine", "client_secret": SECRET}

    (((said,), log),) = outcomes(protected.provider(**who, issuer=protected.issuer, scope="admin"), [("whoami", {})])

    assert {"admin", "read"} == {*said.split()[1:-1]}
    assert log.lost is None


@pytest.mark.parametrize(
    ("auth", "problem"),
    [
        ({"client_id": "machine", "client_secret": "wrong"}, r"Token exchange failed \(401\): .*invalid_client"),
        ({"browser": (*PERSON, "refuse")}, "sent the person back: access_denied: End-User aborted interaction"),
    ],
)
def test_login_that_the_authorization_server_refuses_says_why(
    protected: Protected, outcomes: Callable[..., Any], auth: dict[str, Any], problem: str
) -> None:
    with pytest.raises(PreflightError, match=f"did not come up: .*{problem}"):
        outcomes(protected.provider(**auth, issuer=protected.issuer), [])
