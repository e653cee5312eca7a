"""The check of context providers."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Mapping
from typing import Any

import attrs

from keval import Sample
from keval.errors import PluginError, PreflightError
from keval.execute.bringup.servers import server_proxy
from keval.seams.contexts import Provision, ServerSpec, ServerUse, TrialInfo
from keval.seams.interfaces import ContextSource
from keval.store.serialization import dump, to_plain
from keval_testing.subject import Subject, check_cancellation, excerpt, rules_of, run_checks
from keval_testing.unusual_trials import odd_trials

CONTEXT_RULES = rules_of("context")
"""The rules of context providers, each with how to mend one that breaks it."""


def check_context(context: str | type | object, *, options: Mapping[str, Any] | None = None) -> None:
    """Check a context provider, given by its name, as a class or as an instance, with trials of odd samples.

    `options` are those of a config. Its servers are started and asked for their tools where keval-mcp is installed.

    Raises:
        BrokenRulesError: it breaks rules; the message names each one, what was seen, and how to mend it.
        PluginError: no such context provider is installed, or `options` do not construct it.
    """
    subject = Subject.of("keval.contexts", context, options, CONTEXT_RULES)
    if subject.check_options():
        check = _Check(subject)
        run_checks(subject, check.first_use(), check.run)
    subject.finish()


def _trials() -> list[TrialInfo]:
    samples = [trial.sample for trial in odd_trials()]
    return [TrialInfo(f"agent/condition/{each.id}/1", each, "agent", "condition") for each in samples]


class _RaisedInBlockError(Exception):
    pass


@attrs.frozen
class _Check:
    subject: Subject

    async def first_use(self) -> None:
        """Bring it up once with one trial, and what it gives."""
        try:
            async with self.subject.new().start("context") as source:
                if not isinstance(source, ContextSource):
                    self.subject.broken("comes up", f"`start` yields {excerpt(source)}, which is no ContextSource")
                    return
                names = [server.name for server in source.servers]
                for name in {name for name in names if names.count(name) > 1}:
                    self.subject.broken("servers", f"several servers have the name {name!r}")
                await self._check_tools(source)
                async with source.open(_trials()[0]):
                    pass
        except Exception as error:  # noqa: BLE001 - what a plugin raises is what is looked for
            self.subject.broken("comes up", f"it raised {excerpt(error)}")

    async def run(self) -> None:
        async with self.subject.new().start("context") as source:
            names = [server.name for server in source.servers]
            alone: dict[str, object] = {}
            for trial in _trials():
                before = _content(trial.sample)
                given = await _given(source, trial)
                if _content(trial.sample) != before:
                    self.subject.broken("input unchanged", f"it changed the sample with {trial.sample.id}")
                self._check_provision(given, names, f"for {trial.sample.id}")
                alone[trial.id] = _told(given)
            if self.subject.found:
                return
            again = [attrs.evolve(trial, attempt=2) for trial in reversed(_trials())]
            for trial in again:
                told = _told(await _given(source, trial))
                self._compare("determinism", f"attempt 2 for {trial.sample.id}", alone[trial.id], told)
            if not self.subject.found:  # or else what differs would have two names
                together = await asyncio.gather(*(_given(source, trial, others=len(again)) for trial in _trials()))
                for trial, given in zip(_trials(), together, strict=True):
                    self._compare("concurrency", f"{trial.sample.id}, with others", alone[trial.id], _told(given))
            await self._check_errors(source)
            await check_cancellation(self.subject, lambda: _held(source))
        await check_cancellation(self.subject, self._started)

    async def _check_tools(self, source: ContextSource) -> None:
        """Start each server as a run does, and look at its tools, if the package that does so is installed."""
        try:
            proxy = server_proxy()
        except PluginError:
            return
        for server in source.servers:
            if isinstance(server, ServerSpec):
                try:
                    async with proxy.connect(ServerUse(server)) as connected:
                        tools = connected.tool_listing.tools
                except PreflightError as error:
                    self.subject.broken("tools", f"the server {server.name!r} does not come up: {excerpt(error)}")
                else:
                    if not tools:
                        self.subject.broken("tools", f"the server {server.name!r} lists no tool")

    def _check_provision(self, given: object, names: list[str], where: str) -> None:
        if isinstance(given, BaseException):
            self.subject.broken("provision", f"{where} it raised {excerpt(given)}")
        elif not isinstance(given, Provision) or not isinstance(given.instructions, str):
            self.subject.broken("provision", f"{where} it yielded {excerpt(given)}")
        else:
            found = [server.name for server in given.servers]
            if found != names:
                self.subject.broken("servers", f"{where} the servers are {found}, and those of the source are {names}")
            try:
                if to_plain(given.facts) != given.facts:
                    self.subject.broken("provision", f"{where} the facts come back from JSON as others")
            except (TypeError, ValueError) as error:
                self.subject.broken("provision", f"{where} the facts cannot be written: {error}")

    def _compare(self, rule: str, what: str, alone: object, told: object) -> None:
        if alone != told:
            self.subject.broken(rule, f"{what}, got {excerpt(told)} instead of {excerpt(alone)}")

    async def _check_errors(self, source: ContextSource) -> None:
        """Check that what is raised in a block passes the context manager around it."""
        for where, entered in (("open", source.open(_trials()[0])), ("start", self.subject.new().start("context"))):
            try:
                async with entered:
                    raise _RaisedInBlockError
            except _RaisedInBlockError:
                continue
            except Exception as error:  # noqa: BLE001 - what a plugin raises is what is looked for
                self.subject.broken(
                    "errors pass", f"`{where}` raised {excerpt(error)} in place of an error in its block"
                )
                continue
            self.subject.broken("errors pass", f"`{where}` hides an error that was raised in its block")

    async def _started(self) -> None:
        async with self.subject.new().start("context"):
            await asyncio.Event().wait()


async def _held(source: ContextSource) -> None:
    async with source.open(_trials()[0]):
        await asyncio.Event().wait()


async def _given(source: ContextSource, trial: TrialInfo, others: int = 0) -> object:
    """Return what the context gives to a trial, held while `others` are given theirs; or what it raised."""
    try:
        async with source.open(trial) as provision:
            for _ in range(others):
                await asyncio.sleep(0)
            if not isinstance(provision, Provision):
                return provision
            # As they are now: a context may change what it shares between trials.
            return attrs.evolve(provision, facts=copy.deepcopy(provision.facts))
    except Exception as error:  # noqa: BLE001 - what a plugin raises is what is looked for
        return error


def _told(given: object) -> object:
    """Return what an agent or a metric is told of a provision."""
    return (given.instructions, dict(given.facts)) if isinstance(given, Provision) else given


def _content(sample: Sample) -> bytes:
    return dump(to_plain(sample))
