"""JSON Schemas: made plain, and filled with a value that conforms, as far as any does."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, TypeAlias

from keval_gateway import ModelFault

Schema: TypeAlias = Mapping[str, Any]

_LONGEST = 64
"""References and `allOf` parts followed for one schema; more is a circle."""

_SHAPES: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(("properties", "$defs", "definitions", "patternProperties"), (dict,)),
    **dict.fromkeys(("required", "enum", "allOf", "anyOf", "oneOf", "prefixItems", "examples"), (list,)),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), (int,)),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), (int, float)),
    **dict.fromkeys(("pattern", "format", "title", "description", "$ref"), (str,)),
    **dict.fromkeys(("items", "additionalProperties"), (dict, bool)),
    "type": (str, list),
}
"""The JSON types that keywords take (JSON Schema 2020-12, validation); a keyword of another type says nothing."""


def _is_shaped(key: str, value: Any) -> bool:
    shape = _SHAPES.get(key)
    return shape is None or (isinstance(value, shape) and (bool in shape or not isinstance(value, bool)))


def resolved(schema: Any, root: Schema, depth: int = 0) -> Schema:
    """Follow references, merge `allOf`, and take the first alternative that is not null."""
    if not isinstance(schema, Mapping):
        return {}
    if depth > _LONGEST:
        raise ModelFault(400, "the schema's alternatives are nested too deeply")
    merged = _merged(schema, root)
    for key in ("anyOf", "oneOf"):
        if options := merged.get(key):
            rest = {name: value for name, value in merged.items() if name != key}
            chosen = next((each for each in options if _merged(each, root).get("type") != "null"), options[0])
            return resolved({"allOf": [rest, chosen]}, root, depth + 1)
    return merged


def properties_of(schema: Schema) -> Schema:
    """Return the properties that a schema names."""
    found = schema.get("properties")
    return found if isinstance(found, Mapping) else {}


def required_of(schema: Schema) -> list[str]:
    """Return the names of the properties that a schema requires."""
    found = schema.get("required")
    return [name for name in found if isinstance(name, str)] if isinstance(found, list | tuple) else []


def schema_type(schema: Schema) -> str:
    """Return the first type a schema allows that is not null, guessed from its keywords where it names none."""
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((each for each in kind if each != "null"), "null")
    if isinstance(kind, str):
        return kind
    if "properties" in schema or "additionalProperties" in schema or "required" in schema:
        return "object"
    if "items" in schema or "prefixItems" in schema:
        return "array"
    if "minimum" in schema or "maximum" in schema:
        return "number"
    return "string"


def _merged(schema: Any, root: Schema) -> dict[str, Any]:
    out: dict[str, Any] = {}
    parts = [schema]
    seen = 0
    while parts:
        seen += 1
        part = parts.pop(0)
        if not isinstance(part, Mapping):
            continue
        if seen > _LONGEST:
            raise ModelFault(400, "the schema's references or allOf are nested too deeply")
        for key, value in part.items():
            if not _is_shaped(key, value):
                continue
            if key == "$ref":
                parts.append(_target(value, root))
            elif key == "allOf":
                parts.extend(value)
            else:
                out[key] = _both(key, out[key], value) if key in out else value
    return out


def _both(key: str, first: Any, second: Any) -> Any:
    """Return a keyword that is given twice: all properties and what is required, or else what is said last."""
    if key in ("properties", "$defs"):
        return {**first, **second}
    return [*first, *second] if key == "required" else second


def _target(reference: str, root: Schema) -> Any:
    if not reference.startswith("#"):
        raise ModelFault(400, f"the schema refers to {reference!r}; only references inside the schema are served")
    target: Any = root
    for step in reference[1:].split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")  # noqa: PLW2901 - JSON Pointer's escapes
        try:
            target = target[int(step)] if isinstance(target, list) else target[step]
        except (LookupError, TypeError, ValueError):
            raise ModelFault(400, f"the schema refers to {reference!r}, which it does not have") from None
    return target


Suggest: TypeAlias = Callable[[tuple[str, ...], Schema], Any]
"""Given the path of property names and the schema there, returns a wished-for value, or `None` for no wish."""

_DEEPEST = 24
"""A recursive schema ends at this depth; below half of it, optional properties and items are left out."""

_FORMATS = {
    "date": "2025-01-31", "date-time": "2025-01-31T12:00:00Z", "time": "12:00:00Z", "duration": "P1D", "regex": ".",
    "email": "someone@example.org", "hostname": "example.org", "ipv4": "127.0.0.1", "ipv6": "::1", "json-pointer": "/a",
    "uri": "https://example.org/", "uri-reference": "/", "uuid": "12345678-1234-4234-8234-123456789012",
}  # fmt: skip
_SAMPLES = (
    "a", "A", "0", "1", "00", "A1", "a1", "abc", "ABC", "123", "1.0", "AB-123", "ABC-1234", "12:00:00", "#a0b1c2", "en",
    "en-GB", "true", "yes", "", " ", *_FORMATS.values(),
)  # fmt: skip


def conform(schema: Schema, suggest: Suggest, rng: Random) -> Any:
    """Return a value that conforms to `schema`, with what `suggest` wishes wherever that is allowed.

    Raises:
        ModelFault: with status 400, when the schema is one that this filler cannot satisfy.
    """
    return _Filler(schema, suggest, rng).value(schema, ())


class _Filler:
    def __init__(self, root: Schema, suggest: Suggest, rng: Random) -> None:
        self._root = root
        self._suggest = suggest
        self._rng = rng

    def value(self, schema: Any, path: tuple[str, ...], depth: int = 0, given: str | None = None) -> Any:
        if depth > _DEEPEST:
            raise ModelFault(400, "the schema recurses without end")
        plain = resolved(schema, self._root)
        kind = schema_type(plain)
        wish = given if given is not None and kind == "string" else self._suggest(path, plain)
        if "const" in plain:
            return plain["const"]
        if "enum" in plain:
            return self._option(plain["enum"], wish)
        match kind:
            case "object":
                return self._object(plain, path, depth)
            case "array":
                return self._array(plain, path, depth, wish)
            case "integer" | "number":
                return self._number(plain, wish, whole=kind == "integer")
            case "boolean":
                return wish if isinstance(wish, bool) else self._rng.random() < 0.5
            case "null":
                return None
            case _:
                return self._text(plain, wish)

    def _option(self, options: Sequence[Any], wish: Any) -> Any:
        if not options:
            raise ModelFault(400, "the schema has an enum without values")
        # In Python True == 1, in JSON it is not: the type must agree too.
        wished = [option for option in options if option == wish and isinstance(option, bool) == isinstance(wish, bool)]
        return self._rng.choice(wished or list(options))

    def _object(self, schema: Schema, path: tuple[str, ...], depth: int) -> dict[str, Any]:
        properties, required = properties_of(schema), required_of(schema)
        optional = [name for name in properties if depth < _DEEPEST / 2 and properties[name] is not False]
        wanted = dict.fromkeys([name for name in properties if name in {*optional, *required}] + required)
        extra = schema.get("additionalProperties", {})
        return {name: self.value(properties.get(name, extra), (*path, name), depth + 1) for name in wanted}

    def _array(self, schema: Schema, path: tuple[str, ...], depth: int, wish: Any) -> list[Any]:
        prefix, items = schema.get("prefixItems") or [], schema.get("items", {})
        least, most = schema.get("minItems", 0), schema.get("maxItems", math.inf)
        wishes = list(wish) if isinstance(wish, list | tuple) else None
        count = len(prefix) or int(depth < _DEEPEST / 2) if wishes is None else len(wishes)
        count = int(min(max(count, least), most if items is not False else len(prefix)))
        named = [*map(str, wishes or ()), *(str(index) for index in range(len(wishes or ()), count))]
        given = [*(wishes or ()), *[None] * count]
        found = [
            self.value(prefix[at] if at < len(prefix) else items, (*path, named[at]), depth + 1, given[at])
            for at in range(count)
        ]
        if schema.get("uniqueItems") and len({repr(each) for each in found}) < len(found):
            found = list({repr(each): each for each in found}.values())
            if len(found) < least:
                raise ModelFault(400, "the schema wants more distinct items than this model can think of")
        return found

    def _number(self, schema: Schema, wish: Any, *, whole: bool) -> int | float:
        low: float = schema.get("minimum", -math.inf)
        high: float = schema.get("maximum", math.inf)
        step = schema.get("multipleOf") or (1 if whole else None)
        if "exclusiveMinimum" in schema:
            low = max(low, math.nextafter(schema["exclusiveMinimum"], math.inf))
        if "exclusiveMaximum" in schema:
            high = min(high, math.nextafter(schema["exclusiveMaximum"], -math.inf))
        if isinstance(wish, bool) or not isinstance(wish, int | float):
            wish = self._rng.uniform(max(low, min(high, 100) - 100), min(high, max(low, 0) + 100))
        value: float = min(max(wish, low), high)
        if step:
            nearest = round(value / step)
            multiples = [each * step for each in (nearest, nearest + 1, nearest - 1) if low <= each * step <= high]
            if not multiples:
                raise ModelFault(400, f"the schema has no multiple of {step} between {low} and {high}")
            value = multiples[0]
        if whole or float(value).is_integer():
            return int(value)
        return round(value, 2) if not step and low <= round(value, 2) <= high else value

    def _text(self, schema: Schema, wish: Any) -> str:
        """Return the wish or a sample that a schema allows, or else a text of its length."""
        least, most = schema.get("minLength", 0), schema.get("maxLength", math.inf)
        pattern = schema.get("pattern")
        text = wish if isinstance(wish, str) else _FORMATS.get(str(schema.get("format")), "text")
        if pattern is None:
            return text.ljust(least, ".")[: schema.get("maxLength")]
        for sample in (text, *_SAMPLES):
            for padded in (sample, sample.ljust(least, sample[-1:] or "a")):
                if least <= len(padded) <= most and re.search(pattern, padded):
                    return padded
        raise ModelFault(400, f"the simulated model cannot think of a text that matches the pattern {pattern!r}")
