"""How figures are written for people, everywhere: numbers, differences, intervals, shares, counts, times.

A minus is `-`, a share is `5 %`, and an interval stands by its ends: `+0.27 [+0.17, +0.35]`.
"""

from __future__ import annotations

import math


def number(value: float | None, places: int = 2) -> str:
    """Return a number; one of at least 100 has no decimals, and an unknown one is `–`."""
    if value is None:
        return "–"
    if math.isinf(value):
        return "∞"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    # Adding zero removes the sign of -0.0.
    return f"{round(value, places) + 0.0:.{places}f}"


def signed(value: float | None, places: int = 2) -> str:
    """Return a difference with its sign, which 0 has too; `–` for an unknown one."""
    return with_sign(number(value, places), value)


def short_number(value: float, digits: int = 6, *, signs: bool = False) -> str:
    """Return a number with no more digits than it needs, such as a limit that somebody chose, or a tick of an axis."""
    told = f"{value:,.0f}" if abs(value) >= 100 and digits < 6 else f"{value + 0.0:.{digits}g}"
    return with_sign(told, value) if signs and value else told


def percent(share: float, places: int = 0, *, signs: bool = False) -> str:
    """Return a share: `5 %`."""
    told = f"{round(100 * share, places) + 0.0:.{places}f} %"
    return with_sign(told, share) if signs else told


def counted(count: int, what: str) -> str:
    """Return a count with what is counted, in the plural unless it is one."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def interval(low: float | None, high: float | None, places: int = 2, *, signs: bool = False) -> str:
    """Return an interval by its ends, `[0.10, 0.30]`; an empty text if an end is unknown."""
    if low is None or high is None:
        return ""
    told = signed if signs else number
    return f"[{told(low, places)}, {told(high, places)}]"


def time_span(seconds: float) -> str:
    """Return a span of time with as much detail as one remembers: `340 µs`, `34 ms`, `3.4 s`, `3 min 20 s`, `2 h`."""
    # Each bound is where rounding would give 1000 of the smaller unit, or a digit more than its neighbours have.
    if seconds < 0.000_5:
        return f"{seconds * 1e6:.0f} µs" if seconds else "0 s"
    if seconds < 0.999_5:
        return f"{seconds * 1000:.{0 if seconds >= 0.009_95 else 1}f} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 1:
        return f"{rest} s"
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours:,} h {minutes} min" if minutes else f"{hours:,} h"


def with_sign(told: str, value: float | None) -> str:
    """Return a figure as a text with its sign, a plus where it has no minus; one that is unknown as it is."""
    return told if value is None or told.startswith("-") else f"+{told}"
