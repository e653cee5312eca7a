"""The review of a plan before it is run: what has no effect, and what its results could not show, whatever they are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from keval.dataset.read import Dataset
from keval.dataset.samples import Samples
from keval.errors import Problem, suggestion
from keval.plan.check import PlanCheck
from keval.plan.plan import Plan, kinds_of, sees_tools
from keval.records.trial import PLACEHOLDER, Sample
from keval_analysis.variation import mixed, mixed_words

OWN_QUESTION = '{"id": "berths", "question": "How many berths has Tarnholm?", "answer": "It has 14 berths."}'
"""A line of a dataset, as an example for somebody who is to write one."""


class Review:
    """Reviews the plan of every run."""

    def check(self, check: PlanCheck, dataset: Dataset, samples: Samples) -> None:
        """Check that samples have what the config counts on: sources, and golden answers."""
        _check_clusters(check, samples)
        _check_answers(check, dataset, samples)

    def notices(self, plan: Plan) -> Iterator[Problem]:
        """Yield what a user should know of a plan."""
        yield from (*_warm_judges(plan), *_idle_keys(plan), *_vendor_notices(plan), *_mixed_notices(plan))
        if count := sum(name.startswith(PLACEHOLDER) for name in plan.samples.ids):
            told = f"{count} of {len(plan.samples)} questions are those that `keval init` wrote"
            yield Problem(str(plan.dataset.path), f"{told}; replace them by your own, a line each: {OWN_QUESTION}")
        yield from _blind_rubrics(plan)


def _warm_judges(plan: Plan) -> Iterator[Problem]:
    """Yield the judges that grade at a temperature above 0, as far as they have a field of that name."""
    for item in plan.scorers.judges:
        temperature = getattr(item.plugin, "temperature", None)
        if isinstance(temperature, int | float) and temperature > 0:
            place = plan.evaluation.source.place((*item.path, "temperature"), key=True) if item.path else item.place
            told = f"the judge {item.label!r} has temperature {temperature:g}, so repeated gradings of one answer may"
            remedy = "set it to 0, or see how much they scatter with `execution.judge_repetitions`"
            yield Problem(place, f"{told} differ; {remedy}")


def _idle_keys(plan: Plan) -> Iterator[Problem]:
    """Yield the keys of the config that have no effect."""
    evaluation, source, scorers, askers = plan.evaluation, plan.evaluation.source, plan.scorers, plan.askers
    graded = {kind for judge in scorers.judges for kind in kinds_of(judge.plugin)}
    paths = {spec.label: spec.path for spec in evaluation.rubrics}
    for rubric in scorers.rubrics:
        if graded and rubric.kind not in graded:
            problem = f"no judge grades by {rubric.name}, whose kind is {rubric.kind}; add one that does to `judges:`"
            yield source.problem(paths.get(rubric.name, ("rubrics",)), problem)
    if not evaluation.judges:
        if evaluation.rubrics:
            told = "no judge grades by these rubrics; add `judge: {model: provider/name}`"
            yield source.problem(("rubrics",), told, at_key=True)
        if "judge_repetitions" in (source.data.get("execution") or {}):
            problem = "there is no judge to ask repeatedly; add `judges:`"
            yield source.problem(("execution", "judge_repetitions"), problem, at_key=True)
    for label, condition in evaluation.conditions.items():
        # As it is written: the field has a default, which says nothing.
        given = (source.data.get("conditions") or {}).get(label) or {}
        if "on_missing_tool_use" in given and not condition.requires_tool_use:
            problem = "the condition requires no tool use; add `require_mcp_tool_use: true`"
            yield source.problem(("conditions", label, "on_missing_tool_use"), problem, at_key=True)
    models = [*dict.fromkeys(str(model) for item in askers for model in item.models.values())]
    for name in evaluation.execution.rates:
        if not any(name in (model, model.partition("/")[0]) for model in models):
            hint = suggestion(name, [*models, *(model.partition("/")[0] for model in models)])
            told = f"no agent or judge asks {name}{hint}"
            yield source.problem(("execution", "rates", name), told, at_key=True)
    # A price under a name that looks like that of another model, which has no price.
    asked = {name for item in askers for name in item.model_names}
    without = [model for model in asked if model not in evaluation.prices]
    for model in evaluation.prices:
        if model not in asked and (hint := suggestion(model, without)):
            yield source.problem(("prices", model), f"no agent or judge asks {model}{hint}", at_key=True)


def _vendor_notices(plan: Plan) -> Iterator[Problem]:
    """Yield a notice for each judge whose model is of the same vendor as an agent's."""
    if not any(item.models for item in plan.scorers.judges):
        return
    from keval_analysis.vendors import same_vendors  # only a judge with a model has a vendor

    places = {item.label: item.place for item in plan.scorers.judges}
    asked, asking = ([(item.label, item.model_names) for item in items] for items in (plan.agents, plan.scorers.judges))
    for judge, like, vendor in same_vendors(asked, asking):
        told = f"the judge {judge!r} is of the same vendor as {', '.join(like)} ({vendor}) and may"
        remedy = "take one of another vendor, or hold it against people: keval review latest --sample 40"
        yield Problem(places[judge], f"{told} favour its answers; {remedy}")


