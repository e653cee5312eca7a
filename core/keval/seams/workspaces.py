"""The seams of what agents work in and leave: workspaces, sandboxes, checks, and texts that a config can change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

import attrs

from keval.errors import FieldError
from keval.records.end_state import Conventions, EndState, FileChange
from keval.records.interventions import Intervention
from keval.records.servers import ServerChannel
from keval.records.transcript import Blob, Transcript
from keval.records.trial import Sample, Trial, TrialKey
from keval.seams.contexts import Context, Sandbox, TrialInfo, Workspace

if TYPE_CHECKING:  # few runs have tasks
    from keval.records.manifest import TextEntry
    from keval.seams.interfaces import Metric


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
    constructed for each that differs. A static method `sandboxes` may tell by name what keeps each from working
    here, or `None`, which `keval validate --live` prints.
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

    def texts(self) -> Mapping[str, str]:
        """Return the texts that it gives by their names, after changes, for readers of the run."""
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


class Tasks(Protocol):
    """The workspaces and checks of a plan's trials. Samples have theirs over those of conditions."""

    def asked_for(self, condition: str) -> WorkspaceProvider | None:
        """Return what makes the workspace of a condition; `None` if only some agents have one there."""
        ...

    async def prepare(self, close_later: Callable[[object], None]) -> None:
        """Try the workspaces of conditions out, before the first trial; each is handed to `close_later` before that.

        Raises PreflightError with every problem.
        """
        ...

    async def enter(self, stack: AsyncExitStack, info: TrialInfo, agent: object) -> tuple[TrialInfo, Workspace | None]:
        """Make the workspace of an attempt, and return what contexts are told of it. Raises TrialError."""
        ...

    async def verified(
        self, key: TrialKey, sample: Sample, transcript: Transcript, context: Context, end: EndState | None
    ) -> EndState | None:
        """Return the end of a trial with what its checks find; `None` if it has neither a workspace nor checks."""
        ...

    def describe(self, condition: str) -> Mapping[str, Any]:
        """Return what a manifest has of the workspace of a condition; nothing, if it asks for none."""
        ...

    def describe_texts(self, condition: str, redact: Callable[[Any], Any]) -> Mapping[str, TextEntry]:
        """Return what a manifest has of the contexts of texts of a condition, by label, without secrets."""
        ...

    def text_blobs(self, redact: Callable[[Any], Any]) -> Iterable[Blob]:
        """Return the texts of all conditions, which `TextEntry.texts` refers to, without secrets."""
        ...


class TaskMaker(Protocol):
    """Makes the tasks of a plan. Group `keval.task_makers`; a config that asks for any makes keval ask for `tasks`."""

    def tasks(self, draft: Any) -> Tasks | None:
        """Make those of a `keval.plan.construct.DraftPlan`, and add what is wrong to its problems and notices."""
        ...

    def scores(self, entries: Iterable[Any], names: Iterable[str]) -> Mapping[str, Metric]:
        """Return the metrics that tell what checks found, by label: entries of `verify:`, other names, and all."""
        ...

    def workspace_of(self, evaluation: Any, context: str) -> WorkspaceProvider | None:
        """Return what makes the workspace of the first condition of an `Evaluation` with a context, if one has it."""
        ...
