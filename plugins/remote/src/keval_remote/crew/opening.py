"""The crew of a run: what its workers elsewhere are brought up with, and whom they tell."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

from keval.config.variables import variable, variables_in
from keval.plan.plan import Plan, ScoringPlan
from keval.records.manifest import Manifest, WorkerEntry
from keval.run.active_run import ActiveRun
from keval.seams import registry
from keval.seams.distribution import CrewExecutor, CrewOrder, CrewWatcher
from keval_remote.crew.grader import CrewGrader


@asynccontextmanager
async def crew(run: ActiveRun, executor: CrewExecutor, *, is_new: bool = False) -> AsyncIterator[None]:
    """Bring up workers elsewhere for the block. A run that `is_new` is removed if it cannot.

    Raises PreflightError.
    """

    def worker_changed(worker: WorkerEntry) -> None:
        run.hooks.announce("keval_worker_changed", worker=worker)

    watcher = CrewWatcher(worker_changed, run.tell_endpoint)
    async with AsyncExitStack() as stack:
        try:
            workers = await stack.enter_async_context(executor.open(_order(run.plan, run.manifest), watcher))
        except BaseException:
            if is_new:
                run.writer.remove()
            raise
        run.crew, run.crew_grader = workers, partial(CrewGrader, run, workers)
        yield


def _order(plan: Plan | ScoringPlan, manifest: Manifest) -> CrewOrder:
    if not isinstance(plan, Plan):
        return CrewOrder(manifest, _variables(plan), scoring=True)
    in_order = plan.shuffled
    needed = in_order or any(agent.prerecorded for agent in plan.agents)
    sample_ids = plan.dataset.samples.ids if needed else ()
    return CrewOrder(manifest, _variables(plan), sample_ids=sample_ids, in_order=in_order)


def _variables(plan: Plan | ScoringPlan) -> dict[str, str]:
    """Return the variables that the config names, and those in which model providers find keys and base URLs."""
    names = [*variables_in(plan.evaluation.source.data)]
    for provider in {model.provider for item in plan.askers for model in item.unserved.values()}:
        found = registry.load(registry.find("keval.models", provider))()
        names += (*getattr(found, "key_variables", ()), *getattr(found, "url_variables", ()))
    return {name: value for name in dict.fromkeys(names) if (value := variable(name)) is not None}
