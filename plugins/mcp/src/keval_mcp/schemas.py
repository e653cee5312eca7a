"""JSON Schemas of tools: what a reference in one leads to, and whether arguments fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jsonschema.protocols import Validator


def referred(root: Any, reference: Any) -> Any:
    """Return the part of a schema that a reference within it, as `#/$defs/Name`, leads to; `None` if there is none."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    for step in reference.split("/")[1:]:
        root = root.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(root, Mapping) else None
    return root


def fit(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> bool:
    """Return whether arguments fit a schema, as far as that can be told without patterns and other documents.

    A pattern of a server could keep keval busy for ever, and a reference could make it fetch things.
    """
    from referencing import Registry  # as for jsonschema: it takes 40 ms to import, and most runs never need it

    try:
        return not any(_validator()(dict(schema), registry=Registry()).iter_errors(dict(arguments)))
    except Exception:  # noqa: BLE001 - a schema that is none, in any way that one can be wrong, refuses nothing
        return True


@cache
def _validator() -> type[Validator]:
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    unchecked = dict.fromkeys(("pattern", "patternProperties"), _anything)
    found: type[Validator] = extend(Draft202012Validator, unchecked)  # type: ignore[no-untyped-call]
    return found


def _anything(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
    yield from ()
