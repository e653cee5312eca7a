"""`setup:` and `cleanup:`, commands for state outside of workspaces: of a run, of its conditions and of its trials.

What was set up stands in the run's directory until it is cleaned up, so that it can be after keval was killed.
"""

from __future__ import annotations

import asyncio
import json
import os
import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import attrs
from attrs.validators import gt

from keval.errors import PluginWarning, RunError, TrialError, suggestion, typed
from keval.execute.shielding import to_the_end
from keval.files import explained, open_added, read_kept
from keval.plan.check import PlanCheck
from keval.records.trial import Failure
from keval.run.active_run import ActiveRun
from keval.seams.contexts import TrialInfo
from keval.seams.hooks import hookimpl
from keval.seams.transcript_builder import TranscriptBuilder
from keval_programs.environments import environment
from keval_programs.folder import open_folder
from keval_programs.process import Process, running

Scope: TypeAlias = Literal["run", "condition", "trial"]
_SHORT = 5
"""Characters of a value that is no key, and may stand in any output."""
_KEPT_BYTES = 2000
"""Of the end of an output, which is told when a command fails."""


@attrs.frozen
class ScopeCommand:
    """A command for the shell, which ends within `timeout_seconds`.

    `env` names the variables of keval's environment that it gets. Of a condition or a trial it may be for some
    `conditions` alone.
    """

    command: str = attrs.field(validator=attrs.validators.min_len(1))
    env: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    timeout_seconds: float = attrs.field(default=60.0, validator=gt(0))

    async def problem(self, about: Mapping[str, str], folder: Path) -> str | None:
        """Run it in a folder, and return what went wrong with the end of its output; `None` if it ended well."""
        named = {name: os.environ[name] for name in self.env if name in os.environ}
        written, code = bytearray(), None
        try:
            async with open_folder() as own:
                shell = ("/bin/sh", "-c", f"exec 2>&1\n{self.command}")
                process = Process("the command", shell, environment(own.home, {**named, **about}), folder)
                async with running(process, TranscriptBuilder()):
                    with suppress(TimeoutError):
                        async with asyncio.timeout(self.timeout_seconds):
                            process.stdin.close()
                            while piece := await process.stdout.read(2**16):
                                written = (written + piece)[-_KEPT_BYTES:]
                            code = await process.wait()
        except TrialError as error:
            return str(error)
        if code == 0:
            return None
        how = f"ended with exit code {code}" if code else f"did not end within {self.timeout_seconds:g} s"
        said = written.decode("utf-8", "replace").strip()
        for name, value in named.items():  # which may be a key
            said = said.replace(value, f"${name}") if len(value) > _SHORT else said
        return how + (f"; its output ends:\n{said}" if said else "")


@attrs.frozen
class ScopeCommands:
    """The commands of a run, of each of its conditions, and of each attempt at a trial."""

    run: str | ScopeCommand | None = None
    condition: str | ScopeCommand | None = None
    trial: str | ScopeCommand | None = None

    def written(self, scope: Scope) -> ScopeCommand | None:
        """Return the command of a scope, if there is one."""
        found: str | ScopeCommand | None = getattr(self, scope)
        return ScopeCommand(found) if isinstance(found, str) and found else found or None

    def of(self, scope: Scope, condition: str | None) -> ScopeCommand | None:
        """Return the command of a scope, if there is one for this condition."""
        command = self.written(scope)
        return command if command and (not command.conditions or condition in command.conditions) else None


@attrs.frozen
class Begun:
    """What was set up: its scope, and the variables that its commands are told."""

    scope: Scope
    about: Mapping[str, str]

    @property
    def name(self) -> str:
        """What it is called: each run, condition and attempt at a trial has a name of its own."""
        told = (self.about.get(f"KEVAL_{key}", "") for key in ("CONDITION", "TRIAL", "ATTEMPT"))
        return " ".join(filter(None, (self.scope, *told)))


@attrs.define(eq=False)
class SetupJournal:
    """What is set up and not cleaned up yet, by name; in a file of the run's directory, if there is one here."""

    file: Path | None = None
    begun: dict[str, Begun] = attrs.field(factory=dict, init=False)

    def load(self, run: Path) -> None:
        """Read what an earlier process has left. Raises RunError."""
        self.file = run / "setup.jsonl"
        with explained(self.file), suppress(FileNotFoundError):
            for line in read_kept(self.file).splitlines():
                with suppress(ValueError):  # torn by a power cut
                    self._note(**json.loads(line))

    def note(self, begun: Begun, *, done: bool) -> None:
        """Note that something is about to be set up, or is cleaned up. Raises RunError."""
        self._note(begun.scope, begun.about, done=done)
        if self.file is not None:
            line = json.dumps({**attrs.asdict(begun), "done": done})
            with explained(self.file), os.fdopen(open_added(self.file), "ab") as file:
                file.write(f"{line}\n".encode())

    def _note(self, scope: Scope, about: Mapping[str, str], *, done: bool) -> None:
        begun = Begun(scope, about)
        self.begun.pop(begun.name, None)
        if not done:
            self.begun[begun.name] = begun


