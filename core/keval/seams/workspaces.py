"""The seams of what agents work in and leave: workspaces, sandboxes, checks, and texts that a config can change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

import attrs

from keval.errors import FieldError
from keval.records.end_state import Conventions, FileChange
from keval.records.interventions import Intervention
from keval.records.servers import ServerChannel
from keval.records.trial import Trial
from keval.seams.contexts import Sandbox, TrialInfo, Workspace


@runtime_checkable
class WorksInFolder(Protocol):
    """An agent that works in a folder of its own for each trial: `Context.workspace`, where the trial has one."""

    def conventions(self) -> Conventions:
        """Return what it finds in the folder by itself."""
        ...


@runtime_checkable
class WorkspaceProvider(Protocol):
    """Makes workspaces. Group `keval.workspaces`; its fields are the keys of `workspace:`.

    Keys of the evaluation, a condition and a sample are joined, the latter over the former, and one provider is
    constructed for each that differs. A static method `sandboxes` may tell `keval doctor` by name what keeps each from
    working here, or `None`.
    """

    def check(self) -> Iterable[FieldError]:
        """Return what is wrong with the options as far as that shows without making a folder; for every sample."""
        ...

    async def prepare(self) -> None:
        """Try out, before the first trial, what conditions and their trials will need; not called for samples' own.

        Raises:
            PreflightError: a workspace cannot be made, a setup command fails, or the sandbox does not start.
        """
        ...

    def open(self, trial: TrialInfo) -> AbstractAsyncContextManager[Workspace]:
        """Make a fresh folder for one attempt, and remove it afterwards.

        Raises:
            TrialError: of stage `context`; it cannot be made now.
        """
        ...

    def describe(self) -> Mapping[str, Any]:
        """Return what the run's manifest has of it: what it is made of, and the sandbox that is used."""
        ...


@attrs.frozen
class EndOfTrial:
    """What a check gets: the trial, its workspace if it has one, and what was changed in that.

    `changes_cut` is how many files more were added. `servers` lead to the condition's servers, past all interventions;
    what a check calls is no call of the agent. In `sandbox`, which the agent worked in, a check runs what the agent may
    have written.
    """

    trial: Trial
    folder: Path | None
    changes: Sequence[FileChange] = ()
    changes_cut: int = 0
    sandbox: Sandbox | None = None
    servers: Mapping[str, ServerChannel] = attrs.field(factory=dict)


@attrs.frozen
class Finding:
    """What a check found; `reason` says it in a sentence, and `output` is what it wrote, if anything."""

    passed: bool
    reason: str
    output: str | None = None


@runtime_checkable
class Check(Protocol):
    """Looks at the end of a trial: whether what the agent was to do is done. Group `keval.checks`.

    An entry of `verify:` is `{name: …, KIND: {options}}`. A class attribute `short_option` names the option that may be
    given alone, in place of the mapping. A class attribute `needs_workspace` is false of a check that needs no folder.
    `timeout_seconds`, an option, bounds it.
    """

    @property
    def timeout_seconds(self) -> float: ...

    async def check(self, end: EndOfTrial) -> Finding:
        """Return what is found.

        Raises:
            TrialError: the check cannot run; it is then unscored, and never failed.
        """
        ...


@runtime_checkable
class TextContext(Protocol):
    """A context provider of texts, such as instructions or skills, which a config can change and take apart.

    A class attribute `part` says what one of its parts is called: `section` or `skill`.
    """

    part: ClassVar[str]

    @property
    def digest(self) -> str:
        """The SHA-256 of all that it gives, after changes."""
        ...

    def parts(self) -> Sequence[str]:
        """Return the names of its parts, each of which `ablate` leaves out once. Raises ConfigError."""
        ...

    def changed(self, interventions: Sequence[Intervention]) -> TextContext:
        """Return the provider with these changes, first to last.

        Raises:
            InterventionError: a change is none of a text, or names no part.
        """
        ...

    def way(self, agent: Conventions | None) -> str:
        """Return how an agent gets the text, as `GivenText.way` has it; `None` stands for one without a folder.

        Raises ValueError: the agent cannot be given it.
        """
        ...
