"""`keval init`: writes an evaluation, from what the user says to a config that `keval run` can run."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click

from keval import KevalError
from keval.cli.messages import foreign, tell
from keval.cli.session import run_to_end
from keval.config.variables import filling
from keval.errors import ConfigError, Problem
from keval.records.formats import counted
from keval.seams.installation import Installation

if TYPE_CHECKING:
    from keval_start.answers import Answers
    from keval_start.project import Draft, Project
    from keval_start.variables import Variables
    from keval_start.workplace import Workplace


@click.command("init")
@click.argument("folder", metavar="[DIR]", type=click.Path(path_type=Path, file_okay=False), default=Path())
@click.option(
    "--server", multiple=True, metavar="TARGET", help="Evaluate this MCP server: a command or a URL. Repeatable."
)
@click.option(
    "--from",
    "from_file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Evaluate the servers of this mcp.json, of Claude Code, VS Code or Cursor.",
)
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
def init(*, folder: Path, **flags: Any) -> None:
    """Write an evaluation into DIR: a config, questions, and a workflow for CI.

    Asks what is to be evaluated, unless flags say it; answers may be piped. Servers are started once, to list their
    tools. No file is overwritten.
    """
    from keval_start.answers import Flags, ask  # it imports what `--help` does not need
    from keval_start.project import CONFIG, SCHEMA
    from keval_start.questions import FILE
    from keval_start.variables import Variables

    given, variables = Flags(**flags), Variables()
    with _all_answered():
        workplace = _workplace(folder, asks=not given.given)
    dataset = [FILE] if given.given and not (given.questions or given.answers) else []
    new = [workplace.folder / name for name in (CONFIG, *dataset, SCHEMA)]
    # Before anything is asked, so that no answers are given in vain.
    workplace.check_absent(*new, workplace.workflow)
    with _all_answered():
        answers = given.read(workplace, variables) if given.given else ask(workplace, variables)
    if variables.unset:
        told = "set in the environment what servers are started with"
        raise ConfigError([Problem(f"${{{name}}}", f"{told}: export {name}=…") for name in variables.unset])
    with workplace.made():
        draft = run_to_end(_brought_up(answers, workplace, variables))
        project = draft.project(workplace)
        # The config has references in place of the values that a client's file had.
        with project.written(), filling(variables.known):
            _call("validate", workplace.shown(project.config))
            if draft.questions.generate:
                _generate(draft, project)
    _tell(draft, project)


@contextmanager
def _all_answered() -> Iterator[None]:
    """Say what else to do where the input ends before all was answered, as without a terminal."""
    try:
        yield
    except click.Abort as error:
        from keval_start.answers import WHAT_TO_EVALUATE

        told = "the input ended before all was answered; answer every question, or say by flags what to evaluate"
        raise ConfigError([Problem("", f"{told}: {WHAT_TO_EVALUATE}")]) from error


def _workplace(folder: Path, *, asks: bool) -> Workplace:
    """Return where to write, which is not in keval's own repository."""
    from keval_start.workplace import Workplace

    found = Workplace.of(folder)
    if not found.in_ours:
        return found
    if not asks:
        told = (
            "it is in the repository of keval itself; name a folder outside of it, as in `keval init ../evaluation …`"
        )
        raise ConfigError([Problem(f"DIR {found.shown(found.folder)}", told)])
    from keval_start.answers import ask_folder

    return ask_folder(found)


async def _brought_up(answers: Answers, workplace: Workplace, variables: Variables) -> Draft:
    """Start the servers and make the user's own agents ready, to see that they are there."""
    from keval_start.agents import tried
    from keval_start.project import Draft
    from keval_start.questions import sample_questions
    from keval_start.servers import listed_servers

    listed = await listed_servers(answers.servers, workplace, variables)
    agents = await tried(answers.agents, answers.model, workplace, served=bool(listed))
    samples = sample_questions([tool for each in listed for tool in each.tools])
    questions = answers.questions or samples
    if questions.generate:
        questions = attrs.evolve(questions, records=samples.records)
    return Draft(answers.goal, agents, listed, answers.model, questions, variables)


def _call(name: str, *args: str) -> None:
    """Call another command of keval."""
    root = click.get_current_context().find_root()
    group: Any = root.command
    command: click.Command = group.get_command(root, name)
    with command.make_context(command.name, list(args), parent=root) as context:
        command.invoke(context)


def _generate(draft: Draft, project: Project) -> None:
    """Run `keval generate` for each server, which makes the file of the questions anew. If it makes none, samples stay.

    It exits with 3 if it made fewer questions than it was asked for.
    """
    from keval_start.questions import FILE

    file, config = project.workplace.folder / FILE, project.workplace.shown(project.config)
    # `keval generate` adds to a file, and the samples are to go.
    file.unlink()
    share = -(-draft.questions.generate // len(draft.listed))
    for each in draft.listed:
        try:
            _call("generate", config, "--context", each.server.label, "-n", str(share))
        except SystemExit as ended:
            if ended.code not in (0, 3):
                raise
        except KevalError as error:
            tell(f"note: {error}")
    if not file.exists():
        tell("note: no question could be made, so three samples are written")
        file.write_text(project.files[file], encoding="utf-8")


def _tell(draft: Draft, project: Project) -> None:
    """Print what was found and written, what is left to do, and the command to run next."""
    from keval_start.project import CONFIG, SCHEMA
    from keval_start.questions import FILE

    workplace = project.workplace
    file = workplace.folder / FILE
    waiting = draft.questions.generate and file.read_text(encoding="utf-8") != project.files[file]
    for each in draft.listed:
        click.echo(foreign(f"{each.server.label} has {counted(len(each.tools), 'tool')}: {', '.join(each.tools)}"))
        for note in each.server.notes:
            tell(f"note: {note}")
    about = {
        CONFIG: "what is asked, of whom, and how it is scored",
        FILE: "questions that wait for you to accept them" if waiting else "three samples: replace them by your own",
        SCHEMA: "lets editors check and complete the config",
        ".gitignore": "leaves out results",
        workplace.workflow.name: "runs it for every pull request",
    }
    shown = {workplace.shown(path): about[path.name] for path in project.files}
    width = max(map(len, shown))
    for path, told in shown.items():
        click.echo(f"wrote {path:<{width}}  {told}")
    if (workplace.folder / ".gitignore") not in project.files:
        tell("note: add results/ to .gitignore, which is there already")
    for name, value in draft.variables.values.items():
        if value is not None:
            tell(f"note: the value of {name} was not copied into the config; export {name}=… before you run it")
    if not draft.model.key_is_set:
        tell(f"note: export {draft.model.key}=… before you run it; keval models {draft.model.name} checks it")
    tell(f"note: the workflow installs keval by `{project.install}`{project.install_caution}")
    go = f"cd {shlex.quote(workplace.shown(workplace.folder))} && " if workplace.folder != workplace.here else ""
    then = f"review {CONFIG} --questions" if waiting else f"run {CONFIG}"
    click.echo(f"next  {go}{Installation.here_and_now().call(workplace.folder)} {then}")
