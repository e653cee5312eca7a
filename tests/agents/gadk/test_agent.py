"""The plugin class: options, defaults, and what it costs to have it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from keval import Sample
from keval.plugin import Context, Endpoint, Model, PreflightError
from keval.records.models import Wire
from keval_gadk import Gadk
from keval_gateway import ChatReply

if TYPE_CHECKING:
    from tests.agents.gadk.conftest import Driver

MODEL = Model("simulated", "m")


def test_constructing_it_imports_no_sdk() -> None:
    code = (
        "import sys; from keval.plugin import Model; from keval_gadk import Api, Gadk; Gadk(Model('openai', 'm'));"
        "print(*{'google', 'mcp', 'openai', 'anthropic', 'httpx', 'httpx2'} & set(sys.modules))"
    )

    imported = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert imported.stdout == "\n"


@pytest.mark.parametrize("options", [{"max_turns": 0}, {"max_tokens": 0}])
def test_bounds_must_be_positive(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be >= 1"):
        Gadk(MODEL, **options)


@pytest.mark.parametrize(
    ("wires", "used"),
    [
        (["anthropic", "openai-responses", "openai-chat", "gemini"], "gemini"),
        (["openai-responses", "openai-chat"], "openai-chat"),
        (["openai-responses", "anthropic"], "openai-responses"),
        (["anthropic"], "anthropic"),
    ],
)
def test_auto_takes_what_the_endpoint_speaks(driver: Driver, wires: list[Wire], used: Wire) -> None:
    driver.run(lambda _: ChatReply("Sunny."), wires=wires)

    assert [request.wire for request in driver.requests] == [used]


def test_an_endpoint_that_does_not_speak_the_wire() -> None:
    agent = Gadk(Model("openai", "m", Endpoint("m", {"openai-chat": "http://127.0.0.1:1"}, "key")), api="gemini")

    with pytest.raises(PreflightError, match="openai/m speaks openai-chat, and gemini is needed"):
        asyncio.run(agent.run(Sample("s1", "Weather?"), Context()))


def test_no_temperature_for_anthropic() -> None:
    model = Model("anthropic", "m", Endpoint("m", {"anthropic": "http://127.0.0.1:1"}, "key"))

    with pytest.raises(PreflightError, match="temperature of anthropic/m"):
        asyncio.run(Gadk(model, temperature=0.0).run(Sample("s1", "Weather?"), Context()))
