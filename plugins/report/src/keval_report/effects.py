"""The lines of the report's effects: one row a claim, with a small plot of its interval, within a width."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import attrs
from rich.cells import cell_len
from rich.text import Text

from keval.records.formats import number, percent, short_number, signed
from keval_analysis.findings.formats import aligned, decimals, interval_of
from keval_report.blocks import Block
from keval_report.claims import ADJUSTED, BETTER, CANNOT_TELL, EXPLORATORY, NEEDED, WORSE, Claim, Level, word
from keval_report.words import flowed, folded, padded

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@attrs.frozen
class Axis:
    """The part of the numbers that a plot of `width` characters shows, which includes 0.

    With `percent` the numbers are shares of a scale.
    """

    low: float
    high: float
    width: int
    percent: bool = False

    @classmethod
    def over(cls, values: Iterable[float], width: int, *, percent: bool = False) -> Axis:
        """Return an axis over all the values and 0, with ends that are round numbers."""
        known = [0.0, *values]
        low, high = min(known), max(known)
        step = _step(max(high, -low) or 1.0)
        # A value on a step must not begin another one by rounding.
        first, last = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
        # An axis needs a length, also if all values are 0.
        return cls(first, last or (0.0 if low else step), width, percent)

    def column(self, value: float) -> int:
        """Return the character, from 0, that a value is at; what is beyond an end is at the end."""
        place = (value - self.low) / (self.high - self.low) * (self.width - 1)
        return min(max(round(place), 0), self.width - 1)

    def header(self) -> str:
        """Return the labels of the ends and of 0, each over its character as far as there is room."""
        line = [" "] * self.width
        zero = self.column(0.0)
        for value, place in ((self.low, 0), (self.high, self.width - 1), (0.0, zero)):
            told = percent(value, signs=True) if self.percent else short_number(value, 10, signs=True)
            label = told if value else "0"
            start = min(max(place - len(label) // 2, 0), self.width - len(label))
            around = line[max(start - 1, 0) : start + len(label) + 1]
            if all(character == " " for character in around):
                line[start : start + len(label)] = label
        return "".join(line).rstrip()

    def bar(self, low: float | None, value: float, high: float | None) -> str:
        """Return a row: `│` at 0, `●` at the value and its interval; `┼` where the interval includes 0.

        An interval that goes on beyond the axis ends in `<` or `>`.
        """
        line = [" "] * self.width
        zero = self.column(0.0)
        line[zero] = "│"
        if low is not None and high is not None:
            first, last = self.column(low), self.column(high)
            line[first : last + 1] = ["─"] * (last + 1 - first)
            if low < 0.0 < high:
                line[zero] = "┼"
            line[first] = "├" if low >= self.low else "<"
            line[last] = "┤" if high <= self.high else ">"
        # Last, as it stands over its interval and over 0.
        line[self.column(value)] = "●"
        return "".join(line)


def _step(largest: float) -> float:
    """Return a round step, of which about five to ten reach to the largest value."""
    unit = 10.0 ** math.floor(math.log10(largest) - 1)
    return next((unit * step for step in _STEPS if largest / (unit * step) <= 10), unit * 10)


_STYLES = {BETTER.says: "green", WORSE.says: "red", CANNOT_TELL.says: "yellow"}
_CAPTION = "difference [95 % interval], n questions"
_GAP = 2


@attrs.frozen
class _Row:
    """The cells of a claim as texts."""

    claim: Claim
    means: str
    change: str
    n: str
    verdict: str
    style: str


@attrs.frozen
class _Layout:
    """Which columns there are and how wide they are; 0 leaves one out. `stacked` puts a metric's name above its rows.

    `wording` says how much a verdict tells: 0 a word, 1 the band as well, 2 how many questions would decide as well.
    """

    name: int
    label: int
    means: int
    change: int
    n: int
    plot: int
    verdict: int
    wording: int
    stacked: bool = False

    @property
    def before_plot(self) -> int:
        """How many cells stand before the plot."""
        indent = 2 * _GAP if self.stacked else _GAP + self.name + _GAP
        columns = [self.label, self.means, self.change, self.n]
        return indent + sum(width + _GAP for width in columns if width)

    @property
    def width(self) -> int:
        return self.before_plot + (self.plot + _GAP if self.plot else 0) + self.verdict


def effect_lines(blocks: Sequence[Block], width: int, *, plot: bool = True) -> Iterator[Text]:
    """Yield the lines of blocks, of at most `width` cells, with columns that are the same in all of them.

    As a terminal gets narrower, the plot goes first, then the words beyond the verdict, then n, then a metric's name
    gets a line of its own.
    """
    claims = [claim for block in blocks for claim in block.claims]
    for position, block in enumerate(blocks):
        rows = _rows(block.claims)
        layout = _layout(rows, width, block, plot=plot)
        axis = _axis(block.claims, claims, layout.plot)
        yield from [Text()] if position else []
        yield from _heading(block, layout, axis, width, first=position == 0)
        yield from _block(block, rows, layout, axis, width)


def _rows(claims: Sequence[Claim]) -> list[_Row]:
    effects = [claim.effect for claim in claims]
    befores = aligned([_known(effect.against_mean, decimals(effect)) for effect in effects])
    afters = aligned([_known(effect.mean, decimals(effect)) for effect in effects])
    changes = aligned([signed(effect.difference or 0.0, decimals(effect)) for effect in effects])
    intervals = list(map(interval_of, effects))
    columns = zip(claims, befores, afters, changes, intervals, strict=True)
    rows = []
    for claim, before, after, change, within in columns:
        told, means = word(claim), f"{before} → {after}" if claim.effect.mean is not None else ""
        cells = (means, f"{change} {within}".rstrip(), f"n={claim.effect.n}")
        rows.append(_Row(claim, *cells, told, _STYLES.get(told, "dim")))
    return rows


def _known(value: float | None, places: int) -> str:
    return "" if value is None else number(value, places)


def verdict_words(claim: Claim) -> str:
    """Return the verdict with all that it tells beyond its word."""
    mark = f" ({EXPLORATORY.says})" if EXPLORATORY.holds(claim) else ""
    return f"{word(claim)}{_beyond(claim, 2)}{mark}"


def _beyond(claim: Claim, wording: int) -> str:
    """Return what a verdict tells beyond its word."""
    if wording > 1 and ADJUSTED.holds(claim):
        return f": {ADJUSTED.says.format(number(claim.effect.p_adjusted))}"
    if wording > 1 and claim.needed is not None and NEEDED.holds(claim):
        return f": {NEEDED.says.format(*claim.needed, margin=claim.margin)}"
    if claim.band and wording and (BETTER.holds(claim) or WORSE.holds(claim)):
        return f", now {claim.band}"
    return ""


def _layout(rows: Sequence[_Row], width: int, block: Block, *, plot: bool) -> _Layout:
    """Return the richest layout that fits a width; if none does, the poorest, with shorter names.

    At the level `first`, lines below the rows tell why a verdict is open, and no row does.
    """

    def widest(texts: Iterator[str]) -> int:
        return max(map(cell_len, texts), default=0)

    name = widest(row.claim.name for row in rows)
    label = widest(row.claim.label for row in rows) if block.labelled else 0
    means, change, n = (widest(getattr(row, cell) for row in rows) for cell in ("means", "change", "n"))
    verdicts = [widest(row.verdict + _beyond(row.claim, wording) for row in rows) for wording in range(3)]
    choices = [(20, n, 2), (12, n, 1), (12, n, 0)] if plot else []
    choices += [(0, n, 2), (0, n, 1), (0, n, 0), (0, 0, 0)]
    most = 1 if block.level == "first" else 2
    layouts = [
        _Layout(name, label, means, change, counts, least, verdicts[wording], wording, stacked)
        for stacked in (False, True)
        for least, counts, wording in choices
        if wording <= most
    ]
    layouts.append(attrs.evolve(layouts[-1], means=0))
    for layout in layouts:
        if (spare := width - layout.width) >= 0:
            return attrs.evolve(layout, plot=min(layout.plot + spare, 41)) if layout.plot else layout
    poorest = layouts[-1]
    return attrs.evolve(poorest, label=max(4, label - (poorest.width - width)) if label else 0)


def _axis(claims: Sequence[Claim], every: Sequence[Claim], width: int) -> Axis | None:
    """Return the axis of a block's claims, which blocks on the same scale share.

    It is in units of their scale, or in shares of it if they have several scales. It is as long as the differences and
    the intervals of what is sure need, and a quarter of that to the other side; the intervals of few questions would
    make it too long to read.
    """
    scales = {_span(claim) for claim in claims}
    percent = len(scales) > 1
    alike = [claim for claim in every if (not math.isinf(claim.scale.high) if percent else _span(claim) in scales)]
    sure = [claim for claim in alike if BETTER.holds(claim) or WORSE.holds(claim)] or alike
    known = [point for claim in sure for point in _points(claim, percent=percent) if point is not None]
    known += [point for claim in alike if (point := _points(claim, percent=percent)[1]) is not None]
    room = max(map(abs, known), default=0.0) / 4
    others = [point for claim in alike for point in _points(claim, percent=percent) if point is not None]
    ends = [*known, *(min(max(point, -room), room) for point in others)]
    return Axis.over(ends, width, percent=percent) if width and ends else None


def _span(claim: Claim) -> tuple[float, float, str]:
    return claim.scale.low, claim.scale.high, claim.scale.unit


def _points(claim: Claim, *, percent: bool) -> tuple[float | None, float | None, float | None]:
    """Return the lower end, the difference and the upper end, as shares of the scale if that is asked for."""
    effect, length = claim.effect, claim.scale.high - claim.scale.low if percent else 1.0
    points = (effect.ci_low, effect.difference, effect.ci_high)
    low, value, high = (None if point is None else point / length for point in points)
    return low, value, high


def _bar(claim: Claim, axis: Axis | None) -> str:
    """Return the plot of a row; nothing where a scale without an end has no place on an axis of shares."""
    if axis is None or (axis.percent and math.isinf(claim.scale.high)):
        return ""
    low, value, high = _points(claim, percent=axis.percent)
    return "" if value is None else axis.bar(low, value, high)


def _heading(block: Block, layout: _Layout, axis: Axis | None, width: int, *, first: bool) -> Iterator[Text]:
    """Yield the title, with what the figures are at the first block, and the axis above the plots."""
    title = list(folded(block.title, width, hanging=2))
    yield from (Text(line, "bold") for line in title[:-1])
    line = Text().append(title[-1], "bold")
    caption = _CAPTION + (", as shares of the scale" if axis and axis.percent else "")
    place = layout.before_plot if axis else layout.before_plot - layout.n - layout.change - 2 * _GAP
    place = max(min(place, width - len(caption)), 0)
    labels = axis.header() if axis and block.claims else ""
    if first and block.claims:
        if place >= cell_len(title[-1]) + 3:
            line.pad_right(place - cell_len(title[-1]))
            yield line.append(caption, "dim")
        else:
            yield line
            yield Text(f"{' ' * _GAP}{caption}"[:width], "dim")
        if labels:
            yield Text(" " * layout.before_plot + labels, "dim")
    elif labels and layout.before_plot >= cell_len(title[-1]) + 3:
        line.pad_right(layout.before_plot - cell_len(title[-1]))
        yield line.append(labels, "dim")
    else:
        yield line


def _block(block: Block, rows: Sequence[_Row], layout: _Layout, axis: Axis | None, width: int) -> Iterator[Text]:
    last = None
    explored = False
    for row in rows:
        claim = row.claim
        if EXPLORATORY.holds(claim) and not explored:
            explored = True
            yield Text(f"{' ' * _GAP}{EXPLORATORY.says}:", "dim")
        if layout.stacked and claim.name != last:
            yield from (Text(line) for line in folded(claim.name, width, indent=_GAP))
        yield from _lines(row, layout, axis, width, block.level, named=claim.name != last)
        last = claim.name
    unsaid = _unsaid(block.claims, layout) if block.level == "explained" and layout.wording < 2 else ()
    remarks = [f"{heading}: {told}" for heading, told in (*unsaid, *block.remarks)]
    for line in flowed(remarks, width - _GAP) if block.level == "first" else remarks:
        whole = [" " * _GAP + line] if cell_len(line) <= width - _GAP else folded(line, width, indent=_GAP)
        yield from (Text(part, "dim") for part in whole)


def _unsaid(claims: Sequence[Claim], layout: _Layout) -> Iterator[tuple[str, str]]:
    """Yield what verdicts had no room to tell: how many questions would decide, and why a clear interval does not."""
    whole = [(claim, f"{claim.name}{f' ({claim.label})' if layout.label else ''}") for claim in claims]
    needed = [(claim.needed, name) for claim, name in whole if NEEDED.holds(claim) and not ADJUSTED.holds(claim)]
    if needed:
        yield "questions needed to decide", ", ".join(f"{name} {of[0]:,} to {of[1]:,}" for of, name in needed if of)
    if clear := [f"{name} {number(claim.effect.p_adjusted)}" for claim, name in whole if ADJUSTED.holds(claim)]:
        yield "not significant after adjustment for the number of effects", ", ".join(clear)


def _lines(row: _Row, layout: _Layout, axis: Axis | None, width: int, level: Level, *, named: bool) -> Iterator[Text]:
    """Yield a row, and below it what was lost, if there is no room at its end."""
    claim = row.claim
    line = Text(" " * _GAP + (" " * _GAP if layout.stacked else padded(claim.name if named else "", layout.name)))
    line.append("" if layout.stacked else " " * _GAP)
    for text, size in ((claim.label, layout.label), (row.means, layout.means), (row.change, layout.change)):
        line.append(padded(text, size) + " " * _GAP if size else "")
    line.append(padded(row.n, layout.n) + " " * _GAP if layout.n else "", "dim")
    line.append(padded(_bar(claim, axis), layout.plot) + " " * _GAP if layout.plot else "", row.style)
    line.append(row.verdict, row.style)
    line.append(_beyond(claim, layout.wording))
    notes = [note for note in claim.notes if level == "explained" or note == claim.lost]
    if claim.lost and line.cell_len + _GAP + cell_len(claim.lost) <= width:
        yield line.append(" " * _GAP + claim.lost, "yellow")
        notes = notes[1:]
    else:
        line.rstrip()
        line.truncate(width, overflow="ellipsis")
        yield line
    for told, style in ((claim.correction, ""), ("; ".join(notes), "yellow")):
        yield from (Text(text, style) for text in folded(told, width, indent=3 * _GAP, hanging=3 * _GAP))
