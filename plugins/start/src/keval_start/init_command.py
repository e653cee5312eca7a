"""`keval init`: writes an evaluation, from what the user says to a config that `keval run` can run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click

from keval import KevalError
from keval.cli.help import SectionedCommand
from keval.cli.messages import tell
from keval.cli.session import run_to_end
from keval.config.variables import filling
from keval.errors import ConfigError, Problem
from keval.seams.installation import Installation

if TYPE_CHECKING:
    from keval.plan.plan import Plan
    from keval_start.project import Draft, Project
    from keval_start.workplace import Workplace

_RESULTS = re.compile(r"^\s*(/|\*\*/)?results(/\*{0,2})?\s*$", re.MULTILINE)
"""A line of a .gitignore that leaves out results."""


@click.command("init", cls=SectionedCommand)
@click.argument("folder", metavar="[DIR]", type=click.Path(path_type=Path, file_okay=False), default=Path())
@click.option(
    "--server", multiple=True, metavar="TARGET", help="Evaluate this MCP server: a command or a URL. Repeatable."
)
@click.option(
    "--from",
    "from_file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Evaluate the servers of this mcp.json, of Claude Code, VS Code or Cursor; or write out the evaluation of"
    " another tool, such as evals.json.",
)
@click.option(
    "--env", multiple=True, metavar="NAME[=VALUE]", help="A variable of the server's environment. Repeatable."
)
@click.option("--header", multiple=True, metavar="'NAME: VALUE'", help="A header for the server's URL. Repeatable.")
@click.option("--only", multiple=True, metavar="NAME", help="Only this server of the file. Repeatable.")
@click.option(
    "--agent",
    multiple=True,
    metavar="AGENT",
    help="Evaluate this agent: python:FILE.py:FUNCTION, http:URL or 'command:PROGRAM {question}'; or installed ones,"
    " such as gadk and ms, against each other. Repeatable.",
)
@click.option(
    "--answers",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help='Evaluate answers that exist: JSON lines such as {"id": "q1", "response": "…"}. Repeatable.',
)
@click.option("-m", "--model", metavar="PROVIDER/NAME", help="Of agents and judge.  [default: a simulated model]")
@click.option(
    "--questions",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="The questions, with golden answers.  [default: three samples to replace]",
)
@click.option("--question-key", metavar="KEY", help="Under which key a record of that file has the question.")
@click.option("--answer-key", metavar="KEY", help="Under which key it has the golden answer.")
@click.option(
    "--generate",
    type=click.IntRange(min=1),
    is_flag=False,
    flag_value=10,
    metavar="[N]",
    help="Let the model make N questions of what the server returns.  [default: 10]",
)
@click.option("--allow-writes", is_flag=True, help="For that, call also tools that do not say that they only read.")
def init(*, folder: Path, **flags: Any) -> None:
    """Write an evaluation into DIR: a config, and questions.

    Asks what is to be evaluated, unless flags say it; answers may be piped. Servers are started once, to list their
    tools. No file is overwritten.
    """
    from keval.config.load import load
    from keval.plan.build import make_plan
    from keval_start.agents import tried
    from keval_start.answers import Flags, ask  # it imports what `--help` does not need
    from keval_start.project import CONFIG, SCHEMA
    from keval_start.questions import FILE
    from keval_start.variables import Variables

    given, variables = Flags(**flags), Variables()
    with _told_how_it_ended():
        workplace = _workplace(folder, asks=not given.given)
        if given.from_file:
            from keval_start.other_formats import evaluation_in, write_config

            if evaluation := evaluation_in(given.from_file):
                config = workplace.shown(write_config(evaluation, flags, workplace))
                click.echo(f"wrote {config}")
                call("validate", config)
                return
        dataset = [FILE] if given.given and not (given.questions or given.answers) else []
        new = [workplace.folder / name for name in (CONFIG, *dataset, SCHEMA)]
        # Before anything is asked, so that no answers are given in vain.
        workplace.check_absent(*new)
        # Servers are started there.
        with workplace.made():
            draft = given.read(workplace, variables) if given.given else ask(workplace, variables)
            agents = run_to_end(tried(draft.agents, draft.model, workplace, served=bool(draft.listed)))
            about = draft.questions.about([tool for each in draft.listed for tool in each.tools])
            draft = attrs.evolve(draft, agents=agents, questions=about)
            project = draft.project(workplace)
            # The config has references in place of the values that a client's file had.
            with project.written(), filling(variables.known):
                plan = make_plan(load(project.config))
                waiting = bool(draft.questions.generate) and _generate(draft, project)
                if not waiting:
                    call("validate", workplace.shown(project.config))
    _tell(draft, project, plan, waiting=waiting)


@contextmanager
def _told_how_it_ended() -> Iterator[None]:
    """Say that nothing was written where somebody interrupts, and what to do where the input ends too early."""
    try:
        yield
    except (click.Abort, KeyboardInterrupt) as error:
        from keval_start.answers import WHAT_TO_EVALUATE

        # click has one error for both.
        if isinstance(error.__context__ if isinstance(error, click.Abort) else error, KeyboardInterrupt):
            tell("\ninterrupted; nothing was written")  # the terminal has written ^C
            raise SystemExit(130) from error
        told = "the input ended before all was answered; answer every question, or say by flags what to evaluate"
        raise ConfigError([Problem("", f"{told}: {WHAT_TO_EVALUATE}")]) from error


def _workplace(folder: Path, *, asks: bool) -> Workplace:
    """Return where to write, which is not in keval's own repository."""
    from keval_start.workplace import Workplace

    found = Workplace.of(folder)
    if found.in_ours and asks:
        from keval_start.answers import ask_folder

        return ask_folder(found)
    if found.in_ours:
        told = "it is in the repository of keval itself; name a folder outside of it, as in `keval init ../mine …`"
        raise ConfigError([Problem(f"DIR {found.shown(found.folder)}", told)])
    return found


