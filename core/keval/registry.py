"""Plugins by name: what is installed, where it comes from, and loading exactly one.

Listing reads entry points and imports no plugin. The one module that touches `importlib_metadata`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import importlib_metadata

from keval.errors import PluginError
from keval.nearest import suggestion

__all__ = ["GROUPS", "Component", "components", "find", "label", "load", "select", "versions"]

GROUPS = {
    "keval.agents": "agent",
    "keval.contexts": "context",
    "keval.metrics": "metric",
    "keval.judges": "judge",
    "keval.rubrics": "rubric",
    "keval.models": "model provider",
    "keval.executors": "executor",
    "keval.commands": "command",
    "keval": "hook plugin",
}
"""Entry-point groups, with what one of each is called."""


_OURS = {
    ("keval.agents", "anthropic"): "keval-anthropic",
    ("keval.agents", "claude-code"): "keval-claude-code",
    ("keval.agents", "gadk"): "keval-gadk",
    ("keval.agents", "ms"): "keval-ms",
    ("keval.agents", "openai"): "keval-openai",
    ("keval.agents", "recorded"): "keval-recorded",
    ("keval.contexts", "http"): "keval-mcp",
    ("keval.contexts", "sse"): "keval-mcp",
    ("keval.contexts", "stdio"): "keval-mcp",
    ("keval.contexts", "weather"): "keval-weather",
    ("keval.judges", "anthropic"): "keval-judges",
    ("keval.judges", "openai"): "keval-judges",
    ("keval.metrics", "basic"): "keval-metrics-basic",
    ("keval.metrics", "weather"): "keval-metrics-weather",
    ("keval.models", "simulated"): "keval-simulator",
}
"""Where keval's own plugins are that are installed apart."""

_LABELLED = {"keval.agents", "keval.contexts", "keval.judges"}


# A named tuple, as attrs would add a tenth to what `keval --help` takes.
class Component(NamedTuple):
    """An installed plugin: its group and name, the object it points to, and the distribution that owns it."""

    group: str
    name: str
    target: str
    distribution: str
    version: str

    @property
    def kind(self) -> str:
        return GROUPS[self.group]


@cache
def _installed() -> dict[str, tuple[Component, ...]]:
    found: dict[str, list[Component]] = {group: [] for group in GROUPS}
    for point in importlib_metadata.entry_points():
        if point.group in found:
            owner = (point.dist.name, point.dist.version) if point.dist else ("unknown", "unknown")
            found[point.group].append(Component(point.group, point.name, point.value, *owner))
    return {
        group: tuple(sorted(items, key=lambda item: (item.name, item.distribution))) for group, items in found.items()
    }


def components(group: str) -> Sequence[Component]:
    """List what is installed in a group, by name."""
    return _installed()[group]


def find(group: str, name: str) -> Component:
    """Find the one plugin of that name. Raises PluginError: unknown, or owned twice."""
    owners = [component for component in components(group) if component.name == name]
    if len(owners) == 1:
        return owners[0]
    kind = GROUPS[group]
    if owners:
        both = " and ".join(owner.distribution for owner in owners)
        raise PluginError(f"the {kind} {name!r} is shipped by {both}; uninstall one of them")
    known = [component.name for component in components(group)]
    package = _OURS.get((group, name.partition("/")[0]))
    if package and all(component.distribution != package for component in components(group)):
        raise PluginError(f"the {kind} {name!r} comes with {package}, which is not installed: `pip install {package}`")
    hint = suggestion(name, known) or f"; installed: {', '.join(known) or 'none'} (`keval plugins` lists all)"
    raise PluginError(f"no {kind} named {name!r} is installed{hint}")


def select(group: str, name: str) -> Sequence[Component]:
    """Find the plugin of that name, or all of a vendor's when `name` is the part before the slash."""
    vendors = [component for component in components(group) if component.name.startswith(f"{name}/")]
    exact = any(component.name == name for component in components(group))
    return [find(group, name)] if exact or not vendors else [find(group, component.name) for component in vendors]


def label(group: str, name: str) -> str:
    """What a plugin is labelled that a config does not label; only of what it labels, a label has no slash."""
    return name.replace("/", ".") if group in _LABELLED else name


def load(component: Component) -> Any:
    """Import the object a component points to. Raises PluginError naming the package and the remedy."""
    point = importlib_metadata.EntryPoint(component.name, component.target, component.group)
    try:
        return point.load()
    except Exception as error:  # a plugin's import may raise anything, and only this run is to fail for it
        raise PluginError(
            f"the {component.kind} {component.name!r} of {component.distribution} {component.version} does not import:"
            f" {type(error).__name__}: {error}; reinstall {component.distribution} with what it requires"
        ) from error


def versions(names: Sequence[str]) -> dict[str, str]:
    """The installed versions of these distributions."""
    return {name: importlib_metadata.version(name) for name in sorted(set(names))}
