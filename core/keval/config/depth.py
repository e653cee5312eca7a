"""How deeply a YAML text is nested, found without recursion."""

from __future__ import annotations

import re

import yaml

from keval.errors import ConfigError, Problem

__all__ = ["check_depth"]

_DEEPEST = 200
"""Levels of lists and mappings. The C loader calls itself for each, and some thousands end the process."""

_INDENT = re.compile(r"^[ ?:-]+", re.MULTILINE)
_Loader: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def check_depth(text: str, name: str) -> None:
    """Refuse a text that is nested too deeply, by its events, which are read without recursion. Raises ConfigError."""
    # A level takes a bracket, or a column of its own: most files cannot be so deep, and are not read twice.
    if text.count("[") + text.count("{") < _DEEPEST and _deepest_indent(text) < _DEEPEST // 2:
        return
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _DEEPEST:
                mark = event.start_mark
                place = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name
                raise ConfigError([Problem(place, f"nested more than {_DEEPEST} levels deep; write it flatter")])
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _deepest_indent(text: str) -> int:
    return max(map(len, _INDENT.findall(text)), default=0)
