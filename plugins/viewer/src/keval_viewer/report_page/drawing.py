"""Geometry of the page's drawings: axes with round ticks, bars of a histogram, and rows of coloured tiles."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import attrs

from keval import Scale
from keval.plugin import Scorer, Tile

TILE = 14
"""The side of a tile of the heat map, in pixels."""
PITCH = 16
"""The distance between two tiles."""
_BINS = 12
_HISTOGRAM = 168.0


@attrs.frozen
class Axis:
    """A horizontal axis from `low` to `high`, drawn `width` pixels wide."""

    low: float
    high: float
    width: float = 180.0

    def x(self, value: float) -> float:
        """Return where a value is drawn; what lies outside is drawn at the end."""
        share = (value - self.low) / (self.high - self.low)
        return round(self.width * min(1.0, max(0.0, share)), 1)

    @property
    def ticks(self) -> tuple[float, ...]:
        """Three round values: both ends and the middle."""
        return (self.low, (self.low + self.high) / 2, self.high)


def axis_around_zero(values: Iterable[float]) -> Axis:
    """Return an axis with 0 in its middle and round ends, which holds these values."""
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    end = _round_up(largest)
    return Axis(-end, end)


def _round_up(value: float) -> float:
    """Return the next of 1, 2, 2.5, 5 times a power of ten."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 2.5, 5, 10) if value <= step * power * (1 + 1e-9))


@attrs.frozen
class Histogram:
    """How the questions of an arm are spread: `path` draws the bars, over an axis that the arms of a metric share."""

    axis: Axis
    path: str
    height: int
    lowest: float
    median: float
    highest: float


def histogram(values: Sequence[float], axis: Axis, height: int = 26) -> Histogram:
    """Return the histogram of one value per question; there is at least one value."""
    counts = [0] * _BINS
    for value in values:
        share = (value - axis.low) / (axis.high - axis.low)
        counts[min(_BINS - 1, max(0, int(share * _BINS)))] += 1
    pitch, most = axis.width / _BINS, max(counts)
    bars = []
    for number, count in enumerate(counts):
        if count:
            tall = max(2.0, round(height * count / most, 1))
            bars.append(f"M{number * pitch + 1:.1f} {height}v-{tall:g}h{pitch - 2:.1f}v{tall:g}z")
    ranked = sorted(values)
    half = len(ranked) // 2
    median = ranked[half] if len(ranked) % 2 else (ranked[half - 1] + ranked[half]) / 2
    return Histogram(axis, "".join(bars), height, ranked[0], median, ranked[-1])


def axis_of(scale: Scale, values: Iterable[float]) -> Axis:
    """Return the axis of a scale; one without an end reaches to the next round number above its values."""
    if not math.isinf(scale.high):
        return Axis(scale.low, scale.high, _HISTOGRAM)
    largest = max(values, default=scale.low)
    return Axis(scale.low, scale.low + _round_up(largest - scale.low), _HISTOGRAM)


def tile_paths(tiles: Iterable[Tile], columns: Mapping[Scorer, int]) -> dict[str, str]:
    """Return the path of each colour that a row of tiles has."""
    paths: dict[str, str] = {}
    for tile in tiles:
        x = columns[tile.scorer] * PITCH
        paths[tile.level] = paths.get(tile.level, "") + f"M{x} 0h{TILE}v{TILE}h-{TILE}z"
    return paths
