"""Configs of promptfoo in the manner of three authors: texts compared, chats against tests in CSV, and scenarios."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import Outcome, Project

pytestmark = pytest.mark.usefixtures("simulated_here")

DATA = Path(__file__).parent / "data"
TEXTS = r"""
    description: Say it in fewer words
    prompts:
      - "You are brief.\n\nShorten this: {{text}}"
      - {label: one sentence, raw: "Shorten this to one sentence: {{ text }}"}
    providers:
      - openai:gpt-4o-mini
      - id: anthropic:messages:claude-sonnet-5-5
        label: claude
        config: {temperature: 0.2, max_tokens: 300, top_k: 4}
      - file://mine.js
      - vertex:gemini-2.5-pro
    defaultTest:
      assert:
        - {type: javascript, value: output.length < 100}
        - {type: llm-rubric, value: "It keeps the point about {{topic}}", provider: openai:gpt-4o}
        - {type: cost, threshold: 0.01}
      options: {provider: openai:chat:gpt-5.5}
    tests:
      - description: tides
        vars: {text: "Tides come from the pull of the moon.", topic: tides}
        assert:
          - {type: icontains, value: moon}
          - {type: not-contains, value: sun, metric: no sun}
          - {type: factuality, value: The moon pulls at the sea.}
      - vars: {text: ["Salt comes from rocks.", "Rivers carry salt."], topic: salt}
    evaluateOptions: {repeat: 2, maxConcurrency: 3, cache: false}
    outputPath: out.html
