"""The log of k-eval, `*.detailed.jsonl`: a line for each sample and condition, with all its repetitions.

Source: k-eval 1.2.1, `cli/output/eee.py` (instance level of schema 0.2.1). Earlier versions wrote no tool calls, or not
their arguments, and of the scores of several repetitions only the mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from keval.errors import ConfigError, Problem
from keval.files import open_input
from keval_formats.log import Entry, Log, label_of

_METRICS = ("factual_adherence", "completeness", "helpfulness_and_clarity")


def read(path: Path) -> Log | None:
    """Return the log in a file, `None` if it is none of k-eval."""
    first = next(_lines(path), None)
    if not isinstance(first, dict) or not {"evaluation_name", "sample_idx", "run_details"} <= first.keys():
        return None
    name, model = str(first["evaluation_name"]).partition("/")[0], str(first.get("model_id"))
    return Log(path, "k-eval", name, model, partial(_lines, path), _entries, (1.0, 5.0))


def _lines(path: Path) -> Iterator[Any]:
    with open_input(path) as content:
        for number, line in enumerate(content, start=1):
            try:
                if line.strip():
                    yield orjson.loads(line)
            except orjson.JSONDecodeError as error:
                told = f"not valid JSON: {error.msg}; one object a line"
                raise ConfigError([Problem(f"{path}:{number}:{error.colno}", told)]) from error


def _entries(line: dict[str, Any]) -> Iterator[Entry]:
    """Yield the answer of each repetition."""
    name, asked, runs = str(line["sample_idx"]), line["input"], line["run_details"]
    details, tokens = (line.get("evaluation") or {}).get("details") or {}, line.get("token_usage") or {}
    question = {"id": name, "question": asked["raw"], "answer": asked.get("reference")}
    for index, run in enumerate(runs):
        answer = {
            "id": name,
            "condition": label_of(str(line["evaluation_name"]).partition("/")[2]),
            "response": run["agent_response"] or "",
            "response_time": _seconds(run),
            "model_calls": run.get("num_turns"),
            "usage": {**(tokens if len(runs) == 1 else {}), "cost": run.get("cost_usd")},
            "scores": {each: _score(details, run, each, index, len(runs)) for each in _METRICS},
        }
        untold = [f"{each}: {told['reason']}" for each, told in answer["scores"].items() if told["value"] is None]
        if len(runs) > 1 and any(tokens.values()):
            untold.append("tokens, of which the log has the sum of repetitions")
        if details.get("unverified_claims"):
            untold.append("unverified claims")
        if "answer_attribution" in line:
            repetition = run.get("repetition_index", index)
            passed = [each for each in line["answer_attribution"] if each.get("repetition_index") == repetition]
            answer["messages"] = [{"role": "user", "content": asked["raw"]}, *map(_message, passed)]
            answer["tool_calls"] = [_call(each) for each in passed if "tool_name" in each]
            if any("tool_name" in each and "tool_input" not in each for each in passed):
                untold.append("arguments of tool calls, which are not in the log")
        yield Entry(question, answer, untold)


def _score(details: dict[str, Any], run: dict[str, Any], name: str, index: int, repetitions: int) -> dict[str, Any]:
    value = run.get(name, details.get(f"{name}_mean") if repetitions == 1 else None)
    reason = dict(enumerate(details.get(f"{name}_reasonings") or ())).get(index, "")
    return {"value": value, "reason": "the log has only the mean of repetitions" if value is None else reason}


def _message(told: dict[str, Any]) -> dict[str, str]:
    return {"role": "tool" if "tool_name" in told else "assistant", "content": told.get("extracted_value") or ""}


def _call(told: dict[str, Any]) -> dict[str, Any]:
    """Return a tool call; the Claude Agent SDK names a server's tool `mcp__SERVER__TOOL`."""
    name, said = told["tool_name"], told.get("extracted_value") or ""
    server, tool = name.removeprefix("mcp__").split("__", 1) if name.startswith("mcp__") else (None, name)
    ended = {"error": said or "the tool failed"} if told.get("tool_error") else {"result": said}
    return {"name": tool, "server": server, "arguments": told.get("tool_input"), "duration": _seconds(told), **ended}


def _seconds(told: dict[str, Any]) -> float | None:
    return None if told.get("duration_ms") is None else float(told["duration_ms"]) / 1000
