"""Servers whose certificate a private authority issued, and servers that want one of keval."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from keval.plugin import PreflightError
from keval_mcp import Http, Sse
from keval_mcp.server.options import Auth
from tests.certificates import Authority
from tests.contexts import started
from tests.processes import Listening

SECRET = "s3cret-of-keval"


@attrs.frozen
class Company:
    """Servers over TLS with their authorization server, which want a certificate of the `authority`."""

    authority: Authority
    ports: dict[str, int]

    def provider(self, transport: str, **options: Any) -> Http | Sse:
        origin = f"https://127.0.0.1:{self.ports[transport]}"
        auth = Auth(client_id="keval", client_secret=SECRET, issuer=origin)
        provider = Sse if transport == "sse" else Http
        return provider(url=f"{origin}/{'sse' if transport == 'sse' else 'mcp'}", auth=auth, **options)


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    authority = Authority(tmp_path_factory.mktemp("company"))
    certificate, key = authority.issue("server")
    authority.issue("client", "pass-phrase")
    tls = {
        "ssl_certfile": str(certificate),
        "ssl_keyfile": str(key),
        "ssl_ca_certs": str(authority.certificate),
        "ssl_cert_reqs": ssl.CERT_REQUIRED,
    }
    begun = {each: Listening.start("tests.plugins.mcp.servers.guarded", each, "", tls) for each in ("http", "sse")}
    yield Company(authority, {each: process.port for each, process in begun.items()})
    for process in begun.values():
        process.stop()


def mine(company: Company) -> dict[str, Any]:
    folder = company.authority.folder
    return {"cert": folder / "client.pem", "cert_key": folder / "client.key", "cert_password": "pass-phrase"}


@pytest.mark.parametrize("transport", ["http", "sse"])
@pytest.mark.parametrize("trusts", ["a file", "a folder", "all"])
def test_session_and_login_use_the_authority_and_the_certificate_of_the_config(
    company: Company, outcomes: Callable[..., Any], transport: str, trusts: str, caplog: pytest.LogCaptureFixture
) -> None:
    verify = {"a file": company.authority.certificate, "a folder": company.authority.folder, "all": False}[trusts]

    (((said,), log),) = outcomes(company.provider(transport, verify=verify, **mine(company)), [("whoami", {})])

    assert ("keval", None) == (said.partition(" has ")[0], log.lost)
    warned = "server 'every' may be anybody, and its traffic be read, as 'verify' is false" in caplog.text
    assert warned == (verify is False)


@pytest.mark.parametrize("transport", ["http", "sse"])
@pytest.mark.parametrize("login", [True, False])
def test_connection_that_fails_for_a_certificate_says_which_option_mends_it(
    company: Company, outcomes: Callable[..., Any], transport: str, login: bool
) -> None:
    provider = company.provider(transport)
    provider = provider if login else attrs.evolve(provider, auth=None)
    trusting = attrs.evolve(provider, verify=company.authority.certificate)

    with pytest.raises(
        PreflightError, match=r"CERTIFICATE_VERIFY_FAILED.*; name the authority that signed it by 'veri"
    ):
        outcomes(attrs.evolve(provider, **mine(company)), [])
    with pytest.raises(PreflightError, match=r"; see whether the server wants a certificate of its clients: 'cert'"):
        outcomes(trusting, [])


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"verify": "none.pem"}, "'verify' names '.*none.pem', which is not there; correct it"),
        ({"verify": "client.key"}, "'verify' names '.*', which has no certificate in PEM that can be read"),
        ({"verify": "empty"}, "'verify' names '.*empty', which has no certificate in PEM that can be read"),
        ({"cert": "none.pem"}, "'cert' and its key cannot be used: '.*none.pem' is not there"),
        ({"cert": "client.pem"}, "cannot be used: '.*client.pem' or '.*client.pem' is no PEM that can be read, or"),
        ({"cert": "client.pem", "cert_key": "client.key"}, "used: .* or 'cert_password' does not open it"),
        ({"cert": "client.pem", "cert_key": "none.key"}, "cannot be used: '.*none.key' is not there"),
        ({"cert": "client.pem", "cert_key": "server.key"}, "used: '.*server.key' is not the key of '.*client.pem'"),
    ],
)
def test_file_that_cannot_be_used_is_told_before_anything_is_asked(
    company: Company, options: dict[str, str], problem: str
) -> None:
    folder = company.authority.folder
    (folder / "empty").mkdir(exist_ok=True)
    given: dict[str, Any] = {name: folder / file for name, file in options.items()}
    provider = Http(url="https://127.0.0.1:9", **given)

    async def start() -> None:
        async with started(provider, "every"):
            pass

    with pytest.raises(PreflightError, match=f"server 'every': .*{problem}"):
        asyncio.run(start())


def test_options_of_tls_go_with_the_tap_and_with_a_certificate() -> None:
    options: list[dict[str, Any]] = [{"verify": False}, {"cert": Path("x")}]
    for option in options:
        with pytest.raises(ValueError, match="must go with the tap, as keval does nothing for agents that connect"):
            Http(url="https://x", tap=False, **option)
    with pytest.raises(ValueError, match="'cert_key' must go with 'cert'"):
        Sse(url="https://x", cert_key=Path("x"))
    assert "pass-phrase" not in repr(Http(url="https://x", cert=Path("x"), cert_password="pass-phrase"))
