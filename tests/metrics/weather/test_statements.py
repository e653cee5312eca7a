"""Reading temperatures and other measurements out of prose."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from keval_metrics_weather.reading.kinds import Kind
from keval_metrics_weather.reading.statements import Statement, reading, weather_data
from keval_metrics_weather.reading.words import Text, read


def temperatures(text: Text, fahrenheit: bool = False) -> Sequence[Statement]:
    return reading(text, (), fahrenheit).temperatures


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("25°C", [25.0]),
        ("25 degrees celsius", [25.0]),
        ("25 ℃", [25.0]),
        ("25C", [25.0]),
        ("-5°C", [-5.0]),
        ("− 5 °C", [-5.0]),
        ("it's –5°C", [-5.0]),
        ("minus five degrees", [-5.0]),
        ("twenty-three degrees", [23.0]),
        ("five below zero", [-5.0]),
        ("negative five degrees", [-5.0]),
        ("-5,0 º C", [-5.0]),
        ("1.013,5 hPa and 7,5 °C", [7.5]),
        ("10 degrees below zero", [-10.0]),
        ("77°F", [25.0]),
        ("It's 72 degrees", [22.22]),
        ("50 degrees, that is 10 °C", [50.0, 10.0]),
        ("Fahrenheit: 50°F now, later 41°", [10.0, 5.0]),
        ("15°C (59°F)", [15.0]),
        ("low of 48 °F (9 °C)", [9.0]),
        ("19 °F / −7 °C", [-7.0]),
        ("27°C right now (81°F, for the locals)", [27.0]),
        ("48 °F (20 °C)", [8.89, 20.0]),  # which no one would call the same
        ("minus 18 right now, feels more like minus 29", [-18.0, -29.0]),
        ("It's 23 below zero (Celsius)", [-23.0]),
        ("the high will be 88 and the low 71", [31.11, 21.67]),
        ("**Temperature:** 15°C", [15.0]),
        ("**20**°C, *20*°C and **68** °F", [20.0, 20.0, 20.0]),
        ("one hundred and two degrees Fahrenheit", [38.89]),
        ("a hundred degrees Fahrenheit", [37.78]),
        ("minus twenty-two point five degrees", [-22.5]),
        ("UV index 3, high of 21, a moderate UV index and low of 12", [21.0, 12.0]),
    ],
)
def test_single_temperatures_are_read_in_celsius(text: str, expected: list[float]) -> None:
    found = [temperature.low for temperature in temperatures(read(text))]

    assert expected == found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("between 3 and 7°C", (3.0, 7.0)),
        ("3-7°C", (3.0, 7.0)),
        ("3 °C to 7 °C", (3.0, 7.0)),
        ("-5–-2°C", (-5.0, -2.0)),
        ("18°/10°C", (10.0, 18.0)),
        ("between three and seven degrees Celsius", (3.0, 7.0)),
        ("two point five to one hundred and two degrees Fahrenheit", (-16.39, 38.89)),
        ("**12–21**°C", (12.0, 21.0)),
        ("temperatures between 3 and 7", (3.0, 7.0)),
    ],
)
def test_ranges_keep_both_ends(text: str, expected: tuple[float, float]) -> None:
    (found,) = temperatures(read(text))

    assert expected == (found.low, found.high)


@pytest.mark.parametrize(
    "text",
    [
        "25 %",
        "10:30",
        "on 2026-06-18, day 3",
        "1,013 hPa",
        "high humidity of 80%",
        "5 degrees warmer than yesterday",
        "a drop by 5 degrees",
        "60.17°N, 24.94°E",
        "version 25 c",
        "5 C-level managers",
        "2 below average",
        "June 18, the 25th, 12/06/2026",
        "temperature at 10:30",
        "25 flights",
        "It's 5 to 10 km away",
        "UV index is high at 7",
        "the air quality index reaches a high of 45",
        "one thousand and two degrees Fahrenheit",
        "twenty-two point two five degrees",
        "twenty point twelve degrees",
    ],
)
def test_numbers_that_are_no_temperature_are_passed_over(text: str) -> None:
    assert () == temperatures(read(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("15°C (feels like 12°C)", ["temperature", "feels_like"]),
        ("It feels chilly at 9°C", ["temperature"]),
        ("It feels like winter with a temperature of 3°C", ["temperature"]),
        ("7°C (2°C with wind chill)", ["temperature", "feels_like"]),
        ("feels like 2°C but actually 7°C", ["feels_like", "temperature"]),
        ("H: 21° L: -12°", ["high", "low"]),
        ("Rain later, 20°C. A low cloud, 15°C", ["temperature", "temperature"]),
        ("a 20°C high and 12°C low", ["high", "low"]),
        ("highs of 20-22°C, dropping to 9°C", ["high", "low"]),
        ("high pressure brings 20°C", ["temperature"]),
        ("The average high temperature is 15 °C, now it's 12 °C", ["usual", "temperature"]),
        ("if it drops below −10 °C, or is colder than 5 °C", ["bound", "bound"]),
        ("below average, at 15 °C", ["temperature"]),
        ("just over 15 °C, a little below 16 °C", ["temperature", "temperature"]),
        ("Over Helsinki, it's 15 °C", ["temperature"]),
        ("0.4 °C, but it feels much colder at −4.6 °C", ["temperature", "feels_like"]),
        ("−4.5°C. The wind makes it feel even colder, though, closer to −11°C.", ["temperature", "feels_like"]),
        ("2 °C with rain, and it may feel as low as −5 °C", ["temperature", "feels_like"]),
        ("**Feels Like:** As low as −6 °C in the wind", ["feels_like"]),
        ("**Temperature:** 2.5 °C (feels like −3.4 °C)", ["temperature", "feels_like"]),
        ("41 °C with a dew point of 19 °C. Water temperature: 23 °C", ["temperature", "dew_point", "water"]),
        ("24 °C around breakfast, climbs to 31 °C by three in the afternoon", ["temperature", "temperature"]),
        ("the high drops to 26 °C", ["high"]),
        ("66 °F by night, 7 °C at the warmest, 26 °C max", ["low", "high", "high"]),
        ("High / Low: 30 °C / 14 °C", ["high", "low"]),
        ("afternoons typically reach only about 9 °C", ["usual"]),
        ("well short of the April record of 28 °C", ["record"]),
        ("| | Now |\n|---|---|\n| Feels like | −3.8 °C |\n| Temperature | 1.6 °C |", ["feels_like", "temperature"]),
        ("| Day | High (°C) | Low (°C) |\n|---|---|---|\n| Mon | 14 | 2 |", ["high", "low"]),
        ("| Hour | Temp. | Feels like |\n|---|---|---|\n| 06h | 9 °C | 6 °C |", ["temperature", "feels_like"]),
    ],
)
def test_what_a_temperature_is_of_is_told_by_the_words_around_it(text: str, expected: list[Kind]) -> None:
    found = [temperature.kind for temperature in temperatures(read(text))]

    assert expected == found


@pytest.mark.parametrize(
    ("expected", "before"),
    [
        ("high", "high of/max/maximum of/peaking at/reaching/up to/climbing to/rising to/warming to/topping out at/H:"),
        ("low", "low of/min/minimum of/overnight/L:/nights around/bottoming out at"),
        ("temperature", "down to/dropping to/dips to/falling to/cooling to"),
        ("feels_like", "feels like/feeling colder:/wind chill/windchill/heat index/humidex/real feel/RealFeel"),
        ("feels_like", "apparent temperature/perceived temperature"),
        ("water", "water temperature/sea temperature/ocean temp"),
        ("usual", "average"),
        ("dew_point", "dew point"),
        (
            "temperature",
            "wind chill but/wind chill whereas/wind chill while/wind chill; now/wind chill! Now/wind chill? Now",
        ),
        ("temperature", "wind chill (now/wind chill | now/wind chill\nnow/wind chill and air/wind chill yet actually"),
        ("temperature", "feels like winter at/feels like winter with a temperature of"),
    ],
)
def test_every_word_that_tells_what_a_temperature_is_of_is_noticed(expected: Kind, before: str) -> None:
    kinds = {words: [t.kind for t in temperatures(read(f"Oslo: {words} 12°C"))] for words in before.split("/")}

    assert {words: [expected] for words in kinds} == kinds


def test_degrees_without_a_scale_follow_the_question_that_asked_for_fahrenheit() -> None:
    (found,) = temperatures(read("It's 50 degrees."), True)

    assert (10.0, True) == (found.low, found.converted)


def test_a_temperature_is_quoted_as_written() -> None:
    (found,) = temperatures(read("It is  −5\u00a0°C today"))

    assert "−5 °C" == found.said


def test_emphasis_is_not_quoted() -> None:
    (found,) = temperatures(read("It is **20**°C"))

    assert "20°C" == found.said


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
