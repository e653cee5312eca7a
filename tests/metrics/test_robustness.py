"""No trial makes a metric raise, however odd or large: neither a basic one nor one of the weather."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st

from keval import Message, Sample, Score, ToolCall, Transcript, Trial, Usage
from keval.seams import registry
from keval_metrics_basic import Contains
from keval_metrics_basic.answers import Equals, Regex, Similarity
from keval_metrics_basic.json_schema import JsonSchema
from keval_metrics_basic.key_facts import KeyFacts
from keval_metrics_basic.resources import Latency, Tokens, Turns
from keval_metrics_basic.tools import ArgumentMatch, ExpectedCall, NoToolErrors, ToolCalled, ToolChoice, ToolSequence
from keval_testing import check_metric

WEATHER: list[Any] = [registry.load(each)() for each in registry.select("keval.metrics", "weather")]
TEXT: list[Any] = [
    metric
    for place in ("answer", "facts.x", "facts.x.y", "metadata.x")
    for metric in (
        Equals(reference=place),
        Equals(reference=place, ignore_case=False, ignore_whitespace=False, ignore_punctuation=True),
        Contains(reference=place),
        Contains(reference=place, whole_words=False, ignore_punctuation=True),
        Regex(reference=place, timeout=0.05),
        JsonSchema(reference=place),
        Similarity(reference=place),
        Similarity("rouge_l", place),
        KeyFacts(place),
    )
]
GIVEN: list[Any] = [
    Equals(expected=("", "x")),
    Contains(all_of=("x",), any_of=("5",), none_of=("rain",)),
    Regex(pattern=r"(\w+\s?)+$", timeout=0.05),
    JsonSchema(schema={"type": ["object", "array"], "items": {"multipleOf": 0.1}, "required": ["x"]}),
    Latency(),
    Latency(limit=5, turn="last"),
    Tokens(),
    Tokens("input", limit=5),
    Turns(),
    Turns(limit=1),
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
METRICS = [*WEATHER, *TEXT, *GIVEN, *TOOLS]
PIECES = [
    "x", "'", "2.5", "°", "%", "```json\n", "```", "{", "}", "[", "]", '"x":', "(", ")", "*", "+", "?", "|", "\\",
    "(?", "\uff9e", "天", "İ", "ß", "\0", "\ud83d", "\u200b", "’s", '{"type": "object"}', '{"$ref": "#"}', "9" * 30,
    "1e400", "NaN", "25°C", "-5 °C", "minus", "five", "degrees", "between", "3", "and", "7", "no", "not", "rain",
    "won't", "umbrella", "should", "you", ",", ".", "\n", "because", "since", "Monday", "tomorrow", "in", "Łódź", "São",
    "Paulo", "feels like", "high", "of", "2026-06-18", "24.94°E", "ﬁ", "e\u0301\u0316", "I", "hate", "cold",
]  # fmt: skip
KEYS = [
    "x", "y", "name", "arguments", "type", "$ref", "$id", "$schema", "properties", "items", "pattern", "enum", "const",
    "city", "current", "temperature", "main_condition", "daily_summaries", "date", "min_temp", "max_temp", "value",
    "dislikes_cold", "outdoor_activities", "learned_from_conversations",
]  # fmt: skip
KNOWN = {
    "weather": {
        "city": "Łódź",
        "current": {"temperature": 20, "main_condition": "Rain"},
        "daily_summaries": [{"date": "2026-06-18", "min_temp": 3, "max_temp": 7, "main_condition": "Snow"}] * 3,
    },
    "preferences": {"dislikes_cold": True},
}

texts = st.one_of(
    st.text(max_size=200),
    st.lists(st.sampled_from(PIECES), max_size=30).map(" ".join),
    st.lists(st.sampled_from(PIECES), max_size=30).map("".join),
)
junk = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(KEYS), inner, max_size=4)),
    max_leaves=15,
)
facts = st.one_of(
    st.just(KNOWN), st.dictionaries(st.sampled_from(["x", "tools", "weather", "preferences"]), junk, max_size=3)
)
calls = st.builds(
    ToolCall,
    st.sampled_from(["x", "y", "", "rain", "update_user_preferences_from_insight"]),
    st.dictionaries(st.one_of(texts, st.just("dislikes_rain")), junk, max_size=3),
    error=st.one_of(st.none(), texts),
)
counts = st.one_of(st.none(), st.integers(-1, 2**63))
transcripts = st.builds(
    Transcript,
    messages=texts.map(lambda said: (Message("assistant", said),)),
    tool_calls=st.lists(calls, max_size=5).map(tuple),
    unlisted_calls=st.sampled_from([0, 0, 1, None]),
    usage=st.builds(Usage, counts, counts),
    model_calls=counts,
    duration=st.one_of(st.none(), st.floats()),
    turn_durations=st.lists(st.floats(), max_size=2).map(tuple),
)
samples = st.builds(
    Sample,
    st.just("s"),
    texts,
    st.one_of(st.none(), texts),
    history=st.lists(st.builds(Message, st.sampled_from(["user", "assistant"]), texts), max_size=4).map(tuple),
    facts=facts,
    metadata=st.dictionaries(st.just("x"), junk),
)


def trial_of(sample: Sample, transcript: Transcript | None = None) -> Trial:
    return Trial("t", sample, "a", "c", 1, transcript)


def assert_sound(score: Score) -> None:
    assert score.value is None or (math.isfinite(score.value) and score.value >= 0)
    assert score.reason
    assert len(score.reason) < 2500
    assert len(json.dumps(score.details)) < 100_000


@settings(max_examples=150, deadline=None)
@given(sample=samples, transcript=transcripts)
@example(Sample("s", "MAN'AND"), Transcript((Message("assistant", ""),)))
@example(Sample("s", "", history=(Message("user", "0'ﾞ"),)), Transcript((Message("assistant", ""),)))
@example(Sample("s", "ﾞ", history=(Message("user", "in ﾞ"),)), Transcript(messages=(Message("assistant", "ﾞ"),)))
def test_any_trial_gets_a_score(sample: Sample, transcript: Transcript) -> None:
    trial = trial_of(sample, transcript)

    for metric in METRICS:
        score = metric.score(trial)
        assert_sound(score)
        assert metric in GIVEN or score.value is None or score.value <= 1
        assert metric not in WEATHER or score.value is not None


@pytest.mark.parametrize("metric", METRICS, ids=repr)
def test_every_metric_keeps_the_rules(metric: Any) -> None:
    check_metric(metric)


@pytest.mark.parametrize("metric", [*GIVEN, *TOOLS], ids=repr)
def test_without_a_transcript_nothing_is_known(metric: Any) -> None:
    assert metric.score(trial_of(Sample("s", "", facts={"x": ["x"], "tools": ["x"]}))).value is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    [
        "word ",
        "a",
        "\uff9e\u0301",
        "天",
        "([{",
        "```json\n",
        "-5.",
        "25",
        "minus ",
        "I hate ",
        "25°C tomorrow in Oslo ",
    ],
)
def test_a_megabyte_gets_a_score(piece: str) -> None:
    huge = piece * (1_000_000 // len(piece.encode()))
    transcript = Transcript(
        messages=(Message("assistant", huge),), tool_calls=(ToolCall(huge, {"x": huge}, error=huge),)
    )
    said = trial_of(Sample("s", huge, huge, facts={**KNOWN, "tools": [{"name": huge}]}), transcript)
    missed = trial_of(Sample("s", huge, facts={"tools": [{"name": huge, "arguments": {huge: huge}}]}), Transcript())

    for metric in [*TEXT[:8], *GIVEN, *TOOLS, *WEATHER]:
        score = metric.score(said)
        assert score.reason
        assert metric in WEATHER or len(json.dumps(score.details)) < 100_000
    for metric in TOOLS:
        assert_sound(metric.score(missed))


@pytest.mark.slow
def test_a_thousand_calls_get_a_score() -> None:
    call: dict[str, Any] = {"name": "x", "arguments": {"n": 1}}
    sample = Sample("s", "?", facts={"tools": [call] * 1000})
    said = trial_of(sample, Transcript(tool_calls=(ToolCall("x", {"n": 1}),) * 999, unlisted_calls=0))

    for metric in TOOLS[:4]:
        assert (metric.score(said).value, type(metric)) in [(0.0, ToolSequence), (1.0, ToolCalled)]
