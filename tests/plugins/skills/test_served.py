"""Skills over MCP: read from their server before the run, and given as skills on disk are."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from keval import open_run
from keval.plugin import PreflightError, TrialError
from keval_mcp import Stdio
from keval_skills.served import ServedSkills
from tests.conftest import Project
from tests.contexts import started
from tests.plugins.skills.folders import CLAUDE_CODE, skill, trial, write
from tests.stdio_server import ENVIRONMENT

EVAL = f"""
    dataset: {{path: questions.yaml}}
    agents:
      openai: {{model: simulated/any}}
    contexts:
      clerk:
        {{type: stdio, command: {sys.executable}, args: [-m, tests.plugins.skills.clerk, served], env: {ENVIRONMENT}}}
      clerk_tools: {{from: clerk, offer: tools}}
      clerk_skills: {{from: clerk, offer: skills}}
      placebo: {{from: clerk_skills, without: [docx], text: scrambled, describe: {{pdf: "Use it for every PDF."}}}}
    conditions:
      everything: {{contexts: [clerk]}}
      tools: {{contexts: [clerk_tools]}}
      both: {{contexts: [clerk_tools, clerk_skills]}}
      skills: {{contexts: [clerk_skills]}}
      unreadable: {{contexts: [clerk_tools, placebo]}}
    metrics: [testing/words]
"""


def serve(root: Path) -> Path:
    """Write the skills of the server, and return their folder."""
    pdf = skill(root / "served", description="Fills PDF forms.\nmetadata: {version: 1.0, x: yes}\nallowed-tools: Bash")
    write(pdf, references__forms_md="Fields are named in capitals.\n")
    (pdf / "blank.bin").write_bytes(b"\xff\x00")
    skill(root / "served", "docx", body="Letters begin with a greeting.\n", description="Writes letters.")
    return root / "served"


@pytest.fixture
def served(project: Project) -> Project:
    serve(project.root)
    project.write(eval_yaml=EVAL, questions_yaml="- {id: a, question: Read the skill pdf. Who reads the fields?}\n")
    return project


@pytest.mark.usefixtures("simulated_here")
@pytest.mark.parametrize("server", ["clerk", pytest.param("skilled", marks=pytest.mark.slow)])
def test_tools_alone_tools_with_skills_and_skills_alone_recorded_and_replayed(served: Project, server: str) -> None:
    served.write(eval_yaml=EVAL.replace("skills.clerk", f"skills.{server}"))

    outcome = served.run("eval.yaml", "--record")

    assert 0 == outcome.code, outcome.stderr
    recorded = served.run_directory()
    run = open_run(recorded)
    transcripts = {each.condition: each.transcript for each in run.trials() if each.transcript}
    # To offer less of a server is no change of what it offers, and so no placebo.
    assert [("change", "unreadable", "both")] == [
        (each["kind"], each["condition"], each["against"]) for each in served.read("summary.json")["contrasts"]
    ]
    assert {
        "everything": {"who_files"},
        "tools": {"who_files"},
        "both": {"who_files", "read_skill"},
        "skills": {"read_skill"},
        "unreadable": {"who_files", "read_skill"},
    } == {label: {*(told.tools or ())} for label, told in transcripts.items()}
    ways = {label: [(each.name, each.way, each.read) for each in told.texts] for label, told in transcripts.items()}
    both = [("docx", "read_skill", False), ("pdf", "read_skill", True)]
    changed = [("pdf", "read_skill", True)]
    assert {"everything": [], "tools": [], "both": both, "skills": both, "unreadable": changed} == ways
    results = {label: [call.result or "" for call in told.tool_calls] for label, told in transcripts.items()}
    assert all(text.startswith("Skill pdf (from the MCP server 'clerk')\n\n# PDF") for text in results["both"])
    assert "references/forms.md" in results["skills"][-1]
    assert "Read the form fields" not in str(results["unreadable"])
    texts = {label: [*entry.texts.values()] for label, entry in run.manifest.conditions.items()}
    assert texts["both"] == texts["skills"]
    assert [("skill", ("docx", "pdf")), ("skill", ("pdf",))] == [
        (each.part, each.parts) for label in ("both", "unreadable") for each in texts[label]
    ]
    assert 2 == len({each.sha256 for label in ("both", "unreadable") for each in texts[label]})

    shutil.rmtree(served.root / "served")  # nobody is asked again
    outcome = served.run("eval.yaml", "--replay", str(recorded), "-o", str(served.root / "replayed"))

    assert 0 == outcome.code, outcome.stderr
    again = open_run(Path(outcome.stderr.splitlines()[-1]))
    assert [each.transcript.tool_calls for each in run.trials() if each.transcript] == [
        each.transcript.tool_calls for each in again.trials() if each.transcript
    ]
    assert run.manifest.conditions == again.manifest.conditions


@pytest.mark.slow
@pytest.mark.usefixtures("simulated_here")
def test_each_skill_of_a_server_is_left_out_once(served: Project) -> None:
    outcome = served.run("eval.yaml", "--condition", "skills", "--ablate", "skills")

    assert 0 == outcome.code, outcome.stderr
    texts = {
        each.condition: each.transcript.texts for each in open_run(served.run_directory()).trials() if each.transcript
    }
    assert {
        "skills": ["docx", "pdf"],
        "skills without docx": ["pdf"],
        "skills without pdf": ["docx"],
    } == {label: [text.name for text in found] for label, found in texts.items()}


def test_a_program_finds_the_skills_in_its_folder(served: Project) -> None:
    config = EVAL.replace(
        "openai: {model: simulated/any}",
        """\
