"""The metrics through the command line: all with options, all without, and wrong options at their place."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.conftest import Project

SAMPLE = {
    "id": "oslo",
    "question": "Weather in Oslo?",
    "answer": "rain, 5 °C",
    "facts": {"tools": ["get_weather"]},
    "metadata": {
        "says": 'Here:\n```json\n{"city": "Oslo", "summary": "rain, 5 °C"}\n```',
        "calls": [
            {"name": "get_location", "error": "no signal"},
            {"name": "get_weather", "arguments": {"city": "Oslo", "days": 3}, "result": "rain"},
        ],
    },
}
HEAD = """
    dataset: {path: questions.jsonl}
    agents: {scripted: {}}
    conditions: {baseline: {}}
    metrics:
"""
EVERY_OPTION = """
      - basic/equals: {expected: [sun, rain], ignore_punctuation: true}
      - basic/contains: {all_of: [Oslo], any_of: [rain, snow], none_of: [sorry]}
      - basic/regex: {pattern: '-?\\d+ °C', absent: false, timeout: 0.5}
      - basic/json_schema: {path: shape.json}
      - basic/similarity: {measure: rouge_l}
      - basic/tool_called: {tools: [get_weather], never: [delete_all]}
      - basic/tool_sequence:
          tools: [{name: get_weather, arguments: {city: oslo}}]
          order: exact
          failed: skip
      - basic/tool_choice: {k: 2, match: all}
      - basic/argument_match: {tools: [{name: get_weather, arguments: {city: oslo, days: 5}}], arguments: exact}
      - basic/no_tool_errors
      - basic/latency: {limit: 30, turn: last}
      - basic/tokens: {count: output, limit: 100}
      - basic/turns: {limit: 2}
"""


def scores(project: Project) -> dict[str, float | None]:
    return {line["metric"].removeprefix("basic/"): line["value"] for line in project.lines("scores.jsonl")}


def test_all_metrics_with_options(project: Project) -> None:
    project.write(
        questions_jsonl=json.dumps(SAMPLE),
        shape_json='{"type": "object", "required": ["city"]}',
        eval_yaml=HEAD + EVERY_OPTION,
    )

    outcome = project.keval("run", "eval.yaml")

    assert (0, []) == (outcome.code, [line for line in project.lines("scores.jsonl") if line["failure"]])
    assert {
        "equals": 0.0,
        "contains": 1.0,
        "regex": 1.0,
        "json_schema": 1.0,
        "similarity": 0.615385,
        "tool_called": 1.0,
        "tool_sequence": 1.0,
        "tool_choice": 1.0,
        "argument_match": 0.5,
        "no_tool_errors": 0.5,
        "latency": 1.0,
        "tokens": None,
        "turns": 1.0,
    } == scores(project)


def test_all_metrics_without_options(project: Project) -> None:
    question = {"id": "bare", "question": "How?"}
    project.write(questions_jsonl=json.dumps(question), eval_yaml=HEAD + "      - basic\n")

    outcome = project.keval("run", "eval.yaml")

    lines = {line["metric"]: line for line in project.lines("scores.jsonl")}
    assert (0, 14) == (outcome.code, len(lines))
    assert [] == [line for line in lines.values() if line["failure"] or not line["reason"]]
    assert {"basic/latency", "basic/no_tool_errors", "basic/turns"} == {
        name for name, line in lines.items() if line["value"] is not None
    }
    assert "the sample has no answer" in lines["basic/equals"]["reason"]


def test_wrong_options_are_reported_at_their_place(project: Project) -> None:
    project.write(
        questions_jsonl=json.dumps(SAMPLE),
        eval_yaml=HEAD
        + """
      - basic/equals: {reference: fact.x}
      - basic/contains: {all_of: [rain, ""]}
      - basic/regex: {pattern: "("}
      - basic/json_schema: {schema: {tpye: object}}
      - basic/similarity: {measure: rouge}
      - basic/tool_called: {tools: [""]}
      - basic/tool_sequence: {tools: [{nam: x}, {name: x, arguments: 5}]}
      - basic/no_tool_errors: {share: 1}
      - basic/latency: {limit: 0}
      - basic/tokens: {limit: 1.5}
      - basic/turns: {limt: 3}
""",
    )

    outcome = project.keval("validate", "eval.yaml")

    problems = [line.removeprefix("error: eval.yaml:") for line in outcome.stderr.splitlines()]
    assert 2 == outcome.code
    assert [
        "6:31: 'reference' must be answer, facts.<key> or metadata.<key>, got 'fact.x'",
        "7:30: 'all_of' must hold texts of which normalisation leaves something, got ''",
        "8:28: 'pattern' must be a regular expression: missing ) at position 1 in '('",
        "9:33: 'schema' must be a JSON Schema: it checks nothing, having only tpye",
        "10:33: expected token_f1 or rouge_l, got 'rouge'; did you mean 'rouge_l'?",
        "11:32: 'tools' must hold names of tools, got ''",
        "12:35: the key 'name' is missing; add `name:` with a text",
        "12:36: unknown key 'nam'; did you mean 'name'?",
        "12:66: expected a mapping, got 5",
        "13:28: unknown key 'share'; known keys: none",
        "14:28: 'limit' must be > 0: 0.0",
        "15:27: expected a whole number, got 1.5",
        "16:19: unknown key 'limt'; did you mean 'limit'?",
    ] == [problem.rpartition(" (metric 'basic/")[0] for problem in problems]


def test_constructing_imports_no_library_that_is_slow_to_import() -> None:
    code = (
        "import sys\nfrom keval.seams import registry\n"
        "made = [registry.load(each)() for each in registry.select('keval.metrics', 'basic')]\nassert len(made) > 12\n"
        "print([name for name in ('jsonschema', 'rapidfuzz', 'referencing') if name in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "[]" == done.stdout.strip()


def test_the_former_name_of_a_metric_is_an_error_that_names_the_present_one(project: Project) -> None:
    project.write(questions_jsonl=json.dumps(SAMPLE), eval_yaml=HEAD + "      - basic/tool_errors\n")

    outcome = project.keval("validate", "eval.yaml")

    told = "no metric named 'basic/tool_errors' is installed; did you mean 'basic/no_tool_errors'?"
    assert (2, True) == (outcome.code, told in outcome.stderr)
