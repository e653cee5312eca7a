"""Placebos: results that say nothing, in the shape of those that they stand for.

A result that is scrambled keeps its blocks, the keys of its JSON and its length, and is valid by the tool's output
schema, or has no structured content. Results are as MCP writes them (`CallToolResult`).
"""

from __future__ import annotations

import ast
import base64
import binascii
import json
import math
import re
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from typing import Any

import attrs

from keval_mcp.changes.words import Words
from keval_mcp.schemas import referred

_ROUNDS = 4
"""How often what the output schema refuses is mended; each round mends what the one before made visible."""
_JSON_START = re.compile(r"(?:^|:)[^\S\n]*[\[{]", re.MULTILINE)
_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s\[\]{},:"]+')
_ID = re.compile(r"(?:^|[_-])(?:id|uuid|guid)s?$|[a-z](?:I[dD]|UUID|GUID)s?$|^(?:ID|UUID|GUID)s?$")
_KEY = object()
_DECODER = json.JSONDecoder()


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
    _listed: set[tuple[str, str]] = attrs.field(factory=set, init=False)  # keys, and what the schema lists for them
    _copies: dict[str, Any] = attrs.field(factory=dict, init=False)  # what became of structured content, by its JSON

    def scrambled(self, result: Mapping[str, Any], output_schema: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return a result that is unreadable, and valid by the output schema if it was valid."""
        made = _without_content(result)
        self._listed, self._copies = set(_choices(output_schema)), {}
        structured = result.get("structuredContent")
        if structured is not None and (fitting := self._fitting(structured, output_schema)) is not None:
            made["structuredContent"] = fitting
            self._copies = dict(_copied(structured, fitting))
        blocks = result.get("content")
        made["content"] = [self._block(block) for block in blocks] if isinstance(blocks, list) else []
        return made

    def _block(self, block: Any) -> Any:
        if not isinstance(block, dict):
            return block
        kind = block.get("type")
        bare = {key: value for key, value in block.items() if key != "_meta"}
        if kind == "text":
            return bare | {"text": self._copy(str(block.get("text", "")))}
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

    def _copy(self, text: str) -> str:
        """Scramble the text of a block; one that repeats structured content repeats what became of that."""
        with suppress(ValueError, RecursionError):
            data = json.loads(text)
            if (same := json.dumps(data)) in self._copies:
                return _written_like(text, self._copies[same])
        made = self._copies.get(json.dumps(text))
        return made if isinstance(made, str) else self._text(text)

    def _text(self, text: str, key: str = "") -> str:
        """Scramble a text; of JSON that ends a line of it, or data that Python prints, keys and layout stay."""
        if (printed := _printed(text)) is not None:
            return repr(self._value(printed, ""))
        pieces, end = [], 0
        for found in _JSON_START.finditer(text):
            if found.end() - 1 < end:
                continue
            with suppress(ValueError, RecursionError):  # no JSON, or nested too deeply
                data, after = _DECODER.raw_decode(text, found.end() - 1)
                if text[after:].partition("\n")[0].strip():
                    continue
                written = text[found.end() - 1 : after]
                made = _written_like(written, self._value(data, ""))
                pieces += [self.words.scramble(text[end : found.end() - 1], key), made]
                end = after
        return "".join((*pieces, self.words.scramble(text[end:], key)))

    def _value(self, value: Any, key: str) -> Any:
        if isinstance(value, dict):
            return {name: self._value(item, name) for name, item in value.items()}
        if isinstance(value, list):
            return [self._value(item, key) for item in value]
        if value is None or isinstance(value, bool) or _is_id(key, value) or (key, json.dumps(value)) in self._listed:
            return value
        return self._text(value, key) if isinstance(value, str) else self.words.number(value, key)

    def _fitting(self, structured: Any, schema: Mapping[str, Any] | None) -> Any:
        """Scramble structured content; what the schema does not allow becomes a value that it does.

        That is a whole number of as many digits within its bounds, and else the value as it was. `None` if only a whole
        mapping or list as it was would do.
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
                value = self._allowed(original, error)
                if value is original and isinstance(value, dict | list) and error.validator != "const":
                    continue
                made = _put(made, path, deepcopy(value))
        return None

    def _allowed(self, original: Any, error: Any) -> Any:
        if isinstance(original, bool) or not isinstance(original, int | float):
            return original
        for part in (error, *(error.context or ())):
            if isinstance(part.schema, dict) and (numbers := _like_number(original, part.schema)):
                for number in self.words.picks(round(original * _scale(original)), numbers):
                    value = type(original)(number / _scale(original))
                    if len(repr(value)) == len(repr(original)) and _errors(value, part.schema) == []:
                        return value
        return original


def _is_id(key: str, value: Any) -> bool:
    """Return whether a value stands under a key that names an id, as `order_id` and `pageId` do."""
    return bool(_ID.search(key)) and (
        isinstance(value, int) or (isinstance(value, str) and not re.search(r"\s", value))
    )


def _scale(number: float) -> int:
    """Return by what a number is multiplied to be a whole one, as it is written."""
    decimals = repr(number).partition(".")[2]
    return 1 if decimals == "0" else 10 ** len(decimals)


def _like_number(number: float, schema: Mapping[str, Any]) -> range:
    """Return the numbers of as many digits as this one within the bounds of a schema, multiplied by its `_scale`."""
    scale, written = _scale(number), repr(abs(number)).partition(".")[0]
    if not written.isdigit() or "e" in repr(number):
        return range(0)
    most = scale * 10 ** len(written) - 1
    least = scale * 10 ** (len(written) - 1) if len(written) > 1 else 0
    low, high = (-most, -least) if number < 0 else (least, most)
    for key in ("minimum", "exclusiveMinimum"):
        if isinstance(bound := schema.get(key), int | float):
            low = max(low, math.ceil(bound * scale))
    for key in ("maximum", "exclusiveMaximum"):
        if isinstance(bound := schema.get(key), int | float):
            high = min(high, math.floor(bound * scale))
    return range(low, high + 1)


def _choices(schema: Any) -> Iterator[tuple[str, str]]:
    """Yield what an output schema lists as `enum` or `const`, as JSON, with the key under which it stands."""
    seen: set[tuple[str, int]] = set()

    def choices(part: Any, key: str) -> Iterator[tuple[str, str]]:
        if isinstance(part, list):
            for each in part:
                yield from choices(each, key)
        if not isinstance(part, Mapping) or (key, id(part)) in seen:
            return
        seen.add((key, id(part)))
        listed = part.get("enum")
        for value in (*(listed if isinstance(listed, list) else ()), part.get("const")):
            if isinstance(value, str | int | float):
                yield key, json.dumps(value)
        yield from choices(referred(schema, part.get("$ref")), key)
        for name, each in part.items():
            if name == "properties" and isinstance(each, Mapping):
                for inner in each:
                    yield from choices(each[inner], inner)
            elif name in ("$defs", "definitions"):  # what refers to them says under which key they stand
                continue
            else:
                yield from choices(each, key)

    with suppress(RecursionError):
        yield from choices(schema, "")


def _copied(structured: Any, made: Any) -> Iterator[tuple[str, Any]]:
    """Yield what text blocks repeat of structured content, as JSON, with what became of it."""
    yield json.dumps(structured), made
    # FastMCP wraps what is no mapping as `result`, and writes a list as a block for each item.
    if isinstance(structured, dict) and structured.keys() == {"result"}:
        result, other = structured["result"], made["result"]
        if isinstance(result, list):
            yield from ((json.dumps(item), new) for item, new in zip(result, other, strict=True))
        yield json.dumps(result), other


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


def _written_like(text: str, other: Any) -> str:
    """Write JSON in the layout of a text that holds other values under the same keys."""
    values = [*_in_order(other)]
    if len(values) != len(_JSON_TOKEN.findall(text)):  # a key was there twice
        return json.dumps(other, ensure_ascii=text.isascii())
    rest = iter(values)

    def written(found: re.Match[str]) -> str:
        value = next(rest)
        return found[0] if value is _KEY else json.dumps(value, ensure_ascii=found[0].isascii())

    return _JSON_TOKEN.sub(written, text)


_LONGEST_PRINTED = 10**5  # reading it takes a hundred times the memory


def _printed(text: str) -> Any:
    """Return the data that a text is as Python prints it, as `{'a': None}`; `None` if it is JSON, or no such data."""
    if text[:1] not in ("{", "[") or text[1:2] == '"' or len(text) > _LONGEST_PRINTED:
        return None
    with suppress(ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        data = ast.literal_eval(text)
        return data if repr(data) == text and json.loads(json.dumps(data)) == data else None
    return None


def _in_order(value: Any) -> Iterator[Any]:
    """Yield the values of data as JSON writes them, and `_KEY` for each key."""
    if isinstance(value, dict):
        for item in value.values():
            yield _KEY
            yield from _in_order(item)
    elif isinstance(value, list):
        for item in value:
            yield from _in_order(item)
    else:
        yield value


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
