"""An interactive run: a person asks, one question after the other, and it is written as any run is."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from importlib import import_module
from pathlib import Path

import attrs

from keval.config.evaluation import Evaluation
from keval.dataset.read import NO_DATASET
from keval.dataset.samples import Samples
from keval.execute.admission import Admission
from keval.execute.bringup.resources import reach_loopback
from keval.execute.bringup.servers import OpenedContext
from keval.execute.outbox import RunOutbox
from keval.execute.trial.worker import PlanWorker
from keval.plan.build import make_plan
from keval.plan.plan import Plan
from keval.records.manifest import DatasetEntry, Manifest, Rates
from keval.records.scores import ScoreLine
from keval.records.trial import Sample, Trial
from keval.redaction import Redactor
from keval.run import steps
from keval.run.active_run import ActiveRun, RunOptions, RunStart
from keval.score.backlog import late_judges
from keval.score.scoring import TrialGrader
from keval.seams.interfaces import ConversationalAgent
from keval.store.journal import Journal
from keval.store.run import Run
from keval.store.scores import Pass
from keval.store.serialization import read_trial
from keval_analysis.expectations import ExpectationCheck
from keval_analysis.findings.effects import Arm, Effect
from keval_analysis.findings.summary import ArmScore, ArmTrials
from keval_analysis.gates import with_gates
from keval_analysis.readings import review_findings
from keval_analysis.sections import Wanted
from keval_analysis.stats.pairs import Kind
from keval_analysis.stats.summarise import Summariser
from keval_viewer.feed import Feed
from keval_viewer.interactive.session import TrialConversation


@attrs.frozen
class OfferedTool:
    """A tool of a condition as agents get it, and which of the condition's contexts and their servers has it.

    `own_name` is its name in the context. `original` is the description that the server gives; `None` if it knows no
    tool of that name.
    """

    name: str
    own_name: str
    context: str
    server: str
    description: str
    original: str | None


@attrs.define(eq=False)
class InteractiveRun:
    """A run whose questions are asked one by one, while it goes on. Open one with `InteractiveRun.open`.

    What is asked is a sample: `prepared` looks up its facts, and `add_sample` writes it. `converse` begins a
    conversation with one agent under one condition; each of its turns is a trial that `begin_trial` announces, `write`
    writes and `score` scores. `arm_scores`, `arm_trials` and `differences` say what came out so far. Use it from one
    event loop.
    """

    _active: ActiveRun
    _plan: Plan
    _worker: PlanWorker
    _outbox: RunOutbox
    _scores: Pass
    _grader: TrialGrader
    _lines: dict[str, bytes]
    _summariser: Summariser
    _expectations: ExpectationCheck
    _busy: int = attrs.field(default=0, init=False)
    _since: float = attrs.field(default=0.0, init=False)
    _worked: float = attrs.field(default=0.0, init=False)

    @classmethod
    @asynccontextmanager
    async def open(
        cls, evaluation: Evaluation, root: Path, feed: Feed, after: InteractiveRun | None = None
    ) -> AsyncIterator[InteractiveRun]:
        """Bring an evaluation up and begin a run under `root`; at the end it is summarised, or removed if it is empty.

        `feed` gets the live events of all trials, without their secrets. The run `after` which this one comes, if any,
        has used up a part of the budget, and its secrets are known.

        Raises ConfigError, PreflightError, and RunError when the run's directory cannot be written.
        """
        import_module("keval_analysis.stats.findings")  # with NumPy, which takes time that answers would lose
        reach_loopback(os.environ)
        plan = _interactive_plan(evaluation)
        redactor = Redactor() if after is None else after._active.redact
        async with RunStart.open(plan, RunOptions([("keval/feed", feed)], redactor)) as start:
            up = await steps.bring_up(start)
            writer = start.create(root)
            await steps.freeze(start, writer, ())  # questions are added when they are asked
            with start.locked(writer):
                run = steps.describe(start, writer, up, plan)
                run.amend(dataset=DatasetEntry(str(plan.dataset.path or ""), samples=0), play=True)
                steps.begin(run)
                if after is not None:
                    run.run_budget = after._active.run_budget
                    # An edit may have brought other models, with other prices.
                    run.run_budget.price(run.manifest)
                run.run_budget.careful = False  # a question that does not fit is left out, and does not wait
                # A trial's line waits here until `write` reads it back, as it is in the run: without secrets.
                lines: dict[str, bytes] = {}
                async with Journal(run.run.trials_file) as journal:
                    admission = Admission(iter(()), start.options.stop, run.run_budget)
                    outbox = RunOutbox(writer, journal, run.redact, run.hooks, admission, written=lines.__setitem__)
                    with (
                        run.run.scores_file.scoring(run.spec, run.run.known_trials) as scores,
                        run.grader(scores.lacks) as grader,
                    ):
                        worker = PlanWorker(plan, run.ready, rates=Rates.of(run.manifest))
                        summariser, expectations = Summariser(run.manifest), ExpectationCheck.of(run.manifest)
                        found = cls(run, plan, worker, outbox, scores, grader, lines, summariser, expectations)
                        yield found
                if run.manifest.trials:
                    found._end()
                else:
                    writer.remove()

    @staticmethod
    def check(evaluation: Evaluation) -> None:
        """Raise ConfigError, with every problem, if an evaluation cannot be opened; nothing is started."""
        _interactive_plan(evaluation)

    @property
    def run(self) -> Run:
        """The run, for reading."""
        return self._active.run

    @property
    def manifest(self) -> Manifest:
        """What the run is made of so far."""
        return self._active.manifest

    @property
    def dataset(self) -> Samples:
        """The samples of the evaluation's dataset, of which the run has none by itself; empty without a dataset."""
        return self._plan.dataset.samples

    def tools(self, condition: str) -> list[OfferedTool]:
        """Return the tools of a condition, context by context."""
        contexts = self._plan.evaluation.conditions[condition].contexts
        opened = self._active.ready.contexts[condition]
        return [tool for context, found in zip(contexts, opened, strict=False) for tool in _tools(context, found)]

    def is_conversational(self, agent: str) -> bool:
        """Return whether an agent can hold a conversation; else it is asked the whole of it again each time."""
        return isinstance(self._worker.ready.agents[agent], ConversationalAgent)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Count the time of the block to that in which the run was worked on; blocks at once count as one."""
        if not self._busy:
            self._since = time.perf_counter()
        self._busy += 1
        try:
            yield
        finally:
            self._busy -= 1
            if not self._busy:
                self._worked += time.perf_counter() - self._since

    async def prepared(self, sample: Sample) -> Sample:
        """Return a sample with what hook plugins know of it. Raises PreflightError."""
        (found,) = [each async for each in self._active.hooks.with_facts([sample], 1)]
        return found

    def add_sample(self, sample: Sample) -> Sample:
        """Write a sample that is about to be asked; returns it as it is written. Raises RunError."""
        run = self._active
        with run.writer.adding(run.redact) as add:
            redacted = add(sample)
        dataset = run.manifest.dataset
        run.amend(dataset=attrs.evolve(dataset, samples=(dataset.samples or 0) + 1))
        return self.run.sample(sample.id) if redacted else sample

    def budget_refusal(self, agent: str = "", condition: str = "") -> str:
        """Return why the budget lets no further trial begin, which the run then says, too; an empty text if it does."""
        run_budget = self._active.run_budget
        if run_budget.admits_trial(agent, condition):
            return ""
        run_budget.leave_out_trials(agent, condition)
        return run_budget.told()

    def begin_trial(self, agent: str, condition: str) -> None:
        """Note that another trial begins. Raises RunError."""
        run = self._active
        run.run_budget.begin_trial(agent, condition)
        run.amend(trials=run.manifest.trials + 1)
        run.writer.write_manifest(run.manifest)

    def converse(self, agent: str, condition: str) -> TrialConversation:
        """Return a conversation, which begins with the first question."""
        return TrialConversation(agent, condition, self._worker, self._outbox)

    async def write(self, trial: Trial, sample: Sample) -> Trial:
        """Write a trial; returns it as it is written, with the sample as it is written. Raises RunError."""
        await self._outbox.trial(trial)
        line = self._lines.pop(trial.id)
        written = read_trial(line, lambda _: sample, lambda _: trial.characteristics)
        self._summariser.add_trial(written)
        self._expectations.add(written)
        return written

    async def score(
        self, trial: Trial, keep: Callable[[list[ScoreLine]], object], idle: Callable[[], Awaitable[object]]
    ) -> None:
        """Score a trial by the metrics, then by one judge after the other; `keep` is given scores that are written.

        Judges that would lengthen the time of answers wait for `idle`. Raises RunError.
        """
        run, plan, found = self._active, self._plan, list[ScoreLine]()
        judges = [judge.label for judge in plan.scorers.judges]
        late = late_judges(plan.scorers.judges, plan.agents, run.ready.endpoints, run.start.budget)
        for turn, judge in enumerate([None, *judges] if trial.failure is None else []):
            if judge in late:
                await idle()
            # What is scored already is left out by the grader, so each turn adds one judge.
            lines = run.write_scores(self._scores, await self._grader.score(trial, without=judges[turn:]))
            self._scores.note(trial, lines)
            for line in lines:
                self._summariser.add_score(line)
            found += lines
            if lines:
                keep(lines)
        run.hooks.announce("keval_trial_scored", trial=trial, scores=found, late=False)

    def cost(self, trial: Trial) -> float | None:
        """Return what an answer cost in US dollars, with its attempts; `None` if that is unknown."""
        told = [*(attempt.transcript for attempt in trial.attempts), trial.transcript]
        return _sum(self._worker.rates.attempt(trial.agent, each) for each in told if each is not None)

    def judging_cost(self, scores: Iterable[ScoreLine]) -> float | None:
        """Return what the judgements behind these scores of a trial cost; `None` if that is unknown."""
        found = ((line.judge, line.judgement) for line in scores)
        # Each score of a judgement has it, and it was paid once.
        judged = {(judge, each.repetition): each for judge, each in found if judge and each}
        return _sum(self._worker.rates.judgement(judge, each) for (judge, _), each in judged.items())

    def arm_scores(self) -> tuple[ArmScore, ...]:
        """Return the mean of each arm by each scorer so far, with its interval."""
        return self._summariser.findings().arms()

    def arm_trials(self) -> tuple[ArmTrials, ...]:
        """Return what happened to the trials of each arm so far."""
        return self._summariser.trials()

    def differences(self, against: Arm) -> tuple[Effect, ...]:
        """Return how the other arms that were asked differ from one by each scorer.

        The figures are those of a report: questions are the unit, differences are paired by question, and their p is
        adjusted for how many there are. There are none while the arm itself was asked nothing.
        """
        asked = [Arm(arm.agent, arm.condition, self.manifest.run) for arm in self.arm_trials() if arm.trials]
        if against not in asked:
            return ()
        pairs: list[tuple[Kind, Arm, Arm]] = [
            ("condition" if arm.agent == against.agent else "agent", arm, against) for arm in asked if arm != against
        ]
        return self._summariser.findings().between(pairs)

    def _end(self) -> None:
        """Write what the manifest says at the end, and the summary. Raises RunError."""
        run = self._active
        run.conclude(run.run_budget.told(), round(self._worked, 3))
        summary = attrs.evolve(
            self._summariser.summary(),
            planned=run.manifest.trials,
            elapsed=run.manifest.elapsed,
            stopped=run.manifest.stopped,
            reviews=review_findings(run.run),
        )
        steps.finish(run, with_gates(run.run, summary, self._expectations))


def _interactive_plan(evaluation: Evaluation) -> Plan:
    """Construct what such a run needs. Its samples are none; those that can be asked are `plan.dataset.samples`.

    A missing dataset and missing scorers are not problems. A person decides how often something is asked, and a
    person's questions are no test, so that repetitions, gates and `ablate` are left out. Raises ConfigError.
    """
    asked = attrs.evolve(
        evaluation.needing_no("dataset"),
        sections=(evaluation.section(Wanted),),
        execution=attrs.evolve(evaluation.execution, num_repetitions=1),
    )
    plan = make_plan(asked, None if evaluation.dataset is not None else NO_DATASET, scored=False)
    return attrs.evolve(plan, samples=Samples.of(()))


def _tools(label: str, context: OpenedContext) -> Iterator[OfferedTool]:
    for listing in context.tool_listings:
        own = {alias: name for name, alias in context.aliases.get(listing.server, {}).items()}
        originals = {tool["name"]: tool for tool in listing.original or listing.definitions}
        for tool in listing.definitions:
            name = own.get(tool["name"], tool["name"])
            original = originals.get(name)
            known = None if original is None else original.get("description") or ""
            yield OfferedTool(tool["name"], name, label, listing.server, tool.get("description") or "", known)


def _sum(costs: Iterable[float | None]) -> float | None:
    known = [*costs]
    return None if None in known else sum(filter(None, known), 0.0)
