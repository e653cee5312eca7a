"""Notices about a valid plan: samples that will have no score, judges that will scatter, and keys without effect."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from keval.config.evaluation import Evaluation
from keval.config.source import KeyPath
from keval.dataset.read import Dataset
from keval.dataset.samples import Samples
from keval.errors import Problem, suggestion
from keval.plan.plan import ResolvedPlugin, Scorers

__all__ = ["idle_keys", "missing_answers", "warm_judges"]

_PLACES = 20
"""How many records without a golden answer are named one by one; the others are counted."""


def missing_answers(
    evaluation: Evaluation, dataset: Dataset, samples: Samples, scorers: Scorers
) -> tuple[list[Problem], list[Problem]]:
    """Find the samples that lack the golden answer that rubrics need; returns errors and notices.

    It is an error if the config names the key of the golden answer, and a notice if the key is the default.
    """
    needy = [rubric.name for rubric in scorers.rubrics if rubric.needs_answer] if scorers.judges else []
    if not needy or evaluation.dataset is None:
        return [], []
    lacking = [name for name, sample in zip(samples.ids, samples, strict=True) if sample.answer is None]
    if not lacking:
        return [], []
    who = f"{' and '.join(needy)} {'needs' if len(needy) == 1 else 'need'}"
    key = f"golden answer under {evaluation.dataset.answer_key!r}"
    section = evaluation.source.data.get("dataset")
    if isinstance(section, dict) and "answer_key" in section and len(lacking) < len(samples):
        places = {name: position for position, name in enumerate(dataset.samples.ids)}
        told = f"no {key}, and {who} it; add it, or choose rubrics that need none"
        errors = [Problem(dataset.place(places[name]), told) for name in lacking[:_PLACES]]
        if (more := len(lacking) - _PLACES) > 0:
            errors.append(Problem(str(dataset.path), f"{more} more records like these"))
        return errors, []
    if "answer_key" in (section or {}):
        told = f"no record has a {key}, and {who} it; correct the key"
        return [Problem(evaluation.source.place(("dataset", "answer_key")), told)], []
    found = f"{len(lacking)} samples have no {key}" if len(lacking) < len(samples) else f"no sample has a {key}"
    told = f"{found}; {' and '.join(needy)} will have no score there (dataset.answer_key names the key)"
    return [], [Problem(str(dataset.path), told)]


def warm_judges(evaluation: Evaluation, judges: Iterable[ResolvedPlugin]) -> Iterator[Problem]:
    """Yield the judges that grade at a temperature above 0, as far as they have a field of that name."""
    paths = {spec.label: spec.path for spec in evaluation.judges}
    for item in judges:
        temperature = getattr(item.plugin, "temperature", None)
        if isinstance(temperature, int | float) and temperature > 0:
            path = paths.get(item.label)
            place = item.place if path is None else evaluation.source.place((*path, "temperature"), key=True)
            told = f"the judge {item.label!r} grades at temperature {temperature:g}, so that the same answer may be"
            remedy = "set it to 0, or see how much they scatter with `execution.judge_repetitions`"
            yield Problem(place, f"{told} graded otherwise the next time; {remedy}")


def idle_keys(evaluation: Evaluation, askers: Iterable[ResolvedPlugin]) -> Iterator[Problem]:
    """Yield the keys of the config that have no effect; `askers` are the agents and judges."""
    for path, problem in chain(_idle(evaluation), _idle_prices(evaluation, askers)):
        yield Problem(evaluation.source.place(path, key=True), problem)


def _idle_prices(evaluation: Evaluation, askers: Iterable[ResolvedPlugin]) -> Iterator[tuple[KeyPath, str]]:
    """Yield the prices that are given under a name that looks like that of another model, which has no price."""
    asked = {name for item in askers for name in item.model_names}
    without = [model for model in asked if model not in evaluation.prices]
    for model in evaluation.prices:
        if model not in asked and (hint := suggestion(model, without)):
            yield ("prices", model), f"no agent or judge asks {model}{hint}"


def _idle(evaluation: Evaluation) -> Iterator[tuple[KeyPath, str]]:
    data = evaluation.source.data
    if not evaluation.judges:
        if evaluation.rubrics:
            yield ("rubrics",), "no judge grades by these rubrics; add `judges:`"
        if "judge_repetitions" in (data.get("execution") or {}):
            yield ("execution", "judge_repetitions"), "there is no judge to ask repeatedly; add `judges:`"
    for label, condition in evaluation.conditions.items():
        given = (data.get("conditions") or {}).get(label) or {}
        if "on_missing_tool_use" in given and not condition.requires_tool_use:
            problem = "the condition requires no tool use; add `require_mcp_tool_use: true`"
            yield ("conditions", label, "on_missing_tool_use"), problem
