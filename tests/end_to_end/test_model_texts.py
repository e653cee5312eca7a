"""What models write into their texts where nobody reads it for keval: calls of tools, and reasoning."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from keval_gateway import ChatReply, ChatRequest
from tests.conftest import Outcome, Project, serve_here
from tests.stdio_server import ENVIRONMENT

CALL = '{"name": "NAME", "arguments": {"query": "Paris"}}'
WRITTEN = [
    *(CALL, f"```json\n{CALL}\n```", f"<tool_call>\n{CALL}\n</tool_call>", f"[{CALL}]", f"[TOOL_CALLS][{CALL}]"),
    '<function=NAME>{"query": "Paris"}</function>',
    '{"type": "function", "function": {"name": "NAME", "arguments": "{\\"query\\": \\"Paris\\"}"}}',
    f"<think>I should look.</think>\n{CALL}",
    f"```json\n{CALL}\n```\n\nThe capital is Paris.",
]
SAID = [
    *(f"I would call {CALL}.", CALL.replace("NAME", "other"), CALL.replace("query", "id"), '{"answer": "Paris"}'),
    f"```json\n{CALL}\n```\n\nThis call finds Paris.",
    "Paris",
]


@pytest.fixture(params=["openai", "ms"])
def evaluation(project: Project, request: pytest.FixtureRequest) -> Project:
    args = ["-m", "tests.end_to_end.servers.docs", str(project.root / "calls.jsonl")]
    docs = {"type": "stdio", "command": sys.executable, "args": args, "env": ENVIRONMENT}
    config = {
        "name": "texts",
        "agents": {"agent": {"type": request.param, "model": "simulated/m"}},
        "contexts": {"docs": docs},
        "conditions": {"baseline": {}, "with_docs": {"contexts": ["docs"]}},
        "dataset": {"path": "questions.jsonl"},
        "metrics": ["basic/equals", "basic/contains"],
    }
    project.write(eval_yaml=json.dumps(config))
    return project


def ran(project: Project, texts: list[str]) -> Outcome:
    """Ask a question for each text; a model that is offered tools answers with it, and any other with `Paris`."""
    samples = [{"id": f"q{number}", "question": f"{number}", "answer": "Paris"} for number in range(len(texts))]
    project.write(questions_jsonl="\n".join(map(json.dumps, samples)))

    def respond(request: ChatRequest) -> ChatReply:
        name = next((tool.name for tool in request.tools if tool.name.endswith("search")), None)
        text = texts[int(request.messages[-1].text)]
        return ChatReply("Paris" if name is None else text.replace("NAME", name))

    with pytest.MonkeyPatch.context() as patch:
        serve_here(patch, respond)
        return project.run("eval.yaml", env={"COLUMNS": "300"})


def outcomes(project: Project) -> list[tuple[str | None, str]]:
    trials = [line for line in project.lines("trials.jsonl") if line["condition"] == "with_docs"]
    ordered = sorted(trials, key=lambda line: int(line["sample"][1:]))
    return [
        (line["failure"] and f"{line['failure']['stage']}: {line['failure']['kind']}", _answer(line))
        for line in ordered
    ]


def _answer(line: Any) -> str:
    return next((each["text"] for each in reversed(line["transcript"]["messages"]) if each["role"] == "assistant"), "")


def test_an_answer_that_is_a_call_is_lost_and_said_with_the_remedy(evaluation: Project) -> None:
    outcome = ran(evaluation, [*WRITTEN, *SAID])

    assert ["model: tool_call_as_text"] * len(WRITTEN) + [None] * len(SAID) == [
        failure for failure, _ in outcomes(evaluation)
    ]
    assert 3 == outcome.code
    count = f"{len(WRITTEN)} of {len(WRITTEN) + len(SAID)}"
    assert f"answers that write calls of tools as texts are lost: {count} of agent with_docs; switch" in outcome.stdout
    assert "--tool-call-parser" in outcome.stdout
    assert "agent with_docs called no tool" not in outcome.stdout  # less than half of the others
    summary = evaluation.read("summary.json")
    effect = next(each for each in summary["effects"] if each["metric"] == "basic/equals")
    assert effect["bound_low"] < effect["difference"] < effect["bound_high"]


@pytest.mark.parametrize("evaluation", ["openai"], indirect=True)
def test_simulated_trials_that_got_nothing_of_the_tools_are_told_with_the_way_to_a_real_model(
    evaluation: Project,
) -> None:
    config = json.loads((evaluation.root / "eval.yaml").read_text(encoding="utf-8"))
    config["contexts"]["sham"] = {"from": "docs", "results": "scrambled"}
    config["contexts"] |= {"skill": {"type": "skill", "path": "pdf"}, "bare": {"from": "skill", "text": "empty"}}
    config["conditions"] |= {name: {"contexts": [name]} for name in ("sham", "skill", "bare")}
    evaluation.write(eval_yaml=json.dumps(config))
    (evaluation.root / "pdf").mkdir()
    (evaluation.root / "pdf" / "SKILL.md").write_text("---\nname: pdf\ndescription: Reads.\n---\nRead it.\n", "utf-8")

    outcome = ran(evaluation, ["Paris"] * 2)

    told = "simulated: 2 of 2 trials called no tool or had only errors; says nothing of your server"
    first = " ".join(" ".join(outcome.stdout.splitlines()[1:4]).split())
    assert f"caution {told}. Ask a real model: `-m ollama/" in first
    assert "called no tool in" not in outcome.stdout


def test_reasoning_is_kept_apart_from_the_answer(evaluation: Project) -> None:
    thoughts = ["<think>\nFrance. Paris?\n</think>\n\nParis", "It is France.\n</think>\nParis", "<think></think>Paris"]
    outcome = ran(evaluation, [*thoughts, "Write `</think>` and Paris", "<think>\nFrance. I"])

    found = outcomes(evaluation)
    assert [(None, "Paris")] * 3 == found[:3]
    assert (None, "Write `</think>` and Paris") == found[3]
    assert "model: no_answer" == found[4][0]
    trials = [line for line in evaluation.lines("trials.jsonl") if line["condition"] == "with_docs"]
    kept = {line["sample"]: [each.get("reasoning", "") for each in line["transcript"]["messages"]] for line in trials}
    assert ["", "France. Paris?"] == kept["q0"]
    assert ["", "It is France."] == kept["q1"]
    assert 3 == outcome.code
    trial = next(line["id"] for line in trials if line["sample"] == "q0")
    shown = evaluation.keval("show", evaluation.run_directory().name, "--trial", trial)
    assert 1 == shown.stdout.count("France. Paris?"), shown.stdout
