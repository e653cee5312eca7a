"""The bundled snapshot: one day's weather and forecast of some cities."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, timedelta
from functools import cache
from importlib.resources import files
from typing import Any, cast

import attrs

from keval_weather.source import Current, Day, Forecast, UnknownCityError, fold


@attrs.frozen
class _City:
    """A city with its weather; `regions` are the folded names of the country and regions it lies in."""

    aliases: tuple[str, ...]
    regions: frozenset[str]
    current: Current
    days: tuple[Day, ...]


@attrs.frozen
class Snapshot:
    """The weather of one day and the four after it; the figures are made up and never change."""

    _cities: Mapping[str, _City] = attrs.field(repr=False)
    """By every folded name and alias."""

    @property
    def names(self) -> tuple[str, ...]:
        """Every name and alias as people write them, each city's own name first."""
        cities = {city.current["city"]: city for city in self._cities.values()}
        return tuple(name for own, city in cities.items() for name in (own, *city.aliases))

    def current(self, city: str) -> Current:
        """Return the weather on the snapshot's day; raises UnknownCityError."""
        return self._find(city).current.copy()

    def forecast(self, city: str, days: int) -> Forecast:
        """Return the first `days` days from the snapshot's day on; raises UnknownCityError."""
        found = self._find(city)
        return Forecast(
            city=found.current["city"],
            country=found.current["country"],
            units="metric",
            days=[day.copy() for day in found.days[:days]],
        )

    def _find(self, wanted: str) -> _City:
        """Find `Paris`, `Paris, FR` or `paris, france`, but not `Paris, Texas`."""
        name, *places = (fold(part) for part in wanted.split(","))
        city = self._cities.get(name)
        if city is None or not all(place in city.regions for place in places if place):
            raise UnknownCityError(
                f"no city named {wanted!r} is known; check the spelling, or ask for a city of the bundled snapshot,"
                " such as Helsinki, New York, São Paulo or Tokyo"
            )
        return city


@cache
def load_snapshot() -> Snapshot:
    """Read the snapshot that comes with the package; its shape is checked by the package's tests, not here."""
    text = files("keval_weather").joinpath("snapshot.json").read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    first = date.fromisoformat(content["date"])
    cities: dict[str, _City] = {}
    for entry in content["cities"]:
        name, country = entry["city"], entry["country"]
        city = _City(
            aliases=tuple(entry["aliases"]),
            regions=frozenset(map(fold, (country, *content["countries"][country], *entry["regions"]))),
            current=cast("Current", {"city": name, "country": country, "units": "metric", **entry["current"]}),
            days=tuple(
                cast("Day", {"date": (first + timedelta(days=offset)).isoformat(), **day})
                for offset, day in enumerate(entry["days"])
            ),
        )
        cities |= {fold(known): city for known in (name, *city.aliases)}
    return Snapshot(cities)
