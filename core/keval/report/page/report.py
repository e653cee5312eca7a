"""What the fragments of a page are made from: a run, its summary, and what is derived from both."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import attrs

from keval.records.scores import Scale, Scorer
from keval.records.summary import Summary
from keval.report.figures import display_names
from keval.report.page.comparisons import Comparison, compare
from keval.report.page.outline import Arm, Outline, read_outline
from keval.store.run import Run


@attrs.frozen(slots=False)
class Report:
    """A run and its summary. All else is read from the run when a fragment first needs it."""

    run: Run
    summary: Summary

    @cached_property
    def outline(self) -> Outline:
        """The questions of the run and their mean scores."""
        return read_outline(self.run)

    @cached_property
    def comparisons(self) -> tuple[Comparison, ...]:
        """What the heat map can show: each arm with the one that it is measured against, or each arm alone."""
        return compare(self.run.manifest, self.outline, self.scales)

    @cached_property
    def names(self) -> Mapping[Scorer, str]:
        """What to call each scorer."""
        return display_names(entry.scorer for entry in self.summary.scorers)

    @cached_property
    def scales(self) -> Mapping[Scorer, Scale]:
        """The scale of each scorer."""
        return {entry.scorer: entry.scale for entry in self.summary.scorers}

    @property
    def arms(self) -> tuple[Arm, ...]:
        """The arms of the run, agent by agent."""
        manifest = self.run.manifest
        return tuple((agent, condition) for agent in manifest.agents for condition in manifest.conditions)
