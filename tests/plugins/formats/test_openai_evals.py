"""Exports of OpenAI Evals in the manner of three authors: rows beside, a run, and graders of all types."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from tests.conftest import Project
from tests.plugins.formats.test_promptfoo import told

pytestmark = pytest.mark.usefixtures("simulated_here")

SAID = "{{ sample.output_text }}"
LABEL = {"type": "string_check", "name": "label", "input": SAID, "reference": "{{ item.label }}", "operation": "eq"}
TICKETS = {
    "object": "eval",
    "id": "eval_1",
    "name": "Tickets",
    "data_source_config": {"type": "custom", "schema": {"type": "object"}},
    "testing_criteria": [LABEL, {**LABEL, "name": "no apology", "reference": "sorry", "operation": "ilike"}],
}
RUN = {
    "object": "eval.run",
    "name": "Shorter",
    "testing_criteria": [
        {
            "type": "label_model",
            "name": "tone",
            "model": "gpt-4o",
            "labels": ["kind", "rude"],
            "passing_labels": ["kind"],
            "input": [
                {"role": "developer", "content": "Label the tone."},
                {"role": "user", "content": {"type": "input_text", "text": f"It said: {SAID}"}},
            ],
        },
        {
            "type": "score_model",
            "name": "short",
            "model": "gpt-4.1",
            "range": [0, 10],
            "pass_threshold": 7,
            "input": [{"role": "user", "content": "How short is it, next to {{item.text}}?"}],
        },
    ],
    "data_source": {
        "type": "completions",
        "model": "gpt-4o-mini",
        "reasoning_effort": "low",
        "sampling_params": {"temperature": 0.5, "max_completion_tokens": 90, "top_p": 0.9},
        "input_messages": {
            "type": "template",
            "template": [
                {
                    "type": "message",
                    "role": "developer",
                    "content": {"type": "input_text", "text": "Be {{item.tone}}."},
                },
                {"type": "message", "role": "user", "content": "Shorten: {{ item.text }}"},
            ],
        },
        "source": {"type": "file_content", "content": [{"item": {"text": "Tides come and go.", "tone": "kind"}}]},
    },
}
GRADERS = {
    "testing_criteria": [
        {"type": "text_similarity", "name": "near", "input": SAID, "reference": "{{item.answer}}"}
        | {"evaluation_metric": "fuzzy_match", "pass_threshold": 0.8},
        {"type": "text_similarity", "name": "words", "input": SAID, "reference": "{{item.answer}}"}
        | {"evaluation_metric": "bleu", "pass_threshold": 0.3},
        {"type": "python", "name": "code", "source": "def grade(sample, item): return 1.0"},
        {**LABEL, "input": "{{item.label}}"},
    ]
}


def written(project: Project, data: Any, rows: list[Any] | None = None) -> None:
    (project.root / "export.json").write_text(json.dumps(data, indent=1), encoding="utf-8")
    if rows is not None:
        text = "".join(f"{json.dumps(row)}\n" for row in rows)
        (project.root / "export.jsonl").write_text(text, encoding="utf-8")


def test_rows_beside_are_asked_and_checked(project: Project) -> None:
    rows = [
        {"item": {"input": "My monitor is black", "label": "Hardware"}},
        {
            "item": {"input": "Call 'Software' what you cannot run", "label": "Software"},
            "sample": {"output_text": "No"},
        },
    ]
    written(project, TICKETS, rows)

    outcome = project.keval("run", "export.json", "--agent", "scripted", "-o", "results")

    assert 0 == outcome.code, outcome.stderr
    assert "export.json:1:1 the key 'sample'" == told(outcome)[0]
    hardware, software = project.lines("samples.jsonl")
    assert ("My monitor is black", "Hardware") == (hardware["question"], hardware["answer"])
    assert {"input": "My monitor is black", "label": "Hardware"} == hardware["metadata"]["vars"]["item"]
    assert [
        {"type": "equals", "value": "Software", "metric": "label"},
        {"type": "icontains", "value": "sorry", "metric": "no apology"},
    ] == software["metadata"]["asserts"]["assert"]
    assert ["not held: label; no apology"] * 2 == [each["reason"] for each in project.lines("scores.jsonl")]


def test_a_run_has_the_prompt_the_model_and_the_rows(project: Project) -> None:
    written(project, RUN)

    outcome = project.keval("init", "mine", "--from", "export.json")
    made = project.keval("run", "export.json", "-m", "simulated/any", "-o", "results")

    assert 0 == outcome.code == made.code, outcome.stderr + made.stderr
    assert {
        "name": "export",
        "dataset": {"path": "../export.json", "type": "suite"},
        "agents": {
            "openai_chat_gpt-4o-mini": {
                "type": "openai",
                "model": "openai/gpt-4o-mini",
                "temperature": 0.5,
                "max_tokens": 90,
            }
        },
        "conditions": {"prompt_1": {"system_prompt": "Be {{ metadata['vars']['item']['tone'] }}."}},
        "description": "Shorter",
        "judges": {"judge": {"model": "openai/gpt-4o"}},
        "rubrics": ["expectations"],
    } == yaml.safe_load((project.root / "mine/eval.yaml").read_text(encoding="utf-8"))
    assert {
        "export.json:33:4 the key 'model'",
        "export.json:50:3 the key 'reasoning_effort'",
        "export.json:54:4 the key 'top_p'",
    } == {line for line in told(outcome) if line.startswith("export")}
    (sample,) = project.lines("samples.jsonl")
    by = "is right by these instructions"
    assert "Shorten: Tides come and go." == sample["question"]
    assert [
        f"Of the labels kind, rude, one of kind {by}: Label the tone.\nIt said: (the response)",
        f"In the range 0, 10, at least 7 {by}: How short is it, next to Tides come and go.?",
    ] == sample["metadata"]["expectations"]


def test_graders_without_an_equivalent_are_told(project: Project) -> None:
    written(project, GRADERS, [{"item": {"question": "Where?", "answer": "In Oslo", "label": "x"}}])

    outcome = project.keval("validate", "export.json")

    assert (0, True) == (outcome.code, "valid; 1 trial (1 sample)" in outcome.stdout), outcome.stderr
    assert {
        "export.json:11:3 an assertion of the type 'text_similarity bleu', which is not checked",
        "export.json:19:3 an assertion of the type 'python', code, which is not run",
        "export.json:24:3 an assertion of the type 'string_check', which is not checked",
    } == {*told(outcome)}


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        (
            None,
            "export.json:1:1: there is no file export.jsonl",
        ),
        (
            [{"item": {"input": "a", "label": "b"}}, {"item": {"input": "c"}}],
            "row 2: there is no value for '{{ item.label }}'",
        ),
        ([{"item": {"text": "a"}}], "row 1: there is no value for"),
        (["text"], "export.json: this is not as the tool's documentation has it"),
    ],
)
def test_rows_that_cannot_be_asked_are_told(project: Project, rows: list[Any] | None, problem: str) -> None:
    written(project, TICKETS, rows)

    outcome = project.keval("validate", "export.json")

    assert (2, True) == (outcome.code, problem in outcome.stderr), outcome.stderr
