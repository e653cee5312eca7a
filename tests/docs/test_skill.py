"""The skill by which a coding agent uses keval: its commands do what it says, and real programs find and load it.

What a model makes of it is not tested, as the model is simulated.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import get_args

import pytest
import yaml

from keval.cli import main
from keval_analysis.findings.effects import Verdict
from keval_gateway import ChatCall, ChatReply, ChatRequest
from tests.coding_agents import program
from tests.conftest import Project, serve_here
from tests.stdio_server import look_up

SKILL = Path(__file__).parents[2] / "docs" / "skill" / "keval" / "SKILL.md"
TEXT = SKILL.read_text(encoding="utf-8")
FRONT, BODY = TEXT.split("---\n", 2)[1:]


PROGRAMS = {
    # Codex has no tool for it: its model reads the file.
    "codex": ("exec_command", {"cmd": "cat .agents/skills/keval/SKILL.md"}),
    "gemini": ("activate_skill", {"name": "keval"}),
    "opencode": ("skill", {"name": "keval"}),
    "claude-code": ("Skill", {"skill": "keval"}),
}
"""How the model of each coding agent loads the skill: a tool, and its arguments."""


def test_the_skill_has_the_form_of_a_skill() -> None:
    front = yaml.safe_load(FRONT)

    assert ({"name", "description"}, SKILL.parent.name) == (front.keys(), front["name"])
    assert len(front["description"]) <= 1024
    assert len(BODY.splitlines()) <= 500
    assert set(get_args(Verdict)) == set(
        re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`.*?) \|", BODY, re.MULTILINE)))
    )


def test_every_command_that_the_skill_names_has_these_flags() -> None:
    blocks = re.findall(r"^ *```console\n(.*?)^ *```", BODY, re.MULTILINE | re.DOTALL)
    lines = [*"\n".join(blocks).splitlines(), *re.findall(r"`(keval [^`]+)`", BODY)]
    commands = [shlex.split(line) for line in lines if line.strip().startswith("keval")]

    assert commands
    for _, name, *arguments in commands:
        command = main.commands.get(name) or main.get_command(None, name)  # type: ignore[arg-type]
        assert command is not None, name
        known = {flag for each in command.params for flag in each.opts}
        assert [] == [each for each in arguments if each.startswith("--") and each not in known], name


def test_the_way_of_the_skill_leads_to_a_report(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    serve_here(monkeypatch)
    (project.root / "my_server.py").write_text(look_up("It is 42."), encoding="utf-8")
    (questions,) = re.findall(r"^ *```jsonl\n(.*?)^ *```", BODY, re.MULTILINE | re.DOTALL)
    (project.root / "questions.jsonl").write_text(questions.strip() + "\n", encoding="utf-8")
    outcomes = []

    for block in re.findall(r"^ *```console\n(.*?)^ *```", BODY, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            command, *arguments = shlex.split(line)
            if command == "echo":
                with (project.root / "eval.yaml").open("a", encoding="utf-8") as config:
                    config.write(f"{arguments[0]}\n")
            else:
                outcomes.append((line.strip(), project.keval(*arguments)))

    assert [] == [f"{line}: {outcome.stderr}" for line, outcome in outcomes if outcome.code]
    (report,) = [json.loads(outcome.stdout) for line, outcome in outcomes if line == "keval report latest --json"]
    effect = next(each for each in report["effects"] if each["metric"] == "factual_adherence")
    named = ["agent", "condition", "against", "mean", "against_mean", "difference", "ci_low", "ci_high", "n", "verdict"]
    assert {*named, "needed_samples"} <= effect.keys()
    assert report["simulated"]


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_real_program_finds_the_skill_and_loads_it(
    name: str, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool, arguments = PROGRAMS[name]
    agent, path = program(name)
    requests = []

    def load(request: ChatRequest) -> ChatReply:
        """Load the skill as the program offers it, and then answer."""
        requests.append(request)
        offered = any(each.name == tool for each in request.tools)
        answered = any(message.role == "tool" for message in request.messages)
        calls = (ChatCall(tool, arguments),) if offered and not answered else ()
        return ChatReply("" if calls else "I know how to use keval.", calls)

    serve_here(monkeypatch, load)
    config = {
        "dataset": {"path": "questions.jsonl"},
        "agents": {name: {**agent, "model": "simulated/any"}},
        "contexts": {"keval": {"type": "skill", "path": str(SKILL.parent)}},
        "conditions": {"with_skill": {"contexts": ["keval"]}},
        "metrics": ["basic/latency"],
    }
    project.write(questions_jsonl='{"id": "q1", "question": "Does my MCP server help?"}\n')
    (project.root / "eval.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")

    outcome = project.keval("run", "eval.yaml", env={"PATH": path})

    assert 0 == outcome.code, outcome.stderr
    asked = [json.dumps(request.raw) for request in requests]
    assert "Measure with keval whether" in asked[0]
    assert any("## What not to conclude" in text for text in asked)
    ((text,),) = [trial["transcript"]["texts"] for trial in project.lines("trials.jsonl")]
    assert (True, tool) == (text["read"], text["by"])
