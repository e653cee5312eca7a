"""A project: a folder with a config and a dataset, in which a test runs keval as a user does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import chdir
from pathlib import Path
from textwrap import dedent
from typing import Any

import attrs

from keval import Run, open_run

_CONFIG = """\
dataset: {path: questions.jsonl}
agents: {echo: {type: testing/echo}}
metrics: [testing/words]
"""
_QUESTIONS = (
    {"id": "finland", "question": "What is the capital of Finland?", "answer": "It is Helsinki."},
    {"id": "norway", "question": "What is the capital of Norway?", "answer": "Oslo"},
    {"id": "open", "question": "Which of both would you visit?"},
)


@attrs.frozen
class CommandOutcome:
    """How a command ended, and what it wrote."""

    code: int
    stdout: str
    stderr: str

    @property
    def data(self) -> Any:
        """What it wrote with `--json`."""
        return json.loads(self.stdout)


@attrs.frozen
class Project:
    """A folder with `eval.yaml` and `questions.jsonl`: three questions for an agent that repeats golden answers.

    It needs no model and no package but keval. A test replaces what it is about.
    """

    root: Path

    @classmethod
    def new(cls, root: Path) -> Project:
        """Write config and dataset to a folder."""
        project = cls(root)
        project.write("eval.yaml", _CONFIG)
        project.write("questions.jsonl", "".join(json.dumps(each) + "\n" for each in _QUESTIONS))
        return project

    def write(self, name: str, text: str) -> Path:
        """Write a file, whose text may be indented as the test is, and return its path."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text).lstrip("\n"), encoding="utf-8")
        return path

    def keval(self, *arguments: str, env: Mapping[str, str | None] | None = None) -> CommandOutcome:
        """Run the command `keval` with these arguments in the folder, in this process; `None` unsets a variable."""
        from click.testing import CliRunner

        from keval.cli import main

        # Without COLUMNS, as lines would break by the terminal of whoever runs the tests. An exception is a defect,
        # and the test shows its traceback.
        with chdir(self.root):
            result = CliRunner().invoke(main, arguments, env={"COLUMNS": None, **(env or {})}, catch_exceptions=False)
        return CommandOutcome(result.exit_code, result.stdout, result.stderr)

    def run(self, *arguments: str, config: str = "eval.yaml", code: int = 0) -> Run:
        """Run `keval run` with these arguments, and return the run.

        Raises AssertionError: it ended with another code than this.
        """
        outcome = self.keval("run", config, "-q", *arguments)
        if outcome.code != code:
            raise AssertionError(f"keval run ended with {outcome.code} instead of {code}: {outcome.stderr}")
        return open_run("latest", self.root / "results")

    def evaluate(self, config: str | Mapping[str, Any] = "eval.yaml", **options: Any) -> Run:
        """Run an evaluation as `keval.evaluate` does, in the folder, and return the run. Raises what that raises."""
        from keval import evaluate

        with chdir(self.root):
            return evaluate(config, results=self.root / "results", **options)
