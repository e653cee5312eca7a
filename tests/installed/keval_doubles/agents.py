"""Agents that do as the sample's metadata says."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs

from keval import Characteristics, Context, Model, ModelError, PreflightError, Sample, Transcript, TrialError


@attrs.define
class Scripted:
    """Answers `metadata.says`, or the question itself; fails, hangs or calls tools as `metadata` asks."""

    suffix: str = ""
    delay: float = 0.0
    characteristics: Characteristics = Characteristics(files=5, setup="medium")
    _tries: dict[str, int] = attrs.field(factory=dict, init=False, repr=False)

    async def run(self, sample: Sample, context: Context) -> Transcript:
        recorder, script = context.recorder, sample.metadata
        recorder.offered(script.get("offers", context.tools))
        self._tries[context.trial] = self._tries.get(context.trial, 0) + 1
        for text in sample.asked:
            with recorder.turn(text):
                if self.delay:
                    await asyncio.sleep(self.delay)
                if "calls" in script:
                    recorder.model_called()
                for call in script.get("calls", ()):
                    recorder.called(call["name"], call.get("arguments", {}))
                    recorder.returned(call.get("result"), error=call.get("error"), sent=call.get("sent", True))
                recorder.model_called()
                self._fail(script, self._tries[context.trial])
                if script.get("deaf"):
                    with suppress(asyncio.CancelledError):
                        await asyncio.sleep(0.2)
                if script.get("cancelled"):
                    raise asyncio.CancelledError
                if script.get("hang"):
                    await asyncio.Event().wait()
                if script.get("tells_context"):
                    recorder.said(f"{context.condition} {context.repetition} {context.attempt} {context.seed}")
                    continue
                half = "\ud83d" if script.get("half_a_pair") else ""
                recorder.said(f"{context.instructions}{script.get('says', text)}{half}{self.suffix}")
        return recorder.transcript()

    def _fail(self, script: Any, tries: int) -> None:
        if tries <= script.get("busy", 0):
            raise ModelError("too many requests", status=429, retry_after=script.get("retry_after"))
        if script.get("fail") == "bug":
            raise ZeroDivisionError("division by zero")
        if script.get("fail") == "grouped":
            raise ExceptionGroup("in a group", [ModelError("bad request", status=400)])
        if script.get("fail"):
            raise TrialError(script["fail"], kind="told")


@attrs.define
class Modelled:
    """Says which model and endpoint it was given; leaves a file behind when it is closed."""

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
        with context.recorder.turn(sample.question):
            context.recorder.said(f"{self.model} {url} {endpoint.api_key} {sorted(context.model_headers)}")
        return context.recorder.transcript()

    async def aclose(self) -> None:
        if self.closes:
            self.closes.touch()
