"""The logs of other tools as evaluations: a format, their questions as a dataset, and their answers as an agent."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkstemp
from typing import Any
from weakref import finalize

import attrs
import orjson

from keval.errors import ConfigError, FieldError, Problem
from keval.seams.formats import Translation
from keval.seams.infrastructure import DatasetRequest, RawRecord
from keval_formats import inspect_log, k_eval_log
from keval_formats.log import Log, label_of
from keval_recorded import Recorded


def open_log(path: Path) -> Log:
    """Return the log in a file. Raises ConfigError: there is none of a known tool."""
    log = k_eval_log.read(path) if path.suffix == ".jsonl" else inspect_log.read(path)
    if log is None:
        told = "no log that keval reads; k-eval writes *.detailed.jsonl, and Inspect .eval or .json"
        raise ConfigError([Problem(str(path), told)])
    return log


class Logs:
    """The format of all logs: their suffixes are its words."""

    def translate(self, data: dict[str, Any], path: Path) -> Translation | None:
        """Make an evaluation of recorded answers, scored as the other tool scored them."""
        if data != {path.suffix[1:]: path.name} or not path.is_file():
            return None
        try:
            log = open_log(path)
        except ConfigError:
            if path.suffix == ".json":  # which other formats have, too
                return None
            raise
        conditions: dict[str, dict[str, Any]] = {}
        scales: dict[str, tuple[float, float]] = {}
        unmatched = Counter(log.unmatched)
        for entry in log.entries():
            conditions |= {entry.answer["condition"]: {}} if "condition" in entry.answer else {}
            unmatched.update(entry.unmatched)
            for name, score in entry.answer["scores"].items():
                low, high = scales.get(name, log.scale)
                value = low if score["value"] is None else score["value"]
                scales[name] = min(low, value), max(high, value)
        own = ", ".join(name for name, scale in scales.items() if scale != log.scale)
        told = [f"the scale of {own} is taken from the values; low and high of the metric change it"] if own else []
        agent = {"type": "recorded-log", "path": path.name} | ({"model": log.model} if "/" in log.model else {})
        metrics = [{f"recorded/{each}": {"of": each, "low": low, "high": high}} for each, (low, high) in scales.items()]
        return Translation(
            {
                "name": label_of(log.name),
                "dataset": {"path": path.name, "type": "recorded-log"},
                "agents": {label_of(log.model.rpartition("/")[2]): agent},
                **({"conditions": conditions} if conditions else {}),
                "metrics": metrics,
            },
            notices=tuple(FieldError((), each) for each in (*log.notices, *told)),
            unmatched=tuple(FieldError((), f"{told} ({count}x)") for told, count in unmatched.items()),
        )

    def extend_schema(self, properties: dict[str, Any]) -> None:
        """Add nothing: a config in keval's own words has no key of this format."""


logs = Logs()


class LogQuestions:
    """The questions of a log, each once."""

    def read(self, request: DatasetRequest) -> Iterator[RawRecord | Problem]:
        """Yield the question of each answer that is the first to it."""
        asked: dict[str, str] = {}
        for number, entry in enumerate(open_log(request.path).entries(), start=1):
            name, question = entry.question["id"], entry.question["question"]
            if name not in asked:
                asked[name] = question
                yield RawRecord(entry.question, number)
            elif asked[name] != question:
                yield Problem(str(request.path), f"the sample {name!r} has two questions; make a log of each")


@attrs.define
class RecordedLog(Recorded):
    """The answers of a log that k-eval or Inspect wrote; `model` says which model gave them, for their cost.

    With `partial`, a sample without an answer is left out; else its trial fails.
    """

    partial: bool = True

    def lines(self) -> Path:
        """Write each answer of the log as a line of a file, which is there until keval ends."""
        descriptor, name = mkstemp(suffix=".jsonl")
        finalize(self, os.unlink, name)
        with open(descriptor, "wb") as lines:
            lines.writelines(orjson.dumps(entry.answer) + b"\n" for entry in open_log(self.path).entries())
        return Path(name)
