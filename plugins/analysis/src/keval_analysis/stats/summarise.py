"""Summarising a run: its trials and scores are read once, and only counts and sums per sample are kept."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from keval.records.manifest import AgentEntry, JudgeEntry, Manifest
from keval.records.scores import Judgement, ScoreLine
from keval.records.servers import Sharing
from keval.records.trial import Trial
from keval_analysis.findings.summary import ArmTrials, JudgingTotal, SameVendor, ScorerScale, SpokenRevision, Summary
from keval_analysis.stats.contrasts import section_of
from keval_analysis.stats.cost_effectiveness import with_cost_effectiveness
from keval_analysis.stats.findings import Findings
from keval_analysis.stats.judge_agreement import JudgeAgreement
from keval_analysis.stats.observations import Observations, unlike_pasts
from keval_analysis.stats.shared_calls import SharedCallTally
from keval_analysis.stats.tally import JudgingTally, Tally, ToolTally
from keval_analysis.stats.win_rates import Preferences, compared_with
from keval_analysis.variation import mixed

if TYPE_CHECKING:
    from keval_analysis.findings.draws import Labels
    from keval_analysis.stats.activation import ActivationTally
    from keval_analysis.stats.agreement import ReviewTally
    from keval_analysis.stats.routing import RoutingTally


def summarise(
    manifest: Manifest,
    numbers: dict[str, int],
    trials: Iterable[Trial],
    scores: Iterable[ScoreLine],
    labels: Labels | None = None,
) -> Summary:
    """Summarise a run; its trials and scores are read once. `numbers` are those of its samples, by id."""
    summariser = Summariser(manifest, numbers, labels=labels)
    for trial in trials:
        summariser.add_trial(trial)
    for line in scores:
        summariser.add_score(line)
    return summariser.summary()


def _live_models(entries: Mapping[str, AgentEntry | JudgeEntry]) -> list[tuple[str, tuple[str, ...]]]:
    """Return the models of agents or judges that are not simulated, by label."""
    return [(label, (each.model,)) for label, each in entries.items() if each.model and not each.simulated]


def _same_vendors(manifest: Manifest) -> tuple[SameVendor, ...]:
    agents, judges = _live_models(manifest.agents), _live_models(manifest.judges)
    if not agents or not judges:
        return ()
    from keval_analysis.vendors import same_vendors  # for models that somebody made

    return tuple(SameVendor(*each) for each in same_vendors(agents, judges))


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


def _revisions(manifest: Manifest, spoken: Mapping[tuple[str, str], Mapping[str, str]]) -> Iterator[SpokenRevision]:
    contexts = section_of(manifest.config, "contexts")
    is_named = any(isinstance(each, dict) and "protocol" in each for each in contexts.values())
    for condition, entry in manifest.conditions.items():
        for name, server in entry.servers.items():
            agents = spoken.get((condition, name), {})
            if server.protocol is not None and (is_named or {*agents.values()} - {server.protocol}):
                yield SpokenRevision(condition, name, server.protocol, agents)


_AS_IN_MANIFEST = (
    *(
        "run",
        "evaluation",
        "baseline",
        "neutral",
        "simulated",
        "replay",
        "play",
        "note",
        "primary",
        "judges",
        "elapsed",
    ),
    *("stopped", "changed", "looking", "server_starts"),
)
"""What a summary has of the manifest as it is."""


class Summariser:
    """Takes a run's trials and scores one by one, as `Observations` does."""

    def __init__(
        self, manifest: Manifest, numbers: dict[str, int] | None = None, *, labels: Labels | None = None
    ) -> None:
        self.observed = Observations(manifest, numbers)
        self._tallies = {arm: Tally(self.observed.rates) for arm in self.observed.arms}
        self._tools = {
            (agent, condition): ToolTally(
                manifest.conditions[condition], recorded=manifest.agents[agent].recording is not None
            )
            for agent, condition in self.observed.arms
        }
        self._judging: dict[tuple[str, str], dict[str, JudgingTally]] = {
            arm: defaultdict(JudgingTally) for arm in self.observed.arms
        }
        self._agreement = JudgeAgreement(manifest.scorers)
        self._preferences = Preferences(compared_with(manifest))
        self._last: tuple[str, str, Judgement] | None = None
        self._reviews: ReviewTally | None = None
        if labels:
            from keval_analysis.stats.agreement import ReviewTally  # NumPy takes a tenth of a second to import

            self._reviews = ReviewTally(manifest, labels)
        self._activation: ActivationTally | None = None
        self._routing: RoutingTally | None = None
        self._shared_calls = SharedCallTally.of(manifest)
        self._spoken: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)

    def add_trial(self, trial: Trial) -> None:
        """Add a trial."""
        self.observed.add_trial(trial)
        self._tallies[trial.agent, trial.condition].add(trial)
        self._tools[trial.agent, trial.condition].add(trial)
        # Of a server with resources, every trial could have asked for them.
        is_served = bool(self.observed.manifest.conditions[trial.condition].servers)
        if trial.transcript is not None and (trial.transcript.texts or is_served):
            if self._activation is None:
                from keval_analysis.stats.activation import ActivationTally  # few runs have texts

                self._activation = ActivationTally(self.observed)
            self._activation.add_trial(trial)
        if trial.sample.expect:
            if self._routing is None:
                from keval_analysis.stats.routing import RoutingTally  # few samples expect anything

                self._routing = RoutingTally(self.observed)
            self._routing.add_trial(trial)
        for server, revision in (trial.transcript.protocols if trial.transcript is not None else {}).items():
            self._spoken[trial.condition, server][trial.agent] = revision
        if self._reviews is not None:
            self._reviews.add_trial(trial)
        if self._shared_calls is not None:
            self._shared_calls.add_trial(trial)

    def add_score(self, line: ScoreLine) -> None:
        """Add a score, unless it does not count."""
        if not self.observed.add_score(line):
            return
        if self._reviews is not None:
            self._reviews.add_score(line)
        if line.judge is not None and line.judgement is not None:
            self._agreement.add(line)
            # Preferences are figures; what a judge took, below, counts in any case.
            if self.observed.counts(line.sample):
                self._preferences.add(line)
            # A judgement is repeated by each of its scores, which follow each other; it is counted once.
            judged = (line.trial, line.judge, line.judgement)
            if judged != self._last:
                usd = self.observed.rates.judgement(line.judge, line.judgement)
                self._judging[line.agent, line.condition][line.judge].add(line.judgement, usd)
            self._last = judged

    def findings(self) -> Findings:
        """Return what the scorers found in each arm, with everything that was added so far."""
        return Findings(self.observed)

    def trials(self) -> tuple[ArmTrials, ...]:
        """Return what happened to the trials of each arm."""
        conditions, agents = self.observed.manifest.conditions, self.observed.manifest.agents
        return tuple(
            tally.total(
                *(agent, condition, conditions[condition], self.observed.arms[agent, condition].expenses),
                simulated=agents[agent].simulated,
            )
            for (agent, condition), tally in self._tallies.items()
        )

    def judging(self) -> tuple[JudgingTotal, ...]:
        """Return the totals of each judge in each arm that it has judged."""
        return tuple(
            tally.total(*arm, judge) for arm, judges in self._judging.items() for judge, tally in judges.items()
        )

    def summary(self) -> Summary:
        """Return the summary of everything that was added."""
        manifest, findings = self.observed.manifest, self.findings()
        effects, arms = findings.effects(), findings.arms()
        unlike_histories, unlike_facts = unlike_pasts(findings.own_pasts.values())
        return Summary(
            **{name: getattr(manifest, name) for name in _AS_IN_MANIFEST},
            planned=manifest.trials,
            properties=findings.properties(),
            unfinished=findings.unfinished,
            mixed=mixed(manifest.config),
            commit=section_of(manifest.config, "against").get("ref"),
            placeholders=self.observed.placeholders,
            same_vendor=_same_vendors(manifest),
            unpriced=self.observed.rates.unpriced,
            scorers=tuple(
                ScorerScale(entry.metric, entry.judge, entry.scale, entry.category) for entry in manifest.scorers
            ),
            trials=self.trials(),
            arms=with_cost_effectiveness(
                arms, manifest.scorers, {arm: observed.expenses for arm, observed in self.observed.arms.items()}
            ),
            effects=effects,
            family_power=findings.family_power(effects),
            expenses=findings.expenses(),
            interactions=findings.interactions(),
            contrasts=findings.contrasts(),
            variance=findings.variance(effects),
            judging=self.judging(),
            agreement=self._agreement.summary(),
            reviews=self._reviews.findings(lambda: findings, findings.answered) if self._reviews else None,
            tools=tuple(use for arm, tally in self._tools.items() for use in tally.total(*arm)),
            activations=self._activation.activations() if self._activation is not None else (),
            routing=tuple(self._routing.routing()) if self._routing is not None else (),
            servers=dict(_servers(manifest)),
            revisions=tuple(_revisions(manifest, self._spoken)),
            unlike_calls=self._shared_calls.unlike() if self._shared_calls is not None else (),
            unlike_histories=len(unlike_histories),
            unlike_facts=len(unlike_facts),
            win_rates=tuple(self._preferences.win_rates(arms, effects)),
        )
