"""`keval init --from FILE` of an evaluation that was written for another tool: its config in keval's own words."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import yaml

from keval.cli.display import tell_notices
from keval.config.evaluation import Evaluation
from keval.config.load import read_evaluation, source_of
from keval.config.source import Source
from keval.errors import ConfigError, Problem
from keval.plan.build import make_plan
from keval_start.project import CONFIG
from keval_start.questions import FILE, read_questions, sample_questions
from keval_start.workplace import Workplace

_PATHS = ("path", "cwd", "copy")


def evaluation_in(file: Path) -> Evaluation | None:
    """Return the evaluation that a file has in another tool's format, `None` if it has none."""
    try:
        source = source_of(file)
    except ConfigError:  # what a client's file may have, such as comments
        return None
    servers = {"mcpServers", "servers"} & source.data.keys() if isinstance(source.data, dict) else ()
    if not isinstance(source.data, dict) or (servers and file.name != "plugin.json"):
        return None
    evaluation = read_evaluation(source)
    return evaluation if evaluation.source.data != source.data else None


def write_config(evaluation: Evaluation, flags: Mapping[str, Any], workplace: Workplace) -> Path:
    """Write the config of such an evaluation, tell what has no equivalent, and return the path.

    Raises ConfigError: the evaluation is not valid, the config exists, or a flag is for another kind of file.
    """
    told = "a file of another tool says all but the model; leave it out"
    asked = () if "dataset" in evaluation.source.data else ("questions", "question_key", "answer_key")
    others = [name for name, value in flags.items() if value and name not in ("from_file", "model", *asked)]
    if others:
        raise ConfigError([Problem(f"--{name.replace('_', '-')}", told) for name in others])
    config = workplace.folder / CONFIG
    workplace.check_absent(config)
    data = _rebased(evaluation.source.data, evaluation.source.base, workplace.folder)
    if flags["model"]:
        entries = [each for section in ("agents", "judges") for each in (data.get(section) or {}).values()]
        for each in entries:
            each.update({"model": flags["model"]} if "model" in each else {})
    records: Sequence[Mapping[str, Any]] = ()
    if asked:
        data, records = _with_questions(data, flags, workplace)
        workplace.check_absent(*[workplace.folder / FILE for _ in records[:1]])
    with workplace.made():
        if records:
            lines = (json.dumps(record, ensure_ascii=False) for record in records)
            (workplace.folder / FILE).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        # What was read has the places of what has no equivalent.
        written = read_evaluation(Source(str(config), workplace.folder, data)) if asked else evaluation
        tell_notices(attrs.evolve(make_plan(attrs.evolve(written, unmatched=evaluation.unmatched)), notices=()))
        config.write_text(yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=120), encoding="utf-8")
    return config


def _with_questions(
    data: Mapping[str, Any], flags: Mapping[str, Any], workplace: Workplace
) -> tuple[dict[str, Any], Sequence[Mapping[str, Any]]]:
    """Return an evaluation with the questions of a file, or with samples to replace, which are returned, too."""
    keys = (flags["question_key"], flags["answer_key"])
    found = read_questions(flags["questions"], workplace, *keys) if flags["questions"] else sample_questions()
    rubrics = ["factual_adherence" if found.graded else "helpfulness_and_clarity"]
    judge = {"model": next(each["model"] for each in data["agents"].values())}
    return {**data, "dataset": dict(found.section), "judges": {"judge": judge}, "rubrics": rubrics}, found.records


def _rebased(data: Any, base: Path, folder: Path) -> Any:
    """Return data with the paths in it, which are relative to `base`, relative to another folder."""
    if isinstance(data, list):
        return [_rebased(each, base, folder) for each in data]
    if not isinstance(data, dict):
        return data
    return {
        key: os.path.relpath(base / value, folder)
        if key in _PATHS and isinstance(value, str) and (base / value).exists()
        else _rebased(value, base, folder)
        for key, value in data.items()
    }
