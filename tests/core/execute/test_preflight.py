"""Preflight: what the run needs is missed before the first trial, all of it at once, and nothing is written."""

from __future__ import annotations

import json

from tests.conftest import Project

QUESTIONS = '{"id": "a", "question": "How?"}\n'
CONFIG = """
dataset: {path: questions.jsonl}
agents:
  modelled: {model: openai/gpt-test}
contexts:
  notes: {tools: [look]}
  more: {type: notes, tools: [look]}
  down: {type: notes, down: true}
conditions:
  baseline: {}
metrics: [double/length]
"""


def test_a_missing_key_is_named_before_the_first_trial(project: Project) -> None:
    project.write(eval_yaml=CONFIG.replace("baseline: {}", "baseline: {contexts: [down]}"), questions_jsonl=QUESTIONS)

    outcome = project.keval("run", "eval.yaml", env={"OPENAI_API_KEY": None})

    assert 2 == outcome.code
    assert (
        "error: OPENAI_API_KEY is not set; openai/gpt-test needs it: export it, or choose a simulated/ model\n"
        "error: eval.yaml:7:3: server 'down' did not come up: no such file\n"
    ) == outcome.stderr
    assert not (project.root / "results").exists()


def test_a_model_is_reached_where_the_environment_says(project: Project) -> None:
    project.write(eval_yaml=CONFIG, questions_jsonl=QUESTIONS)
    env = {"OPENAI_API_KEY": "sk-canary", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}

    outcome = project.keval("run", "eval.yaml", env=env)

    (trial,) = project.lines("trials.jsonl")
    assert (0, "openai/gpt-test http://127.0.0.1:9/v1 [secret] ['x-keval-asker']") == (outcome.code, trial["output"])
    assert ("openai/gpt-test", []) == (trial["model"], project.read("manifest.json")["simulated"])


def test_an_agent_prepares_before_the_first_trial_and_is_closed_after_the_last(project: Project) -> None:
    config = CONFIG.replace("{model: openai/gpt-test}", "{model: openai/gpt-test, closes: closed.txt}")
    project.write(eval_yaml=config, questions_jsonl=QUESTIONS)

    outcome = project.keval("run", "eval.yaml", env={"OPENAI_API_KEY": "k"})

    assert (0, True) == (outcome.code, (project.root / "closed.txt").exists())


def test_an_agent_that_cannot_prepare_stops_the_run(project: Project) -> None:
    config = CONFIG.replace("{model: openai/gpt-test}", "{model: openai/gpt-test, refuses: no such API}")
    project.write(eval_yaml=config, questions_jsonl=QUESTIONS)

    outcome = project.keval("run", "eval.yaml", env={"OPENAI_API_KEY": "k"})

    assert (2, "error: eval.yaml:3:3: no such API\n") == (outcome.code, outcome.stderr)
    assert not (project.root / "results").exists()


def test_a_flag_gives_an_agent_another_model(project: Project) -> None:
    project.write(eval_yaml=CONFIG, questions_jsonl=QUESTIONS)

    project.keval("run", "eval.yaml", "--model", "modelled=google/gemini-test", env={"GEMINI_API_KEY": "k"})

    (trial,) = project.lines("trials.jsonl")
    assert (
        "google/gemini-test https://generativelanguage.googleapis.com/v1beta/openai k ['x-keval-asker']"
        == trial["output"]
    )


def test_secrets_are_found_in_whatever_comes_from_outside(project: Project) -> None:
    secret = "sk-canary-7"
    call = {"name": "look", "arguments": {"id": secret, "model": [secret], secret: {"stage": secret}}, "result": secret}
    project.write(
        eval_yaml="""
        dataset: {path: questions.jsonl}
        agents: {scripted: {}}
        contexts: {web: {type: notes, tools: [look], direct: true, headers: {Authorization: "${KEVAL_CANARY}"}}}
        conditions: {it: {contexts: [web]}}
        judges: {strict: {}}
        rubrics: [tone: {instructions: "Say ${KEVAL_CANARY_KEY}", levels: {1: bad, 2: good}}]
        """,
        questions_jsonl=json.dumps({"id": "a", "question": "How?", "answer": "So.", "calls": [call]}) + "\n",
    )

    outcome = project.keval("run", "eval.yaml", env={"KEVAL_CANARY": secret, "KEVAL_CANARY_KEY": "other-canary"})

    (trial,) = project.lines("trials.jsonl")
    (kept,) = trial["transcript"]["tool_calls"]
    told = {"id": "[secret]", "model": ["[secret]"], "[secret]": {"stage": "[secret]"}}
    assert (0, told, "[secret]") == (outcome.code, kept["arguments"], kept["result"])
    assert ["Say [secret]"] == [rubric["instructions"] for rubric in project.read("manifest.json")["rubrics"].values()]


