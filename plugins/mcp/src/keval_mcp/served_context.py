"""A served context: a context that is up without a run, for any MCP client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import attrs

from keval.config.evaluation import Evaluation, Execution
from keval.config.secrets import learn_config
from keval.execute.bringup.preflight import open_context
from keval.execute.bringup.resources import ResourceScope
from keval.execute.bringup.servers import OpenedContext
from keval.records.servers import McpServer
from keval.records.trial import Sample
from keval.redaction import Redactor
from keval.seams.contexts import ServerSpec, TrialInfo
from keval_mcp.tool_listings import make_contexts


@attrs.define(eq=False)
class ServedContext:
    """A context that is up, changed as its config says. Make one with `ServedContext.open`."""

    label: str
    _opened: OpenedContext
    _execution: Execution
    _count: int = attrs.field(default=0, init=False)

    @classmethod
    @asynccontextmanager
    async def open(cls, evaluation: Evaluation, label: str, redactor: Redactor) -> AsyncIterator[ServedContext]:
        """Bring up the context with this label, and hold it; `redactor` learns the secrets of the config.

        What else an evaluation needs may be missing.

        Raises:
            ConfigError: the config is wrong, or has no such context.
            PreflightError: a server does not come up.
        """
        learn_config(redactor, evaluation)
        (context,) = make_contexts(evaluation, [label])
        scope = ResourceScope()
        try:
            opened = await open_context(context, evaluation, scope, redactor)
            yield cls(label, opened, evaluation.execution)
        finally:
            await scope.close()

    @property
    def servers(self) -> tuple[str, ...]:
        """The names of its servers behind the tap."""
        return tuple(self._opened.servers)

    @asynccontextmanager
    async def open_servers(self) -> AsyncIterator[tuple[McpServer, ...]]:
        """Enter the context as one attempt at a trial does, with servers that nobody else uses where keval starts them.

        Raises:
            ServerLostError: a server does not come up.
        """
        self._count += 1
        trial = TrialInfo(f"visit/{self._count}", Sample("visit", ""), "client", self.label)
        async with AsyncExitStack() as stack:
            provision = await stack.enter_async_context(self._opened.source.open(trial))
            reached: list[McpServer] = []
            for server in provision.servers:
                if not isinstance(server, ServerSpec):
                    reached.append(server)
                    continue
                alone = attrs.evolve(self._opened.given(server, self._execution, trial), isolation="trial")
                reached.append(await stack.enter_async_context(self._opened.servers[server.name].open(alone)))
            yield tuple(reached)
