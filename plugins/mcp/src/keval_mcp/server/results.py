"""Results of tool calls: whether what came is one, and those that keval makes of an error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["check_result", "tool_error"]

_MEMBERS: Mapping[str, tuple[str, ...]] = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("uri", "name"),
}
"""What each kind of content has at least, as texts; an embedded resource is checked by itself."""


def check_result(result: Mapping[str, Any]) -> None:
    """Raise ValueError if what a server answered is no result of a tool call.

    Content of a kind that a later revision of MCP may have passes.
    """
    content = result.get("content", [])
    if not isinstance(content, list):
        raise ValueError(f"its content is no list: {content!r:.200}")
    for block in content:
        if not isinstance(block, dict) or not isinstance(block.get("type"), str):
            raise ValueError(f"its content has a block without a type: {block!r:.200}")
        missing = [name for name in _MEMBERS.get(block["type"], ()) if not isinstance(block.get(name), str)]
        if block["type"] == "resource" and not _is_resource(block.get("resource")):
            missing = ["resource"]
        if missing:
            raise ValueError(f"its content has a block of type {block['type']!r} without {', '.join(missing)}")
    if not isinstance(result.get("isError", False), bool):
        raise ValueError(f"its isError is neither true nor false: {result['isError']!r:.200}")


def _is_resource(resource: object) -> bool:
    if not isinstance(resource, dict) or not isinstance(resource.get("uri"), str):
        return False
    return isinstance(resource.get("text", resource.get("blob")), str)


def tool_error(problem: str) -> dict[str, Any]:
    """Return the result of a call that failed with `problem`."""
    return {"content": [{"type": "text", "text": problem}], "isError": True}
