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
from keval.plugin import Model, suggestion
from keval.seams import registry
from keval_testing.broken_rules import BrokenRule, BrokenRulesError

OPTIONS_RULES = {
    "options": "make the class an attrs class whose fields are its options, and annotate each with the type it takes",
    "seam": "give it the methods of its seam; docs/plugins.md has them",
}
"""The rules of every plugin, with their remedies."""
_METHODS = {**METHODS, "keval.datasets": ("read",), "keval.exporters": ("export",)}
_UNKNOWN = "no_such_option"


@attrs.frozen
class Subject:
    """A plugin of one group, to be checked by rules, and what it was found to break.

    `target` is its class, or an instance. `options` are as a config has them: a path or a model is a text. `remedies`
    are those of each rule, by name. Rules that it `cannot` keep, which have the reason in place of a remedy, are not
    noted.
    """

    group: str
    name: str
    target: Any
    options: Mapping[str, Any]
    remedies: Mapping[str, str]
    cannot: Mapping[str, str] = attrs.field(factory=dict)
    found: list[BrokenRule] = attrs.field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        for rule in self.cannot:
            if rule not in self.remedies:
                raise ValueError(f"there is no rule {rule!r}{suggestion(rule, self.remedies, 'the rules are')}")

    @classmethod
    def of(
        cls,
        group: str,
        plugin: Any,
        options: Mapping[str, Any] | None,
        remedies: Mapping[str, str],
        cannot: Mapping[str, str] | None = None,
    ) -> Subject:
        """Find a plugin by its name, or take a class or an instance. Raises PluginError: none is installed so."""
        if isinstance(plugin, str):
            name, target = plugin, registry.load(registry.find(group, plugin))
        elif options and not isinstance(plugin, type):
            raise TypeError("options are for a class or a name; construct the instance with them")
        else:
            made_of, target = plugin if isinstance(plugin, type) else type(plugin), plugin
            name = f"{made_of.__module__}.{made_of.__qualname__}"
        return cls(group, name, target, options or {}, remedies, cannot or {})

    def broken(self, rule: str, what: str) -> None:
        """Note that the plugin breaks a rule. The same finding is noted once."""
        entry = BrokenRule(rule, what, self.remedies[rule])
        if rule not in self.cannot and entry not in self.found:
            self.found.append(entry)

    def finish(self) -> None:
        """Raise BrokenRulesError if a rule was broken."""
        if self.found:
            raise BrokenRulesError(self.told, self.found)

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

    def check_options(self) -> bool:
        """Check that it is of its seam and that its options are strict; returns whether it can be constructed."""
        if isinstance(self.target, type) and not attrs.has(self.target) and _takes_arguments(self.target):
            self.broken("options", "it is no attrs class, and its constructor takes arguments that no config gives")
            return False
        if isinstance(self.target, type) and attrs.has(self.target):
            try:
                self._check_strictness()
            except PluginError as error:
                self.broken("options", str(error))
                return False
        plugin = self.new()
        methods = _METHODS.get(self.group, ())
        if methods and not any(callable(getattr(plugin, method, None)) for method in methods):
            self.broken("seam", f"it has no method {' or '.join(f'{method}()' for method in methods)}")
            return False
        return True

    def _check_strictness(self) -> None:
        given = dict(self.options)
        _, errors = structure(self.target, {**given, _UNKNOWN: 1}, (), Path.cwd())
        if (_UNKNOWN,) not in [error.path for error in errors]:
            self.broken("options", "an unknown option is taken without a word")
        for field in attrs.fields(self.target):
            if field.init:
                # No type that an option can have takes this.
                _, errors = structure(self.target, {**given, field.name: object()}, (), Path.cwd())
                if field.name not in [error.path[0] for error in errors if error.path]:
                    self.broken("options", f"the option {field.name!r} takes a value of any type")


def model_options(plugin: Any) -> list[str]:
    """Return the names of the options that name a model, of a plugin's class or of an instance."""
    cls = plugin if isinstance(plugin, type) else type(plugin)
    if not attrs.has(cls):
        return []
    resolve_fields(cls)
    return [each.name for each in attrs.fields(cls) if each.init and each.type in (Model, Model | None)]


def _takes_arguments(target: type) -> bool:
    parameters = inspect.signature(target).parameters.values()
    return any(
        each.default is each.empty and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD) for each in parameters
    )
