"""A context that is up without a run: for any MCP client, or to list the tools of its servers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import attrs

from keval.config.evaluation import Evaluation, Execution
from keval.config.secrets import learn_config
from keval.errors import PluginError, PreflightError, Problem, suggestion
from keval.execute.bringup.preflight import open_context
from keval.execute.bringup.resources import ResourceScope
from keval.execute.bringup.servers import OpenedContext
from keval.execute.models.exchange import all_of, learn_keys, resolve_models
from keval.plan.construct import Constructor, contexts_of
from keval.plan.plan import ResolvedPlugin
from keval.records.servers import ContextToolListings, McpServer
from keval.records.trial import Sample
from keval.redaction import Redactor
from keval.seams import registry
from keval.seams.contexts import ServerSpec, TrialInfo, works_in_workspace
from keval.seams.workspaces import TaskMaker, TextContext, WorkspaceProvider


@attrs.define(eq=False)
class ServedContext:
    """A context that is up, changed as its config says. Make one with `ServedContext.open`."""

    label: str
    _opened: OpenedContext
    _execution: Execution
    _plugin: Any
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
            # As for one trial: no tool is called to learn whether sessions could share the server.
            opened = await open_context(context, evaluation, scope, redactor, ahead=1)
            endpoints = await resolve_models([context], evaluation, scope)
            learn_keys(redactor, endpoints.values())
            for field, model in context.models.items():
                opened.models[field] = attrs.evolve(model, endpoint=endpoints[str(model)])
            yield cls(label, opened, evaluation.execution, context.plugin)
        finally:
            await scope.close()

    @property
    def servers(self) -> tuple[str, ...]:
        """The names of its servers behind the tap."""
        return tuple(self._opened.servers)

    @property
    def skills(self) -> Mapping[str, str]:
        """SKILL.md of each skill that it gives, by name; none of a context of another kind."""
        is_skills = isinstance(self._plugin, TextContext) and self._plugin.part == "skill"
        return self._plugin.texts() if is_skills else {}

    @asynccontextmanager
    async def open_servers(self, capabilities: Mapping[str, Any] | None = None) -> AsyncIterator[tuple[McpServer, ...]]:
        """Enter the context as one attempt at a trial does, with servers that nobody else uses where keval starts them.

        Those that keep trials apart are shared. `capabilities` are those of the client, if they are known.

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
                # One that keeps trials apart may need what was brought up for it.
                isolation = server.isolation if server.keeps_trials_apart else "trial"
                alone = self._opened.given(attrs.evolve(server, isolation=isolation), self._execution, trial)
                alone = attrs.evolve(alone, capabilities=capabilities)
                reached.append(await stack.enter_async_context(self._opened.servers[server.name].open(alone)))
            yield tuple(reached)


async def read_tool_listings(
    evaluation: Evaluation, labels: Sequence[str] = (), redactor: Redactor | None = None
) -> list[ContextToolListings]:
    """Start the contexts with these labels, or all of an evaluation, and return what their servers list.

    `redactor` learns the tokens for servers before they are used.

    Raises:
        ConfigError: the evaluation is wrong, or has no such context.
        PreflightError: a server does not come up; with every problem.
    """
    return await list_tools(make_contexts(evaluation, labels), evaluation, redactor)


async def list_tools(
    contexts: Sequence[ResolvedPlugin], evaluation: Evaluation, redactor: Redactor | None = None
) -> list[ContextToolListings]:
    """Start contexts, and return what their servers list. Raises PreflightError, as `read_tool_listings` does."""
    scope, redactor = ResourceScope(), redactor or Redactor()
    folders = {each.label: _workspace_for(each, evaluation) for each in contexts}
    try:
        opened = await all_of(
            [open_context(each, evaluation, scope, redactor, workspace=folders[each.label]) for each in contexts]
        )
    finally:
        await scope.close()
    return [
        ContextToolListings(
            context.label,
            context.component.name,
            found.tool_listings,
            context.origin,
            [change.as_config() for change in context.interventions],
        )
        for context, found in zip(contexts, opened, strict=True)
    ]


def _workspace_for(context: ResolvedPlugin, evaluation: Evaluation) -> WorkspaceProvider | None:
    """Return what makes the workspace of a condition with this context, if its server works in one."""
    if not works_in_workspace(context.plugin):
        return None
    try:
        maker: TaskMaker = registry.load(registry.find("keval.task_makers", "tasks"))()
    except PluginError as error:
        raise PreflightError(f"{context.place}: {error}") from error
    return maker.workspace_of(evaluation, context.label)


def make_contexts(evaluation: Evaluation, labels: Sequence[str] = ()) -> tuple[ResolvedPlugin, ...]:
    """Construct the contexts with these labels, or all of them. Raises ConfigError with every problem.

    What else an evaluation needs may be missing.
    """
    problems = [*evaluation.needing_no("dataset", "agents", "conditions").problems]
    known = [spec.label for spec in evaluation.contexts]
    for label in labels:
        if label not in known:
            hint = suggestion(label, known, "contexts")
            problems.append(Problem(f"--context {label}", f"no context named {label!r}{hint}"))
    wanted = labels or known
    # A context with `from:` is made of the one that it is from.
    needed = evaluation.with_bases(wanted)
    specs = tuple(spec for spec in evaluation.contexts if spec.label in needed)
    # Conditions may name contexts that are not made here.
    constructor = Constructor(attrs.evolve(evaluation, contexts=specs, conditions={}), problems)
    contexts = contexts_of(constructor)
    constructor.finish()
    return tuple(contexts[label] for label in known if label in wanted)
