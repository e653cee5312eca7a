"""Verdicts in words: what comes first, what shares a line, and numbers that do not contradict a verdict."""

from __future__ import annotations

from typing import Any

from keval_analysis.findings.summary import GateResult, UnmetExpectation
from keval_report.gates import gate_lines, unmet_lines
from keval_report.words import fitted


def result(gate: str, verdict: Any, value: float | None = None, **rest: Any) -> GateResult:
    given = {"ci_low": None, "ci_high": None, "decided_on": "mean", "reason": "", **rest}
    return GateResult(gate, verdict, value, **given)


def test_failed_gates_come_first_and_what_is_no_worse_shares_a_line() -> None:
    regression = {"kind": "regression", "against": "20261122-1", "ci_low": -0.3, "ci_high": -0.1}
    gates = [
        result("m >= 0.8", "held", 0.99, ci_low=0.97, ci_high=1.0, op=">=", threshold=0.8),
        result("usd <= 2", "undecided", reason="no price is known"),
        result("a no worse", "held", 0.1, **regression),
        result("b no worse", "failed", -0.2, **regression),
        result("c no worse", "held", 0.1, **regression),
        result("d no worse", "undecided", kind="regression", against="20261122-1", reason="too few samples"),
        result("e no worse", "undecided", kind="regression", against="20261122-1", reason="too few samples"),
        result("seconds <= +1", "held", 0.2, ci_low=0.1, ci_high=0.3, op="<=", threshold=1.0, kind="effect"),
    ]

    told = [line.plain for line in gate_lines(gates, 100, "explained")]

    assert [
        "gates    b no worse                        failed (-0.20 [-0.30, -0.10])",
        "         usd <= 2                          undecided (no price is known)",
        "         no regression against 20261122-1  undecided (2 means: too few samples)",
        "         m >= 0.8                          held (0.99, low end 0.97)",
        "         seconds <= +1                     held (+0.20, high end +0.30)",
        "         no regression against 20261122-1  held (2 means compared)",
    ] == told
    short = [line.plain for line in gate_lines(gates, 100, "first")]
    assert told[:3] == short[:3]
    assert ["         3 held: m >= 0.8, seconds <= +1, no regression against 20261122-1"] == short[3:]


def test_a_number_is_never_shown_as_its_threshold_unless_it_is() -> None:
    values = {0.8: "0.80", 0.7996: "0.7996", 0.79999: "0.79999", 0.0004: "0.0004", 1234.5: "1,234"}

    told = {value: gate_lines([result("m", "failed", value, threshold=0.8)], 100, "first")[0].plain for value in values}

    assert {value: f"gates    m  failed ({shown})" for value, shown in values.items()} == told


def test_long_gates_and_reasons_are_folded_within_the_width() -> None:
    gate = result("an agent:with a long label/and a long metric >= 0.8", "undecided", reason="so many words " * 9)
    unmet = UnmetExpectation("q", "a", "docs", 1, "contains 'x'", "\x1b[2Jno " * 30)

    lines = [line.plain for line in (*gate_lines([gate], 60, "first"), *fitted(unmet_lines([unmet] * 5, "first"), 60))]

    assert [] == [line for line in lines if len(line) > 60 or "\x1b" in line]
    assert "2 more; `keval report RUN --json` names them under" in " ".join(lines)
