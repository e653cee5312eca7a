"""Clock: the times of day that a text names."""

from __future__ import annotations

import re

from keval_metrics_weather.words import Text

__all__ = ["PARTS_OF_DAY", "times_of_day"]

PARTS_OF_DAY = frozenset({"morning", "noon", "afternoon", "evening", "tonight", "midnight"})
_CLOCK = re.compile(r"(\d(?<![\w:.]\d)\d?)(?::(\d{2}))? ?(?:([ap])\.?m\b|(?<=:\d\d)(?!\d)|o'clock\b)")


def times_of_day(text: Text) -> frozenset[str]:
    """Return the parts of the day and the times by the clock that a text names, in one spelling each."""
    clock = {f"{int(hour)}:{minutes or '00'}{half or ''}" for hour, minutes, half in _CLOCK.findall(text.plain)}
    return (PARTS_OF_DAY & text.said) | clock
