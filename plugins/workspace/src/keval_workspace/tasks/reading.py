"""Reading the tasks of a config: workspaces and checks constructed, and what is wrong with them told at its place."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs

from keval.config.evaluation import Evaluation
from keval.config.source import KeyPath
from keval.config.structure import structure
from keval.dataset.read import NO_DATASET
from keval.errors import PluginError, Problem
from keval.plan.construct import Constructor, DraftPlan
from keval.plan.plan import Arm
from keval.records.end_state import ALL_CHECKS, CHECK_PREFIX
from keval.records.manifest import TextEntry
from keval.seams import registry
from keval.seams.contexts import works_in_workspace
from keval.seams.interfaces import Metric
from keval.seams.workspaces import TextContext, WorkspaceProvider
from keval_workspace.tasks.server_code import code_in_workspace
from keval_workspace.tasks.tasks import CheckScore, Tasks, check_names, conventions_of, joined, read_checks

_DEFAULT = "folder"
PROMPT = "system prompt"
"""How a text is given that is no file of a workspace."""


class WorkspaceTasks:
    """Makes the tasks of plans: the workspaces and checks of their trials."""

    def tasks(self, draft: DraftPlan) -> Tasks | None:
        """Make those of a plan, and add what is wrong to the problems of its constructor, and to its notices."""
        reader, constructor = _TaskReader(draft), draft.constructor
        tasks = reader.tasks()
        if tasks is not None:
            constructor.problems += reader.wrong(tasks)
        constructor.notices += reader.notices()
        return tasks

    def scores(self, entries: Iterable[Any], names: Iterable[str]) -> dict[str, Metric]:
        """Return the metrics that tell what checks found, by label: entries of `verify:`, other names, and all."""
        named = dict.fromkeys((*check_names(entries), *names, ALL_CHECKS))
        return {f"{CHECK_PREFIX}{name}": CheckScore(name) for name in named}

    def workspace_of(self, evaluation: Evaluation, context: str) -> WorkspaceProvider | None:
        """Return what makes the workspace of the first condition with this context; `None` if there is none."""
        arms = [Arm(label, each) for label, each in evaluation.conditions.items() if context in each.contexts]
        reader = _TaskReader(DraftPlan(Constructor(evaluation, []), NO_DATASET, (), (), (), {}))
        return reader.folder(arms[0])[0] if arms else None


@attrs.frozen
class _TaskReader:
    draft: DraftPlan
    _told: set[tuple[KeyPath, str]] = attrs.field(factory=set, init=False)

    @property
    def evaluation(self) -> Evaluation:
        return self.draft.constructor.evaluation

    def problem(self, path: KeyPath, message: str, *, at_key: bool = False) -> None:
        """Report a problem once, however many conditions have it."""
        if (path, message) not in self._told:
            self._told.add((path, message))
            self.draft.constructor.problem(path, message, at_key=at_key)

    def tasks(self) -> Tasks | None:
        """Return the tasks; what is wrong in the config is reported."""
        evaluation, source = self.evaluation, self.evaluation.source
        checks, errors = read_checks(evaluation.header.verify, ("verify",), source.base)
        for error in errors:
            self.problem(error.path, error.message, at_key=error.at_key)
        folders: dict[str, WorkspaceProvider] = {}
        paths: dict[str, KeyPath] = {}
        for arm in self.draft.arms:
            folder, paths[arm.label] = self.folder(arm)
            if folder is not None:
                # Conditions that differ in nothing else share what is prepared once.
                folders[arm.label] = next((each for each in folders.values() if each == folder), folder)
                self._check_servers(arm, folder)
        # What is wrong with the others is reported, and no plan is made.
        if len(folders) < len(self.draft.arms):
            return None
        texts = {arm.label for arm in self.draft.arms if any(True for _ in self._texts(arm))}
        header = evaluation.header
        everywhere = header.workspace is not None or header.sandbox != "none"
        asked = {
            arm.label
            for arm in self.draft.arms
            if everywhere or arm.condition.workspace is not None or self._has_server_in_workspace(arm)
        }
        if header.workspace is None:  # then only the sandbox may ask for one, where no condition does
            paths = {label: path if path != ("workspace",) else ("sandbox",) for label, path in paths.items()}
        places = {label: source.place(path, key=True) for label, path in paths.items()}
        ways = self._ways()
        self._check_pairs(ways)
        described = self._described(ways)
        # Not of the dataset that was read: a worker elsewhere is sent samples, and reads none.
        base = evaluation.dataset.path.parent if evaluation.dataset else source.base
        tasks = Tasks(folders, frozenset(asked), frozenset(texts), checks, base, places, described)
        self._check_reach(tasks)
        return tasks

    def notices(self) -> Iterator[Problem]:
        """Yield the agents that no sandbox shuts in, though the config asks for one."""
        given = [self.evaluation.header.workspace, *(arm.condition.workspace for arm in self.draft.arms)]
        asked = [self.evaluation.header.sandbox, *(each.get("sandbox", "none") for each in given if each)]
        if all(sandbox == "none" for sandbox in asked):
            return
        for agent in self.draft.agents:
            conventions = conventions_of(agent.plugin)
            if agent.plugin is not None and not agent.prerecorded and not (conventions and conventions.sandboxed):
                told = f"{agent.label!r} runs in keval's own process, where no sandbox shuts it in"
                yield self.evaluation.source.problem(agent.path, told, at_key=True)

    def folder(self, arm: Arm) -> tuple[WorkspaceProvider | None, KeyPath]:
        """Construct the workspace provider of a condition, and return it with the path of its options."""
        header = self.evaluation.header
        own: KeyPath = ("conditions", arm.label, "workspace")
        path: KeyPath = ("workspace",) if arm.condition.workspace is None else own
        shut_in = {} if header.sandbox == "none" else {"sandbox": header.sandbox}
        given = {**shut_in, **(header.workspace or {})}
        for key, value in (arm.condition.workspace or {}).items():
            both = isinstance(value, Mapping) and isinstance(given.get(key), Mapping)
            given[key] = {**given[key], **value} if both else value
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
            item = self.draft.contexts.get(name)
            if item is not None and isinstance(item.plugin, TextContext):
                yield index, item.plugin

    def _has_server_in_workspace(self, arm: Arm) -> bool:
        found = (self.draft.contexts.get(name) for name in arm.contexts)
        return any(item is not None and works_in_workspace(item.plugin) for item in found)

    def _check_servers(self, arm: Arm, folder: WorkspaceProvider) -> None:
        """Report servers of which an agent in a sandbox could change the code, and so let it run outside."""
        if getattr(folder, "sandbox", "none") == "none":
            return
        for label in arm.contexts:
            item = self.draft.contexts.get(label)
            if item is not None and (code := code_in_workspace(item.plugin)) is not None:
                told = (
                    f"the server runs outside of the sandbox, and the agent in it could change the code that it runs"
                    f" ({code}); give the whole path of code outside of the workspace, or add `tap: false`, with which"
                    " the agent starts the server inside"
                )
                self.problem(item.path, told, at_key=True)

    def _ways(self) -> dict[str, dict[str, str]]:
        """Return how each agent gets each text; those that an agent cannot be given are reported."""
        ways: dict[str, dict[str, str]] = {}
        for arm in self.draft.arms:
            for index, text in self._texts(arm):
                for agent in self.draft.agents:
                    if agent.plugin is None or agent.prerecorded:
                        continue
                    try:
                        told = text.way(conventions_of(agent.plugin))
                        ways.setdefault(arm.contexts[index], {})[agent.label] = told
                    except ValueError as error:
                        path = ("conditions", arm.label, "contexts", index)
                        self.problem(path, f"the agent {agent.label!r}: {error}")
        return ways

    def _check_pairs(self, ways: Mapping[str, Mapping[str, str]]) -> None:
        """Report contexts of one condition that would be given in each other's place."""
        for arm in self.draft.arms:
            found = [(index, text, arm.contexts[index]) for index, text in self._texts(arm)]
            for (_, first, one), (index, second, other) in itertools.combinations(found, 2):
                if first.part != second.part:
                    continue
                same = sorted({*first.parts()} & {*second.parts()}) if first.part == "skill" else []
                if first.part == "section":
                    theirs = ways.get(other, {})
                    same = sorted(
                        {way for agent, way in ways.get(one, {}).items() if theirs.get(agent) == way} - {PROMPT}
                    )
                if same:
                    told = (
                        f"{one!r} and {other!r} would both be given as {same[0]!r}; put them into separate conditions"
                    )
                    self.problem(("conditions", arm.label, "contexts", index), told)

    def _described(self, ways: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, tuple[TextContext, TextEntry]]]:
        found: dict[str, dict[str, tuple[TextContext, TextEntry]]] = {}
        for arm in self.draft.arms:
            for index, text in self._texts(arm):
                label = arm.contexts[index]
                changes = tuple(change.as_config() for change in self.draft.contexts[label].interventions)
                entry = TextEntry(text.part, interventions=changes, ways=ways.get(label, {}))
                found.setdefault(arm.label, {})[label] = (text, entry)
        return found

    def _check_reach(self, tasks: Tasks) -> None:
        """Report checks of a folder where there is none, and agents that no condition lets into theirs."""
        if not any(check.needs_workspace for check in tasks.checks):
            return
        if not tasks.asked and not self.draft.dataset.workspaces:
            told = "there is no workspace to look into; add `workspace: {}` for an empty one"
            self.problem(("verify",), told, at_key=True)
            return
        for agent in self.draft.agents:
            if agent.plugin is None or agent.prerecorded or conventions_of(agent.plugin) is not None:
                continue
            if not any(map(self._has_server_in_workspace, self.draft.arms)):
                told = (
                    f"the agent {agent.label!r} has no workspace, so that no check can look at what it did; take an"
                    " agent that works in a folder, or give a condition a server with {workspace} in its `args`"
                )
                self.problem((*agent.path,), told, at_key=True)

    def wrong(self, tasks: Tasks) -> Iterator[Problem]:
        """Yield what is wrong with the workspaces and checks of samples."""
        # To read a large dataset once more is worth it only where a sample has anything to check.
        for sample in self.draft.samples if self.draft.dataset.checks or self.draft.dataset.workspaces else ():
            _, errors = read_checks(sample.verify, ("verify",), tasks.base, variables=False)
            # By their text, as providers are not hashable: conditions with equal workspaces are checked once.
            for folder in {repr(each): each for each in tasks.folders.values()}.values() if sample.workspace else ():
                own, wrong = joined(folder, sample.workspace or {}, tasks.base)
                errors += wrong
                errors += [each._replace(path=("workspace", *each.path)) for each in own.check()] if own else []
            for told in dict.fromkeys(f"{_dotted(each.path)}: {each.message}" for each in errors):
                yield Problem(self.draft.dataset.place(sample.id), told)


def _dotted(path: KeyPath) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")
