"""No input makes a metric raise, and no pattern can take more than linear time."""

from __future__ import annotations

import importlib
import itertools
import json
import pkgutil
import re
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import pytest
from hypothesis import given, settings, strategies as st

import keval_metrics_weather
from keval import Message, Sample, Score, ToolCall, Transcript, Trial

METRICS = [getattr(keval_metrics_weather, name)() for name in keval_metrics_weather.__all__]
MakeTrial = Callable[..., Trial]

PIECES = [
    "25°C", "-5 °C", "°", "minus", "five", "degrees", "between", "3", "and", "7", "77°F", "no", "not", "rain", "won't",
    "umbrella", "should", "you", ",", ".", "\n", "because", "since", "Monday", "tomorrow", "in", "Łódź", "São", "Paulo",
    "feels like", "high", "of", "2026-06-18", "24.94°E", "İ", "ﬁ", "e\u0301\u0316", "I", "hate", "cold", "'", "’s",
]  # fmt: skip

texts = st.one_of(
    st.text(max_size=300),
    st.lists(st.sampled_from(PIECES), max_size=40).map(" ".join),
    st.lists(st.sampled_from(PIECES), max_size=40).map("".join),
)
KEYS = [
    "city", "current", "temperature", "main_condition", "daily_summaries", "date", "min_temp", "max_temp",
    "dislikes_cold", "outdoor_activities", "learned_from_conversations", "value", "x",
]  # fmt: skip
junk = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=12)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(
            st.sampled_from(KEYS),
            inner,
            max_size=5,
        ),
    ),
    max_leaves=20,
)
WEATHER = {
    "city": "Łódź",
    "current": {"temperature": 20, "main_condition": "Rain"},
    "daily_summaries": [{"date": "2026-06-18", "min_temp": 3, "max_temp": 7, "main_condition": "Snow"}] * 3,
}
FACTS = {"weather": WEATHER, "preferences": {"dislikes_cold": True}}
facts = st.one_of(st.just(FACTS), st.dictionaries(st.sampled_from(["weather", "preferences"]), junk))


def assert_sound(score: Score) -> None:
    assert score.value is not None
    assert 0.0 <= score.value <= 1.0
    assert score.reason
    json.dumps(score.details)


@settings(max_examples=150, deadline=None)
@given(answer=texts, question=texts, earlier=st.lists(st.tuples(texts, texts), max_size=2), known=facts)
def test_any_texts_and_any_facts_get_a_score(
    answer: str, question: str, earlier: list[tuple[str, str]], known: dict[str, Any]
) -> None:
    spoken: list[Message] = []
    for user, assistant in earlier:
        spoken += [Message("user", user), Message("assistant", assistant)]
    transcript = Transcript(
        messages=(Message("assistant", answer),),
        tool_calls=(
            ToolCall("update_user_preferences_from_insight", {"dislikes_rain": question}),
            ToolCall("", error=""),
        ),
        unlisted_calls=None if len(question) % 2 else len(answer),
        turn_durations=(1.0,),
    )
    trial = Trial("t", Sample("s", question, history=tuple(spoken), facts=known), "a", "c", 1, transcript)

    for metric in METRICS:
        assert_sound(metric.score(trial))


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: type(metric).__name__)
def test_missing_texts_and_facts_get_a_score(metric: Any) -> None:
    nothing: Any = None
    bare = Trial("t", Sample("s", ""), "a", "c", 1)
    empty = Trial("t", Sample("s", ""), "a", "c", 1, Transcript())
    holes = Trial(
        "t",
        Sample("s", nothing, history=(Message("user", nothing),), facts={"weather": None, "preferences": None}),
        "a",
        "c",
        1,
        Transcript(messages=(Message("assistant", nothing),)),
        characteristics={},
    )

    for trial in (bare, empty, holes):
        assert_sound(metric.score(trial))


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece", ["25", "a", "-", "minus ", "I hate ", "no, ", "25°C tomorrow in Oslo ", "e\u0301\u0316"]
)
def test_a_megabyte_gets_a_score(piece: str, trial: MakeTrial) -> None:
    huge = piece * (1_000_000 // len(piece.encode()))
    weather = {"city": "Oslo", "current": {"temperature": 25, "main_condition": "Rain"}}
    said = trial(huge, "Weather in Oslo?", weather=weather, preferences={"dislikes_rain": True})

    for metric in METRICS:
        assert_sound(metric.score(said))


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


def test_the_work_on_a_text_grows_with_its_length_and_no_faster(trial: MakeTrial) -> None:
    """Counts the function calls that scoring takes, which do not depend on the machine."""
    weather = {"city": "Oslo", "current": {"temperature": 25, "main_condition": "Rain"}}

    def calls(length: int) -> int:
        count = 0

        def note(frame: Any, event: str, argument: Any) -> None:
            nonlocal count
            count += 1

        said = trial("It's 25°C, no rain in Oslo; you should take a coat tomorrow. " * length, weather=weather)
        sys.setprofile(note)
        try:
            for metric in METRICS:
                metric.score(said)
        finally:
            sys.setprofile(None)
        return count

    calls(1)
    small, large = calls(50), calls(500)

    assert large < 12 * small


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
def test_the_time_for_a_text_grows_with_its_length_and_no_faster(piece: str, trial: MakeTrial) -> None:
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
