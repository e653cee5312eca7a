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
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), (int,)),
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
    """Return what satisfies a keyword given twice."""
    match key:
        case "properties" | "$defs":
            both = {**first, **second}
            return {name: {"allOf": [s[name] for s in (first, second) if name in s]} for name in both}
        case "required":
            return [*first, *(name for name in second if name not in first)]
        case "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties":
            return max(first, second)
        case "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties":
            return min(first, second)
        case "enum":
            return [value for value in first if value in second]
        case "type":
            kept = [kind for kind in _listed(first) if kind in _listed(second)]
            return kept or (["integer"] if "integer" in (*_listed(first), *_listed(second)) else [])
        case "additionalProperties":
            return False if first is False or second is False else second
        case _:
            return second


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list) else [value]


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

_SAMPLES = (
    "a", "A", "0", "1", "00", "A1", "a1", "abc", "ABC", "123", "1.0", "AB-123", "ABC-1234", "a@b.co", "2025-01-31",
    "12:00:00", "2025-01-31T12:00:00Z", "http://localhost/", "#a0b1c2", "en", "en-GB", "true", "yes", "", " ",
)  # fmt: skip
_FORMATS = {
    "date": "2025-01-31",
    "date-time": "2025-01-31T12:00:00Z",
    "time": "12:00:00Z",
    "duration": "P1D",
    "email": "someone@example.org",
    "hostname": "example.org",
    "ipv4": "127.0.0.1",
    "ipv6": "::1",
    "uri": "https://example.org/",
    "uri-reference": "/",
    "uuid": "12345678-1234-4234-8234-123456789012",
    "regex": ".",
    "json-pointer": "/a",
}


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

    def value(self, schema: Any, path: tuple[str, ...], depth: int = 0) -> Any:
        if depth > _DEEPEST:
            raise ModelFault(400, "the schema recurses without end")
        plain = resolved(schema, self._root)
        wish = self._suggest(path, plain)
        if "const" in plain:
            return plain["const"]
        if "enum" in plain:
            return self._option(plain["enum"], wish)
        match schema_type(plain):
            case "object":
                return self._object(plain, path, depth)
            case "array":
                return self._array(plain, path, depth, wish)
            case "integer":
                return self._number(plain, wish, whole=True)
            case "number":
                return self._number(plain, wish, whole=False)
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
        properties = properties_of(schema)
        required = required_of(schema)
        wanted = [name for name in properties if name in required or depth < _DEEPEST / 2]
        wanted += [name for name in required if name not in properties]
        wanted = wanted[: max(len(required), schema.get("maxProperties", len(wanted)))]
        wanted = [name for name in wanted if name in required or properties.get(name) is not False]
        extra = schema.get("additionalProperties", {})
        for index in range(schema.get("minProperties", 0) - len(wanted)):
            if extra is False:
                raise ModelFault(400, "the schema wants more properties than it allows")
            wanted.append(f"property{index}")
        return {name: self.value(properties.get(name, extra), (*path, name), depth + 1) for name in wanted}

    def _array(self, schema: Schema, path: tuple[str, ...], depth: int, wish: Any) -> list[Any]:
        prefix = schema.get("prefixItems") or []
        items = schema.get("items", {})
        least, most = schema.get("minItems", 0), schema.get("maxItems", math.inf)
        wishes = list(wish) if isinstance(wish, list | tuple) else None
        count = len(prefix) if wishes is None else len(wishes)
        if wishes is None and not prefix and depth < _DEEPEST / 2:
            count = 1
        count = int(min(max(count, least), most))
        if items is False:
            count = min(count, len(prefix))
        found: list[Any] = []
        for index in range(count):
            each = prefix[index] if index < len(prefix) else items
            if wishes and index < len(wishes) and isinstance(wishes[index], str):
                value = self._wished(each, wishes[index], path, depth)
            else:
                value = self.value(each, (*path, str(index)), depth + 1)
            found.append(value)
        return self._distinct(found, items, least) if schema.get("uniqueItems") else found

    def _wished(self, schema: Any, wish: str, path: tuple[str, ...], depth: int) -> Any:
        plain = resolved(schema, self._root)
        if schema_type(plain) == "string" and "enum" not in plain and "const" not in plain:
            return self._text(plain, wish)
        return self.value(schema, (*path, wish), depth + 1)

    def _distinct(self, found: list[Any], items: Any, least: int) -> list[Any]:
        unique: list[Any] = []
        for value in found:
            if value not in unique:
                unique.append(value)
        plain = resolved(items, self._root)
        candidates: list[Any] = list(plain.get("enum", ()))
        if not candidates and schema_type(plain) in ("integer", "number"):
            low = self._number({**plain, "maximum": plain.get("maximum", math.inf)}, -math.inf, whole=True)
            candidates = [low + step * (plain.get("multipleOf") or 1) for step in range(least + len(unique))]
            top = plain.get("maximum", math.inf)
            candidates = [each for each in candidates if each <= top]
        if not candidates and schema_type(plain) == "boolean":
            candidates = [False, True]
        if not candidates and schema_type(plain) == "string":
            width = max(plain.get("minLength", 0), 1)
            candidates = [f"{step:0{width}d}" for step in range(least + len(unique))]
        for value in candidates:
            if len(unique) >= least:
                break
            if value not in unique:
                unique.append(value)
        if len(unique) < least:
            raise ModelFault(400, "the schema wants more distinct items than this model can think of")
        return unique

    def _number(self, schema: Schema, wish: Any, *, whole: bool) -> int | float:
        low: float = schema.get("minimum", -math.inf)
        high: float = schema.get("maximum", math.inf)
        step: float | None = schema.get("multipleOf") or (1 if whole else None)
        if "exclusiveMinimum" in schema:
            low = max(low, math.nextafter(schema["exclusiveMinimum"], math.inf))
        if "exclusiveMaximum" in schema:
            high = min(high, math.nextafter(schema["exclusiveMaximum"], -math.inf))
        if isinstance(wish, bool) or not isinstance(wish, int | float):
            wish = self._rng.uniform(max(low, min(high, 100) - 100), min(high, max(low, 0) + 100))
        value: float = min(max(wish, low), high)
        if math.isinf(value):
            value = low if math.isfinite(low) else high if math.isfinite(high) else 0
        if step:
            value = self._stepped(value, low, high, step)
        if whole or float(value).is_integer():
            return int(value)
        return round(value, 2) if not step and low <= round(value, 2) <= high else value

    def _stepped(self, value: float, low: float, high: float, step: float) -> float:
        count = round(value / step)
        for near in (count, count + 1, count - 1):
            if low <= near * step <= high:
                return near * step
        raise ModelFault(400, f"the schema has no multiple of {step} between {low} and {high}")

    def _text(self, schema: Schema, wish: Any) -> str:
        least, most = schema.get("minLength", 0), schema.get("maxLength", math.inf)
        pattern = schema.get("pattern")
        if pattern is not None:
            return self._matching(str(pattern), wish, least, most)
        text = wish if isinstance(wish, str) else _FORMATS.get(str(schema.get("format")), "text")
        if schema.get("format") in _FORMATS and not isinstance(wish, str):
            return text
        text = text.ljust(least, ".")
        return text if len(text) <= most else text[: int(most)]

    def _matching(self, pattern: str, wish: Any, least: int, most: float) -> str:
        samples = [wish] if isinstance(wish, str) else []
        for sample in (*samples, *_SAMPLES):
            for text in (sample, sample.ljust(least, sample[-1:] or "a")):
                if least <= len(text) <= most and re.search(pattern, text):
                    return text
        raise ModelFault(400, f"the simulated model cannot think of a text that matches the pattern {pattern!r}")
