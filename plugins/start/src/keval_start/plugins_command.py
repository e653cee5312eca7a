"""`keval plugins`: what is installed, and of one plugin its options and an example."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs
import click
import yaml
from rich.console import Console
from rich.padding import Padding
from rich.table import Table

from keval.cli.console import print_json, safe
from keval.cli.options import json_option
from keval.errors import PluginError, suggestion
from keval.plan.construct import METHODS
from keval.records.scores import Rubric
from keval.seams import registry
from keval_report.terminal.console import data_console
from keval_report.words import folded
from keval_start.schema_command import VARIABLE, plugin_options

_PLURALS = {"middleware": "middleware", "proxy": "proxies"}
_WORDS = {"string": "text", "integer": "whole number", "boolean": "true or false", "object": "mapping"}
_BOUNDS = {"minimum": "≥", "exclusiveMinimum": ">"}


@attrs.frozen
class PluginDescription:
    """An installed plugin: what it says of itself, the JSON Schema of its options, and how it is used."""

    kind: str
    name: str
    distribution: str
    version: str
    text: str
    options: Mapping[str, Any] = attrs.field(factory=dict)
    example: str = ""

    @classmethod
    def of(cls, component: registry.Component) -> PluginDescription:
        """Import a plugin and describe it; of one that does not import, the text says why."""
        shared = component.kind, component.name, component.distribution, component.version
        try:
            target = registry.load(component)
        except PluginError as error:
            return cls(*shared, str(error))
        said = target.instructions if isinstance(target, Rubric) else getattr(target, "help", None)
        options = plugin_options(component)
        return cls(
            *shared, inspect.cleandoc(said or inspect.getdoc(target) or ""), options, _example(component, options)
        )

    @property
    def sentence(self) -> str:
        """The first sentence of the text."""
        return re.split(r"(?<=[.?])\s", " ".join(self.text.split()), maxsplit=1)[0]


def _example(component: registry.Component, schema: Mapping[str, Any]) -> str:
    """Return the lines of a config, or the command, by which a plugin is used: with what it needs, or one option."""
    name, group = component.name, component.group
    options = _value(schema)
    label = registry.label(group, name)
    labelled = {label: options if label == name else {"type": name, **options}}
    path = {"path": f"questions.{name}"} if name.isalnum() else {"path": "FILE", "type": name}
    examples: dict[str, Any] = {
        "keval.agents": {"agents": labelled},
        "keval.contexts": {"contexts": labelled},
        "keval.judges": {"judges": labelled},
        "keval.metrics": {"metrics": [{name: options} if options else name]},
        "keval.middleware": {"middleware": [{name: options} if options else name]},
        "keval": {"plugins": [{name: options} if options else name]},
        "keval.rubrics": {"rubrics": [name]},
        "keval.models": {"agents": {"openai": {"model": f"{name}/MODEL"}}},
        "keval.datasets": {"dataset": {**path, **options}},
        "keval.workspaces": {"workspace": {"type": name, **options}},
        "keval.checks": {"verify": [{"name": "done", name: options}]},
        "keval.executors": {"execution": {"executor": {"type": name, **options}}},
        "keval.exporters": f"keval export latest --format {name}",
        "keval.commands": f"keval {name} --help",
    }
    example = examples.get(group, "")
    return example if isinstance(example, str) else yaml.safe_dump(example, sort_keys=False, allow_unicode=True)


def _value(schema: Mapping[str, Any], text: str = "TEXT") -> Any:
    """Return a value that a schema allows, with what it needs or its first part; a text is `text`."""
    if "default" in schema:
        return schema["default"]
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return _value({**schema["anyOf"][0], **{key: schema[key] for key in _BOUNDS if key in schema}}, text)
    if "provider/name" in schema.get("description", ""):
        return "simulated/any"
    match schema.get("type"):
        case "array":
            return [_value(schema.get("items", {}))]
        case "object":
            properties = schema.get("properties", {})
            needed = schema.get("required") or [*properties][:1]
            return {key: _value(properties[key], key.upper()) for key in needed}
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return True
    return text


def _type(schema: Mapping[str, Any]) -> str:
    """Say what a schema allows, in words."""
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    parts = [part for part in schema.get("anyOf", ()) if part != VARIABLE and part.get("type") != "null"]
    kind = schema.get("type", "anything")
    if parts:
        told = " or ".join(dict.fromkeys(map(_type, parts)))
    elif kind == "array":
        told = f"list of {_type(schema.get('items', {}))}"
    elif kind == "object" and schema.get("properties"):
        told = f"mapping of {', '.join(schema['properties'])}"
    else:
        told = schema.get("description", _WORDS.get(kind, kind))
    return told + "".join(f" {sign} {schema[key]:g}" for key, sign in _BOUNDS.items() if key in schema)


@click.command("plugins")
@click.argument("name", required=False)
@json_option
def command(*, name: str | None, as_json: bool) -> None:
    """List the installed plugins by kind, each with the package it comes from.

    With NAME, say all of the plugins of that name: options, types, defaults, and an example. The name of a kind, such
    as `metrics`, or of a vendor lists those. `FILE.py:NAME` is one in a file.
    """
    every = [component for group in registry.groups() for component in registry.offered(group)]
    exact = (
        [*_in_file(name)]
        if name and registry.IN_FILE.fullmatch(name)
        else [each for each in every if each.name == name]
    )
    chosen = exact or [
        each for each in every if name in (None, each.kind, _plural(each.kind), each.name.partition("/")[0])
    ]
    if not chosen:
        near = suggestion(str(name), [*(each.name for each in every), *(_plural(each.kind) for each in every)])
        raise PluginError(f"no plugin named {name!r} is installed{near or '; `keval plugins` lists all'}")
    found = [PluginDescription.of(component) for component in chosen]
    if as_json:
        print_json([attrs.asdict(each) for each in found])
        return
    console = data_console()
    for number, each in enumerate(found if exact else ()):
        console.print("", end="\n" if number else "")
        _print_described(each, console)
    for line in () if exact else _listed(found, console.width):
        console.print(safe(line), soft_wrap=True)


def _in_file(name: str) -> Iterator[registry.Component]:
    """Yield what is named in a file, as a plugin of each group whose methods it has. Raises PluginError."""
    alone = registry.find("keval", name)
    target = registry.load(alone if ":" not in name else registry.find("keval.metrics", name))
    groups = [group for group, methods in METHODS.items() if any(hasattr(target, method) for method in methods)]
    for group in groups or ["keval.rubrics" if isinstance(target, Rubric) else "keval"]:
        yield registry.find(group, name)._replace(name=name)


def _plural(kind: str) -> str:
    return _PLURALS.get(kind, f"{kind}s")


def _listed(found: Iterable[PluginDescription], width: int) -> Iterator[str]:
    """Yield a line for each plugin, by kind; those of which the same is said stand together."""
    alike: dict[tuple[str, str], list[str]] = {}
    for each in found:
        told = f"{each.sentence} ({each.distribution} {each.version})"
        alike.setdefault((each.kind, told), []).append(each.name)
    kind, column = "", 0
    for (its_kind, told), names in alike.items():
        if its_kind != kind:
            yield from ([""] if kind else [])
            yield _plural(its_kind)
            kind = its_kind
            column = max(len(names[0]) for (each, _), names in alike.items() if each == kind) + 4
        first, *rest = folded(told, width, indent=column, hanging=column)
        if len(names) > 1:
            yield from folded(", ".join(names), width, indent=2, hanging=2)
            yield first
        else:
            yield f"  {names[0]:<{column - 2}}{first.lstrip()}"
        yield from rest


def _print_described(each: PluginDescription, console: Console) -> None:
    """Print all that is said of a plugin."""
    console.print(safe(f"{each.name}: {each.kind} of {each.distribution} {each.version}", "bold"))
    for paragraph in each.text.split("\n\n"):
        console.print(Padding(safe(" ".join(paragraph.split())), (1, 0, 0, 2)))
    options = Table.grid(padding=(0, 2), pad_edge=False)
    for key, schema in each.options.get("properties", {}).items():
        default = schema.get("default", "none")
        default = str(default).lower() if isinstance(default, bool) else f"{default}" or "empty"
        required = key in each.options["required"]
        options.add_row(*map(safe, (key, "required" if required else default, _type(schema))))
    if options.row_count:
        console.print("\noptions, with defaults", Padding(options, (0, 0, 0, 2)), sep="\n")
    if each.example:
        console.print("\nexample", Padding(safe(each.example.rstrip()), (0, 0, 0, 2)), sep="\n")
