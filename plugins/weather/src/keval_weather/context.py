"""The weather server as a context: started with the run, shared by its trials, each with state of its own."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import IO, Any, Literal

import attrs
from attrs.validators import gt

from keval import Sample
from keval.plugin import (
    ContextSource,
    Isolation,
    McpServer,
    PreflightError,
    Provision,
    ServerSpec,
    Sharing,
    TrialInfo,
    supervised,
)
from keval_mcp import Http, Stdio, planned_sharing
from keval_weather.stored import StoredPreferences

_MODULE = ("-m", "keval_weather.server")
_INSTRUCTIONS = (
    "You have weather tools: look up the current weather or the forecast before you state a figure,"
    " and look up or update the user's preferences where they matter to the answer."
)
_UNKNOWN = "http://127.0.0.1/"  # its port is known when it is up
# What any process needs: a server sees nothing else of keval's environment.
_INHERITED_VARIABLES = {"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"}


@attrs.frozen(kw_only=True)
class Weather:
    """Gives agents the weather server: current weather, forecasts and user preferences.

    `transport` is how the server is spoken to. With `tap` off, agents connect to it directly. Trials share the server,
    which keeps their state apart; with `isolation: trial` each has a server of its own over stdio, or a session over
    http.
    `instructions` are added to the system prompt. Starting may take `startup_timeout` seconds, a call `timeout`. With
    stored `preferences`, every trial begins with those, beneath the sample's own, and metrics get them as facts.
    """

    transport: Literal["stdio", "http"] = "stdio"
    tap: bool = True
    isolation: Isolation = "auto"
    instructions: str = _INSTRUCTIONS
    startup_timeout: float = attrs.field(default=30.0, validator=gt(0))
    timeout: float = attrs.field(default=60.0, validator=gt(0))
    preferences: StoredPreferences | None = None

    @asynccontextmanager
    async def start(self, label: str) -> AsyncIterator[ContextSource]:
        """Offer the server to trials.

        When keval connects to it, PreflightError tells what it printed if it does not come up.
        """
        if self.transport == "stdio":
            server = Stdio(command=sys.executable, args=_MODULE, **self._common())
            async with server.start(label, facts=_facts, keeps_trials_apart=True) as source:
                yield self._remembering(source)
        else:
            http = Http(url=_UNKNOWN, **self._common())
            async with http.start(label, facts=_facts, keeps_trials_apart=True, bring_up=_served) as source:
                yield self._remembering(source)

    def planned_sharing(self) -> Sharing | None:
        """Return whether trials share the server, which keeps what each teaches it apart."""
        server = ServerSpec("", self.transport, tap=self.tap, isolation=self.isolation, keeps_trials_apart=True)
        return planned_sharing(server)

    def frozen_options(self) -> Mapping[str, Any]:
        """Return the preferences that were stored when the run began."""
        return {"preferences": {"content": self.preferences.content}} if self.preferences else {}

    def _remembering(self, source: ContextSource) -> ContextSource:
        return source if self.preferences is None else _Remembering(source, self.preferences)

    def _common(self) -> dict[str, Any]:
        names = ("tap", "isolation", "instructions", "startup_timeout", "timeout")
        return {name: getattr(self, name) for name in names}


def _facts(sample: Sample) -> dict[str, Any]:
    """Say what the server is told about a sample, besides which attempt at which trial it works for."""
    preferences = sample.facts.get("preferences")
    return {"preferences": dict(preferences) if isinstance(preferences, Mapping) else {}}


@attrs.frozen(eq=False)
class _Remembering:
    """Gives trials what a source gives, to samples with stored preferences beneath their own."""

    _source: ContextSource
    _stored: StoredPreferences

    @property
    def servers(self) -> Sequence[ServerSpec | McpServer]:
        return self._source.servers

    @asynccontextmanager
    async def open(self, trial: TrialInfo) -> AsyncIterator[Provision]:
        stored = self._stored.of(trial.agent, trial.condition)
        facts = {"preferences": stored | _facts(trial.sample)["preferences"]} if stored else {}
        sample = attrs.evolve(trial.sample, facts={**trial.sample.facts, **facts})
        async with self._source.open(attrs.evolve(trial, sample=sample)) as provision:
            yield attrs.evolve(provision, facts={**provision.facts, **facts})


@asynccontextmanager
async def _served(server: ServerSpec) -> AsyncIterator[ServerSpec]:
    """Run the server over HTTP on a free loopback port and yield it; it ends with the block, or with keval."""
    inherited = {name: value for name, value in os.environ.items() if name in _INHERITED_VARIABLES}
    with tempfile.TemporaryFile() as errors:
        process = await asyncio.create_subprocess_exec(
            *supervised((sys.executable, *_MODULE, "--transport=http", "--exit-with-stdin")),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            env=inherited,
            start_new_session=True,  # Ctrl-C in a terminal is for keval, which still needs the server to finish
        )
        try:
            address = await _address(server.name, process, server.startup_timeout, errors)
            yield attrs.evolve(server, url=f"http://127.0.0.1:{address}")
        finally:
            if process.returncode is None:
                process.kill()  # its state ends with the run, so there is nothing to wait for
            await process.wait()


async def _address(label: str, process: asyncio.subprocess.Process, patience: float, errors: IO[bytes]) -> str:
    """Read the port and path that the server announces. Raises PreflightError."""
    assert process.stdout is not None  # noqa: S101 - a pipe was asked for
    try:
        async with asyncio.timeout(patience):
            announced = json.loads(await process.stdout.readline())
            return f"{announced['port']}{announced['path']}"
    except (TimeoutError, ValueError, KeyError, TypeError) as error:
        errors.seek(0)
        said = errors.read().decode(errors="replace").strip().splitlines()[-20:]
        problem = f"did not start within {patience:g} s" if isinstance(error, TimeoutError) else "ended at its start"
        raise PreflightError("\n".join([f"server {label!r} {problem}; it said:", *(said or ["nothing"])])) from error
