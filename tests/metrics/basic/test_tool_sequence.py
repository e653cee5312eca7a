from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations
from typing import Any, Literal

import pytest
from hypothesis import given, settings, strategies as st

from keval import Message, Sample, ToolCall, Transcript, Trial
from keval_metrics_basic import ExpectedCall, ToolSequence

MakeTrial = Callable[..., Trial]
Order = Literal["exact", "in_order", "any_order"]


def calls(names: str) -> list[ToolCall]:
    """Return a call per letter; an upper-case letter is a call that failed."""
    return [ToolCall(name.lower(), error="boom" if name.isupper() else None) for name in names]


@pytest.mark.parametrize(
    ("expected", "made", "values"),
    [
        ("ab", "ab", (1.0, 1.0, 1.0)),
        ("ab", "ba", (0.0, 0.0, 1.0)),
        ("ab", "axb", (0.0, 1.0, 1.0)),
        ("ab", "xbxa", (0.0, 0.0, 1.0)),
        ("ab", "a", (0.0, 0.0, 0.0)),
        ("ab", "abb", (0.0, 1.0, 1.0)),
        ("aa", "a", (0.0, 0.0, 0.0)),
        ("aba", "aab", (0.0, 0.0, 1.0)),
        ("a", "", (0.0, 0.0, 0.0)),
        ("", "", (1.0, 1.0, 1.0)),
        ("", "a", (0.0, 0.0, 0.0)),
        ("", "A", (0.0, 0.0, 0.0)),
        ("ab", "Aab", (1.0, 1.0, 1.0)),
        ("ab", "aB", (0.0, 0.0, 0.0)),
    ],
)
def test_exact_in_order_and_any_order(
    expected: str, made: str, values: tuple[float, float, float], trial: MakeTrial
) -> None:
    orders: tuple[Order, ...] = ("exact", "in_order", "any_order")
    said = trial(calls=calls(made))

    assert values == tuple(ToolSequence(tuple(expected), order=order).score(said).value for order in orders)


@pytest.mark.parametrize(("made", "value"), [("Aab", 0.0), ("aB", 1.0)])
def test_failed_calls_count_if_asked_for(made: str, value: float, trial: MakeTrial) -> None:
    metric = ToolSequence(("a", "b"), order="exact", failed="count")

    assert value == metric.score(trial(calls=calls(made))).value


@pytest.mark.parametrize(
    ("order", "made", "reason"),
    [
        ("exact", "axb", "call 2 is not b; called: a, x, b"),
        ("exact", "a", "call 2 is missing: b; called: a"),
        ("exact", "abxy", "2 more than expected: x, y; called: a, b, x, y"),
        ("exact", "ab", "called: a, b"),
        ("in_order", "ba", "no b after a; called: b, a"),
        ("in_order", "xB", "no a; called: x (not counted, as failed: b)"),
        ("any_order", "xa", "missing: b; called: x, a"),
    ],
)
def test_the_reason_says_what_is_wrong(order: Order, made: str, reason: str, trial: MakeTrial) -> None:
    assert reason == ToolSequence(("a", "b"), order=order).score(trial(calls=calls(made))).reason


def test_the_details_have_both_sides(trial: MakeTrial) -> None:
    metric = ToolSequence(("a", ExpectedCall("b", {"x": 1})))

    score = metric.score(trial(calls=[*calls("Aa"), ToolCall("b", {"x": 1.0, "y": "z"})]))

    assert {"expected": ["a", "b(x=1)"], "called": ["a", "b(x=1.0, y='z')"], "skipped": ["a"]} == score.details


def test_a_call_in_any_order_is_left_to_who_needs_it(trial: MakeTrial) -> None:
    """The bare name comes first and could take the only call that another one fits."""
    oslo = ExpectedCall("get", {"city": "Oslo"})
    one, two = (ToolSequence(("get", *[oslo] * times), order="any_order") for times in (1, 2))

    values = [
        metric.score(trial(calls=[ToolCall("get", {"city": city}) for city in cities])).value
        for metric, cities in (
            (one, ("Oslo", "Rome")),
            (one, ("Rome", "Oslo")),
            (one, ("Rome", "Rome")),
            (one, ("Oslo",)),
            (two, ("Oslo", "Rome", "Bergen")),
            (two, ("Oslo", "Rome", "Oslo")),
        )
    ]

    assert [1.0, 1.0, 0.0, 0.0, 0.0, 1.0] == values


arguments = st.dictionaries(st.sampled_from("xy"), st.integers(0, 1), max_size=2)


@settings(max_examples=150, deadline=None)
@given(expected=st.lists(arguments, min_size=1, max_size=4), made=st.lists(arguments, max_size=5))
def test_any_order_finds_an_assignment_whenever_there_is_one(
    expected: list[dict[str, int]], made: list[dict[str, int]]
) -> None:
    transcript = Transcript(
        messages=(Message("assistant", "Done."),), tool_calls=tuple(ToolCall("get", item) for item in made)
    )
    tools = tuple(ExpectedCall("get", item) for item in expected)

    score = ToolSequence(tools, order="any_order").score(Trial("t", Sample("s", "?"), "a", "c", 1, transcript))

    def serves(chosen: Sequence[dict[str, int]]) -> bool:
        return all(ours.items() <= theirs.items() for ours, theirs in zip(expected, chosen, strict=True))

    possible = len(made) >= len(expected) and any(map(serves, permutations(made, len(expected))))
    assert (1.0 if possible else 0.0) == score.value


@pytest.mark.parametrize(
    ("fact", "value"), [(["a", {"name": "b"}], 1.0), ("b", 1.0), (["b", "a"], 0.0), (["a", None], None), (None, None)]
)
def test_the_reference_is_the_samples_tools(fact: Any, value: float | None, trial: MakeTrial) -> None:
    assert value == ToolSequence().score(trial(calls=calls("ab"), facts={"tools": fact})).value


@pytest.mark.parametrize(("unlisted", "known"), [(1, "1 more is only counted"), (None, "it is not known whether")])
def test_calls_that_are_only_counted_have_no_order(unlisted: int | None, known: str, trial: MakeTrial) -> None:
    score = ToolSequence(("a",)).score(trial(calls=calls("a"), unlisted=unlisted))

    assert score.value is None
    assert score.reason.startswith(f"not all of the trial's tool calls are known: {known}")
