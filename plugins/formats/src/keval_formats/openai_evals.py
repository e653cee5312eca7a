"""The format of OpenAI's hosted evals: an eval, with the data source of one of its runs, as a config of promptfoo.

Source: the OpenAI API reference, Evals and Graders. Rows stand in the data source, or in a JSONL file beside.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import orjson

from keval.config.source import KeyPath
from keval.files import read_input
from keval_formats.placeholders import text_of

WRITTEN: Mapping[KeyPath, KeyPath] = {
    ("defaultTest", "assert"): ("testing_criteria",),
    ("prompts",): ("data_source", "input_messages"),
    ("providers", 0, "config"): ("data_source", "sampling_params"),
    ("providers", 0): ("data_source", "model"),
    ("tests",): ("data_source", "source", "content"),
}
"""Where the parts of the config stand in an eval."""
Part: TypeAlias = tuple[Mapping[str, Any], KeyPath, tuple[str, ...]]
"""A part of an eval, its path, and the keys of it that are read or say nothing to keval."""
_READ = ("name", "testing_criteria", "data_source")
_ABOUT = ("id", "object", "metadata", "created_at", "data_source_config", "share_with_openai")
_CHECKS = {"eq": "equals", "ne": "not-equals", "like": "contains", "ilike": "icontains"}
_SOURCE = ("type", "source", "input_messages", "model", "sampling_params")
_CRITERION = (
    *("type", "name", "input", "labels", "passing_labels", "range", "pass_threshold", "reference"),
    *("operation", "evaluation_metric", "source"),
)
_DEFAULTS = {"range": "0, 1", "pass_threshold": 0.5}
_QUESTIONS = ("input", "question", "prompt", "query")
_SAID = re.compile(r"\{\{\s*sample\.output_text\s*\}\}")
_GRADED = {
    "label_model": "Of the labels {labels}, one of {passing_labels} is right by these instructions: {told}",
    "score_model": "In the range {range}, at least {pass_threshold} is right by these instructions: {told}",
}


def as_promptfoo(data: Mapping[str, Any], path: Path) -> tuple[dict[str, Any], list[Part]]:
    """Return an eval as a config whose tests have the variable `item`, and its parts."""
    run, criteria = data.get("data_source") or {}, data["testing_criteria"]
    rows = (run.get("source") or {}).get("content")
    beside = path.with_suffix(".jsonl")
    first = orjson.dumps(rows[0] if rows else {})
    if rows is None:
        rows = f"file://{beside.name}"
        first = read_input(beside).partition(b"\n")[0] if beside.is_file() else first
    item = orjson.loads(first).get("item") or {}
    asked = next((f"{{{{item.{key}}}}}" for key in _QUESTIONS if key in item), "{{item.input}}")
    template = (run.get("input_messages") or {}).get("template") or [{"role": "user", "content": asked}]
    graders = [each["model"] for each in criteria if each.get("type") in _GRADED]
    models = [run["model"]] if "model" in run else []
    way = "responses" if run.get("type") == "responses" else "chat"
    config = {
        **{key: value for key, value in data.items() if key not in (*_READ, *_ABOUT)},
        "description": data.get("name"),
        "prompts": orjson.dumps(template).decode(),
        "providers": [{"id": f"openai:{way}:{model}", "config": run.get("sampling_params")} for model in models],
        "defaultTest": {
            "assert": [*map(_assertion, criteria)],
            "options": {"provider": f"openai:chat:{graders[0]}"} if graders else {},
        },
        "tests": rows,
    }
    parts: list[Part] = [
        (run, ("data_source",), _SOURCE),
        (run.get("source") or {}, ("data_source", "source"), ("type", "content", "id")),
        (run.get("input_messages") or {}, ("data_source", "input_messages"), ("type", "template")),
    ]
    for index, each in enumerate(criteria):
        judge = ("model",) if each.get("model") in graders[:1] else ()  # it judges by all criteria
        parts.append((each, ("testing_criteria", index), (*_CRITERION, *judge)))
    return config, parts


def _assertion(criterion: Mapping[str, Any]) -> dict[str, Any]:
    """Return a criterion as an assertion of promptfoo; one that has none keeps its type."""
    kind, about = criterion.get("type"), {"metric": criterion.get("name"), "value": criterion.get("reference")}
    said = _SAID.fullmatch(str(criterion.get("input")).strip())
    if kind == "string_check" and said and criterion.get("operation") in _CHECKS:
        return {"type": _CHECKS[criterion["operation"]], **about}
    if kind == "text_similarity" and said and criterion.get("evaluation_metric") == "fuzzy_match":
        return {"type": "fuzzy_match", **about, "threshold": criterion.get("pass_threshold", 0)}
    if kind in _GRADED:
        texts = "\n".join(text_of(each.get("content")) for each in criterion.get("input") or [])
        lists = {key: ", ".join(map(str, each)) for key, each in criterion.items() if isinstance(each, list)}
        told = {**_DEFAULTS, **criterion, **lists, "told": _SAID.sub("(the response)", texts)}
        return {**about, "type": "llm-rubric", "value": _GRADED[kind].format(**told)}
    return {"type": f"{kind} {criterion.get('evaluation_metric', '')}".strip(), **about}
