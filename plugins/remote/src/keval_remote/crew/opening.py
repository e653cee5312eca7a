"""The crew of a run: what its workers elsewhere are brought up with, whom they tell, and how they score.

What a trial lacks is decided and counted here, and scored by a worker elsewhere.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Container, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import attrs

from keval.config.variables import variable, variables_in
from keval.errors import TrialError
from keval.plan.plan import Plan, ResolvedPlugin, ScoringPlan
from keval.records.manifest import Manifest, WorkerEntry
from keval.records.scores import Judgement
from keval.records.trial import Trial
from keval.run.active_run import ActiveRun
from keval.score.judging import unscored
from keval.score.scoring import Lacks, ScoredTrial, score_of, written_score
from keval.seams import registry
from keval.seams.distribution import Crew, CrewExecutor, CrewOrder, CrewWatcher, WantedScore
from keval.seams.interfaces import ComparingJudge
from keval.store.serialization import read_score, trial_line


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


def _order(plan: ScoringPlan, manifest: Manifest) -> CrewOrder:
    if not isinstance(plan, Plan):
        return CrewOrder(manifest, _variables(plan), scoring=True)
    needed = any(agent.prerecorded for agent in plan.agents)
    return CrewOrder(manifest, _variables(plan), sample_ids=plan.dataset.samples.ids if needed else ())


def _variables(plan: ScoringPlan) -> dict[str, str]:
    """Return the variables that the config names, and those in which model providers find keys and base URLs."""
    names = [*variables_in(plan.evaluation.source.data)]
    for provider in {model.provider for item in plan.askers for model in item.unserved.values()}:
        found = registry.load(registry.find("keval.models", provider))()
        names += (*getattr(found, "key_variables", ()), *getattr(found, "url_variables", ()))
    return {name: value for name in dict.fromkeys(names) if (value := variable(name)) is not None}


@attrs.frozen
class CrewGrader:
    """Scores trials of a run as `Grader` does, any number of them concurrently."""

    run: ActiveRun
    crew: Crew
    lacks: Lacks

    async def score(self, trial: Trial, without: Container[str] = ()) -> ScoredTrial:
        """Make the scores that a trial lacks; see `TrialGrader`."""
        if trial.failure is not None:
            return ScoredTrial(trial)
        lines = list[bytes]()
        for judge, wanted in self._wanted(trial, without):
            if judge is None:
                lines += await self._made(trial, wanted)
            else:
                lines += await self._judged(trial, judge, wanted)
        return ScoredTrial(trial, tuple(map(read_score, lines)), tuple(lines))

    def _wanted(
        self, trial: Trial, without: Container[str]
    ) -> Iterator[tuple[ResolvedPlugin | None, list[WantedScore]]]:
        """Yield what metrics score at once, then what each judge grades at once."""
        scorers = self.run.plan.scorers
        metrics = [(item.label, None, 1) for item in scorers.metrics if self.lacks(trial, item.label, None, 1)]
        if metrics:
            yield None, [*metrics]
        rubrics = [rubric.name for rubric in scorers.rubrics]
        for judge in (item for item in scorers.judges if item.label not in without):
            label = judge.label
            times = max((self.run.spec.repetitions.get((name, label), 0) for name in rubrics), default=0)
            for repetition in range(1, times + 1):
                wanted = [(name, label, repetition) for name in rubrics if self.lacks(trial, name, label, repetition)]
                if wanted:
                    yield judge, [*wanted]

    async def _judged(self, trial: Trial, judge: ResolvedPlugin, wanted: Sequence[WantedScore]) -> Sequence[bytes]:
        if not await self.run.run_budget.begin_judgement(judge.label):
            error = TrialError("the budget of the run is used up", kind="budget")
            return self._unscored(trial, wanted, error)
        lines_made: Sequence[bytes] = ()
        try:
            compares = isinstance(judge.plugin, ComparingJudge) and trial.condition != judge.plugin.against
            # Judges that compare read it after the last trial.
            against = self.run.run.counterpart(trial, judge.plugin.against) if compares else None
            lines_made = await self._made(trial, wanted, against)
            return lines_made
        finally:
            # Each line of a judgement has the whole of it.
            self.run.run_budget.end_judgement(judge.label, read_score(lines_made[0]).judgement if lines_made else None)

    async def _made(self, trial: Trial, wanted: Sequence[WantedScore], against: Trial | None = None) -> Sequence[bytes]:
        other = None if against is None else trial_line(against)
        try:
            packed = await self.crew.score(trial_line(trial), trial.sample, wanted, other)
        except TrialError as error:
            return self._unscored(trial, wanted, error)
        self.run.redact.replaced.update(packed.replaced)
        if self.run.recording is not None:
            self.run.recording.write(packed.frames)
        return packed.lines

    def _unscored(self, trial: Trial, wanted: Sequence[WantedScore], error: TrialError) -> Sequence[bytes]:
        verdict, lines = unscored(error), list[bytes]()
        for name, judge, repetition in wanted:
            judgement = None if judge is None else Judgement(repetition, model_calls=0)
            score = score_of(trial, self.run.spec, name, verdict, judge=judge, judgement=judgement)
            lines.append(written_score(score)[1])
        return lines
