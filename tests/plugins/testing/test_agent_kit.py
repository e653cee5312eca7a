"""check_agent names the rule that an agent breaks, and passes one that breaks none."""

from __future__ import annotations

import asyncio
import os
import random
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, ClassVar

import attrs
import pytest

from keval import Message, Sample, Transcript, Usage
from keval.plugin import Context, Model, PluginError, TrialError
from keval.seams import registry
from keval_openai import OpenAI
from keval_testing import BrokenRulesError, Echo, ScriptedModel, calls_tools, check_agent, refuses, says
from keval_testing.agent_kit import AGENT_RULES

pytestmark = pytest.mark.slow

SLEEP = (sys.executable, "-S", "-c", "import time; time.sleep(60)")


@attrs.frozen
class Broken:
    """An adapter that works, and that a subclass breaks in one way."""

    model: Model

    async def run(self, sample: Sample, context: Context) -> Transcript:
        agent = OpenAI(model=self.model)
        try:
            return await agent.run(sample, context)
        finally:
            await agent.aclose()


class DropsResults(Broken):
    """Tells nothing of what tools return."""

    async def run(self, sample: Sample, context: Context) -> Transcript:
        transcript = await super().run(sample, context)
        context.builder._calls.clear()
        return attrs.evolve(transcript, tool_calls=())


class SwallowsErrors(Broken):
    """Returns an empty answer where the trial failed."""

    async def run(self, sample: Sample, context: Context) -> Transcript:
        with suppress(TrialError):
            return await super().run(sample, context)
        return context.builder.transcript()


class LeavesProcess(Broken):
    """Starts a program in each trial and does not end it."""

    started: ClassVar[list[subprocess.Popen[bytes]]] = []

    async def run(self, sample: Sample, context: Context) -> Transcript:
        self.started.append(subprocess.Popen(SLEEP))  # noqa: ASYNC220 - as careless code does
        return await super().run(sample, context)


class LeavesTask(Broken):
    """Begins a task in each trial and does not end it."""

    left: ClassVar[set[asyncio.Task[None]]] = set()

    async def run(self, sample: Sample, context: Context) -> Transcript:
        self.left.add(asyncio.create_task(asyncio.sleep(60)))
        return await super().run(sample, context)


class IgnoresPrompt(Broken):
    """Has a system prompt of its own."""

    async def run(self, sample: Sample, context: Context) -> Transcript:
        return await super().run(sample, attrs.evolve(context, instructions="Be nice."))


class MarksNothing(Broken):
    """Leaves out the headers that mark the trial."""

    async def run(self, sample: Sample, context: Context) -> Transcript:
        return await super().run(sample, attrs.evolve(context, model_headers={}))


class GoesOn(Broken):
    """Takes a cancellation for the end of the trial."""

    async def run(self, sample: Sample, context: Context) -> Transcript:
        with suppress(asyncio.CancelledError):
            return await super().run(sample, context)
        return context.builder.transcript()


class Deaf(Broken):
    """Does not hear that it is cancelled."""

    async def run(self, sample: Sample, context: Context) -> Transcript:
        with suppress(asyncio.CancelledError):
            return await super().run(sample, context)
        await asyncio.sleep(60)
        return context.builder.transcript()


class LeavesFiles(Broken):
    """Writes a file in each trial and does not remove it."""

    async def run(self, sample: Sample, context: Context) -> Transcript:
        tempfile.mkstemp(prefix="notes-")
        return await super().run(sample, context)


class MixesUp(Broken):
    """Keeps the context on the class, where trials find that of another."""

    shared: ClassVar[Context]

    async def run(self, sample: Sample, context: Context) -> Transcript:
        MixesUp.shared = context
        await asyncio.sleep(0)
        return await super().run(sample, MixesUp.shared)


class OneAtATime(Broken):
    """Lets trials wait for each other, and does not say so."""

    lock: ClassVar[asyncio.Lock]

    async def prepare(self) -> None:
        OneAtATime.lock = asyncio.Lock()

    async def run(self, sample: Sample, context: Context) -> Transcript:
        async with self.lock:
            return await super().run(sample, context)


class ChangesEnvironment(Broken):
    """Configures its SDK by the environment."""

    async def run(self, sample: Sample, context: Context) -> Transcript:
        os.environ["ACME_TRIAL"] = f"{random.random()}"
        return await super().run(sample, context)


class ForgetsTurns(Broken):
    """Asks everything in a session of its own."""

    async def run(self, sample: Sample, context: Context) -> Transcript:
        for question in sample.asked:
            await super().run(attrs.evolve(sample, question=question, turns=()), context)
        return context.builder.transcript()


