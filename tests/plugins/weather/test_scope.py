from __future__ import annotations

from typing import Any

import pytest

from keval_weather.scope import Scope, ScopeError, find_scope

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
