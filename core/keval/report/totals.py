"""What a run took in total: trials, time, model calls, tool calls, tokens, dollars."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.text import Text

from keval.records.prices import Cost, dollars
from keval.records.summary import ArmScore, ArmTrials, JudgingTotal, Summary, UsageTotal
from keval.report.figures import counted, number, time_span
from keval.report.lines import flowed


def total_lines(summary: Summary, width: int) -> Iterator[Text]:
    """Yield what the run took: trials, time, calls, tokens and dollars, as far as they are known."""
    for line in flowed(_parts(summary), width):
        text = Text(line)
        text.highlight_regex(r"[\d,]+ failed", "red")
        yield text


def _parts(summary: Summary) -> Iterator[str]:
    """Yield what a run took with failed attempts and judgements, as far as it is known."""
    trials, failed = sum(entry.trials for entry in summary.trials), sum(entry.failed for entry in summary.trials)
    retried = sum(entry.retried for entry in summary.trials)
    of = f"{trials:,} of {counted(summary.planned, 'trial')}" if trials < summary.planned else counted(trials, "trial")
    again = f", {retried:,} retried" if retried else ""
    yield f"{of}, {f'{failed:,}' if failed else 'none'} failed{again}" if trials else of
    if summary.elapsed is not None:
        yield time_span(summary.elapsed)
    asked = [entry.model_calls for entry in summary.trials] + [entry.model_calls for entry in summary.judging]
    model_calls = _sum([*asked, *(entry.given_up.model_calls or None for entry in summary.trials)])
    if model_calls is not None:
        yield counted(model_calls, "model call")
    if (tool_calls := _sum(entry.tool_calls for entry in summary.trials)) is not None:
        yield counted(tool_calls, "tool call")
    tokens, unknown = _tokens(summary)
    if tokens is not None:
        yield f"{_short(tokens)} tokens{f' ({_those(unknown)} did not tell theirs)' if unknown else ''}"
    yield _money(summary)


def total_cost(summary: Summary) -> Cost:
    """Return what all trials and judgements of a run cost."""
    entries: list[ArmTrials | JudgingTotal] = [*summary.trials, *summary.judging]
    return sum((entry.cost for entry in entries), Cost())


def _tokens(summary: Summary) -> tuple[int | None, int]:
    """Return the tokens of all trials and judgements, input and output, and of how many they are unknown."""
    usages = list(_usages(summary))
    tokens = _sum(part for usage in usages for part in (usage.input_tokens, usage.output_tokens))
    return tokens, sum(usage.unknown for usage in usages)


def _money(summary: Summary) -> str:
    cost = total_cost(summary)
    simulated = " (simulated)" if summary.simulated and not cost.usd else ""
    known = "" if cost.usd is None else f"{dollars(cost.usd)}{simulated}"
    if not cost.unknown:
        return known or "nothing was asked"
    if summary.unpriced:
        unknown = f"price unknown for {', '.join(summary.unpriced)}"
    else:
        unknown = f"cost unknown of {_those(cost.unknown)}"
    return f"{known} and {unknown}" if known else unknown


def _usages(summary: Summary) -> Iterator[UsageTotal]:
    for entry in summary.trials:
        yield from (entry.usage, entry.given_up.usage)
    yield from (entry.usage for entry in summary.judging)


def _sum(values: Iterable[int | None]) -> int | None:
    """Return the sum of what is known; `None` if nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _those(number: int) -> str:
    return "1 trial or judgement" if number == 1 else f"{number:,} trials or judgements"


def _short(number: int) -> str:
    """Return a number of tokens: whole below ten thousand, else in millions."""
    return f"{number:,}" if number < 10_000 else f"{number / 1e6:,.2f} M"


PARETO = "◆"
"""Marks an arm than which no other is at least as good for at most as much, and better in one of the two."""


def worth(arm: ArmScore, *, short: bool = False) -> str:
    """Return how much mean an arm has for what an answer costs; empty if the cost is unknown or nothing."""
    thousand = "/1k tokens" if short else " per 1,000 tokens"
    found = [
        f"{number(value)}{unit}"
        for value, unit in ((arm.per_usd, "/$" if short else " per $"), (arm.per_1000_tokens, thousand))
        if value is not None
    ]
    parts = found[:1] if short else found
    mark = f" {PARETO}" if parts and arm.pareto else ""
    return ", ".join(parts) + mark