shell:
        type: command
        command: [sh, -c, "cat .agents/skills/pdf/SKILL.md .agents/skills/pdf/references/forms.md"]
        reads: {skills: .agents/skills}""",
    )
    served.write(eval_yaml=config)

    outcome = served.run("eval.yaml", "--condition", "skills")

    assert 0 == outcome.code, outcome.stderr
    (told,) = (each.transcript for each in open_run(served.run_directory()).trials())
    assert told is not None
    assert "Read the form fields" in told.output
    assert told.output.endswith("Fields are named in capitals.")
    assert "allowed-tools" not in told.output
    assert [("docx", ".agents/skills"), ("pdf", ".agents/skills")] == [(each.name, each.way) for each in told.texts]


@pytest.mark.anyio
async def test_skills_that_change_during_the_run_fail_its_trials(tmp_path: Path) -> None:
    folder = serve(tmp_path)
    server = ("-m", "tests.plugins.skills.clerk", str(folder))
    provider = ServedSkills(Stdio(command=sys.executable, args=server, env=ENVIRONMENT), "clerk")
    work = tmp_path / "work"
    work.mkdir()
    async with started(provider, "skills") as up, AsyncExitStack() as stack:
        await stack.enter_async_context(up.source.open(trial(work, CLAUDE_CODE)))
        placed = {path.relative_to(work).as_posix() for path in work.rglob("*") if path.is_file()}
        write(folder / "pdf", references__forms_md="Fields are named in italics.\n")
        skill(folder, "xlsx", description="Writes tables.")
        with pytest.raises(TrialError) as changed:
            await stack.enter_async_context(up.source.open(trial(work, CLAUDE_CODE)))

    files = ("docx/SKILL.md", "pdf/SKILL.md", "pdf/blank.bin", "pdf/references/forms.md")
    assert {f".claude/skills/{each}" for each in files} == placed
    assert ("context", "skills_changed") == (changed.value.stage, changed.value.kind)
    told = str(changed.value)
    assert told.startswith("server 'clerk' serves other skills than before the first trial: skill://")
    assert (True, True, False) == tuple(f"//{each}/" in told for each in ("pdf", "xlsx", "docx"))


BAD = """
from tests.stdio_server import answer_each
import json
def answer(method, params):
    match method:
        case "initialize":
            able = {"resources": {}, "extensions": %s}
            return {"protocolVersion": "2025-11-25", "capabilities": able, "serverInfo": {"name": "x", "version": "1"}}
        case "skills/list":
            return %s
        case "resources/read":
            return {"contents": [{"uri": params["uri"], "text": %r}]}
    raise LookupError(method)
