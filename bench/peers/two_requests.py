"""The requests of a sample as `keval.yaml` makes them, for those who make them without a framework."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

AT_ONCE = 50
_GRADE = {
    "type": "object",
    "properties": {"reasoning": {"type": "string"}, "score": {"enum": [1, 3, 5]}},
    "required": ["reasoning", "score"],
    "additionalProperties": False,
}
_FORM = {"type": "json_schema", "json_schema": {"name": "grade", "strict": True, "schema": _GRADE}}
_RUBRIC = "Does the output answer the question, and agree with the expected output? Give a reason, and 1, 3 or 5."


def questions() -> list[dict[str, Any]]:
    """Return the samples."""
    return [json.loads(line) for line in Path("questions.jsonl").read_text(encoding="utf-8").splitlines()]


def asked(sample: dict[str, Any]) -> dict[str, Any]:
    """Return the request for an answer."""
    return _request("You are a helpful assistant.", sample["question"])


def judged(sample: dict[str, Any], answer: str | None) -> dict[str, Any]:
    """Return the request for a grade of an answer."""
    text = f"Question: {sample['question']}\nExpected output: {sample['answer']}\nOutput: {answer}"
    return {**_request(_RUBRIC, text), "response_format": _FORM}


def _request(system: str, user: str) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "system", "content": system}, {"role": "user", "content": user}]}
