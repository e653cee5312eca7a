"""Runs of recorded answers that rate themselves, each on a day of January 2026: for tests of the history of runs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.conftest import Project
from tests.ratings import CONFIG

__all__ = ["edit", "rated"]

_LOW, _HIGH = 0.2, 0.8


def edit(file: Path, **changes: Any) -> None:
    """Change keys of a JSON file."""
    file.write_text(json.dumps({**json.loads(file.read_text(encoding="utf-8")), **changes}), encoding="utf-8")


def rated(
    project: Project,
    day: int,
    level: float = _LOW,
    *,
    questions: int = 12,
    name: str = "rated",
    prompt: str = "",
    arguments: Iterable[str] = (),
) -> Path:
    """Run an evaluation whose ratings are about `level`, as if on this day; returns the run's folder."""
    answers = {f"q{number}": round(level + 0.01 * (number % 5), 2) for number in range(questions)}
    told = [{"id": sample, "response": str(value)} for sample, value in answers.items()]
    asked = [{"id": sample, "question": f"{sample}?"} for sample in answers]
    project.write(
        **{f"{name}_yaml": CONFIG.format(name=name, prompt=prompt)},
        **{f"{name}_jsonl": "".join(json.dumps(line) + "\n" for line in told)},
        q_jsonl="".join(json.dumps(line) + "\n" for line in asked),
    )
    run: str = project.run(f"{name}.yaml", *arguments, "--json").data["run"]
    made = project.root / "results" / name / run
    folder: Path = made.rename(made.with_name(f"202601{day:02}-120000-aaaa"))
    edit(folder / "manifest.json", run=folder.name, started=f"2026-01-{day:02}T12:00:00+00:00")
    edit(folder / "summary.json", run=folder.name)
    return folder