def _mixed_notices(plan: Plan) -> Iterator[Problem]:
    """Yield the conditions that differ from the baseline in more than one thing."""
    evaluation = plan.evaluation
    baseline = evaluation.header.baseline or next(iter(evaluation.conditions), "")
    for label, varied in mixed(evaluation.source.data).items():
        if label in evaluation.conditions:
            told = mixed_words(label, baseline, varied)
            remedy = f"add a condition that differs in one, or declare `varies: [{', '.join(varied)}]`"
            yield evaluation.source.problem(("conditions", label), f"{told}; {remedy}", at_key=True)


_OF_TOOLS = re.compile(r"\b(?:tools?|tool[- ]calls?|function calls?|mcp|trajector(?:y|ies))\b", re.IGNORECASE)


def _blind_rubrics(plan: Plan) -> Iterator[Problem]:
    """Yield the rubrics that are about the use of tools, of which a judge sees nothing."""
    specs = {spec.label: spec for spec in plan.evaluation.rubrics}
    for judge in plan.scorers.judges:
        for rubric in plan.scorers.graded_by(judge):
            text = "\n".join((rubric.name.replace("_", " "), rubric.instructions, *rubric.levels.values()))
            found = None if rubric.kind == "claims" or sees_tools(judge.plugin) else _OF_TOOLS.search(text)
            if found is not None:
                path = specs[rubric.name].path if rubric.name in specs else ("rubrics",)
                told = f"the rubric {rubric.name!r} speaks of {found[0]!r}, and {judge.label!r} sees no tool calls"
                remedy = "use a metric of tool calls such as basic/tool_called, or judge the response alone"
                yield plan.evaluation.source.problem(path or ("rubrics",), f"{told}; {remedy}")


def _check_clusters(check: PlanCheck, samples: Iterable[Sample]) -> None:
    """Check that `cluster_key` is in the metadata of some sample."""
    file = check.evaluation.dataset
    if file is None or file.cluster_key is None:
        return
    known: set[str] = set()
    for sample in samples:
        known |= sample.metadata.keys()
        if file.cluster_key in sample.metadata:
            return
    hint = suggestion(file.cluster_key, known) or f"; the samples have {', '.join(sorted(known)) or 'none'}"
    check.problem(("dataset", "cluster_key"), f"no sample has the metadata {file.cluster_key!r}{hint}")


_PLACES = 20
"""How many records without a golden answer are named one by one; the others are counted."""


def _check_answers(check: PlanCheck, dataset: Dataset, samples: Samples) -> None:
    """Find the samples that lack the golden answer that rubrics need.

    It is an error if the config names the key of the golden answer, and a notice if the key is the default.
    """
    evaluation, scorers = check.evaluation, check.scorers
    needy = [rubric.name for rubric in scorers.rubrics if rubric.needs_answer] if scorers.judges else []
    if not needy or evaluation.dataset is None:
        return
    if single := [rubric.name for rubric in scorers.rubrics if rubric.share == "covered"]:
        told = f"several golden answers, of which {' and '.join(single)} takes one; keep one, or leave out the rubric"
        several = [name for name, sample in zip(samples.ids, samples, strict=True) if sample.other_answers]
        if several:
            rest = [Problem(str(dataset.path), "more records like these")] if len(several) > _PLACES else []
            check.problems.extend([*(Problem(dataset.place(name), told) for name in several[:_PLACES]), *rest])
            return
    lacking = [name for name, sample in zip(samples.ids, samples, strict=True) if sample.answer is None]
    if not lacking:
        return
    who = f"{' and '.join(needy)} {'needs' if len(needy) == 1 else 'need'}"
    key = f"golden answer under {evaluation.dataset.answer_key!r}"
    section = evaluation.source.data.get("dataset")
    if isinstance(section, dict) and "answer_key" in section and len(lacking) < len(samples):
        told = f"no {key}, but {who} it; add it, or use rubrics that do not need it"
        check.problems.extend(Problem(dataset.place(name), told) for name in lacking[:_PLACES])
        if (more := len(lacking) - _PLACES) > 0:
            check.problems.append(Problem(str(dataset.path), f"{more} more records like these"))
    elif "answer_key" in (section or {}):
        told = f"no record has a {key}, but {who} it; correct the key"
        check.problem(("dataset", "answer_key"), told)
    else:
        found = f"{len(lacking)} samples have no {key}" if len(lacking) < len(samples) else f"no sample has a {key}"
        told = f"{found}; {' and '.join(needy)} will be unscored for these samples (dataset.answer_key names the key)"
        check.notices.append(Problem(str(dataset.path), told))
