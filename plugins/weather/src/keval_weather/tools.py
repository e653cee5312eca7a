"""The weather tools as an MCP server: what they take, and what they learn of users, kept apart by trial."""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any, TypedDict
from urllib.parse import unquote

import attrs
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import Field

from keval import KevalError
from keval_weather.snapshot import Snapshot
from keval_weather.source import MAX_DAYS, MAX_INSIGHTS, Current, Forecast, WeatherError

_FIELDS = ("trial", "attempt", "preferences")


class ScopeError(KevalError):
    """A caller described its trial in a way that cannot be read."""


@attrs.frozen
class Scope:
    """One attempt at a trial, with the preferences its users begin with; outside of keval all is one scope."""

    trial: str = ""
    attempt: str = ""
    preferences: Mapping[str, Any] = attrs.field(factory=dict)


def find_scope(meta: Mapping[str, Any], headers: Mapping[str, str], environment: Mapping[str, str]) -> Scope:
    """Read the scope from wherever keval put it; the place nearest to the call wins.

    Behind the tap that is the call's `_meta` (`keval/trial`, `keval/attempt`, `keval/preferences`); over HTTP the
    headers (`x-keval-trial` and so on, percent-encoded, the preferences as JSON); over stdio the server's environment
    (`KEVAL_TRIAL` and so on). Raises ScopeError.
    """
    if "keval/trial" in meta:
        trial, attempt, preferences = (meta.get(f"keval/{field}") for field in _FIELDS)
        return _checked(trial, attempt, preferences, "the call's _meta")
    if "x-keval-trial" in headers:
        trial, attempt, text = (unquote(headers.get(f"x-keval-{field}", "")) for field in _FIELDS)
        return _checked(trial, attempt, _parsed(text, "x-keval-preferences"), "the header x-keval-preferences")
    trial, attempt, text = (environment.get(f"KEVAL_{field.upper()}", "") for field in _FIELDS)
    return _checked(trial, attempt, _parsed(text, "KEVAL_PREFERENCES"), "KEVAL_PREFERENCES")


def _parsed(text: str, place: str) -> Any:
    try:
        return json.loads(text or "{}")
    except ValueError as error:
        raise ScopeError(f"{place} holds no JSON ({error}); give it an object of names and values") from error


def _checked(trial: Any, attempt: Any, preferences: Any, place: str) -> Scope:
    if not isinstance(preferences, Mapping | None):
        raise ScopeError(f"the preferences in {place} are {preferences!r}; give an object of names and values")
    return Scope(str(trial or ""), str(attempt or ""), preferences or {})


class Preferences(TypedDict):
    """What is known about one user: flags such as `dislikes_cold`, and what was learned in words, oldest first."""

    user_id: str
    preferences: dict[str, Any]
    insights: list[str]


@attrs.frozen(eq=False)
class PreferenceStore:
    """Preferences by attempt at a trial and by user.

    A user begins every attempt anew, with the preferences of its scope. Memory is bounded: beyond `capacity` users
    the one not seen for longest is forgotten, and of a user's insights the newest `max_insights` are kept.
    """

    capacity: int = 10_000
    max_insights: int = MAX_INSIGHTS
    _users: OrderedDict[tuple[str, str, str], Preferences] = attrs.field(factory=OrderedDict, init=False, repr=False)

    def get(self, scope: Scope, user_id: str) -> Preferences:
        """Return what is known about the user; the caller may change the copy."""
        return _copy(self._seen(scope, user_id))

    def learn(self, scope: Scope, user_id: str, flags: Mapping[str, bool], insight: str | None) -> Preferences:
        """Set the flags given, keep an insight that is new, and return what is known now."""
        known = self._seen(scope, user_id)
        known["preferences"].update(flags)
        if insight and insight not in known["insights"]:
            known["insights"].append(insight)
            del known["insights"][: -self.max_insights]
        return _copy(known)

    def _seen(self, scope: Scope, user_id: str) -> Preferences:
        key = (scope.trial, scope.attempt, user_id)
        if key not in self._users:
            known = {name: value for name, value in scope.preferences.items() if name != "insights"}
            insights = [str(text) for text in scope.preferences.get("insights") or ()]
            self._users[key] = Preferences(user_id=user_id, preferences=known, insights=insights)
            if len(self._users) > self.capacity:
                self._users.popitem(last=False)
        self._users.move_to_end(key)
        return self._users[key]


