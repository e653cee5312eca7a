"""What the server tells of the weather, and when two names of a city are equal."""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

from typing_extensions import TypedDict

from keval import KevalError

# The MCP SDK makes output schemas of these types and, before Python 3.12, cannot read typing's own inside another.


MAX_DAYS = 5
"""How far a forecast reaches, the day it is made included."""
MAX_INSIGHTS = 50
"""How many sentences are kept of what was learned of a user, the newest ones."""


class WeatherError(KevalError):
    """The weather cannot be told; the message says why and what to do."""


class UnknownCityError(WeatherError):
    """The snapshot has no city of this name."""


class Current(TypedDict):
    """The weather now: temperatures in °C, humidity in percent, wind in m/s, OpenWeather's condition words."""

    city: str
    country: str
    temperature: float
    feels_like: float
    humidity: int
    wind_speed: float
    main_condition: str
    description: str
    units: Literal["metric"]


class Day(TypedDict):
    """One day of a forecast: a local date as `YYYY-MM-DD`, temperatures in °C."""

    date: str
    min_temp: float
    max_temp: float
    main_condition: str
    description: str


class Forecast(TypedDict):
    """The coming days in order, today first."""

    city: str
    country: str
    units: Literal["metric"]
    days: list[Day]


# Letters that Unicode does not take apart into a base letter and a mark.
_UNDIVIDED = str.maketrans({"ł": "l", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i"})
_GAP = re.compile(r"[\W_]+")


def fold(name: str) -> str:
    """Return `name` without case, accents and punctuation: `São Paulo` and `SAO-PAULO` are both `sao paulo`."""
    plain = unicodedata.normalize("NFKD", name).casefold().translate(_UNDIVIDED)
    letters = unicodedata.normalize("NFKD", plain)
    bare = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return _GAP.sub(" ", bare).strip()
