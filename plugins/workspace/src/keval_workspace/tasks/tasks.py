"""The tasks of a plan: which workspace each trial has, and which checks look at its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import attrs

from keval.config.structure import structure
from keval.errors import FieldError, PreflightError, TrialError
from keval.records.end_state import CheckResult, Conventions, EndState
from keval.records.manifest import TextEntry
from keval.records.transcript import Transcript
from keval.records.trial import Sample, Trial, TrialKey
from keval.seams.contexts import Context, TrialInfo, Workspace
from keval.seams.workspaces import EndOfTrial, WorksInFolder, WorkspaceProvider
from keval_workspace.tasks.checks import NamedCheck, check_names, read_checks, run_checks, unread


def conventions_of(agent: object) -> Conventions | None:
    """Return what an agent finds in its folder by itself; `None` if it works in none."""
    return agent.conventions() if isinstance(agent, WorksInFolder) else None


@attrs.frozen(eq=False)
class Tasks:
    """The workspaces of conditions, and the checks of the evaluation. Samples have theirs over these.

    `folders` has each condition's provider, and `asked` the conditions that ask for it; any other one is an empty
    folder, for agents that work in one, where a context gives a text as a file. `base` is the folder of the dataset.
    `described` tells of the contexts of texts, by condition and label.
    """

    folders: Mapping[str, WorkspaceProvider]
    asked: frozenset[str]
    texts: frozenset[str]
    checks: tuple[NamedCheck, ...]
    base: Path
    places: Mapping[str, str]
    described: Mapping[str, Mapping[str, TextEntry]]

    def checks_of(self, sample: Sample) -> tuple[tuple[NamedCheck, ...], tuple[CheckResult, ...]]:
        """Return the checks of a sample: its own, and those of the evaluation with other names.

        Beside them stand the results of its own that cannot be read, such as where a file of theirs is missing on
        another machine.
        """
        own, errors = read_checks(sample.verify, ("verify",), self.base)
        names = {*check_names(sample.verify)}
        return (*(check for check in self.checks if check.name not in names), *own), unread(sample.verify, errors)

    def asked_for(self, condition: str) -> WorkspaceProvider | None:
        """Return what makes the workspace of a condition; `None` if only some agents have one there."""
        return self.folders[condition] if condition in self.asked else None

    def provider(self, condition: str, sample: Sample, agent: Conventions | None) -> WorkspaceProvider | None:
        """Return what makes the workspace of a trial; `None` if it has none. Raises TrialError."""
        wanted = condition in self.asked or sample.workspace is not None
        if not wanted and not (condition in self.texts and agent is not None):
            return None
        folder = self.folders[condition]
        if sample.workspace is None:
            return folder
        own, errors = joined(folder, sample.workspace, self.base)
        if own is None:
            told = "; ".join(error.message for error in errors)
            raise TrialError(f"the sample's workspace: {told}", stage="context", kind="bad_workspace")
        return own

    async def prepare(self, close_later: Callable[[object], None]) -> None:
        """Try the workspaces of conditions out, before the first trial; each is handed to `close_later` before that.

        Raises PreflightError with every problem.
        """

        problems: list[str] = []
        for condition in {id(self.folders[label]): label for label in sorted(self.asked)}.values():
            close_later(self.folders[condition])
            try:
                await self.folders[condition].prepare()
            except PreflightError as error:
                problems += [f"{self.places[condition]}: {told}" for told in error.problems]
        if problems:
            raise PreflightError(problems)

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
        checks, missing = self.checks_of(sample)
        if not checks and not missing:
            return end
        trial = Trial(key.id, sample, key.agent, key.condition, key.repetition, transcript)
        folder = context.workspace.folder if context.workspace is not None else None
        servers = {server.name: server.source for server in context.servers if server.source is not None}
        sandbox = context.workspace.sandbox if context.workspace is not None else None
        left = end or EndState()
        at = EndOfTrial(trial, folder, left.changes, left.changes_cut, sandbox, servers)
        return attrs.evolve(left, checks=(*await run_checks(checks, at), *missing))

    def describe(self, condition: str) -> Mapping[str, Any]:
        """Return what a manifest has of the workspace of a condition; nothing, if it asks for none."""
        return self.folders[condition].describe() if condition in self.asked else {}

    def describe_texts(self, condition: str, redact: Callable[[Any], Any]) -> dict[str, TextEntry]:
        """Return what a manifest has of the contexts of texts of a condition, by label, without secrets."""
        return {
            label: attrs.evolve(
                entry,
                parts=tuple(redact(list(entry.parts))),
                interventions=tuple(redact(change) for change in entry.interventions),
            )
            for label, entry in self.described.get(condition, {}).items()
        }


def joined(
    folder: WorkspaceProvider, own: Mapping[str, Any], base: Path
) -> tuple[WorkspaceProvider | None, list[FieldError]]:
    """Return a provider with a sample's own options over those of its condition; mappings are joined."""
    read, errors = structure(type(folder), dict(own), ("workspace",), base, variables=False)
    if read is None:
        return None, errors
    changes = {key: getattr(read, key) for key in own}
    for key, value in changes.items():
        if isinstance(value, Mapping) and isinstance(before := getattr(folder, key), Mapping):
            changes[key] = {**before, **value}
    return attrs.evolve(folder, **changes), []  # type: ignore[misc]
