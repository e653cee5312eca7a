"""What signs a request in: keys and where they are, headers of an account, tokens of commands, and their renewal."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from keval.plugin import ModelError, PreflightError
from keval.records.models import Endpoint, ModelRequest, Wire
from keval_clients.printed_token import Token, printed_token, read_token
from keval_clients.sender import Sender
from keval_providers import PROVIDERS
from keval_providers.tokens import RenewedToken
from tests.plugins.clients.conftest import http, serve
from tests.plugins.clients.test_client import head

PATHS: Mapping[Wire, str] = {"openai-chat": "/chat/completions", "openai-responses": "/responses"}
ACCOUNT = {
    "OPENAI_ORG_ID": "o1",
    "OPENAI_PROJECT_ID": "p1",
    "OPENAI_CUSTOM_HEADERS": "X-Team: a\nnone\nX-Way: b:c",
    "ANTHROPIC_CUSTOM_HEADERS": "Authorization: mine\nX-Team: b",
}


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for provider in PROVIDERS.values():
        for variable in (*provider.key_variables, *provider.token_variables, *provider.url_variables):
            monkeypatch.delenv(variable, raising=False)


def opened(vendor: str, **options: Any) -> Endpoint:
    async def scenario() -> Endpoint:
        async with PROVIDERS[vendor](**options).open(["m/1"], 0) as endpoints:
            return endpoints["m/1"]

    return asyncio.run(scenario())


def sent(vendor: str, wire: Wire, monkeypatch: pytest.MonkeyPatch) -> tuple[str, Mapping[str, str]]:
    """Send one request as the provider says; its first line and its headers."""

    async def scenario() -> bytes:
        async with serve(http()) as scene:
            monkeypatch.setenv(PROVIDERS[vendor].url_variables[0], scene.url)
            async with PROVIDERS[vendor]().open(["m/1"], 0) as endpoints:
                endpoint = endpoints["m/1"]
            sender = Sender.to(endpoint.urls[wire], endpoint)
            await sender.send(ModelRequest("m/1", wire, "POST", PATHS.get(wire, "/v1/messages"), {}, b"{}"))
            await sender.aclose()
            return scene.asked[0]

    first, headers, _ = head(asyncio.run(scenario()))
    return first, headers


@pytest.mark.parametrize(
    ("vendor", "wire", "own"),
    [
        (
            "openai",
            "openai-chat",
            {"authorization": "Bearer s3cret", "openai-organization": "o1", "openai-project": "p1"}
            | {"x-team": "a", "x-way": "b:c"},
        ),
        ("anthropic", "anthropic", {"authorization": "mine", "x-api-key": "s3cret", "x-team": "b"}),
        ("groq", "openai-chat", {"authorization": "Bearer s3cret"}),
        ("deepseek", "anthropic", {"x-api-key": "s3cret"}),
        ("azure", "openai-chat", {"api-key": "s3cret"}),
    ],
)
def test_the_headers_of_an_account_go_to_its_vendor_alone(
    vendor: str, wire: Wire, own: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**ACCOUNT, PROVIDERS[vendor].key_variables[0]: "s3cret"}.items():
        monkeypatch.setenv(name, value)

    _, headers = sent(vendor, wire, monkeypatch)

    kinds = ("authorization", "api-key", "x-", "openai-")
    assert own == {name: value for name, value in headers.items() if name.startswith(kinds)}


@pytest.mark.parametrize(
    ("version", "wire", "first"),
    [
        (None, "openai-chat", "POST /openai/v1/chat/completions HTTP/1.1"),
        ("v1", "openai-chat", "POST /openai/v1/chat/completions HTTP/1.1"),
        (
            "2024-10-21",
            "openai-chat",
            "POST /openai/deployments/m%2F1/chat/completions?api-version=2024-10-21 HTTP/1.1",
        ),
        ("2024-10-21", "openai-responses", "POST /openai/v1/responses HTTP/1.1"),
    ],
)
def test_azure_is_asked_by_the_version_that_is_named(
    version: str | None, wire: Wire, first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_AD_TOKEN", "s3cret")
    monkeypatch.setenv("AZURE_API_VERSION", version or "")

    assert first == sent("azure", wire, monkeypatch)[0]


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("sk-a b", "OPENAI_API_KEY has a space as its character 5 of 6, which no key has; copy the key anew"),
        ('"sk-ab"', "OPENAI_API_KEY has quotes around the key; remove them, as they would be sent with it"),
        (" \n", "OPENAI_API_KEY is empty, or has nothing but blanks; set it to the key"),
    ],
)
def test_what_can_be_no_key_is_told_wherever_it_stands(
    key: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "key"
    file.write_text(key, encoding="utf-8")
    for variable, value, place in (
        ("OPENAI_API_KEY", key, "OPENAI_API_KEY"),
        ("OPENAI_API_KEY_FILE", str(file), "the file that OPENAI_API_KEY_FILE names"),
    ):
        monkeypatch.setenv(variable, value)
        with pytest.raises(PreflightError) as raised:
            opened("openai")
        monkeypatch.delenv(variable)

        assert [told.replace("OPENAI_API_KEY", place)] == raised.value.problems


def test_a_file_of_a_key_that_cannot_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY_FILE", str(tmp_path / "gone"))

    with pytest.raises(PreflightError) as raised:
        opened("openai")

    assert f"OPENAI_API_KEY_FILE names '{tmp_path / 'gone'}', which cannot be read: No such file" in str(raised.value)


END = 1_900_000_000.0
DATE = "2030-03-17T17:46:40"
CLAIMS = base64.urlsafe_b64encode(json.dumps({"exp": END}).encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    ("printed", "token"),
    [
        ({"accessToken": "t", "expiresOn": "2030-03-17 18:46:40.000000", "expires_on": int(END)}, Token("t", END)),
        ({"credential": {"access_token": "t", "token_expiry": f"{DATE}Z"}}, Token("t", END)),
        ({"kind": "ExecCredential", "status": {"token": "t", "expirationTimestamp": f"{DATE}Z"}}, Token("t", END)),
        ({"access_token": "t", "expires_in": 600, "token_type": "Bearer"}, Token("t", 1600.0)),
        ({"token": "t", "expires_at": DATE}, Token("t", END)),
        ({"token": "t", "expires_at": str(END)}, Token("t", END)),
        ({"token": "t"}, Token("t")),
        (f"h.{CLAIMS}.s", Token(f"h.{CLAIMS}.s", END)),
        ({"access_token": f"h.{CLAIMS}.s"}, Token(f"h.{CLAIMS}.s", END)),
        ("a.plain.one", Token("a.plain.one")),
    ],
)
def test_the_token_that_a_command_prints_is_read_with_its_end(
    printed: Any, token: Token, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keval_clients.printed_token.time", types.SimpleNamespace(time=lambda: 1000.0))

    assert token == read_token(printed if isinstance(printed, str) else json.dumps(printed))


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("import sys; sys.exit('log in first')", "it ended with code 1: log in first"),
        ("", "it printed nothing"),
        ("print('{\"a\": 1}')", "it printed JSON without a token; its keys are 'a'"),
        ("print('two words')", "what it printed has a space as its character 4 of 9"),
        ('print(\'{"token": "t", "expires_at": "soon"}\')', "says no date of the token's end that can be read"),
        ('print(\'{"token": "t", "expires_at": 5}\')', "the token that it gave has ended already"),
    ],
)
def test_a_command_that_gives_no_token_is_told_before_a_run(code: str, told: str) -> None:
    with pytest.raises(PreflightError) as raised:
        opened("openai", command=(sys.executable, "-c", code))

    (problem,) = raised.value.problems
    assert problem.startswith(f"no token to sign in with: the command `{sys.executable} -c ")
    assert (True, True) == (told in problem, problem.endswith("; run it in a terminal to see what it says"))


def test_a_command_that_waits_for_somebody_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keval_providers.tokens._COMMAND_SECONDS", 0.1)

    with pytest.raises(PreflightError, match=r"the command `sleep 60`: it did not end within 0\.1 s; run it in"):
        opened("openai", command=("sleep", "60"))


@pytest.mark.parametrize(
    ("seconds", "ended"), [(2.0, "PrintedTokenError: it did not end within 2 s"), (60.0, "CancelledError: ")]
)
def test_a_command_that_hangs_is_ended(tmp_path: Path, seconds: float, ended: str) -> None:
    file = tmp_path / "pid"
    code = f"import os, time; open({str(file)!r}, 'w').write(str(os.getpid())); time.sleep(60)"

    async def scenario() -> BaseException | Token:
        asked = asyncio.create_task(printed_token((sys.executable, "-c", code), seconds))
        while not (file.exists() and file.read_text(encoding="utf-8")):  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.01)
        if seconds > 2:
            asked.cancel()
        (outcome,) = await asyncio.gather(asked, return_exceptions=True)
        return outcome

    outcome = asyncio.run(scenario())

    assert ended == f"{type(outcome).__name__}: {outcome}"
    with pytest.raises(ProcessLookupError):
        os.kill(int(file.read_text(encoding="utf-8")), 0)


def test_a_command_that_is_not_there_is_told() -> None:
    with pytest.raises(PreflightError, match="the command `no-such-program x`: it cannot be started: No such file"):
        opened("openai", command=("no-such-program", "x"))


def test_one_request_renews_a_token_while_others_use_the_one_that_is_good(monkeypatch: pytest.MonkeyPatch) -> None:
    now, given, learned = [1000.0], [0], list[str]()
    monkeypatch.setattr("keval_providers.tokens.time", types.SimpleNamespace(time=lambda: now[0]))

    async def scenario() -> None:
        go_on = asyncio.Event()
        go_on.set()

        async def fetch() -> Token:
            await go_on.wait()
            given[0] += 1
            if given[0] == 3:
                raise RuntimeError("not now")
            return Token(f"token-{given[0]}", now[0] + 1000)

        token = RenewedToken("a test", "try later", fetch)
        token.tell_secrets(lambda secrets: learned.extend(value for _, value in secrets))
        assert ["token-1"] * 9 == await asyncio.gather(*(token.value() for _ in range(9)))
        now[0] += 799
        assert "token-1" == await token.value()
        go_on.clear()
        now[0] += 1  # a fifth of its life is left
        renewing = asyncio.create_task(token.value())
        await asyncio.sleep(0)
        assert ["token-1"] * 9 == await asyncio.gather(*(token.value() for _ in range(9)))
        go_on.set()
        assert ("token-2", 2) == (await renewing, given[0])
        now[0] += 900  # what fails now is tried again after a while
        assert ["token-2"] * 2 == [await token.value(), await token.value()]
        assert 3 == given[0]
        now[0] += 40
        assert ("token-4", ["token-1", "token-2", "token-4"]) == (await token.value(), learned)
        now[0] += 1000
        given[0] = 2
        failed = await asyncio.gather(*(token.value() for _ in range(9)), return_exceptions=True)
        told = "no token to sign in with: a test: RuntimeError: not now; try later"
        assert ([told] * 9, 3) == ([str(error) for error in failed if isinstance(error, ModelError)], given[0])

    asyncio.run(scenario())
