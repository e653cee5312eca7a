"""The format of k-eval: one pass, after which nothing else knows of it, and errors at the user's own lines."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from keval.seams import registry
from tests.conftest import Project

CONFIG = """
name: mine
dataset: {path: questions.jsonl, question_key: question, answer_key: answer}
agent:
  type: scripted
  suffix: "!"
judge: {model: simulated/judge, temperature: 0.0}
mcp_servers:
  notes: {type: notes, text: "Read. "}
conditions:
  baseline: {mcp_servers: [], system_prompt: "Answer."}
  with_notes: {mcp_servers: [notes], require_mcp_tool_use: false}
execution: {num_repetitions: 1, max_concurrent: 2, retry: {max_attempts: 2}}
"""
QUESTIONS = '{"id": "a", "question": "Why?", "answer": "So."}\n'


@pytest.mark.usefixtures("simulated_here")
def test_the_format_becomes_kevals_own_words(project: Project) -> None:
    project.write(eval_yaml=CONFIG, questions_jsonl=QUESTIONS)

    outcome = project.keval("run", "eval.yaml", "--json")

    assert 0 == outcome.code, outcome.stderr
    config = project.read("manifest.json")["config"]
    assert {"scripted": {"type": "scripted", "suffix": "!"}} == config["agents"]
    assert {"judge": {"type": "openai", "model": "simulated/judge", "temperature": 0.0}} == config["judges"]
    assert {"notes"} == set(config["contexts"])
    assert {"contexts": [], "system_prompt": "Answer."} == config["conditions"]["baseline"]
    assert not {"agent", "judge", "mcp_servers"} & set(config)
    assert {"judge"} == {arm["judge"] for arm in outcome.data["arms"]}


def test_a_judge_that_its_model_names_is_labelled_judge_beside_an_agent_of_the_same_vendor(project: Project) -> None:
    config = CONFIG.replace('type: scripted\n  suffix: "!"', "type: openai\n  model: simulated/any")
    project.write(eval_yaml=config, questions_jsonl=QUESTIONS)

    plans = [
        project.keval("run", "eval.yaml", "--dry-run", "--json", "-m", flag).data
        for flag in ("judge=anthropic/claude-x", "openai=openai/gpt-x", "judges.openai=openai/gpt-x")
    ]

    models = [(plan["agents"]["openai"]["model"], plan["judges"]["judge"]["model"]) for plan in plans]
    kinds = [plan["judges"]["judge"]["type"] for plan in plans]
    assert ["anthropic", "openai", "openai"] == kinds
    assert [
        ("simulated/any", "anthropic/claude-x"),
        ("openai/gpt-x", "simulated/judge"),
        ("simulated/any", "openai/gpt-x"),
    ] == models


@pytest.mark.parametrize(
    ("written", "instead", "problem"),
    [
        ('suffix: "!"', 'sufix: "!"', "eval.yaml:5:3: unknown key 'sufix'; did you mean 'suffix'? (agent 'scripted')"),
        ("type: scripted", "type: scriptd", "eval.yaml:3:1: no agent named 'scriptd' is installed"),
        ("  type: scripted\n", "", "eval.yaml:3:1: add `type:` with the name of an agent"),
        ('agent:\n  type: scripted\n  suffix: "!"', "agent: scripted", "eval.yaml:3:8: expected a mapping with type:"),
        ("judge: {model: simulated/judge, ", "judge: {", "eval.yaml:6:1: add `model:`, such as openai/gpt-4o"),
        ("temperature: 0.0", "temprature: 0.0", "eval.yaml:6:33: unknown key 'temprature'"),
        ('text: "Read. "', "txt: x", "eval.yaml:8:24: unknown key 'txt'; did you mean 'text'? (context 'notes')"),
        ("[notes]", "[note]", "eval.yaml:11:30: no context named 'note'; did you mean 'notes'?"),
        ("name: mine", "agents: {scripted: {}}", "eval.yaml:3:1: 'agent' and 'agents' are the same; keep one"),
        ("mcp_servers: []", "mcp_servers: [], contexts: []", "eval.yaml:10:14: unknown key 'mcp_servers'"),
    ],
)
def test_problems_stand_where_the_user_wrote_them(project: Project, written: str, instead: str, problem: str) -> None:
    project.write(eval_yaml=CONFIG.replace(written, instead), questions_jsonl=QUESTIONS)

    outcome = project.keval("validate", "eval.yaml")

    assert 2 == outcome.code
    assert outcome.stderr.startswith(f"error: {problem}"), outcome.stderr
    assert 1 == outcome.stderr.count("error: "), outcome.stderr


def test_a_dataset_beside_the_working_directory_is_taken_and_said(project: Project) -> None:
    (project.root / "configs").mkdir()
    (project.root / "configs" / "eval.yaml").write_text(CONFIG, encoding="utf-8")
    project.write(questions_jsonl=QUESTIONS)

    outcome = project.keval("validate", "configs/eval.yaml")

    said = " ".join(outcome.stderr.split())
    assert 0 == outcome.code, outcome.stderr
    assert "configs/eval.yaml:3:11: the dataset is taken relative to the working directory, as in k-eval:" in said


def test_a_dataset_beside_the_config_comes_first_and_is_all_that_kevals_own_configs_take(project: Project) -> None:
    folder = project.root / "configs"
    folder.mkdir()
    (folder / "eval.yaml").write_text(CONFIG, encoding="utf-8")
    own = CONFIG.replace("agent:\n  type: scripted\n", "agents:\n  scripted:\n  ").replace(
        "judge: {", "judges: {judge: {"
    )
    own = own.replace("temperature: 0.0}", "temperature: 0.0}}").replace("mcp_servers", "contexts")
    (folder / "own.yaml").write_text(own.replace('suffix: "!"', '  suffix: "!"'), encoding="utf-8")
    project.write(questions_jsonl=QUESTIONS)
    missing = project.keval("validate", "configs/own.yaml")
    Path(folder, "questions.jsonl").write_text(QUESTIONS * 1, encoding="utf-8")

    both = project.keval("validate", "configs/eval.yaml")

    assert (2, True) == (missing.code, "the dataset cannot be read" in missing.stderr), missing.stderr
    notes = both.stderr.splitlines()
    assert (0, 1) == (both.code, len(notes)), both.stderr
    assert "with_notes differs from baseline in contexts and system_prompt" in notes[0]


def test_a_prompt_is_sent_as_written_unless_it_is_said_to_be_a_template(project: Project) -> None:
    prompt = '"{{ question }} {% raw"'
    config = CONFIG.replace('"Answer."', prompt).replace(
        "require_mcp_tool_use: false", 'system_prompt: "{{ question }}", template: true'
    )
    config = config.replace("judge: {model: simulated/judge, temperature: 0.0}", "metrics: [double/length]")
    project.write(eval_yaml=config, questions_jsonl=QUESTIONS)

    outcome = project.run("eval.yaml")

    assert 0 == outcome.code, outcome.stderr
    assert "eval.yaml:10:31: {{ and {% are sent as written (the same as k-eval);" in outcome.stderr
    assert 0 == project.keval("resume", "latest", "--add-repetitions", "1").code
    prompts = [(trial["condition"], trial["transcript"]["instructions"]) for trial in project.lines("trials.jsonl")]
    assert [("baseline", "{{ question }} {% raw")] * 2 + [("with_notes", "Why?\n\nRead.")] * 2 == sorted(prompts)


@pytest.mark.parametrize(("execution", "trials"), [("execution: {max_concurrent: 2}", 6), ("", 6), ("execution:", 6)])
def test_questions_are_asked_three_times_by_default(project: Project, execution: str, trials: int) -> None:
    config = CONFIG.replace("execution: {num_repetitions: 1, max_concurrent: 2, retry: {max_attempts: 2}}", execution)
    project.write(eval_yaml=config, questions_jsonl=QUESTIONS)

    outcome = project.keval("validate", "eval.yaml", "--model", "judge=simulated/judge")

    assert f"valid; {trials} trials" in outcome.stdout, outcome.stderr


@pytest.mark.usefixtures("simulated_here")
def test_a_model_of_litellm_is_valid_and_the_run_names_what_makes_it_run(project: Project) -> None:
    config = CONFIG.replace("simulated/judge", "sagemaker/claude-opus-5-5")
    project.write(eval_yaml=config, questions_jsonl=QUESTIONS)

    valid = project.keval("validate", "eval.yaml")
    planned = project.keval("run", "eval.yaml", "--dry-run")
    refused = project.keval("run", "eval.yaml")
    ran = project.keval("run", "eval.yaml", "--model", "judge=simulated/judge", "--log-format", "console")

    assert (0, 0, 2, 0) == (valid.code, planned.code, refused.code, ran.code), ran.stderr
    told = "error: sagemaker/ models are reached through LiteLLM's proxy: start it, and export LITELLM_PROXY_API_BASE"
    assert told in refused.stderr
    assert 1 == len([*project.root.glob("results/*/*")])


def test_a_judge_alone_does_not_make_a_config_one_of_k_eval(project: Project) -> None:
    config = CONFIG.replace('agent:\n  type: scripted\n  suffix: "!"', "agents: {scripted: {}}")
    config = config.replace("mcp_servers:\n", "contexts:\n").replace("num_repetitions: 1, ", "")
    project.write(eval_yaml=config.replace("simulated/judge", "some_lab/x"), questions_jsonl=QUESTIONS)

    refused = project.keval("validate", "eval.yaml")
    counted = project.keval("validate", "eval.yaml", "--model", "judge=openai/x")

    assert (2, True) == (refused.code, "error: eval.yaml:4:16: some_lab/x: no model provider" in refused.stderr)
    assert "valid; 2 trials" in counted.stdout, counted.stderr


def test_a_config_in_other_words_imports_no_format(tmp_path: Path) -> None:
    config = tmp_path / "eval.yaml"
    config.write_text("dataset: {path: q.jsonl}\nagents: {scripted: {}}\nmetrics: [double/length]\n", encoding="utf-8")
    code = (
        f"import sys\nfrom pathlib import Path\nfrom keval.config.load import load\nload(Path({str(config)!r}))\n"
        "print([name for name in sys.modules if name.startswith('keval_')])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "[]" == done.stdout.strip()


def test_without_the_package_of_a_format_its_keys_name_it(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write(eval_yaml=CONFIG, questions_jsonl=QUESTIONS)
    found = registry.components
    monkeypatch.setattr(registry, "components", lambda group: () if group == "keval.formats" else found(group))

    outcome = project.keval("validate", "eval.yaml")

    assert 2 == outcome.code
    for key in ("agent", "judge", "mcp_servers"):
        assert f"the key {key!r} comes with keval-mcp, which is not installed: `" in outcome.stderr