"""
CHATS = """
    prompts: file://chats/*.json
    targets:
      - id: google:gemini-2.5-flash
        config:
          apiKey: "{{env.MY_KEY}}"
          mcp:
            enabled: true
            servers:
              - {name: time, command: mcp-server-time, args: [--local-timezone, UTC]}
              - {name: notes, url: "https://notes.example/mcp", headers: {Authorization: "Bearer {{ env.NOTES }}"}}
    tests: tests.csv
    defaultTest:
      vars: {tone: plain, rules: file://rules.txt}
"""
CHAT = [
    {"role": "system", "content": "Be {{tone}}. {{rules}}"},
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": [{"type": "text", "text": "Hello, {{name}}."}]},
    {"role": "user", "content": "{{question}}"},
]
ROWS = """\
name,question,__expected1,__expected2,__description,__metadata:area,__metric,__suffix
Ada,What is a tide?,contains: moon,grade: It is short,tide,sea,,
Bo,How far?,similar(0.8): far,"python: len(output) > 3",,,far, Please.
"""
SCENARIOS = """
    prompts: ["Translate to {{language}}: {{text}}"]
    providers: [echo]
    scenarios:
      - config:
          - {vars: {language: French}, assert: [{type: contains, value: French}]}
          - vars: {language: Dutch}
        tests:
          - vars: {text: "Good day"}
            assert:
              - type: assert-set
                threshold: 0.5
                assert: [{type: contains, value: Good}, {type: contains, value: Dutch}]
          - vars: {text: "{{language}} bread"}
            threshold: 1
            assert: [{type: ends-with, value: "{{language}} bread"}]
"""


def told(outcome: Outcome) -> list[str]:
    """The table of what has no equivalent, without white space."""
    table = outcome.stderr.partition("no equivalent in keval:\n")[2]
    return [" ".join(line.split()) for line in table.splitlines()]


def config_of(project: Project, name: str) -> Any:
    """The config that `keval init` writes of a file."""
    outcome = project.keval("init", "mine", "--from", name)

    assert 0 == outcome.code, outcome.stderr
    return yaml.safe_load((project.root / "mine/eval.yaml").read_text(encoding="utf-8"))


def test_prompts_that_differ_before_the_question_become_conditions(project: Project) -> None:
    project.write(promptfooconfig_yaml=TEXTS)

    outcome = project.keval("validate", "promptfooconfig.yaml")

    assert 0 == outcome.code, outcome.stderr
    assert "valid; 36 trials (3 samples), 36 judgements" in outcome.stdout
    assert {
        "3:3 prompts that differ before their last placeholder, which becomes the question: as system prompts",
        "9:49 the key 'top_k'",
        "10:5 the provider 'file://mine.js'",
        "14:7 an assertion of the type 'javascript', code, which is not run",
        "15:71 the key 'provider'",
        "16:7 an assertion of the type 'cost', which is not checked",
        "26:49 the key 'cache'",
        "27:1 the key 'outputPath'",
    } == {line.removeprefix("promptfooconfig.yaml:") for line in told(outcome)}
    assert {
        "name": "promptfooconfig",
        "description": "Say it in fewer words",
        "dataset": {"path": "../promptfooconfig.yaml", "type": "suite"},
        "agents": {
            "openai_gpt-4o-mini": {"type": "openai", "model": "openai/gpt-4o-mini"},
            "claude": {
                "type": "anthropic",
                "model": "anthropic/claude-sonnet-5-5",
                "temperature": 0.2,
                "max_tokens": 300,
            },
            "vertex_gemini-2.5-pro": {"type": "openai", "model": "vertex_ai/gemini-2.5-pro"},
        },
        "conditions": {
            "prompt_1": {"system_prompt": "You are brief.\n\nShorten this:"},
            "one_sentence": {"system_prompt": "Shorten this to one sentence:"},
        },
        "judges": {"judge": {"model": "openai/gpt-5.5"}},
        "rubrics": ["expectations"],
        "metrics": ["formats/asserts"],
        "execution": {"num_repetitions": 2, "max_concurrent": 3},
    } == config_of(project, "promptfooconfig.yaml")


def test_assertions_are_scored_by_rule_or_by_a_judge(project: Project) -> None:
    project.write(promptfooconfig_yaml=TEXTS)

    outcome = project.keval(
        *("run", "promptfooconfig.yaml", "--agent", "scripted", "-m", "simulated/any", "-o", "results")
    )

    assert 0 == outcome.code, outcome.stderr
    tides, salt, _ = project.lines("samples.jsonl")
    assert ("tides", "Tides come from the pull of the moon.") == (tides["id"], tides["question"])
    assert [
        "It keeps the point about tides",
        "The response contradicts nothing of this: The moon pulls at the sea.",
    ] == tides["metadata"]["expectations"]
    assert [
        {"type": "icontains", "value": "moon"},
        {"type": "not-contains", "value": "sun", "metric": "no sun"},
    ] == tides["metadata"]["asserts"]["assert"]
    assert "asserts" not in salt["metadata"]
    scores = project.lines("scores.jsonl")
    assert {"expectations", "formats/asserts"} == {each["metric"] for each in scores}


def test_chats_ask_their_last_message_with_the_servers_of_the_providers(project: Project) -> None:
    project.write(promptfooconfig_yaml=CHATS, tests_csv=ROWS, rules_txt="No jokes.")
    (project.root / "chats").mkdir()
    (project.root / "chats/short.json").write_text(json.dumps(CHAT), encoding="utf-8")
    project.environ["NOTES"] = "token"

    config = config_of(project, "promptfooconfig.yaml")
    outcome = project.keval("run", "promptfooconfig.yaml", "--agent", "scripted", "--dry-run")

    assert {"google_gemini-2.5-flash": {"type": "openai", "model": "google/gemini-2.5-flash"}} == config["agents"]
    assert {
        "time": {"type": "stdio", "command": "mcp-server-time", "args": ["--local-timezone", "UTC"]},
        "notes": {
            "type": "http",
            "url": "https://notes.example/mcp",
            "headers": {"Authorization": "Bearer ${NOTES}"},
        },
    } == config["contexts"]
    prompt = "Be {{ metadata['vars']['tone'] }}. {{ metadata['vars']['rules'] }}"
    assert {"prompt_1": {"system_prompt": prompt, "contexts": ["time", "notes"]}} == config["conditions"]
    assert 0 == outcome.code, outcome.stderr
    assert [
        "promptfooconfig.yaml:5:7 the key 'apiKey'",
        "promptfooconfig.yaml:11:8 an assertion of the type 'similar', which is not checked",
        "promptfooconfig.yaml:11:8 an assertion of the type 'python', code, which is not run",
    ] == sorted(told(outcome), key=len)


def test_without_an_assertion_answers_are_only_made(project: Project) -> None:
    project.write(promptfooconfig_yaml="prompts: Say it\nproviders: openai:gpt-5.5\n")

    config = config_of(project, "promptfooconfig.yaml")

    assert ["basic/latency"] == config["metrics"]


def test_scenarios_combine_their_variables_with_their_tests(project: Project) -> None:
    project.write(promptfooconfig_yaml=SCENARIOS)

    outcome = project.keval("run", "promptfooconfig.yaml", "-o", "results")

    assert (0, []) == (outcome.code, told(outcome)), outcome.stderr
    asked = [each["question"] for each in project.lines("samples.jsonl")]
    assert [
        "Translate to French: Good day",
        "Translate to French: French bread",
        "Translate to Dutch: Good day",
        "Translate to Dutch: Dutch bread",
    ] == asked
    assert [1.0] * 4 == [each["value"] for each in project.lines("scores.jsonl")]


def test_parts_of_the_same_name_are_kept_apart(project: Project) -> None:
    (project.root / "texts.txt").write_text("Say {{text}}\n---\nTell {{text}}\n", encoding="utf-8")
    project.write(
        promptfooconfig_yaml="""
            prompts: [{id: file://texts.txt, label: short}]
            providers:
              - openai:gpt-5.5: {config: {mcp: {enabled: true, server: {command: a-server, args: [texts.txt]}}}}
              - id: openai:gpt-5.5
                config: {temperature: 0, mcp: {enabled: true, servers: [{command: a-server}, {command: a-server}]}}
            tests: texts.jsonl
            defaultTest:
              provider: openai:gpt-4o
              options: {provider: {text: openai:gpt-4o}}
              assert: [{type: llm-rubric}, {type: g-eval, value: [It is short, It is clear]}]
        """,
        texts_jsonl="""
            {"vars": {"text": "salt"}, "description": "salt"}
            {"vars": {"text": "tide"}, "description": "tide"}
        """,
    )

    config = config_of(project, "promptfooconfig.yaml")
    outcome = project.keval("validate", "promptfooconfig.yaml")

    assert {
        "8:3 the key 'provider'",
        "9:23 the provider {'text': 'openai:gpt-4o'}",
        "10:12 an assertion of the type 'llm-rubric', which is not checked",
    } == {line.removeprefix("promptfooconfig.yaml:") for line in told(outcome) if "prompts that" not in line}
    assert {"judge": {"model": "openai/gpt-5.5"}} == config["judges"]
    assert ["short", "short_2"] == [*config["conditions"]]
    assert ["openai_gpt-5.5", "openai_gpt-5.5_2"] == [*config["agents"]]
    first = {"type": "stdio", "command": "a-server", "args": ["texts.txt"], "cwd": ".."}
    assert {"mcp": first, "mcp_2": {"type": "stdio", "command": "a-server"}} == config["contexts"]


def test_prompts_that_differ_after_their_variables_are_asked_as_samples(project: Project) -> None:
    project.write(
        promptfooconfig_yaml="""
            prompts:
              - "{{text}} in one word"
              - "- role: system\\n  content: Be {{mood}}\\n- {role: user, content: '{{text}}?'}"
            providers: echo
            tests: [{vars: {text: salt, mood: kind}, assert: [{type: starts-with, value: salt}]}]
        """
    )

    outcome = project.keval("run", "promptfooconfig.yaml", "-o", "results")

    assert 0 == outcome.code, outcome.stderr
    assert ["salt in one word", "salt?"] == [each["question"] for each in project.lines("samples.jsonl")]
    assert ["", "Be kind"] == [each["metadata"]["system"] for each in project.lines("samples.jsonl")]
    line, *_ = told(outcome)
    assert "each is asked in samples of its own, and not compared" in line


@pytest.mark.parametrize(
    ("part", "problem"),
    [
        ("prompts: '{{ text | upper }}'", "1:10: '{{text | upper}}' is more than a name: filters and logic"),
        ("prompts: '{% if text %}x{% endif %}'", "1:10: '{% if text %}' is more than a name"),
        ("prompts: file://prompt.py", "1:10: file://prompt.py is code, which is not run; write out what it makes"),
        ("prompts: gone/*.txt", "1:10: there is no file gone/*.txt"),
        ('prompts: \'[{"role": "system", "content": "x"}]\'', "1:10: the last message of a prompt is not the user's"),
        ("defaultTest: {options: {transform: output.trim()}}", "1:25: 'transform' is code, which is not run"),
        ("prompts: 'Say {{other}}'", "3:9: there is no value for '{{other}}'"),
        (
            "defaultTest: {assert: [{type: latency}]}",
            "3:9: the assertion latency null cannot be decided: it has no 'threshold'",
        ),
        (
            "defaultTest: {assert: [{type: regex, value: '('}]}",
            "3:9: the assertion regex ( cannot be decided: missing )",
        ),
        ("defaultTest: {assert: [contains]}", "3:9: this is not as the tool's documentation has it: AttributeError"),
        ("evaluateOptions: {}\ndefaultTest: {threshold: none}", "4:9: this is not as the tool's documentation"),
        ("defaultTest: file://gone.yaml", " there is no file gone.yaml"),
        ("defaultTest: {vars: {more: file://more.py}}", "3:9: file://more.py is code"),
    ],
)
def test_what_cannot_be_read_is_refused_at_its_place(project: Project, part: str, problem: str) -> None:
    project.write(promptfooconfig_yaml=f"{part}\nproviders: [echo]\ntests: [{{vars: {{text: x}}}}]\n")

    outcome = project.keval("validate", "promptfooconfig.yaml")

    assert (2, True) == (outcome.code, f"promptfooconfig.yaml:{problem}" in outcome.stderr), outcome.stderr


def results(project: Project) -> list[tuple[bool, float]]:
    """Whether each test passes, and its score, by keval."""
    scores = {each["sample"]: each for each in project.lines("scores.jsonl")}
    found = [scores[each["id"]] for each in project.lines("samples.jsonl")]
    return [(each["value"] == 1, round(each["details"]["share"], 3)) for each in found]


def test_assertions_hold_where_promptfoo_says_so(project: Project) -> None:
    outcome = project.run(DATA / "checks.yaml")

    theirs = [(passed, score) for passed, score in json.loads((DATA / "checks.json").read_text(encoding="utf-8"))]
    assert (0, []) == (outcome.code, told(outcome)), outcome.stderr
    assert theirs == results(project)


@pytest.mark.slow
@pytest.mark.skipif("KEVAL_PROMPTFOO" not in os.environ, reason="KEVAL_PROMPTFOO is no folder that has promptfoo")
def test_promptfoo_itself_says_the_same(project: Project) -> None:
    for file in DATA.glob("checks.*"):
        shutil.copy(file, project.root)
    program = Path(os.environ["KEVAL_PROMPTFOO"]) / "node_modules/.bin/promptfoo"
    switches = {
        f"PROMPTFOO_{name}": "1" for name in ("DISABLE_TELEMETRY", "DISABLE_UPDATE", "DISABLE_REMOTE_GENERATION")
    }
    environ = {**os.environ, **switches, "PROMPTFOO_CONFIG_DIR": str(project.root / "kept")}
    command = [str(program), "eval", "-c", "checks.yaml", "--no-cache", "-o", "out.json"]

    subprocess.run(command, cwd=project.root, env=environ, capture_output=True, timeout=120, check=False)
    project.keval("run", "checks.yaml", "-o", "results")

    made = json.loads((project.root / "out.json").read_text(encoding="utf-8"))["results"]["results"]
    theirs = [(each["success"], round(each["score"], 3)) for each in sorted(made, key=lambda each: each["testIdx"])]
    assert theirs == results(project)
