from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any

import pluggy
import pytest

from keval import Message, Sample
from keval.seams import hooks as hookspecs
from keval_weather.ground_truth import GroundTruth


def _facts(sample: Sample) -> Mapping[str, Any] | None:
    return GroundTruth().keval_sample_facts(sample)


def _city(sample: Sample) -> Any:
    facts = _facts(sample)
    return facts and (facts["weather"]["city"], facts["weather"].get("unknown", False))


def test_it_is_found_by_name_and_called_as_a_hook() -> None:
    (found,) = entry_points(group="keval", name="weather/ground-truth")
    manager = pluggy.PluginManager("keval")
    manager.add_hookspecs(hookspecs)
    manager.register(found.load()())

    (facts,) = manager.hook.keval_sample_facts(sample=Sample("s", "Weather in Oslo?"))

    assert facts["weather"]["city"] == "Oslo"


def test_the_truth_is_what_the_server_would_say() -> None:
    facts = _facts(Sample("s", "What's the weather in Łódź?"))

    assert facts is not None
    weather = facts["weather"]
    assert list(weather) == ["city", "country", "current", "daily_summaries", "source"]
    assert (weather["city"], weather["country"], weather["source"]) == ("Łódź", "PL", "snapshot")
    assert (-5.3, "Mist") == (weather["current"]["temperature"], weather["current"]["main_condition"])
    first = {"date": "2026-01-15", "min_temp": -7.9, "max_temp": -3.6, "main_condition": "Mist"}
    assert (5, first) == (len(weather["daily_summaries"]), weather["daily_summaries"][0])


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        (Sample("s", "weather in oslo?", metadata={"city": "Paris"}), ("Paris", False)),
        (Sample("s", "weather in oslo?", metadata={"city": "Xanadoria"}), ("Xanadoria", True)),
        (Sample("s", "Weather in Oslo?", turns=("And in Rome?", "Anything to pack?")), ("Rome", False)),
        (
            Sample("s", "And tomorrow?", history=(Message("user", "In Oslo?"), Message("assistant", "Oslo is cold."))),
            ("Oslo", False),
        ),
        (
            Sample("s", "And there?", history=(Message("user", "I'm in Oslo"), Message("user", "off to Tokyo"))),
            ("Tokyo", False),
        ),
        (Sample("s", "How is it in Oslo?", turns=("Sorry, I meant Łódź.", "And tomorrow?")), ("Łódź", False)),
        (
            Sample("s", "How is it in Oslo?", turns=("I mean New York, not Oslo.", "Do I need a hat?")),
            ("New York", False),
        ),
        (Sample("s", "Will it rain?", turns=("São Paulo", "Thanks. And on Monday?")), ("São Paulo", False)),
        (Sample("s", "I'm from Oslo. How is it in Xanadoria?"), ("Xanadoria", True)),
        (Sample("s", "And in Xanadoria?", history=(Message("user", "In Oslo?"),)), ("Xanadoria", True)),
        (Sample("s", "Thanks to you and Bob", history=(Message("user", "In Oslo?"),)), ("Oslo", False)),
        (Sample("s", "Will it rain?"), None),
        (Sample("s", "Is it nice in Nice?"), ("Nice", False)),
        (Sample("s", "Good weather for camping in person?"), None),
        (Sample("s", "What about Oslo?", facts={"weather": {"city": "given"}}), None),
    ],
)
def test_the_city_is_the_one_that_the_last_question_is_about(sample: Sample, expected: Any) -> None:
    assert expected == _city(sample)


def test_every_city_that_is_asked_about_is_looked_up() -> None:
    facts = GroundTruth().keval_sample_facts(Sample("s", "compare oslo and tokyo now"))

    assert facts is not None
    assert ("Oslo", ["Tokyo"]) == (facts["weather"]["city"], [other["city"] for other in facts["weather"]["others"]])