def call(name: str, *args: str) -> None:
    """Call another command of keval, within one."""
    root = click.get_current_context().find_root()
    group: Any = root.command
    command: click.Command = group.get_command(root, name)
    with command.make_context(command.name, list(args), parent=root) as context:
        command.invoke(context)


def _generate(draft: Draft, project: Project) -> bool:
    """Run `keval generate` for each server, which makes the file of the questions anew. If it makes none, samples stay.

    Return whether it made any. It exits with 3 if it made fewer questions than it was asked for.
    """
    from keval_start.questions import FILE

    file, config = project.workplace.folder / FILE, project.workplace.shown(project.config)
    # `keval generate` adds to a file, and the samples are to go.
    file.unlink()
    more = ["--allow-writes"] if draft.questions.allow_writes else []
    share = -(-draft.questions.generate // len(draft.listed))
    for each in draft.listed:
        try:
            call("generate", config, "--context", each.server.label, "-n", str(share), *more)
        except SystemExit as ended:
            if ended.code not in (0, 3):
                raise
        except KevalError as error:
            tell(f"note: {error}")
    if not (made := file.exists()):
        tell("note: no question could be made, so three samples are written")
        file.write_text(project.files[file], encoding="utf-8")
    return made


def _tell(draft: Draft, project: Project, plan: Plan, *, waiting: bool) -> None:
    """Print what was found and written, what is left to do, and the command to run next."""
    from keval.dataset.samples import Samples
    from keval.records.trial import Sample
    from keval_analysis.estimate import ASSUMED, estimate
    from keval_analysis.plan_review import OWN_QUESTION
    from keval_analysis.question_review import QuestionFile
    from keval_report.terminal.planning import estimated
    from keval_start.models import REAL_MODELS
    from keval_start.project import CONFIG, SCHEMA
    from keval_start.questions import FILE

    workplace = project.workplace
    file = workplace.folder / FILE
    about = {
        CONFIG: "what is asked, of whom, and how it is scored",
        FILE: "questions that wait for you to accept them" if waiting else "three samples: replace them by your own",
        SCHEMA: "lets editors check and complete the config",
        ".gitignore": "leaves out results",
    }
    shown = {workplace.shown(path): about[path.name] for path in project.files}
    width = max(map(len, shown))
    for path, told in shown.items():
        click.echo(f"wrote {path:<{width}}  {told}")
    ignored = workplace.folder / ".gitignore"
    if ignored not in project.files and not _RESULTS.search(ignored.read_text(encoding="utf-8", errors="replace")):
        tell("note: add results/ to .gitignore, which is there already")
    for name, value in draft.variables.values.items():
        if value is not None:
            tell(f"note: the value of {name} was not copied into the config; export {name}=… before you run it")
    if not draft.model.key_is_set:
        tell(f"note: export {draft.model.key}=… before you run it; keval models {draft.model.name} checks it")
    go = f"cd {shlex.quote(workplace.shown(workplace.folder))} && " if workplace.folder != workplace.here else ""
    keval = Installation.here_and_now().call(workplace.folder)
    if waiting:  # a plan leaves them out
        entries = QuestionFile.of(plan.evaluation).waiting()
        plan = attrs.evolve(plan, samples=Samples.of(Sample(each.id, each.question) for each in entries))
    click.echo(f"estimate of a run: {estimated(estimate(plan))}\n      assumed: {ASSUMED}")
    if draft.model.simulated and "anthropic" not in draft.agents.types:
        when = "once you have accepted questions, " if waiting else ""
        click.echo(f"{when}with a real model for agents and judge, of Ollama, a server of yours, or a vendor:")
        for real in REAL_MODELS:
            click.echo(f"      {go}{real.format(run=f'{keval} run {CONFIG}')}")
    if draft.listed and draft.questions.records and not waiting:  # no model can answer these samples
        click.echo(f"first write questions into {workplace.shown(file)} in place of the samples, a line each:")
        click.echo(f"      {OWN_QUESTION}")
    then = f"review {CONFIG} --questions" if waiting else f"run {CONFIG}"
    click.echo(f"next  {go}{keval} {then}")
