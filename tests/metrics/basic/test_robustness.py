"""No trial makes a metric raise, however odd or large."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from keval import Message, Sample, Score, ToolCall, Transcript, Trial, Usage
from keval_metrics_basic import (
    ArgumentMatch,
    Contains,
    Equals,
    ExpectedCall,
    JsonSchema,
    Latency,
    NoToolErrors,
    Regex,
    Similarity,
    Tokens,
    ToolCalled,
    ToolChoice,
    ToolSequence,
    Turns,
)

MakeTrial = Callable[..., Trial]

PLACES = ("answer", "facts.x", "facts.x.y", "metadata.x")
TEXT: list[Any] = [
    metric
    for place in PLACES
    for metric in (
        Equals(reference=place),
        Equals(reference=place, ignore_case=False, ignore_whitespace=False, ignore_punctuation=True),
        Contains(reference=place),
        Contains(reference=place, whole_words=False, ignore_punctuation=True),
        Regex(reference=place, timeout=0.05),
        JsonSchema(reference=place),
        Similarity(reference=place),
        Similarity("rouge_l", place),
    )
]
GIVEN: list[Any] = [
    Equals(expected=("", "x")),
    Contains(all_of=("x",), any_of=("5",), none_of=("rain",)),
    Regex(pattern=r"(\w+\s?)+$", timeout=0.05),
    JsonSchema(schema={"type": ["object", "array"], "items": {"multipleOf": 0.1}, "required": ["x"]}),
]
TOOLS: list[Any] = [
    metric
    for place in ("facts.tools", "facts.x")
    for metric in (
        ToolCalled(reference=place),
        ToolSequence(reference=place, order="exact", arguments="exact"),
        ToolSequence(reference=place, failed="count"),
        ToolSequence(reference=place, order="any_order"),
        ToolChoice(2, reference=place, match="all"),
        ArgumentMatch(reference=place, arguments="exact"),
    )
] + [
    ToolCalled(tools=("x", ExpectedCall("x", {"x": "x"})), never=("y",), match="any"),
    ToolChoice(tools=("x",)),
    ArgumentMatch(tools=(ExpectedCall("x", {"x": "x"}), ExpectedCall("x", {"x": ["x"], "y": 5}))),
    NoToolErrors(),
]
QUANTITIES: list[Any] = [
    Latency(),
    Latency(limit=5, turn="last"),
    Tokens(),
    Tokens("input", limit=5),
    Turns(),
    Turns(limit=1),
]
PIECES = [
    "x", "rain", "the", " ", "\n", ".", "'", "-5", "2.5", "°", "%", "```json\n", "```", "{", "}", "[", "]", '"x":',
    "(", ")", "*", "+", "?", "|", "\\", "(?", "e\u0301\u0316", "\uff9e", "天", "İ", "ß", "\0", "\ud83d", "\u200b", "’",
    '{"type": "object"}', '{"$ref": "#"}', "9" * 30, "1e400", "NaN",
]  # fmt: skip

texts = st.one_of(st.text(max_size=100), st.lists(st.sampled_from(PIECES), max_size=20).map("".join))
KEYS = [
    "x",
    "y",
    "name",
    "arguments",
    "type",
    "$ref",
    "$id",
    "$schema",
    "properties",
    "items",
    "pattern",
    "enum",
    "const",
]
scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), texts)
junk = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(KEYS), inner, max_size=4)),
    max_leaves=10,
)
facts = st.dictionaries(st.sampled_from(["x", "tools"]), junk, max_size=2)
calls = st.builds(
    ToolCall,
    st.sampled_from(["x", "y", "", "rain"]),
    st.dictionaries(texts, junk, max_size=3),
    error=st.one_of(st.none(), texts),
)
counts = st.one_of(st.none(), st.integers(-1, 2**63))
times = st.one_of(st.none(), st.floats())


def assert_sound(score: Score) -> None:
    assert score.value is None or (math.isfinite(score.value) and score.value >= 0)
    assert score.reason
    assert len(score.reason) < 2500
    assert len(json.dumps(score.details)) < 100_000


@settings(max_examples=100, deadline=None)
@given(said=texts, answer=st.one_of(st.none(), texts), known=facts, more=st.dictionaries(st.just("x"), junk))
def test_any_answer_and_any_reference_get_a_score(
    said: str, answer: str | None, known: dict[str, Any], more: dict[str, Any]
) -> None:
    transcript = Transcript(messages=(Message("assistant", said),))
    trial = Trial("t", Sample("s", "?", answer, facts=known, metadata=more), "a", "c", 1, transcript)

    for metric in [*TEXT, *GIVEN]:
        score = metric.score(trial)
        assert_sound(score)
        assert score.value is None or score.value <= 1


@settings(max_examples=100, deadline=None)
@given(
    made=st.lists(calls, max_size=5),
    known=facts,
    unlisted=st.sampled_from([0, 0, 1, None]),
)
def test_any_calls_and_any_expectations_get_a_score(
    made: list[ToolCall], known: dict[str, Any], unlisted: int | None
) -> None:
    transcript = Transcript(tool_calls=tuple(made), unlisted_calls=unlisted)
    trial = Trial("t", Sample("s", "?", facts=known), "a", "c", 1, transcript)

    for metric in TOOLS:
        assert_sound(metric.score(trial))


@settings(max_examples=100, deadline=None)
@given(
    usage=st.builds(Usage, counts, counts),
    model_calls=counts,
    duration=times,
    turns=st.lists(st.floats(), max_size=2).map(tuple),
)
def test_any_quantities_get_a_score(
    usage: Usage, model_calls: int | None, duration: float | None, turns: tuple[float, ...]
) -> None:
    transcript = Transcript(usage=usage, model_calls=model_calls, duration=duration, turn_durations=turns)
    trial = Trial("t", Sample("s", "?"), "a", "c", 1, transcript)

    for metric in QUANTITIES:
        assert_sound(metric.score(trial))


@pytest.mark.parametrize("metric", [*TEXT, *GIVEN, *TOOLS, *QUANTITIES], ids=repr)
def test_missing_texts_and_facts_get_a_score(metric: Any) -> None:
    nothing: Any = None
    holes = Trial(
        "t",
        Sample("s", nothing, facts=nothing, metadata=nothing),
        "a",
        "c",
        1,
        Transcript(messages=(Message("assistant", nothing),), tool_calls=(ToolCall("x", nothing),)),
    )

    assert_sound(metric.score(Trial("t", Sample("s", ""), "a", "c", 1, Transcript())))
    assert_sound(metric.score(holes))


@pytest.mark.parametrize("metric", [*GIVEN, *TOOLS, *QUANTITIES], ids=repr)
def test_without_a_transcript_nothing_is_known(metric: Any) -> None:
    score = metric.score(Trial("t", Sample("s", "", facts={"x": ["x"], "tools": ["x"]}), "a", "c", 1))

    assert score.value is None


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["word ", "a", "\uff9e\u0301", "天", "([{", "```json\n", "-5."])
def test_a_megabyte_gets_a_score(piece: str, trial: MakeTrial) -> None:
    huge = piece * (1_000_000 // len(piece.encode()))
    said = trial(huge, huge, calls=[ToolCall(huge, {"x": huge}, error=huge)], facts={"tools": [{"name": huge}]})
    missed = trial(huge, huge, facts={"tools": [{"name": huge, "arguments": {huge: huge}}]})

    for metric in [*TEXT[:8], *GIVEN, *TOOLS]:
        assert_sound(metric.score(said))
    for metric in TOOLS:
        assert_sound(metric.score(missed))


@pytest.mark.slow
def test_a_thousand_calls_get_a_score(trial: MakeTrial) -> None:
    call: dict[str, Any] = {"name": "x", "arguments": {"n": 1}}
    said = trial(calls=[ToolCall("x", {"n": 1})] * 999, facts={"tools": [call] * 1000})

    for metric in TOOLS[:4]:
        assert (metric.score(said).value, type(metric)) in [(0.0, ToolSequence), (1.0, ToolCalled)]
