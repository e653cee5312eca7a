"""Reading takes linear time, and options are plain."""

from __future__ import annotations

import importlib
import itertools
import pkgutil
import re
import time
from collections.abc import Callable, Iterator

import attrs
import pytest

import keval_metrics_weather
from keval.seams import registry
from tests.metrics.weather.conftest import make_trial as trial

METRICS = [registry.load(each)() for each in registry.select("keval.metrics", "weather")]


def patterns() -> Iterator[tuple[str, re.Pattern[str]]]:
    for module in pkgutil.walk_packages(keval_metrics_weather.__path__, "keval_metrics_weather."):
        members = vars(importlib.import_module(module.name))
        yield from (
            (f"{module.name}.{name}", value) for name, value in members.items() if isinstance(value, re.Pattern)
        )


def test_every_repeat_in_every_pattern_is_bounded() -> None:
    """A bounded pattern costs at most a constant at each place of a text, which makes reading it linear."""
    unbounded = re.compile(r"(?<!\\)(?:[*+]|\{\d+,\})(?![^\[]*\])")
    found = dict(patterns())

    assert unbounded.search(r"\d+ [ab]")
    assert len(found) > 8
    assert [] == [name for name, pattern in found.items() if unbounded.search(pattern.pattern)]


def growth(work: Callable[[int], object], size: int) -> float:
    """Return how many times longer 16 times the size takes; the least of several, as other work only adds."""

    def seconds(size: int) -> float:
        began = time.process_time()
        work(size)
        return time.process_time() - began

    return min(seconds(16 * size) for _ in range(3)) / min(seconds(size) for _ in range(3))


LINEAR = 64.0
"""16 times the text takes 16 times as long if the work is linear and 256 times if it is quadratic."""


def test_growth_tells_quadratic_work() -> None:
    quadratic = re.compile("a*b")

    assert growth(lambda size: quadratic.search("a" * size), 500) > LINEAR


@pytest.mark.parametrize(
    "piece",
    ["25", "°", "minus ", "no, ", "not ", "I hate the rain ", "it's ", "- ", "25°C in Oslo, ", "high ", "of ", "if ",
     "New York ", "in New {} and ", "in Oslo{} and ", "I like {} ", "you said ", "10:30 ", "E\u0301", "—", "a",
     "I no longer like {} ", "Sorry, ", "Oslo, ", "Which city? For example {}. ", "So, in Oslo{} then? "],
)  # fmt: skip
def test_the_time_for_a_text_grows_with_its_length_and_no_faster(piece: str) -> None:
    fresh = itertools.count()
    weather = {"city": "Oslo", "current": {"temperature": 25, "main_condition": "Rain"}}

    def score_all(size: int) -> None:
        different = (piece.format(chr(0x4E00 + number)) for number in range(size // len(piece)))
        text = "".join(different) + str(next(fresh))  # no cache knows it
        said = trial(text, text, weather=weather, preferences={"dislikes_rain": True}, history=[(text, text)])
        for metric in METRICS:
            metric.score(said)

    assert growth(score_all, 750) < LINEAR


def test_every_option_is_plain_and_has_a_default() -> None:
    kinds = {type(field.default) for metric in METRICS for field in attrs.fields(type(metric))}

    assert kinds <= {int, float, tuple}


def test_only_the_reading_knows_patterns() -> None:
    outside = [name for name, _ in patterns() if not name.startswith("keval_metrics_weather.reading.")]

    assert [] == outside
