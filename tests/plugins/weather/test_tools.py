"""Whose state a call touches, and what the server learns of users."""

from __future__ import annotations

from typing import Any

import pytest

from keval_weather.tools import Preferences, PreferenceStore, Scope, ScopeError, find_scope

META = {"keval/trial": "m", "keval/attempt": "1", "keval/preferences": {"dislikes_cold": True}}
HEADERS = {"x-keval-trial": "h%2Fi", "x-keval-preferences": "%7B%22note%22%3A%20%22%C5%82%22%7D"}
ENVIRONMENT = {"KEVAL_TRIAL": "e", "KEVAL_ATTEMPT": "2", "KEVAL_PREFERENCES": '{"dislikes_rain": true}'}


@pytest.mark.parametrize(
    ("meta", "headers", "environment", "expected"),
    [
        (META, HEADERS, ENVIRONMENT, Scope("m", "1", {"dislikes_cold": True})),
        ({}, HEADERS, ENVIRONMENT, Scope("h/i", "", {"note": "ł"})),
        ({}, {}, ENVIRONMENT, Scope("e", "2", {"dislikes_rain": True})),
        ({"progressToken": 1}, {"host": "x"}, {"PATH": "/bin"}, Scope()),
        ({"keval/trial": "m"}, {}, ENVIRONMENT, Scope("m")),
    ],
)
def test_the_place_nearest_to_the_call_wins(
    meta: dict[str, Any], headers: dict[str, str], environment: dict[str, str], expected: Scope
) -> None:
    assert expected == find_scope(meta, headers, environment)


@pytest.mark.parametrize(
    ("meta", "headers", "environment", "message"),
    [
        ({"keval/trial": "t", "keval/preferences": "warm"}, {}, {}, "preferences in the call's _meta are 'warm'"),
        ({}, {"x-keval-trial": "t", "x-keval-preferences": "%7B"}, {}, "x-keval-preferences holds no JSON"),
        ({}, {}, {"KEVAL_PREFERENCES": "[1]"}, r"preferences in KEVAL_PREFERENCES are \[1\]"),
    ],
)
def test_preferences_that_cannot_be_read_are_refused(
    meta: dict[str, Any], headers: dict[str, str], environment: dict[str, str], message: str
) -> None:
    with pytest.raises(ScopeError, match=message):
        find_scope(meta, headers, environment)


NOTHING: Preferences = {"user_id": "u", "preferences": {}, "insights": []}


def test_what_is_learned_is_remembered_and_changes_only_what_it_says() -> None:
    store, scope = PreferenceStore(), Scope("t", "", {"dislikes_cold": True, "dislikes_rain": True})

    store.learn(scope, "u", {"dislikes_rain": False}, "likes puddles")
    store.learn(scope, "u", {}, "likes puddles")
    found = store.learn(scope, "u", {"prefers_sunny": True}, None)

    assert found == store.get(scope, "u")
    assert found == {
        "user_id": "u",
        "preferences": {"dislikes_cold": True, "dislikes_rain": False, "prefers_sunny": True},
        "insights": ["likes puddles"],
    }


def test_no_trial_attempt_or_user_sees_another() -> None:
    store = PreferenceStore()
    store.learn(Scope("t", "1"), "u", {"dislikes_cold": True}, "a secret")

    assert store.get(Scope("t", "2"), "u") == NOTHING
    assert store.get(Scope("s", "1"), "u") == NOTHING
    assert store.get(Scope(), "u") == NOTHING
    assert store.get(Scope("t", "1"), "v") == {**NOTHING, "user_id": "v"}


def test_what_a_caller_does_to_an_answer_stays_with_it() -> None:
    store, seed = PreferenceStore(), {"dislikes_cold": True}
    found = store.get(Scope("t", "", seed), "u")
    found["preferences"].clear()
    found["insights"].append("x")
    store.learn(Scope("t", "", seed), "u", {"dislikes_rain": True}, None)

    assert seed == {"dislikes_cold": True}
    assert store.get(Scope("t"), "u")["preferences"] == {"dislikes_cold": True, "dislikes_rain": True}


def test_beyond_its_capacity_it_forgets_who_was_not_seen_for_longest() -> None:
    store = PreferenceStore(capacity=2)
    for trial in ("a", "b"):
        store.learn(Scope(trial), "u", {"dislikes_cold": True}, None)
    store.get(Scope("a"), "u")
    store.get(Scope("c"), "u")

    assert store.get(Scope("a"), "u")["preferences"] == {"dislikes_cold": True}
    assert store.get(Scope("b"), "u")["preferences"] == {}


def test_only_the_newest_insights_are_kept() -> None:
    store = PreferenceStore(max_insights=2)
    for insight in ("one", "two", "three"):
        store.learn(Scope(), "u", {}, insight)

    assert store.get(Scope(), "u")["insights"] == ["two", "three"]
