"""Listing the tools of a config's servers, which are started for that alone."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from keval.config.evaluation import Evaluation
from keval.errors import PluginError, PreflightError, Problem, suggestion
from keval.execute.bringup.preflight import open_context
from keval.execute.bringup.resources import ResourceScope
from keval.execute.models.exchange import all_of
from keval.plan.construct import Constructor, contexts_of
from keval.plan.plan import ResolvedPlugin
from keval.records.servers import ContextToolListings
from keval.redaction import Redactor
from keval.seams import registry
from keval.seams.contexts import works_in_workspace
from keval.seams.workspaces import TaskMaker, WorkspaceProvider


async def read_tool_listings(
    evaluation: Evaluation, labels: Sequence[str] = (), redactor: Redactor | None = None
) -> list[ContextToolListings]:
    """Start the contexts with these labels, or all of an evaluation, and return what their servers list.

    `redactor` learns the tokens for servers before they are used.

    Raises:
        ConfigError: the evaluation is wrong, or has no such context.
        PreflightError: a server does not come up; with every problem.
    """
    contexts, scope, redactor = make_contexts(evaluation, labels), ResourceScope(), redactor or Redactor()
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
    problems = [*evaluation.needing_no("dataset", "agents").problems]
    known = [spec.label for spec in evaluation.contexts]
    for label in labels:
        if label not in known:
            hint = suggestion(label, known, "contexts")
            problems.append(Problem(f"--context {label}", f"no context named {label!r}{hint}"))
    wanted = labels or known
    needed = evaluation.with_bases(wanted)
    specs = tuple(spec for spec in evaluation.contexts if spec.label in needed)
    constructor = Constructor(attrs.evolve(evaluation, contexts=specs, conditions={}), problems)
    contexts = contexts_of(constructor)
    constructor.finish()
    return tuple(contexts[label] for label in known if label in wanted)
