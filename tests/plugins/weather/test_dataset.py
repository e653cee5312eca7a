"""The example's questions agree with the snapshot."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from keval import Message, Sample
from keval_weather.cities import CityFinder
from keval_weather.ground_truth import GroundTruth
from keval_weather.snapshot import load_snapshot

PATH = Path(__file__).parents[3] / "examples" / "weather" / "questions.jsonl"
LINES: list[dict[str, Any]] = [json.loads(line) for line in PATH.read_text(encoding="utf-8").splitlines()]
KINDS = {"current", "forecast", "recommendation", "ambiguous", "preference", "multi-turn", "unknown-city", "error"}
by_id = pytest.mark.parametrize("line", LINES, ids=[line["id"] for line in LINES])


def _figures(city: str) -> set[float]:
    """Every figure that the snapshot has about a city."""

    async def collect() -> set[float]:
        current = await load_snapshot().current(city)
        days = (await load_snapshot().forecast(city, 5))["days"]
        now = {current["temperature"], current["feels_like"], current["humidity"], current["wind_speed"]}
        return now | {day["min_temp"] for day in days} | {day["max_temp"] for day in days}

    return asyncio.run(collect())


def _sample(line: dict[str, Any]) -> Sample:
    history = tuple(Message(message["role"], message["content"]) for message in line.get("history", ()))
    return Sample(line["id"], line["question"], line["answer"], history, tuple(line.get("turns", ())))


def test_it_covers_every_kind_of_question() -> None:
    kinds = Counter(line["metadata"]["kind"] for line in LINES)

    assert set(kinds) == KINDS
    assert len(LINES) >= 24
    assert min(kinds.values()) >= 2
    assert len(LINES) == len({line["id"] for line in LINES})
    assert any("history" in line for line in LINES)
    assert any("turns" in line for line in LINES)


@by_id
def test_every_line_has_what_the_example_reads(line: dict[str, Any]) -> None:
    assert {"id", "question", "answer", "facts", "metadata"} <= set(line)
    assert all(isinstance(value, bool) for value in line["facts"]["preferences"].values())


@by_id
def test_every_figure_of_an_answer_is_in_the_snapshot(line: dict[str, Any]) -> None:
    said = [float(figure) for figure in re.findall(r"-?\d+(?:\.\d+)?(?= (?:°C|%|m/s))", line["answer"])]
    cities = {mention.name for mention in CityFinder(load_snapshot().names).mentions(line["answer"])}
    cities |= {line["metadata"]["city"]} if said else set()
    known = set().union(*map(_figures, cities)) if said else set()

    assert [figure for figure in said if figure not in known] == []
    assert said or line["metadata"]["kind"] in {"ambiguous", "unknown-city", "error"}


@by_id
def test_the_ground_truth_finds_the_city_without_being_told(
    line: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENWEATHER_API_KEY", raising=False)
    facts = asyncio.run(GroundTruth().keval_sample_facts(_sample(line))) or {"weather": {}}

    assert line["metadata"].get("city") == facts["weather"].get("city")
    assert (line["metadata"]["kind"] == "unknown-city") == facts["weather"].get("unknown", False)
