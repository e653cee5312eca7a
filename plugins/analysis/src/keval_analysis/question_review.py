"""Questions that wait for a person: read from a dataset in JSON lines, and accepted, rejected or edited there."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

from keval.config.evaluation import DatasetFile, Evaluation
from keval.dataset.samples import sample_of
from keval.errors import ConfigError, Problem, RunError
from keval.files import explained, read_input, replacing

_LOCK_TIMEOUT = 10.0
"""Seconds to wait for others who write to the same dataset."""
_BY_HAND = "open it in an editor, and set `accepted: true` for questions that are right"
_BOM = b"\xef\xbb\xbf"


@attrs.frozen
class ProvingCall:
    """A tool call whose result proves a golden answer; `result` is the part of its text that was kept.

    `evidence` is the passage of the result that says the answer, if it is this one that does.
    """

    tool: str
    arguments: Mapping[str, Any]
    result: str
    evidence: str | None = None


@attrs.frozen
class QuestionEntry:
    """A question of a dataset; it waits for a person if it is neither `accepted` nor `rejected`.

    `line` is its line in the file. `version` is a digest of that line: who decides says which version was seen.
    `expect` is what it expects, as JSON.
    """

    id: str
    question: str
    answer: str | None
    line: int
    version: str
    accepted: bool = True
    rejected: bool = False
    proof: tuple[ProvingCall, ...] = ()
    unanswerable: bool = False
    generated_by: str | None = None
    expect: str = ""


@attrs.frozen
class QuestionFile:
    """A dataset in JSON lines. Only the lines of questions that are decided on are written anew.

    Processes that write to it through this class wait for each other.
    """

    dataset: DatasetFile

    @classmethod
    def of(cls, evaluation: Evaluation, *, remedy: str = _BY_HAND) -> QuestionFile:
        """Return the dataset of an evaluation. Raises ConfigError: it has none, or one that is not in JSON lines."""
        dataset = evaluation.dataset
        if dataset is None:
            told = "the key 'dataset' is missing; add `dataset: {path: questions.jsonl}`"
            raise ConfigError([evaluation.source.problem((), told)])
        return cls.at(dataset, remedy=remedy)

    @classmethod
    def at(cls, dataset: DatasetFile, *, remedy: str) -> QuestionFile:
        """Return a dataset. Raises ConfigError, with a remedy: it is not in JSON lines."""
        if dataset.format not in ("jsonl", "ndjson"):
            told = f"keval writes questions to JSON lines only, and the format of this file is {dataset.format!r}"
            raise ConfigError([Problem(str(dataset.path), f"{told}; {remedy}")])
        return cls(dataset)

    @property
    def path(self) -> Path:
        """Where it is; a link is followed, so that writing does not replace it."""
        # Before Python 3.13, `Path.resolve` raises at a loop of links.
        return Path(os.path.realpath(self.dataset.path))  # which a loop of links does not end

    def questions(self) -> list[QuestionEntry]:
        """Return all questions, in the order of the file; of a file that does not exist, none. Raises ConfigError."""
        return [self._entry(number, line, record) for number, line, record in self._read(self._content())]

    def waiting(self) -> list[QuestionEntry]:
        """Return the questions that wait for a person. Raises ConfigError, also if there is no file."""
        if not self.path.exists():
            told = "there is no such file; `keval generate` makes questions"
            raise ConfigError([Problem(str(self.dataset.path), told)])
        return [entry for entry in self.questions() if not entry.accepted and not entry.rejected]

    def accept(self, chosen: Iterable[QuestionEntry]) -> None:
        """Accept questions: they are asked from now on. Raises ConfigError and RunError, and then accepts none."""
        self._change(chosen, lambda record: {**record, "accepted": True})

    def reject(self, chosen: Iterable[QuestionEntry]) -> None:
        """Reject questions: they stay in the file, and are not asked. Raises ConfigError and RunError."""
        self._change(chosen, lambda record: {**record, "rejected": True})

    def edit(self, chosen: QuestionEntry, question: str, answer: str) -> QuestionEntry:
        """Change a question and its golden answer; it still waits. Raises ConfigError and RunError."""
        if not question.strip() or not (answer.strip() or chosen.expect):
            raise ConfigError([Problem(self._place(chosen.line), "a question and its golden answer are texts; add it")])
        keys = {self.dataset.question_key: question.strip(), self.dataset.answer_key: answer.strip()}
        self._change([chosen], lambda record: {**record, "id": chosen.id, **keys})
        return next(each for each in self.waiting() if each.id == chosen.id)

    def append(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Add questions at the end, all or none; the file is made if it does not exist. Raises RunError."""
        with self._locked():
            content = self._content()
            before = content if not content or content.endswith(b"\n") else content + b"\n"
            self._write(before + b"".join(_line(record) + b"\n" for record in records))

    def _change(
        self, chosen: Iterable[QuestionEntry], change: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    ) -> None:
        """Write the lines of some questions anew, if they are as they were seen; else raises ConfigError."""
        versions = {each.id: each.version for each in chosen}
        with self._locked():
            content = self._content()
            lines = [*io.BytesIO(content)]
            for number, line, record in self._read(content):
                entry = self._entry(number, line, record)
                if entry.id in versions:
                    if entry.version != versions.pop(entry.id):
                        told = f"{entry.id!r} was changed meanwhile; look at it again"
                        raise ConfigError([Problem(self._place(number), told)])
                    # The line keeps its own end and a byte-order mark, so that nothing else in the file changes.
                    end = line[len(line.rstrip(b"\r\n")) :]
                    mark = _BOM if line.startswith(_BOM) else b""
                    lines[number - 1] = mark + _line(change(record)) + end
            if versions:
                told = f"there is no question with the id {next(iter(versions))!r} any more"
                raise ConfigError([Problem(str(self.path), told)])
            self._write(b"".join(lines))

    def _content(self) -> bytes:
        try:
            return read_input(self.path)
        except FileNotFoundError:
            return b""
        except OSError as error:
            told = f"the dataset cannot be read: {error.strerror or error}"
            raise ConfigError([Problem(str(self.path), told)]) from error

    def _read(self, content: bytes) -> Iterator[tuple[int, bytes, dict[str, Any]]]:
        """Yield the number, the bytes and the record of each line that is not blank. Raises ConfigError."""
        for number, line in enumerate(io.BytesIO(content), start=1):
            text = line.removeprefix(_BOM).strip()
            if not text:
                continue
            try:
                record = json.loads(text)
                sample_of(record, self.dataset)
            # JSON that is nested too deeply is a RecursionError.
            except (ValueError, RecursionError) as error:
                raise ConfigError([Problem(self._place(number), f"this line is no question: {error}")]) from error
            yield number, line, record

    def _entry(self, number: int, line: bytes, record: Mapping[str, Any]) -> QuestionEntry:
        sample = sample_of(record, self.dataset)
        return QuestionEntry(
            sample.id,
            sample.question,
            sample.answer,
            number,
            hashlib.sha256(line).hexdigest(),
            record.get("accepted") is not False,
            record.get("rejected") is True,
            tuple(_proof(record.get("proof"))),
            record.get("unanswerable") is True,
            told if isinstance(told := record.get("generated_by"), str) else None,
            json.dumps(record["expect"], ensure_ascii=False) if sample.expect else "",
        )

    def _place(self, line: int) -> str:
        return f"{self.dataset.path}:{line}"

    @contextmanager
    def _locked(self) -> Iterator[None]:
        # Takes a twentieth of a second to import, which only who writes needs. This lock leaves no file behind.
        from filelock import SoftFileLock, Timeout

        lock = self.path.with_name(f".{self.path.name}.lock")
        with explained(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            try:
                with SoftFileLock(lock, timeout=_LOCK_TIMEOUT):
                    yield
            except Timeout as error:
                told = f"another process has been writing to {self.path} for {_LOCK_TIMEOUT:g} s; try again, or remove"
                raise RunError(f"{told} {lock} if there is none") from error

    def _write(self, content: bytes) -> None:
        with replacing(self.path) as file:
            # The new file has the rights of the one that it replaces; Windows has no `fchmod`.
            if self.path.exists() and hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), self.path.stat().st_mode & 0o7777)
            file.write(content)


def _line(record: Mapping[str, Any]) -> bytes:
    # JSON may escape half of a surrogate pair, which UTF-8 cannot encode.
    return json.dumps(record, ensure_ascii=False).encode("utf-8", "replace")


def _proof(found: Any) -> Iterator[ProvingCall]:
    for call in found if isinstance(found, list) else ():
        match call:
            case {"tool": str(tool), "arguments": dict(arguments), "result": str(result)}:
                passage = call.get("evidence")
                yield ProvingCall(tool, arguments, result, passage if isinstance(passage, str) else None)
