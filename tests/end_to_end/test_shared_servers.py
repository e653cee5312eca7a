"""A question that kills the server that trials share fails alone: the others run again on servers of their own."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import Project
from tests.end_to_end.servers.faulty_http import serving
from tests.stdio_server import ENVIRONMENT

CITIES = ("Helsinki", "Oslo", "Rome", "Lima", "Cairo", "Delhi", "Quito", "Turku")


def _ask(weather: Callable[..., Project], context: dict[str, Any]) -> tuple[Project, int]:
    project = weather(
        ("gadk: ", "openai: "),
        ("weather: {}", f"weather: {json.dumps({**context, 'isolation': 'condition'})}"),
        ("retry: {", "retry: {max_attempts: 2, "),
        ("metrics: [weather/accuracy, weather/tool_call_count]", "metrics: [weather/tool_call_count]"),
        ("plugins: [weather/ground-truth]", ""),
    )
    questions = [{"id": city, "question": f"What's the weather in {city} right now?"} for city in CITIES]
    (project.root / "questions.jsonl").write_text("\n".join(map(json.dumps, questions)), encoding="utf-8")
    return project, project.run("eval.yaml", "--condition", "with_weather", "-j", "8").code


def _attempts(trial: dict[str, Any]) -> list[tuple[str, bool]]:
    return [(attempt["failure"]["kind"], attempt["counted"]) for attempt in trial["attempts"]]


@pytest.mark.slow
def test_a_question_that_kills_a_shared_server_fails_alone(weather: Callable[..., Project]) -> None:
    args = ["-m", "tests.end_to_end.servers.killed", ".", str(len(CITIES))]
    server = {"type": "stdio", "command": sys.executable, "args": args, "env": ENVIRONMENT, "cwd": "."}

    project, code = _ask(weather, server)

    trials = {trial["sample"]: trial for trial in project.lines("trials.jsonl")}
    killer = trials.pop("Helsinki")
    assert (3, "server_lost") == (code, killer["failure"]["kind"])
    assert [("server_lost", False), ("server_lost", True)] == _attempts(killer)
    assert [(None, [("server_lost", False)])] * 7 == [(trial["failure"], _attempts(trial)) for trial in trials.values()]
    assert {f"It is 3 degrees in {city} with light rain." for city in CITIES[1:]} == {
        trial["transcript"]["tool_calls"][0]["result"] for trial in trials.values()
    }
    shown = project.keval("show", str(project.run_directory()), "--trial", killer["id"]).stdout
    assert (2, 1) == (
        shown.count("gave up an attempt"),
        shown.count("gave up an attempt (not counted, as another trial's"),
    )
    starts = (project.root / "starts").read_text(encoding="utf-8").count("start")
    assert 1 + 2 + 7 == starts, "one for all, two for the killer's attempts, one for each of the others"


@pytest.mark.slow
def test_a_question_that_kills_a_remote_server_fails_alone(weather: Callable[..., Project]) -> None:
    with serving("killed", "http", together=len(CITIES)) as url:
        project, code = _ask(weather, {"type": "http", "url": url})

    trials = {trial["sample"]: trial for trial in project.lines("trials.jsonl")}
    killer = trials.pop("Helsinki")
    assert (3, "server_lost") == (code, killer["failure"]["kind"])
    assert 1 == sum(counted for _, counted in _attempts(killer)), "the one of max_attempts that is not its last"
    assert [None] * 7 == [trial["failure"] for trial in trials.values()]
    assert {("server_lost", False)} == {_attempts(trial)[0] for trial in trials.values()}
    assert 3 >= max(sum(not counted for _, counted in _attempts(trial)) for trial in (killer, *trials.values()))