def _copy(known: Preferences) -> Preferences:
    return Preferences(
        user_id=known["user_id"], preferences=dict(known["preferences"]), insights=list(known["insights"])
    )


_City = Annotated[str, Field(description="Name of the city, for example Helsinki, New York or São Paulo")]
_Days = Annotated[
    int,
    Field(
        description=f"How many days, 1 to {MAX_DAYS}; the first is today, so tomorrow takes 2",
        json_schema_extra={"minimum": 1, "maximum": MAX_DAYS},  # published; checked below in plainer words
    ),
]
_User = Annotated[str, Field(description="Id of the user", max_length=200)]
_Insight = Annotated[str | None, Field(description="What was learned about the user, in one sentence", max_length=1000)]
_READS = ToolAnnotations(read_only_hint=True)
_WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True)


def _flag(meaning: str) -> Any:
    return Field(description=f"{meaning}; leave out to change nothing")


def build_server(source: Snapshot, store: PreferenceStore) -> MCPServer:
    """Build the server; it tells the weather from `source` and keeps what it learns in `store`."""
    server = MCPServer(
        "keval-weather",
        instructions="Current weather, forecasts and the user's weather preferences. All figures are metric.",
        log_level="WARNING",
    )

    @server.tool(annotations=_READS)
    async def get_current_weather(city: _City) -> Current:
        """Get the current weather in a city: temperature in °C, humidity, wind and conditions."""
        with _explained():
            return source.current(city)

    @server.tool(annotations=_READS)
    async def get_weather_forecast(city: _City, days: _Days = 3) -> Forecast:
        """Get the weather forecast for a city by day: lowest and highest temperature in °C and conditions."""
        with _explained():
            if not 1 <= days <= MAX_DAYS:
                raise WeatherError(f"a forecast covers 1 to {MAX_DAYS} days, not {days}; ask for fewer days")
            return source.forecast(city, days)

    @server.tool(annotations=_READS)
    async def get_user_preferences(user_id: _User, ctx: Context) -> Preferences:
        """Get what is known about a user's weather preferences, such as disliking the cold."""
        with _explained():
            return store.get(_scope(ctx), user_id)

    @server.tool(annotations=_WRITES)
    async def update_user_preferences_from_insight(
        user_id: _User,
        *,
        ctx: Context,
        insight_text: _Insight = None,
        dislikes_cold: Annotated[bool | None, _flag("Whether the user dislikes cold weather")] = None,
        dislikes_heat: Annotated[bool | None, _flag("Whether the user dislikes hot weather")] = None,
        dislikes_rain: Annotated[bool | None, _flag("Whether the user dislikes rain")] = None,
        dislikes_wind: Annotated[bool | None, _flag("Whether the user dislikes wind")] = None,
        prefers_sunny: Annotated[bool | None, _flag("Whether the user prefers sunny weather")] = None,
        prefers_indoor: Annotated[bool | None, _flag("Whether the user prefers to be indoors")] = None,
        outdoor_activities: Annotated[bool | None, _flag("Whether the user enjoys outdoor activities")] = None,
        sensitive_to_weather: Annotated[bool | None, _flag("Whether the weather affects how the user feels")] = None,
    ) -> Preferences:
        """Remember a preference that the user has just stated, such as hating the cold or loving hikes."""
        stated = {
            "dislikes_cold": dislikes_cold,
            "dislikes_heat": dislikes_heat,
            "dislikes_rain": dislikes_rain,
            "dislikes_wind": dislikes_wind,
            "prefers_sunny": prefers_sunny,
            "prefers_indoor": prefers_indoor,
            "outdoor_activities": outdoor_activities,
            "sensitive_to_weather": sensitive_to_weather,
        }
        flags = {name: value for name, value in stated.items() if value is not None}
        with _explained():
            if not (flags or insight_text):
                raise WeatherError("there is nothing to remember; give insight_text or at least one preference")
            return store.learn(_scope(ctx), user_id, flags, insight_text)

    return server


def _scope(ctx: Context) -> Scope:
    return find_scope(dict(ctx.request_context.meta or {}), ctx.headers or {}, os.environ)


@contextmanager
def _explained() -> Iterator[None]:
    """Hand an explained error to the model as the tool's error."""
    try:
        yield
    except KevalError as error:
        raise ToolError(str(error)) from error
