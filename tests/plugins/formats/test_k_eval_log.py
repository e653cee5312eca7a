"""Logs of k-eval in the manner of three authors: 1.2.1, the first version, and two runs merged by its script."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Project


def put(name: str, text: str) -> None:
    Path(name).write_text(text, encoding="utf-8")


METRICS = ("factual_adherence", "completeness", "helpfulness_and_clarity")


def line(name: str, sample: str, runs: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {
        "schema_version": "instance_level_eval_0.2.1",
        "evaluation_id": "2026-07-01-ab12",
        "model_id": "claude-sonnet-4-5",
        "evaluation_name": name,
        "sample_idx": sample,
        "interaction_type": "agentic",
        "input": {"raw": f"Question {sample}?", "reference": f"Answer {sample}"},
        "run_details": runs,
        **more,
    }


def run(index: int, response: str, scores: tuple[int, int, int] | None = None) -> dict[str, Any]:
    told = {"cost_usd": 0.25, "duration_ms": 1500, "num_turns": 2}
    given = dict(zip(METRICS, scores, strict=True)) if scores else {}
    return {"repetition_index": index, "agent_response": response, **told, **given}


def details(mean: float, reasons: list[str], **more: Any) -> dict[str, Any]:
    told = {f"{name}_mean": mean for name in METRICS} | {f"{name}_reasonings": reasons for name in METRICS}
    return {"score": None, "details": {**told, **more}}


def passed(repetition: int, text: str, **tool: Any) -> dict[str, Any]:
    return {"repetition_index": repetition, "turn_idx": 0, "extracted_value": text, "is_terminal": False, **tool}


def write(project: Project, lines: list[dict[str, Any]]) -> str:
    put("weather.detailed.jsonl", "".join(json.dumps(each) + "\n" for each in lines))
    return "weather.detailed.jsonl"


def means(project: Project, metric: str) -> dict[str, float]:
    arms = json.loads(project.keval("report", "--json", str(project.run_directory())).stdout)["arms"]
    return {each["condition"]: each["mean"] for each in arms if each["metric"] == f"recorded/{metric}"}


@pytest.fixture(autouse=True)
def there(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project.root)


def test_todays_log_has_calls_messages_and_a_score_for_each_repetition(project: Project) -> None:
    search = {"tool_name": "mcp__graph__search", "tool_input": {"of": 7}, "tool_error": False, "duration_ms": 20.0}
    failed = {"tool_name": "Read", "tool_error": True, "duration_ms": None}
    told = [
        passed(0, "I search."),
        passed(0, "found", **search),
        passed(0, "Yes"),
        passed(1, "", **failed),
        passed(1, "No"),
    ]
    lines = [
        line(
            "weather/no_server",
            "7",
            [run(0, "Perhaps", (2, 2, 4))],
            token_usage={"input_tokens": 90, "output_tokens": 9},
        ),
        line(
            "weather/graph",
            "7",
            [run(0, "Yes", (5, 4, 4)), run(1, "No", (1, 2, 4))],
            answer_attribution=told,
            evaluation=details(3.0, ["right", "wrong"], unverified_claims=["It rains"]),
            token_usage={"input_tokens": 300, "output_tokens": 30},
        ),
    ]

    outcome = project.keval("run", write(project, lines), "-o", "results")

    assert 0 == outcome.code, outcome.stderr
    for unmatched in ("tokens, of which the log has the sum", "unverified claims", "arguments of tool calls"):
        assert unmatched in outcome.stderr
    assert {"no_server": 2.0, "graph": 3.0} == means(project, "factual_adherence")
    manifest = project.read("manifest.json")
    assert ["weather", ["no_server", "graph"]] == [manifest["evaluation"], [*manifest["conditions"]]]
    assert {(1.0, 5.0)} == {(each["scale"]["low"], each["scale"]["high"]) for each in manifest["scorers"]}
    trials = {(each["condition"], each["repetition"]): each for each in project.lines("trials.jsonl")}
    assert [("no_server", 1), ("graph", 1), ("graph", 2)] == [*trials]
    first, second = trials["graph", 1]["transcript"], trials["graph", 2]["transcript"]
    assert ["Question 7?", "I search.", "found", "Yes"] == [each["text"] for each in first["messages"]]
    assert (1.5, 2) == (first["duration"], first["model_calls"])
    [call], [error] = first["tool_calls"], second["tool_calls"]
    assert ("search", "graph", {"of": 7}, "found") == tuple(call[k] for k in ("name", "server", "arguments", "result"))
    assert (0.02, {}) == (call["duration"], error["arguments"])
    assert ("Read", None, "the tool failed") == (error["name"], error["server"], error["error"])
    usage = trials["no_server", 1]["transcript"]["usage"]
    assert (90, 9, 0.25, None) == (
        *(usage[each] for each in ("input_tokens", "output_tokens", "cost")),
        first["usage"]["input_tokens"],
    )
    reasons = [each["reason"] for each in project.lines("scores.jsonl") if each["condition"] == "graph"]
    assert {"right", "wrong"} == {*reasons}


def test_the_first_version_has_means_alone(project: Project) -> None:
    lines = [
        line("old/base", "1", [run(0, "One")], evaluation=details(4.0, ["good"]), output={"raw_runs": ["One"]}),
        line("old/base", "2", [run(0, "Two"), run(1, "2")], evaluation=details(3.5, ["good", "poor"])),
    ]

    outcome = project.keval("run", write(project, lines), "-o", "results")

    assert "completeness: the log has only the mean of repetitions (2x)" in outcome.stderr
    assert {"base": 4.0} == means(project, "completeness")
    found = [each for each in project.lines("scores.jsonl") if each["metric"] == "recorded/completeness"]
    assert [("1", 4.0), ("2", None), ("2", None)] == sorted((each["sample"], each["value"]) for each in found)
    assert [None] * 3 == [each["transcript"]["unlisted_calls"] for each in project.lines("trials.jsonl")]


def test_merged_runs_are_conditions_and_are_judged_again_and_written_out(project: Project) -> None:
    lines = [
        line(f"test1/ask_sre {which}", sample, [run(0, which, (score, score, score))])
        for which, score in (("current", 2), ("enhanced", 4))
        for sample in ("1", "2", "3")
    ]
    name = write(project, lines)

    written = project.keval("init", "mine", "--from", name)
    config = project.root / "mine" / "eval.yaml"
    config.write_text(
        f"{config.read_text(encoding='utf-8')}- basic/contains: {{any_of: [enhanced]}}\n", encoding="utf-8"
    )
    outcome = project.keval("run", "mine/eval.yaml", "-o", "results")

    assert (0, 0) == (written.code, outcome.code), outcome.stderr
    assert {"ask_sre current": 2.0, "ask_sre enhanced": 4.0} == means(project, "completeness")


def test_a_line_that_is_broken_is_told(project: Project) -> None:
    lines = [line("a/b", "1", [run(0, "One")]), line("a/b", "2", [{}])]

    odd = project.keval("validate", write(project, lines))
    put("weather.detailed.jsonl", json.dumps(lines[0]) + "\n{")
    torn = project.keval("validate", "weather.detailed.jsonl")

    assert (2, 2) == (odd.code, torn.code)
    assert "weather.detailed.jsonl: an answer is not as k-eval writes it: KeyError('agent_response')" in odd.stderr
    assert "weather.detailed.jsonl:2:2: not valid JSON" in torn.stderr
