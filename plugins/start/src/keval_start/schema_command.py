"""`keval schema`: the JSON Schema of a config, from the attrs classes and the options of every installed plugin."""

from __future__ import annotations

import json
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

import attrs
import click

from keval.config.evaluation import Budget, Condition, DatasetFile, Execution, Header
from keval.config.sections import SECTIONS
from keval.config.structure import resolve_fields
from keval.errors import PluginError
from keval.records.interventions import Intervention
from keval.records.models import Model, Price
from keval.records.scores import Rubric
from keval.seams import registry

_LABELLED = {"agents": "keval.agents", "contexts": "keval.contexts", "judges": "keval.judges"}
_LISTED = {"metrics": "keval.metrics", "middleware": "keval.middleware", "plugins": "keval"}
_CHARACTERISTICS = {
    "description": "what metrics may want to know of the agent, or the name of an agent plugin that ships it",
    "type": ["string", "object"],
}
# In place of a number or a truth value there may be a variable, which is a text.
_IN_FILE = {"type": "string", "pattern": r"\.py(:\w+)?$"}
VARIABLE = {"type": "string", "pattern": r"\$\{"}


def evaluation_schema() -> dict[str, Any]:
    """Describe a whole config; a plugin that does not import takes any options."""
    definitions: dict[str, Any] = {}
    properties = dict(options_schema(Header)["properties"])
    properties["dataset"] = _dataset()
    properties["execution"] = options_schema(Execution)
    properties["budget"] = options_schema(Budget)
    properties["prices"] = {**_mapping_of(options_schema(Price)), "propertyNames": {"pattern": "^.+/.+"}}
    properties["providers"] = _providers(definitions)
    for component in registry.offered("keval.sections"):
        # `execution.KEY` is a key of that section, and any other name a section.
        *at, key = component.name.split(".")
        own = properties["execution"]["properties"] if at else properties
        own[key] = plugin_options(component).get("properties", {}).get(key, {})
    condition = options_schema(Condition)
    properties["workspace"] = condition["properties"]["workspace"] = _workspace()
    properties["verify"] = _checks()
    properties["conditions"] = _mapping_of(_or_nothing(condition), at_least=1)
    for section, group in _LABELLED.items():
        properties[section] = _labelled(section, group, definitions)
    for section, group in _LISTED.items():
        properties[section] = _listed(section, group, definitions)
    rubric = options_schema(Rubric)
    # Its name is its key.
    del rubric["properties"]["name"]
    rubric["required"].remove("name")
    rubric["properties"]["levels"] = {
        "type": "object",
        "propertyNames": {"pattern": "^-?[0-9]+$"},
        "additionalProperties": {"type": "string"},
        "minProperties": 2,
    }
    properties["rubrics"] = _names_or_options([], _mapping_of(rubric))
    for section, meaning in SECTIONS.items():
        properties[section] = {**properties[section], "description": meaning}
    # A format has an entry point for each of its words.
    for each in {each.target: each for each in registry.components("keval.formats")}.values():
        registry.load(each).extend_schema(properties)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "keval evaluation",
        "type": "object",
        "properties": properties,
        "required": ["dataset"],
        "additionalProperties": False,
        "$defs": definitions,
    }


def options_schema(cls: type) -> dict[str, Any]:
    """Describe the fields of an attrs class as the properties of an object."""
    resolve_fields(cls)
    fields = [field for field in attrs.fields(cls) if field.init]
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {field.name: _field(field) for field in fields},
        "required": [field.name for field in fields if field.default is attrs.NOTHING],
        "additionalProperties": False,
    }
    if cls.__doc__ and not cls.__doc__.startswith("Method generated"):
        schema["description"] = cls.__doc__.strip().split("\n\n")[0].replace("\n    ", " ")
    return schema


def _field(field: attrs.Attribute[Any]) -> dict[str, Any]:
    if "schema" in field.metadata:
        return dict(field.metadata["schema"])
    schema = {**_type(field.type), **_bounds(field.validator)}
    if field.type is Model and "provider" in field.metadata:
        schema = {"type": "string", "description": f"provider/name, or a name of {field.metadata['provider']}"}
    if isinstance(field.default, str | int | float | bool):
        return {**schema, "default": field.default}
    return schema


