"""Tool calls as both OpenAI APIs write them: with the arguments as a text of JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from keval.plugin import Ending
from keval_clients import quoted, read_json
from keval_mcp.loop import Call, Result
from keval_mcp.sessions import Tool

__all__ = ["parameters", "read_call", "result_content"]


def read_call(id: str, name: str, arguments: str, cut: Ending | None) -> Call:
    """Read a call; no text at all stands for no arguments, unless the reply was `cut` off with this call."""
    try:
        given = read_json(arguments or ("" if cut else "{}"))
    except ValueError:
        given = None
    if isinstance(given, dict):
        return Call(id, name, given)
    return Call(id, name, {}, cut.problem if cut else f"the arguments are not a JSON object: {quoted(arguments)}")


def result_content(result: Result) -> str:
    """Return what the model reads of a result; the APIs have no other mark for an error."""
    return f"Error: {result.text}" if result.is_error else result.text


def parameters(tool: Tool) -> Mapping[str, Any]:
    """Return a tool's input schema, with the `properties` that the APIs want of a tool without arguments too."""
    return {"type": "object", "properties": {}, **tool.input_schema}
