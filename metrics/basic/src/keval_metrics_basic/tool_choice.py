"""Tool choice: is the tool that is right for a question among the first that the agent called."""

from __future__ import annotations

from typing import Literal

import attrs
from attrs.validators import ge

from keval import Score, Trial
from keval_metrics_basic.calls import WANTED, Tools, are_named, expected_of, shown, unlisted
from keval_metrics_basic.evidence import listed
from keval_metrics_basic.references import is_place, no_reference

__all__ = ["ToolChoice"]


@attrs.frozen
class ToolChoice:
    """Scores 1 if any of `tools`, or all with `match: all`, are among the first `k` tools that the agent called.

    A tool counts once, however often it was called, and arguments are not looked at. An empty list asks for no calls at
    all.
    """

    k: int = attrs.field(default=1, validator=ge(1))
    tools: Tools | None = attrs.field(default=None, validator=are_named)
    match: Literal["any", "all"] = "any"
    reference: str = attrs.field(default="facts.tools", validator=is_place)

    def score(self, trial: Trial) -> Score:
        """Look for the expected tools among the first that were called."""
        expected = expected_of(self.tools, trial.sample, self.reference)
        if expected is None:
            return no_reference(trial.sample, self.reference, WANTED, "`tools`")
        unknown = unlisted(trial)
        if trial.transcript is None or unknown:
            return Score(None, f"it is not known which tools were called first: {unknown}")
        first = {call.name: call for call in reversed(trial.transcript.tool_calls)}
        order = list(dict.fromkeys(call.name for call in trial.transcript.tool_calls))
        chosen = [first[name] for name in order[: self.k]]
        wanted = {tool.name: tool for tool in expected}
        found = [name for name, tool in wanted.items() if any(tool.is_of(call) for call in chosen)]
        rank = next((n for n, name in enumerate(order, 1) if any(t.is_of(first[name]) for t in wanted.values())), None)
        details = {
            "expected": [shown(name) for name in list(wanted)[:50]],
            "called": [shown(name) for name in order[:50]],
            "rank": rank,
        }
        called = f"called first: {listed(shown(call.name) for call in chosen) or 'nothing'}"
        if not wanted:
            return Score(0.0 if order else 1.0, f"no tool was to be called; {called}", details=details)
        if len(found) == len(wanted) or (found and self.match == "any"):
            return Score(1.0, called, details=details)
        missing = listed(shown(name) for name in wanted if name not in found)
        later = f"; the first of them came as number {rank}" if rank is not None and rank > self.k else ""
        return Score(0.0, f"no call of {missing} among the first {self.k}; {called}{later}", details=details)