class ForgetsHistory(Broken):
    """Begins every conversation anew."""

    async def run(self, sample: Sample, context: Context) -> Transcript:
        return await super().run(attrs.evolve(sample, history=()), attrs.evolve(context, history=()))


class AsksAgain(Broken):
    """Repeats a trial whose model failed, as an SDK with retries does."""

    async def run(self, sample: Sample, context: Context) -> Transcript:
        with suppress(TrialError):
            return await super().run(sample, context)
        return await super().run(sample, context)


class TellsNoKind(Broken):
    """Has one kind of failure for all."""

    async def run(self, sample: Sample, context: Context) -> Transcript:
        try:
            return await super().run(sample, context)
        except TrialError as error:
            raise TrialError(str(error), kind="failed") from error


class DrawsAtRandom(Broken):
    """Sends something that differs every time."""

    async def run(self, sample: Sample, context: Context) -> Transcript:
        earlier = (Message("user", f"My id is {random.random()}."), Message("assistant", "Hello."))
        return await super().run(attrs.evolve(sample, history=earlier), attrs.evolve(context, history=earlier))


class Prints(Broken):
    """Shows the key."""

    async def run(self, sample: Sample, context: Context) -> Transcript:
        assert self.model.endpoint is not None
        print("asking with", self.model.endpoint.api_key)  # noqa: T201 - as careless code does
        return await super().run(sample, context)


class PhonesHome(Broken):
    """Tells its vendor of each trial."""

    async def run(self, sample: Sample, context: Context) -> Transcript:
        with suppress(OSError):
            socket.getaddrinfo("telemetry.acme.example", 443)
        return await super().run(sample, context)


@attrs.frozen
class TakesAnything(Broken):
    """Has an option without a type."""

    extra: Any = None


class HidesErrors(Broken):
    """Tells the model only that a call failed."""

    async def run(self, sample: Sample, context: Context) -> Transcript:
        servers = tuple(attrs.evolve(server, channel=Hiding(server.channel)) for server in context.servers)
        return await super().run(sample, attrs.evolve(context, servers=servers))


@attrs.frozen
class Hiding:
    """A way to a server that hides what it says of errors."""

    channel: Any

    def __getattr__(self, name: str) -> Any:
        return getattr(self.channel, name)

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        result: Mapping[str, Any] = await self.channel.call_tool(name, arguments)
        return {**result, "content": [{"type": "text", "text": "failed"}]} if result.get("isError") else result


class ForgetsToWait(Broken):
    """Does not say what the endpoint asks for."""

    async def run(self, sample: Sample, context: Context) -> Transcript:
        try:
            return await super().run(sample, context)
        except TrialError as error:
            error.retry_after = None
            raise


def telling(change: Callable[[Transcript], Transcript]) -> type[Broken]:
    """An adapter that tells of its trials otherwise than they were."""

    class Telling(Broken):
        async def run(self, sample: Sample, context: Context) -> Transcript:
            return change(await super().run(sample, context))

    return Telling


def without_first_text(transcript: Transcript) -> Transcript:
    kept = tuple(each for each in transcript.messages if each.text != "Let me add.")
    return attrs.evolve(transcript, messages=kept)


def whole(transcript: Transcript) -> Transcript:
    if transcript.truncated:
        raise TrialError("the answer is not whole")
    return transcript


