"""Runs of recorded answers, for tests of what examines the scorers of an evaluation."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from keval import open_run
from keval.store.run import Run
from tests.conftest import Project

__all__ = ["run_of_answers"]

CONFIG = """
name: {name}
dataset: {{path: {name}-q.jsonl{cluster}}}
agents: {{writer: {{type: recorded, path: {name}.jsonl, partial: true}}}}
conditions: {{{conditions}}}
execution: {{num_repetitions: {repetitions}, judge_repetitions: {gradings}}}
{scorers}
"""


def run_of_answers(
    project: Project,
    name: str,
    answers: Iterable[tuple[str, str, str]],
    scorers: str,
    *,
    golden: Mapping[str, str],
    repetitions: int = 1,
    gradings: int = 1,
    cluster: str = "",
) -> Run:
    """Run an evaluation of answers, each given by its sample, condition and text; `golden` has golden answers."""
    told = [*answers]
    config = CONFIG.format(
        name=name,
        cluster=cluster,
        conditions=", ".join(f"{condition}: {{}}" for condition in dict.fromkeys(each[1] for each in told)),
        repetitions=repetitions,
        gradings=gradings,
        scorers=scorers,
    )
    (project.root / f"{name}.yaml").write_text(config, encoding="utf-8")
    questions = [
        {"id": sample, "question": f"What of {sample}?", "answer": answer, "source": sample[:1]}
        for sample, answer in golden.items()
    ]
    _write(project, f"{name}-q.jsonl", questions)
    lines = [{"id": sample, "condition": condition, "response": text} for sample, condition, text in told]
    _write(project, f"{name}.jsonl", lines)
    done = project.keval("run", f"{name}.yaml", "-q")
    assert 0 == done.code, done.stderr
    return open_run(next((project.root / "results" / name).iterdir()))


def _write(project: Project, name: str, records: Iterable[Mapping[str, str]]) -> None:
    text = "".join(json.dumps(record) + "\n" for record in records)
    (project.root / name).write_text(text, encoding="utf-8")
