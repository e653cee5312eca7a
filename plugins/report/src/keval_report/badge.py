"""A badge: one figure of a run with its interval, as data for shields.io, and drawn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal
from xml.sax.saxutils import escape

import attrs

from keval.errors import RunError, suggestion
from keval.records.formats import interval, number, signed
from keval_analysis.findings.effects import Effect, Verdict
from keval_analysis.findings.formats import decimals
from keval_analysis.findings.summary import ArmScore, Summary
from keval_report.words import display_names, one_line

Color = Literal["brightgreen", "red", "blue", "lightgrey"]
_COLORS: dict[Color, str] = {"brightgreen": "#2a7d2e", "red": "#b3261e", "blue": "#1f5fa8", "lightgrey": "#5f6368"}
"""What shields.io calls a colour, and one of ours on which white text can be read."""
_VERDICTS: dict[Verdict, Color] = {"better": "brightgreen", "worse": "red", "same": "blue"}
_WIDTH, _PADDING = 6.6, 10
"""Pixels of a character on average, and beside a text."""


@attrs.frozen
class Badge:
    """What stands on a badge."""

    label: str
    message: str
    color: Color

    def endpoint(self) -> dict[str, object]:
        """Return it as shields.io reads it at a URL: its endpoint schema, version 1."""
        return {"schemaVersion": 1, "label": self.label, "message": self.message, "color": self.color}

    def svg(self) -> str:
        """Return it as a picture."""
        parts = [(self.label, "#333"), (self.message, _COLORS[self.color])]
        widths = [round(len(text) * _WIDTH) + _PADDING for text, _ in parts]
        name, drawn, left = escape(f"{self.label}: {self.message}", {'"': "&quot;"}), "", 0
        for (text, color), width in zip(parts, widths, strict=True):
            drawn += f'<rect x="{left}" width="{width}" height="20" fill="{color}"/>'
            drawn += f'<text x="{left + width / 2}" y="14" textLength="{width - _PADDING}">{escape(text)}</text>'
            left += width
        head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{left}" height="20" role="img" aria-label="{name}">'
        font = '<g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">'
        return f"{head}<title>{name}</title>{font}{drawn}</g></svg>\n"


def badge_of(summary: Summary, wanted: Mapping[str, str | None]) -> Badge:
    """Return the badge of the first effect, or without any the first mean, of the `wanted` metric, condition and agent.

    Primary metrics come first. What is not sure is told as undecided, and what a simulated model said as simulated.
    Raises RunError: there is none.
    """
    given = {key: value for key, value in wanted.items() if value is not None}
    figures: list[Effect | ArmScore] = [*summary.effects, *summary.arms]
    found = [each for each in figures if each.n and all(getattr(each, key) == given[key] for key in given)]
    if not found:
        known = sorted({each.metric for each in figures if each.n})
        hint = suggestion(given.get("metric", ""), known) or f"; it has {', '.join(known) or 'no scores'}"
        raise RunError(f"the run {summary.run} has no such figure{hint}")
    first = min(found, key=lambda each: (isinstance(each, ArmScore), each.metric not in summary.primary))
    color: Color = "blue"
    value, places = "", 2
    if isinstance(first, Effect):
        color, places = _VERDICTS.get(first.verdict, "lightgrey"), decimals(first)
        value = "" if color == "lightgrey" else signed(first.difference, places)
    elif first.ci_low is not None:
        value = number(first.mean)
    told = f"{value} {interval(first.ci_low, first.ci_high, places)}" if value else "undecided"
    if summary.simulated or not value:
        color = "lightgrey"
    label = f"{one_line(first.condition)}: {display_names(each.scorer for each in summary.scorers)[first.scorer]}"
    return Badge(label, f"{'simulated: ' if summary.simulated else ''}{told}, n={first.n}", color)
