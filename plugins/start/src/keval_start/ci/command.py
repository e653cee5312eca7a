"""`keval ci`: what a job of CI calls, and what writes such a job."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import click

from keval.cli.config_argument import config_argument
from keval.cli.messages import foreign, tell
from keval.cli.options import results_option
from keval.errors import ConfigError, KevalError

if TYPE_CHECKING:
    from keval import Run
    from keval_analysis.findings.summary import Summary

_RECORDING = "What a job without secrets replays.  [default: recording]"
_REPORTED = (0, 1, 3)
"""Exit codes of `keval run` after which there is a report."""


@click.group("ci")
def command() -> None:
    """Write a job for pull requests, and what such jobs call. `keval ci init` writes one."""


@command.command("init")
@config_argument
@click.option("--host", type=click.Choice(["github", "gitlab"]), help="Write a workflow for GitHub, or a GitLab job.")
@click.option(
    "--on",
    type=click.Choice(["every", "label", "comment"]),
    help="Evaluate every pull request, those with the label keval, or when a comment says /keval.",
)
@click.option("--against", is_flag=True, help="Hold conditions against what they are without the pull request.")
def init_command(*, config: Path, host: str | None, on: str | None, against: bool) -> None:
    """Write a workflow for GitHub, or a job for GitLab, that evaluates CONFIG for pull requests.

    Asks which, and when, unless flags say it. No file is overwritten.
    """
    from keval_start.ci.pipeline import HOSTS, TRIGGERS, write

    guessed = "gitlab" if Path(".gitlab-ci.yml").exists() else "github"
    host, on = host or _asked("Where?", HOSTS, guessed), on or _asked("When?", TRIGGERS, "every")
    write(config, host, on, against=against)


def _asked(title: str, choices: dict[str, str], default: str) -> str:
    click.echo("\n".join([title, *(f"  {name:<9}{told}" for name, told in choices.items())]))
    answer: str = click.prompt(
        ">", default=default, show_choices=False, prompt_suffix=" ", type=click.Choice([*choices])
    )
    return answer


@command.command("head")
def head_command() -> None:
    """Find the commit that a job on GitHub is to evaluate; write it, and whether to comment, as outputs of a step.

    A comment `/keval` counts if it is of somebody who may write, and nothing was pushed after it; `/keval SHA` names
    the commit. No code of forks is run by it.
    """
    from keval_start.ci.api import Api
    from keval_start.ci.job import Job, head_of

    job = Job.here()
    found = head_of(job, api := Api.here(job.host))
    if found.refused:
        click.echo(f"::notice title=keval::{found.refused}")
        if found.told and job.number is not None:
            api.say(job.number, "<!-- keval /keval -->", found.refused)
    comment = bool(found.sha and job.number is not None and not job.keyless)
    _output(sha=found.sha, comment=str(comment).lower())


@command.command("run", context_settings={"ignore_unknown_options": True})
@config_argument
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@click.option("--recording", type=click.Path(path_type=Path), default=Path("recording"), help=_RECORDING)
@results_option
def run_command(*, config: Path, args: Sequence[str], recording: Path, output_dir: Path) -> None:
    """Run CONFIG as `keval run` does with ARGS, and write what hosts show: a summary, JUnit, and errors at their lines.

    For a pull request of a fork, which gets no secrets, it replays a recording; without one it says so, unless it
    needs none. Exits as `keval run` does.
    """
    from keval.store.run import list_runs
    from keval_start.ci.annotations import annotated
    from keval_start.ci.job import Job
    from keval_start.ci.pipeline import drop_secrets
    from keval_start.init_command import call

    job, more, before = Job.here(), list[str](), list_runs(output_dir)[-1:]
    try:
        if job.keyless:
            lacking = drop_secrets(config)
            if (recording / "manifest.json").is_file():
                more = ["--replay", str(recording)]
            elif lacking:
                told = f"this pull request gets no {', '.join(lacking)}, as {job.keyless}"
                remedy = f"there is no recording in {recording} to replay; `keval record trim` makes one"
                return _summarise(f"keval did not run: {told}, and {remedy}.")
        with _obeyed_nothing(job.host):
            call("run", str(config), *args, *more, "-o", str(output_dir))
    except ConfigError as error:
        if job.host == "GitHub":
            click.echo("\n".join(annotated(error.problems)))
        raise
    except SystemExit as ended:
        if ended.code in _REPORTED and list_runs(output_dir)[-1:] == before:
            _summarise("keval did not run: what it would run has not changed.")
        elif ended.code in _REPORTED:
            _report(job.host, output_dir)
        raise


@contextmanager
def _obeyed_nothing(host: str) -> Iterator[None]:
    """Keep GitHub's runner from obeying commands in what is printed for a block, such as answers of a model."""
    mark = secrets.token_hex() if host == "GitHub" else ""
    if mark:
        click.echo(f"::stop-commands::{mark}")
    try:
        yield
    finally:
        if mark:
            click.echo(f"::{mark}::")


def _report(host: str, output_dir: Path) -> None:
    """Write what hosts show of the latest run."""
    from keval.seams import registry
    from keval_start.ci.annotations import annotated, problems_of

    run, summary, text = _markdown("latest", output_dir)
    if host == "GitHub":
        click.echo(foreign("\n".join(annotated(problems_of(run, summary)))))
    junit = registry.load(registry.find("keval.exporters", "junit"))()
    junit.export(run, run.path / "export" / "junit")
    _summarise(text)
    _output(run=str(run.path.resolve()))


def _markdown(name: str, output_dir: Path) -> tuple[Run, Summary, str]:
    from keval.store.run import find_run
    from keval_report.markdown import markdown
    from keval_report.report import Report

    run = find_run(name, output_dir)
    # With the gates of flags, which only that has.
    summary = run.written_summary() or run.summary()
    return run, summary, markdown(Report(run, summary))


def _summarise(text: str) -> None:
    """Add a text to the summary that GitHub shows of a job; elsewhere, print a short one."""
    if path := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")
    if "\n" not in text:
        tell(f"note: {text}")


def _output(**values: str) -> None:
    if path := os.environ.get("GITHUB_OUTPUT"):
        with Path(path).open("a", encoding="utf-8") as file:
            file.writelines(f"{name}={value}\n" for name, value in values.items())


@command.command("comment")
@click.argument("run", default="latest")
@click.option("--commit", metavar="SHA", help="The commit that was evaluated.  [default: that of the job]")
@results_option
def comment_command(*, run: str, commit: str | None, output_dir: Path) -> None:
    """Write the report of RUN into the pull request that the job is about: one comment an evaluation, which is updated.

    The token is GITHUB_TOKEN, or on GitLab KEVAL_GITLAB_TOKEN.
    """
    from keval_start.ci.api import Api
    from keval_start.ci.job import Job

    job = Job.here()
    if job.number is None:
        raise KevalError("this job is about no pull request that a comment could be written to")
    api = Api.here(job.host)
    found, _, text = _markdown(run, output_dir)
    # No hyphen, as two would end the mark.
    mark = f"<!-- keval {quote(found.manifest.evaluation, safe='').replace('-', '%2D')} -->"
    done = api.say(job.number, mark, f"{text}\n{(commit or job.sha)[:12]} · [the job]({job.page})")
    tell(f"{done} the comment of keval in pull request {job.number}")
