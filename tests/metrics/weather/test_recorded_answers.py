"""The weather metrics over a dataset file and recorded answers, as a user evaluates them."""

from __future__ import annotations

import json
from typing import Any

from tests.conftest import Project

CONFIG = """
agents: {gadk: {type: recorded, path: answers.jsonl}}
dataset: {path: questions.jsonl}
metrics: [weather]
"""
ANSWER = "It's 5 °C and raining in Łódź. Since you dislike the cold, take a warm coat."
TURNS = ("I hate cold weather. What's the weather in Łódź?", "It is 4 °C with rain in Łódź.")
HISTORIES: dict[str, list[dict[str, str]]] = {
    "roles": [{"role": "user", "content": TURNS[0]}, {"role": "assistant", "content": TURNS[1]}],
    "exchanges": [{"user": TURNS[0], "assistant": TURNS[1]}],
    "messages": [{"user_message": TURNS[0], "response": TURNS[1]}],
}
PREFERENCES: dict[str, dict[str, Any]] = {
    "flat": {"dislikes_cold": True, "learned_from_conversations": 3},
    "gadk": {"weather_preferences": {"dislikes_cold": True}, "learned_from_conversations": 3},
    "ms": {"user": {"preferences": {"dislikes_cold": {"value": True}}, "learned_from_conversations": ["a", "b", "c"]}},
}
WEATHER = {
    "current": {"temperature": 5, "main_condition": "rain"},
    "daily_summaries": [{"date": "2026-06-18", "min_temp": 3, "max_temp": 6, "main_condition": "Rain"}],
}


def scores(project: Project, *samples: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    """Evaluate one answer to each sample and return the score lines by sample and metric."""
    answers = [{"id": sample["id"], "response": ANSWER, "tool_calls": 2} for sample in samples]
    project.write(
        eval_yaml=CONFIG,
        questions_jsonl="".join(json.dumps({"question": "And now?", **sample}) + "\n" for sample in samples),
        answers_jsonl="".join(json.dumps(answer) + "\n" for answer in answers),
    )
    outcome = project.keval("run", "eval.yaml")

    assert 0 == outcome.code, outcome.stderr
    return {(line["sample"], line["metric"].removeprefix("weather/")): line for line in project.lines("scores.jsonl")}


def test_a_history_is_remembered_in_every_spelling(project: Project) -> None:
    found = scores(project, *({"id": name, "history": history} for name, history in HISTORIES.items()))

    assert dict.fromkeys(HISTORIES, 0.85) == {name: found[name, "context_retention"]["value"] for name in HISTORIES}


def test_preferences_count_in_every_shape(project: Project) -> None:
    samples = [{"id": name, "facts": {"weather": WEATHER, "preferences": p}} for name, p in PREFERENCES.items()]

    found = scores(project, *samples)

    adapted = [found[name, "adaptation_quality"] for name in PREFERENCES]
    assert [(0.75, 3)] * 3 == [(line["value"], line["details"]["learned_from_conversations"]) for line in adapted]
    assert [1.0] * 3 == [found[name, "accuracy"]["value"] for name in PREFERENCES]


def test_a_mere_number_of_tool_calls_is_scored(project: Project) -> None:
    found = scores(project, {"id": "counted", "facts": {"weather": WEATHER}})

    count, planning = found["counted", "tool_call_count"], found["counted", "action_planning"]
    assert (1.0, 2, 0) == (count["value"], count["details"]["only_counted"], count["details"]["listed"])
    assert (0.6, False) == (planning["value"], planning["neutral"])
