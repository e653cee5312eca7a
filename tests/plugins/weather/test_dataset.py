"""The examples' questions and conversations agree with the snapshot."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import attrs
import pytest

from keval import Sample
from keval.config.evaluation import DatasetFile
from keval.dataset.read import read_dataset
from keval_metrics_weather.reading.places import places_in_answer, places_in_question
from keval_weather.ground_truth import GroundTruth
from keval_weather.snapshot import load_snapshot
from keval_weather.source import fold

EXAMPLE = Path(__file__).parents[3] / "examples" / "weather"
QUESTIONS: list[Sample] = [*read_dataset(DatasetFile(EXAMPLE / "questions.jsonl")).samples]
CONVERSATIONS: list[Sample] = [*read_dataset(DatasetFile(EXAMPLE / "conversations.jsonl")).samples]
KINDS = {"current", "forecast", "recommendation", "ambiguous", "preference", "multi-turn", "unknown-city", "error"}
KINDS_OF_CONVERSATION = {
    "asked again",
    "city remembered",
    "clarification",
    "correction",
    "date remembered",
    "preference corrected",
    "preference learned",
    "two cities",
}
by_id = pytest.mark.parametrize("sample", [*QUESTIONS, *CONVERSATIONS], ids=lambda sample: sample.id)


def _figures(city: str) -> set[float]:
    """Every figure that the snapshot has about a city."""
    current, days = load_snapshot().current(city), load_snapshot().forecast(city, 5)["days"]
    now = {current["temperature"], current["feels_like"], current["humidity"], current["wind_speed"]}
    return now | {day["min_temp"] for day in days} | {day["max_temp"] for day in days}


def test_the_questions_cover_every_kind() -> None:
    kinds = Counter(sample.metadata["kind"] for sample in QUESTIONS)

    assert set(kinds) == KINDS
    assert len(QUESTIONS) >= 24
    assert min(kinds.values()) >= 2
    assert any(sample.history for sample in QUESTIONS)
    assert any(sample.turns for sample in QUESTIONS)


def test_the_conversations_cover_every_kind() -> None:
    written = (EXAMPLE / "conversations.jsonl").read_text(encoding="utf-8")

    assert KINDS_OF_CONVERSATION == {sample.metadata["kind"] for sample in CONVERSATIONS}
    assert {2, 3, 4, 5} == {len(sample.asked) for sample in CONVERSATIONS}
    assert all(spelling in written for spelling in ('"role": "user"', '"user": ', '"user_message": '))
    assert any(" " in sample.metadata["city"] for sample in CONVERSATIONS)
    assert any(not sample.metadata["city"].isascii() for sample in CONVERSATIONS)


def test_most_last_messages_of_conversations_need_what_was_said_before() -> None:
    unclear = [sample.id for sample in CONVERSATIONS if not places_in_question(sample.asked[-1])]

    assert len(CONVERSATIONS) / 2 < len(unclear)


@by_id
def test_every_line_has_what_the_examples_read(sample: Sample) -> None:
    known = sample.facts.get("preferences", {})

    assert sample.answer
    assert "kind" in sample.metadata
    assert sample in CONVERSATIONS or "preferences" in sample.facts
    assert all(isinstance(value, bool) for value in known.values())


@by_id
def test_every_figure_of_an_answer_is_in_the_snapshot(sample: Sample) -> None:
    answer = sample.answer or ""
    said = [float(figure) for figure in re.findall(r"-?\d+(?:\.\d+)?(?= (?:°C|%|m/s))", answer)]
    known_cities = {fold(name) for name in load_snapshot().names}
    cities = {name for name in places_in_answer(answer) if fold(name) in known_cities}
    cities |= {sample.metadata["city"]} if said else set()
    known = set().union(*map(_figures, cities)) if said else set()

    assert [figure for figure in said if figure not in known] == []
    assert said or sample.metadata["kind"] in {"ambiguous", "unknown-city", "error"}


@by_id
def test_the_ground_truth_finds_the_city_without_being_told(sample: Sample) -> None:
    untold = attrs.evolve(sample, metadata={})

    facts = GroundTruth().keval_sample_facts(untold) or {"weather": {}}

    assert sample.metadata.get("city") == facts["weather"].get("city")
    assert (sample.metadata["kind"] == "unknown-city") == facts["weather"].get("unknown", False)
