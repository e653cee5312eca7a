"""The plugin that is checked: found by name, given as a class or as an instance, and constructed from its options."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from keval.config.structure import resolve_fields, structure
from keval.errors import PluginError
from keval.plan.construct import METHODS
from keval.records.models import Model
from keval.seams import registry
from keval_testing.broken_rules import Checklist

OPTIONS_RULES = {
    "options": "make the class an attrs class whose fields are its options, and annotate each with the type it takes",
    "seam": "give it the methods of its seam; docs/plugins.md has them",
}
"""The rules of every plugin, with their remedies."""
_METHODS = {**METHODS, "keval.datasets": ("read",), "keval.exporters": ("export",)}
_UNKNOWN = "no_such_option"


@attrs.frozen
class Subject:
    """A plugin of one group, to be checked.

    `target` is its class, or an instance. `options` are as a config has them: a path or a model is a text.
    """

    group: str
    name: str
    target: Any
    options: Mapping[str, Any]

    @classmethod
    def of(cls, group: str, plugin: Any, options: Mapping[str, Any] | None = None) -> Subject:
        """Find a plugin by its name, or take a class or an instance. Raises PluginError: none is installed so."""
        if isinstance(plugin, str):
            return cls(group, plugin, registry.load(registry.find(group, plugin)), options or {})
        if options and not isinstance(plugin, type):
            raise TypeError("options are for a class or a name; construct the instance with them")
        return cls(group, _named(plugin), plugin, options or {})

    @property
    def told(self) -> str:
        """What messages call it."""
        return f"the {registry.GROUPS[self.group]} {self.name!r}"

    def new(self) -> Any:
        """Construct it as a run does; the same object, if it was given as an instance.

        Raises:
            PluginError: its options are wrong, or it cannot be constructed.
        """
        if not isinstance(self.target, type):
            return self.target
        if not attrs.has(self.target):
            return self.target()
        plugin, errors = structure(self.target, dict(self.options), (), Path.cwd())
        if errors:
            told = "; ".join(f"{'.'.join(map(str, error.path)) or 'options'}: {error.message}" for error in errors)
            raise PluginError(f"{self.told} cannot be constructed: {told}; give its `options`")
        return plugin

    def check_options(self, checklist: Checklist) -> bool:
        """Check that it is of its seam and that its options are strict; returns whether it can be constructed."""
        if isinstance(self.target, type) and not attrs.has(self.target) and _takes_arguments(self.target):
            checklist.broken(
                "options", "it is no attrs class, and its constructor takes arguments that no config gives"
            )
            return False
        if isinstance(self.target, type) and attrs.has(self.target):
            try:
                self._check_strictness(checklist)
            except PluginError as error:
                checklist.broken("options", str(error))
                return False
        plugin = self.new()
        methods = _METHODS.get(self.group, ())
        if methods and not any(callable(getattr(plugin, method, None)) for method in methods):
            checklist.broken("seam", f"it has no method {' or '.join(f'{method}()' for method in methods)}")
            return False
        return True

    def _check_strictness(self, checklist: Checklist) -> None:
        given = dict(self.options)
        _, errors = structure(self.target, {**given, _UNKNOWN: 1}, (), Path.cwd())
        if (_UNKNOWN,) not in [error.path for error in errors]:
            checklist.broken("options", "an unknown option is taken without a word")
        for field in attrs.fields(self.target):
            if field.init:
                # No type that an option can have takes this.
                _, errors = structure(self.target, {**given, field.name: object()}, (), Path.cwd())
                if field.name not in [error.path[0] for error in errors if error.path]:
                    checklist.broken("options", f"the option {field.name!r} takes a value of any type")


def model_options(plugin: Any) -> list[str]:
    """Return the names of the options that name a model, of a plugin's class or of an instance."""
    cls = plugin if isinstance(plugin, type) else type(plugin)
    if not attrs.has(cls):
        return []
    resolve_fields(cls)
    return [each.name for each in attrs.fields(cls) if each.init and each.type in (Model, Model | None)]


def _named(plugin: Any) -> str:
    cls = plugin if isinstance(plugin, type) else type(plugin)
    return f"{cls.__module__}.{cls.__qualname__}"


def _takes_arguments(target: type) -> bool:
    parameters = inspect.signature(target).parameters.values()
    return any(
        each.default is each.empty and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD) for each in parameters
    )