def test_a_context_with_a_defect_is_told_and_the_others_too(project: Project) -> None:
    config = CONFIG.replace("down: {type: notes, down: true}", "down: {type: notes, text: bug}")
    config = config.replace("baseline: {}", "baseline: {contexts: [down]}")
    project.write(eval_yaml=config, questions_jsonl=QUESTIONS)

    outcome = project.keval("run", "eval.yaml", env={"OPENAI_API_KEY": None})

    assert 2 == outcome.code
    assert "the context 'down' of keval-doubles 1.0 does not start: RuntimeError: a bug in a context" in outcome.stderr
    assert "OPENAI_API_KEY is not set" in outcome.stderr


def test_what_was_prepared_is_closed_when_another_cannot_be(project: Project) -> None:
    closes = "modelled: {model: openai/gpt-test, closes: closed.txt}"
    refuses = "other: {type: modelled, model: openai/gpt-test, refuses: never}"
    config = CONFIG.replace("modelled: {model: openai/gpt-test}", f"{closes}\n  {refuses}")
    project.write(eval_yaml=config, questions_jsonl=QUESTIONS)

    outcome = project.keval("run", "eval.yaml", env={"OPENAI_API_KEY": "k"})

    assert (2, True) == (outcome.code, (project.root / "closed.txt").exists())


def test_two_servers_with_a_tool_of_one_name_are_refused(project: Project) -> None:
    config = CONFIG.replace("baseline: {}", "both: {contexts: [notes, more]}")
    project.write(eval_yaml=config, questions_jsonl=QUESTIONS)

    outcome = project.keval("run", "eval.yaml", env={"OPENAI_API_KEY": "k"})

    assert (2, True) == (outcome.code, "both offer a tool named 'look'" in outcome.stderr)


def test_a_server_that_lists_a_tool_twice_is_refused(project: Project) -> None:
    config = CONFIG.replace("tools: [look]", "tools: [look, look]", 1).replace(
        "baseline: {}", "it: {contexts: [notes]}"
    )
    project.write(eval_yaml=config, questions_jsonl=QUESTIONS)

    outcome = project.keval("run", "eval.yaml", env={"OPENAI_API_KEY": "k"})

    assert 2 == outcome.code
    assert "the server 'notes' lists 2 tools named 'look'; an agent cannot tell them apart" in outcome.stderr


def test_variables_stand_in_the_manifest_as_written(project: Project) -> None:
    config = CONFIG.replace("notes: {tools: [look]}", "notes: {tools: [look], text: '${KEVAL_TOKEN}'}")
    config = config.replace("baseline: {}", "it: {contexts: [notes], system_prompt: '${KEVAL_TOKEN}'}")
    project.write(eval_yaml=config, questions_jsonl=QUESTIONS)

    outcome = project.keval("run", "eval.yaml", env={"OPENAI_API_KEY": "sk-canary", "KEVAL_TOKEN": "s3cret"})

    manifest = (project.run_directory() / "manifest.json").read_text(encoding="utf-8")
    assert (0, True) == (outcome.code, "${KEVAL_TOKEN}" in manifest)
    assert not [secret for secret in ("sk-canary", "s3cret") if secret in manifest]


def test_a_results_directory_that_cannot_be_written_is_told(project: Project) -> None:
    project.write(eval_yaml=CONFIG, questions_jsonl=QUESTIONS, results_txt="a file")

    outcome = project.keval("run", "eval.yaml", "-o", "results.txt/inside", env={"OPENAI_API_KEY": "k"})

    assert (2, True) == (outcome.code, "the run directory cannot be made" in outcome.stderr)
