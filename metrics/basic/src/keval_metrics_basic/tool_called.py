"""Tools called: did the agent use the tools it should, and none that it must not."""

from __future__ import annotations

from typing import Any, Literal

import attrs

from keval import Score, Trial
from keval_metrics_basic.arguments import Comparison
from keval_metrics_basic.calls import WANTED, ExpectedCall, Tools, are_named, calls_at, read_calls, shown, unlisted
from keval_metrics_basic.evidence import listed
from keval_metrics_basic.references import is_place, no_reference, value_at

__all__ = ["ToolCalled"]


@attrs.frozen
class ToolCalled:
    """Scores 1 if all of `tools`, or any with `match: any`, were called and none of `never`.

    With neither, all tools of the reference; an empty list asks for no calls at all. A call that failed was a call.
    """

    tools: Tools | None = attrs.field(default=None, validator=are_named)
    never: Tools = attrs.field(default=(), validator=are_named)
    match: Literal["all", "any"] = "all"
    arguments: Comparison = "subset"
    reference: str = attrs.field(default="facts.tools", validator=is_place)

    def score(self, trial: Trial) -> Score:
        """Look for each expected call among the trial's, whatever their number and order."""
        if self.tools is not None:
            expected: tuple[ExpectedCall, ...] | None = read_calls(self.tools)
        elif self.never:
            expected = None
        else:
            value = value_at(trial.sample, self.reference)
            expected = None if value is None else calls_at(value)
            if expected is None:
                return no_reference(trial.sample, self.reference, WANTED, "`tools` or `never`")
        return self._verdict(trial, expected)

    def _verdict(self, trial: Trial, expected: tuple[ExpectedCall, ...] | None) -> Score:
        made = trial.transcript.tool_calls if trial.transcript else ()
        calls = [shown(call.name, call.arguments) for call in made]
        never = read_calls(self.never)
        forbidden = [
            shown(call.name, call.arguments) for call in made if any(tool.fits(call, self.arguments) for tool in never)
        ]
        missing = [tool for tool in expected or () if not any(tool.fits(call, self.arguments) for call in made)]
        details: dict[str, Any] = {
            "called": calls[:50],
            "failed": sum(call.error is not None for call in made),
            "missing": [str(tool) for tool in missing[:50]],
            "forbidden": forbidden[:50],
        }
        called = f"called: {listed(calls) or 'nothing'}"
        if forbidden:
            return Score(0.0, f"called {listed(forbidden)}, which must never be called", details=details)
        if expected == () and made:
            return Score(0.0, f"no tool was to be called; {called}", details=details)
        satisfied = expected is None or (
            len(missing) < len(expected) if expected and self.match == "any" else not missing
        )
        unknown = unlisted(trial)
        if unknown and (trial.transcript is None or not expected or never or not satisfied):
            return Score(None, f"not all of the trial's tool calls are known: {unknown}; {called}", details=details)
        if satisfied:
            return Score(1.0, called, details=details)
        wanted = "none of" if self.match == "any" else "no call of"
        return Score(0.0, f"{wanted} {listed(map(str, missing))}; {called}", details=details)
