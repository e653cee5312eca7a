"""`keval init --from FILE` of an evaluation that was written for another tool: its config in keval's own words."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import yaml

from keval.cli.display import tell_notices
from keval.config.evaluation import Evaluation
from keval.config.load import read_evaluation, source_of
from keval.errors import ConfigError, Problem
from keval.plan.build import make_plan
from keval_start.project import CONFIG
from keval_start.workplace import Workplace

_PATHS = ("path", "cwd", "copy")


def evaluation_in(file: Path) -> Evaluation | None:
    """Return the evaluation that a file has in another tool's format, `None` if it has none."""
    try:
        source = source_of(file)
    except ConfigError:  # what a client's file may have, such as comments
        return None
    if not isinstance(source.data, dict):
        return None
    evaluation = read_evaluation(source)
    return evaluation if evaluation.source.data != source.data else None


def write_config(evaluation: Evaluation, flags: Mapping[str, Any], workplace: Workplace) -> Path:
    """Write the config of such an evaluation, tell what has no equivalent, and return the path.

    Raises ConfigError: the evaluation is not valid, the config exists, or a flag is for another kind of file.
    """
    told = "a file of another tool says all but the model; leave it out"
    others = [name for name, value in flags.items() if value and name not in ("from_file", "model")]
    if others:
        raise ConfigError([Problem(f"--{name.replace('_', '-')}", told) for name in others])
    config = workplace.folder / CONFIG
    workplace.check_absent(config)
    data = _rebased(evaluation.source.data, evaluation.source.base, workplace.folder)
    if flags["model"]:
        entries = [each for section in ("agents", "judges") for each in (data.get(section) or {}).values()]
        for each in entries:
            each.update({"model": flags["model"]} if "model" in each else {})
    tell_notices(attrs.evolve(make_plan(evaluation), notices=()))
    with workplace.made():
        config.write_text(yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=120), encoding="utf-8")
    return config


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
