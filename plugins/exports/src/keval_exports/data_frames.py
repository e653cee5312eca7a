"""Trials and scores as rows of a table, and as Arrow tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any

from keval import Run, RunError, ScoreLine, Trial
from keval.plugin import dump

if TYPE_CHECKING:
    import pyarrow
    from pandas import DataFrame


TRIAL_COLUMNS: Mapping[str, str] = {
    "id": "string", "sample": "string", "agent": "string", "model": "string", "condition": "string",
    "repetition": "int64", "question": "string", "answer": "string", "output": "string", "failed": "bool",
    "failure": "string", "message": "string", "attempts": "int64", "complied": "bool", "duration": "float64",
    "model_calls": "int64", "tool_calls": "int64", "input_tokens": "int64", "output_tokens": "int64",
    "metadata": "string", "cached_tokens": "int64", "reasoning_tokens": "int64", "started": "float64",
    "instructions": "string", "asked": "string", "history": "string", "calls": "string", "truncated": "bool",
}  # fmt: skip
"""The columns of a table of trials, with the Arrow type of each."""
SCORE_COLUMNS: Mapping[str, str] = {
    "trial": "string", "sample": "string", "agent": "string", "condition": "string", "repetition": "int64",
    "metric": "string", "judge": "string", "judge_repetition": "int64", "value": "float64", "neutral": "bool",
    "reason": "string", "failure": "string", "details": "string", "message": "string",
    "unverified_claims": "string",
}  # fmt: skip
"""The columns of a table of scores, with the Arrow type of each."""


def trial_row(trial: Trial) -> dict[str, Any]:
    """Return a trial's values by column. Lists and mappings are JSON texts; what is unknown is `None`."""
    transcript, failure = trial.transcript, trial.failure
    calls = None
    if transcript is not None and transcript.unlisted_calls is not None:
        calls = len(transcript.own_calls) + transcript.unlisted_calls
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
        "metadata": _json(trial.sample.metadata),
        "cached_tokens": transcript and transcript.usage.cached_tokens,
        "reasoning_tokens": transcript and transcript.usage.reasoning_tokens,
        "started": transcript and transcript.started,
        "instructions": transcript and transcript.instructions,
        "asked": _json(trial.sample.asked),
        "history": _json(trial.sample.history),
        "calls": transcript and _json(transcript.tool_calls),
        "truncated": trial.truncated,
    }


def score_row(line: ScoreLine) -> dict[str, Any]:
    """Return a score's values by column. Lists and mappings are JSON texts; what is unknown is `None`."""
    claims = line.judgement and line.judgement.unverified_claims
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
        "details": _json(line.score.details),
        "message": line.failure and line.failure.message,
        "unverified_claims": None if claims is None else _json(claims),
    }


def _json(value: Any) -> str:
    return dump(value).decode()


_BATCH = 1_000


def arrow(run: Run, table: str) -> pyarrow.Table:
    """Return the trials or scores of a run as a table. Raises RunError: pyarrow is not installed."""
    if table == "trials":
        return _table(map(trial_row, run.trials()), TRIAL_COLUMNS)
    if table == "scores":
        return _table(map(score_row, run.scores()), SCORE_COLUMNS)
    raise RunError(f"a run has the tables 'trials' and 'scores', and no {table!r}")


def _table(rows: Iterator[Mapping[str, Any]], columns: Mapping[str, str]) -> pyarrow.Table:
    try:
        import pyarrow  # takes a tenth of a second to import
    except ImportError as error:
        from keval.plugin import missing_module

        raise RunError(f"tables need {missing_module('pyarrow')}") from error
    schema = pyarrow.schema([(name, pyarrow.type_for_alias(kind)) for name, kind in columns.items()])
    return pyarrow.Table.from_batches([record_batch(batch, schema) for batch in _batches(rows)], schema)


def record_batch(rows: Sequence[Mapping[str, Any]], schema: pyarrow.Schema) -> pyarrow.RecordBatch:
    """Return rows of a table as an Arrow record batch. Raises RunError: a value is not of its column's type."""
    import pyarrow

    def batch(part: Sequence[Mapping[str, Any]]) -> pyarrow.RecordBatch:
        return pyarrow.RecordBatch.from_pylist([*part], schema)

    try:
        return batch(rows)
    except (pyarrow.ArrowException, OverflowError):
        for row in rows:
            try:
                batch([row])
            except (pyarrow.ArrowException, OverflowError) as error:
                whose = f"the score of {row['trial']!r}" if "trial" in row else f"the trial {row['id']!r}"
                told = f"{whose} has a value that does not fit its column: {error}; correct its line in the run"
                raise RunError(told) from error
        raise


def _batches(rows: Iterator[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    while batch := [*islice(rows, _BATCH)]:
        yield batch


def pandas(run: Run, table: str) -> DataFrame:
    """Return the trials or scores of a run as a data frame. Raises RunError: pyarrow or pandas is not installed."""
    rows = arrow(run, table)
    try:
        import_module("pandas")  # pyarrow's own error would not say what to do
    except ImportError as error:
        from keval.plugin import missing_module

        raise RunError(f"data frames need {missing_module('pandas')}") from error
    return rows.to_pandas()
