"""The agents that the user names, as the agents of a config: installed ones, and the user's own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import attrs

from keval.config.evaluation import Evaluation
from keval.config.load import effective, read_evaluation
from keval.config.source import Source
from keval.errors import ConfigError, Problem
from keval.plan.build import make_plan
from keval.run.select import Selection, select
from keval_start.models import ChosenModel
from keval_start.questions import FILE
from keval_start.servers import label_of
from keval_start.workplace import Workplace
from keval_viewer.interactive.tried_agents import try_agents

_WITH_TARGET = ("acp", "command", "http", "python")
"""Agents of which a colon and the program, function or address say which one is meant."""


@attrs.frozen
class Agents:
    """Agents by label, with the options of the config. `own` are the labels of those that the user wrote."""

    options: Mapping[str, Mapping[str, Any]]
    own: frozenset[str] = frozenset()

    @property
    def types(self) -> list[str]:
        """The names of their plugins, each once."""
        return list(dict.fromkeys(str(options.get("type", label)) for label, options in self.options.items()))


def installed_agents() -> list[str]:
    """Return the names of the installed agents that ask a model."""
    names = sorted(point.name for point in entry_points(group="keval.agents"))
    others = (*_WITH_TARGET, "recorded")
    return [name for name in names if name not in others and not name.startswith(("checks/", "testing/"))]


def read_agents(texts: Sequence[str], model: ChosenModel, workplace: Workplace) -> Agents:
    """Return the agents that texts such as `gadk` and `python:FILE.py:FUNCTION` name.

    Raises ConfigError with every problem: unknown agents, or agents that are not named in this way.
    """
    evaluation = _evaluation({model.loop: {"model": model.name}}, workplace)
    selected = select(evaluation, Selection(agents=tuple(_moved(text, workplace) for text in texts)))
    problems = [problem for problem in selected.problems if problem not in evaluation.problems]
    alone = [text for text in texts if text in _WITH_TARGET]
    problems += [
        Problem(f"--agent {text}", f"say which one, as in {text}:…; see `keval init --help`") for text in alone
    ]
    if problems:
        raise ConfigError(problems)
    kinds = {text.partition(":")[0] for text in texts if ":" in text}
    agents: dict[str, Mapping[str, Any]] = {}
    own: set[str] = set()
    for given, each in effective(selected)["agents"].items():
        label, kind, options = given, each["type"], each
        if kind in kinds:
            if kind == "python":
                label = label_of(Path(each["target"].rpartition(":")[0]).stem)
            # Paths in the command start from where the user stands, and would be taken from the folder of the config.
            if kind in ("command", "acp") and workplace.folder != workplace.here:
                options = {**each, "folder": workplace.written(Path())}
            label = given if label in agents else label
            own.add(label)
        agents[label] = {name: value for name, value in options.items() if (name, value) != ("type", label)}
    return Agents(agents, frozenset(own))


async def tried(agents: Agents, model: ChosenModel, workplace: Workplace, *, served: bool) -> Agents:
    """Make the user's own agents ready, and return all of them; a function that takes a `Context` gets the model.

    Raises:
        ConfigError, PreflightError: an agent is not there, or cannot be given servers though they are `served`.
    """
    if not agents.own:
        return agents
    found = await try_agents(_evaluation({label: agents.options[label] for label in agents.own}, workplace))
    if served and (refused := [each for each in found if each.servers_refusal]):
        raise ConfigError([Problem(f"the agent {each.label}", str(each.servers_refusal)) for each in refused])
    with_context = {
        each.label
        for each in found
        if each.servers_refusal is None and agents.options[each.label].get("type", each.label) == "python"
    }
    options = {
        label: {**each, "model": model.name} if label in with_context else each
        for label, each in agents.options.items()
    }
    return attrs.evolve(agents, options=options)


def check_answers(files: Iterable[Path], dataset: Mapping[str, Any], workplace: Workplace) -> None:
    """Raise ConfigError with every problem of files of answers to the questions of a dataset."""
    make_plan(_evaluation(recorded_agents(files, workplace).options, workplace, dataset=dataset))


def _evaluation(agents: Mapping[str, Any], workplace: Workplace, **more: Any) -> Evaluation:
    """Return an evaluation that has these agents; it is not in a file, so it has no places."""
    data = {"dataset": {"path": FILE}, "agents": {**agents}, "metrics": ["basic/latency"], **more}
    return read_evaluation(Source("", workplace.folder, data))


def _moved(text: str, workplace: Workplace) -> str:
    """Return the name of an agent with the path of a Python file made relative to the folder of the config."""
    kind, _, target = text.partition(":")
    source, _, function = target.rpartition(":")
    if kind == "python" and source.endswith(".py"):
        return f"{kind}:{workplace.written(Path(source))}:{function}"
    return text


def recorded_agents(files: Iterable[Path], workplace: Workplace) -> Agents:
    """Return an agent for each file of answers, with the name of the file."""
    options: dict[str, Mapping[str, Any]] = {}
    for file in files:
        label = label_of(file.stem)
        while label in options:
            label += "_2"
        options[label] = {"type": "recorded", "path": workplace.written(file)}
    return Agents(options)
