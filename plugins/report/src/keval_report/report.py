"""The report as data: a run, its summary, and what the terminal, Markdown and pages say of them alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import attrs

from keval.records.scores import Scale, Scorer
from keval.store.run import Run
from keval_analysis.claims import UnverifiedClaim, unverified_claims
from keval_analysis.findings.effects import Effect
from keval_analysis.findings.formats import EXPENSE_UNITS
from keval_analysis.findings.summary import Summary, ToolUse
from keval_analysis.outline import ArmKey, Outline, read_outline
from keval_analysis.question_comparisons import QuestionComparison, compare
from keval_report.blocks import Block
from keval_report.cautions import cautions
from keval_report.contexts import ServerDifference, server_differences
from keval_report.contrasts import all_blocks
from keval_report.gates import GateRow, gate_rows
from keval_report.parts import part_lines
from keval_report.routing import routing_rows
from keval_report.use import activation_rows, used_tools
from keval_report.words import display_names


@attrs.frozen(slots=False)
class Report:
    """A run and its summary. All else is derived, or read from the run, when it is first asked for.

    Its outline may be `known` already. Raises RunError from every property that reads the run: it is damaged.
    """

    run: Run
    summary: Summary
    known: Outline | None = None

    @cached_property
    def outline(self) -> Outline:
        """The questions of the run and their mean scores."""
        return read_outline(self.run) if self.known is None else self.known

    @cached_property
    def comparisons(self) -> tuple[QuestionComparison, ...]:
        """Each arm with the one that it is measured against, question by question, or a single arm alone."""
        return compare(self.run.manifest, self.outline, self.scales)

    @cached_property
    def names(self) -> Mapping[Scorer, str]:
        """What to call each scorer."""
        return display_names(entry.scorer for entry in self.summary.scorers)

    @cached_property
    def scales(self) -> Mapping[Scorer, Scale]:
        """The scale of each scorer."""
        return {entry.scorer: entry.scale for entry in self.summary.scorers}

    @cached_property
    def claims(self) -> Sequence[UnverifiedClaim]:
        """The claims that judges could not verify, in the order of the dataset."""
        return unverified_claims(self.run, self.summary)

    @property
    def arms(self) -> tuple[ArmKey, ...]:
        """The arms of the run, agent by agent."""
        manifest = self.run.manifest
        return tuple((agent, condition) for agent in manifest.agents for condition in manifest.conditions)

    @cached_property
    def cautions(self) -> Sequence[str]:
        """What could change what somebody decides by the figures, a line each."""
        return cautions(self.summary, self.blocks)

    @property
    def gates(self) -> Sequence[GateRow]:
        """The verdicts of the gates, a row each."""
        return gate_rows(self.summary.gates)

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The effects as claims: of conditions, agents, contrasts and ablations."""
        return all_blocks(self.summary)

    @property
    def expenses(self) -> Sequence[tuple[str, Effect]]:
        """Effects on what an answer costs with the name of the resource; those that are 0 throughout say nothing."""
        found = []
        for effect in self.summary.expenses:
            if effect.difference is not None and (effect.difference or effect.stderr):
                name, unit = effect.metric.replace("_", " "), EXPENSE_UNITS[effect.metric]
                found.append((name if unit == name else f"{name} ({unit})", effect))
        return found

    @property
    def tools(self) -> Mapping[str, Sequence[ToolUse]]:
        """How the trials of each condition used each tool."""
        return used_tools(self.summary)

    @property
    def texts(self) -> Sequence[Sequence[str]]:
        """How often instructions and skills were read, a row for each and each arm, below `text_heads`."""
        return [*activation_rows(self.summary)]

    @property
    def routing(self) -> Sequence[Sequence[str]]:
        """How well skills and tools were chosen, a row for each and each arm, below `routing_heads`."""
        return [*routing_rows(self.summary)]

    @cached_property
    def server_differences(self) -> Sequence[ServerDifference]:
        """What the servers of conditions differ in."""
        return [*server_differences(self.run)]

    @property
    def parts(self) -> Sequence[tuple[str, Sequence[str]]]:
        """What is said of each part of the summary that a hook plugin added, by its name."""
        return [*part_lines(self.summary)]
