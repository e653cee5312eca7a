"""Argument match: how many of the expected arguments did the agent's tool calls have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import attrs

from keval import Score, ToolCall, Trial
from keval_metrics_basic.arguments import agree
from keval_metrics_basic.calls import ExpectedCall, Tools, are_named, expected_of, shown, unlisted
from keval_metrics_basic.evidence import listed
from keval_metrics_basic.references import is_place, no_reference

__all__ = ["ArgumentMatch"]

_MOST = 200
"""Calls of one tool that are looked at, and expected ones; an agent may loop."""


@attrs.frozen
class ArgumentMatch:
    """Scores the share of expected arguments that calls of the agent had, averaged over the expected calls.

    Each expected call is held against a call of its own, so that the shares add up to as much as possible; one that was
    not made scores 0. With `arguments: exact`, an argument too many counts as a wrong one. Expected calls that name no
    arguments are left out.
    """

    tools: Tools | None = attrs.field(default=None, validator=are_named)
    arguments: Literal["subset", "exact"] = "subset"
    reference: str = attrs.field(default="facts.tools", validator=is_place)

    def score(self, trial: Trial) -> Score:
        """Compare the arguments of the expected calls with those of the trial's calls, of all its turns."""
        named = expected_of(self.tools, trial.sample, self.reference)
        expected = [tool for tool in named or () if tool.arguments is not None]
        if not expected:
            return no_reference(trial.sample, self.reference, "a list of {name, arguments}", "`tools`")
        unknown = unlisted(trial)
        if trial.transcript is None or unknown:
            return Score(None, f"not all of the trial's tool calls are known: {unknown}")
        made = trial.transcript.tool_calls
        pairs: list[tuple[ExpectedCall, ToolCall | None, float]] = []
        for name in dict.fromkeys(tool.name for tool in expected):
            wanted = [tool for tool in expected if tool.name == name][:_MOST]
            calls = [call for call in made if wanted[0].is_of(call)][:_MOST]
            pairs += _paired(wanted, calls, self.arguments)
        value = sum(share for _, _, share in pairs) / len(pairs)
        details = {
            "calls": [
                {"expected": str(tool), "called": call and shown(call.name, call.arguments), "share": round(share, 6)}
                for tool, call, share in pairs[:50]
            ]
        }
        lacking = [_told(tool, call) for tool, call, share in pairs if share < 1]
        return Score(round(value, 6), listed(lacking) or "all expected arguments are there", details=details)


def _paired(
    expected: Sequence[ExpectedCall], calls: Sequence[ToolCall], how: Literal["subset", "exact"]
) -> list[tuple[ExpectedCall, ToolCall | None, float]]:
    """Return each expected call of one tool with the call that it is held against, if there is one, and the share."""
    if not calls:
        return [(tool, None, 0.0) for tool in expected]
    shares = [[_share(tool.arguments or {}, call.arguments, how) for call in calls] for tool in expected]
    if len(expected) == 1:
        best = max(range(len(calls)), key=lambda index: shares[0][index])
        return [(expected[0], calls[best], shares[0][best])]
    from scipy.optimize import linear_sum_assignment  # takes a fifth of a second to import

    chosen = dict(zip(*(map(int, axis) for axis in linear_sum_assignment(shares, maximize=True)), strict=True))
    return [
        (tool, calls[chosen[row]], shares[row][chosen[row]]) if row in chosen else (tool, None, 0.0)
        for row, tool in enumerate(expected)
    ]


def _share(expected: Mapping[str, Any], found: Any, how: Literal["subset", "exact"]) -> float:
    """Return which share of the expected arguments a call has; of all arguments of both, if it is to be exact."""
    if not isinstance(found, Mapping):  # models write what they like
        return 0.0
    right = sum(name in found and agree(value, found[name], how) for name, value in expected.items())
    of = len(expected.keys() | found.keys()) if how == "exact" else len(expected)
    return right / of if of else 1.0


def _told(tool: ExpectedCall, call: ToolCall | None) -> str:
    return f"{tool} got {shown(call.name, call.arguments)}" if call else f"no call for {tool}"
