"""Plain data as YAML that a person would write: texts of several lines as blocks, keys in their order."""

from __future__ import annotations

from typing import Any

import yaml

__all__ = ["yaml_text"]

_WIDTH = 120


class _Dumper(yaml.SafeDumper):
    """Writes lists indented below their key, and texts of several lines as blocks."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text.strip("\n") or text.endswith("\n") else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style=style)


_Dumper.add_representer(str, _text)


def yaml_text(data: Any) -> str:
    """Return plain data as YAML."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH)
