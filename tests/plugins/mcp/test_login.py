"""Servers behind a login: where the token comes from, when it is renewed, and what is said when there is none."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import httpx2
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from keval.plugin import PreflightError, ServerSpec
from keval_loopback.loopback import listen
from keval_mcp import Http, Sse
from keval_mcp.server.login import Login
from keval_mcp.server.options import Auth
from tests.contexts import started
from tests.processes import Listening

SECRET = "s3cret-of-keval"


@attrs.frozen
class Guarded:
    """A listening server that wants a token, its authorization server, and a key that this one knows."""

    url: str
    issuer: str
    key: str

    def asked(self) -> list[dict[str, Any]]:
        """Return what the authorization server was asked for so far."""
        found: list[dict[str, Any]] = httpx2.get(f"{self.issuer}/log").json()
        return found

    def client(self, **options: Any) -> Http:
        auth = {"client_id": "keval", "client_secret": SECRET, "issuer": self.issuer, **options}
        return Http(url=self.url, auth=Auth(**auth))


@pytest.fixture(scope="module")
def key() -> tuple[str, str]:
    """A private and a public key."""
    private = ec.generate_private_key(ec.SECP256R1())
    encoding = serialization.Encoding.PEM
    secret = private.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    public = private.public_key().public_bytes(encoding, serialization.PublicFormat.SubjectPublicKeyInfo)
    return secret.decode(), public.decode()


def _started(transport: str, key: tuple[str, str]) -> Iterator[Guarded]:
    process = Listening.start("tests.plugins.mcp.servers.guarded", transport, key[1])
    issuer = f"http://127.0.0.1:{process.port}"
    yield Guarded(f"{issuer}/{'sse' if transport == 'sse' else 'mcp'}", issuer, key[0])
    process.stop()


@pytest.fixture(scope="module")
def lasting_guarded(key: tuple[str, str]) -> Iterator[Guarded]:
    yield from _started("http", key)


@pytest.fixture
def guarded(lasting_guarded: Guarded) -> Guarded:
    """A server behind a login, whose log is empty."""
    lasting_guarded.asked()
    return lasting_guarded


def test_client_with_a_secret_logs_in_once_for_all_sessions(guarded: Guarded, attempt: Callable[..., Any]) -> None:
    async def run() -> list[str]:
        async with started(guarded.client(), "every") as source:
            said = []
            for isolation in ("auto", "trial"):
                async with attempt(source, isolation=isolation) as tapped:
                    said += await asyncio.gather(*(tapped.call("whoami") for _ in range(3)))
            return said

    said = asyncio.run(run())

    assert {"keval"} == {each.partition(" has ")[0] for each in said}
    assert 1 == len({*said})
    assert [{"how": "header", "scope": "read", "resource": guarded.url}] == guarded.asked()


@pytest.mark.parametrize(
    ("options", "how", "scope"),
    [
        ({"method": "client_secret_post"}, "body", "read"),
        ({"scope": "read all"}, "header", "read all"),
        ({"client_id": "signer", "client_secret": None, "algorithm": "ES256"}, "key", "read"),
    ],
)
def test_client_authenticates_as_the_config_says(
    guarded: Guarded, outcomes: Callable[..., Any], options: dict[str, Any], how: str, scope: str
) -> None:
    given = {**options, "private_key": guarded.key} if options.get("client_id") == "signer" else options

    (((said,), log),) = outcomes(guarded.client(**given), [("whoami", {})])

    assert (given.get("client_id", "keval"), None) == (said.partition(" has ")[0], log.lost)
    assert [(how, scope)] == [(each["how"], each["scope"]) for each in guarded.asked()]


def test_client_logs_in_over_sse(key: tuple[str, str], outcomes: Callable[..., Any]) -> None:
    with contextmanager(_started)("sse", key) as sse:
        auth = Auth(client_id="keval", client_secret=SECRET, issuer=sse.issuer)
        (((said,), log),) = outcomes(Sse(url=sse.url, auth=auth), [("whoami", {})])

    assert ("keval", None) == (said.partition(" has ")[0], log.lost)


def test_token_that_the_server_refuses_is_renewed_without_losing_a_call(
    guarded: Guarded, outcomes: Callable[..., Any]
) -> None:
    (((first, revoked, second), log),) = outcomes(guarded.client(), [("whoami", {}), ("revoke", {}), ("whoami", {})])

    assert "revoked" == revoked
    assert first != second
    assert ("keval", None) == (second.partition(" has ")[0], log.lost)
    assert [1, 1, 1] == [call.executions for call in log.calls]
    assert 2 == len(guarded.asked())


def test_token_is_renewed_when_its_time_is_over(guarded: Guarded, outcomes: Callable[..., Any]) -> None:
    (((first, second), log),) = outcomes(guarded.client(client_id="short"), [("whoami", {}), ("whoami", {})])

    assert first != second
    assert log.lost is None


def test_more_scopes_are_asked_for_where_a_tool_wants_them(guarded: Guarded, outcomes: Callable[..., Any]) -> None:
    (((said,), log),) = outcomes(guarded.client(), [("admin", {})])

    assert ("done", None) == (said, log.lost)
    assert ["read", "read admin"] == [each["scope"] for each in guarded.asked()]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"client_secret": "wrong-one"}, r"Token exchange failed \(401\): {\"error\":\"invalid_client\"}"),
        ({"issuer": "http://127.0.0.1:9/elsewhere"}, "issuer mismatch: .* see whether auth.issuer"),
        (
            {"issuer": "http://127.0.0.1:9/elsewhere", "browser": ("no-such-browser",), "client_secret": None},
            "issuer mismatch: .* see whether auth.issuer",
        ),
    ],
)
def test_login_that_fails_says_why(
    guarded: Guarded, outcomes: Callable[..., Any], options: dict[str, Any], problem: str
) -> None:
    with pytest.raises(PreflightError, match=f"server 'every' at {guarded.url} did not come up: .*{problem}"):
        outcomes(guarded.client(**options), [])


FOLLOW = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1]).read()"


@pytest.mark.parametrize(
    ("known", "asked"),
    [({}, ["register", "page", "code"]), ({"client_id": "short"}, ["page", "code", "refresh", "refresh"])],
    ids=["registers-itself", "known-and-refreshed"],
)
def test_person_logs_in_once_in_a_browser(
    guarded: Guarded, outcomes: Callable[..., Any], known: dict[str, Any], asked: list[str]
) -> None:
    provider = Http(url=guarded.url, isolation="condition", auth=Auth(browser=(sys.executable, "-c", FOLLOW), **known))

    (((first, second), log),) = outcomes(provider, [("whoami", {}), ("whoami", {})])

    assert {known.get("client_id", "person")} == {first.partition(" has ")[0], second.partition(" has ")[0]}
    assert log.lost is None
    found = [each["how"] for each in guarded.asked()]
    assert asked == found[: len(asked)]
    assert 1 == found.count("page")


def test_person_logs_in_once_for_all_conditions(guarded: Guarded, attempt: Callable[..., Any]) -> None:
    with listen() as free:
        port = free.getsockname()[1]
    auth = Auth(browser=(sys.executable, "-c", FOLLOW), port=port)

    async def condition(learned: list[str]) -> str:
        async with started(Http(url=guarded.url, auth=auth), "every") as source:
            (server,) = source.source.servers
            assert isinstance(server, ServerSpec)
            assert server.login is not None
            server.login.learn_with(lambda secrets: learned.extend(value for _, value in secrets))
            async with attempt(source) as tapped:
                return str(await tapped.call("whoami"))

    async def run() -> list[str]:
        learned: list[list[str]] = [[], [], []]
        said = await asyncio.gather(*map(condition, learned))
        assert [[token.rpartition(" ")[2]] for token in said] == learned
        return said

    assert 1 == len({*asyncio.run(run())})
    assert ["register", "page", "code"] == [each["how"] for each in guarded.asked()]


def test_page_that_cannot_be_opened_says_so(guarded: Guarded, outcomes: Callable[..., Any]) -> None:
    provider = Http(url=guarded.url, auth=Auth(browser=("no-such-browser",)))

    with pytest.raises(PreflightError, match=r"a login can be opened: .*'no-such-browser'; correct auth.browser"):
        outcomes(provider, [])


PRINT = "import sys, time; open(sys.argv[1], 'a').write('x'); print(open(sys.argv[1] + '.token').read())"


def _issue(guarded: Guarded) -> str:
    form = {"grant_type": "client_credentials", "client_id": "keval", "client_secret": SECRET, "scope": "read"}
    answered = httpx2.post(f"{guarded.issuer}/token", data={**form, "resource": guarded.url})
    return str(answered.json()["access_token"])


def test_token_is_what_a_command_prints_and_it_runs_again_when_the_server_refuses_it(
    guarded: Guarded, attempt: Callable[..., Any], tmp_path: Path
) -> None:
    runs, token = tmp_path / "runs", tmp_path / "runs.token"
    token.write_text(_issue(guarded), encoding="utf-8")
    provider = Http(url=guarded.url, auth=Auth(command=(sys.executable, "-c", PRINT, str(runs))))

    async def run() -> list[str]:
        async with started(provider, "every") as source, attempt(source) as tapped:
            said = [await tapped.call("whoami"), await tapped.call("whoami"), await tapped.call("revoke")]
            token.write_text(f'{{"access_token": "{_issue(guarded)}", "expires_in": 3600}}', encoding="utf-8")
            return [*said, await tapped.call("whoami")]

    first, again, _, renewed = asyncio.run(run())

    assert first == again
    assert first != renewed
    assert "keval" == renewed.partition(" has ")[0]
    assert "xx" == runs.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "runs"), [({"lifetime": 1e-9}, 3), ({}, 1)], ids=["says-when-it-expires", "unknown"]
)
def test_command_runs_again_when_its_token_expires(
    guarded: Guarded, tmp_path: Path, options: dict[str, Any], runs: int
) -> None:
    (tmp_path / "runs.token").write_text("a-token", encoding="utf-8")
    command = (sys.executable, "-c", PRINT, str(tmp_path / "runs"))

    async def run() -> None:
        login = Login("every", Auth(command=command, **options), "http://127.0.0.1:9")
        await login.prepare()
        for _ in range(3):
            flow = login.async_auth_flow(httpx2.Request("POST", "http://127.0.0.1:9"))
            assert "Bearer a-token" == (await anext(flow)).headers["authorization"]
            await flow.aclose()

    asyncio.run(run())

    assert "x" * runs == (tmp_path / "runs").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        (
            "import sys; sys.exit('log in first')",
            "'python3?.*' of auth.command gave no token: it ended with code 1: log in first",
        ),
        (
            "print('two words')",
            "'python3?.*' of auth.command gave no token: what it printed has a space as its character 4 of 9",
        ),
    ],
)
def test_command_that_prints_no_token_says_so(
    guarded: Guarded, outcomes: Callable[..., Any], script: str, problem: str
) -> None:
    provider = Http(url=guarded.url, auth=Auth(command=(sys.executable, "-c", script)))

    with pytest.raises(PreflightError, match=problem):
        outcomes(provider, [])


def test_server_that_wants_a_login_says_so(guarded: Guarded, outcomes: Callable[..., Any]) -> None:
    with pytest.raises(PreflightError, match="HTTP 401 Unauthorized: it wants a login, so its context needs `auth`"):
        outcomes(Http(url=guarded.url), [])


def test_token_that_was_given_and_is_refused_is_no_secret_of_the_server(
    guarded: Guarded, outcomes: Callable[..., Any]
) -> None:
    with pytest.raises(PreflightError, match=r"did not come up: the server refuses the token of auth.token; put a"):
        outcomes(Http(url=guarded.url, auth=Auth(token="an-old-one")), [])


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({}, "one of token, command, client_id and browser is needed"),
        ({"token": "t", "client_id": "c"}, "one of token, command, client_id and browser is needed, and no two ways"),
        ({"token": "t", "scope": "read"}, "'scope' must go with a client_id"),
        ({"token": "t", "lifetime": 5.0}, "'lifetime' must go with a command"),
        ({"client_id": "c"}, "a client_id goes with one of client_secret, private_key and private_key_file"),
        ({"client_id": "c", "client_secret": "s"}, "'issuer' must be the URL of the authorization server"),
        ({"token": "t", "browser": True}, "no two ways to a token"),
        ({"token": "t", "port": 80}, "'port' must go with a browser"),
        (
            {"browser": True, "client_metadata": "http://x/y"},
            "'client_metadata' must be the https:// URL of a",
        ),
        ({"browser": True, "client_id": "c", "private_key": "k"}, "'private_key' must go with client credentials"),
    ],
)
def test_what_does_not_go_together_is_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Auth(**options)


def test_login_goes_with_the_tap_and_without_another_authorization() -> None:
    auth = Auth(token="t")

    with pytest.raises(ValueError, match="'auth' must go with the tap"):
        Http(url="http://x", auth=auth, tap=False)
    with pytest.raises(ValueError, match="'auth' must stand alone"):
        Sse(url="http://x", auth=auth, headers={"Authorization": "Bearer other"})


def test_key_that_does_not_sign_is_told_at_preflight(key: tuple[str, str]) -> None:
    auth = Auth(client_id="c", issuer="http://127.0.0.1:9", private_key=key[0], algorithm="RS256")

    async def start() -> None:
        async with started(Http(url="http://127.0.0.1:9", auth=auth), "every"):
            pass

    with pytest.raises(PreflightError, match=r"'every': the private key does not sign with RS256: .*algorithm"):
        asyncio.run(start())


def test_secrets_of_a_login_are_not_shown() -> None:
    shown = repr(Http(url="http://x", auth=Auth(client_id="c", client_secret="s3cret", issuer="http://127.0.0.1:9")))

    assert "s3cret" not in shown
