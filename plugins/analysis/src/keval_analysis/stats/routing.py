"""Routing: how well each arm chose skills and tools, counted trial by trial against what samples expect."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Literal, TypeAlias

import attrs

from keval.records.manifest import ConditionEntry
from keval.records.transcript import Transcript
from keval.records.trial import Expectation, Trial
from keval_analysis.choices import UnknownError, choices, is_called, is_read
from keval_analysis.findings.routing import Routing, Share
from keval_analysis.stats.intervals import Values, mean_intervals
from keval_analysis.stats.observations import Observations
from keval_analysis.stats.score_sums import Sums

_Kind: TypeAlias = Literal["reads", "calls"]


def wanted(kind: _Kind, parts: tuple[Expectation, ...]) -> tuple[dict[str, None], dict[str, None]]:
    """Return what is to be chosen, and what is not, by the expectations of a sample."""
    yes = (name for part in parts for name in (part.reads if kind == "reads" else (*part.tool_called, *part.calls)))
    no = (name for part in parts for name in (part.not_reads if kind == "reads" else part.not_calls))
    return dict.fromkeys(yes), dict.fromkeys(no)


@attrs.define(eq=False)
class _Row:
    """What is counted of one name in one arm; `recall` and `precision` have a slot for each sample."""

    labelled: bool = False
    recall: Sums = attrs.field(factory=Sums)
    precision: Sums = attrs.field(factory=Sums)
    unknown: int = 0
    chosen: Counter[str] = attrs.field(factory=Counter)


class RoutingTally:
    """Takes the trials of samples that say what is to be read or called, or not; failed ones are left out.

    A sample that names what is to be chosen is taken to name all of it: whatever else is chosen, is chosen wrongly. One
    that only names what is not to be chosen says nothing of the rest.
    """

    def __init__(self, observed: Observations) -> None:
        self._observed = observed
        self._rows: dict[tuple[str, str, _Kind], dict[str, _Row]] = {}

    def add_trial(self, trial: Trial) -> None:
        """Count an answered trial."""
        transcript = trial.transcript
        if trial.failure is not None or transcript is None or not self._observed.counts(trial.sample.id):
            return
        parts = tuple(e for e in trial.sample.expect if not e.conditions or trial.condition in e.conditions)
        kinds: tuple[_Kind, ...] = ("reads", "calls")
        for kind in kinds:
            yes, no = wanted(kind, parts)
            if not (yes or no):
                continue
            condition, sample = (
                self._observed.manifest.conditions[trial.condition],
                self._observed.number(trial.sample.id),
            )
            known = {name: _is_chosen(kind, name, transcript, condition) for name in (*yes, *no)}
            found = choices(kind, transcript).items()
            others = [name for name, other in found if known.keys().isdisjoint((name, other))]
            rows = self._rows.setdefault((trial.agent, trial.condition, kind), defaultdict(_Row))
            for name, is_chosen in known.items():
                rows[name].labelled = True
                rows[name].unknown += is_chosen is None
                if is_chosen is not None and name in yes:
                    rows[name].recall.add(sample, float(is_chosen))
                if is_chosen:
                    rows[name].precision.add(sample, float(name in yes))
            for name in others if yes else ():
                rows[name].precision.add(sample, 0.0)
            wrong = [*(name for name, is_chosen in known.items() if is_chosen and name not in yes), *others]
            # Of trials in which nothing is to be chosen, a row without a name. Nothing chosen is known if all is.
            for name in (yes or [""]) if None not in known.values() else ():
                rows[name].chosen.update([*([name] if known.get(name) else []), *wrong] or [""])

    def routing(self) -> Iterator[Routing]:
        """Yield how well each skill and tool was chosen in each arm, in the order of the run, and nothing last."""
        for (agent, condition, kind), rows in self._rows.items():
            for name in sorted(rows, key=lambda name: not name):
                row = rows[name]
                shares = self._share(row.recall), self._share(row.precision)
                # What is only not to be chosen, and never was, is told by the row of nothing.
                if not name or (row.labelled and (row.unknown or shares != (None, None))):
                    yield Routing(agent, condition, kind, name, *shares, row.unknown, dict(row.chosen.most_common()))

    def _share(self, sums: Sums) -> Share | None:
        """Return the share of trials; those of one sample, or of one source of samples, are not independent."""
        values: list[float] = []
        clusters: list[int] = []
        of, samples = self._observed.clusters, 0
        for sample, (count, total) in enumerate(zip(sums.counts, sums.sums, strict=True)):
            values += [1.0] * round(total) + [0.0] * (count - round(total))
            clusters += [sample if of is None else of[sample]] * count
            samples += count > 0
        row = Values(values, clusters, 0.0, 1.0)
        if row.estimate.mean is None:
            return None
        (ends,) = mean_intervals([row])
        low, high = (ends.low, ends.high) if ends else (None, None)
        return Share(row.estimate.mean, low, high, len(values), samples)


def _is_chosen(kind: _Kind, name: str, transcript: Transcript, condition: ConditionEntry) -> bool | None:
    try:
        return is_read(name, transcript) if kind == "reads" else is_called(name, transcript, condition)
    except UnknownError:
        return None
