"""Any program as an agent: what it is told, what becomes of its output, and how it ends."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tests.conftest import Outcome, Project, serve_here

Run = Callable[..., Outcome]

SHOW = """
    import json, os, sys
    print(json.dumps({
        "arguments": sys.argv[1:], "stdin": sys.stdin.read(), "cwd": os.getcwd(), "environment": dict(os.environ),
        "files": sorted(os.path.relpath(os.path.join(at, name)) for at, _, names in os.walk("..") for name in names),
    }))
"""
"""A program that answers with all that it was told."""
SAY = "import pathlib; print(pathlib.Path(__file__).with_name('said.txt').read_text(), end='')"
"""A program that answers with what stands in a file."""


@pytest.fixture
def run(project: Project, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run an evaluation whose agent has these options: `run("command: [...]", agent_py=..., more="...")`."""
    serve_here(monkeypatch)

    def run(options: str, *args: str, more: str = "", question: Any = None, **files: str) -> Outcome:
        sample = {"id": "q1", "question": "What is 2 + 3?", "answer": "5", **(question or {})}
        agent = "".join(f"    {line}\n" for line in dedent(options).strip().splitlines())
        project.write(
            eval_yaml="dataset: {path: questions.jsonl}\nmetrics: [basic/contains]\nagents:\n  mine:\n"
            f"    type: command\n{agent}{more}",
            questions_jsonl=json.dumps(sample),
            **files,
        )
        return project.keval("run", "eval.yaml", *args)

    return run


def trial_of(project: Project) -> dict[str, Any]:
    (trial,) = project.lines("trials.jsonl")
    return trial


def failure_of(project: Project) -> tuple[str, str, str]:
    failure = trial_of(project)["failure"]
    assert failure["traceback"] is None
    return failure["stage"], failure["kind"], failure["message"]


def told(project: Project) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(trial_of(project)["output"])
    return answer


