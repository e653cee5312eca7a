"""Jobs of pull requests are executed: the workflow of docs/ci.md with action.yml, and those that `ci init` writes.

The repository is one that the test makes, with a server and a skill; the API of GitHub is a stand-in.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.ci_jobs import ROOT, TOKEN, Done, Runner
from tests.code_host import CodeHost, asked_by, pull_request, serving
from tests.conftest import Project
from tests.stdio_server import look_up

PAGE = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
CONFIG = """
dataset: {path: questions.jsonl}
agents: {openai: {model: simulated/any}}
contexts:
  tarn: {type: stdio, command: python, args: [server.py]}
  manual: {type: skill, path: skills/manual}
conditions:
  baseline: {}
  with_server: {contexts: [tarn]}
  with_skill: {contexts: [manual]}
metrics: [basic/contains]
gates:
  - with_server/basic/contains >= 0.9
  - with_skill/basic/contains >= 0.9
"""
SKILL = "---\nname: manual\ndescription: How to run Tarn.\n---\nTarn listens on port {port}.\n"
FILES = {
    "eval.yaml": CONFIG,
    "questions.jsonl": '{"id": "port", "question": "Which port does Tarn listen on?", "answer": "7443"}\n'
    '{"id": "tarn", "question": "On which port is Tarn?", "answer": "7443"}\n',
    "server.py": look_up("Tarn listens on port 7443."),
    "skills/manual/SKILL.md": SKILL.format(port=7443),
    "requirements.txt": "",
    ".gitignore": "results/\n",
}
WITH_A_KEY = {"eval.yaml": CONFIG.replace("simulated/any", "openai/gpt-4o-mini")}
STEPS = {"astral-sh/setup-uv": 0, "Install": 0, "Find the commit": 0, "actions/checkout": 0, "Set up": 0}
KEPT = {"manifest.json", "trials.jsonl", "junit.xml"}
ENDS = {"Comment": 0, "actions/upload-artifact": 0}


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def runner(project: Project) -> Iterator[Runner]:
    """A runner for which all is installed already: `uv` and `pip` note what they are called with, and a token."""
    tools = project.root / "tools"
    tools.mkdir()
    for name in ("uv", "pip"):
        noted = f"echo {name} $* $GITHUB_TOKEN$KEVAL_GITLAB_TOKEN >> {project.root}/installed"
        (tools / name).write_text(
            f'#!/bin/sh\n{noted}\n[ "$*" != "tool dir --bin" ] || echo {tools}\n', encoding="utf-8"
        )
        (tools / name).chmod(0o755)
    with serving(CodeHost()) as host:
        yield Runner(project.root, host)


def ran(done: Done | None) -> Done:
    assert done is not None
    return done


@pytest.mark.slow
def test_a_pull_request_is_told_what_it_did_and_a_fork_replays_the_recording(runner: Runner) -> None:
    (workflow,) = (text for text in blocks("yaml") if "jobs" in yaml.safe_load(text))
    host = runner.host
    runner.push(FILES)

    def pull(sha: str, repository: str = "ours/tarn") -> Done:
        return ran(runner.github(workflow, {"pull_request": pull_request(repository, sha)}))

    def comment(sha: str, who: str, body: str = "/keval", repository: str = "ours/tarn") -> Done | None:
        host.pull, host.permission = pull_request(repository, sha), "write" if who == "ann" else "read"
        return runner.github(workflow, asked_by(who, body), "issue_comment")

    same = pull(runner.push({}))
    server = pull(runner.push({"server.py": look_up("Tarn listens on port 1.")}))
    skill = runner.push({"skills/manual/SKILL.md": SKILL.format(port=1)})
    asked, reader, other = comment(skill, "ann"), comment(skill, "eve"), comment(skill, "ann", "nice")
    of_fork = comment(skill, "ann", repository="eve/tarn")

    for code, done in ((0, same), (1, server), (1, ran(asked))):
        assert {**STEPS, "Evaluate": code, **ENDS} == done.codes, done.said
        assert KEPT <= {Path(each).name for each in done.artifacts}
    places = [[each.partition("title")[0] for each in done.errors] for done in (same, server, ran(asked))]
    lines = [f"::error file=eval.yaml,line={line},col=5," for line in (13, 14)]
    assert [[], [lines[0]], [lines[1], "::error file=skills/manual/SKILL.md,line=1,"]] == places
    # One comment, which is about the last commit that was evaluated, and one that says what `/keval` does not do.
    evaluated, refused = host.of()
    assert "**failed** | with\\_skill/basic/contains" in evaluated
    assert skill[:12] in evaluated
    assert "keval runs no code of forks where secrets are" in refused
    # No code of a fork, or that only a reader asks for, is even fetched.
    found = {name: code for name, code in STEPS.items() if name not in ("actions/checkout", "Set up")}
    assert ([found, found], None) == ([ran(each).codes for each in (reader, of_fork)], other)
    installed = (runner.root / "installed").read_text(encoding="utf-8")
    assert (True, False) == (f"uv tool install {ROOT}\n" in installed, TOKEN in installed)

    lacking = pull(runner.push(WITH_A_KEY), "eve/tarn")
    make, replay = blocks("console")[-2:]
    runner.git("checkout", "-q", "main")
    for script in (make.replace("oslo,tokyo", "port,tarn"), replay):
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        subprocess.run(["bash", "-ec", script], cwd=runner.origin, env={**os.environ, "PATH": path}, check=True)
    runner.push({}, to="main")
    replayed = pull(runner.push({}), "eve/tarn")
    described = SKILL.format(port=7443).replace("How to run", "How to stop")
    changed = pull(runner.push({"skills/manual/SKILL.md": described}), "eve/tarn")
    wrong = pull(runner.push({"eval.yaml": f"{CONFIG}seed_: 1"}), "eve/tarn")

    assert "keval did not run: this pull request gets no OPENAI_API_KEY, as it is from a fork" in str(lacking.said)
    assert {**STEPS, "Evaluate": 0} == lacking.codes
    for code, done in ((0, replayed), (3, changed)):  # 3: nothing was measured of what changed
        assert {**STEPS, "Evaluate": code, "actions/upload-artifact": 0} == done.codes, done.said
    told = "::error file=eval.yaml,line=10,col=3,title=keval::2 of 2 trials of openai failed (replay: replay_miss)"
    assert changed.errors[0].startswith(told), changed.errors
    assert ({**STEPS, "Evaluate": 2}, ["::error file=eval.yaml,line=15,col=1,title=keval"]) == (
        wrong.codes,
        [each.partition("::unknown")[0] for each in wrong.errors],
    )
    assert [evaluated, refused] == host.of()


@pytest.mark.slow
def test_the_jobs_that_keval_writes_run_on_a_label_and_on_gitlab_with_the_secrets_of_their_own_repository(
    runner: Runner, project: Project
) -> None:
    runner.push({f"evals/{name}": text for name, text in FILES.items()})
    for host in ("github", "gitlab"):
        written = project.keval("ci", "init", "origin/evals/eval.yaml", "--host", host, "--on", "label")
        assert 0 == written.code, written.stderr
    workflow = (runner.origin / ".github/workflows/keval-evals.yaml").read_text(encoding="utf-8")
    gitlab = (runner.origin / ".gitlab-ci.yml").read_text(encoding="utf-8")
    sha = runner.push({}, to="main")
    labelled = pull_request(sha=sha) | {"labels": [{"name": "bug"}, {"name": "keval"}]}
    named = {"CI_MERGE_REQUEST_LABELS": "bug,keval", "KEVAL_GITLAB_TOKEN": TOKEN}

    without = runner.github(workflow, {"action": "synchronize", "pull_request": pull_request(sha=sha)})
    closed = runner.github(workflow, {"action": "closed", "pull_request": labelled})
    done = ran(runner.github(workflow, {"action": "labeled", "pull_request": labelled}))
    comments = runner.host.of()
    unnamed = runner.gitlab(gitlab, sha, variables={**named, "CI_MERGE_REQUEST_LABELS": "kevals"})
    in_ours = runner.gitlab(gitlab, sha, variables={**named, "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "9"})
    merged = ran(runner.gitlab(gitlab, sha, variables=named))
    asks = runner.push({f"evals/{name}": text for name, text in WITH_A_KEY.items()})
    of_fork = {"CI_PROJECT_ID": "9", "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "9", "CI_MERGE_REQUEST_LABELS": "keval"}
    lacking = ran(runner.gitlab(gitlab, asks, variables=of_fork))

    assert (None, None, None, None) == (without, closed, unnamed, in_ours)
    assert {**STEPS, "Evaluate": 0, **ENDS} == done.codes, done.said
    assert KEPT <= {Path(each).name for each in done.artifacts}
    assert [True] == [sha[:12] in each for each in comments]
    assert ({"script": 0}, True) == (merged.codes, "updated the comment" in merged.said["script"]), merged.said
    # The reports of tests are kept once more.
    assert 2 == [Path(each).name for each in merged.artifacts].count("junit.xml")
    assert ({"script": 0}, []) == (lacking.codes, lacking.artifacts)
    assert "keval did not run: this pull request gets no OPENAI_API_KEY, as it is from a fork" in lacking.said["script"]
