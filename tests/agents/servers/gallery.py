"""A server over stdio with a tool for each kind of content; each tool is named by the kind."""

from __future__ import annotations

import base64
import json

from tests.stdio_server import answer_each

TYPE_CHECKING = False  # see tests.stdio_server
if TYPE_CHECKING:
    from typing import Any

PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC")
WAV = b"RIFF$\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0@\x1f\0\0@\x1f\0\0\1\0\x08\0data\0\0\0\0"
PDF = b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Kids[]/Count 0>>endobj\n%%EOF\n"
ZIP = b"PK\x05\x06" + bytes(18)
LINK, NOTE, REPORT, ARCHIVE = "docs://guide", "docs://note", "docs://report.pdf", "docs://archive.zip"
WRITTEN = "the key is under the mat"
TOTAL = 271828


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def blob(uri: str, media_type: str, content: bytes) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": media_type, "blob": encoded(content)}}


RESULTS: dict[str, dict[str, Any]] = {
    "text": {"content": [text(WRITTEN)]},
    "image": {"content": [text("a dot"), {"type": "image", "mimeType": "image/png", "data": encoded(PNG)}]},
    "audio": {"content": [text("silence"), {"type": "audio", "mimeType": "audio/wav", "data": encoded(WAV)}]},
    "resource_link": {"content": [{"type": "resource_link", "uri": LINK, "name": "guide", "mimeType": "text/plain"}]},
    "resource_text": {"content": [{"type": "resource", "resource": {"uri": NOTE, "text": WRITTEN}}]},
    "resource_pdf": {"content": [text("a report"), blob(REPORT, "application/pdf", PDF)]},
    "resource_other": {"content": [text("an archive"), blob(ARCHIVE, "application/zip", ZIP)]},
    "structured": {"content": [text("the sum")], "structuredContent": {"total": TOTAL}},
    "structured_alone": {"content": [], "structuredContent": {"total": TOTAL}},
    "repeated": {"content": [text(WRITTEN)], "structuredContent": {"result": WRITTEN}},
    "repeated_items": {
        "content": [text(WRITTEN), text("12")],
        "structuredContent": {"result": [WRITTEN, 12]},
    },
    "repeated_object": {
        "content": [text(json.dumps({"where": WRITTEN}, indent=2))],
        "structuredContent": {"where": WRITTEN},
    },
    "failed": {
        "content": [{"type": "image", "mimeType": "image/png", "data": encoded(PNG)}, text("broken")],
        "isError": True,
    },
    "image_and_structure": {
        "content": [{"type": "image", "mimeType": "image/png", "data": encoded(PNG)}],
        "structuredContent": {"total": TOTAL},
    },
}
"""What each tool returns."""


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    if method == "tools/list":
        hints = {"readOnlyHint": True}
        return {"tools": [{"name": name, "inputSchema": {"type": "object"}, "annotations": hints} for name in RESULTS]}
    if method == "tools/call":
        return RESULTS[params["name"]]
    raise LookupError(method)


if __name__ == "__main__":
    answer_each("gallery", answer)
