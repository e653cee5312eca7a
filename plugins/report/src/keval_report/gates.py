"""Verdicts in words: a line a gate, and the answers that did not meet what was expected of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from rich.cells import cell_len
from rich.text import Text

from keval.records.formats import counted, number, percent, short_number, signed
from keval_analysis.findings.summary import GateResult, GateVerdict, UnmetExpectation
from keval_analysis.gate_language import SHARES
from keval_report.claims import Level
from keval_report.words import LABEL, folded, one_line, padded

_ORDER = ("failed", "undecided", "held")
_STYLES = {"held": "green", "failed": "bold red", "undecided": "yellow"}
_MOST_UNMET: Mapping[Level, int] = {"first": 3, "explained": 20}
_MOST_DIGITS = 6


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
        # A single one is named, as it has a reason of its own.
        if len(group) == 1 and verdict == "undecided":
            rows.append(_row(group[0]))
            continue
        detail = f"{counted(len(group), 'mean')} compared" if verdict == "held" else f"{len(group)} means: {reason}"
        rows.append(GateRow(f"no regression against {one_line(against)}", verdict, one_line(detail)))
    # Stable: rows with one verdict stay in the order of the config.
    return sorted(rows, key=lambda row: _ORDER.index(row.verdict))


def _row(result: GateResult) -> GateRow:
    return GateRow(one_line(result.gate), result.verdict, one_line(_detail(result)))


def gate_lines(results: Sequence[GateResult], width: int, level: Level, decided_on: str = "") -> list[Text]:
    """Return the rows of gates as lines, and on what they were decided; colours only repeat words.

    At the level `first`, gates that held share a line.
    """
    rows = gate_rows(results)
    held = [row for row in rows if row.verdict == "held"]
    if level == "first" and len(held) > 1:
        rows = [row for row in rows if row.verdict != "held"]
        count = f"{'' if rows else 'all '}{len(held)} held"
        shared = [Text(line) for line in folded(f"{count}: {', '.join(row.gate for row in held)}", width - LABEL)]
        shared[0].highlight_regex(r"\d+ held", _STYLES["held"])
    else:
        shared = []
    column = min(max((cell_len(row.gate) for row in rows), default=0), width // 2)
    lines = [line for row in rows for line in _lines(*row, column, width - column - LABEL - 2)] + shared
    if lines and decided_on:
        lines += [Text(line, "yellow") for line in folded(decided_on, width - LABEL)]
    return [Text.assemble(f"{'' if place else 'gates':<{LABEL}}", line) for place, line in enumerate(lines)]


def _lines(gate: str, verdict: str, detail: str, column: int, room: int) -> Iterator[Text]:
    """Yield a gate's line, both of its halves folded where they are too long."""
    left = folded(gate, column, hanging=0)
    right = folded(f"{verdict} ({detail})" if detail else verdict, room, hanging=0)
    for place, (written, found) in enumerate(zip_longest(left, right, fillvalue="")):
        line = Text(f"{padded(written, column)}  ")
        first = len(verdict) if place == 0 else 0
        line.append(found[:first], _STYLES[verdict]).append(found[first:])
        line.rstrip()
        yield line


def unmet_lines(unmet: Sequence[UnmetExpectation], level: Level) -> list[Text]:
    """Return lines for each of the first expectations that were not met, and one for the others."""
    return [Text(f"{' ' * LABEL}{one_line(each)}") for each in unmet_texts(unmet, _MOST_UNMET[level])]


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
    """Return what was found, and why a gate is undecided."""
    mark = "exploratory" if result.exploratory else ""
    return "; ".join(filter(None, (_found(result), result.reason, mark)))


def _found(result: GateResult) -> str:
    if result.value is None or result.kind == "expect":
        return ""
    value = _figure(result, result.value)
    if result.ci_low is None or result.ci_high is None:
        return value
    low, high = _figure(result, result.ci_low), _figure(result, result.ci_high)
    if result.op is None or result.decided_on in ("low", "high"):
        level = "" if result.level == 0.95 else f" ({percent(result.level)} interval)"
        return f"{value} [{low}, {high}]{level}"
    return f"{value}, low end {low}" if result.op in (">=", ">") else f"{value}, high end {high}"


def _figure(result: GateResult, value: float) -> str:
    """Return a number with two decimals, or with as many more as tell it from the threshold."""
    if result.kind == "resource" and result.metric in SHARES:
        return percent(value, 1)
    signs = result.kind in ("effect", "regression")
    near = result.threshold is not None and abs(value - result.threshold) > 1e-9
    for digits in range(2, _MOST_DIGITS):
        shown = round(value, digits)
        # A figure that is shown as the threshold itself would not tell on which side of it it lies.
        if not (near and shown == result.threshold) and (shown or not value):
            return signed(value, digits) if signs else number(value, digits)
    return short_number(value, 3, signs=signs)