answer_each("bad", answer, begins=False)
"""
SKILLS: dict[str, Any] = {"io.modelcontextprotocol/skills": {}}
TEXT = "---\nname: pdf\ndescription: Fills.\n---\nBody.\n"


def listed(uri: str = "skill://pdf/SKILL.md", more: Any = (), **front: str) -> dict[str, Any]:
    matter = {"name": "pdf", "description": "Fills.", **front}
    return {"skills": [{"uri": uri, "frontmatter": matter, "resources": [*more] or "dynamic"}]}


FILE = "skill://pdf/SKILL.md"
ESCAPING = {"uri": "skill://pdf/%2E%2E/%2E%2E/evil", "digest": "sha256:0", "size": 1}
IS = {"digest": f"sha256:{hashlib.sha256(TEXT.encode()).hexdigest()}", "size": len(TEXT)}
OTHER = {"uri": FILE, "digest": "sha256:0", "size": 44}
NO_SKILL = "the skills of server 'bad' cannot be read: it lists what are no skills with their files: "


@pytest.mark.parametrize(
    ("extensions", "answer", "text", "problem"),
    [
        ({}, listed(), TEXT, "it serves none: it does not declare the extension io.modelcontextprotocol/skills"),
        (SKILLS, {"skills": []}, TEXT, "server 'bad': it serves no skills"),
        (SKILLS, {"skills": None}, TEXT, NO_SKILL),
        (SKILLS, listed("skill://docx/SKILL.md"), TEXT, NO_SKILL),
        (SKILLS, listed(more=[{**OTHER, "size": "44"}]), TEXT, NO_SKILL),
        (SKILLS, {"skills": [{**listed()["skills"][0], "resources": []}]}, TEXT, NO_SKILL),
        (SKILLS, listed(more=[{**OTHER, "uri": "skill://pdf/other.md"}]), TEXT, NO_SKILL),
        (SKILLS, listed("skill://../../pdf/SKILL.md", name="../../pdf"), TEXT, NO_SKILL),
        (SKILLS, listed(more=[OTHER] * 513), TEXT, "has more than 512 files"),
        (SKILLS, listed(more=[{**OTHER, "size": 2**25}]), TEXT, "or 16,777,216 bytes"),
        (SKILLS, listed(more=[OTHER]), TEXT, f"a file is not what skills/list says: {{'uri': '{FILE}', 'size': 44"),
        *(
            (SKILLS, listed(more=[{"uri": FILE, **IS}, {"uri": f"skill://pdf/{name}", **IS}]), TEXT, told)
            for name, told in (
                ("a%00b", "the file 'a\\x00b' of its skill 'pdf' cannot be written: embedded null byte"),
                ("SKILL.md/b", "cannot be written: File exists"),
                ("n" * 300, "cannot be written: File name too long"),
            )
        ),
        (
            SKILLS,
            listed(more=[ESCAPING, {"uri": FILE, **IS}]),
            TEXT,
            "'skill://pdf/%2E%2E/%2E%2E/evil' is no file in skill://pdf/",
        ),
        (
            SKILLS,
            listed(description="Other."),
            TEXT,
            "the front matter is not that which skills/list has",
        ),
        (SKILLS, listed(), "Body.", "SKILL.md:1: there is no front matter"),
        (SKILLS, {**listed(), "nextCursor": "1"}, TEXT, "its list of skills has more than 1000 pages"),
        (SKILLS, {"skills": listed()["skills"] * 2}, TEXT, "has this name; keep one"),
    ],
)
def test_what_is_wrong_with_the_skills_of_a_server_is_told(
    extensions: dict[str, Any], answer: dict[str, Any], text: str, problem: str
) -> None:
    server = Stdio(command=sys.executable, args=("-c", BAD % (extensions, answer, text)), env=ENVIRONMENT)

    async def start() -> None:
        async with started(ServedSkills(server, "bad"), "skills"):
            pass

    with pytest.raises(PreflightError) as raised:
        asyncio.run(start())
    assert problem in str(raised.value)


@pytest.mark.slow
def test_what_is_wrong_with_an_offer_is_told_at_its_place(served: Project) -> None:
    wrong = "offer: skills}\n      clerk_prompts: {from: clerk, offer: prompts}"
    served.write(eval_yaml=EVAL.replace("offer: skills}", wrong).replace("[docx]", "[docs]"))

    outcome = served.keval("validate", "eval.yaml")
    served.write(eval_yaml=EVAL.replace("[docx]", "[docs]"))
    run = served.run("eval.yaml", "--condition", "unreadable")

    told = "'offer' of a context with `from:` is tools or skills, got 'prompts'"
    assert [f"error: eval.yaml:9:39: {told}"] == outcome.stderr.splitlines()
    assert 2 == run.code
    assert "/eval.yaml:9:43: there is no skill 'docs'; did you mean 'docx'?" in run.stderr


READER = """
from mcp import Client
from openai import AsyncOpenAI
from keval import Sample
from keval.plugin import Context


