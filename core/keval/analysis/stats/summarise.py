"""Summarising a run: its trials and scores are read once, and only counts and sums per sample are kept."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from keval.analysis.stats.agreement import JudgeAgreement
from keval.analysis.stats.cost_effectiveness import with_cost_effectiveness
from keval.analysis.stats.score_sums import Cell
from keval.analysis.stats.tally import JudgingTally, Tally, ToolTally, unlike_pasts
from keval.records.effects import Arm
from keval.records.manifest import Manifest, Rates, is_current
from keval.records.reviews import Review
from keval.records.scores import Judgement, ScoreLine, Scorer
from keval.records.servers import Sharing
from keval.records.summary import ArmTrials, JudgingTotal, ScorerScale, Summary
from keval.records.trial import Trial

if TYPE_CHECKING:
    from keval.analysis.stats.agreement import ReviewTally
    from keval.analysis.stats.findings import Findings


def summarise(
    manifest: Manifest,
    samples: Sequence[str],
    trials: Iterable[Trial],
    scores: Iterable[ScoreLine],
    reviews: Sequence[Review] = (),
) -> Summary:
    """Summarise a run; its trials and scores are read once. `samples` are their ids, in the order of the dataset."""
    return Summariser(manifest, numbered(samples), reviews=reviews).read(trials, scores).summary()


def numbered(*samples: Sequence[str]) -> dict[str, int]:
    """Number the samples of runs by their ids, in the order of the first run's dataset."""
    return {name: number for number, name in enumerate(dict.fromkeys(chain(*samples)))}


def _review_tally(manifest: Manifest, reviews: Sequence[Review]) -> ReviewTally | None:
    if not reviews:
        return None
    from keval.analysis.stats.agreement import ReviewTally  # NumPy takes a tenth of a second to import

    return ReviewTally(manifest, reviews)


def _servers(manifest: Manifest) -> Iterator[tuple[str, Mapping[str, Sharing]]]:
    """Yield, for each condition with servers, which of them trials share; runs of older versions do not say."""
    for condition, entry in manifest.conditions.items():
        known = {
            name: Sharing(server.shared, server.sharing or "unknown", server.isolation_verified is not False)
            for name, server in entry.servers.items()
            if server.shared is not None
        }
        if known:
            yield condition, known


