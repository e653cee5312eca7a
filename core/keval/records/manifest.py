"""The manifest: what a run was made of, so that runs can be compared and repeated.

A field that an older run lacks is `None` or empty. Keys that this version does not know are kept in `extra` and
written back, so that a run of a newer version survives being scored by an older one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, TypeAlias

import attrs
from attrs.validators import optional

from keval.records.end_state import Conventions
from keval.records.models import FREE, Price, cost_of
from keval.records.scores import Judgement, Rubric, Scale, Scored, ScoreLine, Scorer
from keval.records.transcript import Transcript

FORMAT = 3
"""The version of the run directory. Runs of another format are not read."""


@attrs.frozen
class Entry:
    """A part of a manifest, which keeps in `extra` the keys that this version does not know."""

    extra: Mapping[str, Any] = attrs.field(factory=dict, kw_only=True, repr=False, metadata={"unknown_keys": True})


@attrs.frozen
class DatasetEntry(Entry):
    """The dataset file: its path, the SHA-256 of its bytes, and how many samples were selected from it.

    Samples with the same value of their metadata under `cluster_key` share a source. `checks` are the names of the
    checks that samples have of their own, and `workspaces` says whether any has a workspace of its own.
    """

    path: str
    sha256: str | None = None
    samples: int | None = None
    cluster_key: str | None = None
    checks: tuple[str, ...] = ()
    workspaces: bool = False


@attrs.frozen
class SelectionEntry(Entry):
    """What the command line narrowed the dataset to: the first `limit` samples, and these ids (all when empty)."""

    limit: int | None = None
    sample_ids: tuple[str, ...] = ()


@attrs.frozen
class AgentEntry(Entry):
    """One agent: its plugin, its model (`provider/name`), and what is said about it.

    `recording` is the SHA-256 of recorded answers, for an agent that has its answers already, and `files` has that of
    each file of the user's that the agent is made of, by name. `conventions` are those of an agent that works in a
    folder.
    """

    type: str
    model: str | None = None
    simulated: bool = False
    characteristics: Mapping[str, Any] = attrs.field(factory=dict)
    recording: str | None = None
    files: Mapping[str, str] = attrs.field(factory=dict)
    conventions: Conventions | None = None


@attrs.frozen
class AnswersEntry(Entry):
    """Which recorded run the answers of a server are from: its id, and when it was recorded, as ISO time if known.

    `misses` says what becomes of a call that it does not have: the trial fails, the server is asked `live`, or the
    agent gets an error.
    """

    run: str
    recorded: str | None = None
    misses: Literal["fail", "live", "error"] = "fail"


@attrs.frozen
class ServerEntry(Entry):
    """What one server offered before the first trial: tool names, and a SHA-256 of the tools' definitions.

    `listing` is the SHA-256 of a blob of the run, which has the definitions and the server's instructions as JSON; see
    `keval.records.servers`. `interventions` is what the config changes, first to last, as written. `original_sha256`
    and `original_listing` are from before that. `aliases` maps a tool's name to the one that agents get, as another
    server has a tool of that name; `tools` and `listing` have the names that agents get, and `sha256` is of the others.

    `shared` says whether the condition's trials share the server, `sharing` why, and `isolation_verified` is false
    where keval cannot know that trials are kept apart. `answers` is set where the server was played to live agents.
    `protocol` is the revision of MCP that keval speaks with it.
    """

    tools: tuple[str, ...] = ()
    sha256: str | None = None
    listing: str | None = None
    interventions: tuple[Mapping[str, Any], ...] = ()
    original_sha256: str | None = None
    original_listing: str | None = None
    aliases: Mapping[str, str] = attrs.field(factory=dict)
    shared: bool | None = None
    sharing: str | None = None
    isolation_verified: bool | None = None
    answers: AnswersEntry | None = None
    protocol: str | None = None


@attrs.frozen
class TextEntry(Entry):
    """A context of texts: what one of its parts is called, what the config changes, and how each agent was given it.

    `ways` are by agent, as `GivenText.way` has them, `parts` are the names of its sections or skills, and `sha256` is
    that of all that it gives. `texts` has the SHA-256 of blobs of the run with the texts themselves, by their names.
    """

    part: str = "section"
    sha256: str | None = None
    parts: tuple[str, ...] = ()
    interventions: tuple[Mapping[str, Any], ...] = ()
    ways: Mapping[str, str] = attrs.field(factory=dict)
    texts: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen
class ConditionEntry(Entry):
    """One condition: its contexts, what their servers offered, and what tool use it requires.

    `texts` are the contexts of texts among them, by label, and `workspace` is what its provider says of it.
    """

    contexts: tuple[str, ...] = ()
    servers: Mapping[str, ServerEntry] = attrs.field(factory=dict)
    require_mcp_tool_use: bool = False
    require_mcp_tool_success: bool = False
    on_missing_tool_use: Literal["retry", "keep", "fail"] = "retry"
    texts: Mapping[str, TextEntry] = attrs.field(factory=dict)
    workspace: Mapping[str, Any] = attrs.field(factory=dict)

    @property
    def requires_tool_use(self) -> bool:
        """Whether the condition requires any use of tools."""
        return self.require_mcp_tool_use or self.require_mcp_tool_success


@attrs.frozen
class JudgeEntry(Entry):
    """One judge: its plugin, its model and its options as written. `implied` says that its model chose the plugin.

    `defaults` are the options that the config did not write, except secrets and those that are no plain data.
    """

    type: str
    implied: bool = False
    model: str | None = None
    simulated: bool = False
    options: Mapping[str, Any] = attrs.field(factory=dict)
    defaults: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen
class AgentRating(Entry):
    """What a metric says of an agent whatever it answers, and how it comes to that."""

    value: float
    derivation: str


Ratings: TypeAlias = Mapping[str, Mapping[str, AgentRating]]
"""What metrics say of agents, by the labels of both."""


@attrs.frozen
class ScorerEntry(Scored, Entry):
    """A metric, or a rubric (named in `metric`) that a judge grades by: its scale and its version.

    `threshold` is the value from which a score passes, if the config sets one.
    `repetitions` is how often the judge grades an answer. `rubric` is the digest of the rubric, which the manifest's
    `rubrics` has. `digest` changes with anything that may change a score; only scores with this digest count.
    `options` are a metric's as written, and `defaults` those that the config did not write; a judge has an entry of its
    own for both. `of_agent` says that a metric reads the characteristics of agents, and `ratings` what it says of each
    agent whatever that answers, by label. `category` is the heading under which tables list a metric.
    """

    metric: str
    judge: str | None = None
    scale: Scale = attrs.field(factory=Scale)
    repetitions: int = 1
    rubric: str | None = None
    digest: str = ""
    options: Mapping[str, Any] = attrs.field(factory=dict)
    defaults: Mapping[str, Any] = attrs.field(factory=dict)
    threshold: float | None = None
    of_agent: bool = False
    ratings: Mapping[str, AgentRating] = attrs.field(factory=dict)
    category: str | None = None

    @property
    def pass_threshold(self) -> float | None:
        """The value from which a score passes: `threshold`, or three quarters of the way to the scale's best end.

        `None` on a scale without an end, if the config sets none.
        """
        if self.threshold is not None or math.isinf(self.scale.high):
            return self.threshold
        share = 0.25 if self.scale.better == "lower" else 0.75
        return self.scale.low + share * (self.scale.high - self.scale.low)


@attrs.frozen
class ResumeEntry(Entry):
    """One time that a run was resumed: when, as ISO time, and how many failed trials were run again.

    `changes` says what was different from the manifest then and was accepted with `--force`.
    """

    at: str
    retried: int = 0
    changes: tuple[str, ...] = ()


@attrs.frozen
class ServerStartsEntry(Entry):
    """The processes that keval has started of one condition's server.

    `planned` is how many trials are to have one of their own; 0 if they share one. `processes` came up, and took
    `seconds` until each had listed its tools, all together.
    """

    condition: str
    server: str
    planned: int = 0
    processes: int = 0
    seconds: float = 0.0


@attrs.frozen
class WorkerEntry(Entry):
    """A worker on which trials of the run were run or scored elsewhere, and what it did.

    `node` is the machine, as its executor names it. `cpu_seconds` is that of its process and of programs that have
    ended there, and `memory_bytes` the most that the process had; `None` if that is unknown. `failures` counts the
    failed trials by kind. `lost` says why it ended before it was told to.
    """

    name: str
    node: str
    trials: int = 0
    scored: int = 0
    cpu_seconds: float | None = None
    memory_bytes: int | None = None
    failures: Mapping[str, int] = attrs.field(factory=dict)
    lost: str | None = None


@attrs.frozen
class RecordingEntry(Entry):
    """That the run keeps its traffic in `recording/`, and since when, as ISO time.

    `samples` are the ids that a trimmed recording was narrowed to; empty if it has all of the run's.
    """

    since: str
    samples: tuple[str, ...] = ()


@attrs.frozen
class ReplayEntry(Entry):
    """Which recording a run was replayed from: the id of that run, and when it was recorded, as ISO time.

    Of a recording that was renewed in part, `recorded` is when its oldest part was.

    `misses` says what became of requests that the recording does not have: the trial failed, or it was run again
    `live`; `live_trials` and `live_judgements` count those that were. `changes` says what differs from the manifest of
    that run, one line each.
    """

    run: str
    recorded: str
    misses: Literal["fail", "live"] = "fail"
    live_trials: int = 0
    live_judgements: int = 0
    changes: tuple[str, ...] = ()


@attrs.frozen
class LookingEntry(Entry):
    """How a run was looked at while it ran: its `effect`, after every question, or at so many declared `looks`.

    `before` is after how many questions the whole run was looked at, each time before it was extended; a run that was
    only extended has no `effect`. `questions` is how many were to be asked. A run that `ended` early says why; `asked`
    are the ids of the questions that its figures are of, and `look` is the declared look at which it ended.
    """

    effect: str = ""
    looks: int | None = None
    questions: int = 0
    before: tuple[int, ...] = ()
    ended: str | None = None
    look: int | None = None
    asked: tuple[str, ...] = ()


@attrs.frozen
class SealEntry(Entry):
    """What a file had in it when the run ended: its bytes, and the sum of the SHA-256 of its lines, modulo 2 ** 256."""

    bytes: int
    digest: str


def _is_time(manifest: object, attribute: attrs.Attribute[str], value: str) -> None:
    datetime.fromisoformat(value)


@attrs.frozen
class Manifest(Entry):
    """What a run was made of.

    `run` is the run's id, `started` its ISO time. `config` is the configuration as it ran, with variables as written,
    and `config_folder` the folder that its relative paths start from. `trials` is how many trials were planned.
    `rubrics` are by digest. `plugins` maps `group:name` to distribution and version, `versions` distributions to
    versions: keval, its plugins, and what these directly require. `variables` are the values of the config's variables
    that are no secrets, `None` for one that was not set. `simulated` names the models that were simulated, and `prices`
    has those of the others, as far as they are known, by `provider/name`. `resumed` tells each time that the run was
    resumed. `elapsed` is how many seconds the run was worked on, each time that it was resumed included, and scoring it
    again later not; `None` while trials are run, and for a run that was killed. `stopped` says why trials or judgements
    were left out, if a limit of the run did that. `note` is what who ran it says of it, by `--note`. `play` says that a
    person asked the questions, in a play. `primary` names the metrics and rubrics that the run is to decide.
    `server_starts` are the processes of servers that were started where keval itself runs, and `workers` those of an
    executor that ran trials elsewhere. `protocols` are the revisions of MCP in which agents spoke with the tap, by
    agent and server; in memory none is. `looking` is set where the run may end early, or was looked at so; of one that
    ended, `trials` is how many were run. `sealed` has, once the run has ended, what its files had in them, and
    `changed` names those that somebody changed before it was resumed or scored again.
    """

    run: str
    evaluation: str
    config: Mapping[str, Any]
    config_folder: str
    dataset: DatasetEntry
    agents: Mapping[str, AgentEntry]
    conditions: Mapping[str, ConditionEntry]
    trials: int
    baseline: str
    format: int = FORMAT
    started: str | None = attrs.field(default=None, validator=optional(_is_time))
    config_file: str | None = None
    seed: int = 0
    neutral: Literal["omit", "count"] = "omit"
    failed: Literal["omit", "worst"] = "omit"
    unscored: Literal["omit", "worst"] = "omit"
    selection: SelectionEntry = attrs.field(factory=SelectionEntry)
    judges: Mapping[str, JudgeEntry] = attrs.field(factory=dict)
    rubrics: Mapping[str, Rubric] = attrs.field(factory=dict)
    scorers: tuple[ScorerEntry, ...] = ()
    plugins: Mapping[str, str] = attrs.field(factory=dict)
    versions: Mapping[str, str] = attrs.field(factory=dict)
    variables: Mapping[str, str | None] = attrs.field(factory=dict)
    simulated: tuple[str, ...] = ()
    prices: Mapping[str, Price] = attrs.field(factory=dict)
    resumed: tuple[ResumeEntry, ...] = ()
    elapsed: float | None = None
    stopped: str | None = None
    note: str | None = None
    recording: RecordingEntry | None = None
    replay: ReplayEntry | None = None
    play: bool = False
    primary: tuple[str, ...] = ()
    server_starts: tuple[ServerStartsEntry, ...] = ()
    workers: tuple[WorkerEntry, ...] = ()
    protocols: Mapping[str, Mapping[str, str]] = attrs.field(factory=dict)
    looking: LookingEntry | None = None
    sealed: Mapping[str, SealEntry] = attrs.field(factory=dict)
    changed: tuple[str, ...] = ()

    @property
    def repetitions(self) -> int:
        """How often each question was to be asked."""
        repetitions: int = (self.config.get("execution") or {}).get("num_repetitions", 1)
        return repetitions

    def scorer(self, scorer: Scorer) -> ScorerEntry | None:
        """Return the entry of a scorer, if the run has it."""
        return next((entry for entry in self.scorers if entry.scorer == scorer), None)


def is_current(line: ScoreLine, scorer: ScorerEntry | None) -> bool:
    """Return whether a score is by the version of its scorer in the manifest; an interrupted pass may leave others."""
    if scorer is None or line.digest != scorer.digest:
        return False
    return line.judgement is None or line.judgement.repetition <= scorer.repetitions


@attrs.frozen
class Rates:
    """The price of each agent's and judge's model; `None` if it is unknown. Simulated models are free.

    `unpriced` names the models whose price is unknown, and `models` has the known prices by `provider/name`.
    """

    agents: Mapping[str, Price | None] = attrs.field(factory=dict)
    judges: Mapping[str, Price | None] = attrs.field(factory=dict)
    unpriced: tuple[str, ...] = ()
    models: Mapping[str, Price] = attrs.field(factory=dict)

    @classmethod
    def of(cls, manifest: Manifest) -> Rates:
        """Return the rates by the prices that a run's manifest has; a run of an older version has none."""

        def rate(entry: AgentEntry | JudgeEntry) -> Price | None:
            return FREE if entry.simulated else manifest.prices.get(entry.model or "")

        agents = {label: rate(entry) for label, entry in manifest.agents.items()}
        judges = {label: rate(entry) for label, entry in manifest.judges.items()}
        entries: list[AgentEntry | JudgeEntry] = [*manifest.agents.values(), *manifest.judges.values()]
        unpriced = dict.fromkeys(entry.model for entry in entries if entry.model and rate(entry) is None)
        return cls(agents, judges, tuple(unpriced), manifest.prices)

    def of_models(self, agent: str) -> Mapping[str, Price]:
        """Return the prices of the models that an agent may ask, by `provider/name`; simulated ones have none."""
        # By identity: a price of 0 may be another's, and an agent has only simulated models or none of them.
        return {} if self.agents.get(agent) is FREE else self.models

    def attempt(self, agent: str, transcript: Transcript) -> float | None:
        """Return what one attempt at a trial cost in US dollars; `None` if it is unknown."""
        price = self.agents.get(agent)
        if price is FREE or not transcript.usage_by_model:
            return _cost(price, transcript)
        costs = [cost_of(self.models.get(each.model), each.usage) for each in transcript.usage_by_model]
        return None if None in costs else sum(cost for cost in costs if cost is not None)

    def judgement(self, judge: str, judgement: Judgement) -> float | None:
        """Return what a judgement cost in US dollars; `None` if it is unknown."""
        return _cost(self.judges.get(judge), judgement)


def _cost(price: Price | None, asked: Transcript | Judgement) -> float | None:
    # Who asked no model costs nothing, even if nobody knows the price.
    return 0.0 if asked.model_calls == 0 else cost_of(price, asked.usage)
