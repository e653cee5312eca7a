"""The conditions that `ablate`, or a flag of that name, asks to run without each of their tools."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from keval.config.evaluation import Condition
from keval.errors import FieldError, suggestion

__all__ = ["ablate_errors", "ablate_problem"]


def ablate_problem(label: str, conditions: Mapping[str, Condition]) -> str | None:
    """Return why a condition has no tool to leave out, as far as a config tells."""
    if label not in conditions:
        hint = suggestion(label, conditions) or f"; conditions: {', '.join(conditions) or 'none'}"
        return f"no condition named {label!r}{hint}"
    if not conditions[label].contexts:
        return f"{label!r} has no context, so there is no tool to leave out; name a condition that has one"
    return None


def ablate_errors(
    labels: Sequence[str], conditions: Mapping[str, Condition], wrong: Collection[str]
) -> list[FieldError]:
    """Return what is wrong with the labels of `ablate`; entries that are `wrong` are reported elsewhere."""
    told = {
        index: ablate_problem(label, conditions)
        for index, label in enumerate(labels)
        if label in conditions or label not in wrong
    }
    return [FieldError(("ablate", index), problem) for index, problem in told.items() if problem]
