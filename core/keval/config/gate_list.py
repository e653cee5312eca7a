"""The section `gates:` of a config: a list of expressions, each with its place."""

from __future__ import annotations

from keval.config.evaluation import GateSpec
from keval.config.source import Source
from keval.config.variables import interpolate
from keval.errors import FieldError

__all__ = ["read_gate_list"]

_EXAMPLE = "such as `basic/contains >= 0.8`"


def read_gate_list(source: Source) -> tuple[tuple[GateSpec, ...], list[FieldError]]:
    """Read the section, and what is wrong with it. What the gates say is checked when the plan is made."""
    entries = source.data.get("gates")
    if entries is None:
        return (), []
    if not isinstance(entries, list):
        return (), [FieldError(("gates",), f"expected a list of gates, {_EXAMPLE}")]
    specs: list[GateSpec] = []
    errors: list[FieldError] = []
    for index, entry in enumerate(entries):
        if not isinstance(entry, str):
            errors.append(FieldError(("gates", index), f"expected a gate, {_EXAMPLE}, got {entry!r}"))
            continue
        text, unset = interpolate(entry, ("gates", index))
        errors += [FieldError(at, message) for at, message in unset]
        specs += [] if unset else [GateSpec(str(text), source.place(("gates", index)))]
    return tuple(specs), errors
