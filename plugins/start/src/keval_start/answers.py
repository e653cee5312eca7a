"""What the user said that is to be evaluated, by flags or when asked, read and checked without starting anything.

At most five questions are asked.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import attrs
import click

from keval import KevalError
from keval.plugin import ConfigError, Problem
from keval_start.agents import Agents, installed_agents, read_agents, recorded_agents
from keval_start.models import SIMULATED, ChosenModel, chosen_model, offered_models
from keval_start.project import Goal
from keval_start.questions import FILE, Questions, generated_questions, read_questions
from keval_start.servers import PLACES, Server, is_mcp_file, named_server, read_servers, with_own_labels
from keval_start.variables import Variables
from keval_start.workplace import Workplace

WHAT_TO_EVALUATE = "--server COMMAND|URL, --from mcp.json, --agent or --answers FILE"


@attrs.frozen
class Answers:
    """What is to be evaluated, and by what. Without `questions`, samples are written."""

    goal: Goal
    servers: Sequence[Server]
    agents: Agents
    model: ChosenModel
    questions: Questions | None


@attrs.frozen
class Flags:
    """The flags of `keval init`."""

    server: tuple[str, ...] = ()
    from_file: Path | None = None
    only: tuple[str, ...] = ()
    agent: tuple[str, ...] = ()
    answers: tuple[Path, ...] = ()
    model: str | None = None
    questions: Path | None = None
    question_key: str | None = None
    answer_key: str | None = None
    generate: int | None = None

    @property
    def given(self) -> bool:
        """Whether any flag was given, so that nothing is asked."""
        return self != Flags()

    def read(self, workplace: Workplace, variables: Variables) -> Answers:
        """Return what the flags say. Raises ConfigError with every problem."""
        problems: list[Problem] = []
        model = ChosenModel(SIMULATED)
        with _collecting(problems, f"--model {self.model}"):
            model = chosen_model(self.model) if self.model is not None else model
        servers = self._servers(workplace, variables, problems)
        goal = self._goal(problems)
        agents = Agents({})
        with _collecting(problems, "--agent"):
            agents = agents_for(goal, self.agent, self.answers, model, workplace)
        questions = None
        with _collecting(problems, "--questions" if self.generate is None else "--generate"):
            questions = self._questions(goal, workplace)
        if problems:
            raise ConfigError(problems)
        return Answers(goal, servers, agents, model, questions)

    def _servers(self, workplace: Workplace, variables: Variables, problems: list[Problem]) -> tuple[Server, ...]:
        found: list[Server] = []
        if self.from_file is not None:
            with _collecting(problems, f"--from {self.from_file}"):
                found += read_servers(self.from_file, workplace, variables, self.only)
        elif self.only:
            problems.append(Problem("--only", "it chooses among the servers of a file; name that by --from"))
        for text in self.server:
            with _collecting(problems, f"--server {text}"):
                found += read_target(text, workplace, variables)
        return with_own_labels(found)

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

    def _questions(self, goal: Goal, workplace: Workplace) -> Questions | None:
        if self.questions is not None and self.generate is not None:
            raise ValueError("questions come from a file or from `keval generate`; leave out --generate")
        if self.generate is not None:
            if not (self.server or self.from_file):
                raise ValueError(
                    "`keval generate` asks about a server; add --server, or name a file in place of --generate"
                )
            return generated_questions(self.generate)
        if self.questions is not None:
            return read_questions(self.questions, workplace, self.question_key, self.answer_key)
        if goal == "answers":
            return questions_beside_answers(self.answers[0], workplace, self.question_key, self.answer_key)
        if self.question_key or self.answer_key:
            raise ValueError("--question-key and --answer-key are about a file; name it by --questions")
        return None


@contextmanager
def _collecting(problems: list[Problem], place: str) -> Iterator[None]:
    """Add what is wrong with a flag to the problems."""
    try:
        yield
    except ConfigError as error:
        problems += error.problems
    except ValueError as error:
        problems.append(Problem(place, str(error)))


def read_target(text: str, workplace: Workplace, variables: Variables) -> list[Server]:
    """Return the servers that a command, a URL or a client's file names. Raises ValueError."""
    if is_mcp_file(text, workplace):
        return read_servers(Path(text), workplace, variables)
    return [named_server(text, workplace, variables)]


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


