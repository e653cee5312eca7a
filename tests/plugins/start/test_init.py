"""`keval init` from flags: each template leads to a report, and what is wrong is told with nothing written."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from keval_start.servers import named_server
from keval_start.variables import Variables
from keval_start.workplace import Workplace
from tests.conftest import Outcome, Project
from tests.stdio_server import ENVIRONMENT, look_up

pytestmark = pytest.mark.usefixtures("simulated_here")

ROOT = Path(__file__).parents[3]
AGENT = """
def answer(question):
    return "1440 minutes." if "minutes" in question else "I do not know."
"""
WITH_CONTEXT = """
from keval import Sample
from keval.plugin import Context

async def answer(sample: Sample, context: Context) -> str:
    return f"{context.model.name} and {len(context.servers)} servers"
"""
QUESTIONS = """
{"id": "ports", "question": "Which port does Tarn listen on?", "answer": "7443"}
{"id": "reload", "question": "Which command reloads Tarn?", "answer": "tarn reload"}
"""
ANSWERS = """
{"id": "ports", "response": "Port 7443.", "response_time": 1.5}
{"id": "reload", "response": "I do not know.", "response_time": 2.5}
"""
PAGES = """
import sys
sys.path.append({path!r})
from tests.stdio_server import Tool, serve, text
pages = {pages!r}
named = {{"page": {{"type": "string", "enum": list(pages), "description": "The name of the page."}}}}
read = Tool(lambda given, meta: text(pages[given["page"]]), named, ("page",), "Read a page.", {{"readOnlyHint": True}})
serve("pages", lambda: {{"read_page": read}})
"""
GOALS: dict[str, list[str]] = {
    "server": ["--server", "python server.py"],
    "agents": ["--agent", "openai", "--agent", "anthropic"],
    "agent": ["--agent", "python:my_agent.py:answer"],
    "answers": ["--answers", "answers.jsonl", "--questions", "questions.jsonl"],
}


@pytest.fixture
def filled(project: Project) -> Project:
    """A folder with a server, an agent, and files of questions and answers."""
    project.write(server_py=look_up("Tarn listens on port 7443."), my_agent_py=AGENT, answers_jsonl=ANSWERS)
    return project


def next_command(outcome: Outcome) -> list[str]:
    """The command that the last line names."""
    assert outcome.code == 0, outcome.stderr
    (command,) = re.findall(r"^next:? +keval (.*)$", outcome.stdout, re.MULTILINE)
    assert outcome.stdout.rstrip().endswith(command)
    return shlex.split(command)


def config(folder: Path) -> dict[str, Any]:
    data: dict[str, Any] = yaml.safe_load((folder / "eval.yaml").read_text(encoding="utf-8"))
    return data


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if "__pycache__" not in path.parts}


@pytest.mark.parametrize("goal", GOALS)
def test_a_template_leads_from_flags_to_a_report(filled: Project, goal: str) -> None:
    if goal == "answers":
        filled.write(questions_jsonl=QUESTIONS)

    initiated = filled.keval("init", *GOALS[goal])
    ran = filled.keval(*next_command(initiated))

    assert (0, "SIMULATED") == (ran.code, re.findall("SIMULATED", ran.stdout)[0]), ran.stderr
    assert "none failed" in ran.stdout
    trials = filled.lines("trials.jsonl")
    assert {"server": 6, "agents": 6, "agent": 6, "answers": 2}[goal] == len(trials)


@pytest.mark.parametrize("goal", GOALS)
def test_what_is_written_is_valid_for_editors_and_for_ci(filled: Project, goal: str) -> None:
    if goal == "answers":
        filled.write(questions_jsonl=QUESTIONS)

    filled.keval("init", *GOALS[goal])

    text = (filled.root / "eval.yaml").read_text(encoding="utf-8")
    assert text.startswith("# yaml-language-server: $schema=keval.schema.json\n")
    assert [] == [line for line in text.splitlines() if len(line) > 120]
    schema = json.loads((filled.root / "keval.schema.json").read_text(encoding="utf-8"))
    assert [] == [error.message for error in Draft202012Validator(schema).iter_errors(config(filled.root))]
    assert (filled.root / ".gitignore").read_text(encoding="utf-8") == "results/\n.*.lock\n"


def test_paths_are_relative_to_the_config_wherever_it_is(
    filled: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled.write(questions_jsonl=QUESTIONS)
    (filled.root / "echo.py").write_text("import sys\nprint(sys.argv[1])\n", encoding="utf-8")
    asked = ["--questions", "questions.jsonl", "--server", "python server.py"]

    served = filled.keval("init", "served", *asked)
    own = filled.keval(
        "init", "own", "--agent", "python:my_agent.py:answer", "--agent", "command:python echo.py {question}"
    )
    for folder, outcome in (("served", served), ("own", own)):
        assert outcome.code == 0, outcome.stderr
        monkeypatch.chdir(tmp_path / folder)
        ran = filled.keval("run", "eval.yaml")
        assert (0, True) == (ran.code, "none failed" in ran.stdout), ran.stderr

    assert {"path": "../questions.jsonl"} == config(tmp_path / "served")["dataset"]
    assert ".." == config(tmp_path / "served")["contexts"]["server"]["cwd"]
    assert "../my_agent.py:answer" == config(tmp_path / "own")["agents"]["my_agent"]["target"]


def test_a_function_that_takes_a_context_gets_the_model_and_the_servers(filled: Project) -> None:
    filled.write(other_py=WITH_CONTEXT)

    outcome = filled.keval("init", "--agent", "python:other.py:answer", "--server", "python server.py")
    ran = filled.keval(*next_command(outcome))

    assert 0 == ran.code, ran.stderr
    assert {"type": "python", "target": "other.py:answer", "model": "simulated/model"} == config(filled.root)["agents"][
        "other"
    ]
    answers = {
        (trial["condition"], trial["transcript"]["messages"][-1]["text"])
        for trial in filled.lines("trials.jsonl")
        if trial["agent"] == "other"
    }
    assert {("baseline", "model and 0 servers"), ("with_server", "model and 1 servers")} == answers


def test_samples_are_about_the_servers_tools_and_say_that_they_are_to_be_replaced(filled: Project) -> None:
    outcome = filled.keval("init", *GOALS["server"])

    records = [json.loads(line) for line in (filled.root / "questions.jsonl").read_text(encoding="utf-8").splitlines()]
    assert ["replace-me-1", "replace-me-2", "replace-me-3"] == [record["id"] for record in records]
    assert all("look_up" in record["question"] and record["answer"] for record in records)
    assert "server has 1 tool: look_up" in outcome.stdout
    assert "three samples: replace them" in outcome.stdout


def test_a_real_model_is_asked_by_the_loop_of_its_vendor(filled: Project) -> None:
    keyless = {"ANTHROPIC_API_KEY": None}

    outcome = filled.keval("init", *GOALS["server"], "--model", "anthropic/claude-haiku-4-5", env=keyless)

    assert 0 == outcome.code, outcome.stderr
    data = config(filled.root)
    assert {"anthropic": {"model": "anthropic/claude-haiku-4-5"}} == data["agents"]
    assert {"model": "anthropic/claude-haiku-4-5"} == data["judge"]
    assert 3 == data["execution"]["num_repetitions"]
    assert "note: export ANTHROPIC_API_KEY=… before you run it" in outcome.stderr


def test_questions_without_golden_answers_are_graded_by_what_needs_none(filled: Project) -> None:
    filled.write(questions_jsonl='{"question": "Which port?"}\n{"question": "Which command?"}')

    outcome = filled.keval("init", *GOALS["server"], "--questions", "questions.jsonl")
    ran = filled.keval(*next_command(outcome))

    assert 0 == ran.code, ran.stderr
    data = config(filled.root)
    assert ["helpfulness_and_clarity"] == data["rubrics"]
    assert "low(with_server/helpfulness_and_clarity) >= +0" in data["gates"]


def test_answers_may_have_their_questions_beside_them(filled: Project) -> None:
    filled.write(log_jsonl='{"id": "a", "question": "Which port?", "answer": "7443", "response": "It is 7443."}')

    outcome = filled.keval("init", "--answers", "log.jsonl")
    ran = filled.keval(*next_command(outcome))

    assert 0 == ran.code, ran.stderr
    assert ("log.jsonl", {"type": "recorded", "path": "log.jsonl"}) == (
        config(filled.root)["dataset"]["path"],
        config(filled.root)["agents"]["log"],
    )


def test_no_file_is_overwritten_and_all_that_exist_are_named(filled: Project) -> None:
    filled.write(questions_jsonl="mine", gitignore="mine")
    (filled.root / ".gitignore").write_text("mine\n", encoding="utf-8")
    (filled.root / "keval.schema.json").write_text("{}", encoding="utf-8")
    before = files(filled.root)

    refused = filled.keval("init", *GOALS["server"])

    assert 2 == refused.code
    assert (
        "error: questions.jsonl and keval.schema.json exist already, and nothing is overwritten; move them away, or"
        " name another folder: `keval init DIR`\n"
    ) == refused.stderr
    assert before == files(filled.root)


def test_a_gitignore_that_exists_is_left_as_it_is(filled: Project) -> None:
    (filled.root / ".gitignore").write_text("mine\n", encoding="utf-8")

    outcome = filled.keval("init", *GOALS["server"])

    assert (0, "mine\n") == (outcome.code, (filled.root / ".gitignore").read_text(encoding="utf-8"))
    assert "note: add results/ to .gitignore, which is there already" in outcome.stderr


@pytest.mark.parametrize(
    ("line", "noted"),
    [
        *((each, False) for each in ("results/", "results", "/results", "/results/ ", "**/results/", "results/*")),
        *((each, True) for each in ("# results/", "results.txt", "old/results", "!results/")),
    ],
)
def test_results_in_a_gitignore_are_recognised_however_they_are_written(
    filled: Project, line: str, noted: bool
) -> None:
    (filled.root / ".gitignore").write_text(f"*.pyc\n{line}\n", encoding="utf-8")
    filled.write(log_jsonl='{"id": "a", "question": "Which port?", "answer": "7443", "response": "It is 7443."}')

    outcome = filled.keval("init", "--answers", "log.jsonl")

    assert (0, noted) == (outcome.code, "note: add results/ to .gitignore" in outcome.stderr)


def test_variables_for_a_server_are_named_and_those_with_values_are_not_written(filled: Project) -> None:
    needy = "import os\nassert (os.environ['A'], os.environ['B'], os.environ['C']) == ('1', 'of-b', 'of-c')\n"
    filled.write(needy_py=needy + look_up("Port 7443."))
    flags = ("--server", "A=1 needy.py", "--env", "B", "--env", "C=of-c")

    unset = filled.keval("init", *flags, env={"B": None})
    outcome = filled.keval("init", *flags, env={"B": "of-b"})

    assert (2, "error: ${B}: set in the environment what servers are started with: export B=…\n") == (
        unset.code,
        unset.stderr,
    )
    assert 0 == outcome.code, outcome.stderr
    server = config(filled.root)["contexts"]["needy"]
    assert ("python", ["needy.py"], {"A": "1", "B": "${B}", "C": "${C}"}) == (
        server["command"],
        server["args"],
        server["env"],
    )
    assert "note: the value of C was not copied into the config; export C=…" in outcome.stderr


@pytest.mark.slow
def test_questions_can_be_generated_for_a_person_to_accept(filled: Project) -> None:
    pages = {"ports": "Tarn listens on port 7443.", "logs": "Tarn keeps logs for 14 days in /var/log/tarn."}
    filled.write(pages_py=PAGES.format(pages=pages, path=ENVIRONMENT["PYTHONPATH"]))

    outcome = filled.keval("init", "--server", "python pages.py", "--generate", "2")
    accepted = filled.keval(*next_command(outcome), "--accept-all")
    ran = filled.keval("run", "eval.yaml")

    assert (0, 0) == (accepted.code, ran.code), accepted.stderr + ran.stderr
    questions = [
        json.loads(line) for line in (filled.root / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    assert (True, {True}) == (0 < len(questions) <= 2, {record["accepted"] for record in questions})
    assert "questions that wait for you to accept them" in outcome.stdout
    assert "replace them by your own" not in outcome.stderr
    assert re.search(r"^estimate of a run: about .*\n.*\nonce you have accepted.*model", outcome.stdout, re.MULTILINE)
    assert "\n      keval run eval.yaml -m ollama/qwen3:4b\n" in outcome.stdout


def test_where_no_question_can_be_made_samples_are_written(filled: Project) -> None:
    outcome = filled.keval("init", *GOALS["server"], "--generate")

    assert ["run", "eval.yaml"] == next_command(outcome)
    assert "note: no question could be made, so three samples are written" in outcome.stderr
    first = "first write questions into questions.jsonl in place of the samples, a line each:\n      {"
    assert outcome.stdout.index(first) < outcome.stdout.index("next  ")
    assert "replace-me-1" in (filled.root / "questions.jsonl").read_text(encoding="utf-8")


WRONG = {
    "no server": (
        ["--server", "python broken.py --fast"],
        ["error: python broken.py --fast: server 'broken' did not come up", "No module named 'no_such_module'"],
    ),
    "no program": (["--server", "no-such-program x"], ["no-such-program x: server ", "not found; install it"]),
    "no target": (["--agent", "python:nowhere.py:answer"], ["nowhere.py does not; it is relative to the config"]),
    "no function": (["--agent", "python:my_agent.py:anser"], ["has no function 'anser'; did you mean 'answer'?"]),
    "no import": (["--agent", "python:broken.py:answer"], ["broken.py cannot be imported", "no_such_module"]),
    "no servers for it": (
        ["--agent", "python:my_agent.py:answer", "--server", "python server.py"],
        ["the agent my_agent: answer() of my_agent.py takes none"],
    ),
    "no question": (
        ["--server", "python server.py", "--questions", "other.jsonl"],
        ["other.jsonl:1: no question under 'question'; the record has: prompt", "give it by --question-key KEY"],
    ),
    "no golden answer": (
        ["--server", "python server.py", "--questions", "other.jsonl", "--question-key", "prompt", "--answer-key", "x"],
        ["other.jsonl: no record has an answer under 'x'; correct --answer-key"],
    ),
    "no answer for a question": (
        ["--answers", "other.jsonl", "--questions", "questions.jsonl"],
        ["other.jsonl:1"],
    ),
    "no questions": (["--answers", "answers.jsonl"], ["name the file of the questions by --questions"]),
    "nothing": ([], ["say by flags what to evaluate: --server COMMAND|URL, --from mcp.json, --agent or --answers"]),
    "one agent": (["--agent", "gadk"], ["--agent gadk: name a second agent to compare it with, or a server"]),
    "for a server": (
        ["--agent", "python:my_agent.py:answer", "--env", "A=1", "--header", "A: 1"],
        [
            "error: --env: it is for a server; name that by --server\n",
            "error: --header: it is for a server; name that by --server\n",
        ],
    ),
    "for another server": (
        ["--server", "python server.py", "--header", "A: of-a"],
        ["--server python server.py: a command takes NAME=VALUE or NAME, not 'A:'"],
    ),
    "everything": (
        ["--agent", "gdk", "--model", "opnai/gpt", "--server", "x 'y", "--only", "z", "--question-key", "q"],
        [
            "--model opnai/gpt: no provider of models named 'opnai' is installed; did you mean 'openai'?",
            "--only: it chooses among the servers of a file",
            "--server x 'y: no command: No closing quotation",
            "--agent gdk: no agent named 'gdk' is installed; did you mean 'gadk'?",
            "--questions: --question-key and --answer-key are about a file",
        ],
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_told_and_nothing_is_written(filled: Project, case: str) -> None:
    arguments, told = WRONG[case]
    filled.write(
        broken_py="import no_such_module", other_jsonl='{"prompt": "Which port?"}', questions_jsonl=QUESTIONS.strip()
    )
    before = files(filled.root)

    outcome = filled.keval("init", "new/folder", *arguments)

    assert 2 == outcome.code, outcome.stdout
    assert [] == [text for text in told if text not in outcome.stderr.replace("\n", " ") and text not in outcome.stderr]
    assert before == files(filled.root)


@pytest.mark.parametrize(
    ("target", "label", "options"),
    [
        ("uvx mcp-server-time --local-timezone UTC", "time", {"args": ["mcp-server-time", "--local-timezone", "UTC"]}),
        ("uvx --with 'mcp<2' mcp-server-tides", "tides", {"args": ["--with", "mcp<2", "mcp-server-tides"]}),
        ("npx -y @modelcontextprotocol/server-filesystem@2 /", "filesystem", {"command": "npx"}),
        ("env DEBUG=1 python -m acme.search", "acme.search", {"args": ["DEBUG=1", "python", "-m", "acme.search"]}),
        ("docker run -i --rm -e KEY ghcr.io/acme/notes-mcp:1.2", "notes", {"command": "docker"}),
        ("uv run tickets_server.py", "tickets", {"args": ["run", "tickets_server.py"]}),
        ("https://mcp.acme.com/v1/mcp", "acme", {"type": "http", "url": "https://mcp.acme.com/v1/mcp"}),
        ("http://127.0.0.1:8000/sse", "local", {"type": "sse", "url": "http://127.0.0.1:8000/sse"}),
        ("acme --token abc", "acme", {"args": ["--token", "${TOKEN}"]}),
    ],
)
def test_a_server_is_labelled_by_what_says_most(target: str, label: str, options: dict[str, Any]) -> None:
    server = named_server(target, Workplace.of(Path()), Variables())

    assert (label, options) == (server.label, {name: server.options[name] for name in options})


def test_agents_are_told_the_folder_that_a_server_is_started_with(filled: Project) -> None:
    (filled.root / "notes").mkdir()

    outcome = filled.keval("init", "deeper", "--server", "python server.py notes")

    assert 0 == outcome.code, outcome.stderr
    config = yaml.safe_load((filled.root / "deeper" / "eval.yaml").read_text(encoding="utf-8"))
    prompts = [condition["system_prompt"] for condition in config["conditions"].values()]
    assert ["Answer the question. Say so when you do not know. The files are in the folder `notes`."] * 2 == prompts
