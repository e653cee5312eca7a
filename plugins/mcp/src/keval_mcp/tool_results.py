"""Reading the result of an MCP tool call, as JSON: its text, and what it holds beside text.

Adapters share this, so that every agent is shown the same of a result.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from operator import contains
from typing import Any, NamedTuple

import attrs

from keval.records.transcript import Blob, Content, ContentKind

_UNKNOWN_TYPE = "application/octet-stream"


@attrs.frozen
class Media:
    """An image, a sound or a binary resource in a tool's result.

    `data` is its base64 as the server wrote it, without line breaks, and `uri` that of a resource.
    """

    kind: ContentKind
    media_type: str
    data: str = attrs.field(repr=False)
    uri: str | None = None

    @property
    def content(self) -> bytes:
        """Its bytes; those of the text itself where that is no base64."""
        try:
            return base64.b64decode(self.data, validate=True)
        except (binascii.Error, ValueError):
            return _encoded(self.data)

    @property
    def essence(self) -> str:
        """Its type without parameters, in lower case, such as `image/png`."""
        return self.media_type.partition(";")[0].strip().lower()

    @property
    def data_url(self) -> str:
        """The medium as a `data:` URL."""
        return f"data:{self.essence};base64,{self.data}"

    @property
    def stand_in(self) -> str:
        """What a model reads in its place where it cannot be shown."""
        where = f" at {self.uri}" if self.uri else ""
        return f"[{self.kind} of type {self.media_type}{where}, which cannot be shown here]"


class _Piece(NamedTuple):
    """One block of a result: what a model is to see of it, and what it holds beside text, with its bytes."""

    part: str | Media
    content: Content | None = None
    blob: Blob | None = None


@attrs.frozen
class ToolResult:
    """A result as the server wrote it; `raw` is what MCP calls a `CallToolResult`."""

    raw: Mapping[str, Any]

    @cached_property
    def _pieces(self) -> list[_Piece]:
        pieces = [_piece(block) for block in _blocks(self.raw)]
        if (structured := _own_structure(self.raw)) is not None:
            pieces.append(_kept(structured, "structured", _encoded(structured), "application/json"))
        return pieces

    @property
    def parts(self) -> tuple[str | Media, ...]:
        """What a model is to see of the result, in order.

        A text resource is its text, with its URI before it, and a link is a line with its name, URI and description.
        Structured content is JSON at the end, unless the text says the same, as the specification asks of servers (MCP
        2025-11-25, server/tools, "Structured Content"). Blocks of an unknown type are JSON.
        """
        return tuple(piece.part for piece in self._pieces)

    @property
    def text(self) -> str:
        """The result as a record keeps it: a line per part; media by their type and place in `blobs/`."""
        return "\n".join(
            f"[{part.media_type} blobs/{blob.sha256}]" if isinstance(part, Media) and blob else str(part)
            for part, _, blob in self._pieces
        )

    @property
    def is_error(self) -> bool:
        """Whether the server says that the call failed."""
        return self.raw.get("isError") is True

    @property
    def blobs(self) -> tuple[Blob, ...]:
        """The bytes of its content."""
        return tuple(piece.blob for piece in self._pieces if piece.blob is not None)

    @property
    def content(self) -> tuple[Content, ...]:
        """What the result holds beside plain text; structured content only if no text says the same."""
        return tuple(piece.content for piece in self._pieces if piece.content is not None)

    def shown(self, takes: Callable[[Media], bool]) -> tuple[tuple[str | Media, ...], tuple[ContentKind, ...]]:
        """Return the parts with a stand-in for each medium that is not taken, and the kind of each of those."""
        shown: list[str | Media] = []
        dropped: list[ContentKind] = []
        for part in self.parts:
            if isinstance(part, Media) and not takes(part):
                shown.append(part.stand_in)
                dropped.append(part.kind)
            else:
                shown.append(part)
        return tuple(shown), tuple(dropped)


def _blocks(result: Mapping[str, Any]) -> list[Any]:
    content = result.get("content")
    return content if isinstance(content, list) else []


def _piece(block: Any) -> _Piece:
    match block:
        case {"type": "text", "text": str(text)}:
            return _Piece(text)
        case {"type": "image" | "audio" as kind, "data": str(data)}:
            return _medium(kind, block.get("mimeType") or f"{kind}/*", data)
        case {"type": "resource", "resource": {"text": str(text)} as resource}:
            uri = resource.get("uri")
            shown = f"[{uri}]\n{text}" if uri else text
            return _kept(shown, "resource", _encoded(text), resource.get("mimeType") or "text/plain", uri)
        case {"type": "resource", "resource": {"blob": str(data)} as resource}:
            return _medium("resource", resource.get("mimeType") or _UNKNOWN_TYPE, data, resource.get("uri"))
        case {"type": "resource_link", "uri": str(uri)}:
            name, about = block.get("title") or block.get("name"), block.get("description")
            link = f"[{name or 'resource'}]({uri})" + (f": {about}" if about else "")
            return _Piece(link, Content("resource_link", block.get("mimeType"), uri=uri))
        case _:
            return _Piece(_json(block))


def _medium(kind: ContentKind, media_type: str, data: str, uri: str | None = None) -> _Piece:
    # Some servers break base64 into lines.
    media = Media(kind, media_type, "".join(data.split()), uri)
    return _kept(media, kind, media.content, media_type, uri)


def _kept(part: str | Media, kind: ContentKind, content: bytes, media_type: str, uri: str | None = None) -> _Piece:
    blob = Blob.of(content, media_type)
    return _Piece(part, Content(kind, media_type, blob.sha256, len(content), uri), blob)


def _encoded(text: str) -> bytes:
    # JSON can hold half a character (a surrogate), whose bytes are kept, too.
    return text.encode("utf-8", "surrogatepass")


def _own_structure(result: Mapping[str, Any]) -> str | None:
    """Return structured content as JSON, if no text says the same."""
    structured = result.get("structuredContent")
    if structured is None:
        return None
    if structured == {"content": _blocks(result)}:  # media would be shown twice, once as base64
        return None
    texts = [
        block["text"] for block in _blocks(result) if isinstance(block, dict) and isinstance(block.get("text"), str)
    ]
    said = [[text, *_read(text)] for text in texts]
    # Servers wrap what is no object as `{"result": …}` or `{"content": …}`, and write each item of a list as a text.
    wrapped = isinstance(structured, dict) and structured.keys() in ({"result"}, {"content"})
    values = (structured, *structured.values()) if wrapped else (structured,)
    return None if any(_is_said(value, said) for value in values) else _json(structured)


def _is_said(value: Any, said: list[list[Any]]) -> bool:
    if any(value in readings for readings in said):
        return True
    return isinstance(value, list) and len(value) == len(said) > 0 and all(map(contains, said, value))


def _read(text: str) -> Iterator[Any]:
    try:
        yield json.loads(text)
    except (ValueError, RecursionError):
        return


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


MOST_NESTED = 100
"""Lists and objects in each other. Frameworks fail from about 150 on, the MCP SDK below 300, and orjson writes 254."""


def is_too_deep(value: Any) -> bool:
    """Return whether more than `MOST_NESTED` lists and mappings are in each other."""
    # Level by level, as a recursion would fail on what this is to find.
    level = [value]
    for _ in range(MOST_NESTED):
        holders = [each for each in level if isinstance(each, Mapping | list | tuple)]
        if not holders:
            return False
        level = [item for each in holders for item in (each.values() if isinstance(each, Mapping) else each)]
    return any(isinstance(each, Mapping | list | tuple) for each in level)
