"""Verdicts in words: a line a gate, and the answers that did not meet what was expected of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from rich.cells import cell_len
from rich.text import Text

from keval.analysis.gate_language import SHARES
from keval.findings.summary import GateResult, GateVerdict, UnmetExpectation
from keval.report.words import counted, folded, one_line, padded

_ORDER = ("failed", "undecided", "held")
_STYLES = {"held": "green", "failed": "bold red", "undecided": "yellow"}
_LABEL = "gates  "
_MOST_DIGITS = 6
_SELDOM = 0.01
"""From which probability on it is told that another run would decide otherwise."""


class GateRow(NamedTuple):
    """A gate, its verdict, and what it was found to be, in words."""

    gate: str
    verdict: GateVerdict
    detail: str


def gate_rows(results: Sequence[GateResult]) -> list[GateRow]:
    """Return a row for each gate: failed ones first, then those that are undecided.

    The means that are no worse than in another run share a row, and so do those that cannot be compared for one reason.
    """
    rows: list[GateRow] = []
    shared: dict[tuple[str, GateVerdict, str], list[GateResult]] = {}
    for result in results:
        if result.kind == "regression" and result.verdict != "failed":
            reason = result.reason if result.verdict == "undecided" else ""
            shared.setdefault((str(result.against), result.verdict, reason), []).append(result)
        else:
            rows.append(_row(result))
    for (against, verdict, reason), group in shared.items():
        if len(group) == 1 and verdict == "undecided":
            rows.append(_row(group[0]))
            continue
        detail = f"{counted(len(group), 'mean')} compared" if verdict == "held" else f"{len(group)} means: {reason}"
        rows.append(GateRow(f"no regression against {one_line(against)}", verdict, one_line(detail)))
    return sorted(rows, key=lambda row: _ORDER.index(row.verdict))


def _row(result: GateResult) -> GateRow:
    return GateRow(one_line(result.gate), result.verdict, one_line(_detail(result)))


def gate_lines(results: Sequence[GateResult], width: int, decided_on: str = "") -> list[Text]:
    """Return the rows of gates as lines, and on what they were decided; colours only repeat words."""
    rows = gate_rows(results)
    column = min(max((cell_len(row.gate) for row in rows), default=0), width // 2)
    lines = [line for row in rows for line in _lines(*row, column, width - column - len(_LABEL) - 2)]
    if rows and decided_on:
        lines += [Text(line, "yellow") for line in folded(decided_on, width - len(_LABEL))]
    return [Text.assemble(" " * len(_LABEL) if number else _LABEL, line) for number, line in enumerate(lines)]


def _lines(gate: str, verdict: str, detail: str, column: int, room: int) -> Iterator[Text]:
    """Yield a gate's line, both of its halves folded where they are too long."""
    left = folded(gate, column, hanging=0)
    right = folded(f"{verdict} ({detail})" if detail else verdict, room, hanging=0)
    for number, (written, found) in enumerate(zip_longest(left, right, fillvalue="")):
        line = Text(f"{padded(written, column)}  ")
        first = len(verdict) if number == 0 else 0
        line.append(found[:first], _STYLES[verdict]).append(found[first:])
        line.rstrip()
        yield line


def unmet_lines(unmet: Sequence[UnmetExpectation], width: int, most: int = 20) -> list[Text]:
    """Return lines for each of the first expectations that were not met, and one for the others."""
    told = unmet_texts(unmet, most)
    return [Text(line) for each in told for line in folded(one_line(each), width, indent=len(_LABEL))]


def unmet_texts(unmet: Sequence[UnmetExpectation], most: int = 20) -> list[str]:
    """Return the first expectations that were not met in words, and how many more there are."""
    told = [
        f"{each.sample}, {each.agent} {each.condition}, repetition {each.repetition}: expected: it"
        f" {each.expected}; answer: {each.answered}"
        for each in unmet[:most]
    ]
    if (more := len(unmet) - most) > 0:
        told.append(f"{more} more; `keval report RUN --json` names them under `unmet`")
    return told


def _detail(result: GateResult) -> str:
    """Return what was found, why a gate is undecided, and how often another run would decide otherwise."""
    flakes = result.flakes or 0.0
    told = f"another run would decide otherwise in {100 * flakes:.0f} of 100" if flakes >= _SELDOM else ""
    mark = "exploratory" if result.exploratory else ""
    return "; ".join(filter(None, (_found(result), result.reason, told, mark)))


def _found(result: GateResult) -> str:
    if result.value is None or result.kind == "expect":
        return ""
    value = _number(result, result.value)
    if result.ci_low is None or result.ci_high is None:
        return value
    low, high = _number(result, result.ci_low), _number(result, result.ci_high)
    if result.op is None or result.decided_on in ("low", "high"):
        level = "" if result.level == 0.95 else f" ({100 * result.level:.0f} % interval)"
        return f"{value}, {low} to {high}{level}"
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
