"""Verdicts in words: a line a gate, and the answers that did not meet what was expected of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.text import Text

from keval.gates.expression import SHARES
from keval.report.console import safe
from keval.verdicts import GateResult, UnmetExpectation

__all__ = ["gate_lines", "unmet_lines"]

_ORDER = ("failed", "undecided", "held")
_STYLES = {"held": "green", "failed": "bold red", "undecided": "yellow"}
_LABEL = "gates  "
_WIDEST = 60
"""Columns up to which verdicts stand below each other."""
_MOST_DIGITS = 6


def gate_lines(results: Iterable[GateResult]) -> list[Text]:
    """Return a line for each gate: failed ones first, then those that are undecided; colours only repeat words.

    The metrics that are no worse than in another run share a line.
    """
    told = [result for result in results if result.kind != "regression" or result.verdict != "held"]
    kept = [result for result in results if result.kind == "regression" and result.verdict == "held"]
    rows = [(result.gate, result.verdict, _detail(result)) for result in told]
    if kept:
        rows.append((f"no regression against {kept[0].against}", "held", f"{len(kept)} means compared"))
    rows.sort(key=lambda row: _ORDER.index(row[1]))
    width = max((len(gate) for gate, _, _ in rows if len(gate) <= _WIDEST), default=0)
    return [
        Text.assemble(
            _LABEL if number == 0 else " " * len(_LABEL),
            safe(gate.ljust(width)),
            "  ",
            (verdict, _STYLES[verdict]),
            safe(f" ({detail})" if detail else ""),
        )
        for number, (gate, verdict, detail) in enumerate(rows)
    ]


def unmet_lines(unmet: Sequence[UnmetExpectation], most: int = 20) -> list[Text]:
    """Return a line for each of the first expectations that were not met, and one for the others."""
    lines = [
        Text.assemble(
            " " * len(_LABEL),
            safe(f"{each.sample}  {each.agent} {each.condition}, repetition {each.repetition}: expected that it "),
            safe(f"{each.expected}; answered: {each.answered}"),
        )
        for each in unmet[:most]
    ]
    if (more := len(unmet) - most) > 0:
        lines.append(Text(f"{' ' * len(_LABEL)}{more} more; `keval report RUN --json` names them under `unmet`"))
    return lines


def _detail(result: GateResult) -> str:
    """Return what was found, and why a gate is undecided."""
    return "; ".join(filter(None, (_found(result), result.reason)))


def _found(result: GateResult) -> str:
    if result.value is None or result.kind == "expect":
        return ""
    value = _number(result, result.value)
    if result.ci_low is None or result.ci_high is None:
        return value
    low, high = _number(result, result.ci_low), _number(result, result.ci_high)
    if result.kind == "regression" or result.decided_on in ("low", "high"):
        return f"{value}, {low} to {high}"
    return f"{value}, low end {low}" if result.op in (">=", ">") else f"{value}, high end {high}"


def _number(result: GateResult, value: float) -> str:
    """Return a number with two decimals, or with as many more as tell it from the threshold."""
    if result.kind == "resource" and result.metric in SHARES:
        return f"{value:.1%}"
    sign = "+" if result.kind in ("effect", "regression") else ""
    if abs(value) >= 100:
        return f"{value:{sign},.0f}"
    near = result.threshold is not None and abs(value - result.threshold) > 1e-9
    for digits in range(2, _MOST_DIGITS):
        shown = round(value, digits)
        if not (near and shown == result.threshold) and (shown or not value):
            return f"{shown + 0.0:{sign}.{digits}f}"
    return f"{value:{sign}.3g}"
