"""Where the questions of an evaluation come from: a file of the user's, `keval generate`, or three samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from keval.config.evaluation import DatasetFile
from keval.dataset.read import read_dataset
from keval.dataset.samples import NAMES_QUESTION_KEY
from keval.errors import ConfigError, Problem
from keval.records.trial import PLACEHOLDER
from keval_start.workplace import Workplace

FILE = "questions.jsonl"
"""The dataset that is written where the user has none."""


@attrs.frozen
class Questions:
    """The section `dataset` of the config, and how many questions there are; `graded` says that some have answers.

    `records` are what is written into `FILE`, and `generate` is how many `keval generate` is to make in their place;
    `allow_writes` lets it call tools that do not say that they only read.
    """

    section: Mapping[str, Any]
    count: int
    graded: bool = True
    generate: int = 0
    allow_writes: bool = False
    records: Sequence[Mapping[str, Any]] = ()

    def about(self, tools: Sequence[str]) -> Questions:
        """Return the questions with samples about these tools, where samples are written."""
        return attrs.evolve(self, records=sample_questions(tools).records) if self.records or self.generate else self


def read_questions(path: Path, workplace: Workplace, question_key: str | None, answer_key: str | None) -> Questions:
    """Return the questions of a file. Raises ConfigError with every problem of it."""
    keys = {"question_key": question_key, "answer_key": answer_key}
    given: dict[str, Any] = {name: key for name, key in keys.items() if key is not None}
    try:
        samples = read_dataset(DatasetFile(path, **given)).samples
    except ConfigError as error:
        first = error.problems[0]
        if first.message.endswith(NAMES_QUESTION_KEY):  # that many lines lack the same
            raise ConfigError([Problem(first.place, f"{first.message}: give it by --question-key KEY")]) from error
        raise
    answered = sum(sample.answer is not None for sample in samples)
    if answer_key is not None and not answered:
        raise ConfigError([Problem(str(path), f"no record has an answer under {answer_key!r}; correct --answer-key")])
    return Questions({"path": workplace.written(path), **given}, len(samples), graded=answered > 0)


def sample_questions(tools: Sequence[str] = ()) -> Questions:
    """Return three questions to begin with: about the tools of a server if there are any, else of general knowledge.

    Their ids say that they are to be replaced.
    """
    asked = [
        (f"Replace this by a question whose answer needs the tool {tool}.", "Replace this by the right answer.")
        for tool in [*tools, *tools, *tools][:3]
    ] or [
        ("How many minutes are there in a day?", "1440 minutes."),
        ("Which planet is nearest to the Sun?", "Mercury."),
        ("What is the chemical symbol of gold?", "Au."),
    ]
    records = [
        {"id": f"{PLACEHOLDER}{number}", "question": question, "answer": answer}
        for number, (question, answer) in enumerate(asked, start=1)
    ]
    return Questions({"path": FILE}, len(records), records=records)


def generated_questions(number: int, *, allow_writes: bool = False) -> Questions:
    """Return a dataset that `keval generate` fills with this many questions."""
    return Questions({"path": FILE}, number, generate=number, allow_writes=allow_writes)
