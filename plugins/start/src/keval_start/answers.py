"""What the user said that is to be evaluated, by flags or when asked, read and checked without starting anything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import attrs

from keval.plugin import ConfigError, Problem
from keval_start.agents import Agents, read_agents, recorded_agents
from keval_start.mcp_files import is_mcp_file, read_servers
from keval_start.models import SIMULATED, ChosenModel, chosen_model
from keval_start.project import Goal
from keval_start.questions import Questions, generated_questions, read_questions
from keval_start.servers import Server, named_server, with_own_labels
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