BROKEN: list[tuple[type[Broken], set[str]]] = [
    (DropsResults, {"answer", "tool errors", "calls of one reply"}),
    (SwallowsErrors, {"model errors", "no answer", "bad reply"}),
    (LeavesProcess, {"nothing left behind", "cancellation"}),
    (LeavesFiles, {"nothing left behind", "cancellation"}),
    (LeavesTask, {"nothing left behind", "cancellation"}),
    (IgnoresPrompt, {"prompt"}),
    (MarksNothing, {"model headers"}),
    (GoesOn, {"cancellation"}),
    (Deaf, {"cancellation"}),
    (MixesUp, {"trials at once"}),
    (OneAtATime, {"trials at once"}),
    (ChangesEnvironment, {"nothing left behind"}),
    (ForgetsTurns, {"turns"}),
    (ForgetsHistory, {"history"}),
    (AsksAgain, {"model errors"}),
    (TellsNoKind, {"model errors", "why no answer", "bad reply"}),
    (DrawsAtRandom, {"same requests"}),
    (Prints, {"key kept secret"}),
    (PhonesHome, {"no other address"}),
    (TakesAnything, {"options"}),
    (HidesErrors, {"tool errors told"}),
    (ForgetsToWait, {"retry after"}),
    (telling(without_first_text), {"texts beside calls"}),
    (telling(lambda transcript: attrs.evolve(transcript, tools=None)), {"offered tools"}),
    (telling(lambda transcript: attrs.evolve(transcript, model_calls=None)), {"model calls"}),
    (telling(lambda transcript: attrs.evolve(transcript, usage=Usage(0, 0))), {"odd usage", "model calls"}),
    (telling(lambda transcript: attrs.evolve(transcript, truncated=False)), {"truncated"}),
    (telling(whole), {"text that ended early"}),
]


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Wait for what is left behind on purpose no longer than needed, and end it after the test."""
    for name in ("_SETTLES", "_ENDS", "_MEET"):
        monkeypatch.setattr(f"keval_testing.agent_conduct.{name}", 0.3)
    os.environ["ACME_TRIAL"] = "none"
    yield
    del os.environ["ACME_TRIAL"]
    for process in LeavesProcess.started:
        process.kill()
        process.wait()
    LeavesProcess.started.clear()


@pytest.mark.usefixtures("ended")
@pytest.mark.parametrize(("agent", "rules"), BROKEN)
def test_a_broken_agent_is_told_by_the_rules_that_it_breaks(agent: type[Broken], rules: set[str]) -> None:
    with pytest.raises(BrokenRulesError) as failure:
        check_agent(agent)

    assert rules <= {*failure.value.rules}, failure.value
    assert all(each.what and each.remedy for each in failure.value.broken)


def test_every_rule_is_broken_by_some_agent() -> None:
    assert {*AGENT_RULES, "options"} == {rule for _, rules in BROKEN for rule in rules}


def test_a_whole_agent_passes_by_name_as_a_class_and_as_an_instance() -> None:
    assert {} == check_agent("openai", options={"api": "responses"}) == check_agent(Broken)
    assert {} == check_agent(Broken(Model("acme", "any")))


def test_what_an_agent_cannot_keep_is_not_checked_and_given_back_with_its_reason() -> None:
    cannot = {"prompt": "it has a prompt of its own", "trials at once": "it has a prompt of its own"}

    assert cannot == check_agent(IgnoresPrompt, cannot=cannot)
    with pytest.raises(ValueError, match="agents have no rule 'promt'; did you mean 'prompt'"):
        check_agent(Broken, cannot={"promt": "a slip"})


def test_an_agent_without_a_model_is_checked_by_the_rules_that_need_no_script() -> None:
    skipped = check_agent(Echo)

    assert {"nothing left behind", "trials at once", "no other address"} == {*AGENT_RULES} - {*skipped}


def test_what_serves_the_model_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = {**registry._entry_points(), "keval.proxies": []}
    monkeypatch.setattr(registry, "_entry_points", lambda: entries)
    registry.components.cache_clear()

    try:
        with pytest.raises(PluginError, match="comes with keval-mcp, which is not installed: `"):
            check_agent(Broken)
    finally:
        monkeypatch.undo()
        registry.components.cache_clear()


async def ask(model: Model, *questions: str) -> list[str]:
    agent = OpenAI(model=model)
    try:
        return [(await agent.run(Sample("s", question), Context())).output for question in questions]
    finally:
        await agent.aclose()


def test_a_scripted_model_gives_its_replies_in_order_and_keeps_the_requests(scripted_model: ScriptedModel) -> None:
    script = scripted_model(says("One."), lambda request: says(f"You said {request.messages[-1].text}", delay=0.01))

    assert ["One.", "You said Two?"] == asyncio.run(ask(script.model, "One?", "Two?"))
    assert [("openai-chat", "One?"), ("openai-chat", "Two?")] == [
        (request.wire, request.messages[-1].text) for request in script.requests
    ]
    with pytest.raises(TrialError, match="the script of this model has no further reply"):
        asyncio.run(ask(script.model, "Three?"))


def test_scripts_are_kept_apart_by_their_keys(scripted_model: ScriptedModel) -> None:
    busy, calling = scripted_model(refuses(429, "busy", retry_after=3)), scripted_model(calls_tools(("add", {})))

    with pytest.raises(TrialError, match="busy") as failure:
        asyncio.run(ask(busy.model, "Well?"))
    with pytest.raises(TrialError, match="no further reply"):  # after the call, which no server runs
        asyncio.run(ask(calling.model, "Well?"))

    assert (3.0, 1, 2) == (failure.value.retry_after, len(busy.requests), len(calling.requests))
