"""Calls: reads which tool calls are expected, and compares calls and their arguments with them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from reprlib import Repr
from typing import Any, Literal, TypeAlias

import attrs

from keval import Sample, ToolCall, Trial
from keval_metrics_basic.text import Normalisation, excerpt, value_at

Comparison: TypeAlias = Literal["ignore", "subset", "exact"]
"""`subset`: each expected argument is there with an equal value; `exact`: and there are no others."""

_NORMAL = Normalisation(ignore_whitespace=False)
_DEEPEST = 50
"""Models make up arguments; nothing nested deeper is taken to agree."""


def agree(expected: Any, found: Any, how: Comparison, depth: int = 0) -> bool:
    """Compare values of JSON: 5 equals 5.0, texts without case and outer space, mappings at any depth by `how`."""
    if how == "ignore":
        return True
    if depth > _DEEPEST:
        return False
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        if how == "exact" and expected.keys() != found.keys():
            return False
        return all(key in found and agree(value, found[key], how, depth + 1) for key, value in expected.items())
    if isinstance(expected, list | tuple) and isinstance(found, list | tuple):
        pairs = zip(expected, found, strict=False)
        return len(expected) == len(found) and all(agree(ours, theirs, how, depth + 1) for ours, theirs in pairs)
    if isinstance(expected, str) and isinstance(found, str):
        return _folded(expected) == _folded(found)
    # True is 1 in Python and is not in JSON.
    if isinstance(expected, bool) or isinstance(found, bool):
        return expected is found
    return bool(expected == found)


def _folded(text: str) -> str:
    return _NORMAL.apply(text).strip()


WANTED = "a list of tool names or of {name, arguments}"

_BRIEFLY = Repr()
_BRIEFLY.maxlevel, _BRIEFLY.maxdict, _BRIEFLY.maxlist, _BRIEFLY.maxstring = 2, 6, 6, 60


@attrs.frozen
class ExpectedCall:
    """A call of a tool by its name; without `arguments`, with whatever arguments."""

    name: str = attrs.field(validator=attrs.validators.min_len(1))
    arguments: Mapping[str, Any] | None = None

    def __str__(self) -> str:
        return shown(self.name, self.arguments)

    def is_of(self, call: ToolCall) -> bool:
        """Say whether a call is of this tool, by the name that the agent has for it or by the server's."""
        return self.name in (call.name, call.tool)

    def fits(self, call: ToolCall, how: Comparison) -> bool:
        """Say whether a call is this one."""
        return self.is_of(call) and (self.arguments is None or agree(self.arguments, call.arguments, how))


Tools: TypeAlias = tuple[str | ExpectedCall, ...]
"""Expected calls as an option has them."""


def are_named(instance: object, attribute: attrs.Attribute[Any], value: Tools | None) -> None:
    """Check, as an attrs validator, that no name of an option is empty."""
    if "" in (value or ()):
        raise ValueError(f"{attribute.name!r} must hold names of tools, got ''")


def read_calls(tools: Iterable[str | ExpectedCall]) -> tuple[ExpectedCall, ...]:
    """Return the expected calls of an option."""
    return tuple(ExpectedCall(tool) if isinstance(tool, str) else tool for tool in tools)


def expected_of(tools: Tools | None, sample: Sample, reference: str) -> tuple[ExpectedCall, ...] | None:
    """Return the expected calls of an option, else those of the sample; `None` when neither names any."""
    if tools is not None:
        return read_calls(tools)
    value = value_at(sample, reference)
    return None if value is None else calls_at(value)


def calls_at(value: Any) -> tuple[ExpectedCall, ...] | None:
    """Read expected calls out of a sample: one or a list; `None` when the value is something else."""
    items = value if isinstance(value, list | tuple) else [value]
    expected = [_call(item) for item in items]
    return None if None in expected else tuple(call for call in expected if call)


def _call(item: Any) -> ExpectedCall | None:
    entry = {"name": item} if isinstance(item, str) else item
    if not isinstance(entry, Mapping) or not entry.keys() <= {"name", "arguments"}:
        return None
    name, arguments = entry.get("name"), entry.get("arguments")
    if not isinstance(name, str) or not name or not isinstance(arguments, Mapping | None):
        return None
    return ExpectedCall(name, arguments)


def shown(name: str, arguments: Any = None) -> str:
    """Return a call as it is read: `get_weather(city='Oslo')`."""
    if not isinstance(arguments, Mapping) or not arguments:
        return excerpt(name)
    pairs = [f"{key}={_BRIEFLY.repr(value)}" for key, value in list(arguments.items())[:6]]
    return excerpt(f"{name}({', '.join(pairs)}{', …' if len(arguments) > 6 else ''})", 200)


def unlisted(trial: Trial) -> str:
    """Say what is not known about the trial's tool calls; empty when all are listed."""
    if trial.transcript is None:
        return "the trial has no transcript"
    if trial.transcript.unlisted_calls is None:
        return "it is not known whether there were any besides those listed"
    count = trial.transcript.unlisted_calls
    return f"{count} more {'is' if count == 1 else 'are'} only counted" if count else ""
