"""Writes the page of a config's keys from the JSON Schema that `keval schema` prints."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from pages import ROOT

_SCHEMA = ROOT / "examples" / "keval.schema.json"
_TOP = """# The keys of a config

Made from [the JSON Schema](../../examples/keval.schema.json), which editors check a config with. [The
config](../config.md) explains the keys with an example; [the gallery](../plugins/gallery.md) has the options of each
plugin. Any number or true/false may also be a variable, `${NAME}`.
"""
_PLUGINS = {"agents", "contexts", "judges", "metrics", "middleware", "plugins"}
_SHORT = {
    "agent": "`agents:`, for one agent without a label",
    "judge": "`judges:`, for one judge without a label",
    "mcp_servers": "`contexts:`",
}
_HEAD = "| key | value | default |\n|---|---|---|"
Schema = Mapping[str, Any]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    schema = json.loads(_SCHEMA.read_text(encoding="utf-8"))
    files.append(File.generated(config, "reference/config.md", content=_TOP + "\n".join(_page(schema))))
    return files


def _page(schema: Schema) -> Iterator[str]:
    properties: dict[str, Schema] = schema["properties"]
    sections = {key: told for key, told in properties.items() if "description" in told and key not in _SHORT}
    plain = {key: told for key, told in properties.items() if key not in sections and key not in _SHORT}
    yield f"\n## At the top\n\n{_HEAD}"
    yield from _rows(plain, schema["required"])
    yield "\n| key | short for |\n|---|---|"
    yield from (f"| `{key}` | {meaning} |" for key, meaning in _SHORT.items())
    for key, told in sections.items():
        yield f"\n## {key}\n\n{told['description'][:1].upper()}{told['description'][1:]}.\n"
        fields = _fields(told)
        if key in _PLUGINS:
            yield f"[The {key} that there are](../plugins/gallery.md#{key if key != 'plugins' else 'hook-plugins'})."
        elif fields:
            yield _HEAD
            yield from _rows(fields["properties"], fields.get("required", ()))
        else:
            yield f"A {_type(told)}."
    yield f"\n## Changes to a context\n\nKeys that any entry of `contexts:` may have.\n\n{_HEAD}"
    changes = {key.removeprefix("change:"): each for key, each in schema["$defs"].items() if key.startswith("change:")}
    yield from _rows(changes, ())


def _fields(told: Schema) -> Schema | None:
    """Return the record that a section is, or that each of its entries is."""
    for each in (told, told.get("additionalProperties"), *told.get("items", {}).get("anyOf", ())):
        if isinstance(each, dict):
            if "properties" in each:
                return each
            if isinstance(each.get("additionalProperties"), dict) and "properties" in each["additionalProperties"]:
                found: Schema = each["additionalProperties"]
                return found
    return None


def _rows(properties: Mapping[str, Schema], required: Any, prefix: str = "") -> Iterator[str]:
    for key, told in properties.items():
        if "properties" in told:
            yield from _rows(told["properties"], (), f"{prefix}{key}.")
            continue
        default = "required" if key in required else f"`{json.dumps(told['default'])}`" if "default" in told else ""
        yield f"| `{prefix}{key}` | {_type(told)} | {default} |"


def _type(told: Schema) -> str:
    """Say in words what a value must be."""
    if "enum" in told:
        return " or ".join(f"`{value}`" for value in told["enum"])
    if "anyOf" in told:
        parts = [_type(part) for part in told["anyOf"] if not _is_variable(part) and part.get("type") != "null"]
        text = " or ".join(dict.fromkeys(parts))
    else:
        kinds = told.get("type", "anything")
        kind = " or ".join(each for each in kinds if each != "null") if isinstance(kinds, list) else kinds
        text = {"boolean": "true or false", "string": "text", "integer": "whole number"}.get(kind, kind)
        if kind == "array":
            text = f"list of {_type(told['items'])}" if "items" in told else "list"
        elif kind == "object":
            values = told.get("additionalProperties")
            text = f"mapping of names to {_type(values)}" if isinstance(values, dict) else "mapping"
    bounds = [f"{sign} {told[key]}" for key, sign in (("minimum", "≥"), ("exclusiveMinimum", ">")) if key in told]
    return " ".join([text, *bounds])


def _is_variable(told: Schema) -> bool:
    return told.get("pattern") == r"\$\{"
