"""The check of context providers names the rule that a provider breaks."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, ClassVar

import attrs
import pytest

from keval.plugin import Provision, ServerSpec, TrialInfo
from keval_testing import BrokenRulesError, check_context, stub_server
from keval_testing.context_kit import CONTEXT_RULES

WAYS = ("plain", "stateful", "slow", "failing", "hanging", "dying", "hostile")


def of(section: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a context's section."""
    return {name: value for name, value in section.items() if name != "type"}


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_the_stub_server_comes_up_whatever_it_does_to_calls(way: Any) -> None:
    check_context("stdio", options=of(stub_server(way)))


def stub(way: Any = "plain", name: str = "stub") -> ServerSpec:
    section = stub_server(way)
    return ServerSpec(name, "stdio", command=section["command"], args=tuple(section["args"]))


@attrs.frozen
class Notes:
    """Tells agents a note, and gives them a server."""

    note: str = "Be brief."

    @asynccontextmanager
    async def start(self, label: str) -> AsyncIterator[Any]:
        yield Source(self, (stub(),))

    def provision(self, trial: TrialInfo, servers: tuple[ServerSpec, ...]) -> Any:
        return Provision(f"{self.note} {trial.sample.id}", servers, {"noted": True})


@attrs.frozen
class Source:
    notes: Notes
    servers: tuple[ServerSpec, ...]

    @asynccontextmanager
    async def open(self, trial: TrialInfo) -> AsyncIterator[Any]:
        yield self.notes.provision(trial, self.servers)


def test_a_context_that_keeps_the_rules_passes() -> None:
    check_context(Notes, options={"note": "Be kind."})


class Given:
    def __init__(self, note: str) -> None:
        self.note = note


class Nothing:
    pass


class Bare(Notes):
    @asynccontextmanager
    async def start(self, label: str) -> AsyncIterator[Any]:
        yield "a source"


class Down(Notes):
    @asynccontextmanager
    async def start(self, label: str) -> AsyncIterator[Any]:
        raise OSError("no such file")
        yield


class Twins(Notes):
    @asynccontextmanager
    async def start(self, label: str) -> AsyncIterator[Any]:
        yield Source(self, (stub(), stub()))


class Other(Notes):
    def provision(self, trial: TrialInfo, servers: tuple[ServerSpec, ...]) -> Any:
        return Provision("", (attrs.evolve(servers[0], name="another"),))


class Text(Notes):
    def provision(self, trial: TrialInfo, servers: tuple[ServerSpec, ...]) -> Any:
        return "Be brief."


class Failing(Notes):
    def provision(self, trial: TrialInfo, servers: tuple[ServerSpec, ...]) -> Any:
        return Provision(trial.sample.facts["capital"], servers)


class Unwritable(Notes):
    def provision(self, trial: TrialInfo, servers: tuple[ServerSpec, ...]) -> Any:
        return Provision("", servers, {"seen": {1, 2}})


class Numbered(Notes):
    numbers: ClassVar[Iterator[int]] = itertools.count()

    def provision(self, trial: TrialInfo, servers: tuple[ServerSpec, ...]) -> Any:
        return Provision(f"You are number {next(self.numbers)}.", servers)


class Mixing(Notes):
    @asynccontextmanager
    async def start(self, label: str) -> AsyncIterator[Any]:
        yield MixingSource()


class MixingSource:
    """Keeps the facts of the trial that is open, in itself."""

    def __init__(self) -> None:
        self.servers = (stub(),)
        self.facts: dict[str, Any] = {}

    @asynccontextmanager
    async def open(self, trial: TrialInfo) -> AsyncIterator[Provision]:
        self.facts["id"] = trial.sample.id
        yield Provision("", self.servers, self.facts)


class Taking(Notes):
    def provision(self, trial: TrialInfo, servers: tuple[ServerSpec, ...]) -> Any:
        facts: Any = trial.sample.facts
        return Provision(str(facts.pop("capital", "")), servers)


class Hiding(Notes):
    @asynccontextmanager
    async def start(self, label: str) -> AsyncIterator[Any]:
        with suppress(Exception):
            yield Source(self, (stub(),))


class Deaf(Notes):
    @asynccontextmanager
    async def start(self, label: str) -> AsyncIterator[Any]:
        with suppress(asyncio.CancelledError):
            yield Source(self, (stub(),))


class Refusing(Notes):
    @asynccontextmanager
    async def start(self, label: str) -> AsyncIterator[Any]:
        yield Source(self, (stub("refusing"),))


class Littering(Notes):
    @asynccontextmanager
    async def start(self, label: str) -> AsyncIterator[Any]:
        os.environ["NOTES"] = str(id(self))
        yield Source(self, (stub(),))


class Tasking(Notes):
    tasks: ClassVar[list[Any]] = []

    @asynccontextmanager
    async def start(self, label: str) -> AsyncIterator[Any]:
        self.tasks.append(asyncio.create_task(asyncio.sleep(60)))
        yield Source(self, (stub(),))


PLANTED: Mapping[str, list[type]] = {
    "options": [Given],
    "seam": [Nothing],
    "comes up": [Bare, Down],
    "servers": [Twins, Other],
    "provision": [Text, Failing, Unwritable],
    "determinism": [Numbered],
    "concurrency": [Mixing],
    "input unchanged": [Taking],
    "errors pass": [Hiding],
    "cancellation": [Deaf],
    "tools": [Refusing],
    "nothing left behind": [Littering, Tasking],
}


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "context"), [(rule, each) for rule, planted in PLANTED.items() for each in planted])
def test_a_context_that_breaks_a_rule_is_told_which(rule: str, context: type) -> None:
    with pytest.raises(BrokenRulesError) as caught:
        check_context(context)

    assert (rule,) == caught.value.rules, str(caught.value)
    assert CONTEXT_RULES[rule] in str(caught.value)


def test_every_rule_is_planted_once() -> None:
    assert set(CONTEXT_RULES) == set(PLANTED)