def ask(workplace: Workplace, variables: Variables) -> Answers:
    """Ask what is to be evaluated, and by what. An answer that is wrong is asked for again, with the reason."""
    _list("What do you want to evaluate?", dict.fromkeys(_GOALS.values(), ""))
    goal = _asked("A number", lambda text: [*_GOALS][_number(text, len(_GOALS)) - 1], "1")
    told = 'Which files? JSON lines such as {"id": "q1", "response": "…"}, a file for each agent'
    files: list[Path] = []
    if goal == "answers":
        files = _asked(told, lambda text: [_file(word, workplace) for word in shlex.split(text)])
    names = _agents(goal, workplace) if goal in ("agents", "agent") else []
    servers = _servers(goal, workplace, variables) if goal != "answers" else ()
    model = _model("Which model grades?" if goal == "answers" else "Which model?")
    questions = _questions(workplace, files, can_generate=bool(servers))
    return Answers(goal, servers, agents_for(goal, names, files, model, workplace), model, questions)


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
        # Only to see that they can be read; for the model is asked later.
        agents_for(goal, names, (), ChosenModel(SIMULATED), workplace)
        return names

    if goal == "agent":
        return _asked("Which agent? python:FILE.py:FUNCTION, http:URL or command:PROGRAM {question}", read)
    frameworks = installed_agents()
    default = " ".join(name for name in ("gadk", "ms") if name in frameworks)
    return _asked(f"Which agents? Installed are {', '.join(frameworks)}", read, default or None)


def _servers(goal: Goal, workplace: Workplace, variables: Variables) -> tuple[Server, ...]:
    def read(text: str) -> tuple[Server, ...]:
        # Of its own, as an answer that is asked for again must leave no variables behind.
        needed = Variables()
        found = with_own_labels(read_target(text, workplace, needed)) if text else ()
        variables.values.update(needed.values)
        return found

    if goal != "server":
        return _asked("With which MCP server? A command, a URL, an mcp.json, or Enter for none", read, "")
    there = next((place for place in PLACES if (workplace.here / place).is_file()), None)
    told = "Which server? A command such as uvx mcp-server-time, a URL, or the mcp.json of a client"
    return _asked(told, read, there)


def _questions(workplace: Workplace, answers: list[Path], *, can_generate: bool) -> Questions | None:
    there = workplace.folder / FILE

    def read(text: str) -> Questions | None:
        if can_generate and text == "generate":
            if there.is_file():
                raise ValueError(f"{workplace.shown(there)} exists already; move it away, or name it")
            return generated_questions(_GENERATED)
        if text:
            return read_questions(_file(text, workplace), workplace, None, None)
        return questions_beside_answers(answers[0], workplace, None, None) if answers else None

    default = workplace.shown(there) if there.is_file() else "generate" if can_generate else ""
    made = f", or `generate`: the model makes {_GENERATED} of what the server returns" if can_generate else ""
    without = f", or Enter {'if the answers have them' if answers else 'for three samples'}" if not default else ""
    return _asked(f"Where are the questions? A file{made}{without}", read, default)


def _model(title: str) -> ChosenModel:
    offered = [ChosenModel(SIMULATED), *offered_models()]
    told = {each.name: f"{each.key} is set" if each.key else "no key: shows how all works" for each in offered}
    _list(title, told)

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
        except (ValueError, KevalError) as error:
            # The error after which `click.prompt` asks again.
            raise click.UsageError(str(error)) from error

    click.echo(text if text.startswith("A number") else f"\n{text}")
    answer: T = click.prompt(">", default=default, show_default=bool(default), prompt_suffix=" ", value_proc=value)
    return answer
