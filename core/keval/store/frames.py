"""Trials and scores as Arrow tables: one row each, in columns of plain types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from keval.errors import RunError
from keval.records import Trial
from keval.scores import ScoreLine
from keval.store.jsonl import dump

if TYPE_CHECKING:
    import pyarrow

__all__ = ["scores_table", "trials_table"]

_BATCH = 1_000

_TRIALS = {
    "id": "string", "sample": "string", "agent": "string", "model": "string", "condition": "string",
    "repetition": "int64", "question": "string", "answer": "string", "output": "string", "failed": "bool",
    "failure": "string", "message": "string", "attempts": "int64", "complied": "bool", "duration": "float64",
    "model_calls": "int64", "tool_calls": "int64", "input_tokens": "int64", "output_tokens": "int64",
    "metadata": "string",
}  # fmt: skip
_SCORES = {
    "trial": "string", "sample": "string", "agent": "string", "condition": "string", "repetition": "int64",
    "metric": "string", "judge": "string", "judge_repetition": "int64", "value": "float64", "neutral": "bool",
    "reason": "string", "failure": "string", "details": "string",
}  # fmt: skip


def trials_table(trials: Iterable[Trial]) -> pyarrow.Table:
    """Return trials as a table; mappings are JSON texts. Raises RunError when pyarrow is not installed."""
    return _table(map(_trial, trials), _TRIALS)


def scores_table(scores: Iterable[ScoreLine]) -> pyarrow.Table:
    """Return scores as a table; mappings are JSON texts. Raises RunError when pyarrow is not installed."""
    return _table(map(_score, scores), _SCORES)


def _table(rows: Iterator[Mapping[str, Any]], columns: Mapping[str, str]) -> pyarrow.Table:
    try:
        import pyarrow  # takes a tenth of a second to import
    except ImportError as error:
        raise RunError("tables need pyarrow: `pip install keval[frames]`") from error
    schema = pyarrow.schema([(name, pyarrow.type_for_alias(kind)) for name, kind in columns.items()])
    batches = [pyarrow.RecordBatch.from_pylist(batch, schema) for batch in _batches(rows)]
    return pyarrow.Table.from_batches(batches, schema)


def _batches(rows: Iterator[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    while batch := [*islice(rows, _BATCH)]:
        yield batch


def _trial(trial: Trial) -> Mapping[str, Any]:
    transcript, failure = trial.transcript, trial.failure
    calls = None
    if transcript is not None and transcript.unlisted_calls is not None:
        calls = len(transcript.tool_calls) + transcript.unlisted_calls
    return {
        "id": trial.id,
        "sample": trial.sample.id,
        "agent": trial.agent,
        "model": trial.model,
        "condition": trial.condition,
        "repetition": trial.repetition,
        "question": trial.question,
        "answer": trial.sample.answer,
        "output": trial.output,
        "failed": failure is not None,
        "failure": failure and failure.kind,
        "message": failure and failure.message,
        "attempts": len(trial.attempts) + 1,
        "complied": trial.complied,
        "duration": transcript and transcript.duration,
        "model_calls": transcript and transcript.model_calls,
        "tool_calls": calls,
        "input_tokens": transcript and transcript.usage.input_tokens,
        "output_tokens": transcript and transcript.usage.output_tokens,
        "metadata": dump(trial.sample.metadata).decode(),
    }


def _score(line: ScoreLine) -> Mapping[str, Any]:
    return {
        "trial": line.trial,
        "sample": line.sample,
        "agent": line.agent,
        "condition": line.condition,
        "repetition": line.repetition,
        "metric": line.metric,
        "judge": line.judge,
        "judge_repetition": line.judgement and line.judgement.repetition,
        "value": line.score.value,
        "neutral": line.score.neutral,
        "reason": line.score.reason,
        "failure": line.failure and line.failure.kind,
        "details": dump(line.score.details).decode(),
    }
