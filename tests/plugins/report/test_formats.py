"""Figures are written in one way: by two modules, and alike wherever people read them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from keval.records.formats import interval, number, percent, short_number, signed, time_span
from keval.records.models import dollars
from keval_analysis.findings import formats
from keval_analysis.findings.formats import chance, expense, expense_interval, token_count

ROOT = Path(__file__).parents[3]
WRITERS = (
    "plugins/analysis/src/keval_analysis",
    "core/keval/cli",
    "plugins/report/src/keval_report",
    "plugins/viewer/src",
)
"""What writes for people."""
_SPEC = re.compile(r":(?=[^}]*[.+%])[-+,<>^\d.]*[efgEG%]\}|:[+,]*\.\{|\"%[^\"\n]*[efgd][^\"\n]*\"\|format")
"""A format with decimals, a sign or a percent sign, in Python or in a template."""


@pytest.mark.parametrize("folder", WRITERS)
def test_no_other_module_formats_a_figure_by_itself(folder: str) -> None:
    sources = [path for suffix in ("py", "html") for path in (ROOT / folder).rglob(f"*.{suffix}")]
    sources = [path for path in sources if path != Path(formats.__file__)]
    found = [f"{path.relative_to(ROOT)}: {each}" for path in sources for each in _SPEC.findall(path.read_text("utf-8"))]

    assert sources
    assert [] == found


def test_a_minus_a_share_and_an_interval_look_the_same_everywhere() -> None:
    assert ["-0.10", "+0.00", "–", "∞", "1,234"] == [
        *(signed(value) for value in (-0.1, -0.0, None)),
        *(number(value) for value in (float("inf"), 1234.4)),
    ]
    assert ["5 %", "0.5 %", "+60 %", "-20 %"] == [
        percent(0.05),
        percent(0.005, 1),
        percent(0.6, signs=True),
        percent(-0.2, signs=True),
    ]
    assert ["[0.10, 0.30]", "[-0.10, +0.30]", ""] == [
        interval(0.1, 0.3),
        interval(-0.1, 0.3, signs=True),
        interval(None, 0.3),
    ]
    assert ["0.5", "+0.5", "0", "-2", "1.2"] == [
        short_number(0.5),
        short_number(0.5, signs=True),
        short_number(0.0, signs=True),
        short_number(-2.0),
        short_number(1.234, 2),
    ]
    assert ["< 0.001", "0.044", ""] == [chance(0.0004), chance(0.0441), chance(None)]


def test_what_an_answer_takes_has_its_unit() -> None:
    assert ["+0.14 s", "-561 tokens", "1.2 tool calls", "+$0.0012", "-$0.41"] == [
        expense("seconds", 0.142, signs=True),
        expense("tokens", -561.2, signs=True),
        expense("tool_calls", 1.19),
        expense("usd", 0.00123, signs=True),
        expense("usd", -0.41),
    ]
    assert "[+0.11, +0.18]" == expense_interval("seconds", 0.11, 0.18)
    assert ["340 µs", "3.4 ms", "340 ms", "3.4 s", "2 min 5 s", "2 h"] == [
        time_span(seconds) for seconds in (0.00034, 0.0034, 0.34, 3.4, 125.0, 7200.0)
    ]
    assert ["9,999 tokens", "0.01 M tokens"] == [token_count(9_999), token_count(10_000)]
    assert ["$0", "$0.41", "$1,234"] == [dollars(usd) for usd in (0.0, 0.41, 1234.4)]
