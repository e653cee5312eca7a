"""What a user should know of a plan that is valid: what will have no score, and what in the config does nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from keval.config.dataset import Dataset
from keval.config.evaluation import Evaluation
from keval.config.source import KeyPath
from keval.errors import Problem
from keval.records import Sample
from keval.run.compliance import requires_tool_use
from keval.run.plan import Scorers

__all__ = ["idle_keys", "missing_golden_answers"]


def missing_golden_answers(
    evaluation: Evaluation, dataset: Dataset, samples: Iterable[Sample], scorers: Scorers
) -> Iterator[Problem]:
    """Say how many samples lack the golden answer that rubrics need."""
    needy = [rubric.name for rubric in scorers.rubrics if rubric.needs_answer] if scorers.judges else []
    if not needy or evaluation.dataset is None:
        return
    answered = [sample.answer is not None for sample in samples]
    if all(answered):
        return
    key = f"golden answer under {evaluation.dataset.answer_key!r}"
    lacking = f"{answered.count(False)} samples have no {key}" if any(answered) else f"no sample has a {key}"
    told = f"{lacking}; {' and '.join(needy)} will have no score there (dataset.answer_key names the key)"
    yield Problem(str(dataset.path), told)


def idle_keys(evaluation: Evaluation) -> Iterator[Problem]:
    """Say which keys of the config do nothing."""
    for path, problem in _idle(evaluation):
        yield Problem(evaluation.source.place(path, key=True), problem)


def _idle(evaluation: Evaluation) -> Iterator[tuple[KeyPath, str]]:
    data = evaluation.source.data
    if not evaluation.judges:
        if evaluation.rubrics:
            yield ("rubrics",), "no judge grades by these rubrics; add `judges:`"
        if "judge_repetitions" in (data.get("execution") or {}):
            yield ("execution", "judge_repetitions"), "there is no judge to ask repeatedly; add `judges:`"
    for label, condition in evaluation.conditions.items():
        given = (data.get("conditions") or {}).get(label) or {}
        if "on_missing_tool_use" in given and not requires_tool_use(condition):
            problem = "the condition requires no tool use; add `require_mcp_tool_use: true`"
            yield ("conditions", label, "on_missing_tool_use"), problem
