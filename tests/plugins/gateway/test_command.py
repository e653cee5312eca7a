"""`keval gateway`: what it serves, what it says, and what it refuses."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys

import pytest
from click.testing import CliRunner

from keval_gateway import responders
from keval_gateway.address import KEY_VARIABLE
from keval_gateway.command import gateway

SIMULATE = ["--simulate"], ["A SIMULATED model answers here", "careless, double/absent, "]
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


@pytest.mark.parametrize("options", [[], ["--simulate", "--responder", "scripted"]], ids=["none", "both"])
def test_one_thing_answers(options: list[str]) -> None:
    result = CliRunner().invoke(gateway, options)

    assert 2 == result.exit_code
    assert "`keval gateway --simulate` or `keval gateway --responder NAME`" in result.output


@pytest.mark.parametrize("options", [["--simulate"], ["--responder", "forgetful"]], ids=" ".join)
def test_without_the_simulator_it_says_what_to_install(options: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(responders, "installed_responders", list)

    result = CliRunner().invoke(gateway, options)

    name = "forgetful" if "forgetful" in options else "simulated"
    missing = "comes with keval-simulator, which is not installed: `pip install keval-simulator`"
    assert (2, f"Error: the responder '{name}' {missing}\n") == (result.exit_code, result.output)


def test_an_unknown_responder_is_refused_with_those_that_are_installed() -> None:
    result = CliRunner().invoke(gateway, ["--responder", "script"])

    assert 2 == result.exit_code
    assert result.output.startswith("Error: no responder named 'script' is installed; installed: careless, ")


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