def test_a_program_gets_the_question_and_a_home_a_folder_and_an_environment_of_its_own(
    run: Run, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_USER", "sk-canary")
    options = """
        command: [python, show.py, "{question}", "{{x}}", "--seed={seed}"]
        env: {MINE: "in {workspace}"}
    """

    outcome = run(options, show_py=SHOW)

    assert 0 == outcome.code, outcome.stderr
    seen = told(project)
    question, braces, seed = seen["arguments"]
    assert ("What is 2 + 3?", "{x}", True, "") == (question, braces, seed.startswith("--seed="), seen["stdin"])
    environment, cwd = seen["environment"], Path(seen["cwd"])
    assert (str(cwd.parent / "home"), f"in {cwd}") == (environment["HOME"], environment["MINE"])
    assert ([], False, False) == (seen["files"], "sk-canary" in str(environment), cwd.parent.exists())
    assert os.environ["HOME"] != environment["HOME"]


def test_a_question_that_no_placeholder_asks_for_is_on_standard_input_after_the_system_prompt(
    run: Run, project: Project
) -> None:
    outcome = run("command: [python, show.py]", more="conditions: {a: {system_prompt: Be brief.}}\n", show_py=SHOW)

    assert (0, "Be brief.\n\nWhat is 2 + 3?") == (outcome.code, told(project)["stdin"])


def test_prompt_history_and_files_go_where_the_options_say(run: Run, project: Project) -> None:
    options = """
        command: [python, show.py, "{question}", "{system_prompt_file}"]
        files:
          ~/.agent/config.json: '{"prompt": {{ system_prompt | tojson }}, "before": {{ history | tojson }}}'
          notes/{seed}.txt: "{{ workspace }}"
    """
    history = [{"role": "user", "content": "I am Ada."}, {"role": "assistant", "content": "Hello."}]
    show = (
        SHOW + "    print(open(os.path.expanduser('~/.agent/config.json')).read(), file=sys.stderr)\n    sys.exit(1)\n"
    )

    outcome = run(
        options,
        more='conditions: {a: {system_prompt: "Be \\"brief\\"."}}\nexecution: {retry: {max_attempts: 1}}\n',
        question={"history": history},
        show_py=show,
    )

    stage, kind, message = failure_of(project)
    assert (3, "agent", "process") == (outcome.code, stage, kind)
    _, _, written = message.partition("its stderr ends:\n")
    assert {"prompt": 'Be "brief".', "before": history} == json.loads(written)


@pytest.mark.parametrize(
    ("options", "written", "answer"),
    [
        ("answer: result.text", '{"result": {"text": " It is 5.\\n"}}', "It is 5."),
        (
            "answer: item.text\nevents: jsonl",
            'a line of its own\n{"item": {"text": "Let me see."}}\n{"item": null}\n{"item": {"text": "It is 5."}}\n',
            "It is 5.",
        ),
        ("", "\n It is 5. \n\n", "It is 5."),
    ],
)
def test_the_answer_is_the_output_or_what_is_found_in_it(
    run: Run, project: Project, options: str, written: str, answer: str
) -> None:
    outcome = run(f"command: [python, say.py]\n{options}", say_py=SAY, said_txt=written)

    assert (0, answer) == (outcome.code, trial_of(project)["output"]), outcome.stderr


@pytest.mark.parametrize(
    ("options", "program", "failure"),
    [
        (
            "",
            "import sys; sys.exit('no such model')",
            ("process", "ended with exit code 1; its stderr ends:\nno"),
        ),
        (
            "",
            "print('half an answer'); raise SystemExit(3)",
            ("process", "exit code 3; its output ends:\nhalf"),
        ),
        ("", "import os; os.kill(os.getpid(), 9)", ("process", "ended with exit code 137")),
        ("", "print()", ("no_answer", "before it said anything")),
        ("answer: text", "print('<html>It works!</html>')", ("bad_output", "has not JSON; it ends:\n<html>It works!")),
        ("answer: text", "print('[1, 2]')", ("bad_output", "has not a text at 'text'; it ends:\n[1, 2]")),
        ("answer: text\nevents: jsonl", "print('busy')", ("bad_output", "has not a text at 'text'; it ends:\nbusy")),
    ],
)
def test_a_program_that_fails_or_says_nothing_fails_the_trial_with_the_end_of_its_output(
    run: Run, project: Project, options: str, program: str, failure: tuple[str, str]
) -> None:
    more = "execution: {retry: {max_attempts: 1}}\n"

    outcome = run(f"command: [python, agent.py]\n{options}", more=more, agent_py=program)

    kind, message = failure
    _, found, said = failure_of(project)
    assert (3, kind, True) == (outcome.code, found, message in said), said


def test_a_flag_adds_a_program_to_a_config_without_agents(project: Project) -> None:
    project.write(
        eval_yaml="dataset: {path: questions.jsonl}\nmetrics: [basic/contains]\n",
        questions_jsonl='{"id": "q1", "question": "What is 2 + 3?", "answer": "5"}',
        show_py=SHOW,
    )

    outcome = project.keval("run", "eval.yaml", "--agent", "command:python show.py 'x y' {question}")

    assert (0, ["x y", "What is 2 + 3?"]) == (outcome.code, told(project)["arguments"]), outcome.stderr


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ({"turns": ["And twice that?"]}, "turns_unsupported"),
        ({"history": [{"role": "user", "content": "I am Ada."}]}, "history_unsupported"),
    ],
)
def test_what_the_options_do_not_hand_over_fails_the_trial(
    run: Run, project: Project, question: Any, kind: str
) -> None:
    outcome = run("command: [python, say.py]", question=question, say_py=SAY, said_txt="It is 5.")

    assert (3, kind) == (outcome.code, failure_of(project)[1])


@pytest.mark.slow
def test_a_program_that_hangs_leaves_nothing_behind_and_says_what_it_wrote(run: Run, project: Project) -> None:
    program = """
        import os, subprocess, sys, time
        child = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"], start_new_session=True)
        print(f"waiting for {os.getpid()} and {child.pid}", file=sys.stderr, flush=True)
        time.sleep(600)
    """
    more = "execution: {timeout_seconds: 1.5, retry: {max_attempts: 1}}\n"

    outcome = run("command: [python, agent.py]", more=more, agent_py=program)

    _, kind, message = failure_of(project)
    assert (3, "timeout") == (outcome.code, kind)
    _, _, written = message.partition("the program's output ends:\nwaiting for ")
    processes = [int(process) for process in written.split(" and ")]
    assert [False, False] == [Path(f"/proc/{process}").exists() for process in processes]


def test_a_program_ends_with_keval_when_that_is_killed(project: Project) -> None:
    project.write(
        eval_yaml="""
            dataset: {path: questions.jsonl}
            agents: {mine: {type: command, command: "python agent.py {folder}"}}
            metrics: [basic/contains]
        """,
        questions_jsonl='{"id": "q1", "question": "What is 2 + 3?", "answer": "5"}',
        agent_py="""
            import os, pathlib, sys, time
            pathlib.Path(sys.argv[1], "writing").write_text(str(os.getpid()))
            os.rename(pathlib.Path(sys.argv[1], "writing"), pathlib.Path(sys.argv[1], "process"))
            time.sleep(600)
        """,
    )
    keval = subprocess.Popen([sys.executable, "-m", "keval", "run", "eval.yaml", "-q"], cwd=project.root)
    appeared = project.root / "process"
    wait_until(appeared.exists)

    keval.kill()
    keval.wait()

    process = Path("/proc", appeared.read_text("utf-8"))
    wait_until(lambda: not process.exists())


