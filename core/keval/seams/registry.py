"""Plugins by name: what is installed, where it comes from, and loading exactly one.

Listing reads entry points and imports no plugin. The one module that touches `importlib_metadata`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple

import importlib_metadata

from keval.errors import PluginError, suggestion

GROUPS = {
    "keval.agents": "agent",
    "keval.contexts": "context",
    "keval.workspaces": "workspace",
    "keval.task_makers": "maker of workspaces and checks",
    "keval.templates": "kind of template",
    "keval.checks": "check",
    "keval.metrics": "metric",
    "keval.judges": "judge",
    "keval.rubrics": "rubric",
    "keval.models": "model provider",
    "keval.middleware": "middleware",
    "keval.prices": "price table",
    "keval.datasets": "dataset format",
    "keval.executors": "executor",
    "keval.crews": "crew",
    "keval.formats": "format of evaluations",
    "keval.exporters": "exporter",
    "keval.files": "reader of plugins in files",
    "keval.interventions": "reader of changes",
    "keval.meters": "meter",
    "keval.proxies": "proxy",
    "keval.recorders": "recorder",
    "keval.results": "results mirror",
    "keval.commands": "command",
    "keval.api": "name",
    "keval.plan_reviews": "review of a plan",
    "keval.run_watchers": "watcher of runs",
    "keval.sections": "key of a config",
    "keval.options": "option",
    "keval.readings": "reading of a run",
    "keval.remedies": "remedy",
    "keval.displays": "display",
    "keval.report_parts": "part of a report",
    "keval": "hook plugin",
}
"""Entry-point groups of the core, with what one of each is called."""

_UNLISTED = {
    *("keval.api", "keval.crews", "keval.formats", "keval.displays", "keval.interventions", "keval.options"),
    *("keval.readings", "keval.report_parts", "keval.recorders", "keval.run_watchers", "keval.sections"),
    *("keval.files", "keval.meters", "keval.plan_reviews", "keval.remedies", "keval.task_makers", "keval.templates"),
}
"""Groups whose plugins the core asks for itself, and no user by name."""

IN_FILE = re.compile(r"(?:.*[/\\])?([^/\\:]+\.py)(?::(\w+))?")
"""The name of a plugin in a file of the user's: `FILE.py:NAME`, or `FILE.py`. It is labelled by the last group."""

_OWNER = re.compile(r"^(Name|Version): *(.+?) *$", re.MULTILINE)
_DISTRIBUTION = re.compile(r"[\w.-]+")
_MOST_NAMED = 30
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
        """What one of its group is called."""
        return _kind(self.group)


def _kind(group: str) -> str:
    """Return what one of a group is called, of packages' own groups by the group's name."""
    return GROUPS.get(group, group.removeprefix("keval.").removesuffix("s"))


@cache
def _entry_points() -> dict[str, list[importlib_metadata.EntryPoint]]:
    found: dict[str, list[importlib_metadata.EntryPoint]] = {group: [] for group in GROUPS}
    for point in importlib_metadata.entry_points():
        if point.group in found or point.group.startswith("keval."):
            found.setdefault(point.group, []).append(point)
    return found


@cache
def _owner(distribution: importlib_metadata.Distribution | None) -> tuple[str, str]:
    """Return the name and version of a distribution; to parse all of its metadata takes longer than all else here."""
    told = distribution and (distribution.read_text("METADATA") or distribution.read_text("PKG-INFO"))
    # Below the first empty line is the project's description, which may have such lines, too.
    fields = dict(_OWNER.findall((told or "").partition("\n\n")[0]))
    return fields.get("Name", "unknown"), fields.get("Version", "unknown")


def groups() -> Sequence[str]:
    """List the groups of what users choose: those of the core, then those that installed packages add (`keval.…`)."""
    return [group for group in _entry_points() if group not in _UNLISTED]


@cache
def components(group: str) -> Sequence[Component]:
    """List what is installed in a group, by name."""
    found = [Component(group, point.name, point.value, *_owner(point.dist)) for point in _entry_points().get(group, ())]
    return tuple(sorted(found, key=lambda item: (item.name, item.distribution)))