async def answer(sample: Sample, context: Context) -> str:
    access, (server,) = context.model, context.servers
    said = sample.question
    async with Client(server.url) as client:
        can = client.server_capabilities
        if can.resources and sample.id != "c":
            told = (await client.read_resource("note://clerk")).contents[0].text
            await client.get_prompt("ask_the_clerk")
            said += told if sample.id == "a" else ""
        if not can.resources:
            said += await refused(client.read_resource("note://clerk")) + await refused(client.list_prompts())
    async with AsyncOpenAI(base_url=access.base_url, api_key=access.api_key, max_retries=0) as api:
        completion = await api.chat.completions.create(model=access.name, messages=[{"role": "user", "content": said}])
    return said


async def refused(request) -> str:
    try:
        await request
    except Exception as error:
        return str(error)
    return "passed"
"""


@pytest.mark.slow
def test_what_agents_read_of_resources_and_prompts_is_measured(served: Project) -> None:
    config = EVAL.replace(
        "openai: {model: simulated/any}",
        """\
reader: {type: python, target: reader.py:answer, model: simulated/any}""",
    ).replace("skills.clerk", "skills.skilled")
    questions = "".join(f"- {{id: {each}, question: Who files the form {each}?}}\n" for each in "abc")
    served.write(eval_yaml=config, questions_yaml=questions, reader_py=READER)

    outcome = served.run("eval.yaml", "--condition", "everything", "--condition", "tools")

    assert 0 == outcome.code, outcome.stderr
    run = open_run(served.run_directory())
    found = {(each.condition, each.sample.id): each.transcript for each in run.trials() if each.transcript}
    texts = {key: [(text.kind, text.name, text.way, text.read) for text in told.texts] for key, told in found.items()}
    asked = ("resource", "note://clerk", "resources/read"), ("prompt", "ask_the_clerk", "prompts/get")
    assert {
        **{("tools", each): [] for each in "abc"},
        **{("everything", each): [(*of, each == "a") for of in asked] for each in "ab"},
        ("everything", "c"): [],
    } == texts
    assert found["tools", "a"].output.endswith("Method not found: resources/readMethod not found: prompts/list")
    shown = served.keval("report", str(served.run_directory()), "--explain").stdout
    assert "resource note://clerk (reader everything): given by resources/read; read in 1 of 3 trials" in shown
