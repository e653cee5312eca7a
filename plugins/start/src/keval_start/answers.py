"""What the user said that is to be evaluated, by flags or when asked, read and tried: servers are started once.

At most five questions are asked, if a server needs no secret and its tools only read.
"""

from __future__ import annotations

import os
import re
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import attrs
import click

from keval import KevalError
from keval.cli.messages import foreign, tell
from keval.cli.session import run_to_end
from keval.plugin import ConfigError, Problem
from keval.records.formats import counted, time_span
from keval_start.agents import Agents, check_answers, installed_agents, read_agents, recorded_agents, tried
from keval_start.local_servers import servers_in
from keval_start.models import SIMULATED, ChosenModel, chosen_model, offered_models
from keval_start.project import Draft, Goal
from keval_start.questions import FILE, Questions, generated_questions, read_questions, sample_questions
from keval_start.servers import ListedServer, Server, listed_servers, read_servers, read_target, with_more
from keval_start.variables import Variables
from keval_start.workplace import Workplace

WHAT_TO_EVALUATE = "--server COMMAND|URL, --from mcp.json, --agent or --answers FILE"


@attrs.frozen
class Flags:
    """The flags of `keval init`."""

    server: tuple[str, ...] = ()
    from_file: Path | None = None
    only: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    header: tuple[str, ...] = ()
    agent: tuple[str, ...] = ()
    answers: tuple[Path, ...] = ()
    model: str | None = None
    questions: Path | None = None
    question_key: str | None = None
    answer_key: str | None = None
    generate: int | None = None
    allow_writes: bool = False

    @property
    def given(self) -> bool:
        """Whether any flag was given, so that nothing is asked."""
        return self != Flags()

    def read(self, workplace: Workplace, variables: Variables) -> Draft:
        """Return what the flags say, with the servers started once.

        Raises:
            ConfigError: with every problem.
            PreflightError: servers do not come up.
        """
        problems: list[Problem] = []
        model = ChosenModel(SIMULATED)
        with _collecting(problems, f"--model {self.model}"):
            model = chosen_model(self.model) if self.model is not None else model
        servers = self._servers(workplace, variables, problems)
        goal = self._goal(problems)
        agents = Agents({})
        with _collecting(problems, "--agent"):
            agents = agents_for(goal, self.agent, self.answers, model, workplace)
        questions = sample_questions()
        with _collecting(problems, "--questions" if self.generate is None else "--generate"):
            questions = self._questions(goal, workplace)
        told = "set in the environment what servers are started with"
        problems += [Problem(f"${{{name}}}", f"{told}: export {name}=…") for name in variables.unset]
        if problems:
            raise ConfigError(problems)
        return Draft(goal, agents, _started(servers, workplace, variables), model, questions, variables)

    def _servers(self, workplace: Workplace, variables: Variables, problems: list[Problem]) -> list[Server]:
        found: list[Server] = []
        if self.from_file is not None:
            with _collecting(problems, f"--from {self.from_file}"):
                found += read_servers(self.from_file, workplace, variables, self.only)
        elif self.only:
            problems.append(Problem("--only", "it chooses among the servers of a file; name that by --from"))
        if not self.server:
            told = "it is for a server; name that by --server"
            problems += [Problem(flag, told) for flag in ("--env", "--header") if getattr(self, flag[2:])]
        for text in self.server:
            with _collecting(problems, f"--server {text}"):
                named = read_target(text, workplace, variables)
                found += [with_more(each, (*self.env, *self.header), variables) for each in named]
        return found

    def _goal(self, problems: list[Problem]) -> Goal:
        served = bool(self.server or self.from_file)
        own = any(":" in text for text in self.agent)
        if self.answers:
            if served or self.agent:
                told = "answers that exist need no agent and no server; leave out --agent, --server and --from"
                problems.append(Problem("--answers", told))
            return "answers"
        if len(self.agent) > 1:
            return "agents"
        if own:
            return "agent"
        if not served:
            told = f"say what to evaluate: {WHAT_TO_EVALUATE}"
            if self.agent:
                told = "name a second agent to compare it with, or a server by --server"
            problems.append(Problem(f"--agent {self.agent[0]}" if self.agent else "", told))
        return "server"

    def _questions(self, goal: Goal, workplace: Workplace) -> Questions:
        if self.questions is not None and self.generate is not None:
            raise ValueError("questions come from a file or from `keval generate`; leave out --generate")
        if self.generate is not None:
            if not (self.server or self.from_file):
                raise ValueError("`keval generate` asks about a server; add --server, or name a file by --questions")
            return generated_questions(self.generate, allow_writes=self.allow_writes)
        if self.questions is not None:
            return read_questions(self.questions, workplace, self.question_key, self.answer_key)
        if goal == "answers":
            return questions_beside_answers(self.answers[0], workplace, self.question_key, self.answer_key)
        if self.question_key or self.answer_key:
            raise ValueError("--question-key and --answer-key are about a file; name it by --questions")
        return sample_questions()