class Summariser:
    """Takes a run's trials and scores one by one. A trial comes before its scores; otherwise the order is free.

    `numbers` are those of samples by their ids, which others are added to; runs that are compared share it. `reviews`
    are all lines of reviews.
    """

    def __init__(
        self, manifest: Manifest, numbers: dict[str, int] | None = None, *, reviews: Sequence[Review] = ()
    ) -> None:
        self.manifest = manifest
        self._numbers = {} if numbers is None else numbers
        arms = [Arm(agent, condition, manifest.run) for agent in manifest.agents for condition in manifest.conditions]
        self._arms = {(arm.agent, arm.condition): arm for arm in arms}
        self._rates = Rates.of(manifest)
        self._tallies = {arm: Tally(self._rates) for arm in arms}
        self._tools = {
            arm: ToolTally(
                manifest.conditions[arm.condition], recorded=manifest.agents[arm.agent].recording is not None
            )
            for arm in arms
        }
        self._scorers = {entry.scorer: entry for entry in manifest.scorers}
        self._cells = {arm: self._row() for arm in arms}
        # The scores of those trials alone that used tools as their condition requires.
        self._compliant = {arm: self._row() for arm in arms if manifest.conditions[arm.condition].requires_tool_use}
        self._not_compliant: set[str] = set()
        self._failed: dict[Arm, Counter[int]] = {arm: Counter() for arm in arms}
        self._cluster_key = manifest.dataset.cluster_key
        self._cluster_numbers: dict[str, int] = {}
        self._clusters = array("q")
        self._judging: dict[Arm, dict[str, JudgingTally]] = {arm: defaultdict(JudgingTally) for arm in arms}
        self._agreement = JudgeAgreement(manifest.scorers)
        self._last: tuple[str, str, Judgement] | None = None
        self._reviews = _review_tally(manifest, reviews)

    def read(self, trials: Iterable[Trial], scores: Iterable[ScoreLine]) -> Summariser:
        """Add everything that a run has."""
        for trial in trials:
            self.add_trial(trial)
        for line in scores:
            self.add_scores([line])
        return self

    def add_trial(self, trial: Trial) -> None:
        """Add a trial."""
        arm, sample = self._arms[trial.agent, trial.condition], self._number(trial.sample.id)
        self._tallies[arm].add(trial, sample)
        self._tools[arm].add(trial)
        if trial.failure is not None:
            self._failed[arm][sample] += 1
        if trial.complied is False:
            self._not_compliant.add(trial.id)
        if self._reviews is not None:
            self._reviews.add_trial(trial)
        if self._cluster_key is not None:
            self._add_to_cluster(sample, trial.sample.metadata.get(self._cluster_key))

    def add_scores(self, lines: Sequence[ScoreLine]) -> None:
        """Add scores of one trial; those that do not count are left out."""
        if not lines:
            return
        arm = self._arms[lines[0].agent, lines[0].condition]
        cells = self._cells[arm]
        compliant = None if lines[0].trial in self._not_compliant else self._compliant.get(arm)
        sample = self._number(lines[0].sample)
        for line in lines:
            if not is_current(line, self._scorers.get(line.scorer)):
                continue
            cells[line.scorer].add(line, sample)
            if compliant is not None:
                compliant[line.scorer].add(line, sample)
            if self._reviews is not None:
                self._reviews.add_score(line)
            if line.judge is not None and line.judgement is not None:
                self._agreement.add(line)
                # A judgement is repeated by each of its scores, which follow each other; it is counted once.
                judged = (line.trial, line.judge, line.judgement)
                if judged != self._last:
                    usd = self._rates.judgement(line.judge, line.judgement)
                    self._judging[arm][line.judge].add(line.judgement, usd)
                self._last = judged

    def findings(self) -> Findings:
        """Return what the scorers found in each arm, with everything that was added so far."""
        from keval.analysis.stats.findings import Findings  # NumPy takes a tenth of a second to import

        return Findings(
            manifest=self.manifest,
            cells=self._cells,
            compliant=self._compliant,
            failed=self._failed,
            answered={arm: tally.answered for arm, tally in self._tallies.items()},
            expenses={arm: tally.expenses for arm, tally in self._tallies.items()},
            own_pasts={arm: tally.own_pasts for arm, tally in self._tallies.items()},
            clusters=self._clusters if self._cluster_numbers else None,
        )

    def trials(self) -> tuple[ArmTrials, ...]:
        """Return what happened to the trials of each arm."""
        conditions = self.manifest.conditions
        return tuple(
            tally.total(arm.agent, arm.condition, conditions[arm.condition]) for arm, tally in self._tallies.items()
        )

    def judging(self) -> tuple[JudgingTotal, ...]:
        """Return the totals of each judge in each arm that it has judged."""
        return tuple(
            tally.total(arm.agent, arm.condition, judge)
            for arm, judges in self._judging.items()
            for judge, tally in judges.items()
        )

    def summary(self) -> Summary:
        """Return the summary of everything that was added."""
        manifest, findings = self.manifest, self.findings()
        effects = findings.effects()
        unlike_histories, unlike_facts = unlike_pasts(findings.own_pasts.values())
        return Summary(
            run=manifest.run,
            evaluation=manifest.evaluation,
            baseline=manifest.baseline,
            neutral=manifest.neutral,
            planned=manifest.trials,
            simulated=manifest.simulated,
            replay=manifest.replay,
            play=manifest.play,
            primary=manifest.primary,
            properties=findings.properties(),
            averages=findings.averages(),
            unfinished=findings.unfinished,
            unpriced=self._rates.unpriced,
            scorers=tuple(
                ScorerScale(entry.metric, entry.judge, entry.scale, entry.category) for entry in manifest.scorers
            ),
            judges=manifest.judges,
            trials=self.trials(),
            arms=with_cost_effectiveness(
                findings.arms(),
                manifest.scorers,
                {(arm.agent, arm.condition): tally.expenses for arm, tally in self._tallies.items()},
            ),
            effects=effects,
            family_power=findings.family_power(effects),
            expenses=findings.expenses(),
            interactions=findings.interactions(),
            contrasts=findings.contrasts(),
            variance=findings.variance(effects),
            judging=self.judging(),
            agreement=self._agreement.summary(),
            reviews=self._reviews.findings() if self._reviews else None,
            tools=tuple(use for arm, tally in self._tools.items() for use in tally.total(arm.agent, arm.condition)),
            elapsed=manifest.elapsed,
            stopped=manifest.stopped,
            servers=dict(_servers(manifest)),
            unlike_histories=len(unlike_histories),
            unlike_facts=len(unlike_facts),
            server_starts=manifest.server_starts,
        )

    def _row(self) -> Mapping[Scorer, Cell]:
        count_neutral = self.manifest.neutral == "count"
        return {scorer: Cell(entry, count_neutral=count_neutral) for scorer, entry in self._scorers.items()}

    def _number(self, sample: str) -> int:
        return self._numbers.setdefault(sample, len(self._numbers))

    def _add_to_cluster(self, sample: int, source: object) -> None:
        """Note which source a sample is from; one without is a source of its own."""
        while len(self._clusters) <= sample:
            self._clusters.append(-1 - len(self._clusters))
        if source is not None:
            self._clusters[sample] = self._cluster_numbers.setdefault(str(source), len(self._cluster_numbers))
