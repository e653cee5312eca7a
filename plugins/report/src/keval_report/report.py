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
from keval_analysis.findings.reviews import ReviewFindings
from keval_analysis.findings.summary import Summary, ToolUse
from keval_analysis.outline import ArmKey, Outline, read_outline
from keval_analysis.question_comparisons import QuestionComparison, compare
from keval_analysis.readings import review_findings
from keval_report import reviews as people
from keval_report.blocks import Block, property_rows
from keval_report.cautions import cautions
from keval_report.contexts import ServerDifference, server_differences
from keval_report.contrasts import all_blocks
from keval_report.gates import GateRow, gate_rows, unmet_texts
from keval_report.means import PlainTable, plain_table
from keval_report.origin import decided_on, origin_label
from keval_report.parts import part_lines
from keval_report.routing import ROUTING_HEADS, routing_rows
from keval_report.sentences import sentences
from keval_report.totals import PARETO, cost_effectiveness, money
from keval_report.use import TEXT_HEADS, TOOL_HEADS, activation_rows, tool_cells, used_tools
from keval_report.words import display_names, rubric_name


@attrs.frozen
class ReviewTexts:
    """What is said of reviews by people: one sentence, warnings, and a table of how far judges agree with them.

    `by_arm` has what labels say of judges arm by arm, and the effects that they correct, a line each.
    """

    found: ReviewFindings
    reviewed: str
    warnings: Sequence[str]
    by_arm: Sequence[str]
    heads: Sequence[str] = people.AGREEMENT_HEADS
    cells = staticmethod(people.agreement_cells)
    rubric = staticmethod(rubric_name)


@attrs.frozen(slots=False)
class Report:
    """A run and its summary. All else is derived, or read from the run, when it is first asked for.

    Its outline may be `known` already. Raises RunError from every property that reads the run: it is damaged.
    """

    run: Run
    summary: Summary
    known: Outline | None = None
    tool_heads: Sequence[str] = TOOL_HEADS
    text_heads: Sequence[str] = TEXT_HEADS
    routing_heads: Sequence[str] = ROUTING_HEADS
    pareto: str = PARETO
    # Templates of pages import nothing: what they call is here.
    tool_cells = staticmethod(tool_cells)
    cost_effectiveness = staticmethod(cost_effectiveness)

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

    @cached_property
    def plain_table(self) -> PlainTable:
        """Mean ± standard deviation of each metric and arm."""
        return plain_table(self.summary)

    @property
    def arms(self) -> tuple[ArmKey, ...]:
        """The arms of the run, agent by agent."""
        manifest = self.run.manifest
        return tuple((agent, condition) for agent in manifest.agents for condition in manifest.conditions)

    @property
    def money(self) -> str:
        """What the run cost, in a line."""
        return money(self.summary)

    @property
    def origin(self) -> str:
        """That the run was replayed or played by a person, as `label: more`; empty for any other run."""
        return origin_label(self.summary)

    @cached_property
    def cautions(self) -> Sequence[str]:
        """What could change what somebody decides by the figures, a line each."""
        return cautions(self.summary, self.blocks)

    @property
    def sentences(self) -> Sequence[str]:
        """What the run found, in plain sentences."""
        return [*sentences(self.summary)]

    @property
    def gates(self) -> Sequence[GateRow]:
        """The verdicts of the gates, a row each."""
        return gate_rows(self.summary.gates)

    @property
    def decided_on(self) -> str:
        """On which answers gates decided, if the run was replayed."""
        return decided_on(self.summary.replay)

    @property
    def unmet(self) -> Sequence[str]:
        """The answers that did not meet what was expected of them."""
        return unmet_texts(self.summary.unmet)

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The effects as claims: of conditions, agents, contrasts and ablations."""
        return all_blocks(self.summary)

    @property
    def properties(self) -> Sequence[tuple[str, str, str, str]]:
        """What metrics say of agents whatever they answer: metric, agent, value, and how the metric comes to it."""
        return list(property_rows(self.summary))

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
    def judging(self) -> Sequence[str]:
        """How far judges agree with each other, with themselves, and with anchors, a line each."""
        return [*people.judging_lines(self.summary), *people.anchor_lines(self.summary)]

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

    @property
    def reviews(self) -> ReviewTexts | None:
        """What is said of the run's reviews as they are now; `None` without any."""
        if (found := review_findings(self.run)) is None:
            return None
        by_arm = [*people.bias_texts(found), *people.correction_texts(found)]
        return ReviewTexts(found, people.reviewed_text(found), [*people.warnings(found)], by_arm)
