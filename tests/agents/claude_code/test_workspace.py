"""Claude Code in a trial's workspace: its own tools, what it reads there, and plugins."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from keval.plugin import Blob, Context, EndState, Sandbox
from keval_gateway import ChatCall, ChatReply

pytest.importorskip("claude_agent_sdk", reason="keval-claude-code is not installed")

SKILL = "---\nname: {0}\ndescription: Use it for {0}.\n---\n\nHow {0} is done.\n"


@attrs.define
class Work:
    """A workspace as far as the agent sees it."""

    folder: Path
    sandbox: Sandbox | None = None

    async def begin(self) -> None:
        """Note nothing."""

    async def end(self, keep: Callable[[Blob], object]) -> EndState:
        """Return that nothing has changed."""
        return EndState()


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A workspace with instructions and a skill, in a folder that has other instructions."""
    folder = tmp_path / "above" / "work"
    (folder / ".claude" / "skills" / "brewing").mkdir(parents=True)
    (folder / ".claude" / "skills" / "brewing" / "SKILL.md").write_text(SKILL.format("brewing"), encoding="utf-8")
    (folder / "CLAUDE.md").write_text("The rule of this folder.", encoding="utf-8")
    above = folder.parent / ".claude"
    (above / "rules").mkdir(parents=True)
    for path in ("CLAUDE.md", "CLAUDE.local.md", ".claude/CLAUDE.md", ".claude/rules/style.md"):
        (folder.parent / path).write_text("The rule above.", encoding="utf-8")
    (above / "skills" / "frying").mkdir(parents=True)
    (above / "skills" / "frying" / "SKILL.md").write_text(SKILL.format("frying"), encoding="utf-8")
    return folder


def test_it_works_with_its_own_tools_without_asking_and_reads_what_is_in_the_folder(
    play: Any, toolbox: Any, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "CLAUDE.md").write_text("The rule of the user.", encoding="utf-8")
    monkeypatch.setenv("HOME", str(tmp_path))
    script = [
        ChatReply(calls=(ChatCall("Skill", {"skill": "brewing"}),)),
        ChatReply(calls=(ChatCall("Write", {"file_path": "new.txt", "content": "tea\n"}),)),
        ChatReply(calls=(ChatCall("Bash", {"command": "cat new.txt >> all.txt"}),)),
        ChatReply(calls=(ChatCall("mcp__toolbox__add", {"a": 1, "b": 1}),)),
        ChatReply("Done."),
    ]

    outcome = play(script, toolbox.server(), context=Context(trial="t1", workspace=Work(work)))

    assert "Done." == outcome.transcript.output
    assert "tea\n" == (work / "all.txt").read_text(encoding="utf-8")
    calls = [(call.name, call.own, call.error) for call in outcome.transcript.tool_calls]
    assert [("Skill", True, None), ("Write", True, None), ("Bash", True, None), ("add", False, None)] == calls
    assert set(toolbox.server().tools) == set(outcome.transcript.tools)
    asked = [json.dumps(request.raw) for request in outcome.requests]
    assert "The rule of this folder." in asked[0]
    assert "Use it for brewing." in asked[0]
    assert "How brewing is done." in asked[1]
    foreign = ("The rule above.", "The rule of the user.", "Use it for frying.")
    assert [] == [each for each in foreign if any(each in text for text in asked)]


def test_the_conditions_system_prompt_takes_the_place_of_its_own(play: Any, work: Path) -> None:
    plain, told = (
        play([ChatReply("Yes.")], context=Context(trial="t1", workspace=Work(work), instructions=text)).requests[0]
        for text in ("", "You brew tea.")
    )

    assert ("You brew tea." in plain.system, "You brew tea." in told.system) == (False, True)
    assert len(plain.system) > len(told.system) + 3000


def test_it_has_the_tools_that_the_config_names(play: Any, work: Path) -> None:
    outside = play([ChatReply("Yes.")], tools=("Read",))
    inside = play([ChatReply("Yes.")], tools=(), context=Context(trial="t1", workspace=Work(work)))

    assert ["Read"] == [tool.name for tool in outside.requests[0].tools]
    assert [] == [tool.name for tool in inside.requests[0].tools]


def test_it_loads_plugins_without_their_servers(play: Any, work: Path, tmp_path: Path) -> None:
    plugin = tmp_path / "tea"
    (plugin / ".claude-plugin").mkdir(parents=True)
    (plugin / ".claude-plugin" / "plugin.json").write_text('{"name": "tea", "version": "1.0.0"}', encoding="utf-8")
    (plugin / "skills" / "steeping").mkdir(parents=True)
    (plugin / "skills" / "steeping" / "SKILL.md").write_text(SKILL.format("steeping"), encoding="utf-8")
    (plugin / ".mcp.json").write_text('{"mcpServers": {"pots": {"command": "false"}}}', encoding="utf-8")
    script = [ChatReply(calls=(ChatCall("Skill", {"skill": "tea:steeping"}),)), ChatReply("Done.")]

    outcome = play(script, context=Context(trial="t1", workspace=Work(work), plugins=(plugin,)))

    assert "Done." == outcome.transcript.output
    assert "How steeping is done." in json.dumps(outcome.requests[1].raw)
