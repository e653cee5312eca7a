"""Reading the tokens that a reply reports."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import pytest

from keval import Usage
from keval.plugin import read_usage
from keval_clients import completions_usage, messages_usage

responses_usage = partial(read_usage, "openai-responses")


def test_chat_completions_report_the_parts_within_the_whole() -> None:
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }

    assert completions_usage(usage) == Usage(10, 5, 4, 2)


def test_responses_report_the_parts_within_the_whole() -> None:
    usage = {
        "input_tokens": 10,
        "output_tokens": 5,
        "input_tokens_details": {"cached_tokens": 4},
        "output_tokens_details": {"reasoning_tokens": 2},
    }

    assert responses_usage(usage) == Usage(10, 5, 4, 2)


@pytest.mark.parametrize(
    ("cache", "expected"),
    [
        ({}, Usage(10, 5, 0)),
        ({"cache_read_input_tokens": 3}, Usage(13, 5, 3)),
        ({"cache_creation_input_tokens": 2, "cache_read_input_tokens": 0}, Usage(12, 5, 0)),
        ({"cache_creation_input_tokens": 2, "cache_read_input_tokens": None}, Usage(12, 5, 0)),
        ({"cache_read_input_tokens": 3, "cache_creation_input_tokens": 2}, Usage(15, 5, 3)),
        ({"output_tokens_details": {"thinking_tokens": 1}}, Usage(10, 5, 0, 1)),
    ],
)
def test_messages_count_what_a_cache_took_apart(cache: dict[str, Any], expected: Usage) -> None:
    assert messages_usage({"input_tokens": 10, "output_tokens": 5, **cache}) == expected


def test_a_part_of_the_input_is_not_taken_for_the_whole() -> None:
    assert messages_usage({"cache_read_input_tokens": 3, "output_tokens": 5}) == Usage(None, 5, 3)


@pytest.mark.parametrize("read", [completions_usage, responses_usage, messages_usage])
@pytest.mark.parametrize("usage", [None, "much", 7, [], {}])
def test_what_reports_nothing_is_unknown(read: Any, usage: object) -> None:
    assert read(usage) == Usage()


@pytest.mark.parametrize("count", [None, "10", 10.5, True, -1, [10], {"tokens": 10}])
def test_what_is_no_number_of_tokens_is_unknown_and_the_rest_is_read(count: object) -> None:
    assert completions_usage({"prompt_tokens": count, "completion_tokens": 5}) == Usage(None, 5)
    assert responses_usage({"input_tokens": count, "output_tokens": 5}) == Usage(None, 5)
    assert messages_usage({"input_tokens": count, "output_tokens": 5}) == Usage(None, 5)
    assert completions_usage({"prompt_tokens": 9, "prompt_tokens_details": count}) == Usage(9)


@pytest.mark.parametrize(
    ("told", "cost"),
    [
        ({"cost": 0.00014}, 0.00014),  # OpenRouter
        ({"cost": 0}, 0.0),
        ({"cost": {"input_tokens_cost": 0.001, "total_cost": 0.006}}, 0.006),  # Perplexity
        ({"estimated_cost": 2e-06}, 2e-06),  # DeepInfra
        ({"cost": 0.0001, "is_byok": True}, None),  # OpenRouter's fee alone
    ],
)
def test_a_cost_that_is_told_is_known(told: dict[str, Any], cost: float | None) -> None:
    usage = {"prompt_tokens": 11.0, "completion_tokens": 5, **told}

    assert Usage(11, 5, cost=cost) == completions_usage(usage)


@pytest.mark.parametrize("wrong", [None, -0.1, math.nan, math.inf, 10**6, True, "0.1", {}])
def test_what_can_be_no_cost_is_unknown(wrong: object) -> None:
    assert Usage(11) == completions_usage({"prompt_tokens": 11, "cost": wrong})


def test_a_sum_has_a_cost_if_each_call_has() -> None:
    assert (3.0, None) == ((Usage(cost=1.0) + Usage(cost=2.0)).cost, (Usage(cost=1.0) + Usage(1, 2)).cost)
