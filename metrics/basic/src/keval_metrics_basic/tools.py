"""Tools: scores whether the expected tool calls were made, in order, with their arguments and without errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from reprlib import Repr
from typing import Any, Literal, TypeAlias

import attrs
from attrs.validators import ge

from keval import Sample, Score, ToolCall, Trial
from keval_metrics_basic.text import Normalisation, excerpt, is_place, listed, no_reference, value_at

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
    expected = [_call(item) for item in (value if isinstance(value, list | tuple) else [value])]
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


def _told(call: ToolCall) -> str:
    return shown(call.name, call.arguments)


def _made(trial: Trial) -> Sequence[ToolCall]:
    return trial.transcript.tool_calls if trial.transcript else ()


def unlisted(trial: Trial) -> str:
    """Say what is not known about the trial's tool calls; empty when all are listed."""
    if trial.transcript is None:
        return "the trial has no transcript"
    if trial.transcript.unlisted_calls is None:
        return "it is not known whether there were any besides those listed"
    count = trial.transcript.unlisted_calls
    return f"{count} more {'is' if count == 1 else 'are'} only counted" if count else ""


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
        # With `never` alone, no call is wanted.
        alone = self.tools is None and self.never
        expected = None if alone else expected_of(self.tools, trial.sample, self.reference)
        if expected is None and not alone:
            return no_reference(trial.sample, self.reference, WANTED, "`tools` or `never`")
        made = _made(trial)
        calls, never = [_told(call) for call in made], read_calls(self.never)
        forbidden = [_told(call) for call in made if any(tool.fits(call, self.arguments) for tool in never)]
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
        if unknown := unlisted(trial):
            return Score(None, f"it is not known which tools were called first: {unknown}")
        made = _made(trial)
        # Reversed, so that of each name the first call is the one that stays.
        first = {call.name: call for call in reversed(made)}
        order = list(dict.fromkeys(call.name for call in made))
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
        if unknown := unlisted(trial):
            return Score(None, f"not all of the trial's tool calls are known: {unknown}")
        made = _made(trial)
        # Where no call is wanted, one that failed is one too many.
        skips = self.failed == "skip" and bool(expected)
        counted = [call for call in made if call.error is None or not skips]
        skipped = [call for call in made if call.error is not None and skips]
        fault = self._fault(expected, counted)
        calls, passed_over = [*map(_told, counted)], [*map(_told, skipped)]
        details = {"expected": [str(tool) for tool in expected[:50]], "called": calls[:50], "skipped": passed_over[:50]}
        called = f"called: {listed(calls) or 'nothing'}"
        if skipped:
            called += f" (not counted, as failed: {listed(passed_over)})"
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

    A call may fit several of them (`get` and `get(city='Oslo')`). Where not all can have one, the earlier ones come
    first.
    """
    # The sum is at its largest where as many as possible have a call, and of these the first ones.
    worth = [len(expected) - number for number in range(len(expected))]
    fitting = [[each * tool.fits(call, how) for call in made] for each, tool in zip(worth, expected, strict=True)]
    chosen = _assigned(fitting) if made else {}
    return [tool for row, tool in enumerate(expected) if row not in chosen or not fitting[row][chosen[row]]]


def _assigned(worth: Sequence[Sequence[float]]) -> dict[int, int]:
    """Return a column for each row, or as many of them as there are columns, so that these add up to the most."""
    from scipy.optimize import linear_sum_assignment  # takes a fifth of a second to import

    return dict(zip(*(axis.tolist() for axis in linear_sum_assignment(worth, maximize=True)), strict=True))


_MOST_CALLS = 200
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
        if unknown := unlisted(trial):
            return Score(None, f"not all of the trial's tool calls are known: {unknown}")
        made = _made(trial)
        pairs: list[tuple[ExpectedCall, ToolCall | None, float]] = []
        for name in dict.fromkeys(tool.name for tool in expected):
            wanted = [tool for tool in expected if tool.name == name][:_MOST_CALLS]
            calls = [call for call in made if wanted[0].is_of(call)][:_MOST_CALLS]
            pairs += _paired(wanted, calls, self.arguments)
        value = sum(share for _, _, share in pairs) / len(pairs)
        details = {
            "calls": [
                {"expected": str(tool), "called": call and _told(call), "share": round(share, 6)}
                for tool, call, share in pairs[:50]
            ]
        }
        lacking = [
            f"{tool} got {_told(call)}" if call else f"no call for {tool}" for tool, call, share in pairs if share < 1
        ]
        return Score(round(value, 6), listed(lacking) or "all expected arguments are there", details=details)


def _paired(
    expected: Sequence[ExpectedCall], calls: Sequence[ToolCall], how: Literal["subset", "exact"]
) -> list[tuple[ExpectedCall, ToolCall | None, float]]:
    """Return each expected call of one tool with the call that it is held against, if there is one, and the share."""
    if not calls:
        return [(tool, None, 0.0) for tool in expected]
    shares = [[_share(tool.arguments or {}, call.arguments, how) for call in calls] for tool in expected]
    # Without SciPy, whose import takes a fifth of a second.
    if len(expected) == 1:
        best = max(range(len(calls)), key=lambda index: shares[0][index])
        return [(expected[0], calls[best], shares[0][best])]
    chosen = _assigned(shares)
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


@attrs.frozen
class NoToolErrors:
    """Scores 1 less the share of tool calls that came back as an error; neutral, at 1, without any call."""

    def score(self, trial: Trial) -> Score:
        """Count the trial's failed tool calls, each as the agent asked for it."""
        if unknown := unlisted(trial):
            return Score(None, f"it is not known which tool calls failed: {unknown}")
        calls = _made(trial)
        failed = [call for call in calls if call.error is not None]
        details = {
            "calls": len(calls),
            "failed": len(failed),
            "errors": [{"tool": excerpt(call.name), "error": excerpt(call.error or "", 500)} for call in failed[:20]],
        }
        if not calls:
            return Score(1.0, "no tool calls", neutral=True, details=details)
        if not failed:
            return Score(1.0, f"none of {len(calls)} tool calls failed", details=details)
        by_tool = Counter(excerpt(call.name) for call in failed)
        names = listed(f"{name} ({count})" if count > 1 else name for name, count in by_tool.items())
        first = excerpt(failed[0].error or "no message")
        reason = f"{len(failed)} of {len(calls)} tool calls failed: {names}; first error: {first}"
        return Score(round(1 - len(failed) / len(calls), 6), reason, details=details)
