"""What the server learns about users: kept in memory, apart for every trial."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, TypedDict

import attrs

from keval_weather.scope import Scope

__all__ = ["PreferenceStore", "Preferences"]


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
    max_insights: int = 50
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
            self._users[key] = Preferences(user_id=user_id, preferences=dict(scope.preferences), insights=[])
            if len(self._users) > self.capacity:
                self._users.popitem(last=False)
        self._users.move_to_end(key)
        return self._users[key]


def _copy(known: Preferences) -> Preferences:
    return Preferences(
        user_id=known["user_id"], preferences=dict(known["preferences"]), insights=list(known["insights"])
    )
