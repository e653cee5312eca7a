"""The metrics of tool calls: which, in which order, with which arguments, and whether they failed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any, Literal

import pytest
from hypothesis import given, settings, strategies as st

from keval import Message, Sample, ToolCall, Transcript, Trial
from keval_metrics_basic.tools import ArgumentMatch, ExpectedCall, NoToolErrors, ToolCalled, ToolChoice, ToolSequence
from tests.metrics.basic.conftest import make_trial as trial

OSLO = ToolCall("get_weather", {"city": "Oslo", "days": 3})
FAILED = ToolCall("get_location", error="no signal")


@pytest.mark.parametrize(
    ("options", "value"),
    [
        ({"tools": ("get_weather",)}, 1.0),
        ({"tools": ("get_location", "get_weather")}, 1.0),
        ({"tools": ("get_weather", "get_time"), "match": "any"}, 1.0),
        ({"tools": ("get_time",), "match": "any"}, 0.0),
        ({"tools": (ExpectedCall("get_weather", {"city": " oslo"}),)}, 1.0),
        ({"tools": (ExpectedCall("get_weather", {"city": "Rome"}),)}, 0.0),
        ({"tools": (ExpectedCall("get_weather", {"city": "Rome"}),), "arguments": "ignore"}, 1.0),
        ({"tools": (ExpectedCall("get_weather", {"city": "Oslo"}),), "arguments": "exact"}, 0.0),
        ({"tools": (ExpectedCall("get_weather", {"city": "Oslo", "days": 3.0}),), "arguments": "exact"}, 1.0),
        ({"never": ("delete_all",)}, 1.0),
        ({"never": ("get_location",)}, 0.0),
        ({"never": (ExpectedCall("get_weather", {"city": "Rome"}),)}, 1.0),
        ({"tools": ("get_weather",), "never": ("get_location",)}, 0.0),
        ({"tools": ()}, 0.0),
    ],
)
def test_tools_are_called_as_the_options_say(options: dict[str, Any], value: float) -> None:
    assert value == ToolCalled(**options).score(trial(calls=[FAILED, OSLO])).value


def test_the_reason_says_what_was_called() -> None:
    metric = ToolCalled(tools=(ExpectedCall("get_weather", {"city": "Rome"}), "get_location"))

    score = metric.score(trial(calls=[FAILED, OSLO]))

    assert "no call of get_weather(city='Rome'); called: get_location, get_weather(city='Oslo', days=3)" == score.reason
    assert {
        "called": ["get_location", "get_weather(city='Oslo', days=3)"],
        "failed": 1,
        "missing": ["get_weather(city='Rome')"],
        "forbidden": [],
    } == score.details


def test_the_reason_names_the_forbidden_call() -> None:
    score = ToolCalled(never=("get_weather",)).score(trial(calls=[OSLO]))

    assert "called get_weather(city='Oslo', days=3), which must never be called" == score.reason


@pytest.mark.parametrize(
    ("fact", "value"),
    [
        (["get_weather", "get_location"], 1.0),
        ("get_weather", 1.0),
        ({"name": "get_weather", "arguments": {"city": "oslo"}}, 1.0),
        ([{"name": "get_weather", "arguments": {"city": "Rome"}}], 0.0),
        ([{"name": "get_weather"}, "get_time"], 0.0),
        ([], 0.0),
        (["get_weather", 5], None),
        ([{"name": "get_weather", "args": {"city": "Rome"}}], None),
        ([{"name": "get_weather", "arguments": ["Oslo"]}], None),
        ([""], None),
        (5, None),
        (None, None),
    ],
)
def test_the_reference_is_the_samples_tools(fact: Any, value: float | None) -> None:
    assert value == ToolCalled().score(trial(calls=[FAILED, OSLO], facts={"tools": fact})).value


def test_an_empty_list_is_met_by_no_call() -> None:
    score = ToolCalled().score(trial(facts={"tools": []}))

    assert (1.0, "called: nothing") == (score.value, score.reason)


def test_without_tools_to_look_for_the_reason_says_what_to_give() -> None:
    score = ToolCalled().score(trial(calls=[OSLO]))

    wanted = "a list of tool names or of {name, arguments}"
    missing = "nothing to compare with: the sample has no facts.tools"
    assert (None, f"{missing}; give it {wanted}, or the metric `tools` or `never`") == (score.value, score.reason)


@pytest.mark.parametrize("unlisted", [2, None])
@pytest.mark.parametrize(
    ("options", "value"),
    [
        ({"tools": ("get_weather",)}, 1.0),
        ({"tools": ("get_weather", "get_time"), "match": "any"}, 1.0),
        ({"tools": ("get_weather", "get_time")}, None),
        ({"tools": ("get_weather",), "never": ("delete_all",)}, None),
        ({"never": ("delete_all",)}, None),
        ({"never": ("get_weather",)}, 0.0),
        ({"tools": ()}, 0.0),
    ],
)
def test_calls_that_are_only_counted_leave_open_what_they_could_change(
    options: dict[str, Any], value: float | None, unlisted: int | None
) -> None:
    assert value == ToolCalled(**options).score(trial(calls=[OSLO], unlisted=unlisted)).value


def test_no_listed_calls_are_not_no_calls() -> None:
    score = ToolCalled(tools=()).score(trial(unlisted=1))

    reason = "not all of the trial's tool calls are known: 1 more is only counted; called: nothing"
    assert (None, reason) == (score.value, score.reason)


@pytest.mark.parametrize("name", ["tools", "never"])
def test_a_name_is_not_empty(name: str) -> None:
    options: dict[str, Any] = {name: ("get_weather", "")}

    with pytest.raises(ValueError, match=f"'{name}' must hold names of tools, got ''"):
        ToolCalled(**options)


CALLS = [
    ToolCall("search", {"query": "coats"}),
    ToolCall("search", {"query": "warm coats"}, error="too many"),
    ToolCall("docs__open_page", {"id": 1}, tool="open_page"),
    ToolCall("buy"),
]


@pytest.mark.parametrize(
    ("options", "value"),
    [
        ({"tools": ("search",)}, 1.0),
        ({"tools": ("buy",)}, 0.0),
        ({"tools": ("buy",), "k": 3}, 1.0),
        ({"tools": ("buy", "search")}, 1.0),
        ({"tools": ("buy", "search"), "match": "all"}, 0.0),
        ({"tools": ("buy", "search"), "match": "all", "k": 3}, 1.0),
        ({"tools": ("open_page",), "k": 2}, 1.0),
        ({"tools": ("docs__open_page",), "k": 2}, 1.0),
        ({"tools": (ExpectedCall("search", {"query": "shoes"}),)}, 1.0),
        ({"tools": ("sell",), "k": 9}, 0.0),
        ({"tools": ()}, 0.0),
    ],
)
def test_a_tool_counts_once_in_the_order_of_its_first_call(options: dict[str, Any], value: float) -> None:
    assert value == ToolChoice(**options).score(trial(calls=CALLS)).value


def test_the_reason_says_where_the_right_tool_came() -> None:
    score = ToolChoice().score(trial(calls=CALLS, facts={"tools": ["buy"]}))

    reason = "no call of buy among the first 1; called first: search; the first of them came as number 3"
    details = {"expected": ["buy"], "called": ["search", "docs__open_page", "buy"], "rank": 3}
    assert (reason, details) == (score.reason, score.details)


@pytest.mark.parametrize(
    ("tools", "unlisted", "value"), [(["search"], 0, 0.0), ([], 0, 1.0), ([], 1, None), (["search"], None, None)]
)
def test_a_trial_without_calls(tools: list[str], unlisted: int | None, value: float | None) -> None:
    assert value == ToolChoice().score(trial(facts={"tools": tools}, unlisted=unlisted)).value


def test_k_is_at_least_1() -> None:
    with pytest.raises(ValueError, match="'k' must be >= 1"):
        ToolChoice(0)


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
        ("ab", "abb", (0.0, 1.0, 1.0)),
        ("aa", "a", (0.0, 0.0, 0.0)),
        ("aba", "aab", (0.0, 0.0, 1.0)),
        ("", "", (1.0, 1.0, 1.0)),
        ("", "a", (0.0, 0.0, 0.0)),
        ("", "A", (0.0, 0.0, 0.0)),
        ("ab", "Aab", (1.0, 1.0, 1.0)),
        ("ab", "aB", (0.0, 0.0, 0.0)),
    ],
)
def test_exact_in_order_and_any_order(expected: str, made: str, values: tuple[float, float, float]) -> None:
    orders: tuple[Order, ...] = ("exact", "in_order", "any_order")
    said = trial(calls=calls(made))

    assert values == tuple(ToolSequence(tuple(expected), order=order).score(said).value for order in orders)


@pytest.mark.parametrize(("made", "value"), [("Aab", 0.0), ("aB", 1.0)])
def test_failed_calls_count_if_asked_for(made: str, value: float) -> None:
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
def test_the_reason_says_what_is_wrong(order: Order, made: str, reason: str) -> None:
    assert reason == ToolSequence(("a", "b"), order=order).score(trial(calls=calls(made))).reason


def test_the_details_have_both_sides() -> None:
    metric = ToolSequence(("a", ExpectedCall("b", {"x": 1})))

    score = metric.score(trial(calls=[*calls("Aa"), ToolCall("b", {"x": 1.0, "y": "z"})]))

    assert {"expected": ["a", "b(x=1)"], "called": ["a", "b(x=1.0, y='z')"], "skipped": ["a"]} == score.details


def test_a_call_in_any_order_is_left_to_who_needs_it() -> None:
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


def test_of_calls_in_any_order_the_last_that_can_have_none_of_its_own_is_missing() -> None:
    tools = ("get", ExpectedCall("get", {"city": "Oslo"}), "get")

    reason = (
        ToolSequence(tools, order="any_order")
        .score(trial(calls=[ToolCall("get", {"city": city}) for city in ("Oslo", "Rome")]))
        .reason
    )

    assert reason.startswith("missing: get; called")
    assert (
        "missing: get(city='Oslo'), get; called"
        in ToolSequence(tools, order="any_order").score(trial(calls=[ToolCall("get", {"city": "Oslo"})])).reason
    )


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


ROME = ToolCall("forecast", {"city": "Rome", "days": 3}, error="down", tool="get_weather")


def asked(**arguments: Any) -> ExpectedCall:
    return ExpectedCall("get_weather", arguments)


@pytest.mark.parametrize(
    ("expected", "how", "value"),
    [
        ([asked(city="oslo", days=3.0)], "subset", 1.0),
        ([asked(city="Rome", days=3)], "subset", 1.0),
        ([asked(city="Oslo", days=5)], "subset", 0.5),
        ([asked(city="Oslo")], "subset", 1.0),
        ([asked(city="Oslo")], "exact", 0.5),
        ([asked(city="Oslo", unit="C")], "exact", pytest.approx(1 / 3, abs=1e-6)),
        ([asked()], "subset", 1.0),
        ([asked()], "exact", 0.0),
        ([ExpectedCall("get_time", {"city": "Oslo"})], "subset", 0.0),
        ([ExpectedCall("get_time", {"city": "Oslo"}), asked(city="Oslo")], "subset", 0.5),
        ([ExpectedCall("get_time"), asked(city="Oslo")], "subset", 1.0),
    ],
)
def test_the_share_of_arguments(expected: list[ExpectedCall], how: Any, value: float) -> None:
    metric = ArgumentMatch(tools=tuple(expected), arguments=how)

    assert value == metric.score(trial(calls=[OSLO, ROME])).value


def test_each_expected_call_has_a_call_of_its_own_so_that_the_shares_add_up_to_the_most() -> None:
    calls = [ToolCall("f", {"a": 1, "b": 1, "c": 1}), ToolCall("f", {"a": 1, "b": 1, "c": 2})]
    greedy, modest = ExpectedCall("f", {"a": 1, "b": 1, "c": 1}), ExpectedCall("f", {"a": 1, "b": 1, "c": 1, "d": 1})

    both = ArgumentMatch(tools=(modest, greedy)).score(trial(calls=calls))
    one = ArgumentMatch(tools=(modest, greedy)).score(trial(calls=calls[:1]))

    assert round((2 / 4 + 1) / 2, 6) == both.value
    assert (round(1 / 2, 6), "no call for f(a=1, b=1, c=1, d=1)") == (one.value, one.reason)


def test_the_reason_says_what_was_called_in_its_place() -> None:
    expected = {"name": "get_weather", "arguments": {"city": "Oslo", "days": 5}}

    score = ArgumentMatch().score(trial(calls=[OSLO], facts={"tools": [expected]}))

    reason = "get_weather(city='Oslo', days=5) got get_weather(city='Oslo', days=3)"
    assert (0.5, reason) == (score.value, score.reason)


@pytest.mark.parametrize("tools", [None, [], ["get_weather"], 5])
def test_without_arguments_to_look_for_the_calls_are_unscored(tools: Any) -> None:
    score = ArgumentMatch().score(trial(calls=[OSLO], facts={"tools": tools}))

    assert score.value is None
    assert "give it a list of {name, arguments}, or the metric `tools`" in score.reason


GOOD = ToolCall("get_weather", result="rain")
BAD = ToolCall("get_weather", error="no such city")


@pytest.mark.parametrize(
    ("calls", "value", "reason"),
    [
        ([GOOD], 1.0, "none of 1 tool calls failed"),
        ([GOOD, BAD], 0.5, "1 of 2 tool calls failed: get_weather; first error: no such city"),
        ([BAD, BAD, ToolCall("get_time", error="")], 0.0,
         "3 of 3 tool calls failed: get_weather (2), get_time; first error: no such city"),
        ([ToolCall("get_time", error=""), GOOD, GOOD], 0.666667,
         "1 of 3 tool calls failed: get_time; first error: no message"),
    ],
)  # fmt: skip
def test_the_value_is_the_share_of_calls_that_did_not_fail(calls: list[ToolCall], value: float, reason: str) -> None:
    score = NoToolErrors().score(trial(calls=calls))

    assert (value, reason, False) == (score.value, score.reason, score.neutral)


def test_the_details_name_the_errors() -> None:
    details = NoToolErrors().score(trial(calls=[GOOD, BAD])).details

    assert {"calls": 2, "failed": 1, "errors": [{"tool": "get_weather", "error": "no such city"}]} == details


def test_no_calls_are_neutral() -> None:
    score = NoToolErrors().score(trial())

    assert (1.0, True, "no tool calls") == (score.value, score.neutral, score.reason)


@pytest.mark.parametrize(
    "metric", [ToolSequence(("a",)), ArgumentMatch((ExpectedCall("a", {"x": 1}),)), NoToolErrors()]
)
@pytest.mark.parametrize(("unlisted", "known"), [(1, "1 more is only counted"), (None, "it is not known whether")])
def test_calls_that_are_only_counted_leave_it_unscored(metric: Any, unlisted: int | None, known: str) -> None:
    score = metric.score(trial(calls=calls("a"), unlisted=unlisted))

    assert score.value is None
    assert f": {known}" in score.reason


@pytest.mark.parametrize("metric", [ToolChoice(), ToolSequence()])
def test_without_tools_to_look_for_the_calls_are_unscored(metric: Any) -> None:
    assert metric.score(trial(calls=calls("a"))).value is None
