"""Placebos: results that say nothing, in the shape of those that they stand for.

A result that is scrambled keeps its blocks, the keys of its JSON and its length, and is valid by the tool's output
schema, or has no structured content. Results are as MCP writes them (`CallToolResult`).
"""

from __future__ import annotations

import base64
import binascii
import json
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from typing import Any

import attrs

from keval_mcp.changes.words import Words

_ROUNDS = 4
"""How often what the output schema refuses is mended; each round mends what the one before made visible."""
_WIDEST = 1000
"""How far from its lower bound a bounded number may be."""


def empty(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result without content."""
    return _without_content(result) | {"content": []}


def fixed(result: Mapping[str, Any], text: str) -> dict[str, Any]:
    """Return a result with this text as its content."""
    return _without_content(result) | {"content": [{"type": "text", "text": text}]}


def _without_content(result: Mapping[str, Any]) -> dict[str, Any]:
    # `_meta` may say as much as the content does, and some frameworks show it to their model.
    return {key: value for key, value in result.items() if key not in ("content", "structuredContent", "_meta")}


@attrs.define
class Placebo:
    """Scrambles the results of one trial, with its `words`."""

    words: Words
    _chosen: dict[tuple[str, str], Any] = attrs.field(factory=dict, init=False)

    def scrambled(self, result: Mapping[str, Any], output_schema: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return a result that is unreadable, and valid by the output schema if it was valid."""
        made = _without_content(result)
        structured = result.get("structuredContent")
        if structured is not None and (fitting := self._fitting(structured, output_schema)) is not None:
            made["structuredContent"] = fitting
        blocks = result.get("content")
        made["content"] = [self._block(block) for block in blocks] if isinstance(blocks, list) else []
        return made

    def _block(self, block: Any) -> Any:
        if not isinstance(block, dict):
            return block
        kind = block.get("type")
        bare = {key: value for key, value in block.items() if key != "_meta"}
        if kind == "text":
            return bare | {"text": self._text(str(block.get("text", "")))}
        if kind == "image":
            return bare | blank_image(str(block.get("data", "")))
        if kind == "audio":
            return bare | blank_audio(str(block.get("data", "")))
        if kind == "resource_link":
            return bare | self._named(bare)
        if kind == "resource" and isinstance(block.get("resource"), dict):
            return bare | {"resource": self._resource(block["resource"])}
        return self._value(bare, "")

    def _named(self, described: Mapping[str, Any]) -> dict[str, Any]:
        """Return the words of a link or resource, scrambled."""
        keys = ("uri", "name", "title", "description")
        return {key: self.words.scramble(described[key]) for key in keys if isinstance(described.get(key), str)}

    def _resource(self, resource: Mapping[str, Any]) -> dict[str, Any]:
        made = {key: value for key, value in resource.items() if key != "_meta"} | self._named(resource)
        if isinstance(resource.get("text"), str):
            made["text"] = self._text(resource["text"])
        if isinstance(resource.get("blob"), str):
            if str(resource.get("mimeType", "")).startswith("image/"):
                image = blank_image(resource["blob"])
                return made | {"blob": image["data"], "mimeType": image["mimeType"]}
            made["blob"] = base64.b64encode(bytes(len(resource["blob"]) * 3 // 4)).decode()
        return made

    def _text(self, text: str) -> str:
        """Scramble a text; of one that is JSON, the keys and the layout stay."""
        if text.lstrip()[:1] in ("{", "["):
            with suppress(ValueError, RecursionError):  # no JSON, or nested too deeply
                data = json.loads(text)
                return _written_like(text, data, self._value(data, ""))
        return self.words.scramble(text)

    def _value(self, value: Any, key: str) -> Any:
        if isinstance(value, dict):
            return {name: self._value(item, name) for name, item in value.items()}
        if isinstance(value, list):
            return [self._value(item, key) for item in value]
        if (chosen := self._chosen.get((key, json.dumps(value)))) is not None:
            return chosen
        if isinstance(value, bool):
            return value is not self.words.flips(key)
        if isinstance(value, int | float):
            return self.words.number(value, key)
        return self.words.scramble(value, key) if isinstance(value, str) else value

    def _fitting(self, structured: Any, schema: Mapping[str, Any] | None) -> Any:
        """Scramble structured content; what the schema does not allow becomes a value that it does.

        That is another choice where it lists some, a number within its bounds, and else the value as it was. `None` if
        only a whole mapping or list as it was would do.
        """
        made = self._value(structured, "")
        # What was not valid before need not become valid.
        if schema is None or _errors(structured, schema) != []:
            return made
        for _ in range(_ROUNDS):
            errors = _errors(made, schema, structured)
            if not errors:
                return made
            for path, error in errors:
                original = _at(structured, path)
                value = self._allowed(original, path, error)
                if value is original and isinstance(value, dict | list) and error.validator != "const":
                    continue
                made = _put(made, path, deepcopy(value))
                if path and not isinstance(value, dict | list):
                    self._chosen[_key(path), json.dumps(original)] = value  # its text says the same
        return None

    def _allowed(self, original: Any, path: Sequence[str | int], error: Any) -> Any:
        seen = self._chosen.get((_key(path), json.dumps(original, default=str))) if path else None
        parts = (error, *(error.context or ()))
        consts = [part.validator_value for part in parts if part.validator == "const"]
        if len(consts) > 1 and seen is None:
            return self.words.pick(original, consts)
        for part in parts:
            if part.validator == "enum" and seen is None:
                return self.words.pick(original, part.validator_value)
            bounds = part.schema if isinstance(part.schema, dict) else {}
            low, high = bounds.get("minimum"), bounds.get("maximum")
            if seen is None and isinstance(original, int) and isinstance(low, int) and isinstance(high, int):
                return self.words.pick(original, range(low, min(high, low + _WIDEST) + 1))
        return original


def _key(path: Sequence[str | int]) -> str:
    return next((step for step in reversed(path) if isinstance(step, str)), "")


def _errors(value: Any, schema: Mapping[str, Any], original: Any = None) -> list[tuple[list[str | int], Any]] | None:
    """Return what the schema refuses, each with its path; `None` if the schema cannot be used.

    With the `original` of the value, they are as near to single values as the schema's alternatives allow.
    """
    from jsonschema import validators  # takes 0.1 s to import, and few runs have a placebo
    from referencing import Registry

    kind = validators.validator_for(schema)
    try:
        kind.check_schema(dict(schema))
        # With a registry of its own it does not fetch what the schema refers to elsewhere.
        validator = kind(schema, registry=Registry())
        found = list(validator.iter_errors(value))
        if original is not None:
            found = [part for error in found for part in _parts(error, original, validator)]
    except Exception:  # noqa: BLE001 - a schema that is none, in any way that one can be wrong
        return None
    return [(list(error.absolute_path), error) for error in found]


def _parts(error: Any, original: Any, validator: Any) -> Iterator[Any]:
    """Yield the error; of a mapping or list that fits no alternative, those of the first that its original fits."""
    there = _at(original, error.absolute_path)
    if not isinstance(there, dict | list) or not error.context:
        yield error
    else:
        fits = [validator.evolve(schema=each).is_valid(there) for each in error.validator_value].index(True)
        for part in error.context:
            if part.relative_schema_path[0] == fits:
                yield from _parts(part, original, validator)


def _at(value: Any, path: Sequence[str | int]) -> Any:
    for step in path:
        value = value[step]
    return value


def _put(value: Any, path: Sequence[str | int], item: Any) -> Any:
    """Put an item at a path of a value, and return the value; the item itself where there is no path."""
    if not path:
        return item
    _at(value, path[:-1])[path[-1]] = item
    return value


def _written_like(text: str, data: Any, other: Any) -> str:
    """Write JSON in the layout of a text that holds `data`."""
    # Servers write JSON in few layouts; the right one writes the same text of the same data.
    for indent in (None, 2, 4, 1):
        for separators in ((", ", ": "), (",", ":")) if indent is None else ((",", ": "),):
            for ascii_only in (False, True):
                layout: dict[str, Any] = {"indent": indent, "separators": separators, "ensure_ascii": ascii_only}
                if json.dumps(data, **layout) == text.strip():
                    return json.dumps(other, **layout)
    return json.dumps(other, ensure_ascii=False, indent=2 if "\n" in text.strip() else None)


_UNKNOWN = (256, 256)
_MOST = 4096
"""Pixels of a side."""
_RATE = 8000
"""Samples of a second, of 8 bits each."""


def blank_image(data: str) -> dict[str, str]:
    """Return a grey PNG in base64, as wide and high as the image in `data`, with its `mimeType`."""
    # A header may claim any size.
    width, height = (max(1, min(side, _MOST)) for side in _size(_decoded(data)))
    rows = (b"\0" + b"\x80" * width) * height
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n"
    for kind, content in ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")):
        png += struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    return {"data": base64.b64encode(png).decode(), "mimeType": "image/png"}


def blank_audio(data: str) -> dict[str, str]:
    """Return silence as WAV in base64, of as many bytes as the sound in `data`, with its `mimeType`."""
    # 44 bytes are the header of a WAV file.
    silence = b"\x80" * max(0, len(_decoded(data)) - 44)
    form = struct.pack("<HHIIHH", 1, 1, _RATE, _RATE, 1, 8)
    body = b"WAVEfmt " + struct.pack("<I", len(form)) + form + b"data" + struct.pack("<I", len(silence)) + silence
    wav = b"RIFF" + struct.pack("<I", len(body)) + body
    return {"data": base64.b64encode(wav).decode(), "mimeType": "audio/wav"}


def _decoded(data: str) -> bytes:
    try:
        return base64.b64decode(data)
    except (binascii.Error, ValueError):
        return b""


def _size(image: bytes) -> tuple[int, int]:
    """Read width and height of a PNG, GIF or JPEG from its header."""
    if image.startswith(b"\x89PNG\r\n\x1a\n") and len(image) >= 24:
        width, height = struct.unpack(">II", image[16:24])
        return width, height
    if image.startswith((b"GIF87a", b"GIF89a")) and len(image) >= 10:
        width, height = struct.unpack("<HH", image[6:10])
        return width, height
    return _jpeg_size(image) if image.startswith(b"\xff\xd8") else _UNKNOWN


def _jpeg_size(image: bytes) -> tuple[int, int]:
    """Find the frame header of a JPEG (ITU-T T.81, B.2.2): a marker from C0 to CF, but for C4, C8 and CC."""
    place = 2
    while place + 9 <= len(image) and image[place] == 0xFF:
        marker, length = image[place + 1], int.from_bytes(image[place + 2 : place + 4], "big")
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", image[place + 5 : place + 9])
            return width, height
        place += 2 + length
    return _UNKNOWN
