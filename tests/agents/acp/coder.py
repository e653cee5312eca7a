"""A coding agent in small that speaks the Agent Client Protocol: it asks a model over Chat Completions, calls the tools
of MCP servers, and has two tools of its own: it writes files itself, and runs commands by way of its client.

It needs nothing but the standard library, so that it starts in no time. Its options are those of `main`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import urllib.error
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "command"))

from loop import Server, post  # type: ignore[import-not-found]

TITLES = {
    "plain": "{tool}",
    "claude": "mcp__{server}__{tool}",
    "codex": "mcp.{server}.{tool}",
    "gemini": "{tool} ({server} MCP Server)",
    "opencode": "{server}_{tool}",
    "opaque": "Looking into it",
}
"""How agents show a call of an MCP tool."""
OWN = {
    "shell": ("execute", {"command": {"type": "string"}}),
    "write": ("edit", {"path": {"type": "string"}, "text": {"type": "string"}}),
}


def function(name: str, parameters: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


ENDS = {"turns": "max_turn_requests", "cancelled": "cancelled", "odd-end": "bored"}


class RefusedError(Exception):
    """The client answered a request with an error."""


class Coder:
    """One session."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.number = options, 0
        self.tools: dict[str, tuple[str, Server]] = {}
        self.offered = [
            function(name, {"type": "object", "properties": fields}) for name, (_, fields) in OWN.items() if options.own
        ]
        self.messages: list[dict[str, Any]] = []
        self.ends: list[dict[str, Any]] = []
        self.is_known = False

    def send(self, message: dict[str, Any]) -> None:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()

    def read(self) -> dict[str, Any]:
        line = sys.stdin.readline()
        if not line:
            sys.exit()
        message: dict[str, Any] = json.loads(line)
        if message.get("method") == "session/cancel" and self.options.journal:
            Path(self.options.journal).write_text("cancelled", "utf-8")
        return message

    def ask(self, method: str, **params: Any) -> Any:
        """Send a request to the client, and return its result."""
        self.number += 1
        self.send({"id": self.number, "method": method, "params": {"sessionId": "s", **params}})
        while (message := self.read()).get("id") != self.number or "method" in message:
            pass
        if "error" in message:
            raise RefusedError(message["error"]["data"]["details"])
        return message["result"]

    def update(self, told: str, **fields: Any) -> None:
        update = {"sessionUpdate": told, **fields}
        self.send({"method": "session/update", "params": {"sessionId": "s", "update": update}})

    def serve(self) -> None:
        while True:
            message = self.read()
            answer = {
                "initialize": self.initialize,
                "session/new": self.open,
                "authenticate": self.authenticate,
                "session/set_mode": self.choose,
                "session/set_config_option": self.choose,
                "session/prompt": self.prompt,
            }.get(message.get("method", ""))
            if answer is not None:
                try:
                    self.send({"id": message["id"], "result": answer(message["params"])})
                except urllib.error.HTTPError as error:
                    self.send({"id": message["id"], "error": {"code": -32603, "message": f"the model says {error}"}})
                except ValueError as error:
                    self.send({"id": message["id"], "error": {"code": -32603, "message": str(error)}})
                except RefusedError as error:
                    self.send({"id": message["id"], "error": {"code": -32000, "message": str(error)}})

    def initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        can = {"mcpCapabilities": {"http": self.options.fault != "no-http"}}
        version = 9 if self.options.fault == "version" else params["protocolVersion"]
        ways = [{"id": "key", "name": "An API key"}]
        return {"protocolVersion": version, "agentCapabilities": can, "authMethods": ways}

    def authenticate(self, params: dict[str, Any]) -> dict[str, Any]:
        self.is_known = params["methodId"] == "key"
        return {}

    def open(self, params: dict[str, Any]) -> dict[str, Any]:
        if self.options.fault == "login" and not self.is_known:
            raise RefusedError("Authentication required")
        self.messages = [{"role": "system", "content": (params.get("_meta") or {}).get("systemPrompt", "")}]
        if self.options.fault == "servers":
            raise RefusedError(json.dumps(params["mcpServers"]))
        for given in params["mcpServers"]:
            server = Server(given["url"])
            for tool in server.ask("tools/list", {})["tools"]:
                self.tools[tool["name"]] = given["name"], server
                self.offered.append(function(tool["name"], tool["inputSchema"]))
        modes = [{"id": "careful", "name": "Careful"}, {"id": "bold", "name": "Bold"}]
        effort = {"id": "effort", "name": "Effort", "type": "select", "currentValue": "low", "options": []}
        return {
            "sessionId": "s",
            "modes": {"currentModeId": "careful", "availableModes": modes},
            "configOptions": [effort],
        }

    def choose(self, params: dict[str, Any]) -> dict[str, Any]:
        """Tell the model of a mode or a setting that is chosen."""
        chosen = {name: value for name, value in params.items() if name != "sessionId"}
        self.messages[0]["content"] += f" Chosen: {json.dumps(chosen, sort_keys=True)}."
        return {"configOptions": []}

    def prompt(self, params: dict[str, Any]) -> dict[str, Any]:
        self.messages.append({"role": "user", "content": params["prompt"][0]["text"]})
        if self.options.fault in ENDS:
            return {"stopReason": ENDS[self.options.fault]}
        self.fail()
        url, key = os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"]
        while True:
            body = {"model": self.options.model, "messages": self.messages, "tools": self.offered or None}
            reply, _ = post(f"{url}/chat/completions", body, {"authorization": f"Bearer {key}"})
            (choice,) = reply["choices"]
            message = choice["message"]
            self.messages.append(message)
            text = message.get("content") or ""
            for piece in filter(None, (text[:3], text[3:])):
                content = {"type": "text", "text": piece}
                self.update("agent_message_chunk", content=content, messageId=str(len(self.messages)))
            if self.options.fault == "die-late":
                sys.exit("out of memory")
            for call in message.get("tool_calls") or ():
                arguments = json.loads(call["function"]["arguments"])
                result = self.call(call["id"], call["function"]["name"], arguments)
                self.messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
            self.tell_ends()
            if not message.get("tool_calls"):
                ends = {"length": "max_tokens", "content_filter": "refusal"}
                ended = ends.get(choice["finish_reason"], "end_turn")
                if self.options.fault == "late":
                    self.update("tool_call_update", toolCallId="0", status="completed", rawOutput="so it was")
                    content = {"type": "text", "text": " And that is all."}
                    self.update("agent_message_chunk", content=content, messageId=str(len(self.messages)))
                if self.options.fault == "refuse":
                    return {"stopReason": "refusal"}
                return {"stopReason": "end_turn" if text and ended == "refusal" else ended}

    def call(self, id: str, name: str, arguments: dict[str, Any]) -> str:
        """Call a tool, and tell the client of it."""
        of = self.tools.get(name)
        kind = "other" if of else OWN[name][0]
        title = TITLES[self.options.titles].format(server=of[0], tool=name) if of else f"Use {name}"
        self.update("tool_call", toolCallId=id, title=title, kind=kind, status="pending", rawInput={})
        self.update("tool_call_update", toolCallId=id, rawInput=arguments)
        try:
            if self.options.asks:
                self.permit(id, title, kind, arguments)
            text, failed = self.call_tool(of[1], name, arguments) if of else self.act(id, name, arguments)
        except RefusedError as error:
            text, failed = str(error), True
        content: list[dict[str, Any]] = [{"type": "content", "content": {"type": "text", "text": text}}]
        if name == "write" and not failed:
            content = [{"type": "diff", "path": arguments["path"], "oldText": None, "newText": arguments["text"]}]
        status = "failed" if failed else "completed"
        self.ends.insert(0, {"toolCallId": id, "status": status, "content": content})
        if not self.options.reverse:
            self.tell_ends()
        return text

    def tell_ends(self) -> None:
        for end in self.ends:
            self.update("tool_call_update", **end)
        self.ends = []

    def permit(self, id: str, title: str, kind: str, arguments: dict[str, Any]) -> None:
        options = [
            {"optionId": each, "name": each, "kind": each} for each in ("allow_always", "allow_once", "reject_once")
        ]
        call = {"toolCallId": id, "title": title, "kind": kind, "rawInput": arguments}
        outcome = self.ask("session/request_permission", toolCall=call, options=options)["outcome"]
        if outcome.get("optionId") != "allow_once":
            raise RefusedError(f"the user rejects it: {outcome}")

    def call_tool(self, server: Server, name: str, arguments: dict[str, Any]) -> tuple[str, bool]:
        if self.options.fault == "lost-call":
            return "the call was lost", True
        result = server.ask("tools/call", {"name": name, "arguments": arguments})
        return "\n".join(part.get("text", "") for part in result["content"]), bool(result.get("isError"))

    def act(self, id: str, name: str, arguments: dict[str, Any]) -> tuple[str, bool]:
        if name == "write":
            path = Path(arguments["path"])
            path.parent.mkdir(exist_ok=True)
            path.write_text(arguments["text"], "utf-8")
            return "written", False
        terminal = self.ask("terminal/create", command=arguments["command"], cwd=arguments.get("cwd"))["terminalId"]
        ended = self.ask("terminal/wait_for_exit", terminalId=terminal)
        output = self.ask("terminal/output", terminalId=terminal)["output"]
        self.ask("terminal/release", terminalId=terminal)
        return str(output), ended.get("exitCode") != 0

    def fail(self) -> None:
        match self.options.fault:
            case "die":
                sys.exit("out of memory")
            case "error":
                raise ValueError("out of ideas")
            case "plan":
                self.update("plan", entries=[{"content": "Add", "priority": "high", "status": "pending"}])
            case "hang":
                sys.stderr.write("nothing comes of it\n")
                sys.stderr.flush()
                while True:
                    self.read()
            case "deaf":
                time.sleep(3600)
            case "late":
                self.update("tool_call", toolCallId="0", title="add", kind="think", rawInput={"thought": "how?"})
            case "warn":
                self.update("agent_message_chunk", content={"type": "text", "text": "Warning: no colours"})
            case "garbage":
                sys.stdout.write("warning: no colours\n[1, 2]\n")
                self.update("mood", mood="sunny")
                self.send({"method": "_vendor/mood", "params": {}})


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--model", default="m")
    options.add_argument("--own", action="store_true")
    options.add_argument("--reverse", action="store_true")
    options.add_argument("--asks", action="store_true")
    options.add_argument("--titles", choices=TITLES, default="claude")
    options.add_argument("--fault", default="")
    options.add_argument("--journal", default="")
    Coder(options.parse_args()).serve()


if __name__ == "__main__":
    main()
