"""Spans of time in words."""

from __future__ import annotations

__all__ = ["time_span"]


def time_span(seconds: float) -> str:
    """Return a span of time with as much detail as one remembers: `0.4 s`, `13 s`, `3 min 20 s`, `10 min`, `2 h`."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 1:
        return f"{rest} s"
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours:,} h {minutes} min" if minutes else f"{hours:,} h"