@contextmanager
def _collecting(problems: list[Problem], place: str) -> Iterator[None]:
    """Add what is wrong with a flag to the problems."""
    try:
        yield
    except ConfigError as error:
        problems += error.problems
    except ValueError as error:
        problems.append(Problem(place, str(error)))


def _started(servers: Sequence[Server], workplace: Workplace, variables: Variables) -> Sequence[ListedServer]:
    """Start servers once, and say what each offers. Raises PreflightError: one does not come up."""
    begun = time.monotonic()
    listed = run_to_end(listed_servers(servers, workplace, variables))
    for each in listed:
        found = f"{each.server.label} has {counted(len(each.tools), 'tool')}: {', '.join(each.tools)}"
        click.echo(foreign(f"{found} (after {time_span(time.monotonic() - begun)})"))
        for note in each.server.notes:
            tell(f"note: {note}")
    return listed


def agents_for(
    goal: Goal, named: Sequence[str], answers: Sequence[Path], model: ChosenModel, workplace: Workplace
) -> Agents:
    """Return the agents of an evaluation. Raises ConfigError with every problem."""
    if goal == "answers":
        return recorded_agents(answers, workplace)
    found = read_agents(named or (model.loop,), model, workplace)
    if goal == "agent":
        return attrs.evolve(found, options={"plain": {"type": model.loop, "model": model.name}, **found.options})
    return found


def questions_beside_answers(
    answers: Path, workplace: Workplace, question_key: str | None, answer_key: str | None
) -> Questions:
    """Return the questions of a file that has them beside the answers. Raises ConfigError if it has none."""
    try:
        return read_questions(answers, workplace, question_key, answer_key)
    except ConfigError as error:
        told = f"name the file of the questions by --questions; {answers} itself has none ({error.problems[0]})"
        raise ConfigError([Problem("--answers", told)]) from error


T = TypeVar("T")

_GOALS: dict[Goal, str] = {
    "server": "an MCP server: are answers better with it?",
    "agents": "several agents, one against the other",
    "agent": "my own agent, against a plain tool loop",
    "answers": "answers that I have",
}
_GENERATED = 10


def ask(workplace: Workplace, variables: Variables) -> Draft:
    """Ask what is to be evaluated, and by what, and try each answer; a wrong one is asked for again with the reason."""
    _list("What do you want to evaluate?", dict.fromkeys(_GOALS.values(), ""))
    goal = _asked("A number", lambda text: [*_GOALS][_number(text, len(_GOALS)) - 1], "1")
    told = 'Which files? JSON lines such as {"id": "q1", "response": "…"}, a file for each agent'
    files: list[Path] = []
    if goal == "answers":
        files = _asked(told, lambda text: [_file(word, workplace) for word in shlex.split(text)])
    names = _agents(goal, workplace) if goal in ("agents", "agent") else []
    listed = _servers(goal, names, workplace, variables) if goal != "answers" else ()
    model = _model("Which model grades?" if goal == "answers" else "Which model?")
    questions = _questions(workplace, files, can_generate=bool(listed))
    if questions.generate and (writing := [tool for each in listed for tool in each.may_write]):
        click.echo(foreign(f"\n{', '.join(writing)}: no readOnlyHint, so calls may change something."))
        questions = attrs.evolve(questions, allow_writes=click.confirm("May keval call them to make questions?"))
    return Draft(goal, agents_for(goal, names, files, model, workplace), listed, model, questions, variables)


def ask_folder(ours: Workplace) -> Workplace:
    """Ask for a folder in place of one in keval's own repository."""

    def read(text: str) -> Workplace:
        found = Workplace.of(ours.here / Path(text).expanduser())
        if found.in_ours:
            raise ValueError("that is in the repository of keval, too; name a folder outside of it")
        return found

    return _asked(f"{ours.folder} is in the repository of keval itself. Which folder is for the evaluation?", read)


def _agents(goal: Goal, workplace: Workplace) -> list[str]:
    def read(text: str) -> list[str]:
        names = shlex.split(text.replace(",", " ")) if goal == "agents" else [text.strip("'\"")]
        if goal == "agents" and len(names) < 2:
            raise ValueError("name two agents or more, with spaces between them")
        if goal == "agent" and ":" not in text:
            raise ValueError("your own agent has a colon after its kind, as in python:my_agent.py:answer")
        _try(goal, names, workplace, served=False)
        return names

    if goal == "agent":
        return _asked("Which agent? python:FILE.py:FUNCTION, http:URL or command:PROGRAM {question}", read)
    frameworks = installed_agents()
    default = " ".join(name for name in ("gadk", "ms") if name in frameworks)
    return _asked(f"Which agents? Installed are {', '.join(frameworks)}", read, default or None)


