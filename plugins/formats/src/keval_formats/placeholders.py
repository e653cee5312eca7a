"""Placeholders, `{{name}}`, in the texts of other tools: filled in for a sample, or written as keval's own."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_MARK = re.compile(r"\{\{-?(.*?)-?\}\}|\{[%#].*?[%#]\}", re.DOTALL)
_NAME = re.compile(r"[\w-]+(?:\.[\w-]+)*")


def filled(value: Any, about: Mapping[str, Any], *, strict: bool = True) -> Any:
    """Fill in the placeholders in all texts of a value; those without a value stay if not `strict`.

    Raises ValueError: one has no value, or is more than a name.
    """
    if isinstance(value, list):
        return [filled(each, about, strict=strict) for each in value]
    if isinstance(value, dict):
        return {key: filled(each, about, strict=strict) for key, each in value.items()}
    return _MARK.sub(lambda mark: _value(mark, about, strict=strict), value) if isinstance(value, str) else value


def as_template(text: str, *place: str) -> str:
    """Write a text as a template of keval, whose values are at a place in the sample's metadata."""

    def written(mark: re.Match[str]) -> str:
        parts = "".join(f"[{part!r}]" for part in (*place, *_name(mark).split(".")))
        return f"{{{{ metadata{parts} }}}}"

    return _MARK.sub(written, text)


def as_text(value: Any) -> str:
    """Return a value as other tools write it into a text."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def text_of(content: Any) -> str:
    """Return the text of a message. Raises ValueError: it has something else."""
    parts = content if isinstance(content, list) else [content]
    texts = [each.get("text") if isinstance(each, dict) else each for each in parts]
    if (found := [each for each in texts if isinstance(each, str)]) != texts:
        raise ValueError("a message has something else than text")
    return "".join(found)


def _name(mark: re.Match[str]) -> str:
    name = (mark[1] or "").strip()
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"{mark[0]!r:.100} is more than a name: filters and logic are not read; write out what it makes"
        )
    return name


def _value(mark: re.Match[str], about: Mapping[str, Any], *, strict: bool) -> str:
    found: Any = about
    for part in (_name(mark) if strict else mark[1] or "").strip().split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    if found is None and strict:
        raise ValueError(f"there is no value for {mark[0]!r}")
    return mark[0] if found is None else as_text(found)
