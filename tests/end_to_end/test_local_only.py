"""Whatever keval serves listens on 127.0.0.1 alone, needs a secret, and answers no foreign host or web page."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import attrs
import httpx2
import pytest

from keval import Sample
from keval.plugin import Endpoint
from keval.records.models import Asker
from keval.seams.infrastructure import ProxyRoute
from keval_gateway import ChatReply, wire_urls
from keval_gateway.app import build_app
from keval_gateway.proxy import model_proxy
from keval_loopback.serving import serve
from keval_mcp import Stdio
from tests.contexts import started
from tests.stdio_server import ENVIRONMENT

ROOT = Path(__file__).parents[2]
SAID = {"model": "m", "messages": [{"role": "user", "content": "{script: [{text: Yes.}]}"}]}
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
MCP = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


@attrs.frozen
class Served:
    """A URL, a request that it answers, and the secret of either that makes it do so."""

    url: str
    headers: Mapping[str, str]
    body: Mapping[str, Any] | None
    secret: str
    method: str = "POST"

    def without_secret(self) -> tuple[str, dict[str, str]]:
        """The same request, of somebody who does not know the secret."""
        guessed = {name: value.replace(self.secret, "guessed") for name, value in self.headers.items()}
        return self.url.replace(self.secret, "guessed"), guessed


def of_model(urls: Mapping[Any, str], key: str) -> Served:
    return Served(f"{urls['openai-chat']}/chat/completions", {"authorization": f"Bearer {key}"}, SAID, key)


def of_server(url: str) -> Served:
    return Served(url, MCP, PING, url.split("/")[3])


@asynccontextmanager
async def gateway_by_hand() -> AsyncIterator[Served]:
    command = [sys.executable, "-m", "keval_gateway", "--responder", "scripted", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: ASYNC220 - nothing else runs
        try:
            assert process.stdout is not None
            line = next(line for line in process.stdout if "OPENAI_BASE_URL" in line)
            url, key = (word.partition("=")[2] for word in line.split()[2:])
            yield of_model({"openai-chat": url}, key)
        finally:
            process.kill()


@asynccontextmanager
async def proxy_before_models() -> AsyncIterator[Served]:
    async def passing(request: Any, send: Any) -> Any:
        return await send(request)

    async with serve(build_app(lambda request: ChatReply("Yes."))) as base:
        route = ProxyRoute(Asker("agent", "a"), Endpoint("m", wire_urls(base), "the real key"), passing)
        async with model_proxy().open([route]) as (endpoint,):
            yield of_model(endpoint.urls, endpoint.api_key)


@asynccontextmanager
async def tap_before_servers() -> AsyncIterator[Served]:
    code = "from tests.stdio_server import Tool, serve; serve('s', lambda: {'t': Tool(lambda a, m: [])})"
    provider = Stdio(command=sys.executable, args=("-c", code), env=ENVIRONMENT)
    async with started(provider, "s") as source, source.open(Sample("a", "?"), "t") as context:
        yield of_server(context.servers[0].url or "")


@asynccontextmanager
async def weather_over_http() -> AsyncIterator[Served]:
    command = [sys.executable, "-m", "keval_weather.server", "--transport", "http"]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=quiet, text=True) as process:  # noqa: ASYNC220 - as above
        try:
            assert process.stdout is not None
            told = json.loads(process.stdout.readline())
            yield of_server(f"http://127.0.0.1:{told['port']}{told['path']}")
        finally:
            process.kill()


@asynccontextmanager
async def viewer_by_hand() -> AsyncIterator[Served]:
    command = [sys.executable, "-m", "keval", "view", "--port", "0", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: ASYNC220 - as above
        try:
            assert process.stdout is not None
            url = httpx2.URL(process.stdout.readline().strip())
            async with httpx2.AsyncClient(trust_env=False) as client:
                cookie = (await client.get(url)).headers["set-cookie"].partition(";")[0]
            yield Served(f"{url.copy_with(query=None)}", {"cookie": cookie}, None, cookie.partition("=")[2], "GET")
        finally:
            process.kill()


Serving: TypeAlias = Callable[[], AbstractAsyncContextManager[Served]]
ALL: dict[str, list[Serving]] = {
    "plugins/loopback/src/keval_loopback/loopback.py": [
        gateway_by_hand,
        proxy_before_models,
        tap_before_servers,
        viewer_by_hand,
    ],
    "plugins/weather/src/keval_weather/server.py": [weather_over_http],
}


# It waits for one visitor; tests/plugins/mcp/test_browser.py holds whom it lets in.
VISITED = "plugins/mcp/src/keval_mcp/server/login.py"
# It listens in the network of a sandbox, which has nobody but the sandbox's own program.
ALONE = "plugins/workspace/src/keval_workspace/sandbox/inside.py"


def test_all_that_listens_is_walked_below() -> None:
    folders = ("core", "agents", "judges", "metrics", "plugins")
    sources = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    words = (".listen(", "start_server(", "create_server(", "HTTPServer(", "uvicorn.run(", "run_streamable_http")

    listening = {path for path in sources if any(word in path.read_text(encoding="utf-8") for word in words)}

    assert {*ALL, VISITED, ALONE} == {str(path.relative_to(ROOT)) for path in listening}


@pytest.mark.parametrize(
    "serving",
    [
        pytest.param(each, marks=() if each is gateway_by_hand else pytest.mark.slow)
        for group in ALL.values()
        for each in group
    ],
    ids=lambda each: each.__name__,
)
def test_it_is_for_this_machine_and_who_knows_its_secret(serving: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # the responder is one of the doubles

    async def scenario() -> tuple[dict[str, int], bool]:
        async with serving() as served, httpx2.AsyncClient(trust_env=False, timeout=20) as client:
            port = httpx2.URL(served.url).port or 0
            url, headers = served.without_secret()
            asked = {
                "as it should be": (served.url, served.headers),
                "from its own page": (served.url, {**served.headers, "host": f"127.0.0.1:{port}"}),
                "without the secret": (url, headers),
                "another host": (served.url, {**served.headers, "host": f"evil.example:{port}"}),
                "another port": (served.url, {**served.headers, "host": f"127.0.0.1:{port + 1}"}),
                "a page": (served.url, {**served.headers, "origin": f"http://evil.example:{port}"}),
                "a page without origin": (served.url, {**served.headers, "origin": "null"}),
            }
            statuses = {
                name: (await client.request(served.method, of, headers=dict(sent), json=served.body)).status_code
                for name, (of, sent) in asked.items()
            }
            return statuses, await asyncio.to_thread(reached_elsewhere, port)

    statuses, elsewhere = asyncio.run(scenario())

    assert (200, 200) == (statuses.pop("as it should be"), statuses.pop("from its own page"))
    assert statuses.pop("without the secret") in (401, 403, 404)
    assert {"another host": 421, "another port": 421, "a page": 403, "a page without origin": 403} == statuses
    assert not elsewhere


def reached_elsewhere(port: int) -> bool:
    """Whether the port answers on an address that is this machine's, and not 127.0.0.1: then it listens on all."""
    for address, family in (("127.0.0.2", socket.AF_INET), ("::1", socket.AF_INET6)):
        with socket.socket(family, socket.SOCK_STREAM) as client:
            client.settimeout(5)
            if client.connect_ex((address, port)) == 0:
                return True
    return False
