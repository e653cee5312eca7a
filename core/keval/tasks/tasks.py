"""The tasks of a plan: which workspace each trial has, which checks look at its end, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import attrs

from keval.config.evaluation import Evaluation
from keval.config.source import KeyPath
from keval.config.structure import structure
from keval.dataset.read import NO_DATASET, Dataset
from keval.dataset.samples import Samples
from keval.errors import FieldError, PluginError, PreflightError, Problem
from keval.execute.models.exchange import all_of
from keval.plan.plan import Arm, ResolvedPlugin
from keval.records.end_state import Conventions, EndState
from keval.records.manifest import TextEntry
from keval.records.transcript import Transcript
from keval.records.trial import Sample, Trial, TrialKey
from keval.seams import registry
from keval.seams.contexts import Context, TrialInfo, Workspace, works_in_workspace
from keval.seams.workspaces import EndOfTrial, TextContext, WorksInFolder, WorkspaceProvider
from keval.tasks.checks import NamedCheck, read_checks, run_checks

_DEFAULT = "folder"


def conventions_of(agent: object) -> Conventions | None:
    """Return what an agent finds in its folder by itself; `None` if it works in none."""
    return agent.conventions() if isinstance(agent, WorksInFolder) else None


@attrs.frozen(eq=False)
class Tasks:
    """The workspaces of conditions, and the checks of the evaluation. Samples have theirs over these.

    `folders` has each condition's provider, and `asked` the conditions that ask for it; any other one is an empty
    folder, for agents that work in one, where a context gives a text as a file. `base` is the folder of the dataset.
    `ways` say how each agent gets the text of a context, by the labels of both.
    """

    folders: Mapping[str, WorkspaceProvider]
    asked: frozenset[str]
    texts: frozenset[str]
    checks: tuple[NamedCheck, ...]
    base: Path
    places: Mapping[str, str]
    contexts: Mapping[str, ResolvedPlugin]
    ways: Mapping[str, Mapping[str, str]]

    def checks_of(self, sample: Sample) -> tuple[NamedCheck, ...]:
        """Return the checks of a sample: its own, and those of the evaluation with other names."""
        own, _ = read_checks(sample.verify, ("verify",), self.base)
        names = {check.name for check in own}
        return (*(check for check in self.checks if check.name not in names), *own)

    def provider(self, condition: str, sample: Sample, agent: Conventions | None) -> WorkspaceProvider | None:
        """Return what makes the workspace of a trial; `None` if it has none."""
        wanted = condition in self.asked or sample.workspace is not None
        if not wanted and not (condition in self.texts and agent is not None):
            return None
        folder = self.folders[condition]
        if sample.workspace is None:
            return folder
        joined, errors = _over(folder, sample.workspace, self.base)
        if joined is None:
            raise ValueError("; ".join(error.message for error in errors))
        return joined

    async def prepare(self) -> None:
        """Try the workspaces of conditions out, before the first trial. Raises PreflightError with every problem."""

        async def prepared(condition: str, folder: WorkspaceProvider) -> None:
            try:
                await folder.prepare()
            except PreflightError as error:
                raise PreflightError([f"{self.places[condition]}: {told}" for told in error.problems]) from error

        # Conditions that differ in nothing else have an equal one.
        different = {repr(self.folders[condition]): condition for condition in sorted(self.asked)}
        await all_of([prepared(condition, self.folders[condition]) for condition in different.values()])

    async def enter(self, stack: AsyncExitStack, info: TrialInfo, agent: object) -> tuple[TrialInfo, Workspace | None]:
        """Make the workspace of an attempt, and return what contexts are told of it. Raises TrialError."""
        conventions = conventions_of(agent)
        provider = self.provider(info.condition, info.sample, conventions)
        if provider is None:
            return info, None
        workspace = await stack.enter_async_context(provider.open(info))
        return attrs.evolve(info, workspace=workspace.folder, conventions=conventions), workspace

    async def verified(
        self, key: TrialKey, sample: Sample, transcript: Transcript, context: Context, end: EndState | None
    ) -> EndState | None:
        """Return the end of a trial with what its checks find; `None` if it has neither a workspace nor checks."""
        checks = self.checks_of(sample)
        if not checks:
            return end
        trial = Trial(key.id, sample, key.agent, key.condition, key.repetition, transcript)
        folder = context.workspace.folder if context.workspace is not None else None
        servers = {server.name: server.source for server in context.servers if server.source is not None}
        at = EndOfTrial(trial, folder, end.changes if end else (), servers)
        return attrs.evolve(end or EndState(), checks=await run_checks(checks, at))

    def describe(self, condition: str) -> Mapping[str, Any]:
        """Return what a manifest has of the workspace of a condition; nothing, if it asks for none."""
        return self.folders[condition].describe() if condition in self.asked else {}

    def describe_texts(self, arm: Arm, redact: Callable[[Any], Any]) -> dict[str, TextEntry]:
        """Return what a manifest has of the contexts of texts of a condition, by label."""
        found = {label: self.contexts[label] for label in arm.contexts if label in self.ways}
        return {
            label: TextEntry(
                part=item.plugin.part,
                parts=tuple(redact(list(item.plugin.parts()))),
                interventions=tuple(redact(change.as_config()) for change in item.interventions),
                ways=self.ways[label],
            )
            for label, item in found.items()
        }


def workspace_of(evaluation: Evaluation, context: str) -> WorkspaceProvider | None:
    """Return what makes the workspace of the first condition with this context; `None` if there is none."""
    arms = [Arm(label, each) for label, each in evaluation.conditions.items() if context in each.contexts]
    problems: list[str] = []
    reader = TaskReader(evaluation, NO_DATASET, (), (), {}, lambda path, message, **_: problems.append(message))
    return reader.folder(arms[0])[0] if arms else None


def _over(
    folder: WorkspaceProvider, own: Mapping[str, Any], base: Path
) -> tuple[WorkspaceProvider | None, list[FieldError]]:
    """Return a provider with a sample's own options over those of its condition."""
    read, errors = structure(type(folder), dict(own), ("workspace",), base, variables=False)
    if read is None:
        return None, errors
    return attrs.evolve(folder, **{key: getattr(read, key) for key in own}), []  # type: ignore[misc]


