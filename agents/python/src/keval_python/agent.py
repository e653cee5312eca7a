"""The `python` agent: a function of the user's, called for every trial."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import ClassVar

import attrs

from keval import Sample, Transcript
from keval.plugin import API_WIRES, Api, Context, Conventions, Model, PreflightError, TrialError
from keval_python.conversation import FunctionConversation, call, completed, turns_unsupported
from keval_python.target import Target, check_target, load_target, target_file


@attrs.define
class Python:
    """Calls a function in keval's own process.

    `target` is `FILE.py:FUNCTION`, or `PACKAGE.MODULE:FUNCTION`. The function may be plain, which is called in a
    thread, asynchronous, or an asynchronous generator of texts. It takes the question, or the question and the history,
    or a `Sample` and a `Context`. It returns a text, a mapping with `answer`, or a `Transcript`.

    A function that takes a `Context` gets the `model` as `context.model`, to be reached by the protocol `api`.
    """

    requests_by_proxy: ClassVar[bool] = True
    usage_by_proxy: ClassVar[bool] = True
    flag_option: ClassVar[str] = "target"

    target: Path
    model: Model | None = attrs.field(default=None, metadata={"provider": "openai"})
    api: Api = "chat"
    _loaded: Target | None = attrs.field(default=None, init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        check_target(self.target)
        # The core adds the endpoint before the first trial: the moment to find that the model does not speak the API.
        if self.model is not None and self.model.endpoint is not None:
            self.model.reach(API_WIRES[self.api])

    async def prepare(self) -> None:
        """Import the target beside the event loop."""
        await self._ready()

    def own_files(self) -> Iterable[Path]:
        """Return the file of the target, if it is one; see `keval.plugin.MadeOfFiles`."""
        yield from [file] if (file := target_file(self.target)) else ()

    def conventions(self) -> Conventions:
        """Say that the function works in `context.workspace`, of which it is shown nothing; see `WorksInFolder`."""
        return Conventions()

    def servers_refusal(self) -> str | None:
        """Say why the function cannot be given MCP servers; see `keval.plugin.RefusesServers`."""
        return None if self._loaded is None else self._loaded.servers_refusal

    async def run(self, sample: Sample, context: Context) -> Transcript:
        """Call the function for a trial; see `keval.plugin.Agent`."""
        target = await self._ready()
        if target.form == "sample":
            return await self._run_sample(target, sample, context)
        if sample.turns and target.form == "question":
            raise turns_unsupported(target)
        async with self.open(attrs.evolve(context, history=sample.history)) as conversation:
            for text in sample.asked:
                await conversation.ask(text)
        return conversation.transcript()

    @asynccontextmanager
    async def open(self, context: Context) -> AsyncIterator[FunctionConversation]:
        """Open a conversation; see `keval.plugin.ConversationalAgent`."""
        yield FunctionConversation.begin(await self._ready(), context)

    async def _run_sample(self, target: Target, sample: Sample, context: Context) -> Transcript:
        if self.model is not None:
            context = attrs.evolve(context, model=self.model.access(API_WIRES[self.api], context.model_headers))
        if target.returns_transcript:
            returned = await call(target, sample, context, context=context)
            if not isinstance(returned, Transcript):
                problem = f"{target.name} returned {returned!r:.60}, though it is annotated to return a Transcript"
                raise TrialError(problem, kind="bad_answer")
            if not returned.tool_calls:
                context.builder.leave_calls_to_tap(context.servers)
            return completed(returned, context.builder.transcript())
        if sample.turns:
            raise turns_unsupported(target)
        return await FunctionConversation(target, context).ask_sample(sample)

    async def _ready(self) -> Target:
        if self._loaded is None:
            target = await asyncio.to_thread(load_target, self.target)
            if self.model is not None and target.form != "sample":
                raise PreflightError(
                    f"{target.name} takes no Context, which has the model; let it take a Sample and a Context, or leave"
                    " out `model`"
                )
            self._loaded = target
        return self._loaded