def wait_until(happened: Callable[[], bool]) -> None:
    until = time.monotonic() + 30
    while not happened():
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.slow
def test_servers_that_the_options_do_not_hand_over_are_an_error_before_the_run(run: Run, project: Project) -> None:
    more = "contexts: {weather: {}}\nconditions: {with: {contexts: [weather]}}\n"

    outcome = run("command: [python, say.py]", more=more, say_py=SAY, said_txt="It is 5.")

    problem = "eval.yaml:4:3: condition 'with' has MCP servers, and 'mine' can have none: the agent's options do not"
    assert (2, True, []) == (outcome.code, problem in outcome.stderr, [*project.root.glob("results/*/*/trials.jsonl")])


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("command: []", "eval.yaml:6:14: 'command' must name a program"),
        ("command: [python, '{qestion}']", "known placeholders only, got {qestion}; did you mean 'question'?"),
        ("command: [python, '{model_key}']", "'command' must not have {model_key} without a model"),
        ("command: [python]\nenv: {KEY: '{model_key}'}", "'env' must not have {model_key} without a model"),
        ("command: [python]\nanswer: 'a.[b'", "'answer' must be a JMESPath expression"),
        ("command: [python]\nevents: jsonl", "'events' must come with `answer`"),
        ("command: [python]\nfiles: {a: '{% if %}'}", "'files' must be a Jinja template"),
        ("command: [python]\nfiles: {a: '{{ promt }}'}", "'files' must have known variables only, got 'promt'"),
        ("command: [python]\nsession: {command: [x, '{nothing}']}", "'session' must have known placeholders only"),
        ("command: python 'agent.py", "'command' must be written as in a shell: No closing quotation"),
        ("command: say.py", "the command '/"),
        ("command: [no-such-program]", "eval.yaml:4:3: the command 'no-such-program' is not found on PATH; install it"),
        ("command: [./missing.sh]", "the command './missing.sh' is not found in "),
    ],
)
def test_options_that_cannot_be_right_are_errors_before_the_run(
    run: Run, project: Project, options: str, problem: str
) -> None:
    outcome = run(options, say_py=SAY)

    assert (2, True, []) == (
        outcome.code,
        problem in outcome.stderr,
        [*project.root.glob("results/*/*/trials.jsonl")],
    ), outcome.stderr
    assert "Traceback" not in outcome.stderr


@pytest.mark.slow
def test_a_run_is_replayed_without_its_model(run: Run, project: Project) -> None:
    loop = Path(__file__).with_name("loop.py")
    options = f"""
        command: [python, "{loop}", "--model={{model}}", "--mcp={{mcp_config}}", "{{question}} (in {{workspace}})"]
        events: jsonl
        answer: answer
        model: simulated/weather
        env: {{OPENAI_BASE_URL: "{{model_base_url}}", OPENAI_API_KEY: "{{model_key}}"}}
    """
    more = "contexts: {weather: {}}\nconditions: {with: {contexts: [weather]}}\n"
    question = {"question": "What is the weather in Oslo?"}

    recorded = run(options, "--record", more=more, question=question)
    first = trial_of(project)
    replayed = project.keval("run", "eval.yaml", "--replay", str(project.run_directory()), "-o", "again")

    (path,) = project.root.glob("again/*/*/trials.jsonl")
    again = json.loads(path.read_text("utf-8"))
    assert (0, 0) == (recorded.code, replayed.code), replayed.stderr
    assert first["transcript"]["tool_calls"]
    assert ("tap", "proxy") == (first["transcript"]["tool_calls_by"], first["transcript"]["model_calls_by"])
    assert (first["output"], first["transcript"]["usage"]) == (again["output"], again["transcript"]["usage"])


def test_files_of_the_options_are_no_change_of_the_agents_and_stay_in_the_workspace(run: Run, project: Project) -> None:
    options = """
        command: [python, -c, "open('answer.txt', 'w').write(open('notes/told.txt').read()); print(5)"]
        files: {notes/told.txt: "5", ~/.agent: "x"}
    """
    linked = options.replace("notes/told.txt:", "out/told.txt:")
    setup = "workspace: {setup: ['ln -s .. out']}\n"

    outcome = run(options, more=setup)

    assert 0 == outcome.code, outcome.stderr
    end = trial_of(project)["transcript"]["end_state"]
    assert [{"path": "answer.txt", "kind": "added"}] == end["changes"]
    shutil.rmtree(project.root / "results")
    assert 3 == run(linked, more=setup + "execution: {retry: {max_attempts: 1}}\n").code
    stage, kind, message = failure_of(project)
    assert ("agent", "bad_file") == (stage, kind)
    assert "the file out/told.txt would be written outside of" in message