@attrs.frozen
class Setup:
    """`setup` and `cleanup` are commands for state outside of workspaces. They run in the config's folder."""

    setup: ScopeCommands = ScopeCommands()
    cleanup: ScopeCommands = ScopeCommands()
    # No key of a config, as no entry point names it: a path by default is relative to the config.
    folder: Path = Path()
    _journal: SetupJournal = attrs.field(factory=SetupJournal, init=False, eq=False, repr=False)

    def played(self) -> tuple[Setup, str, Collection[str]]:
        """Return that nothing is set up for a replay, which reaches nothing outside."""
        return Setup(), "", ()

    @hookimpl
    def keval_check_plan(self, check: PlanCheck) -> None:
        labels = check.evaluation.labels("conditions")
        for (section, scope), command in self._commands() if check.manifest is None and not check.played else ():
            for index, name in enumerate(command.env):
                if name not in os.environ:
                    told = f"the variable {name} is not set; set it, or remove it here"
                    check.problem((section, scope, "env", index), told)
            for index, label in enumerate(command.conditions):
                if scope == "run" or label not in labels:
                    told = f"no condition named {label!r}{suggestion(label, labels, 'conditions')}"
                    told = "a run is of all conditions; remove the key" if scope == "run" else told
                    check.problem((section, scope, "conditions", index), told)

    @hookimpl
    async def keval_scoring_began(self, run: ActiveRun, late: Collection[str]) -> None:
        if len(run.run.known_trials) >= run.manifest.trials or not [*self._commands()]:
            return
        await self.clean(run.writer.path)
        # However the run ends.
        run.start.scope.close_later(self)
        about = {"KEVAL_RUN": run.manifest.run}
        labels = run.plan.evaluation.conditions
        try:
            for begun in (Begun("run", about), *(Begun("condition", {**about, "KEVAL_CONDITION": x}) for x in labels)):
                await self._set_up(begun)
        except TrialError as error:
            again = typed("resume", run.writer.path)
            raise RunError(f"{error}\nno trial was run; `{again}` tries again") from error

    @hookimpl
    async def keval_trial_started(self, trial: TrialInfo) -> None:
        await self._set_up(self._of_trial(trial))

    @hookimpl
    async def keval_trial_ended(self, trial: TrialInfo, failure: Failure | None) -> None:
        await self._clean_up(self._of_trial(trial).name)

    @hookimpl
    async def keval_trials_done(self, run: ActiveRun, missing: bool) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Clean up what is set up, the last first."""
        for name in reversed([*self._journal.begun]):
            await self._clean_up(name)

    async def clean(self, run: Path) -> tuple[list[str], list[str]]:
        """Clean up what an earlier process has left; returns what that was, and what is left still. Raises RunError."""
        self._journal.load(run)
        had = [*self._journal.begun]
        await self.aclose()
        return had, [*self._journal.begun]

    def _of_trial(self, trial: TrialInfo) -> Begun:
        run = {} if self._journal.file is None else {"KEVAL_RUN": self._journal.file.parent.name}
        of = {"SAMPLE": trial.sample.id, "AGENT": trial.agent, "CONDITION": trial.condition, "TRIAL": trial.id}
        of |= {"REPETITION": str(trial.repetition), "ATTEMPT": str(trial.attempt)}
        return Begun("trial", run | {f"KEVAL_{name}": value for name, value in of.items()})

    def _commands(self) -> Iterator[tuple[tuple[str, Scope], ScopeCommand]]:
        for section, commands in (("setup", self.setup), ("cleanup", self.cleanup)):
            for scope in get_args(Scope):
                if command := commands.written(scope):
                    yield (section, scope), command

    async def _set_up(self, begun: Begun) -> None:
        condition = begun.about.get("KEVAL_CONDITION")
        command = self.setup.of(begun.scope, condition)
        if command or self.cleanup.of(begun.scope, condition):
            self._journal.note(begun, done=False)
        if command and (problem := await command.problem(begun.about, self.folder)) is not None:
            told = f"the setup of the {begun.name} {problem}"
            raise TrialError(told, stage="context", kind="hook_failed", retryable=True)

    async def _clean_up(self, name: str) -> None:
        """Clean up what has this name; a failure is warned of, and what was set up stays noted."""
        if (begun := self._journal.begun.get(name)) is None:
            return
        command = self.cleanup.of(begun.scope, begun.about.get("KEVAL_CONDITION"))
        problem = await to_the_end(command.problem(begun.about, self.folder)) if command else None
        if problem is None:
            self._journal.note(begun, done=True)
            return
        again = f"\n`{typed('clean', file.parent)}` tries again" if (file := self._journal.file) else ""
        warnings.warn(f"the cleanup of the {name} {problem}{again}", PluginWarning, stacklevel=2)
