"""The simulated coding model: what it does by its script, and by which tools of an agent."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from keval_gateway import ChatCall, ChatMessage, ChatReply, ChatRequest, ChatTool, ModelFault
from keval_simulator.coder import coder
from tests.conftest import Project

SCRIPT = """
tasks:
  - words: [changelog]
    steps:
      - read: a b.txt
      - write: {path: new/n.txt, text: "It's new\\n"}
      - append: {path: a b.txt, text: "- end\\n"}
      - replace: {path: a b.txt, old: "[1.0/x]", new: '2 & \\'}
      - {told: from now on, run: touch told, chance: 1}
      - {unless: from now on, run: touch untold}
      - say: Done with it.
"""


def _tool(name: str, *texts: str, **others: Any) -> ChatTool:
    properties = {**{text: {"type": "string"} for text in texts}, **others}
    return ChatTool(name, "", {"type": "object", "properties": properties, "required": [*properties]})


SHELL = (_tool("exec_command", "cmd"),)
OWN = (
    _tool("Bash", "command", "description"),
    _tool("Read", "file_path"),
    _tool("Write", "file_path", "content"),
    _tool("Edit", "file_path", "old_string", "new_string"),
    _tool("Skill", "skill"),
)


FITS = "Writes a changelog."


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "a script.yaml"
    path.write_text(SCRIPT, encoding="utf-8")
    return path


def _ask(script: Path, *messages: ChatMessage, tools: tuple[ChatTool, ...] = SHELL, **fields: Any) -> ChatReply:
    request = ChatRequest("anthropic", "coder", messages, tools=tools, **fields)
    request = ChatRequest(**{**_fields(request), "headers": {"x-keval-script": quote(str(script))}})
    reply = coder(0)(request)
    assert isinstance(reply, ChatReply)
    return reply


def _fields(request: ChatRequest) -> dict[str, Any]:
    return {name: getattr(request, name) for name in ("wire", "model", "messages", "tools", "system", "repetition")}


def _work(script: Path, question: str, tools: tuple[ChatTool, ...], **fields: Any) -> tuple[list[ChatCall], str]:
    """Let it work to its end, with results that say nothing; return its calls and its answer."""
    messages = [ChatMessage("user", question)]
    calls: list[ChatCall] = []
    while (reply := _ask(script, *messages, tools=tools, **fields)).calls:
        calls += reply.calls
        # Claude Code writes defaults into the arguments that its model gave.
        echoed = tuple(ChatCall(call.name, {**call.arguments, "replace_all": False}) for call in reply.calls)
        messages += [ChatMessage("assistant", calls=echoed), ChatMessage("tool", "(no output)")]
    return calls, reply.text


def test_by_a_shell_alone_it_does_all_steps(script: Path, tmp_path: Path) -> None:
    (tmp_path / "a b.txt").write_text("[1.0/x]\n", encoding="utf-8")

    calls, answer = _work(script, "Write the changelog.", SHELL)
    for call in calls:
        subprocess.run(call.arguments["cmd"], shell=True, check=True, cwd=tmp_path)

    assert "Done with it." == answer
    written = {name: (tmp_path / name).read_text(encoding="utf-8") for name in ("a b.txt", "new/n.txt", "untold")}
    assert {"a b.txt": "2 & \\\n- end\n", "new/n.txt": "It's new\n", "untold": ""} == written
    assert not (tmp_path / "told").exists()


def test_it_uses_an_agents_own_tools_for_files_and_reads_a_file_before_it_edits_it(script: Path) -> None:
    calls, _ = _work(script, "Write the changelog.", OWN)

    assert ["Read", "Write", "Bash", "Edit", "Bash"] == [call.name for call in calls]
    assert {"file_path": "a b.txt", "old_string": "[1.0/x]", "new_string": "2 & \\"} == calls[3].arguments


def test_what_it_was_told_decides_whether_a_step_is_done(script: Path) -> None:
    calls, _ = _work(script, "Write the changelog.", SHELL, system="Do it so from now on.")

    assert "touch told" == calls[-1].arguments["cmd"]


@pytest.mark.parametrize(
    ("told", "tools", "expected"),
    [
        (f"Available skills:\n- notes: {FITS} (file: r0/notes/SKILL.md)\n- `r0` = `/w/.agents/skills`", SHELL,
         ChatCall("exec_command", {"cmd": "cat .agents/skills/notes/SKILL.md"})),
        (f"The following skills are available:\n\n- notes: {FITS}", OWN, ChatCall("Skill", {"skill": "notes"})),
        (f"<name>notes</name>\n<description>{FITS}</description>", (_tool("skill", "name"),),
         ChatCall("skill", {"name": "notes"})),
        (f"Skills:\n- notes: {FITS}", (_tool("mcp__s__read_skill", "name"),),
         ChatCall("mcp__s__read_skill", {"name": "notes"})),
    ],
    ids=["file", "Skill", "skill", "read_skill"],
)  # fmt: skip
def test_it_reads_a_skill_that_fits_the_task_by_the_agents_way(
    script: Path, told: str, tools: tuple[ChatTool, ...], expected: ChatCall
) -> None:
    other = told.replace("notes", "other").replace("changelog", "diagram")

    reply = _ask(script, ChatMessage("user", "Write the changelog."), tools=tools, system=f"{other}\n{told}")

    assert (expected,) == reply.calls


def test_a_skill_that_the_agent_hands_over_as_a_message_is_not_the_question(script: Path) -> None:
    asked = ChatMessage("user", "Write the changelog.")
    called = ChatMessage("assistant", calls=(ChatCall("Skill", {"skill": "notes"}),))
    handed = (called, ChatMessage("tool", "Launching"), ChatMessage("user", "Do it so from now on."))

    reply = _ask(script, asked, *handed, tools=OWN, system="Skills\n- notes: Writes a changelog.")

    assert "Read" == reply.calls[0].name


def test_it_forgets_a_told_step_sometimes_and_the_same_one_again(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(
        "tasks: [{words: [x], steps: [{told: NOW, run: touch it, chance: 0.5}, {say: y}]}]", encoding="utf-8"
    )

    def done(repetition: int) -> bool:
        question = ChatMessage("user", "x")
        return bool(_ask(path, question, system="NOW", repetition=repetition).calls)

    drawn = [done(number) for number in range(40)]

    assert drawn == [done(number) for number in range(40)]
    assert 10 < sum(drawn) < 30


def test_a_request_without_a_script_is_refused() -> None:
    with pytest.raises(ModelFault, match=r"middleware: \[simulated/coder"):
        coder(0)(ChatRequest("anthropic", "coder", (ChatMessage("user", "x"),)))


def test_a_wrong_script_is_reported_where_the_config_names_it(project: Project) -> None:
    project.write(
        eval_yaml="""
        dataset: {path: q.jsonl}
        agents: {openai: {model: simulated/coder}}
        middleware: [{simulated/coder: {path: script.yaml}}]
        """,
        script_yaml="tasks: [{words: [a], steps: [{run: x, say: y}]}]\n",
        q_jsonl='{"id": "a", "question": "?"}\n',
    )

    outcome = project.keval("validate", "eval.yaml")

    assert 2 == outcome.code
    assert "script.yaml:1:30: a step has one of write, append" in outcome.stderr
