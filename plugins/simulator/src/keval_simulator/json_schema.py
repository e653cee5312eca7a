"""JSON Schemas made plain: references followed, `allOf` merged, and one alternative chosen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from keval_gateway import ModelFault

__all__ = ["Schema", "resolved", "schema_type"]

Schema: TypeAlias = Mapping[str, Any]

_LONGEST = 64
"""References and `allOf` parts followed for one schema; more is a circle."""


def resolved(schema: Any, root: Schema) -> Schema:
    """Follow references, merge `allOf`, and take the first alternative that is not null."""
    if not isinstance(schema, Mapping):
        return {}
    merged = _merged(schema, root)
    for key in ("anyOf", "oneOf"):
        if options := merged.get(key):
            rest = {name: value for name, value in merged.items() if name != key}
            chosen = next((each for each in options if _merged(each, root).get("type") != "null"), options[0])
            return resolved({"allOf": [rest, chosen]}, root)
    return merged


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
        target = target[int(step)] if isinstance(target, list) else target[step]
    return target
