"""Evaluations from Python: the same as `keval run`, in one call, for scripts, notebooks and tests."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, TypeVar

from keval.config.evaluation import Evaluation
from keval.config.load import load, read_evaluation
from keval.config.source import Source
from keval.execute.bringup.resources import reach_loopback
from keval.plan.build import make_plan
from keval.run.active_run import RunOptions
from keval.run.flow import run_plan
from keval.run.select import Selection, select
from keval.seams.results import results_folder
from keval.store.run import Run, find_run
from keval_analysis.options import with_more_gates
from keval_mcp.ablation import ablating, with_ablations

T = TypeVar("T")


def evaluate(
    config: str | Path | Mapping[str, Any],
    *,
    agents: Sequence[str] = (),
    conditions: Sequence[str] = (),
    metrics: Sequence[str] = (),
    judges: Sequence[str] = (),
    models: Mapping[str, str] | None = None,
    plugins: Sequence[str] = (),
    samples: Sequence[str] = (),
    limit: int | None = None,
    repetitions: int | None = None,
    judge_repetitions: int | None = None,
    max_concurrent: int | None = None,
    gates: Sequence[str] = (),
    ablate: Sequence[str] = (),
    hooks: Sequence[object] = (),
    results: str | Path = "results",
    record: bool = False,
    replay: str | Path | None = None,
    replay_misses: Literal["fail", "live"] = "fail",
) -> Run:
    """Run an evaluation and return its run, which is kept under `results`, a folder or a URL.

    `config` is the path of a YAML file, or what such a file would hold; paths in a mapping start from the working
    directory. What narrows it is as the flags of `keval run`: labels of agents, conditions and judges, names of metrics
    and hook plugins, ids of `samples`, and `models` from a label to `provider/name`. `gates` are added to the config's.
    `hooks` are objects with methods marked `@keval.plugin.hookimpl`. With `replay`, a recorded run is played.

    Failed trials and gates raise nothing: `run.written_summary()` has them. It can be called where an event loop runs,
    as in a notebook; the evaluation then has a thread and a loop of its own.

    Raises:
        ConfigError: the config, its dataset or what narrows it is wrong; it has every problem.
        PreflightError: a model or a server cannot be reached.
        RunError: the results cannot be written, or there is no such recording.
    """
    selection = Selection(
        agents=tuple(agents),
        conditions=tuple(conditions),
        metrics=tuple(metrics),
        judges=tuple(judges),
        plugins=tuple(plugins),
        models=tuple(f"{label}={model}" for label, model in (models or {}).items()),
        sample_ids=tuple(samples),
        limit=limit,
        repetitions=repetitions,
        judge_repetitions=judge_repetitions,
        max_concurrent=max_concurrent,
    )

    def changed(evaluation: Evaluation) -> Evaluation:
        evaluation = with_more_gates(evaluation, tuple(gates)) if gates else evaluation
        return ablating(evaluation, ablate) if ablate else evaluation

    reach_loopback(os.environ)
    root = results_folder(results)
    options = RunOptions([(f"hooks[{number}]", hook) for number, hook in enumerate(hooks)], record=record)
    if replay is None:
        return _to_end(lambda: _run(changed(select(_read(config), selection)), root, options))
    if record:
        raise ValueError(
            "a replay calls no model or server that `record` could record; `replay_misses='live'` records by itself"
        )
    if not isinstance(config, str | Path):
        raise TypeError("a replay takes the path of a config, and no mapping")
    from keval_replay.replay import replay_run
    from keval_replay.replay_plan import planned_replay  # only a replay reads recordings

    recorded = find_run(str(replay), root)
    with planned_replay(Path(config), selection, recorded, replay_misses, options.redactor, changed=changed) as (
        plan,
        played,
    ):
        run, _ = _to_end(lambda: replay_run(played, plan, root, options))
        return run


def _read(config: str | Path | Mapping[str, Any]) -> Evaluation:
    if isinstance(config, str | Path):
        return load(Path(config))
    return read_evaluation(Source("the config", Path.cwd(), dict(config)))


async def _run(evaluation: Evaluation, root: Path, options: RunOptions) -> Run:
    evaluation = await with_ablations(evaluation)
    run, _ = await run_plan(make_plan(evaluation), root, options)
    return run


def _to_end(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine to its end, in a thread of its own if this one's event loop is busy."""
    loop = None
    with suppress(RuntimeError):
        loop = asyncio.get_running_loop()
    if loop is None:
        return asyncio.run(work())
    task: asyncio.Task[T] | None = None

    async def main() -> T:
        nonlocal task
        task = asyncio.current_task()
        return await work()

    # Ctrl-C reaches this thread only, and leaving the block waits for the other one, which must be told to end.
    with ThreadPoolExecutor(1, thread_name_prefix="keval") as threads:
        future = threads.submit(lambda: asyncio.run(main()))
        try:
            return future.result()
        except KeyboardInterrupt:
            if task is not None:
                task.get_loop().call_soon_threadsafe(task.cancel)
            raise
