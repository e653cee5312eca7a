"""The report's first line and its last ones: what was run, what it took, and which gates held."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from rich.cells import cell_len
from rich.text import Text

from keval.report.cells import number
from keval.report.expenses import cost_parts
from keval.report.lines import flowed, folded, one_line, padded
from keval.summary import GateResult, Summary

__all__ = ["gate_lines", "headline", "total_lines"]

_SIMULATED = "SIMULATED MODEL: shows that keval works, not what a model can do"
_SIMULATED_JUDGE = "SIMULATED JUDGE: shows that keval works, not how good an answer is"
_GATE_STYLES = {"held": "green", "failed": "red", "undecided": "yellow"}


def headline(summary: Summary, questions: int | None, width: int) -> Iterator[Text]:
    """Yield what was run: the evaluation, questions × repetitions, agents, conditions, and that it was simulated."""
    arms = len(summary.trials)
    parts = [one_line(summary.evaluation)]
    if questions and arms:
        often = f" × {summary.planned // (arms * questions)}" if summary.planned % (arms * questions) == 0 else ""
        parts.append(f"{questions:,} question{'' if questions == 1 else 's'}{often}")
    parts.append(", ".join(dict.fromkeys(one_line(entry.agent) for entry in summary.trials)))
    others = dict.fromkeys(one_line(e.condition) for e in summary.trials if e.condition != summary.baseline)
    parts.append(" → ".join([one_line(summary.baseline), ", ".join(others)]) if others else one_line(summary.baseline))
    judges = {entry.model for entry in summary.judges.values() if entry.simulated}
    if summary.simulated:
        parts.append(_SIMULATED_JUDGE if judges >= {*summary.simulated} else _SIMULATED)
    for position, line in enumerate(flowed(parts, width)):
        text = Text(line)
        if position == 0:
            text.stylize("bold", 0, len(parts[0]))
        text.highlight_regex("SIMULATED (MODEL|JUDGE)", "bold yellow")
        yield text


def total_lines(summary: Summary, width: int) -> Iterator[Text]:
    """Yield what the run took: trials, time, calls, tokens and dollars, as far as they are known."""
    for line in flowed(cost_parts(summary), width):
        text = Text(line)
        text.highlight_regex(r"[\d,]+ failed", "red")
        yield text


def gate_lines(gates: tuple[GateResult, ...], width: int) -> Iterator[Text]:
    """Yield each gate with its verdict and what it was found to be."""
    column = min(max((cell_len(one_line(gate.gate)) for gate in gates), default=0), width // 2)
    for position, gate in enumerate(gates):
        found = [] if gate.value is None else [_figure(gate.value)]
        if gate.ci_low is not None and gate.ci_high is not None:
            found.append(f"95 % interval {_figure(gate.ci_low)} to {_figure(gate.ci_high)}")
        told = [f"{gate.verdict} ({', '.join(found)})" if found else gate.verdict, one_line(gate.reason)]
        written = list(folded(one_line(gate.gate), column, hanging=0))
        verdict = list(folded(": ".join(filter(None, told)), width - column - 9, hanging=0))
        for row, (left, right) in enumerate(zip_longest(written, verdict, fillvalue="")):
            line = Text("gates  " if position == row == 0 else " " * 7).append(f"{padded(left, column)}  ")
            first = len(gate.verdict) if row == 0 else 0
            line.append(right[:first], _GATE_STYLES[gate.verdict]).append(right[first:])
            line.rstrip()
            yield line


def _figure(value: float) -> str:
    return number(value) if abs(value) >= 0.1 else f"{value:.2g}"
