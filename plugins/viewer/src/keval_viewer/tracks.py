"""Tracks: the geometry of a timeline as it is drawn, a row for each step: between whom it was, and when.

A row has two drawings. One is a part of the sequence diagram: a column for each lane, and an arrow between two of them.
The other is a part of the waterfall: a bar on an axis of time that all rows share.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

import attrs

from keval.records.formats import short_number, time_span
from keval_analysis.timeline import Lane, Step, Timeline

HEIGHT = 24
"""The height of a row, in pixels."""
_PITCHES = ((4, 64), (6, 52), (math.inf, 40))
"""How far lanes are apart, in pixels, by how many there are at most."""
_TICKS = 4


@attrs.frozen
class Bar:
    """When a step was, in percent of the axis. `kind` is `exact`, `bound`, `open` (it has no known end) or `moment`."""

    x: float
    width: float
    kind: str


@attrs.frozen
class Row:
    """A step as it is drawn. `number` counts from 1; `begin` and `end` are the lanes of its arrow, in pixels.

    `took` is its duration in words, empty for a moment and where it is unknown. `parallel` counts the tool calls that
    were asked for together, this one among them.
    """

    number: int
    step: Step
    begin: float
    end: float
    bar: Bar | None
    took: str
    parallel: int

    @property
    def state(self) -> str:
        """What its colour tells: `refused`, `failed` or nothing."""
        return "refused" if self.step.kind == "refusal" else "failed" if self.step.error is not None else ""

    @property
    def between(self) -> str:
        """Who turned to whom, in words."""
        sender, receiver = lane_name(self.step.sender), lane_name(self.step.receiver)
        return "inside the agent" if self.step.sender == self.step.receiver else f"{sender} → {receiver}"


@attrs.frozen
class Tick:
    """A line across the waterfall, in percent of the axis, with the time in words."""

    x: float
    told: str


@attrs.frozen
class Track:
    """A timeline as it is drawn: its rows, the middles of its lanes in pixels, and the ticks of the axis."""

    timeline: Timeline
    rows: Sequence[Row]
    lanes: Sequence[tuple[Lane, float]]
    pitch: int
    ticks: Sequence[Tick]

    @property
    def width(self) -> int:
        """The width of the sequence diagram in pixels."""
        return self.pitch * len(self.lanes)


def track_of(timeline: Timeline) -> Track:
    """Return how a timeline is drawn."""
    pitch = next(pitch for most, pitch in _PITCHES if len(timeline.lanes) <= most)
    middles = {lane: pitch * (place + 0.5) for place, lane in enumerate(timeline.lanes)}
    together = Counter(step.model_call for step in timeline.steps if step.kind == "tool" and step.model_call)
    rows = tuple(
        Row(
            number,
            step,
            middles[step.sender],
            middles[step.receiver],
            _bar(step, timeline.seconds),
            _took(step),
            together[step.model_call] if step.kind == "tool" and step.model_call else 1,
        )
        for number, step in enumerate(timeline.steps, start=1)
    )
    return Track(timeline, rows, tuple(middles.items()), pitch, tuple(_ticks(timeline.seconds)))


def lane_name(lane: Lane) -> str:
    """Return what a lane is called; a server without a name is any."""
    return lane.kind if lane.kind != "server" else lane.name or "a server"


def _took(step: Step) -> str:
    if step.duration is None or step.kind in ("asked", "said") or (step.kind == "exchange" and step.duration == 0.0):
        return ""
    return f"{'≤ ' if step.is_bound else ''}{time_span(step.duration)}"


def _bar(step: Step, seconds: float | None) -> Bar | None:
    if step.start is None or not seconds:
        return None
    x = _percent(step.start / seconds)
    if step.duration is None:
        return Bar(x, round(100 - x, 3), "open")
    if step.duration == 0.0:
        return Bar(x, 0.0, "moment")
    return Bar(x, min(round(100 - x, 3), _percent(step.duration / seconds)), "bound" if step.is_bound else "exact")


def _percent(share: float) -> float:
    return round(100 * min(1.0, max(0.0, share)), 3)


def _ticks(seconds: float | None) -> Iterator[Tick]:
    """Yield round times from 0 on, far enough from the axis' end to be written there."""
    if not seconds:
        return
    power = 10.0 ** math.floor(math.log10(seconds / _TICKS))
    # Rounding must not take the next larger distance for a time that is round itself.
    distance = next(step * power for step in (1, 2, 5, 10) if step * power * _TICKS >= seconds * (1 - 1e-9))
    for number in range(_TICKS + 1):
        if (at := number * distance) <= 0.8 * seconds:
            yield Tick(_percent(at / seconds), _round_time(at, distance))


def _round_time(seconds: float, distance: float) -> str:
    if not seconds:
        return "0"
    if distance >= 0.1:
        return f"{short_number(round(seconds, 9))} s"
    return f"{short_number(round(seconds * 1000, 6))} ms"
