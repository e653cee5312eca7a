"""Agents that do as the sample's metadata says."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

import attrs

from keval import Sample, Transcript, Usage
from keval.plugin import Context, Model, ModelError, PreflightError, TrialError, run_conversation
from keval_doubles.waiting import until_written


@attrs.define
class Scripted:
    """Answers `metadata.says`, or the question itself; fails, hangs or calls tools as `metadata` asks.

    With `until_scored` it answers when the run's scoring pass has so many scores.
    """

    characteristics: ClassVar[Mapping[str, Any]] = {"files": 5, "setup": "medium"}

    suffix: str = ""
    delay: float = 0.0
    _tries: dict[str, int] = attrs.field(factory=dict, init=False, repr=False)

    async def run(self, sample: Sample, context: Context) -> Transcript:
        builder, script = context.builder, sample.metadata
        if "returns" in script:
            return script["returns"]  # type: ignore[no-any-return]
        builder.offered(script.get("offers", context.tools))
        self._tries[context.trial] = self._tries.get(context.trial, 0) + 1
        for text in sample.asked:
            with builder.turn(text):
                if self.delay:
                    await asyncio.sleep(self.delay)
                calls = script.get("calls", ()) if context.attempt >= script.get("calls_from", 1) else ()
                usage = Usage(**script["usage"]) if "usage" in script else None
                if calls:
                    builder.model_called(None if script.get("usage_is_partial") else usage)
                for call in calls:
                    builder.called(call["name"], call.get("arguments", {}))
                    builder.returned(call.get("result"), error=call.get("error"), sent=call.get("sent", True))
                builder.model_called(usage)
                self._fail(script, self._tries[context.trial])
                if script.get("deaf"):
                    with suppress(asyncio.CancelledError):
                        await asyncio.sleep(0.2)
                if script.get("cancelled"):
                    raise asyncio.CancelledError
                if script.get("hang"):
                    await asyncio.Event().wait()
                if "until_scored" in script:
                    await until_written(".scores.*.jsonl", script["until_scored"])
                if "attaches" in script:
                    builder.said(builder.attach(script["attaches"].encode(), "text/plain"))
                    continue
                if script.get("tells_context"):
                    builder.said(f"{context.condition} {context.repetition} {context.attempt} {context.seed}")
                    continue
                half = "\ud83d" if script.get("half_a_pair") else ""
                builder.said(f"{context.instructions}{script.get('says', text)}{half}{self.suffix}")
        return builder.transcript()

    def _fail(self, script: Any, tries: int) -> None:
        if tries <= script.get("busy", 0):
            raise ModelError("too many requests", status=429, retry_after=script.get("retry_after"))
        if script.get("fail") == "bug":
            raise ZeroDivisionError(script.get("bug", "division by zero"))
        if script.get("fail") == "grouped":
            raise ExceptionGroup("in a group", [ModelError("bad request", status=400)])
        if script.get("fail"):
            raise TrialError(script["fail"], kind="told")


@attrs.define
class Paid(Scripted):
    """One whose model has a price."""

    applies_middleware: ClassVar[bool] = True  # no proxy stands in front of the endpoint that it never asks

    model: Model = attrs.field(kw_only=True)

    async def prepare(self) -> None:
        """Do nothing; a test may have something else done here, as whether a class has it is looked at once."""


@attrs.define
class Narrow:
    """Runs one trial at a time, and falls over when there are more."""

    _running: int = attrs.field(default=0, init=False)

    def max_concurrency(self) -> int:
        return 1

    async def run(self, sample: Sample, context: Context) -> Transcript:
        assert not self._running
        self._running += 1
        with context.builder.turn(sample.question):
            await asyncio.sleep(0.15)
            context.builder.said("done")
        self._running -= 1
        return context.builder.transcript()


@attrs.define
class Modelled:
    """Says which model and endpoint it was given; leaves a file behind when it is closed."""

    applies_middleware: ClassVar[bool] = True  # no proxy stands in front of the endpoint that it is given

    model: Model
    refuses: str | None = None
    closes: Path | None = None
    _prepared: bool = attrs.field(default=False, init=False)

    async def prepare(self) -> None:
        if self.refuses:
            raise PreflightError(self.refuses)
        self._prepared = True

    async def run(self, sample: Sample, context: Context) -> Transcript:
        assert self._prepared
        _, url, endpoint = self.model.reach("openai-chat", "gemini")
        with context.builder.turn(sample.question):
            context.builder.said(f"{self.model} {url} {endpoint.api_key} {sorted(context.model_headers)}")
        return context.builder.transcript()

    async def aclose(self) -> None:
        if self.closes:
            self.closes.touch()


class Proxied(Modelled):
    """One whose requests go through keval's proxy."""

    applies_middleware: ClassVar[bool] = False


@attrs.define
class Talker:
    """Holds conversations: it answers all that it was told so far, in two pieces if somebody reads along.

    At a message that is `fails_at` or `hangs_at` it does that.
    """

    fails_at: str | None = None
    hangs_at: str | None = None
    delay: float = 0.0

    async def run(self, sample: Sample, context: Context) -> Transcript:
        return await run_conversation(self, sample, context)

    @asynccontextmanager
    async def open(self, context: Context) -> AsyncIterator["Talk"]:
        yield Talk(self, context)


@attrs.define
class Talk:
    _agent: Talker
    _context: Context
    _told: list[str] = attrs.field(factory=list, init=False)

    async def ask(self, text: str) -> None:
        builder = self._context.builder
        builder.offered(self._context.tools)
        with builder.turn(text):
            await asyncio.sleep(self._agent.delay)
            if text == self._agent.hangs_at:
                builder.said("Let me think.")
                await asyncio.Event().wait()
            if text == self._agent.fails_at:
                raise TrialError("it broke", kind="told")
            self._told.append(text)
            said = " ".join(filter(None, (self._context.instructions, *self._told)))
            for piece in (said[:3], said[3:]) if self._context.streams else ():
                builder.streamed(piece)
            builder.model_called(Usage(10, 5))
            builder.said(said)


class Silent:
    """Holds conversations and never answers."""

    async def run(self, sample: Sample, context: Context) -> Transcript:
        return await run_conversation(self, sample, context)

    @asynccontextmanager
    async def open(self, context: Context) -> AsyncIterator["Silence"]:
        yield Silence()


class Silence:
    async def ask(self, text: str) -> None:
        await asyncio.Event().wait()