def offered(group: str) -> Sequence[Component]:
    """List what is installed in a group for users; names of the vendor `testing` are for tests of plugins only."""
    return tuple(component for component in components(group) if not component.name.startswith("testing/"))


def has(group: str, name: str) -> bool:
    """Return whether a plugin of that name is installed."""
    return any(component.name == name for component in components(group))


def find(group: str, name: str) -> Component:
    """Find the one plugin of that name; `vendor/*` has all names of a vendor. Raises PluginError: unknown, or two."""
    if IN_FILE.fullmatch(name):
        return Component(*load(find("keval.files", "py")).component(group, name))
    wanted = name if has(group, name) else f"{name.partition('/')[0]}/*"
    owners = [component._replace(name=name) for component in components(group) if component.name == wanted]
    if len(owners) == 1:
        return owners[0]
    kind = _kind(group)
    if owners:
        both = " and ".join(owner.distribution for owner in owners)
        raise PluginError(f"the {kind} {name!r} is shipped by {both}; uninstall one of them")
    known = [component.name for component in offered(group)]
    from keval.seams.installation import missing_package, package_of  # only who needs a remedy waits for it

    # A package that is installed without the plugin is of another version, and not missing.
    if (package := package_of(group, name)) and all(owner.distribution != package for owner in components(group)):
        raise PluginError(f"the {kind} {name!r} {missing_package(package)}")
    listed = ", ".join(known) or "none" if len(known) <= _MOST_NAMED else f"{len(known)} others"
    hint = suggestion(name, known) or f"; installed: {listed} (`keval plugins` lists all)"
    raise PluginError(f"no {kind} named {name!r} is installed{hint}")


def select(group: str, name: str) -> Sequence[Component]:
    """Find the plugin of that name, or all of a vendor's when `name` is the part before the slash."""
    vendors = [each.name for each in components(group) if each.name.startswith(f"{name}/")]
    return [find(group, each) for each in ([] if has(group, name) else vendors) or [name]]


def label(group: str, name: str) -> str:
    """Return the label of a plugin that a config does not label: its name, without a slash where labels allow none."""
    if found := IN_FILE.fullmatch(name):
        return found[found.lastindex or 1]
    return name.replace("/", ".") if group in _LABELLED else name


def load(component: Component) -> Any:
    """Import the object a component points to. Raises PluginError naming the package and the remedy."""
    if IN_FILE.fullmatch(component.target):
        return load(find("keval.files", "py")).load(component)
    try:
        return importlib_metadata.EntryPoint(component.name, component.target, component.group).load()
    except Exception as error:  # a plugin's import may raise anything, and only this run is to fail for it
        raise PluginError(
            f"the {component.kind} {component.name!r} of {component.distribution} {component.version} does not import:"
            f" {type(error).__name__}: {error}; reinstall {component.distribution} with what it requires"
        ) from error


def versions(plugins: Iterable[str]) -> dict[str, str]:
    """The installed versions of keval, of these distributions, and of what they directly require, such as an SDK."""
    found = {"keval": _installed("keval-core")[0]}
    for name in sorted({each for each in plugins if not IN_FILE.fullmatch(each)} - {"keval-core"}):
        found[name], requirements = _installed(name)
        for requirement in requirements:
            needed = _DISTRIBUTION.match(requirement)
            # What an extra requires need not be installed, and the metadata do not tell which extras were asked for.
            if needed is None or "extra ==" in requirement:
                continue
            with suppress(importlib_metadata.PackageNotFoundError):  # its marker is for another platform
                found[needed[0]] = _installed(needed[0])[0]
    return found


def summary_of(distribution: str) -> str:
    """Return a distribution's line about itself, if it has one, and its name; nothing is imported."""
    with suppress(importlib_metadata.PackageNotFoundError):
        about = importlib_metadata.distribution(distribution).metadata
        if about is not None and (told := about.get("Summary")):
            return f"{told} ({distribution})"
    return f"from {distribution}"


@cache
def _installed(distribution: str) -> tuple[str, Sequence[str]]:
    """Return the version of a distribution and what it requires; each look would parse its metadata anew."""
    found = importlib_metadata.distribution(distribution)
    return found.version, tuple(found.requires or ())
