"""What went wrong, at the lines of the config and of skills, in the way in which GitHub shows it beside a change."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from keval import KevalError, Manifest, Run
from keval.config.source import KeyPath, Source
from keval.errors import Problem
from keval_analysis.findings.summary import Summary
from keval_report.gates import GateRow, gate_rows, unmet_texts

_PLACE = re.compile(r"(.+?):(\d+)(?::(\d+))?$")
_MOST = 10
"""GitHub shows no more errors of one step."""


def annotated(problems: Iterable[Problem]) -> Iterator[str]:
    """Yield the first problems as commands of GitHub's runner, with paths from the root of the repository."""
    root = Path(os.environ.get("GITHUB_WORKSPACE", ""))
    for place, message in [*problems][:_MOST]:
        found = _PLACE.match(place)
        path, line, column = found.groups() if found else (place, None, None)
        file = os.path.relpath(path, root.resolve()) if path and Path(path).exists() else ""
        about = {"file": file, "line": line if file else None, "col": column if file else None, "title": "keval"}
        told = ",".join(f"{key}={_escaped(value, ':,')}" for key, value in about.items() if value)
        yield f"::error {told}::{_escaped(message if file or not place else f'{place}: {message}')}"


def _escaped(text: str, more: str = "") -> str:
    return "".join(f"%{ord(char):02X}" if char in f"%\r\n{more}" else char for char in text)


def problems_of(run: Run, summary: Summary) -> Iterator[Problem]:
    """Yield what failed in a run, each where it is written: gates, expectations, and trials by their condition."""
    manifest = run.manifest
    places = _Places(manifest)
    for result in summary.gates:
        if result.verdict != "failed" or result.kind == "expect":
            continue
        (row,) = gate_rows([result])
        yield Problem(places.of_gate(result.written, result.condition), _told(row))
        for file in _texts(manifest, result.condition):
            yield Problem(f"{file}:1", _told(row))
    for unmet in summary.unmet:
        yield Problem(places.of_sample(unmet.sample), unmet_texts([unmet])[0])
    for arm in summary.trials:
        for kind, message in arm.failure_messages.items():
            about = f"{arm.failures[kind]} of {arm.trials} trials of {arm.agent} failed ({kind}): {message}"
            yield Problem(places.of(("conditions", arm.condition)), about)


def _told(row: GateRow) -> str:
    return f"{row.gate} failed: {row.detail}"


class _Places:
    """The lines of the config and of the dataset that a run was made of, as far as they are still there."""

    def __init__(self, manifest: Manifest) -> None:
        self.config = manifest.config_file or ""
        self.dataset = Path(manifest.config_folder, manifest.dataset.path)
        try:
            self.source = Source.read(Path(self.config))
        except KevalError:
            self.source = Source(self.config, Path(manifest.config_folder), {})

    def of(self, path: KeyPath) -> str:
        return self.source.place(path, key=True)

    def of_gate(self, written: str | None, condition: str | None) -> str:
        """Return the place of a gate; of one that a flag gave, that of its condition."""
        data: Any = self.source.data
        gates = data.get("gates") if isinstance(data, dict) else None
        if isinstance(gates, list) and written in gates:
            return self.of(("gates", gates.index(written)))
        return self.of(("conditions", condition) if condition else ())

    def of_sample(self, name: str) -> str:
        """Return the line of the dataset that has the id of a sample; one that is numbered stands nowhere."""
        try:
            lines = self.dataset.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            lines = []
        own_id = re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])")
        number = next((number for number, line in enumerate(lines, 1) if own_id.search(line)), None)
        return f"{self.dataset}:{number}" if number else self.of(("dataset",))


def _texts(manifest: Manifest, condition: str | None) -> Iterator[Path]:
    """Yield the files of the skills and instructions that a condition gives."""
    entry = manifest.conditions.get(condition or "")
    for label, texts in entry.texts.items() if entry else ():
        written = manifest.config.get("contexts", {}).get(label, {}).get("path", ())
        for path in [written] if isinstance(written, str) else written:
            found = Path(manifest.config_folder, path)
            skills = [found, *(found / part for part in texts.parts)]
            yield from [found] if found.is_file() else [f for s in skills if (f := s / "SKILL.md").is_file()]
