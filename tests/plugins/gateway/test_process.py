"""The gateway as a process of its own: how it comes up, answers and ends."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from keval.plugin import PluginWarning, PreflightError
from keval_gateway.process import RunningGateway, run_gateway

BODY = {"model": "any", "messages": [{"role": "user", "content": "{script: [{text: 'Seed {seed}.'}]}"}]}

pytestmark = pytest.mark.usefixtures("doubles_installed")


async def asked(gateway: RunningGateway, key: str) -> httpx.Response:
    async with httpx.AsyncClient(headers={"authorization": f"Bearer {key}"}) as client:
        return await client.post(f"{gateway.urls['openai-chat']}/chat/completions", json=BODY)


def test_the_process_answers_with_its_options_whoever_has_its_key() -> None:
    async def scenario() -> tuple[RunningGateway, httpx.Response, httpx.Response]:
        async with run_gateway("--responder=scripted", "--seed=7") as gateway:
            return gateway, await asked(gateway, gateway.key), await asked(gateway, "another")

    gateway, admitted, refused = asyncio.run(scenario())

    assert {"openai-chat", "openai-responses", "anthropic", "gemini"} == set(gateway.urls)
    assert gateway.key not in repr(gateway)
    assert (200, 401) == (admitted.status_code, refused.status_code)
    assert "Seed 7." == admitted.json()["choices"][0]["message"]["content"]


ORPHAN = """
import asyncio, os, signal, sys
from keval_gateway.process import run_gateway

async def main():
    async with run_gateway("--responder=scripted") as gateway:
        print(gateway.urls["gemini"], flush=True)
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

    assert -signal.SIGKILL == parent.returncode
    assert b"" == ending
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((url.host, url.port or 0), timeout=20).close()


def test_a_process_that_is_killed_is_told_of() -> None:
    async def scenario() -> None:
        async with run_gateway("--responder=scripted") as gateway:
            body = {**BODY, "messages": [{"role": "user", "content": "{script: [{kills: ''}]}"}]}
            async with httpx.AsyncClient(headers={"authorization": f"Bearer {gateway.key}"}) as client:
                with pytest.raises(httpx.TransportError):
                    await client.post(f"{gateway.urls['openai-chat']}/chat/completions", json=body)

    with pytest.warns(PluginWarning, match=r"ended \(exit code 137\), and none could be asked any more"):
        asyncio.run(scenario())


def test_a_gateway_that_does_not_come_up_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "keval_gateway.py").write_text("raise SystemExit('the disk is full')", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    async def scenario() -> None:
        async with run_gateway("--simulate"):
            pytest.fail("it came up")

    with pytest.raises(PreflightError, match="did not come up as it should; try `keval gateway --simulate") as caught:
        asyncio.run(scenario())

    assert "the disk is full" in str(caught.value)


@pytest.mark.slow
def test_a_gateway_that_says_nothing_is_given_up_and_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pid = tmp_path / "pid"
    code = f"import os, sys, time\nopen({str(pid)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)"
    (tmp_path / "keval_gateway.py").write_text(code, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    async def scenario() -> None:
        async with run_gateway("--simulate", startup=1.0, shutdown=0.1):
            pytest.fail("it came up")

    with pytest.raises(PreflightError, match="within 1 s"):
        asyncio.run(scenario())

    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text(encoding="utf-8")), 0)
