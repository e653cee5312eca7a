"""The evaluation: one YAML file, read into records, before any plugin is imported."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar

import attrs
from attrs.validators import ge, gt, optional

from keval.config.source import KeyPath, Source
from keval.errors import Problem
from keval.records.interventions import Intervention
from keval.records.models import Price

T = TypeVar("T")

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
_WRITTEN = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)")


# Each trial asks for the same few sizes.
@cache
def size(written: int | str) -> int:
    """Return a size in bytes. Raises ValueError when it is none."""
    if isinstance(written, int):
        found: float = written
    else:
        match = _WRITTEN.fullmatch(written.strip())
        if match is None or match[2].upper() not in _UNITS:
            raise ValueError(f"expected a size such as 20 MB, got {written!r}")
        found = float(match[1]) * _UNITS[match[2].upper()]
    if found < 1:
        raise ValueError(f"expected a size of at least one byte, got {written!r}")
    return int(found)


def is_size(instance: object, attribute: attrs.Attribute[Any], value: int | str) -> None:
    """Check a field that holds a size."""
    size(value)


_FAILURE_LIMIT = re.compile(r"(\d+(?:\.\d+)?)\s*(%?)")
_LONGEST_FOLDER = 200
"""Bytes; file systems take 255."""


def _optional_name(instance: object, attribute: attrs.Attribute[Any], value: str | None) -> None:
    if value is not None and not (value.strip() and value.isprintable()):
        raise ValueError(f"'{attribute.name}' must be a text on one line: {value!r}")


@attrs.frozen
class DatasetFile:
    """Where the samples are. `type` names the reader of the file's format; by default the file's suffix does.

    Samples with the same value under `cluster_key` of their metadata share a source, such as a document that several
    questions are about, and count together where errors are estimated. `options` are the reader's own keys.
    """

    path: Path
    question_key: str = "question"
    answer_key: str = "answer"
    type: str | None = None
    cluster_key: str | None = None
    options: Mapping[str, Any] = attrs.field(factory=dict, kw_only=True, metadata={"unknown_keys": True})

    @property
    def format(self) -> str:
        """The name of the dataset reader."""
        return self.type or self.path.suffix.lower().removeprefix(".")


TEMPLATE_MARKS = ("{{", "{%", "{#")
"""What a system prompt has that is filled in for each sample."""


@attrs.frozen
class Condition:
    """A named arm: a system prompt and contexts by label.

    The prompt is a `template` over the sample, or else sent as it is written.

    `require_mcp_tool_use` requires a tool call in every trial, and `require_mcp_tool_success` that one succeeds if
    there are calls. `on_missing_tool_use` says what happens to an answer that does not comply: the trial is asked again
    (`retry`), the answer is scored (`keep`), or the trial fails (`fail`).

    `workspace` is the folder that agents work in: its keys go over those of the evaluation, and a sample's over these.
    """

    system_prompt: str = ""
    template: bool = True
    contexts: tuple[str, ...] = ()
    require_mcp_tool_use: bool = False
    require_mcp_tool_success: bool = False
    on_missing_tool_use: Literal["retry", "keep", "fail"] = "retry"
    workspace: Mapping[str, Any] | None = None

    @property
    def requires_tool_use(self) -> bool:
        """Whether the condition requires any use of tools."""
        return self.require_mcp_tool_use or self.require_mcp_tool_success


@attrs.frozen
class Retry:
    """How often a trial or judgement is attempted, and how long keval waits between attempts, in seconds.

    The wait is random between 0 and a bound that grows with each attempt (full jitter). A model request that is refused
    is sent up to `max_request_attempts` times within one attempt. While an endpoint is down, requests wait for up to
    `max_outage_seconds`.
    """

    max_attempts: int = attrs.field(default=3, validator=ge(1))
    initial_backoff_seconds: float = attrs.field(default=1.0, validator=ge(0))
    backoff_multiplier: float = attrs.field(default=2.0, validator=ge(1))
    max_backoff_seconds: float = attrs.field(default=60.0, validator=ge(0))
    max_request_attempts: int = attrs.field(default=5, validator=ge(1))
    max_outage_seconds: float = attrs.field(default=600.0, validator=ge(0))


@attrs.frozen
class Rate:
    """How many requests and tokens a minute a provider or a model is given, from all agents and judges of a run."""

    requests_per_minute: float | None = attrs.field(default=None, validator=optional(gt(0)))
    tokens_per_minute: float | None = attrs.field(default=None, validator=optional(gt(0)))


def _is_failure_limit(instance: object, attribute: attrs.Attribute[Any], value: int | str | None) -> None:
    if value is not None:
        # How many trials there will be is not known yet, and does not matter to whether it can be read.
        failure_limit(value, 0)


def failure_limit(written: int | str, trials: int) -> int:
    """Return how many of so many trials may fail. Raises ValueError for anything but a number or a share like `10%`."""
    found = _FAILURE_LIMIT.fullmatch(str(written).strip())
    if found is None or (found[2] and float(found[1]) > 100) or ("." in found[1] and not found[2]):
        raise ValueError(f"'max_failures' must be a number of trials, or a share of them such as 10%: {written!r}")
    return int(float(found[1]) / 100 * trials) if found[2] else int(found[1])


def _is_amount(instance: object, attribute: attrs.Attribute[Any], value: float) -> None:
    if not 0 <= value < math.inf:
        raise ValueError(f"'{attribute.name}' must be an amount of 0 or more: {value}")


@attrs.frozen
class Budget:
    """What a run may use up, however often it is resumed. When it is used up, no other trial or judgement begins.

    `tokens` counts those of every model call: input and output, discarded attempts and judgements included. `trials`
    counts trials that were begun. `usd` is what those tokens cost in US dollars; it needs the price of every model.
    """

    tokens: int | None = attrs.field(default=None, validator=optional(ge(0)))
    trials: int | None = attrs.field(default=None, validator=optional(ge(0)))
    usd: float | None = attrs.field(default=None, validator=optional(_is_amount))


@attrs.frozen
class TrialLimits:
    """What one trial may use, with all its attempts; one that would use more ends at once, and is a failure.

    `tokens` are input and output together, `cost` is in US dollars, and `tool_calls` include those of an agent's own
    tools, as far as keval sees them.
    """

    model_calls: int | None = attrs.field(default=None, validator=optional(ge(1)))
    tokens: int | None = attrs.field(default=None, validator=optional(ge(1)))
    cost: float | None = attrs.field(default=None, validator=optional([gt(0), _is_amount]))
    tool_calls: int | None = attrs.field(default=None, validator=optional(ge(1)))


@attrs.frozen
class Execution:
    """How trials are run. `timeout_seconds` bounds one attempt at a trial, or at a judgement.

    When more than `max_failures` trials have failed, no new trials start; it is a number, or a share of the trials such
    as `10%`. `grace_seconds` is how long trials in flight may go on after Ctrl-C. A model's reply of more than
    `max_reply_bytes` and a tool's result of more than `max_result_bytes` fail the attempt. A tool's result of more than
    `max_recorded_bytes` is cut in the record; with `keep_large_results` the whole of it is in the run's `blobs/`.
    `blobs/` also has the first model request of one trial of each arm, and with `keep_requests` that of every trial.

    `num_repetitions` is how often a question is asked, and `judge_repetitions` how often each judge grades an answer.
    `rates` are by provider, or by model as `provider/name`. `seed` draws the order of trials and the seeds that models
    are given. `executor` names what runs the trials, or maps `type` and its options. `limits` bound one trial.
    """

    num_repetitions: int = attrs.field(default=1, validator=ge(1))
    judge_repetitions: int = attrs.field(default=1, validator=ge(1))
    max_concurrent: int = attrs.field(default=8, validator=ge(1))
    timeout_seconds: float = attrs.field(default=300.0, validator=gt(0))
    max_failures: int | str | None = attrs.field(default=None, validator=_is_failure_limit)
    grace_seconds: float = attrs.field(default=10.0, validator=ge(0))
    max_reply_bytes: int | str = attrs.field(default="20 MB", validator=is_size)
    max_result_bytes: int | str = attrs.field(default="10 MB", validator=is_size)
    max_recorded_bytes: int | str = attrs.field(default="1 MB", validator=is_size)
    keep_large_results: bool = False
    keep_requests: bool = False
    retry: Retry = Retry()
    rates: Mapping[str, Rate] = attrs.field(factory=dict)
    seed: int = 0
    executor: str | Mapping[str, Any] = "local"
    limits: TrialLimits | None = None


@attrs.frozen
class Header:
    """The keys of an evaluation that stand alone. `public` names variables whose values are no secret.

    `failed` and `unscored` say whether trials that failed, and answers without a score, are left out of effects, or
    count as the worst score (intention to treat).
    `workspace` is the folder that agents work in, `sandbox` shuts them in there, and `verify` lists the checks of what
    a trial leaves.
    """

    name: str | None = attrs.field(default=None, validator=_optional_name)
    version: str | float | None = None
    description: str | None = None
    baseline: str | None = None
    neutral: Literal["omit", "count"] = "omit"
    failed: Literal["omit", "worst"] = "omit"
    unscored: Literal["omit", "worst"] = "omit"
    public: tuple[str, ...] = ()
    workspace: Mapping[str, Any] | None = None
    sandbox: str | Mapping[str, Any] = "none"
    verify: tuple[Any, ...] = ()


@attrs.frozen
class PluginSpec:
    """A plugin as a config names it: its label, its type, its options as written, and the path where it stands.

    `implied` says that the config names a model and no judge, and the model's provider chose the judge.
    `characteristics` is what the config says about an agent: a mapping, or the name of an agent plugin that ships one.

    A context may have `interventions`, first to last, each with the path of its entry in `changed_at`. `origin` is the
    label of the context that it derives from in the end, and `changes` what its own entry changes, as written, with
    `from`; an entry with `from` has no type of its own.
    """

    label: str
    type: str
    options: Mapping[str, Any] = attrs.field(factory=dict)
    path: KeyPath = ()
    implied: bool = False
    characteristics: Mapping[str, Any] | str | None = None
    interventions: tuple[Intervention, ...] = ()
    changed_at: tuple[KeyPath, ...] = ()
    origin: str | None = None
    changes: Mapping[str, Any] = attrs.field(factory=dict)

    @property
    def base(self) -> str | None:
        """The label of the context that this one is derived from."""
        return self.changes.get("from")


@attrs.frozen
class Evaluation:
    """A whole configuration. It names plugins; the plan constructs them.

    `problems` are those found so far, and `notices` are what a user should know. Reading goes on after a problem and
    leaves out what it affects, so that all problems are reported at once. No plan is made of an evaluation with
    problems. `lacks` are the sections that a run needs and the config has not, each with the problem that this is.
    `unmatched` is what has no equivalent, of a file in the format of another tool.
    `providers` are the providers of models, by name, that the config has options of. `sections` are the keys that
    packages add, as records of theirs. `is_reread` says that the config is that of a run, whose names were checked when
    it began.
    """

    source: Source
    header: Header = Header()
    dataset: DatasetFile | None = None
    agents: tuple[PluginSpec, ...] = ()
    contexts: tuple[PluginSpec, ...] = ()
    conditions: Mapping[str, Condition] = attrs.field(factory=dict)
    metrics: tuple[PluginSpec, ...] = ()
    judges: tuple[PluginSpec, ...] = ()
    rubrics: tuple[PluginSpec, ...] = ()
    middleware: tuple[PluginSpec, ...] = ()
    plugins: tuple[PluginSpec, ...] = ()
    execution: Execution = Execution()
    budget: Budget = Budget()
    prices: Mapping[str, Price] = attrs.field(factory=dict)
    providers: Mapping[str, Any] = attrs.field(factory=dict, repr=False)
    sections: tuple[Any, ...] = ()
    limit: int | None = None
    sample_ids: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    lacks: Mapping[str, Problem] = attrs.field(factory=dict)
    notices: tuple[Problem, ...] = ()
    unmatched: tuple[Problem, ...] = ()
    is_reread: bool = False

    def needing_no(self, *sections: str) -> Evaluation:
        """Return the evaluation for what needs none of these sections: that one is missing is then no problem."""
        gone = [self.lacks[name] for name in sections if name in self.lacks]
        return attrs.evolve(self, problems=tuple(each for each in self.problems if each not in gone))

    @property
    def name(self) -> str:
        """The evaluation's name: as given, or that of its file."""
        return self.header.name or Path(self.source.name).stem

    @property
    def folder(self) -> str:
        """The name for a folder, with _ in place of all but letters, digits, spaces and .+-_; at most 200 bytes."""
        # A leading dot would hide the folder, and Windows drops dots and spaces at the end.
        name = re.sub(r"[^\w .+-]", "_", self.name).strip(" .") or "evaluation"
        written = name.encode("utf-8", "replace")
        if len(written) <= _LONGEST_FOLDER:
            return name
        # The digest keeps two long names apart that begin alike.
        return f"{written[: _LONGEST_FOLDER - 9].decode('utf-8', 'ignore')}-{hashlib.sha256(written).hexdigest()[:8]}"

    @property
    def baseline(self) -> str:
        """The condition that the others are compared with."""
        return self.header.baseline or next(iter(self.conditions))

    def with_bases(self, labels: Collection[str]) -> set[str]:
        """Return these labels of contexts, and those of all contexts that these derive from."""
        # Labels may lead in a circle, which is reported where interventions are read.
        bases = {spec.label: spec.base for spec in self.contexts}
        wanted: set[str] = set()
        for label in labels:
            following: str | None = label
            while following is not None and following not in wanted:
                wanted.add(following)
                following = bases.get(following)
        return wanted

    def section(self, cls: type[T]) -> T:
        """Return the keys that a package adds by a class: as given, or by default."""
        return next((each for each in self.sections if isinstance(each, cls)), None) or cls()

    def with_section(self, section: Any) -> Evaluation:
        """Return the evaluation with other values of the keys that a package adds."""
        others = (each for each in self.sections if type(each) is not type(section))
        return attrs.evolve(self, sections=(*others, section))

    def labels(self, section: Literal["agents", "conditions", "judges"]) -> tuple[str, ...]:
        """Return the labels that the config or a flag gives; a flag may have left some of them out."""
        written = self.source.data.get(section)
        chosen = self.conditions if section == "conditions" else [spec.label for spec in getattr(self, section)]
        return (*dict.fromkeys([*(written if isinstance(written, dict) else ()), *chosen]),)

    @property
    def executor(self) -> PluginSpec:
        """The executor, as `execution.executor` names it."""
        given, path = self.execution.executor, ("execution", "executor")
        if isinstance(given, str):
            by_flag = self.source.place(path) == self.source.place(())
            return PluginSpec(given, given, path=("--executor", given) if by_flag else path)
        options = {key: value for key, value in given.items() if key != "type"}
        kind = str(given.get("type", ""))
        return PluginSpec(kind, kind, options, path)
