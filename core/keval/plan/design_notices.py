"""What a user should know of a plan before it is run: what its results could not show, whatever they are."""

from __future__ import annotations

import re
from collections.abc import Iterator

from keval.config.evaluation import Evaluation
from keval.config.variation import mixed, mixed_words
from keval.dataset.read import Dataset
from keval.dataset.samples import Samples
from keval.errors import Problem
from keval.plan.plan import Scorers, sees_tools
from keval.records.trial import PLACEHOLDER


def design_notices(evaluation: Evaluation, dataset: Dataset, samples: Samples, scorers: Scorers) -> Iterator[Problem]:
    """Yield conditions that differ in several things, and questions and rubrics of no use."""
    yield from _mixed_notices(evaluation)
    yield from _placeholders(dataset, samples)
    yield from _blind_rubrics(evaluation, scorers)


def _mixed_notices(evaluation: Evaluation) -> Iterator[Problem]:
    """Yield the conditions that differ from the baseline in more than one thing."""
    baseline = evaluation.header.baseline or next(iter(evaluation.conditions), "")
    for label, varied in mixed(evaluation.source.data).items():
        if label in evaluation.conditions:
            told = mixed_words(label, baseline, varied)
            remedy = f"add a condition that differs in one, or declare `varies: [{', '.join(varied)}]`"
            yield evaluation.source.problem(("conditions", label), f"{told}; {remedy}", at_key=True)


def _placeholders(dataset: Dataset, samples: Samples) -> Iterator[Problem]:
    """Yield that questions are those of `keval init`."""
    if count := sum(name.startswith(PLACEHOLDER) for name in samples.ids):
        told = f"{count} of {len(samples.ids)} questions are those that `keval init` wrote; replace them by your own"
        yield Problem(str(dataset.path), told)


_OF_TOOLS = re.compile(r"\b(?:tools?|tool[- ]calls?|function calls?|mcp|trajector(?:y|ies))\b", re.IGNORECASE)


def _blind_rubrics(evaluation: Evaluation, scorers: Scorers) -> Iterator[Problem]:
    """Yield the rubrics that are about the use of tools, of which a judge sees nothing."""
    specs = {spec.label: spec for spec in evaluation.rubrics}
    for judge in scorers.judges:
        for rubric in scorers.graded_by(judge):
            text = "\n".join((rubric.name.replace("_", " "), rubric.instructions, *rubric.levels.values()))
            found = None if rubric.kind == "claims" or sees_tools(judge.plugin) else _OF_TOOLS.search(text)
            if found is not None:
                path = specs[rubric.name].path if rubric.name in specs else ("rubrics",)
                told = f"the rubric {rubric.name!r} speaks of {found[0]!r}, and {judge.label!r} sees no tool calls"
                remedy = "use a metric of tool calls such as basic/tool_called, or judge the response alone"
                yield evaluation.source.problem(path or ("rubrics",), f"{told}; {remedy}")
