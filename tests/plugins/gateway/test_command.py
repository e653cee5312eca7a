"""`keval gateway`: what it serves, what it says, and what it refuses."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import httpx
import pytest
from click.testing import CliRunner

from keval.seams import registry
from keval.seams.installation import missing_package
from keval_gateway.chat import KEY_VARIABLE
from keval_gateway.command import gateway

SIMULATE = ["--simulate"], ["A SIMULATED model answers here", "careless, coder, double/absent, "]
ALONE = ["--responder", "double/scripted"], ["The responder 'double/scripted' answers here, whatever model"]


@pytest.mark.parametrize(("options", "told"), [SIMULATE, ALONE], ids=["simulate", "responder"])
@pytest.mark.usefixtures("doubles_installed")
def test_it_says_what_answers_and_where_until_it_is_interrupted(options: list[str], told: list[str]) -> None:
    command = [sys.executable, "-m", "keval_gateway", *options, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        shown = ""
        while "Ctrl-C" not in shown:
            line = process.stdout.readline()
            assert line, "the command ended"
            shown += line
        process.send_signal(signal.SIGINT)
        code = process.wait(timeout=20)

    assert 0 == code
    assert [True] * len(told) == [each in shown for each in told]
    for variable in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL"):
        assert f"{variable}=http://127.0.0.1:" in shown


@pytest.mark.usefixtures("doubles_installed")
def test_one_that_keval_started_ends_when_keval_does() -> None:
    """On Linux a supervisor ends it, too; elsewhere only that its standard input closes tells it."""
    command = [sys.executable, "-m", "keval_gateway", "--responder", "scripted", "--port", "0", "--child"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        port = json.loads(process.stdout.readline())["port"]
        process.stdin.close()
        code = process.wait(timeout=20)

    assert (0, True) == (code, port > 0)


TOKENS = {
    "a random one": ([], {}, None, r"OPENAI_API_KEY=([\w-]{32})\n"),
    "the one that is said": (
        ["--token", "t0 ken"],
        {KEY_VARIABLE: "from-env"},
        "t0 ken",
        r"OPENAI_API_KEY=('t0 ken')\n",
    ),
    "any": (["--no-token"], {KEY_VARIABLE: "from-env"}, None, r"OPENAI_API_KEY=(any)\n"),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", TOKENS)
@pytest.mark.usefixtures("doubles_installed")
def test_it_admits_one_key_and_says_which(case: str) -> None:
    options, environ, key, told = TOKENS[case]
    with serving(*options, environ=environ) as (shown, _):
        (found,) = re.findall(told, shown)
        url = re.findall(r"OPENAI_BASE_URL=(\S+)", shown)[0]
        statuses = [ask(url, tried).status_code for tried in (key or found, "another")]

    assert [200, 200 if case == "any" else 401] == statuses


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--token", "a", "--no-token"], "say --token or --no-token, one of the two"),
        (["--token", ""], "a token goes through HTTP headers"),
        (["--token", "żółw"], "a token goes through HTTP headers"),
    ],
)
def test_a_token_that_cannot_be_is_refused(options: list[str], problem: str) -> None:
    result = CliRunner().invoke(gateway, ["--responder", "scripted", *options])

    assert (2, True) == (result.exit_code, problem in result.output)


@pytest.mark.slow
@pytest.mark.usefixtures("doubles_installed")
def test_sigterm_ends_it_at_once_while_a_responder_blocks(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    environ = {"KEVAL_DOUBLES_JOURNAL": str(journal)}
    with serving("--no-token", environ=environ) as (shown, process), ThreadPoolExecutor() as threads:
        url = re.findall(r"OPENAI_BASE_URL=(\S+)", shown)[0]
        asking = threads.submit(ask, url, "any", "{script: [{blocks: 60}]}")
        while not journal.exists():
            assert process.poll() is None
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        code = process.wait(timeout=20)
        took = time.monotonic() - began
        answered = asking.exception() is None

    assert (0, False) == (code, answered and asking.result().is_success)
    assert took < 5


@contextmanager
def serving(
    *options: str, environ: Mapping[str, str], errors: IO[str] | None = None
) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Run the command; what it says at its start, and its process, which is killed at the end."""
    command = [sys.executable, "-m", "keval_gateway", "--responder", "scripted", "--port", "0", *options]
    env = {**{name: value for name, value in os.environ.items() if name != KEY_VARIABLE}, **environ}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=env) as process:
        try:
            assert process.stdout is not None
            shown = ""
            while "Ctrl-C" not in shown:
                line = process.stdout.readline()
                assert line, "the command ended"
                shown += line
            yield shown, process
        finally:
            process.kill()


def ask(url: str, key: str, text: str = "{script: [{text: Yes.}]}") -> httpx.Response:
    body = {"model": "m", "messages": [{"role": "user", "content": text}]}
    headers = {"authorization": f"Bearer {key}"}
    return httpx.post(f"{url}/chat/completions", json=body, headers=headers, timeout=60)


@pytest.mark.parametrize("options", [[], ["--simulate", "--responder", "scripted"]], ids=["none", "both"])
def test_one_thing_answers(options: list[str]) -> None:
    result = CliRunner().invoke(gateway, options)

    assert 2 == result.exit_code
    assert "`keval gateway --simulate` or `keval gateway --responder NAME`" in result.output


@pytest.mark.parametrize("options", [["--simulate"], ["--responder", "forgetful"]], ids=" ".join)
def test_without_the_simulator_it_says_what_to_install(options: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "components", lambda group: ())

    result = CliRunner().invoke(gateway, options)

    name = "forgetful" if "forgetful" in options else "simulated"
    missing = missing_package("keval-simulator")
    assert (2, f"Error: the responder '{name}' {missing}\n") == (result.exit_code, result.output)


def test_an_unknown_responder_is_refused_with_those_that_are_installed() -> None:
    result = CliRunner().invoke(gateway, ["--responder", "script"])

    assert 2 == result.exit_code
    assert result.output.startswith("Error: no responder named 'script' is installed; did you mean 'scripted'?")


def test_a_port_that_is_taken_is_an_explained_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        result = CliRunner().invoke(gateway, ["--responder", "scripted", "--port", port])

    assert 1 == result.exit_code
    assert "choose another --port" in result.output


def test_the_command_is_cheap_to_import() -> None:
    code = (
        "import sys, keval_gateway.command\n"
        "print([name for name in ('starlette', 'uvicorn', 'asyncio', 'keval_simulator') if name in sys.modules])"
    )

    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert "[]" == shown.strip()
