"""What contexts of texts give to a trial: files in its workspace, a part of its prompt, a tool, a plugin's copy."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from keval import Sample
from keval.plugin import Conventions, Intervention, Provision, ServerSpec, TrialError
from keval.records.interventions import Describe
from keval_mcp.loop import open_sessions
from keval_skills import Instructions, Plugin, Skill
from keval_skills.changes import scrambled
from keval_testing import check_context
from tests.contexts import started
from tests.plugins.skills.folders import CLAUDE_CODE, PDF_BODY, skill, trial, write

pytestmark = pytest.mark.anyio
CODEX = Conventions(instructions="AGENTS.md", skills=".agents/skills")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    made = tmp_path / "keval-trial-1" / "work"
    made.mkdir(parents=True)
    return made


async def opened(stack: AsyncExitStack, provider: Any, label: str, *at: Any) -> Provision:
    source = await stack.enter_async_context(provider.start(label))
    provision: Provision = await stack.enter_async_context(source.open(trial(*at)))
    return provision


def tree(folder: Path) -> dict[str, str]:
    """The files of a folder with their texts."""
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


async def test_instructions_are_the_file_that_the_agent_reads_or_in_the_prompt(tmp_path: Path, workspace: Path) -> None:
    write(tmp_path, rules_md="Run the tests.\n")
    write(workspace, CLAUDE_md="Of the repository.", README_md="r")
    provider = Instructions(tmp_path / "rules.md")
    async with AsyncExitStack() as stack:
        file = await opened(stack, provider, "rules", workspace, CLAUDE_CODE)
        placed = tree(workspace)
        prompt = await opened(stack, provider, "rules", None, None)
        none = await opened(stack, provider, "rules", workspace, Conventions())

    assert {"CLAUDE.md": "Run the tests.\n", "README.md": "r"} == placed
    assert ("", "Run the tests.\n", "Run the tests.\n") == (file.instructions, prompt.instructions, none.instructions)
    ways = [each.text_log.texts()[0].way for each in (file, prompt, none) if each.text_log]
    assert ["CLAUDE.md", "system prompt", "system prompt"] == ways
    assert ["CLAUDE.md", "system prompt"] == [provider.way(CLAUDE_CODE), provider.way(None)]


async def test_no_link_leads_what_is_placed_out_of_the_workspace(tmp_path: Path, workspace: Path) -> None:
    outside = write(tmp_path / "outside", CLAUDE_md="mine", skills__pdf__SKILL_md="mine")
    write(tmp_path, rules_md="Run the tests.")
    (workspace / "CLAUDE.md").symlink_to(outside / "CLAUDE.md")
    (workspace / ".claude").symlink_to(outside)
    (workspace / ".agents").mkdir()
    (workspace / ".agents" / "skills").symlink_to("../inside")
    (workspace / "inside").mkdir()
    (workspace / "inside" / "pdf").symlink_to(outside / "skills" / "pdf")
    provider = Skill(skill(tmp_path))
    async with AsyncExitStack() as stack:
        await opened(stack, Instructions(tmp_path / "rules.md"), "rules", workspace, CLAUDE_CODE)
        await opened(stack, provider, "pdf", workspace, CODEX)
        with pytest.raises(TrialError) as refused:
            await opened(stack, provider, "pdf", workspace, CLAUDE_CODE)

    told = f"the context 'pdf' is not given: '.claude/skills' in the workspace leads out of it, to {outside};"
    assert str(refused.value).startswith(told)
    assert ("context", "not_placed", False) == (refused.value.stage, refused.value.kind, refused.value.retryable)
    assert {"CLAUDE.md": "mine", "skills/pdf/SKILL.md": "mine"} == tree(outside)
    assert "Run the tests." == (workspace / "CLAUDE.md").read_text()
    assert not (workspace / "CLAUDE.md").is_symlink()
    assert ["SKILL.md"] == [path.name for path in (workspace / "inside" / "pdf").iterdir()]


async def test_skills_are_placed_whole_and_take_the_place_of_their_namesakes(tmp_path: Path, workspace: Path) -> None:
    pdf = write(skill(tmp_path, "pdf"), scripts__fields_py="#!/usr/bin/env python\n", references__forms_md="f")
    (pdf / "scripts" / "fields.py").chmod(0o750)
    (pdf / "link.md").symlink_to("references/forms.md")
    skill(tmp_path, "docx")
    near = skill(tmp_path / "near", "xlsx")
    folder = workspace / ".claude" / "skills"
    write(folder, pdf__old_md="old", docx__SKILL_md="of the repository", other__SKILL_md="of the repository")
    provider = Skill((pdf, tmp_path / "docx"), neighbours=(near,)).changed([Intervention(without=("docx",))])
    async with AsyncExitStack() as stack:
        provision = await opened(stack, provider, "skills", workspace, CLAUDE_CODE)

    assert (".claude/skills", ()) == (provider.way(CLAUDE_CODE), provision.servers)
    assert {
        "pdf/SKILL.md": (pdf / "SKILL.md").read_text(),
        "pdf/link.md": "f",
        "pdf/references/forms.md": "f",
        "pdf/scripts/fields.py": "#!/usr/bin/env python\n",
        "xlsx/SKILL.md": (near / "SKILL.md").read_text(),
        "other/SKILL.md": "of the repository",
    } == tree(folder)
    assert (0o750, "references/forms.md") == (
        (folder / "pdf" / "scripts" / "fields.py").stat().st_mode & 0o777,
        str((folder / "pdf" / "link.md").readlink()),
    )
    assert provision.text_log
    kinds = [(text.name, text.kind, text.way) for text in provision.text_log.texts()]
    assert [("pdf", "skill", ".claude/skills"), ("xlsx", "neighbour", ".claude/skills")] == kinds


async def test_a_placebo_is_given_without_the_files_that_would_tell_more(tmp_path: Path, workspace: Path) -> None:
    pdf = write(skill(tmp_path, "pdf"), references__forms_md="f")
    provider = Skill(pdf).changed([Intervention(text="scrambled")])
    async with AsyncExitStack() as stack:
        await opened(stack, provider, "skills", workspace, CODEX)

    front = "---\nname: pdf\ndescription: Fills PDF forms.\n---\n"
    assert {".agents/skills/pdf/SKILL.md": front + scrambled(PDF_BODY)} == tree(workspace)


async def test_two_contexts_do_not_write_one_file(tmp_path: Path, workspace: Path) -> None:
    write(tmp_path, rules_md="Run the tests.")
    provider, rules = Skill(skill(tmp_path)), Instructions(tmp_path / "rules.md")
    async with AsyncExitStack() as stack:
        await opened(stack, provider, "a", workspace, CODEX)
        await opened(stack, rules, "c", workspace, CODEX)
        with pytest.raises(TrialError, match=r"'a' and 'b' both put 'pdf' into '\.agents/skills'; put them into"):
            await opened(stack, provider, "b", workspace, CODEX)
        with pytest.raises(TrialError, match=r"'c' and 'd' both put 'AGENTS\.md' into"):
            await opened(stack, rules, "d", workspace, CODEX)
    async with AsyncExitStack() as stack:
        await opened(stack, provider, "b", workspace, CODEX)


async def test_a_workspace_that_cannot_be_written_fails_the_trial(tmp_path: Path, workspace: Path) -> None:
    write(workspace, _agents="a file")
    (workspace / ".agents").write_text("a file")
    async with AsyncExitStack() as stack:
        with pytest.raises(TrialError, match=r"the context 'pdf' cannot be put into the workspace: .*\.agents"):
            await opened(stack, Skill(skill(tmp_path)), "pdf", workspace, CODEX)


async def test_agents_without_skills_read_them_with_a_tool(tmp_path: Path) -> None:
    pdf = write(skill(tmp_path / "own", "pdf", description=">\n  Fills\n  forms."), references__forms_md="All forms.")
    (pdf / "logo.png").write_bytes(b"\x89PNG\xff")
    docx = skill(tmp_path, "docx", body="Use LibreOffice.")
    provider = Skill(pdf, neighbours=(docx,)).changed([Intervention(describe={"pdf": Describe("Fills PDFs.")})])

    async with started(provider, "skills") as up, up.open(Sample("s", "q"), "t") as context:
        (server,) = context.servers
        async with open_sessions(context.servers) as sessions:
            texts, (tool,) = [], sessions.tools
            for arguments in (
                {"name": "pdf"},
                {"name": "docx"},
                {"name": "pdf", "file": "references/forms.md"},
                {"name": "pdf", "file": "../docx/SKILL.md"},
                {"name": "pdf", "file": "logo.png"},
                {"name": "pdg"},
            ):
                result = await sessions.call(tool, arguments)
                texts.append(result.text)
        listing = up.tool_listings[0]

    assert context.instructions.endswith("\n\n- pdf: Fills PDFs.\n- docx: Fills PDF forms.")
    assert (("read_skill",), True) == (server.tools, listing.definitions[0]["annotations"]["readOnlyHint"])
    assert ["docx", "pdf"] == listing.definitions[0]["inputSchema"]["properties"]["name"]["enum"]
    assert [
        f"Skill pdf\n\n{PDF_BODY.strip()}\n\nOther files of this skill: logo.png, references/forms.md",
        "Skill docx\n\nUse LibreOffice.",
        "All forms.",
        "the skill 'pdf' has no file '../docx/SKILL.md'; files: logo.png, references/forms.md",
        "'logo.png' is no text, and cannot be read with this tool",
        "there is no skill 'pdg'; skills: docx, pdf",
    ] == [text.removeprefix("Error executing tool read_skill: ") for text in texts]


MANIFEST = {"name": "office", "version": "1.0.0", "skills": "./more", "mcpServers": "./servers.json"}


def plugin(root: Path, **manifest: Any) -> Path:
    """Write a plugin of Claude Code with two skills, a command, a hook and two servers."""
    skill(root / "skills", "pdf")
    write(root / "skills" / "pdf", references__forms_md="f")
    write(root / "more" / "notes", SKILL_md="Take notes.\n")
    write(root, commands__tidy_md="Tidy up.", hooks__hooks_json="{}")
    local = {"command": "${CLAUDE_PLUGIN_ROOT}/serve", "args": ["${PORT:-80}"], "env": {"A": "${CLAUDE_PLUGIN_ROOT}"}}
    (root / ".mcp.json").write_text(json.dumps({"mcpServers": {"local": local}}))
    (root / "servers.json").write_text(json.dumps({"far": {"type": "http", "url": "http://127.0.0.1:9/mcp"}}))
    write(root, **{".claude-plugin__plugin_json": json.dumps({**MANIFEST, **manifest})})
    return root


async def test_claude_code_gets_a_copy_of_its_plugin_and_keval_its_servers(tmp_path: Path, workspace: Path) -> None:
    root = plugin(tmp_path / "office")
    provider = Plugin(root).changed([Intervention(text="scrambled")])
    before = tree(root)
    async with AsyncExitStack() as stack:
        provision = await opened(stack, provider, "office", workspace, CLAUDE_CODE)
        (copy,) = provision.plugins
        copied = tree(copy)

    front = "---\nname: pdf\ndescription: Fills PDF forms.\n---\n"
    manifest = json.loads(copied.pop(".claude-plugin/plugin.json"))
    assert {"name": "office", "version": "1.0.0", "skills": "./more"} == manifest
    assert {
        "skills/pdf/SKILL.md": front + scrambled(PDF_BODY),
        "more/notes/SKILL.md": scrambled("Take notes.\n"),
        "commands/tidy.md": "Tidy up.",
        "hooks/hooks.json": "{}",
    } == copied
    assert (False, before) == (copy.exists(), tree(root))
    local, far = (server for server in provision.servers if isinstance(server, ServerSpec))
    assert ("plugin_office_local", f"{root}/serve", ("80",)) == (local.name, local.command, local.args)
    assert ({"A": str(root)}, "plugin_office_far", "http://127.0.0.1:9/mcp") == (local.env, far.name, far.url)
    assert provision.text_log
    assert ["office:pdf", "office:notes"] == [text.name for text in provision.text_log.texts()]
    assert ["pdf", "notes"] == [*provider.parts()]


@pytest.mark.slow
def test_contexts_of_texts_keep_the_rules_of_their_seam(tmp_path: Path) -> None:
    write(tmp_path, rules_md="Run the tests.")

    check_context("instructions", options={"path": str(tmp_path / "rules.md")})
    check_context("skill", options={"path": str(skill(tmp_path))})


async def test_a_skill_of_a_plugin_gets_a_description_that_it_does_not_have(tmp_path: Path, workspace: Path) -> None:
    root = plugin(tmp_path / "office")
    write(root / "skills" / "named", SKILL_md="---\nname: Named\n---\nUse it.\n")
    words = {"notes": Describe('Takes "notes".'), "named": Describe("Names things.")}
    provider = Plugin(root).changed([Intervention(describe=words)])
    async with AsyncExitStack() as stack:
        (copy,) = (await opened(stack, provider, "office", workspace, CLAUDE_CODE)).plugins
        copied = tree(copy)

    assert '---\ndescription: "Takes \\"notes\\"."\n---\nTake notes.\n' == copied["more/notes/SKILL.md"]
    assert '---\ndescription: "Names things."\nname: Named\n---\nUse it.\n' == copied["skills/named/SKILL.md"]


async def test_other_agents_refuse_a_plugin(tmp_path: Path, workspace: Path) -> None:
    provider = Plugin(plugin(tmp_path / "office"))
    for agent in (None, CODEX):
        with pytest.raises(ValueError, match=r"only Claude Code takes its plugins; give other agents the plugin's"):
            provider.way(agent)
    async with AsyncExitStack() as stack:
        with pytest.raises(TrialError, match=r"the context 'office': only Claude Code"):
            await opened(stack, provider, "office", workspace, CODEX)


def test_all_problems_of_a_plugin_are_told_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOKEN", raising=False)
    root = plugin(
        tmp_path / "office", name="My Office", commands=["./gone", "/etc", "../up"], mcpServers="./servers.json"
    )
    servers = {
        "a": {"url": "ftp://x"},
        "b": {"command": ["x"]},
        "c": {"type": "ws", "url": "ws://x"},
        "d": {"url": "http://x", "headers": {"authorization": "Bearer ${TOKEN}"}},
        "e": {"url": "http://x", "oauth": {}},
        "f": {},
    }
    (root / "servers.json").write_text(json.dumps(servers))
    (root / "hooks" / "hooks.json").write_text("{\n")
    write(root / "skills" / "torn", SKILL_md="---\nname: [\n---\nx")

    with pytest.raises(ValueError, match="'path' must lead to a plugin of Claude Code:") as refused:
        Plugin(root)
    with pytest.raises(ValueError, match=r"office/none: there is no folder"):
        Plugin(root / "none")

    _, *lines = str(refused.value).replace(str(root), "R").split("\n  ")
    assert [
        "R/.claude-plugin/plugin.json: 'name' has lowercase letters, digits and single hyphens, got 'My Office'",
        "R/.claude-plugin/plugin.json: 'commands': there is no './gone'",
        "R/.claude-plugin/plugin.json: 'commands': a path begins with './' and stays in the plugin, got '/etc'",
        "R/.claude-plugin/plugin.json: 'commands': a path begins with './' and stays in the plugin, got '../up'",
        "R/hooks/hooks.json:2: it is no JSON: Expecting property name enclosed in double quotes",
        "R/skills/torn/SKILL.md:3: the front matter is no YAML",
        "R/servers.json: the server 'a': the url of a server is http://… or https://…; got 'ftp://x'",
        "R/servers.json: the server 'b': 'command' is a text",
        "R/servers.json: the server 'c' is of the type 'ws'; keval connects to stdio, http and sse",
        "R/servers.json: the server 'd': the variable TOKEN is not set",
        "R/servers.json: the server 'e': keval cannot do 'oauth'; give its token in 'headers', from a variable",
        "R/servers.json: the server 'f' has neither a 'command' nor a 'url'",
    ] == [line.partition(": expected the node")[0] for line in lines]
