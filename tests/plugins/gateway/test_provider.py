"""The gateway as a process of its own: the provider that starts it, and the command it runs."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

from keval import Endpoint, ModelProvider, PreflightError
from keval_gateway import simulated
from keval_gateway.command import gateway
from keval_gateway.provider import KEY_VARIABLE, SimulatedProvider

BODY = {"model": "any", "messages": [{"role": "user", "content": "What's the weather in Rome?"}]}


async def asked(endpoint: Endpoint, key: str | None = None, repetitions: int = 1) -> list[httpx.Response]:
    headers = {"authorization": f"Bearer {key or endpoint.api_key}"}
    url = f"{endpoint.urls['openai-chat']}/chat/completions"
    async with httpx.AsyncClient(headers=headers) as client:
        numbers = (str(number) for number in range(1, repetitions + 1))
        return [await client.post(url, json=BODY, headers={"x-keval-repetition": number}) for number in numbers]


def said(response: httpx.Response) -> str:
    return str(response.json()["choices"][0]["message"]["content"])


def test_the_provider_serves_every_name_on_every_wire_and_says_that_it_is_simulated() -> None:
    async def scenario() -> Any:
        async with simulated().open(["weather", "x/y"], seed=3) as endpoints:
            endpoint = endpoints["weather"]
            return endpoints, *(await asked(endpoint)), *(await asked(endpoint, key="another"))

    endpoints, admitted, refused = asyncio.run(scenario())

    assert isinstance(simulated(), ModelProvider)
    assert set(endpoints) == {"weather", "x/y"}
    assert set(endpoints["weather"].urls) == {"openai-chat", "openai-responses", "anthropic", "gemini"}
    assert endpoints["x/y"].model == "x/y"
    assert endpoints["weather"].simulated
    assert endpoints["weather"].wants_trial
    assert (admitted.status_code, refused.status_code) == (200, 401)
    assert endpoints["weather"].api_key not in repr(endpoints)


def test_a_run_is_repeated_by_its_seed_and_varies_with_the_repetition() -> None:
    async def answers(seed: int) -> list[str]:
        async with simulated().open(["weather"], seed) as endpoints:
            return [said(response) for response in await asked(endpoints["weather"], repetitions=8)]

    first, again, other = (asyncio.run(answers(seed)) for seed in (1, 1, 2))

    assert first == again
    assert first != other
    assert len(set(first)) > 2


def test_the_process_ends_with_the_run() -> None:
    async def scenario() -> Endpoint:
        async with simulated().open(["weather"], 0) as endpoints:
            return endpoints["weather"]

    endpoint = asyncio.run(scenario())

    with pytest.raises(httpx.ConnectError):
        asyncio.run(asked(endpoint))


ORPHAN = """
import asyncio, os, signal, sys
from keval_gateway import simulated

async def main():
    async with simulated().open(["weather"], 0) as endpoints:
        print(endpoints["weather"].urls["gemini"], flush=True)
        sys.stdin.readline()
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


def test_the_process_does_not_outlive_a_keval_that_is_killed() -> None:
    command = [sys.executable, "-c", ORPHAN]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        url = httpx.URL(parent.stdout.readline().strip())
        with socket.create_connection((url.host, url.port or 0), timeout=20) as held:
            parent.communicate("die\n", timeout=20)
            ending = held.recv(1)

    assert parent.returncode == -signal.SIGKILL
    assert ending == b""
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((url.host, url.port or 0), timeout=20).close()


def test_a_gateway_that_does_not_come_up_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "keval_gateway.py").write_text("raise SystemExit('the disk is full')", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    async def scenario() -> None:
        async with simulated().open(["weather"], 0):
            pytest.fail("it came up")

    with pytest.raises(PreflightError, match="did not come up as it should") as caught:
        asyncio.run(scenario())

    assert "the disk is full" in str(caught.value)


def test_a_gateway_that_says_nothing_is_given_up_and_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pid = tmp_path / "pid"
    code = f"import os, sys, time\nopen({str(pid)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)"
    (tmp_path / "keval_gateway.py").write_text(code, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    async def scenario() -> None:
        async with SimulatedProvider(startup=1.0, shutdown=0.1).open(["weather"], 0):
            pytest.fail("it came up")

    with pytest.raises(PreflightError, match="within 1 s"):
        asyncio.run(scenario())

    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text(encoding="utf-8")), 0)


def test_the_command_says_where_it_listens_and_that_it_is_simulated_until_it_is_interrupted() -> None:
    command = [sys.executable, "-m", "keval_gateway", "--simulate", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        shown = ""
        while "Ctrl-C" not in shown:
            line = process.stdout.readline()
            assert line, "the command ended"
            shown += line
        process.send_signal(signal.SIGINT)
        code = process.wait(timeout=20)

    assert code == 0
    assert "SIMULATED" in shown
    for variable in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL"):
        assert f"{variable}=http://127.0.0.1:" in shown


def test_without_simulate_the_command_says_what_to_do() -> None:
    result = CliRunner().invoke(gateway, [])

    assert result.exit_code == 2
    assert "keval gateway --simulate" in result.output


def test_a_port_that_is_taken_is_an_explained_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = CliRunner().invoke(gateway, ["--simulate", "--port", str(taken.getsockname()[1])])

    assert result.exit_code == 1
    assert "choose another --port" in result.output


def test_the_command_and_the_provider_are_cheap_to_import() -> None:
    code = (
        "import sys, keval_gateway, keval_gateway.command; keval_gateway.simulated; "
        "print([name for name in ('starlette', 'uvicorn', 'asyncio', 'keval_gateway.simulate') if name in sys.modules])"
    )

    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert shown.strip() == "[]"
