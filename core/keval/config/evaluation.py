"""The evaluation: one YAML file, read into records, before any plugin is imported."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import attrs
from attrs.validators import ge, gt

from keval.config.source import KeyPath, Source
from keval.errors import Problem

__all__ = ["Condition", "DatasetFile", "Evaluation", "Execution", "PluginUse", "Retry"]


def _optional_name(instance: object, attribute: attrs.Attribute[Any], value: str | None) -> None:
    if value is not None and not (value.strip() and value.isprintable()):
        raise ValueError(f"'{attribute.name}' must be a text on one line: {value!r}")


@attrs.frozen
class DatasetFile:
    """Where the samples are: a JSONL, YAML or CSV file."""

    path: Path
    question_key: str = "question"
    answer_key: str = "answer"


@attrs.frozen
class Condition:
    """A named arm: a system prompt, which is a template over the sample, and contexts by label.

    `require_mcp_tool_use` asks for a tool call in every trial, `require_mcp_tool_success` for one that succeeds where
    there are calls. `on_missing_tool_use` says what becomes of an answer without: it is discarded and the trial asked
    again (`retry`), kept and scored (`keep`), or the trial fails (`fail`).
    """

    system_prompt: str = ""
    contexts: tuple[str, ...] = ()
    require_mcp_tool_use: bool = False
    require_mcp_tool_success: bool = False
    on_missing_tool_use: Literal["retry", "keep", "fail"] = "retry"


@attrs.frozen
class Retry:
    """How often a trial is attempted, and how long is waited in between (full jitter below the growing bound)."""

    max_attempts: int = attrs.field(default=3, validator=ge(1))
    initial_backoff_seconds: float = attrs.field(default=1.0, validator=ge(0))
    backoff_multiplier: float = attrs.field(default=2.0, validator=ge(1))
    max_backoff_seconds: float = attrs.field(default=60.0, validator=ge(0))


@attrs.frozen
class Execution:
    """How trials are run. `timeout_seconds` bounds one attempt at a trial, or at a judgement.

    `num_repetitions` is how often a question is asked, and `judge_repetitions` how often each judge is asked about an
    answer.
    """

    num_repetitions: int = attrs.field(default=1, validator=ge(1))
    judge_repetitions: int = attrs.field(default=1, validator=ge(1))
    max_concurrent: int = attrs.field(default=8, validator=ge(1))
    timeout_seconds: float = attrs.field(default=300.0, validator=gt(0))
    retry: Retry = Retry()
    seed: int = 0


@attrs.frozen
class Header:
    """The keys of an evaluation that stand alone."""

    name: str | None = attrs.field(default=None, validator=_optional_name)
    version: str | float | None = None
    description: str | None = None
    baseline: str | None = None
    neutral: Literal["omit", "count"] = "omit"


@attrs.frozen
class PluginUse:
    """A plugin as a config uses it: under a label, by type, with options as written and the path they stand at.

    `implied` says that the config names a model and no type, which is the one that speaks to that model.
    """

    label: str
    type: str
    options: Mapping[str, Any] = attrs.field(factory=dict)
    path: KeyPath = ()
    implied: bool = False


@attrs.frozen
class Evaluation:
    """A whole configuration. Plugins are named here and constructed by the plan.

    `problems` are what was found wrong so far. What they spoil is left out, and reading goes on, so that a user is told
    of everything at once; no plan is made of an evaluation with problems.
    """

    source: Source
    header: Header = Header()
    dataset: DatasetFile | None = None
    agents: tuple[PluginUse, ...] = ()
    contexts: tuple[PluginUse, ...] = ()
    conditions: Mapping[str, Condition] = attrs.field(factory=dict)
    metrics: tuple[PluginUse, ...] = ()
    judges: tuple[PluginUse, ...] = ()
    rubrics: tuple[PluginUse, ...] = ()
    plugins: tuple[PluginUse, ...] = ()
    execution: Execution = Execution()
    limit: int | None = None
    sample_ids: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def name(self) -> str:
        """The evaluation's name: as given, or that of its file."""
        return self.header.name or Path(self.source.name).stem

    @property
    def folder(self) -> str:
        """Its name as that of a folder: letters, digits, spaces and .+-_ stay."""
        return re.sub(r"[^\w .+-]", "_", self.name).strip(" .") or "evaluation"

    @property
    def baseline(self) -> str:
        """The condition that the others are compared with."""
        return self.header.baseline or next(iter(self.conditions))
