"""What scorers found and what answers took, by arm and sample, collected as trials and scores are read."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from itertools import chain

import attrs
import orjson

from keval.records.manifest import Manifest, Rates, ScorerEntry, is_current
from keval.records.scores import ScoreLine, Scorer
from keval.records.transcript import Transcript
from keval.records.trial import PLACEHOLDER, Trial
from keval.store.serialization import to_plain
from keval_analysis.findings.effects import Arm
from keval_analysis.stats.contrasts import contrasts_of
from keval_analysis.stats.cost_effectiveness import Expenses
from keval_analysis.stats.score_sums import Cell


def numbered(*samples: Sequence[str]) -> dict[str, int]:
    """Number the samples of runs by their ids, in the order of the first run's dataset."""
    return {name: number for number, name in enumerate(dict.fromkeys(chain(*samples)))}


@attrs.define
class OwnPasts:
    """Digests of the histories and facts of its own that the agent of an arm had, by the number of the sample."""

    histories: dict[int, set[bytes]] = attrs.field(factory=dict)
    facts: dict[int, set[bytes]] = attrs.field(factory=dict)

    def add(self, transcript: Transcript, sample: int) -> None:
        """Note what an answer's transcript has of them."""
        for own, noted in ((transcript.history, self.histories), (transcript.facts, self.facts)):
            if own is not None:
                # Digests instead of histories, which may be long; the order of their keys is no difference.
                content = orjson.dumps(to_plain(own), option=orjson.OPT_SORT_KEYS)
                noted.setdefault(sample, set()).add(sha256(content).digest())


def unlike_pasts(arms: Iterable[OwnPasts]) -> tuple[set[int], set[int]]:
    """Return the samples for which arms had unlike histories, and those for which they had unlike facts."""
    known = [*arms]
    return _unlike([each.histories for each in known]), _unlike([each.facts for each in known])


def _unlike(noted: Sequence[Mapping[int, set[bytes]]]) -> set[int]:
    samples = set[int]().union(*noted)
    return {sample for sample in samples if any(each.get(sample) != noted[0].get(sample) for each in noted)}


@attrs.define(eq=False)
class ArmObservations:
    """What was found in one arm.

    `compliant` has the scores of compliant trials alone; `None` where the condition requires no use of tools. `failed`
    counts failed trials by the number of their sample, `answered` counts the others. `expenses` are what the answers
    took, and `own_pasts` what the agent had of its own. `called` has the samples in which each tool was called, where
    another condition lacks one of the tools.
    """

    arm: Arm
    cells: Mapping[Scorer, Cell]
    compliant: Mapping[Scorer, Cell] | None
    failed: Counter[int] = attrs.field(factory=Counter)
    answered: int = 0
    expenses: Expenses = attrs.field(factory=Expenses)
    own_pasts: OwnPasts = attrs.field(factory=OwnPasts)
    called: dict[str, set[int]] = attrs.field(factory=dict)


class Observations:
    """Takes a run's trials and scores one by one. A trial comes before its scores; otherwise the order is free.

    `numbers` are those of samples by their ids, which others are added to; runs that are compared share it. `arms` are
    by agent and condition, and `clusters` has the number of the source of each sample, if sources are known. Without
    `spending`, nothing is kept of what answers took. Of a run that ended early, `beyond` counts the trials that ran of
    questions after those that it was looked at with; they are in no figure.
    """

    def __init__(self, manifest: Manifest, numbers: dict[str, int] | None = None, *, spending: bool = True) -> None:
        self.manifest = manifest
        self._spending = spending
        self.rates = Rates.of(manifest)
        self._numbers = {} if numbers is None else numbers
        self._scorers = {entry.scorer: entry for entry in manifest.scorers}
        self.arms = {
            (agent, condition): ArmObservations(
                Arm(agent, condition, manifest.run),
                self.cells(manifest.scorers),
                self.cells(manifest.scorers) if entry.requires_tool_use else None,
            )
            for agent in manifest.agents
            for condition, entry in manifest.conditions.items()
        }
        self._asked = frozenset(manifest.looking.asked if manifest.looking else ())
        lacking = (each for each in contrasts_of(manifest) if each.kind == "ablation" and each.part == "tool")
        self._whole = {each.against for each in lacking}
        self.beyond = 0
        self._not_compliant: set[str] = set()
        self._cluster_key = manifest.dataset.cluster_key
        self._cluster_numbers: dict[str, int] = {}
        self._clusters = array("q")

    def read(self, trials: Iterable[Trial], scores: Iterable[ScoreLine]) -> Observations:
        """Add everything that a run has."""
        for trial in trials:
            self.add_trial(trial)
        for line in scores:
            self.add_score(line)
        return self

    @property
    def clusters(self) -> Sequence[int] | None:
        return self._clusters if self._cluster_numbers else None

    def counts(self, sample: str) -> bool:
        """Return whether a question is in the figures. In a run that ended early, those are not that began last."""
        return not self._asked or sample in self._asked

    def add_trial(self, trial: Trial) -> None:
        """Add a trial."""
        if not self.counts(trial.sample.id):
            self.beyond += 1
            return
        found, sample = self.arms[trial.agent, trial.condition], self.number(trial.sample.id)
        if trial.failure is not None:
            found.failed[sample] += 1
        else:
            found.answered += 1
            if trial.transcript is not None:
                if self._spending:
                    found.expenses.add(sample, trial.transcript, self.rates.attempt(trial.agent, trial.transcript))
                found.own_pasts.add(trial.transcript, sample)
                for call in trial.transcript.own_calls if trial.condition in self._whole else ():
                    if not call.own:
                        found.called.setdefault(call.tool or call.name, set()).add(sample)
        # Whether tools were used may be unknown, which leaves no trial out.
        if trial.complied is False:
            self._not_compliant.add(trial.id)
        if self._cluster_key is not None:
            # A sample without a source is a source of its own.
            while len(self._clusters) <= sample:
                # Its number is negative, as those of sources count from 0.
                self._clusters.append(-1 - len(self._clusters))
            if (source := trial.sample.metadata.get(self._cluster_key)) is not None:
                number = self._cluster_numbers.setdefault(str(source), len(self._cluster_numbers))
                self._clusters[sample] = number

    def add_score(self, line: ScoreLine) -> bool:
        """Add a score, and return whether it counts."""
        scorer = line.scorer
        if not is_current(line, self._scorers.get(scorer)):
            return False
        # A judge was asked and paid for it, so that it counts in its totals.
        if not self.counts(line.sample):
            return True
        found, sample = self.arms[line.agent, line.condition], self.number(line.sample)
        found.cells[scorer].add(line, sample)
        if found.compliant is not None and line.trial not in self._not_compliant:
            found.compliant[scorer].add(line, sample)
        return True

    def cells(self, scorers: Iterable[ScorerEntry]) -> Mapping[Scorer, Cell]:
        """Return what takes the scores of each of some scorers."""
        count_neutral = self.manifest.neutral == "count"
        return {entry.scorer: Cell(entry, count_neutral=count_neutral) for entry in scorers}

    @property
    def placeholders(self) -> int:
        """How many of the questions `keval init` wrote to be replaced."""
        return sum(name.startswith(PLACEHOLDER) for name in self._numbers)

    def number(self, sample: str) -> int:
        """Return the number of a sample by its id."""
        return self._numbers.setdefault(sample, len(self._numbers))
