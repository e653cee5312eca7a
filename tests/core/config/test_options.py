"""Options are read strictly, from the file or from the environment, and override the plugin's own defaults."""

from __future__ import annotations

import json

from tests.conftest import Project

CONFIG = """
dataset: {path: questions.jsonl}
agents: {scripted: {}}
conditions: {baseline: {}}
metrics: [double/length]
"""
QUESTIONS = '{"id": "a", "question": "How?"}\n'


def test_a_number_may_come_from_the_environment(project: Project) -> None:
    config = CONFIG + "execution: {num_repetitions: '${REPEAT}', max_concurrent: '${UNSET:-2}'}\n"
    project.write(eval_yaml=config, questions_jsonl=QUESTIONS)

    plan = project.keval("run", "eval.yaml", "--dry-run", "--json", env={"REPEAT": "3"}).data

    assert (3, 2) == (plan["repetitions"], plan["max_concurrent"])


def test_what_the_environment_gives_must_fit_too(project: Project) -> None:
    project.write(eval_yaml=CONFIG + "execution: {num_repetitions: '${REPEAT}'}\n", questions_jsonl=QUESTIONS)

    outcome = project.keval("run", "eval.yaml", env={"REPEAT": "often"})

    assert (2, "error: eval.yaml:5:30: expected a whole number, got the value of ${REPEAT}\n") == (
        outcome.code,
        outcome.stderr,
    )


def test_one_characteristic_overrides_and_the_others_stay(project: Project) -> None:
    config = CONFIG.replace("{scripted: {}}", "{scripted: {characteristics: {setup: low}}}")
    project.write(eval_yaml=config, questions_jsonl=QUESTIONS)

    project.keval("run", "eval.yaml")

    shipped = project.read("manifest.json")["agents"]["scripted"]["characteristics"]
    assert {"files": 5, "setup": "low"} == shipped


def test_a_metric_with_options_stands_beside_its_group(project: Project) -> None:
    config = CONFIG.replace("[double/length]", "[double, double/length: {limit: 4}]")
    project.write(eval_yaml=config, questions_jsonl=QUESTIONS)

    project.keval("run", "eval.yaml")

    values = {line["metric"]: line["value"] for line in project.lines("scores.jsonl")}
    assert (8, 1.0) == (len(values), values["double/length"])


def test_a_rubric_is_defined_in_the_config(project: Project) -> None:
    rubric = "rubrics: [tone: {instructions: 'Is it kind?', levels: {1: no, 2: yes}}]\njudges: {strict: {}}\n"
    project.write(eval_yaml=CONFIG + rubric, questions_jsonl=QUESTIONS)

    outcome = project.keval("run", "eval.yaml", "--json")

    # YAML 1.1 reads `no` and `yes` as switches; a level's text is text.
    assert (2, True) == (outcome.code, "expected a text, got false" in outcome.stderr)


def test_paths_are_relative_to_the_config(project: Project) -> None:
    folder = project.root / "evaluations"
    folder.mkdir()
    (folder / "eval.yaml").write_text(CONFIG.strip(), encoding="utf-8")
    (folder / "questions.jsonl").write_text(QUESTIONS, encoding="utf-8")

    outcome = project.keval("run", "evaluations/eval.yaml", "--json")

    assert (0, 1) == (outcome.code, outcome.data["arms"][0]["n"])


def test_the_schema_accepts_what_keval_accepts(project: Project) -> None:
    import jsonschema
    import yaml

    schema = project.keval("schema").data
    validator = jsonschema.Draft202012Validator(schema)
    good = yaml.safe_load(CONFIG + "execution: {num_repetitions: '${REPEAT:-3}', retry: {max_attempts: 2}}\n")
    bad = json.loads(json.dumps(good))
    bad["agents"]["scripted"]["sufix"] = "!"
    bad["execution"]["max_concurrent"] = "lots"

    jsonschema.Draft202012Validator.check_schema(schema)

    assert [] == [error.message for error in validator.iter_errors(good)]
    assert [["agents", "scripted"], ["execution", "max_concurrent"]] == sorted(
        list(error.absolute_path) for error in validator.iter_errors(bad)
    )


def test_on_and_off_are_labels(project: Project) -> None:
    project.write(eval_yaml=CONFIG.replace("{baseline: {}}", "{off: {}, on: {}}"), questions_jsonl=QUESTIONS)

    outcome = project.keval("run", "eval.yaml", "--condition", "on", "--json")

    assert (0, ["on"]) == (outcome.code, [arm["condition"] for arm in outcome.data["arms"]])


def test_a_mapping_may_be_merged_and_used_again(project: Project) -> None:
    conditions = "\nconditions:\n  one: &one {<<: {system_prompt: a}, system_prompt: b}\n  two: *one\n"
    project.write(eval_yaml=CONFIG.replace("\nconditions: {baseline: {}}\n", conditions), questions_jsonl=QUESTIONS)

    outcome = project.keval("validate", "eval.yaml")

    assert (0, "") == (outcome.code, outcome.stderr)


def test_a_plugins_name_may_come_from_the_environment(project: Project) -> None:
    config = CONFIG.replace("{scripted: {}}", "{it: {type: '${AGENT:-scripted}', suffix: '$${x}'}}")
    project.write(eval_yaml=config, questions_jsonl=QUESTIONS)

    outcome = project.keval("run", "eval.yaml")

    (trial,) = project.lines("trials.jsonl")
    assert (0, "How?${x}") == (outcome.code, trial["output"])
