"""A server that pages its tools, refuses calls, and answers with data alone or with nonsense."""

from __future__ import annotations

from tests.stdio_server import RefusedError, answer_each

TYPE_CHECKING = False  # see tests.stdio_server
if TYPE_CHECKING:
    from typing import Any

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
DATA = {
    "name": "data",
    "title": "All the data",
    "description": "Data alone",
    "icons": [{"src": "data:image/png;base64,iVBORw0K", "mimeType": "image/png", "sizes": ["48x48"], "theme": "dark"}],
    "inputSchema": {"$schema": "https://json-schema.org/draft/2020-12/schema", **SCHEMA, "x-order": ["city"]},
    "outputSchema": {"type": "object", "properties": {"wind": {"type": ["string", "null"]}}, "required": ["wind"]},
    "annotations": {"title": "Data", "readOnlyHint": True, "openWorldHint": False, "acme/costs": 3},
    "_meta": {"acme/version": {"major": 1, "beta": None}},
    "acme/unheard-of": [1, None],
}
"""A definition with all that the protocol has, and more."""


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method, params.get("name"):
        case "tools/list", _:
            if not params.get("cursor"):
                return {"tools": [{"name": "refuse", "inputSchema": SCHEMA}], "nextCursor": "2"}
            return {"tools": [DATA]}
        case "tools/call", "nonsense":
            return {"content": "no list"}
        case "tools/call", "refuse":
            raise RefusedError("there is no such city", {"city": "Atlantis"})
        case "tools/call", "data":
            return {"content": [], "structuredContent": {"temperature": -3, "wind": None}}
    raise LookupError(method)


if __name__ == "__main__":
    answer_each("plain", answer)
