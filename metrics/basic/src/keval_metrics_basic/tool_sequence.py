"""Tool sequences: did the agent make the expected calls, in the expected order."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Literal

import attrs

from keval import Score, ToolCall, Trial
from keval_metrics_basic.arguments import Comparison
from keval_metrics_basic.calls import WANTED, ExpectedCall, Tools, are_named, expected_of, shown, unlisted
from keval_metrics_basic.evidence import listed
from keval_metrics_basic.references import is_place, no_reference

__all__ = ["ToolSequence"]


@attrs.frozen
class ToolSequence:
    """Scores 1 if the calls of `tools`, or else of the reference, were made.

    `exact` means these and no others; `in_order` allows others between them; `any_order` allows others and any order.
    An empty list asks for no calls at all. `failed: skip` passes over calls that came back as an error.
    """

    tools: Tools | None = attrs.field(default=None, validator=are_named)
    order: Literal["exact", "in_order", "any_order"] = "in_order"
    arguments: Comparison = "subset"
    failed: Literal["skip", "count"] = "skip"
    reference: str = attrs.field(default="facts.tools", validator=is_place)

    def score(self, trial: Trial) -> Score:
        """Compare the trial's calls, of all its turns, with the expected ones."""
        expected = expected_of(self.tools, trial.sample, self.reference)
        if expected is None:
            return no_reference(trial.sample, self.reference, WANTED, "`tools`")
        unknown = unlisted(trial)
        if trial.transcript is None or unknown:
            return Score(None, f"not all of the trial's tool calls are known: {unknown}")
        made = trial.transcript.tool_calls
        # Where no call is wanted, one that failed is one too many.
        skips = self.failed == "skip" and bool(expected)
        counted = [call for call in made if call.error is None or not skips]
        skipped = [call for call in made if call.error is not None and skips]
        fault = self._fault(expected, counted)
        calls = [shown(call.name, call.arguments) for call in counted]
        details = {
            "expected": [str(tool) for tool in expected[:50]],
            "called": calls[:50],
            "skipped": [shown(call.name, call.arguments) for call in skipped[:50]],
        }
        called = f"called: {listed(calls) or 'nothing'}"
        if skipped:
            called += f" (not counted, as failed: {listed(shown(call.name, call.arguments) for call in skipped)})"
        return Score(0.0 if fault else 1.0, f"{fault}; {called}" if fault else called, details=details)

    def _fault(self, expected: Sequence[ExpectedCall], made: Sequence[ToolCall]) -> str:
        """Say what is wrong with the calls; empty when nothing is."""
        if not expected:
            return "no tool was to be called" if made else ""
        if self.order == "exact":
            return self._difference(expected, made)
        if self.order == "in_order":
            return self._gap(expected, made)
        missing = _unmatched(expected, made, self.arguments)
        return f"missing: {listed(map(str, missing))}" if missing else ""

    def _difference(self, expected: Sequence[ExpectedCall], made: Sequence[ToolCall]) -> str:
        for number, (tool, call) in enumerate(zip(expected, made, strict=False), start=1):
            if not tool.fits(call, self.arguments):
                return f"call {number} is not {tool}"
        if len(expected) > len(made):
            return f"call {len(made) + 1} is missing: {expected[len(made)]}"
        extra = [call.name for call in made[len(expected) :]]
        return f"{len(extra)} more than expected: {listed(shown(name) for name in extra)}" if extra else ""

    def _gap(self, expected: Sequence[ExpectedCall], made: Sequence[ToolCall]) -> str:
        rest = iter(made)
        for index, tool in enumerate(expected):
            # Each looks on where the last one was found.
            if not any(tool.fits(call, self.arguments) for call in rest):
                after = f" after {expected[index - 1]}" if index else ""
                return f"no {tool}{after}"
        return ""


def _unmatched(expected: Sequence[ExpectedCall], made: Sequence[ToolCall], how: Comparison) -> list[ExpectedCall]:
    """Return the expected calls that are left over when as many as possible have a call of their own.

    A call may fit several of them (`get` and `get(city='Oslo')`), so one that is taken is handed on where its holder
    can have another: augmenting paths, breadth first.
    """
    fitting = [[index for index, call in enumerate(made) if tool.fits(call, how)] for tool in expected]
    holder: dict[int, int] = {}
    held: dict[int, int] = {}
    left_over = []
    for start in range(len(expected)):
        asked_by: dict[int, int] = {}
        waiting = deque([start])
        free: int | None = None
        while waiting and free is None:
            tool = waiting.popleft()
            for call in fitting[tool]:
                if call not in asked_by:
                    asked_by[call] = tool
                    if call not in holder:
                        free = call
                        break
                    waiting.append(holder[call])
        if free is None:
            left_over.append(expected[start])
        while free is not None:
            tool = asked_by[free]
            given_up = held.get(tool)
            holder[free], held[tool] = tool, free
            free = given_up
    return left_over