def _try(goal: Goal, names: Sequence[str], workplace: Workplace, *, served: bool) -> None:
    """Make agents ready once, with a model that costs nothing. Raises as `tried` does."""
    model = ChosenModel(SIMULATED)
    run_to_end(tried(agents_for(goal, names, (), model, workplace), model, workplace, served=served))


_LACKING = "type it anew, or only what it lacks: NAME or NAME=VALUE for its environment, or a header as NAME: VALUE"


def _servers(goal: Goal, names: Sequence[str], workplace: Workplace, variables: Variables) -> Sequence[ListedServer]:
    there = servers_in(workplace.here) if goal == "server" else []
    last, more = "", dict[str, str]()

    def read(text: str) -> Sequence[ListedServer]:
        nonlocal last, more
        if last and (text in os.environ or re.match(r"[A-Za-z_]\w*=\S*$|[\w-]+: ", text)):
            more[re.split("[=:]", text)[0]] = text
        else:
            last, more = there[_number(text, len(there)) - 1] if text.isdigit() and there else text, {}
        if not last:
            return ()
        # Of its own, as an answer that is asked for again must leave no variables behind.
        needed = Variables()
        servers = [with_more(each, [*more.values()], needed) for each in read_target(last, workplace, needed)]
        for name in needed.unset:
            needed.values[name] = click.prompt(f"{name} (not shown, and not written)", hide_input=True)
        try:
            listed = _started(servers, workplace, needed)
        except KevalError as error:
            raise ValueError(f"{error}\n{_LACKING}") from error
        if names:
            _try(goal, names, workplace, served=True)
        variables.values.update(needed.values)
        return listed

    if goal != "server":
        return _asked("With which MCP server? A command, a URL, an mcp.json, or Enter for none", read, "")
    told = "Which server? A command such as uvx mcp-server-time, a URL, or the mcp.json of a client"
    if len(there) > 1:
        _list(f"{told}; or the number of one that is here", dict.fromkeys(there, ""))
        told = "A number"
    return _asked(told, read, next(iter(there), None))


def _questions(workplace: Workplace, answers: list[Path], *, can_generate: bool) -> Questions:
    there = workplace.folder / FILE

    def read(text: str) -> Questions:
        if can_generate and text == "generate":
            if there.is_file():
                raise ValueError(f"{workplace.shown(there)} exists already; move it away, or name it")
            return generated_questions(_GENERATED)
        if not text and not answers:
            return sample_questions()
        file = _file(text, workplace) if text else answers[0]
        found = (read_questions if text else questions_beside_answers)(file, workplace, None, None)
        if answers:
            check_answers(answers, found.section, workplace)
        return found

    default = workplace.shown(there) if there.is_file() else "generate" if can_generate else ""
    made = f", or `generate`: the model makes {_GENERATED} of what the server returns" if can_generate else ""
    without = f", or Enter {'if the answers have them' if answers else 'for three samples'}" if not default else ""
    return _asked(f"Where are the questions? A file{made}{without}", read, default)


def _model(title: str) -> ChosenModel:
    offered = [ChosenModel(SIMULATED, about="no key: shows how all works"), *run_to_end(offered_models())]
    _list(title, {each.name: each.about for each in offered})

    def read(text: str) -> ChosenModel:
        return offered[int(text) - 1] if text.isdigit() and 0 < int(text) <= len(offered) else chosen_model(text)

    return _asked("A number, or another one as provider/name", read, "1")


def _list(title: str, told: dict[str, str]) -> None:
    click.echo(f"\n{title}")
    width = max(map(len, told))
    for number, (name, about) in enumerate(told.items(), start=1):
        click.echo(f"  {number}  {name:<{width}}  {about}".rstrip())


def _number(text: str, most: int) -> int:
    if not text.isdigit() or not 0 < int(text) <= most:
        raise ValueError(f"a number from 1 to {most} is expected")
    return int(text)


def _file(text: str, workplace: Workplace) -> Path:
    if not (workplace.here / text).is_file():
        raise ValueError(f"there is no file {text}")
    return Path(text)


def _asked(text: str, read: Callable[[str], T], default: str | None = None) -> T:
    """Ask until an answer can be read."""

    def value(given: str) -> T:
        try:
            return read(given.strip())
        except (ValueError, OSError, KevalError) as error:
            # The error after which `click.prompt` asks again.
            raise click.UsageError(foreign(str(error))) from error

    click.echo(text if text.startswith("A number") else f"\n{text}")
    answer: T = click.prompt(">", default=default, show_default=bool(default), prompt_suffix=" ", value_proc=value)
    return answer
