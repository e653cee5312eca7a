"""How fragments are drawn: templates with the filters that they share, axes, histograms and rows of coloured tiles."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from statistics import median
from typing import Any
from urllib.parse import quote

import attrs
import orjson
from jinja2 import BaseLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from keval import Scale
from keval.records.formats import counted, interval, number, percent, short_number, signed, time_span
from keval.records.models import dollars
from keval.records.scores import Scorer
from keval_analysis.findings.formats import chance, expense, expense_interval
from keval_analysis.question_comparisons import Tile
from keval_report.gates import unmet_texts
from keval_report.origin import decided_on, origin_label
from keval_report.routing import ROUTING_HEADS
from keval_report.sentences import sentences
from keval_report.totals import PARETO, cost_effectiveness, money
from keval_report.transcripts import given_words, kept_words, verdict_word
from keval_report.use import TEXT_HEADS, TOOL_HEADS, tool_cells
from keval_report.words import one_line, witnesses
from keval_viewer.markdown import formatted

TILE = 14
"""The side of a tile of the heat map, in pixels."""
PITCH = 16
"""The distance between two tiles."""
_BINS = 12
_HISTOGRAM = 168.0
_LONGEST = 20_000
"""Characters of one text that the page shows."""
_READABLE = orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS
# Not orjson, which refuses the lone surrogates that an answer may have.
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


TITLES: Mapping[str, str] = {
    "effects": "Effects",
    "gates": "Gates",
    "questions": "Questions",
    "claims": "Unverified claims",
    "distributions": "Scores",
    "reviews": "Reviews by people",
    "slices": "Slices",
    "differences": "What the arms differ in",
    "trials": "Trials",
    "texts": "Instructions and skills",
    "routing": "Choice of skills and tools",
    "parts": "Parts of plugins",
    "tools": "Use of tools",
    "making": "How it was made",
}
"""The headings of a page's sections, in their order."""


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
    # Rounding must not take the next larger end for a value that is round itself.
    return next(step * power for step in (1, 2, 2.5, 5, 10) if value <= step * power * (1 + 1e-9))


@attrs.frozen
class Histogram:
    """How the questions of an arm are spread: `path` draws the bars, over an axis that the arms of a metric share."""

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
    for place, count in enumerate(counts):
        if count:
            tall = max(2.0, round(height * count / most, 1))
            left, wide = round(place * pitch + 1, 1), round(pitch - 2, 1)
            bars.append(f"M{left} {height}v-{tall}h{wide}v{tall}z")
    return Histogram("".join(bars), height, min(values), median(values), max(values))


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


def render(template: str, /, **values: Any) -> Markup:
    """Render a template of this package, which escapes every value."""
    return Markup(_own().get_template(template).render(**values))  # noqa: S704


def parts(template: str, /, **values: Any) -> Iterator[Markup]:
    """Render a template as `render` does, part by part, so that a long page is never in memory as a whole."""
    return map(Markup, _own().get_template(template).generate(**values))


def rounded(value: float | None) -> float | None:
    """Return a figure as the data of a page's script has it."""
    return None if value is None else round(value, 4)


def anchor(sample: str) -> str:
    """Return the id of a question's element, which links go to: any sample's id becomes one without spaces."""
    return f"sample-{quote(sample.encode('utf-8', 'replace'), safe='')}"


def embedded(data: Any) -> Markup:
    """Return data as JSON for a script element, which no text in it can end. The element must hold data only."""
    text = _ENCODER.encode(data)
    # Only `<` can end a script element or begin a comment in it; the others end a line of JavaScript.
    for char, code in (("<", "\\u003c"), ("\u2028", "\\u2028"), ("\u2029", "\\u2029")):
        text = text.replace(char, code)
    return Markup(text)  # noqa: S704


def embedded_items(items: Iterable[Any]) -> Iterator[Markup]:
    """Yield a list as `embedded` returns it, item by item."""
    yield Markup("[")
    for place, item in enumerate(items):
        if place:
            yield Markup(",")
        yield embedded(item)
    yield Markup("]")


@cache
def _own() -> Environment:
    return environment(PackageLoader("keval_viewer.report_page"))


def environment(loader: BaseLoader) -> Environment:
    """Return an environment for templates that a loader finds, with autoescape, and with the filters of pages."""
    environment = Environment(
        loader=loader,
        auto_reload=False,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: tuple[Any, ...] = (chance, counted, dollars, formatted, given_words, kept_words, number, one_line, percent)
    filters += (readable, short_number, signed, verdict_word, witnesses)
    environment.filters |= {each.__name__: each for each in filters}
    environment.filters |= dict[str, Any](
        count=_counted, label=_label, pretty=_pretty, shortened=_shortened, span=time_span
    )
    called: tuple[Any, ...] = (anchor, cost_effectiveness, decided_on, expense, expense_interval, interval, money)
    called += (origin_label, sentences, tool_cells, unmet_texts)
    environment.globals |= {each.__name__: each for each in called}
    environment.globals |= {"PARETO": PARETO, "PITCH": PITCH, "TILE": TILE, "TITLES": TITLES}
    environment.globals |= {"ROUTING_HEADS": ROUTING_HEADS, "TEXT_HEADS": TEXT_HEADS, "TOOL_HEADS": TOOL_HEADS}
    return environment


def _shortened(text: str) -> str:
    """Return a text that is at most so long, with what was cut said."""
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]}\n… {len(text) - _LONGEST:,} more characters are in the run"


def _pretty(data: Any) -> str:
    """Return plain data as indented JSON."""
    plain = dict(data) if isinstance(data, Mapping) else data
    try:
        return _shortened(orjson.dumps(plain, default=str, option=_READABLE).decode())
    except orjson.JSONEncodeError:  # a lone surrogate, which can be shown but not encoded
        return _shortened(json.dumps(plain, ensure_ascii=False, indent=2, default=str))


def readable(text: str) -> str:
    """Return a tool's result as indented JSON if it is JSON, else as it is."""
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, indent=2)
    # JSON may be nested thousands deep.
    except (ValueError, RecursionError):
        return text


def _counted(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def _label(value: Any) -> str:
    """Return a value of metadata: a list as its items, a mapping as JSON."""
    if isinstance(value, list | tuple):
        return ", ".join(map(_label, value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