def _bounds(validator: Any) -> dict[str, Any]:
    """Return the limits of a number, if its validator is one of attrs' own."""
    key = {">=": "minimum", ">": "exclusiveMinimum"}.get(getattr(validator, "compare_op", ""))
    return {key: validator.bound} if key else {}


def _type(wanted: Any) -> dict[str, Any]:
    origin, args = get_origin(wanted), get_args(wanted)
    plain = {bool: "boolean", int: "integer", float: "number"}
    if wanted in (str, Path):
        return {"type": "string"}
    if wanted in plain:
        return {"anyOf": [{"type": plain[wanted]}, VARIABLE]}
    if wanted is Model:
        return {"type": "string", "pattern": r"^.+/.+|\$\{", "description": "provider/name"}
    if origin is Literal:
        return {"enum": list(args)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [{"type": "null"} if part is type(None) else _type(part) for part in args]}
    if origin in (tuple, list, Sequence):
        return {"type": "array", "items": _type(args[0])} if args else {"type": "array"}
    if origin in (dict, Mapping):
        return {"type": "object", "additionalProperties": _type(args[1])} if args else {"type": "object"}
    if isinstance(wanted, type) and attrs.has(wanted):
        # Single keys override the plugin's own default, so none is required.
        return {**options_schema(wanted), "required": []}
    return {}


def _dataset() -> dict[str, Any]:
    """Describe the section `dataset:` with the options of every installed reader."""
    schema = options_schema(DatasetFile)
    # The options of a reader stand beside the keys of the section, and not under one.
    schema["properties"].pop("options")
    for component in registry.offered("keval.datasets"):
        for name, option in plugin_options(component).get("properties", {}).items():
            schema["properties"].setdefault(name, option)
    schema["properties"]["type"] = {"enum": [component.name for component in registry.offered("keval.datasets")]}
    return schema


def _providers(definitions: dict[str, Any]) -> dict[str, Any]:
    """Describe the options of each provider of models; most have the same ones."""
    named: dict[str, Any] = {}
    for component in registry.offered("keval.models"):
        options = _or_nothing(plugin_options(component))
        name = next((key for key, each in definitions.items() if each == options), f"providers:{component.name}")
        definitions[name] = options
        named[component.name] = _ref(name)
    return {"type": "object", "properties": named, "additionalProperties": False}


def _workspace() -> dict[str, Any]:
    """Describe a workspace with the options of every installed provider."""
    components = registry.offered("keval.workspaces")
    properties: dict[str, Any] = {"type": {"enum": [component.name for component in components]}}
    for component in components:
        properties = {**plugin_options(component).get("properties", {}), **properties}
    return {"type": ["object", "null"], "properties": properties, "additionalProperties": False}


def _checks() -> dict[str, Any]:
    """Describe `verify:`, a list of checks: each has a name, and one kind with its options."""
    kinds = {
        component.name: {"anyOf": [{**plugin_options(component), "required": []}, {"type": ["string", "array"]}]}
        for component in registry.offered("keval.checks")
    }
    properties = {"name": {"type": "string"}, **kinds}
    check = {"type": "object", "properties": properties, "required": ["name"], "additionalProperties": False}
    # The name, and one kind.
    return {"type": "array", "items": {**check, "minProperties": 2, "maxProperties": 2}}