@attrs.frozen
class TaskReader:
    """Makes the tasks of a plan. `problem` is told what is wrong, with its path in the config."""

    evaluation: Evaluation
    dataset: Dataset
    arms: tuple[Arm, ...]
    agents: tuple[ResolvedPlugin, ...]
    contexts: Mapping[str, ResolvedPlugin]
    problem: Callable[..., None]

    def tasks(self, samples: Samples | tuple[()]) -> tuple[Tasks | None, list[Problem]]:
        """Return the tasks, with what is wrong with those of `samples`."""
        evaluation, source = self.evaluation, self.evaluation.source
        checks, errors = read_checks(evaluation.header.verify, ("verify",), source.base)
        for error in errors:
            self.problem(error.path, error.message, at_key=error.at_key)
        folders: dict[str, WorkspaceProvider] = {}
        paths: dict[str, KeyPath] = {}
        for arm in self.arms:
            folder, paths[arm.label] = self.folder(arm)
            if folder is not None:
                folders[arm.label] = folder
        if len(folders) < len(self.arms):
            return None, []
        texts = {arm.label for arm in self.arms if any(True for _ in self._texts(arm))}
        header = evaluation.header
        asked = {
            arm.label
            for arm in self.arms
            if header.workspace is not None or header.sandbox != "none" or arm.condition.workspace is not None
        }
        places = {label: source.place(path, key=True) for label, path in paths.items()}
        ways = self._ways()
        base = self.dataset.path.parent if self.dataset.path else source.base
        tasks = Tasks(folders, frozenset(asked), frozenset(texts), checks, base, places, self.contexts, ways)
        self._check_reach(tasks)
        return tasks, [*self._wrong(tasks, samples)]

    def folder(self, arm: Arm) -> tuple[WorkspaceProvider | None, KeyPath]:
        """Construct the workspace provider of a condition, and return it with the path of its options."""
        header = self.evaluation.header
        own: KeyPath = ("conditions", arm.label, "workspace")
        path: KeyPath = ("workspace",) if arm.condition.workspace is None else own
        shut_in = {} if header.sandbox == "none" else {"sandbox": header.sandbox}
        given = {**shut_in, **(header.workspace or {}), **(arm.condition.workspace or {})}
        kind = given.pop("type", _DEFAULT)
        try:
            target = registry.load(registry.find("keval.workspaces", str(kind)))
        except PluginError as error:
            self.problem((*path, "type"), str(error))
            return None, path
        folder, errors = structure(target, given, path, self.evaluation.source.base)
        if folder is not None:
            errors = [each._replace(path=(*path, *each.path)) for each in folder.check()]
        for each in errors:
            self.problem(self._written(each.path, path), each.message, at_key=each.at_key)
        return (None if errors else folder), path

    def _written(self, path: KeyPath, section: KeyPath) -> KeyPath:
        """Return where an option of a workspace is written: in its condition, or for the whole evaluation."""
        key = path[len(section)] if len(path) > len(section) else None
        header = self.evaluation.header
        if key == "sandbox" and header.sandbox != "none":
            return ("sandbox", *path[len(section) + 1 :])
        of_condition = section != ("workspace",) and key is not None
        label = str(section[1]) if of_condition else ""
        inherited = of_condition and key not in (self.evaluation.conditions[label].workspace or {})
        return ("workspace", *path[len(section) :]) if inherited else path

    def _texts(self, arm: Arm) -> Iterator[tuple[int, TextContext]]:
        for index, name in enumerate(arm.contexts):
            item = self.contexts.get(name)
            if item is not None and isinstance(item.plugin, TextContext):
                yield index, item.plugin

    def _ways(self) -> dict[str, dict[str, str]]:
        """Return how each agent gets each text; those that an agent cannot be given are reported."""
        ways: dict[str, dict[str, str]] = {}
        for arm in self.arms:
            for index, text in self._texts(arm):
                for agent in self.agents:
                    if agent.plugin is None or agent.prerecorded:
                        continue
                    try:
                        told = text.way(conventions_of(agent.plugin))
                        ways.setdefault(arm.contexts[index], {})[agent.label] = told
                    except ValueError as error:
                        path = ("conditions", arm.label, "contexts", index)
                        self.problem(path, f"the agent {agent.label!r}: {error}")
        return ways

    def _check_reach(self, tasks: Tasks) -> None:
        """Report checks of a folder where there is none, and agents that no condition lets into theirs."""
        if not any(check.needs_workspace for check in tasks.checks):
            return
        if not tasks.asked and not self.dataset.workspaces:
            told = "there is no workspace to look into; add `workspace: {}` for an empty one"
            self.problem(("verify",), told, at_key=True)
            return
        for agent in self.agents:
            if agent.plugin is None or agent.prerecorded or conventions_of(agent.plugin) is not None:
                continue
            if not any(works_in_workspace(self.contexts[name].plugin) for arm in self.arms for name in arm.contexts):
                told = (
                    f"the agent {agent.label!r} has no workspace, so that no check can look at what it did; take an"
                    " agent that works in a folder, or give a condition a server with {workspace} in its `args`"
                )
                self.problem((*agent.path,), told, at_key=True)

    def _wrong(self, tasks: Tasks, samples: Samples | tuple[()]) -> Iterator[Problem]:
        """Yield what is wrong with the workspaces and checks of samples."""
        for sample in samples if self.dataset.checks or self.dataset.workspaces else ():
            _, errors = read_checks(sample.verify, ("verify",), tasks.base)
            for folder in {repr(each): each for each in tasks.folders.values()}.values() if sample.workspace else ():
                joined, wrong = _over(folder, sample.workspace or {}, tasks.base)
                errors += wrong
                errors += [each._replace(path=("workspace", *each.path)) for each in joined.check()] if joined else []
            for told in dict.fromkeys(f"{_dotted(each.path)}: {each.message}" for each in errors):
                yield Problem(self.dataset.place(sample.id), told)


def _dotted(path: KeyPath) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")
