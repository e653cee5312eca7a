"""A worker of a crew: brings up the plan of a manifest in its own process, runs and scores trials, and packs both.

It needs nothing of the process that wrote the manifest: samples come with each task.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

import attrs

from keval.config.load import rebuild, rebuild_scoring
from keval.config.secrets import learn_config
from keval.dataset.read import NO_DATASET
from keval.dataset.samples import Samples
from keval.errors import PreflightError
from keval.execute.bringup.description import check_tool_listings
from keval.execute.bringup.preflight import Ready, preflight
from keval.execute.bringup.resources import ResourceScope, reach_loopback
from keval.execute.packing import TrialPacker
from keval.execute.trial.worker import PlanWorker
from keval.plan.build import hook_plugins, make_plan, make_scoring_plan, section_hooks
from keval.plan.plan import Plan, ScoringPlan
from keval.records.manifest import Manifest, Rates
from keval.records.transcript import Blob
from keval.records.trial import Sample, Trial, TrialKey
from keval.redaction import Redactor
from keval.score.scoring import Grader, scorer_digests
from keval.seams.distribution import Limits, PackedScores, PackedTrial, WantedScore
from keval.seams.hooks import Hooks
from keval.seams.live_events import LiveEvent
from keval.seams.traffic import recorder
from keval.seams.use_meter import Unbounded
from keval.store.scores import ScoringSpec
from keval.store.serialization import read_trial


@asynccontextmanager
async def open_worker(
    manifest: Manifest, *, sample_ids: Sequence[str] = (), scoring: bool = False, limits: Limits | None = None
) -> AsyncIterator[CrewWorker]:
    """Bring up the plan of a manifest in this process; for `scoring` only what scores.

    `sample_ids` are those of the whole dataset, in its order, where the plan has recorded answers;
    see `keval.seams.distribution.CrewOrder`. `limits` hold for all workers of the run.

    Raises:
        ConfigError: the plan cannot be made again here, for example because a file or a plugin is missing.
        PreflightError: it cannot be brought up, or a server or a scorer is another one than the manifest says.
    """
    reach_loopback(os.environ)
    place, redact, scope = f"the manifest of {manifest.run}", Redactor(), ResourceScope()
    traffic = recorder(redact) if manifest.recording is not None else None
    evaluation = (rebuild_scoring if scoring else rebuild)(manifest, place)
    learn_config(redact, evaluation)
    plan: ScoringPlan
    if scoring:
        plan = make_scoring_plan(evaluation, manifest)
    else:
        known = manifest.dataset
        # The driver has read and checked the dataset; here only its order is needed.
        dataset = attrs.evolve(
            NO_DATASET, samples=Samples(sample_ids, _unread), checks=known.checks, workspaces=known.workspaces
        )
        plan = make_plan(evaluation, dataset, samples_checked=True)
    hooks = Hooks.of([*section_hooks(evaluation), *hook_plugins(plan.hooks)])
    try:
        ready = await preflight(plan, scope, redact, hooks, traffic=traffic, limits=limits)
        if not scoring:
            check_tool_listings(manifest, ready)
        worker = CrewWorker(manifest, plan, ready, redact)
        # The budget of judgements is held where they are asked for.
        with Grader.of(
            plan.scorers,
            ready.judges,
            plan.evaluation.execution,
            spec=_spec(manifest, plan, ready),
            lacks=worker.lacks,
            exchange=ready.exchange,
            run_budget=Unbounded(),
            counterpart=lambda trial, _: worker.against.get(trial.id),
            keep=worker.keep_judgement,
        ) as worker.grader:
            yield worker
    finally:
        await scope.close()


@attrs.define(eq=False)
class CrewWorker:
    """Runs trials, any number concurrently, and scores them. Secrets are replaced in all that it returns and tells.

    `listener` hears the live events of trials while it is set. `wanted` are the scores
    to make of each trial that is being scored, by its id, and `against` the trials that judges compare these with.
    """

    manifest: Manifest
    plan: ScoringPlan
    ready: Ready
    _redact: Redactor
    grader: Grader = attrs.field(init=False)
    wanted: dict[str, frozenset[WantedScore]] = attrs.field(factory=dict, init=False)
    against: dict[str, Trial] = attrs.field(factory=dict, init=False)
    _judgements: dict[str, list[bytes]] = attrs.field(factory=dict, init=False)
    _packer: TrialPacker = attrs.field(init=False)
    listener: Callable[[LiveEvent], object] | None = attrs.field(default=None, init=False)
    _worker: PlanWorker | None = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._packer = TrialPacker(self._redact)
        rates = Rates.of(self.manifest)
        self._worker = PlanWorker(self.plan, self.ready, rates=rates) if isinstance(self.plan, Plan) else None

    async def run(self, key: TrialKey, sample: Sample) -> PackedTrial:
        """Run one trial until it is answered or has failed for good.

        Raises:
            OutageError: the endpoint of the agent's model has been down for too long.
        """
        if self._worker is None:
            raise RuntimeError(f"the worker was brought up to score trials, and not to run {key.id}")
        packed, _ = self._packer.pack(await self._worker.run(key, sample, self))
        return attrs.evolve(packed, replaced=self._replaced())

    async def score(
        self, line: bytes, sample: Sample, wanted: Sequence[WantedScore], against: bytes | None = None
    ) -> PackedScores:
        """Make scores of a trial, given as its line and the sample as it was asked; see `keval.plugin.Crew`."""
        trial = self._read(line, sample)
        self.wanted[trial.id] = frozenset(wanted)
        if against is not None:
            self.against[trial.id] = self._read(against, sample)
        try:
            scored = await self.grader.score(trial)
        finally:
            del self.wanted[trial.id]
            self.against.pop(trial.id, None)
        lines = tuple(self._redact.lines(scored.written))
        return PackedScores(lines, b"".join(self._judgements.pop(trial.id, ())), self._replaced())

    def lacks(self, trial: Trial, metric: str, judge: str | None, repetition: int) -> bool:
        """Return whether a score is wanted of a trial."""
        return (metric, judge, repetition) in self.wanted.get(trial.id, ())

    def keep_judgement(self, trial: str, frame: bytes) -> None:
        """Keep the traffic of a judgement until its scores are packed."""
        self._judgements.setdefault(trial, []).append(frame)

    def _read(self, line: bytes, sample: Sample) -> Trial:
        agents = self.manifest.agents
        return read_trial(line, lambda _: sample, lambda agent: agents[agent].characteristics)

    def reopen(self) -> None:
        """Let judges ask endpoints anew that were given up."""
        self.ready.exchange.try_again("judge", self.ready.judges)

    def hidden(self, text: str) -> str:
        """Return a text with the secrets that the worker knows replaced."""
        return self._redact.text(text)

    @property
    def wants_events(self) -> bool:
        """Whether anybody listens to live events just now."""
        return self.listener is not None

    async def trial(self, trial: Trial) -> None:
        """Nothing: `run` returns the trial."""

    def event(self, event: LiveEvent) -> None:
        """Tell the listener of a live event; tokens that were had here are known to nobody else."""
        if self.listener is not None:
            self.listener(attrs.evolve(event, data=self._redact.data(dict(event.data))))

    def blob(self, blob: Blob) -> None:
        """Keep content until the next trial is packed."""
        self._packer.blob(blob)

    def traffic(self, trial: str, frame: bytes) -> None:
        """Keep the traffic of a trial until that is packed."""
        self._packer.traffic(trial, frame)

    def _replaced(self) -> Mapping[str, int]:
        """Return in how many lines each secret was found since this was asked for the last time."""
        if not self._redact.replaced:
            return {}
        found = dict(self._redact.replaced)
        self._redact.replaced.clear()
        return found


def _spec(manifest: Manifest, plan: ScoringPlan, ready: Ready) -> ScoringSpec:
    """Return what is scored. Raises PreflightError with every scorer that is another one here than in the manifest."""
    entries = {entry.scorer: entry for entry in manifest.scorers}
    digests = scorer_digests(plan.scorers, ready.endpoints, plan.evaluation.execution.seed)
    differing = [scorer for scorer, digest in digests.items() if scorer in entries and entries[scorer].digest != digest]
    if differing:
        told = "differs here from the one in the manifest: its package, options, rubric or endpoint; use the same"
        named = [f"{metric!r} of {judge!r}" if judge else repr(metric) for metric, judge in differing]
        raise PreflightError([f"the scorer {name} {told}" for name in named])
    return ScoringSpec(digests, {scorer: entry.repetitions for scorer, entry in entries.items()})


def _unread(position: int) -> Sample:
    raise RuntimeError(f"a worker of a crew is handed its samples, and does not read sample {position + 1}")
