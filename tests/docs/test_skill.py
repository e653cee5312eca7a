"""The skill by which a coding agent uses keval: its commands do what it says, and real programs find and load it.

What a model makes of it is not tested, as the model is simulated.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any, get_args

import attrs
import pytest
import yaml

from keval.cli import main
from keval.findings.effects import Verdict
from keval_gateway import ChatCall, ChatReply, ChatRequest
from tests.coding_agents import RECIPES, installed
from tests.conftest import Project, serve_here
from tests.stdio_server import look_up

SKILL = Path(__file__).parents[2] / "docs" / "skill" / "keval" / "SKILL.md"
TEXT = SKILL.read_text(encoding="utf-8")
FRONT, BODY = TEXT.split("---\n", 2)[1:]


@attrs.frozen
class Program:
    """A coding agent: where in a project it looks for skills, how its model loads one, and what its recipe forbids.

    Codex has no tool for it: its model reads the file. That of opencode needs ripgrep, which opencode downloads.
    """

    folder: str
    tool: str
    arguments: dict[str, str]
    allowed: dict[str, str] = attrs.field(factory=dict)

    @property
    def reads(self) -> bool:
        """Whether its model reads the file, as it was told of the skill by its description."""
        return "SKILL.md" in str(self.arguments)


_READ = "cat .agents/skills/keval/SKILL.md"
PROGRAMS = {
    "codex": Program(
        ".agents",
        "exec_command",
        {"cmd": _READ},
        {"skills.include_instructions = false\n": "", "shell_tool = false, ": ""},
    ),
    "gemini": Program(
        ".agents",
        "activate_skill",
        {"name": "keval"},
        {'"skills": {"enabled": false},': "", '"tools": {"core": ["mcp_*"]}': '"tools": {}'},
    ),
    "opencode": Program(
        ".agents", "bash", {"command": _READ, "description": "Read the skill"}, {'"*": "deny"': '"*": "allow"'}
    ),
    "claude": Program(".claude", "Skill", {"skill": "keval"}),
}


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
    program, requests = PROGRAMS[name], []

    def load(request: ChatRequest) -> ChatReply:
        """Load the skill as the program offers it, and then answer."""
        requests.append(request)
        offered = any(tool.name == program.tool for tool in request.tools)
        answered = any(message.role == "tool" for message in request.messages)
        calls = (ChatCall(program.tool, program.arguments),) if offered and not answered else ()
        return ChatReply("" if calls else "I know how to use keval.", calls)

    serve_here(monkeypatch, load)
    recipe: dict[str, Any] = {key: value for key, value in RECIPES[name].items() if key != "meta"}
    files = {path: _replaced(content, program.allowed) for path, content in recipe.get("files", {}).items()}
    skill = {f"{program.folder}/skills/keval/SKILL.md": f"{{% raw %}}{TEXT}{{% endraw %}}"}
    agent = {**recipe, "model": "simulated/any", "files": {**files, **skill}}
    config = {"dataset": {"path": "questions.jsonl"}, "agents": {name: agent}, "metrics": ["basic/latency"]}
    project.write(questions_jsonl='{"id": "q1", "question": "Does my MCP server help?"}\n')
    (project.root / "eval.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")

    outcome = project.keval("run", "eval.yaml", env={"PATH": installed()})

    assert 0 == outcome.code, outcome.stderr
    asked = [json.dumps(request.raw) for request in requests]
    assert not program.reads or "Measure with keval whether" in asked[0]
    assert any("## What not to conclude" in text for text in asked)


def _replaced(text: str, replacements: dict[str, str]) -> str:
    for old, new in replacements.items():
        assert old in text, old
        text = text.replace(old, new)
    return text
