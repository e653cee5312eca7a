"""A coding agent in small: a program that asks a model over Chat Completions and calls the tools of MCP servers.

It needs nothing but the standard library, so that it starts in no time. Its options are those of `main`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import urllib.error
import urllib.request
import uuid
from pathlib import Path
from typing import Any


def post(url: str, body: Any, headers: dict[str, str]) -> tuple[Any, str]:
    """Post JSON, and return the JSON of the answer, or of its one event, and the MCP session."""
    accept = {"content-type": "application/json", "accept": "application/json, text/event-stream", **headers}
    request = urllib.request.Request(url, json.dumps(body).encode(), accept)
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as response:
        text = response.read().decode()
        events = [line.removeprefix("data:") for line in text.splitlines() if line.startswith("data:")]
        answers = [json.loads(each) for each in events or [text] if each.strip()]
        # Notifications may come before the answer, which alone has an id.
        return next((each for each in answers if "id" in each), None), response.headers.get("mcp-session-id") or ""


class Server:
    """A session with an MCP server over streamable HTTP."""

    def __init__(self, url: str) -> None:
        self.url, self.session, self.number = url, "", 0
        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "loop", "version": "1"}}
        self.ask("initialize", about)
        self._post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.number += 1
        answer = self._post({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        result: dict[str, Any] = answer["result"]
        return result

    def _post(self, message: dict[str, Any]) -> Any:
        headers = {"mcp-session-id": self.session} if self.session else {}
        answer, session = post(self.url, message, headers)
        self.session = self.session or session
        return answer


def tell(**event: Any) -> None:
    """Write an event on a line of its own."""
    sys.stdout.write(json.dumps(event) + "\n")


def answer(messages: list[dict[str, Any]], model: str, servers: list[Server]) -> str:
    """Let the model call tools until it answers."""
    found = {tool["name"]: (server, tool) for server in servers for tool in server.ask("tools/list", {})["tools"]}
    tools = [
        {"type": "function", "function": {"name": name, "parameters": tool["inputSchema"]}}
        for name, (_, tool) in found.items()
    ]
    url = f"{os.environ['OPENAI_BASE_URL']}/chat/completions"
    key = {"authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    while True:
        reply, _ = post(url, {"model": model, "messages": messages, **({"tools": tools} if tools else {})}, key)
        message = reply["choices"][0]["message"]
        messages.append(message)
        for call in message.get("tool_calls") or []:
            name, arguments = call["function"]["name"], json.loads(call["function"]["arguments"])
            server, _ = found[name]
            result = server.ask("tools/call", {"name": name, "arguments": arguments})
            text = "\n".join(part.get("text", "") for part in result["content"])
            tell(type="call", name=name, arguments=arguments)
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})
        if not message.get("tool_calls"):
            return message.get("content") or ""


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("question", nargs="?")
    options.add_argument("--model", required=True)
    options.add_argument("--system", default="")
    options.add_argument("--history")
    options.add_argument("--mcp")
    options.add_argument("--resume")
    chosen = options.parse_args()
    question = chosen.question if chosen.question is not None else sys.stdin.read()
    session = chosen.resume or str(uuid.uuid4())
    kept = Path.home() / f"{session}.json"
    if chosen.resume:
        messages = json.loads(kept.read_text("utf-8"))
    else:
        messages = [{"role": "system", "content": Path(chosen.system).read_text("utf-8")}] if chosen.system else []
        messages += json.loads(Path(chosen.history).read_text("utf-8")) if chosen.history else []
    tell(type="session", id=session)
    messages.append({"role": "user", "content": question})
    servers = json.loads(Path(chosen.mcp).read_text("utf-8"))["mcpServers"] if chosen.mcp else {}
    try:
        said = answer(messages, chosen.model, [Server(server["url"]) for server in servers.values()])
    except (urllib.error.URLError, KeyError, IndexError, TypeError, ValueError) as error:
        sys.exit(f"the model cannot be asked: {error!r}")
    kept.write_text(json.dumps(messages), "utf-8")
    tell(answer=said)


if __name__ == "__main__":
    main()
