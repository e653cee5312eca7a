"""What the trials of a plain adapter share, and what they leave behind."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import attrs
import pytest

from keval import Sample
from keval.plugin import Context, Endpoint, Model, PreflightError

SAMPLE = Sample("s1", "How are you?")


@attrs.frozen
class Plain:
    """An adapter over a vendor's SDK: its class, what speaks its protocol and what does not, and its API's reply."""

    module: str
    name: str
    sdk: str
    wire: str
    other: str
    reply: Callable[[str], dict[str, Any]]
    options: dict[str, Any] = attrs.field(factory=dict)

    def build(self, model: Model) -> Any:
        return getattr(import_module(self.module), self.name)(model, **self.options)


def _completion(text: str) -> dict[str, Any]:
    return {"choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]}


def _response(text: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text}]
    return {"status": "completed", "output": [{"type": "message", "role": "assistant", "content": content}]}


def _message(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "text", "text": text}], "stop_reason": "end_turn"}


PLAIN = {
    "openai": Plain("keval_openai", "OpenAI", "openai", "openai-chat", "anthropic", _completion),
    "openai responses": Plain(
        "keval_openai", "OpenAI", "openai", "openai-responses", "anthropic", _response, {"api": "responses"}
    ),
    "anthropic": Plain("keval_anthropic", "Anthropic", "anthropic", "anthropic", "openai-chat", _message),
}


@pytest.fixture(params=PLAIN)
def plain(request: pytest.FixtureRequest) -> Plain:
    return PLAIN[request.param]


@pytest.mark.parametrize("plain", ["openai", "anthropic"], indirect=True)
def test_choosing_the_agent_imports_no_sdk_and_a_trial_without_servers_its_vendors_alone(plain: Plain) -> None:
    script = f"""
import asyncio, sys
from keval import Sample
from keval.plugin import Context, Endpoint, Model, ModelError
from {plain.module} import {plain.name}

def loaded():
    return [name for name in ("aiohttp", "httpx2", "mcp", "{plain.sdk}", "pydantic") if name in sys.modules]

model = Model("vendor", "m", Endpoint("m", {{"{plain.wire}": "http://127.0.0.1:9"}}, "key"))
agent = {plain.name}(model, **{plain.options})
print(loaded())
try:
    asyncio.run(agent.run(Sample("s1", "?"), Context()))
except ModelError:
    print([name for name in ("anthropic", "mcp", "openai") if name in sys.modules])
"""

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert ["[]", f"['{plain.sdk}']"] == done.stdout.splitlines()


def test_closing_the_adapter_closes_its_connections_and_it_can_be_used_again(
    plain: Plain, runner: Any, scripted: Any
) -> None:
    def sockets() -> int:
        targets = [os.readlink(path) for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
        return sum(target.startswith("socket:") for target in targets)

    async def scenario() -> tuple[bool, str]:
        async with scripted(plain.reply("One."), plain.reply("Two.")) as endpoint:
            agent = plain.build(endpoint.model)
            await agent.prepare()
            before = sockets()
            await agent.run(SAMPLE, Context())
            during = sockets()
            await agent.aclose()
            async with asyncio.timeout(10):
                # The endpoint's ends are in this process too, and close when the loop sees ours closed.
                while sockets() > before:  # noqa: ASYNC110 - nothing announces it
                    await asyncio.sleep(0)
            again = await agent.run(SAMPLE, Context())
            await agent.aclose()
            return during > before, again.output

    assert (True, "Two.") == runner.run(scenario())


def test_a_model_without_the_api_is_refused_when_its_endpoint_is_known(plain: Plain) -> None:
    agent = plain.build(Model.parse("vendor/m"))
    wires: Any = {plain.other: "http://127.0.0.1:1"}
    resolved = attrs.evolve(agent.model, endpoint=Endpoint("m", wires, "key"))

    with pytest.raises(PreflightError, match=f"speaks {plain.other}, and {plain.wire} is needed here"):
        attrs.evolve(agent, model=resolved)


def test_a_model_without_a_provider_is_the_vendors(plain: Plain) -> None:
    agent = plain.build(Model.parse("vendor/m"))

    assert plain.sdk == attrs.fields_dict(type(agent))["model"].metadata["provider"]
