"""`keval ci`: which commit is evaluated, what hosts are shown, one comment, and the jobs that it writes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import attrs
import click
import pytest
import yaml
from click.testing import CliRunner

from keval.cli import main
from keval.seams.installation import Installation, Origin
from tests.code_host import SHA, CodeHost, asked_by, github_job, pull_request, serving
from tests.conftest import Project
from tests.plugins.workspace.attempts import git

CONFIG = """
dataset: {path: questions.jsonl}
agents: {answers: {type: recorded, path: answers.jsonl}}
metrics: [basic/contains]
gates:
  - basic/contains >= 0.9
"""
QUESTIONS = """
{"id": "port", "question": "Which port?", "answer": "7443"}
{"id": "host", "question": "Which host?", "answer": "tarn", "expect": [{"contains": "tarn"}]}
"""
ANSWERS = """
{"id": "port", "response": "7443"}
{"id": "host", "response": "@all: 100 % sure"}
"""
MARK = "<!-- keval a%2D%2Db -->"
ROOT = Path(__file__).parents[3]


@pytest.fixture
def answered(project: Project) -> Project:
    """A folder with an evaluation of answers, one of which is wrong."""
    project.write(eval_yaml=f"name: a--b{CONFIG}", questions_jsonl=QUESTIONS, answers_jsonl=ANSWERS)
    return project


@pytest.fixture
def host() -> Iterator[CodeHost]:
    with serving(CodeHost(pull=pull_request())) as found:
        yield found


def outputs(project: Project) -> dict[str, str]:
    lines = (project.root / "outputs.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines)


FORK = "the check of the pull request replays the recording. To ask live models, push c0ffee012345 to a branch"
LATER = "Somebody pushed after the comment. Look at c0ffee012345, and comment `/keval c0ffee012345`."


@pytest.mark.parametrize(
    ("event", "changes", "told", "said"),
    [
        (asked_by("ann", "/keval please"), {}, "", False),
        (asked_by("ann", "/keval c0ffee012345", "2026-11-30T09:00:00Z"), {}, "", False),
        (asked_by("ann", "/kevalx"), {}, "the comment does not ask for an evaluation of a pull request", False),
        (asked_by("ann", "/keval", issue="labels"), {}, "does not ask for an evaluation of a pull request", False),
        (asked_by("eve", "/keval"), {"permission": "read"}, "eve may not write to this repository", False),
        (asked_by("ann", "/keval", "2026-11-30T09:00:00Z"), {}, LATER, True),
        (asked_by("ann", "/keval deadbeef"), {}, "The head is c0ffee012345 now, and not deadbeef.", True),
        (asked_by("ann", "/keval"), {"pull": pull_request("eve/tarn")}, FORK, True),
    ],
    ids=["writer", "named", "other word", "no pull request", "reader", "pushed later", "other head", "fork"],
)
def test_a_comment_fixes_the_commit_if_a_writer_asks_for_one_that_is_not_of_a_fork(
    project: Project, *, host: CodeHost, event: dict[str, Any], changes: dict[str, Any], told: str, said: bool
) -> None:
    for name, value in changes.items():
        setattr(host, name, value)

    done = project.keval("ci", "head", env=github_job(project.root, host, event, "issue_comment"))

    assert 0 == done.code, done.stderr
    assert {"sha": "" if told else SHA, "comment": str(not told).lower()} == outputs(project)
    assert told in done.stdout
    assert ([] if not said else [True]) == [told in each for each in host.of()]


@pytest.mark.parametrize(
    ("repository", "actor", "comment"),
    [("ours/tarn", "ann", "true"), ("eve/tarn", "eve", "false"), ("ours/tarn", "dependabot[bot]", "false")],
)
def test_a_pull_request_of_a_fork_gets_no_comment(
    project: Project, host: CodeHost, repository: str, actor: str, comment: str
) -> None:
    env = github_job(project.root, host, {"pull_request": pull_request(repository)}) | {"GITHUB_ACTOR": actor}

    assert 0 == project.keval("ci", "head", env=env).code
    assert {"sha": SHA, "comment": comment} == outputs(project)


def test_events_that_give_secrets_to_code_of_forks_are_refused(project: Project, host: CodeHost) -> None:
    env = github_job(project.root, host, {"pull_request": pull_request("eve/tarn")}, "pull_request_target")

    done = project.keval("ci", "head", env=env)

    assert (2, "error: the event pull_request_target gives secrets to the code of forks; use pull_request\n") == (
        done.code,
        done.stderr,
    )


def test_a_run_tells_what_failed_at_its_lines_and_is_commented_once(answered: Project, host: CodeHost) -> None:
    env = github_job(answered.root, host, {"pull_request": pull_request()})
    for number in range(100):  # a page of comments, one of which would have what keval says as its own
        host.say("eve", MARK if number == 3 else "nice")

    ran = answered.keval("ci", "run", "--repetitions", "1", env=env)
    first = answered.keval("ci", "comment", env=env)
    # That of the job is another one, where a comment asked for it.
    again = answered.keval("ci", "comment", "--commit", "f00d" * 10, env=env)

    assert 1 == ran.code, ran.stderr
    gate, expected = [line for line in ran.stdout.splitlines() if line.startswith("::error")]
    assert gate.startswith("::error file=eval.yaml,line=6,col=5,title=keval::basic/contains >= 0.9 failed: 0.50, low")
    assert expected == (
        "::error file=questions.jsonl,line=2,title=keval::host, answers baseline, repetition 1: expected: it contains"
        " 'tarn'; answer: @all: 100 %25 sure"
    )
    # What is printed of answers commands nothing.
    stopped = re.search(r"^::stop-commands::(\w+)\n.*@all.*^::\1::\n", ran.stdout, re.MULTILINE | re.DOTALL)
    assert stopped is not None
    (junit,) = answered.root.glob("results/*/*/export/junit/junit.xml")
    assert str(junit.parents[2]) == outputs(answered)["run"]
    assert "## keval: a--b" in (answered.root / "summary.md").read_text(encoding="utf-8")
    assert ("written the comment of keval in pull request 7\n", "updated the comment of keval in pull request 7\n") == (
        first.stderr,
        again.stderr,
    )
    (comment,) = host.of()
    assert comment.startswith(f"{MARK}\n## keval: a--b\n")
    assert "**failed** | basic/contains" in comment
    assert comment.endswith("\nf00df00df00d · [the job](https://github.com/ours/tarn/actions/runs/5)")
    assert [MARK] == [each for each in host.of("eve") if each != "nice"]


def test_a_config_that_is_wrong_is_told_at_its_line(answered: Project, host: CodeHost) -> None:
    answered.write(eval_yaml=f"{CONFIG}  - 3")

    done = answered.keval("ci", "run", env=github_job(answered.root, host, {"pull_request": pull_request()}))

    assert 2 == done.code
    assert "::error file=eval.yaml,line=6,col=5,title=keval::expected a gate, such as `basic/contains >= 0.8`" in (
        done.stdout
    )


def test_gitlab_has_the_same_comment_as_a_note_by_a_token_of_the_project(answered: Project, host: CodeHost) -> None:
    host.me = "keval-token"
    env = {"GITLAB_CI": "true", "CI_API_V4_URL": host.url, "CI_PROJECT_ID": "4", "CI_MERGE_REQUEST_IID": "7"}
    env |= {"KEVAL_GITLAB_TOKEN": "secret", "CI_COMMIT_SHA": SHA, "CI_JOB_URL": "https://gitlab.example/1"}

    ran = answered.keval("ci", "run", env=env)
    told = [answered.keval("ci", "comment", env=env).stderr.split()[0] for _ in range(2)]

    assert (1, False, ["written", "updated"]) == (ran.code, "::" in ran.stdout, told)
    (note,) = host.of()
    assert note.endswith("· [the job](https://gitlab.example/1)")


@pytest.mark.parametrize(
    ("changes", "refused", "told"),
    [
        ({}, "/comments", "GitHub refused GET /issues/7/comments?per_page=100&page=1: HTTP 403; give the job"),
        ({"GITHUB_TOKEN": ""}, "-", "keval has no token; set GITHUB_TOKEN to ${{ github.token }}"),
        ({"GITHUB_API_URL": "http://127.0.0.1:9"}, "-", "GitHub gave no answer: ConnectError"),
        ({"GITHUB_ACTIONS": ""}, "-", "this job is about no pull request that a comment could be written to"),
        ({"GITHUB_ACTIONS": "", "GITLAB_CI": "1", "CI_MERGE_REQUEST_IID": "7"}, "-", "set KEVAL_GITLAB_TOKEN"),
    ],
    ids=["forbidden", "no token", "not reached", "no job", "no token of gitlab"],
)
def test_what_keeps_a_comment_from_being_written_is_told(
    answered: Project, host: CodeHost, changes: dict[str, str], refused: str, told: str
) -> None:
    host.refused = refused
    assert 1 == answered.keval("run").code

    done = answered.keval(
        "ci", "comment", env=github_job(answered.root, host, {"pull_request": pull_request()}) | changes
    )

    assert (2, True) == (done.code, told in done.stderr), done.stderr


def test_a_job_outside_of_ci_has_no_head(project: Project) -> None:
    done = project.keval("ci", "head", env={"GITHUB_ACTIONS": None, "GITLAB_CI": None})

    assert (2, "error: this is no job of GitHub or GitLab\n") == (done.code, done.stderr)


def test_a_fork_without_secrets_and_recording_is_told_what_is_lacking(answered: Project, host: CodeHost) -> None:
    text = CONFIG.replace("{type: recorded, path: answers.jsonl}", "{type: openai, model: openai/gpt-4o-mini}")
    answered.write(eval_yaml=text)
    env: dict[str, str | None] = {**github_job(answered.root, host, {"pull_request": pull_request("eve/tarn")})}

    done = answered.keval("ci", "run", env=env | {"OPENAI_API_KEY": "sk-of-ours", "OPENAI_BASE_URL": None})

    assert (0, "") == (done.code, done.stdout)
    assert (
        "note: keval did not run: this pull request gets no OPENAI_API_KEY, as it is from a fork, and there is no"
        " recording in recording to replay; `keval record trim` makes one.\n"
    ) == done.stderr
    assert "keval did not run" in (answered.root / "summary.md").read_text(encoding="utf-8")


def test_a_fork_replays_the_recording_of_today_alone_where_others_are_held_against_their_base(
    answered: Project, host: CodeHost
) -> None:
    assert 1 == answered.keval("run", "--record").code
    assert 0 == answered.keval("record", "trim", "latest", "-o", "recording").code
    env = github_job(answered.root, host, {"pull_request": pull_request("eve/tarn")})

    done = answered.keval(
        "ci", "run", "eval.yaml", "--against", "origin/main...", "--changed-since=main", "--strict", env=env
    )

    # As the run that was recorded: what is about another commit has no effect.
    assert 1 == done.code, done.stdout + done.stderr
    assert "decided on replayed answers" in done.stdout


def test_asked_or_told_by_flags_it_writes_a_workflow_for_github(answered: Project) -> None:
    (answered.root / ".git").mkdir()
    answered.write(requirements_txt="")

    done = answered.keval("ci", "init", "--host", "github", "--on", "label")
    again = answered.keval("ci", "init", "--host", "github", "--on", "label")

    assert "wrote .github/workflows/keval.yaml\n" == done.stdout, done.stderr
    workflow = yaml.safe_load((answered.root / ".github/workflows/keval.yaml").read_text(encoding="utf-8"))
    assert {"name", True, "permissions", "jobs"} == workflow.keys()  # YAML 1.1 reads `on` as true
    assert {"pull_request", "issue_comment"} == workflow[True].keys()
    (job,) = workflow["jobs"].values()
    assert "labels.*.name, 'keval')" in job["if"]
    steps = [step for step in job["steps"] if "run" in step]
    assert ["Install", "Find the commit", "Set up", "Evaluate", "Comment"] == [step["name"] for step in steps]
    assert ["Find the commit", "Comment"] == [step["name"] for step in steps if "GITHUB_TOKEN" in step.get("env", {})]
    assert [["ci", "head"], ["ci", "run"], ["ci", "comment"]] == [*keval_commands(steps)]
    assert "keval.yaml exists already, and nothing is overwritten" in again.stderr


def keval_commands(steps: list[dict[str, Any]]) -> Iterator[list[str]]:
    """The commands of keval in the scripts, whose arguments it takes."""
    for line in (line for step in steps for line in step["run"].splitlines() if line.startswith("keval ")):
        _, *words, _ = [*shlex.split(line), ""]
        group = main.get_command(click.Context(main), words[0])
        assert isinstance(group, click.Group)
        group.commands[words[1]].make_context(words[1], words[2:])
        yield words[:2]


@pytest.mark.parametrize(("on", "rule"), [("every", {}), ("comment", {"when": "manual"})])
def test_it_writes_a_job_for_gitlab_beside_those_that_are_there(
    answered: Project, on: str, rule: dict[str, str]
) -> None:
    (answered.root / ".git").mkdir()

    # What is not said by flags is asked for.
    first = CliRunner().invoke(main, ["ci", "init"], input=f"gitlab\n{on}\n")
    beside = answered.keval("ci", "init", "--host", "gitlab", "--on", on)

    assert "  gitlab   a job for GitLab CI/CD\n> [github] gitlab\nWhen?\n" in first.stdout
    assert first.stdout.endswith("wrote .gitlab-ci.yml\n")
    assert "wrote .gitlab/keval.yml\n" == beside.stdout
    assert "note: add to .gitlab-ci.yml: include: {local: .gitlab/keval.yml}" in beside.stderr
    job = yaml.safe_load((answered.root / ".gitlab-ci.yml").read_text(encoding="utf-8"))["keval"]
    own = "$CI_MERGE_REQUEST_SOURCE_PROJECT_ID == $CI_PROJECT_ID"
    assert [{"if": f'$CI_PIPELINE_SOURCE == "merge_request_event" && {own}'} | rule] == job["rules"]
    assert "keval ci run eval.yaml || code=$?" in job["script"]
    assert {"junit": "results/*/*/export/junit/junit.xml"} == job["artifacts"]["reports"]


def test_a_job_of_a_folder_runs_there_with_the_secrets_of_its_config(answered: Project) -> None:
    (answered.root / ".git").mkdir()
    (answered.root / "evals").mkdir()
    for name in ("questions.jsonl", "answers.jsonl"):
        (answered.root / name).rename(answered.root / "evals" / name)
    unset: dict[str, str | None] = {"GITHUB_KEY": None, "OPENAI_API_KEY": None}
    judged = (
        "judge: {model: openai/gpt-4o-mini}\ncontexts: {docs: {type: stdio, command: serve, env: {A: '${GITHUB_KEY}'}}}"
        "\n"
        "conditions: {baseline: {}, with_docs: {contexts: [docs]}}"
    )
    (answered.root / "evals" / "eval.yaml").write_text(f"{CONFIG}{judged}\n", encoding="utf-8")

    done = answered.keval("ci", "init", "evals/eval.yaml", "--host", "github", "--on", "comment", env=unset)

    assert 0 == done.code, done.stderr
    workflow = yaml.safe_load((answered.root / ".github/workflows/keval-evals.yaml").read_text(encoding="utf-8"))
    job = workflow["jobs"]["evaluate"]
    assert {"GITHUB_KEY": "${{ secrets.KEVAL_GITHUB_KEY }}", "OPENAI_API_KEY": "${{ secrets.OPENAI_API_KEY }}"} == (
        job["env"]
    )
    assert ({"run": {"working-directory": "evals"}}, {"issue_comment"}) == (job["defaults"], workflow[True].keys())
    assert "note: it reads the secrets GITHUB_KEY, OPENAI_API_KEY; set them in the settings" in done.stderr
    assert "note: add to it what installs what servers and agents need" in done.stderr


@pytest.mark.parametrize(
    ("origin", "wanted", "outside"),
    [
        (Origin(), "uv tool install keval", False),
        (Origin("wheels", "/srv/wheels"), "uv tool install --find-links /srv/wheels keval", True),
        (Origin("folder", "/srv/keval", editable=True), "uv tool install /srv/keval", True),
        (Origin("folder", "{root}/vendor/keval"), "uv tool install vendor/keval", False),
    ],
    ids=["index", "wheels", "folder", "vendored"],
)
def test_the_job_installs_keval_from_where_it_came(
    answered: Project, monkeypatch: pytest.MonkeyPatch, origin: Origin, wanted: str, outside: bool
) -> None:
    here = Installation.here_and_now()
    origin = attrs.evolve(origin, place=origin.place.format(root=answered.root))
    monkeypatch.setattr(Installation, "here_and_now", lambda: attrs.evolve(here, origin=origin))
    target = "{type: python, target: 'mine.py:answer'}"
    answered.write(requirements_txt="", mine_py="def answer(question): return '7443'\n")
    answered.write(eval_yaml=CONFIG.replace("{type: recorded, path: answers.jsonl}", target))

    done = answered.keval("ci", "init", "--host", "github", "--on", "every")

    # A function of the user's runs in keval's own process, so what it requires has to be there.
    wanted += " --with-requirements requirements.txt"
    assert f"{wanted}\n" in (answered.root / ".github/workflows/keval.yaml").read_text(encoding="utf-8")
    assert f"note: it installs keval by `{wanted}`" in done.stderr
    assert outside == ("that folder is on this machine" in done.stderr)


def test_a_keval_from_github_is_used_as_an_action(answered: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    here = Installation.here_and_now()
    origin = Origin("git", "https://github.com/ours/keval", "main", "c0ffee")
    monkeypatch.setattr(Installation, "here_and_now", lambda: attrs.evolve(here, origin=origin))

    answered.keval("ci", "init", "--host", "github", "--on", "every")

    workflow = yaml.safe_load((answered.root / ".github/workflows/keval.yaml").read_text(encoding="utf-8"))
    assert [{"uses": "ours/keval@c0ffee", "with": {"config": "eval.yaml"}}] == workflow["jobs"]["evaluate"]["steps"]


def test_steps_of_the_action_and_of_the_workflow_are_the_same(answered: Project) -> None:
    answered.keval("ci", "init", "--host", "github", "--on", "every")

    workflow = yaml.safe_load((answered.root / ".github/workflows/keval.yaml").read_text(encoding="utf-8"))
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    both = workflow["jobs"]["evaluate"]["steps"], action["runs"]["steps"]
    used, used_by_action = ({step["uses"] for step in steps if "uses" in step} for steps in both)
    assert used == used_by_action
    assert [] == [each for each in used if not re.fullmatch(r"[\w-]+/[\w-]+@v\d+", each)]
    calls, calls_of_action = ([step["run"].split()[2] for step in steps if "keval ci" in step.get("run", "")]
                              for steps in both)  # fmt: skip
    assert ["head", "run", "comment"] == calls == calls_of_action


@pytest.mark.parametrize("as_action", [False, True])
def test_a_job_may_hold_a_pull_request_against_its_base(
    answered: Project, monkeypatch: pytest.MonkeyPatch, *, as_action: bool
) -> None:
    if as_action:
        here, origin = Installation.here_and_now(), Origin("git", "https://github.com/ours/keval", "main", "c0ffee")
        monkeypatch.setattr(Installation, "here_and_now", lambda: attrs.evolve(here, origin=origin))
    answered.keval("ci", "init", "--host", "github", "--on", "every", "--against")
    answered.keval("ci", "init", "--host", "gitlab", "--on", "every", "--against")

    workflow = yaml.safe_load((answered.root / ".github/workflows/keval.yaml").read_text(encoding="utf-8"))
    base = "${{ github.base_ref || github.event.repository.default_branch }}"
    steps = workflow["jobs"]["evaluate"]["steps"]
    if as_action:
        assert f"--against origin/{base}..." == steps[0]["with"]["args"]
    else:
        (step,) = (step for step in steps if step.get("name") == "Evaluate")
        assert ({"BASE": base}, 'keval ci run eval.yaml --against "origin/$BASE..."') == (step["env"], step["run"])
    job = yaml.safe_load((answered.root / ".gitlab-ci.yml").read_text(encoding="utf-8"))["keval"]
    assert {"GIT_DEPTH": 0} == job["variables"]
    assert "keval ci run eval.yaml --against $CI_MERGE_REQUEST_DIFF_BASE_SHA || code=$?" in job["script"]


def test_a_job_that_runs_nothing_reports_nothing(answered: Project, host: CodeHost) -> None:
    git(answered.root, "init", "--quiet", "--initial-branch=main")
    git(answered.root, "add", "--all")
    git(answered.root, "commit", "--quiet", "--message", "first")

    done = answered.keval("ci", "run", "--changed-since", "main", env=github_job(answered.root, host, {}))

    assert (0, False) == (done.code, (answered.root / "outputs.txt").exists())
    assert "note: keval did not run: what it would run has not changed." in done.stderr


def test_a_badge_says_an_effect_or_that_it_is_undecided(project: Project) -> None:
    lines = [f'{{"id": "q{n}", "question": "Which {n}?", "answer": "yes"}}' for n in range(20)]
    said = [
        f'{{"id": "q{n}", "response": "{"yes" if better or n == 0 else "no"}", "condition": "{condition}"}}'
        for n in range(20)
        for condition, better in (("baseline", False), ("docs", n < 18), ("few", n == 1))
    ]
    project.write(questions_jsonl="\n".join(lines), answers_jsonl="\n".join(said))
    conditions = "conditions: {baseline: {}, docs: {}, few: {}}\n"
    project.write(eval_yaml=CONFIG[: CONFIG.index("gates")] + conditions)
    assert 0 == project.keval("run").code

    sure, few, picture = (
        project.keval("badge", "latest", *more)
        for more in ([], ["--condition", "few"], ["--metric", "basic/contains", "--svg"])
    )
    none = project.keval("badge", "latest", "--metric", "basic/contain")

    assert {
        "schemaVersion": 1,
        "label": "docs: contains",
        "message": "+0.85 [0.55, 1.00], n=20",
        "color": "brightgreen",
    } == sure.data
    assert ("few: contains", "undecided, n=20", "lightgrey") == tuple(
        few.data[key] for key in ("label", "message", "color")
    )
    drawn = ElementTree.fromstring(picture.stdout)
    texts = [each.text for each in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert ["docs: contains", sure.data["message"]] == texts
    assert drawn.get("aria-label") == ": ".join(map(str, texts))
    assert (2, True) == (none.code, "no such figure; did you mean 'basic/contains'?" in none.stderr)
