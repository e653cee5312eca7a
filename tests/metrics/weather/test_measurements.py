"""Finding what a text measures."""

from __future__ import annotations

import pytest

from keval_metrics_weather.reading.measurements import weather_data
from keval_metrics_weather.reading.words import read


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-4°C, humidity 91%, wind 2.2 m/s", ("-4°C", "91%", "2.2 m/s")),
        ("Humidity: 91, wind speed is 2.2", ("humidity: 91", "wind speed is 2.2")),
        ("wind 5", ("wind 5",)),
        ("wind at 10:30 on 2026-06-18", ()),
    ],
)
def test_each_measurement_is_found_once_and_whole(text: str, expected: tuple[str, ...]) -> None:
    assert expected == weather_data(read(text)).measured