def _labelled(section: str, group: str, definitions: dict[str, Any]) -> dict[str, Any]:
    """Describe options by label. They depend on `type`, or on the label itself if it is a plugin's name."""
    names = [component.name for component in registry.offered(group)]
    changes = _changes(definitions) if section == "contexts" else {}
    for component in registry.offered(group):
        options = plugin_options(component)
        typed = {"type": {"enum": [component.name]}, **options.get("properties", {})}
        if section == "agents":
            typed["characteristics"] = _CHARACTERISTICS
        definitions[f"{section}:{component.name}"] = _or_nothing({**options, "properties": {**changes, **typed}})
    definitions[f"{section}:by-type"] = {
        "type": ["object", "null"],
        "properties": {"type": {"anyOf": [{"enum": names}, _IN_FILE]}},
        "allOf": [
            {
                "if": {"properties": {"type": {"enum": [name]}}, "required": ["type"]},
                "then": _ref(f"{section}:{name}"),
            }
            for name in names
        ],
    }
    by_type = _ref(f"{section}:by-type")
    untyped: dict[str, Any] = {"not": {"required": ["type"]}}
    if section == "contexts":
        labels = {"type": "string", "description": "the label of the context that this one is like but for its changes"}
        offers = {"enum": ["tools", "skills"], "description": "what alone agents get of the server"}
        derived = {"properties": {"from": labels, "offer": offers, **changes}, "additionalProperties": False}
        definitions["contexts:by-type"] = {
            "if": {"required": ["from"]},
            "then": derived,
            "else": definitions["contexts:by-type"],
        }
        untyped = {"not": {"anyOf": [{"required": ["type"]}, {"required": ["from"]}]}}
    named = {name: {"if": untyped, "then": _ref(f"{section}:{name}"), "else": by_type} for name in names}
    return {"type": "object", "properties": named, "additionalProperties": by_type}


def _changes(definitions: dict[str, Any]) -> dict[str, Any]:
    """Describe the keys by which any context is changed."""
    schema: dict[str, Any] = options_schema(Intervention)["properties"]
    words = schema["describe"]["additionalProperties"]
    schema["describe"] = _mapping_of({"anyOf": [{"type": "string"}, words]})
    definitions.update((f"change:{key}", described) for key, described in schema.items())
    return {key: _ref(f"change:{key}") for key in schema}


def _listed(section: str, group: str, definitions: dict[str, Any]) -> dict[str, Any]:
    """Describe a list of names, or of name: {options}. A vendor's name selects all of its plugins."""
    names = [component.name for component in registry.offered(group)]
    vendors = sorted({name.split("/")[0] for name in names if "/" in name} - set(names))
    for component in registry.offered(group):
        definitions[f"{section}:{component.name}"] = _or_nothing(plugin_options(component))
    options = {
        "type": "object",
        "properties": {name: _ref(f"{section}:{name}") for name in names},
        "patternProperties": {_IN_FILE["pattern"]: {"type": "object"}},
        "additionalProperties": False,
    }
    return _names_or_options([*names, *vendors], options)


def _ref(definition: str) -> dict[str, Any]:
    # Names of plugins have slashes, which separate the parts of a JSON Pointer (RFC 6901, section 3).
    return {"$ref": "#/$defs/" + definition.replace("~", "~0").replace("/", "~1")}


def plugin_options(component: registry.Component) -> dict[str, Any]:
    """Describe the options of a plugin; one without a class of attrs has none."""
    try:
        target = registry.load(component)
        if isinstance(target, type) and attrs.has(target):
            return options_schema(target)
    except PluginError as error:
        return {"type": "object", "description": str(error)}
    return {"type": "object", "properties": {}, "required": [], "additionalProperties": False}


def _names_or_options(names: Sequence[str], options: Mapping[str, Any]) -> dict[str, Any]:
    name: dict[str, Any] = {"anyOf": [{"enum": list(names)}, _IN_FILE]} if names else {"type": "string"}
    # One name to an item: `- name: {option: …}`.
    return {"type": "array", "items": {"anyOf": [name, {**options, "minProperties": 1, "maxProperties": 1}]}}


def _mapping_of(values: Mapping[str, Any], at_least: int = 0) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": dict(values), "minProperties": at_least}


def _or_nothing(schema: dict[str, Any]) -> dict[str, Any]:
    # In YAML, a key with nothing behind it is null.
    return {**schema, "type": ["object", "null"]} if schema.get("type") == "object" else schema


@click.command("schema")
def command() -> None:
    """Print the JSON Schema of a config, with the options of every installed plugin.

    Editors check and complete a config that names it in its first line:
    `# yaml-language-server: $schema=keval.schema.json`
    """

    click.echo(json.dumps(evaluation_schema(), indent=2, ensure_ascii=False))
