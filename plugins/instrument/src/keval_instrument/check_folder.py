"""The material of examinations, runs and answers that were written for them, and the folder that keeps it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import Any, Literal, TypeAlias
from uuid import uuid4

import attrs
import orjson

from keval import Run, RunError, Sample
from keval.files import read_kept
from keval.plan.plan import Plan
from keval.plugin import dump, explained, replacing


@attrs.frozen
class WrittenAnswer:
    """An answer to a sample, made in the way that its `condition` names, such as `number-1` or `padded`.

    `note` says what was done to it, such as `21 became 24`. `of` is the id of the trial whose answer it was made of;
    its tool calls are then those of that trial. Several answers to a sample under one condition are its repetitions.
    """

    sample: str
    condition: str
    text: str
    note: str = ""
    of: str | None = None


RunName: TypeAlias = Literal["asked", "damaged", "restyled"]
RUNS: tuple[RunName, ...] = ("asked", "damaged", "restyled")


@attrs.frozen
class Material:
    """Finished runs that examinations read.

    `asked` is a run of the evaluation with its own agents, judges and metrics; its requests are kept. `damaged` has
    golden answers and what was made of them, and `restyled` answers of `asked` and what was made of these, both scored
    by the same scorers: each condition is one way of making answers (see `keval_instrument.damages`), and the baseline
    is the answers as they were. A run is `None` where there is none, and `reasons` says why, by its name.
    `plan` is that of the evaluation as it is configured, with all its samples; `None` where only a run is examined.
    """

    asked: Run | None = None
    damaged: Run | None = None
    restyled: Run | None = None
    plan: Plan | None = None
    reasons: Mapping[str, str] = attrs.field(factory=dict)

    def run(self, name: RunName) -> Run | None:
        """Return a run by its name."""
        found: Run | None = getattr(self, name)
        return found


_RECORD = "check.json"


@attrs.frozen
class CheckFolder:
    """The folder of one check, beside its runs: `check.json` says which runs these are, or why one was not made.

    It keeps the answers that were written, a file for each run of them, with the samples that they answer.
    """

    path: Path

    @classmethod
    def create(cls, runs: Path) -> CheckFolder:
        """Make the folder of a new check, whose runs will be in `runs`. Raises RunError."""
        # Two checks may begin within a second.
        path = runs / f"check-{datetime.now(UTC):%Y%m%d-%H%M%S}-{uuid4().hex[:4]}"
        with explained(path):
            path.mkdir(parents=True)
        return cls(path)

    @classmethod
    def find(cls, place: Path) -> CheckFolder | None:
        """Return the folder of a check, or of the latest one in a folder of checks; `None` if there is none.

        The latest one that made a run, if any did. Raises RunError.
        """
        # Folders are named by the time, so that the last one is the latest.
        records = [place / _RECORD] if (place / _RECORD).is_file() else sorted(place.glob(f"check-*/{_RECORD}"))
        found = [cls(record.parent) for record in reversed(records)]
        return next((each for each in found if {*RUNS} & each._record().keys()), next(iter(found), None))

    @classmethod
    def of(cls, run: Run) -> CheckFolder | None:
        """Return the folder of the check that a run was made for; `None` if it was made for none. Raises RunError."""
        folders = (cls(record.parent) for record in run.path.parent.glob(f"check-*/{_RECORD}"))
        return next((each for each in folders if run.id in map(each._record().get, RUNS)), None)

    def keep(self, material: Material) -> None:
        """Write which runs there are so far. Raises RunError."""
        runs = {name: run.id for name in RUNS if (run := material.run(name))}
        with replacing(self.path / _RECORD) as file:
            file.write(dump({**runs, "reasons": dict(material.reasons)}) + b"\n")

    def material(self) -> Material:
        """Return the runs of the check. Raises RunError."""
        record = self._record()
        # The file may be of others: only the last part of a path counts, so that none leads out of the folder.
        names = {name: PurePath(str(record[name])).name for name in RUNS if name in record}
        places = {name: self.path.parent / run for name, run in names.items() if run not in ("", "..")}
        runs: dict[str, Any] = {name: Run(place) for name, place in places.items() if place.is_dir()}
        absent: dict[str, str] = {
            name: f"there is no run {places[name]} any more" if name in places else "the check made no such run"
            for name in RUNS
            if name not in runs
        }
        given = record.get("reasons")
        reasons = {name: str(why) for name, why in given.items()} if isinstance(given, dict) else {}
        return Material(**runs, reasons={**absent, **reasons})

    def write_samples(self, name: RunName, samples: Iterable[Sample]) -> Path:
        """Write the samples of written answers, without what trials work in and leave. Raises RunError."""
        return self._write(f"{name}-samples.jsonl", map(_sample_record, samples))

    def write_answers(self, name: RunName, answers: Iterable[WrittenAnswer], asked: Run | None) -> Path:
        """Write answers as the agent `recorded` reads them; `asked` has the trials that they were made of.

        Raises RunError.
        """
        return self._write(f"{name}.jsonl", (_answer_record(answer, asked) for answer in answers))

    def _write(self, name: str, records: Iterable[Mapping[str, Any]]) -> Path:
        path = self.path.absolute() / name
        with replacing(path) as file:
            file.writelines(dump(record) + b"\n" for record in records)
        return path

    def _record(self) -> dict[str, Any]:
        path = self.path / _RECORD
        return _read(path, _content(path))


def _content(path: Path) -> bytes:
    """Return the content of a file of a check, which may come from others. Raises RunError."""
    with explained(path):
        return read_kept(path)


def _read(path: Path, line: bytes) -> dict[str, Any]:
    """Return the object of a line. Raises RunError."""
    try:
        data = orjson.loads(line)
    except ValueError:
        data = None
    if not isinstance(data, dict):
        raise RunError(f"{path} is damaged: a line is no JSON object; remove the file, and check the runs one by one")
    return data


def _sample_record(sample: Sample) -> dict[str, Any]:
    history = [{"role": message.role, "content": message.text} for message in sample.history]
    found = {
        "turns": sample.asked,
        "answer": [*sample.answers] if sample.other_answers else sample.answer,
        "history": history,
    }
    return {"id": sample.id, **found, "facts": dict(sample.facts), "metadata": dict(sample.metadata)}


def _answer_record(answer: WrittenAnswer, asked: Run | None) -> dict[str, Any]:
    """Return a line for the agent `recorded`; what was made of a trial's answer has the tool calls of that trial."""
    record = {"id": answer.sample, "condition": answer.condition, "response": answer.text, "note": answer.note}
    transcript = asked.trial(answer.of).transcript if asked is not None and answer.of is not None else None
    if transcript is None:
        return record
    kept = ("name", "arguments", "result", "error", "duration", "server", "turn")
    calls = [{key: getattr(call, key) for key in kept} for call in transcript.tool_calls]
    # A list that lacks calls would say that the agent made no others.
    return {**record, "of": answer.of, "tool_calls": calls if transcript.unlisted_calls == 0 else None}
