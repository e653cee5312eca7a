"""Writes the page of a config's keys from the JSON Schema that `keval schema` prints."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any, TypeAlias

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from outside_pages import ROOT

_SCHEMA = ROOT / "examples" / "keval.schema.json"
_TOP = """# The keys of a config

Made from [the JSON Schema](../../examples/keval.schema.json), which editors check a config with. [The
config](../config.md) explains the keys with an example; [the gallery](../plugins/gallery.md) has the options of each
plugin. Any number or true/false may also be a variable, `${NAME}`.
"""
_PLUGINS = {
    **{section: section for section in ("agents", "contexts", "judges", "metrics", "middleware")},
    "plugins": "hook-plugins",
}
"""The sections that have options of plugins, and the headings of these in the gallery."""
_SHORT = {
    "agent": "`agents:`, for one agent without a label",
    "judge": "`judges:`, for one judge without a label",
    "mcp_servers": "`contexts:`",
}
_HEAD = "| key | value | default |\n|---|---|---|"
_WORDS = {"boolean": "true or false", "string": "text", "integer": "whole number"}
_VARIABLE = {"type": "string", "pattern": r"\$\{"}
Schema: TypeAlias = Mapping[str, Any]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    schema = json.loads(_SCHEMA.read_text(encoding="utf-8"))
    files.append(File.generated(config, "reference/config.md", content=_TOP + "\n".join(_page(schema))))
    return files


def _page(schema: Schema) -> Iterator[str]:
    properties: dict[str, Schema] = schema["properties"]
    sections = {key: value for key, value in properties.items() if "description" in value and key not in _SHORT}
    plain = {key: value for key, value in properties.items() if key not in sections and key not in _SHORT}
    yield f"\n## At the top\n\n{_HEAD}"
    yield from _rows(plain, schema["required"])
    yield "\n| key | short for |\n|---|---|"
    yield from (f"| `{key}` | {meaning} |" for key, meaning in _SHORT.items())
    for key, section in sections.items():
        yield f"\n## {key}\n\n{section['description'][:1].upper()}{section['description'][1:]}.\n"
        if key in _PLUGINS:
            yield f"[The {key} that there are](../plugins/gallery.md#{_PLUGINS[key]})."
        elif record := _record(section):
            yield _HEAD
            yield from _rows(record["properties"], record.get("required", ()))
        else:
            yield f"A {_type(section)}."
    yield f"\n## Changes to a context\n\nKeys that any entry of `contexts:` may have.\n\n{_HEAD}"
    definitions = {key.partition(":")[2]: value for key, value in schema["$defs"].items() if key.startswith("change:")}
    yield from _rows(definitions, ())


def _record(schema: Schema) -> Schema | None:
    """Return the record that a section is, or that each of its entries is."""
    if "properties" in schema:
        return schema
    entries = schema.get("additionalProperties"), *schema.get("items", {}).get("anyOf", ())
    return next((record for each in entries if isinstance(each, dict) and (record := _record(each))), None)


def _rows(properties: Mapping[str, Schema], required: Collection[str], prefix: str = "") -> Iterator[str]:
    for key, schema in properties.items():
        if "properties" in schema:
            yield from _rows(schema["properties"], (), f"{prefix}{key}.")
            continue
        default = f"`{json.dumps(schema['default'])}`" if "default" in schema else ""
        yield f"| `{prefix}{key}` | {_type(schema)} | {'required' if key in required else default} |"


def _type(schema: Schema) -> str:
    """Say in words what a value must be."""
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    kinds: Any = schema.get("type", "anything")
    if "anyOf" in schema:
        parts = [_type(part) for part in schema["anyOf"] if part.get("type") != "null" and part != _VARIABLE]
        text = " or ".join(dict.fromkeys(parts))
    elif isinstance(kinds, list):
        text = _type({**schema, "type": next(kind for kind in kinds if kind != "null")})
    elif kinds == "array":
        text = f"list of {_type(schema['items'])}" if "items" in schema else "list"
    elif kinds == "object":
        values = schema.get("additionalProperties")
        text = f"mapping of names to {_type(values)}" if isinstance(values, dict) else "mapping"
    else:
        text = _WORDS.get(kinds, kinds)
    bounds = [f"{sign} {schema[key]}" for key, sign in (("minimum", "≥"), ("exclusiveMinimum", ">")) if key in schema]
    return " ".join([text, *bounds])
