"""An MCP server over stdio without the SDK, which takes more than a second of CPU to import: this one is up at once.

It speaks the protocol of 2025-06-18 and runs every call in a thread of its own. A script that is started as
`python -m tests.….name`, with `PYTHONPATH` as in `ENVIRONMENT`, calls `serve` with its tools.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Mapping

TYPE_CHECKING = False  # to import typing and pathlib would take a third of each start
if TYPE_CHECKING:
    from typing import Any, TypeAlias

__all__ = [
    "ENVIRONMENT",
    "NoAnswerError",
    "RefusedError",
    "Tool",
    "ToolFailedError",
    "answer_each",
    "look_up",
    "serve",
    "text",
]

ENVIRONMENT = {"PYTHONPATH": os.path.dirname(os.path.dirname(os.path.abspath(__file__)))}

Content: TypeAlias = list[dict[str, "Any"]]


class ToolFailedError(Exception):
    """The call failed; its result is an error with this text."""


class RefusedError(Exception):
    """The call is refused, by default as one with wrong parameters, with `data` that says more."""

    def __init__(self, message: str, data: object = None, code: int = -32602) -> None:
        super().__init__(message)
        self.data, self.code = data, code


class NoAnswerError(Exception):
    """The call is never answered."""


class Tool:
    """A tool: what runs a call, given its arguments and its `_meta`, and what is listed of it."""

    def __init__(
        self,
        run: Callable[[dict[str, Any], dict[str, Any]], Content],
        properties: Mapping[str, Any] | None = None,
        required: tuple[str, ...] = (),
        description: str = "",
        annotations: Mapping[str, Any] | None = None,
    ) -> None:
        self.run, self.properties, self.required = run, properties or {}, required
        self.description, self.annotations = description, annotations

    def listed(self, name: str) -> dict[str, Any]:
        schema = {"type": "object", "properties": self.properties, "required": self.required}
        hints = {} if self.annotations is None else {"annotations": self.annotations}
        return {"name": name, "description": self.description, "inputSchema": schema, **hints}


def text(said: str) -> Content:
    return [{"type": "text", "text": said}]


def look_up(says: str) -> str:
    """Return a script that serves the tool `look_up`, which says always the same."""
    return f"""\
import sys
sys.path.append({ENVIRONMENT["PYTHONPATH"]!r})
from tests.stdio_server import Tool, serve, text
tool = Tool(lambda arguments, meta: text({says!r}), {{"question": {{"type": "string"}}}}, ("question",), "Look it up.")
serve("look_up", lambda: {{"look_up": tool}})
"""


def serve(name: str, tools: Callable[[], Mapping[str, Tool]]) -> None:
    """Serve until stdin closes; `tools` are asked for anew at each request, so they may change."""

    def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method == "tools/list":
            return {"tools": [tool.listed(of) for of, tool in tools().items()]}
        if method == "tools/call":
            run = tools()[params["name"]].run
            try:
                return {"content": run(params.get("arguments") or {}, params.get("_meta") or {})}
            except ToolFailedError as failed:
                return {"content": text(str(failed)), "isError": True}
        raise LookupError(method)

    answer_each(name, answer)


def answer_each(
    name: str,
    answer: Callable[[str, dict[str, Any]], dict[str, Any]],
    instructions: str | None = None,
    *,
    begins: bool = True,
    heard: Callable[[dict[str, Any]], object] = lambda answer: None,
) -> None:
    """Serve until stdin closes, with what `answer` returns for a method and its parameters.

    Unless the server `begins` sessions, `answer` is asked for that, too. `heard` gets what the client answers.
    """
    writing = threading.Lock()

    def handle(message: dict[str, Any]) -> None:
        method, params = message["method"], message.get("params", {})
        try:
            begun = begins and method == "initialize"
            outcome = {"result": _begin(name, instructions) if begun else answer(method, params)}
        except NoAnswerError:
            return
        except RefusedError as refused:
            outcome = {"error": {"code": refused.code, "message": str(refused), "data": refused.data}}
        except LookupError as error:
            outcome = {"error": {"code": -32601, "message": f"no such method: {error}"}}
        with writing:
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **outcome}) + "\n")
            sys.stdout.flush()

    for line in sys.stdin:
        message = json.loads(line)
        if "method" not in message:
            heard(message)
        elif "id" in message:
            threading.Thread(target=handle, args=(message,), daemon=True).start()
    writing.acquire(timeout=1)  # for good: Python does not end while a thread that it has stopped holds stdout


def _begin(name: str, instructions: str | None) -> dict[str, Any]:
    info = {"name": name, "version": "1"}
    begun: dict[str, Any] = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
    return begun if instructions is None else {**begun, "instructions": instructions}
