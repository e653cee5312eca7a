"""Expectations of samples: read with the dataset, kept in the run, seen by no agent, and held against every answer."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest

from tests.conftest import Project

CONFIG = """
dataset: {path: questions.jsonl}
agents: {scripted: {}}
contexts: {notes: {text: "As the notes say: "}}
conditions:
  baseline: {}
  with_notes: {contexts: [notes]}
metrics: [double/length]
execution: {num_repetitions: 2, retry: {max_attempts: 1}}
"""


@pytest.fixture
def project(project: Project) -> Project:
    """Give every verdict a line of its own."""
    return attrs.evolve(project, environ={"COLUMNS": "400"})


def records(*given: dict[str, Any]) -> str:
    return "".join(json.dumps({"question": "How?", **record}) + "\n" for record in given)


def expecting(project: Project, *expect: Any, **script: Any) -> Any:
    """Run one sample with these expectations; its gate, and what was not met."""
    project.write(eval_yaml=CONFIG, questions_jsonl=records({"id": "q", "expect": [*expect], **script}))
    project.keval("run", "eval.yaml", "-q")
    summary = project.read("summary.json")
    (gate,) = [gate for gate in summary["gates"] if gate["kind"] == "expect"]
    return gate, summary["unmet"]


def test_each_answer_that_is_not_as_expected_is_named(project: Project) -> None:
    project.write(
        eval_yaml=CONFIG,
        questions_jsonl=records(
            {"id": "met", "says": "It is 42.", "expect": {"contains": ["42", "It"], "regex": r"^\D*\d+\.$"}},
            {"id": "unmet", "says": "I cannot tell.", "expect": {"not_contains": "cannot"}},
            {"id": "noted", "expect": {"contains": "notes say", "conditions": "with_notes"}},
        ),
    )

    outcome = project.keval("run", "eval.yaml", "--explain")

    assert 1 == outcome.code
    assert "gates    expect  failed (14 of 18 expectations met)\n" in outcome.stdout
    told = "unmet, scripted with_notes, repetition 2: expected: it does not contain 'cannot'; answer: "
    assert f"{told}As the notes say:I cannot tell.\n" in outcome.stdout
    unmet = project.read("summary.json")["unmet"]
    assert [
        ("unmet", "baseline", 1),
        ("unmet", "baseline", 2),
        ("unmet", "with_notes", 1),
        ("unmet", "with_notes", 2),
    ] == [*sorted((each["sample"], each["condition"], each["repetition"]) for each in unmet)]
    assert outcome.stdout.splitlines()[-5:] == project.keval("report", "latest", "--explain").stdout.splitlines()[-5:]


@pytest.mark.parametrize(
    ("expect", "script", "told"),
    [
        ({"contains": "7"}, {"says": "It is 42."}, ("contains '7'", "It is 42.")),
        ({"contains": "it"}, {"says": "It."}, ("contains 'it'", "It.")),
        ({"not_contains": "42"}, {"says": "x" * 500 + "42" + "x" * 500}, ("does not contain '42'", None)),
        ({"regex": "^42$"}, {"says": "420"}, ("matches '^42$'", "420")),
        ({"tool_called": "look_up"}, {"says": "So."}, ("calls look_up", "called no tool")),
        ({"tool_called": ["b"]}, {"says": "So.", "calls": [{"name": "a", "result": ""}]}, ("calls b", "called a")),
        ({"max_seconds": 1e-9}, {"says": "So."}, ("takes at most 1e-09 s", None)),
    ],
)
def test_an_answer_is_told_with_what_was_expected(
    project: Project, expect: dict[str, Any], script: dict[str, Any], told: tuple[str, str | None]
) -> None:
    project.write(eval_yaml=CONFIG)

    gate, (unmet, *_) = expecting(project, {**expect, "conditions": ["baseline"]}, **script)

    assert ("failed", 0.0, "0 of 2 expectations met") == (gate["verdict"], gate["value"], gate["reason"])
    assert told == (unmet["expected"], unmet["answered"] if told[1] else None)
    assert len(unmet["answered"]) < 130
    if expect.get("not_contains"):
        assert "42" in unmet["answered"]


def test_what_is_met_holds(project: Project) -> None:
    calls = [{"name": "look_up", "error": "no such page"}]

    gate, unmet = expecting(
        project,
        {"contains": "42", "not_contains": ["43", "44"], "regex": ["4.", "(?i)IT"], "max_seconds": 60},
        {"tool_called": "look_up", "conditions": ["baseline", "with_notes"]},
        says="it is 42",
        calls=calls,
    )

    assert ("held", 1.0, "28 of 28 expectations met", []) == (gate["verdict"], gate["value"], gate["reason"], unmet)


def test_a_failed_trial_is_a_failure_and_no_unmet_expectation(project: Project) -> None:
    failing = {"id": "lost", "fail": "no luck", "expect": {"contains": "42"}}
    project.write(
        eval_yaml=CONFIG, questions_jsonl=records(failing, {"id": "q", "says": "42", "expect": {"contains": "4"}})
    )

    outcome = project.keval("run", "eval.yaml")
    alone = project.keval("run", "eval.yaml", "--sample-id", "lost", "--strict")

    assert 3 == outcome.code
    assert "expect  held (4 of 4 expectations met; 4 failed trials are left out)" in outcome.stdout
    assert 3 == alone.code
    assert "expect  undecided (0 of 0 expectations met; 4 failed trials are left out)" in alone.stdout


def test_what_cannot_be_known_is_undecided(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keval_analysis.expectations._SECONDS", 0.05)
    project.write(
        eval_yaml="""
            dataset: {path: questions.jsonl}
            agents: {logged: {type: recorded, path: answers.jsonl}}
            metrics: [basic/turns]
        """,
        questions_jsonl=records({"id": "q", "expect": {"max_seconds": 5, "regex": "(a+)+$", "contains": "a"}}),
        answers_jsonl=json.dumps({"id": "q", "response": "a" * 500_000 + "!"}) + "\n",
    )

    outcome = project.keval("run", "eval.yaml")

    assert (
        "expect  undecided (1 of 3 expectations met; 2 unknown, such as logged/baseline/q/1 matches" in outcome.stdout
    )
    assert (0, 1) == (outcome.code, project.keval("report", "latest", "--strict").code)


@pytest.mark.parametrize(
    ("expect", "problem"),
    [
        ("yes", "'expect' is a mapping, or a list of mappings, with contains, not_contains, regex"),
        ({"contain": "x"}, "unknown key 'contain' in 'expect'; did you mean 'contains'?"),
        ({"contains": 42}, "'expect.contains' is a text or a list of texts, none of them empty, got 42"),
        ({"not_contains": ["a", ""]}, "'expect.not_contains' is a text or a list of texts, none of them empty, got ''"),
        ({"tool_called": []}, "'expect.tool_called' is an empty list"),
        ({"regex": "a("}, "'expect.regex' has 'a(', which is no regular expression: missing )"),
        # Each takes some 50 MB if it is compiled.
        *[
            ({"regex": pattern}, "which repeats too much for memory; use smaller counts")
            for pattern in (
                ".{200000}",
                "(a{400}){400}",
                "(?x)(a{400}) {4#\n00}",
                "[{]a{1{200000,}",
                "(a{20}){10000}|b{1,2}",
            )
        ],
        ({"max_seconds": 0}, "'expect.max_seconds' is a number above 0, got 0"),
        ({"max_seconds": "5"}, "'expect.max_seconds' is a number above 0, got '5'"),
        ({"conditions": ["baseline"]}, "'expect' expects nothing; add one of contains"),
        (
            {"contains": "x", "conditions": ["with_note"]},
            "no condition of the config: 'with_note'; did you mean 'with_notes'?",
        ),
    ],
)
def test_a_mistake_is_told_with_its_line(project: Project, expect: Any, problem: str) -> None:
    project.write(eval_yaml=CONFIG, questions_jsonl=records({"id": "first"}, {"id": "second", "expect": expect}))

    outcome = project.keval("validate", "eval.yaml")

    assert 2 == outcome.code
    assert outcome.stderr.startswith(f"error: {project.root / 'questions.jsonl'}:2: ")
    assert problem in outcome.stderr


def test_a_pattern_may_have_many_counts(project: Project) -> None:
    uuid = "[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"
    patterns = [f"{uuid}|{uuid}", ".{0,500000}", "(?:a{0,900}){0,900}", "^.{2000,}$"]
    project.write(eval_yaml=CONFIG, questions_jsonl=records({"id": "q", "expect": {"regex": patterns}}))

    assert 0 == project.keval("validate", "eval.yaml").code


def test_a_condition_that_a_flag_leaves_out_may_be_named(project: Project) -> None:
    expect = {"contains": "notes", "conditions": ["with_notes"]}
    project.write(eval_yaml=CONFIG, questions_jsonl=records({"id": "q", "expect": expect}))

    outcome = project.keval("run", "eval.yaml", "--condition", "baseline", "--json")

    assert (0, []) == (outcome.code, outcome.data["gates"])


def test_no_prompt_can_show_what_is_expected(project: Project) -> None:
    prompt = "{{ metadata }} {{ facts }} {{ history }}"
    project.write(
        eval_yaml=CONFIG.replace("baseline: {}", f'baseline: {{system_prompt: "{prompt}"}}'),
        questions_jsonl=records({"id": "q", "expect": {"not_contains": "the-canary"}}),
    )

    outcome = project.keval("run", "eval.yaml")

    assert 0 == outcome.code
    assert "the-canary" not in (project.run_directory() / "trials.jsonl").read_text(encoding="utf-8")
    (sample,) = project.lines("samples.jsonl")
    assert (["the-canary"], {}) == (sample["expect"][0]["not_contains"], sample["metadata"])


def test_an_expectation_changes_no_derived_id_but_a_run_does_not_mix_expectations(project: Project) -> None:
    project.write(eval_yaml=CONFIG, questions_jsonl=records({"expect": {"contains": "How"}}))
    project.keval("run", "eval.yaml")
    (sample,) = project.lines("samples.jsonl")
    project.write(questions_jsonl=records({"expect": {"contains": "Why"}}))

    resumed = project.keval("resume", "latest")
    report = project.keval("report", "latest")
    project.write(questions_jsonl=records({}))
    described = project.keval("run", "eval.yaml", "--sample-id", sample["id"], "--json")

    assert 2 == resumed.code
    assert "it asks something else, or has other facts or expectations" in resumed.stderr
    assert "expect  held (4 of 4 expectations met)" in report.stdout
    assert (0, []) == (described.code, described.data["gates"])


def test_expectations_stand_in_cells_of_a_table_too(project: Project) -> None:
    project.write(
        eval_yaml=CONFIG.replace("questions.jsonl", "questions.csv"),
        questions_csv='id,question,expect\nq,How?,"{""contains"": ""How""}"\nr,Why?,\n',
    )

    outcome = project.keval("run", "eval.yaml")

    assert "expect  held (4 of 4 expectations met)" in outcome.stdout
